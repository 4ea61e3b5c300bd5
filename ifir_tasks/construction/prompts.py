"""The prompts of the construction, and the requests made with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluators.judge import Prompt, Request, Sampling, read_prompt
from ifir_tasks.construction.domains import Domain

FOLDER = Path(__file__).parent / "prompts"
FIRST, NEXT, CITATION, RELEVANCE = "instruction-first", "instruction-next", "citation", "relevance"
_ABOUT = ("expert", "kind", "passage_kind")
FIELDS: Mapping[str, tuple[str, ...]] = {
    FIRST: (*_ABOUT, "asker", "query", "task", "conditions"),
    NEXT: (*_ABOUT, "asker", "query", "instruction", "task", "conditions"),
    CITATION: ("expert", "asker", "context"),
    RELEVANCE: (*_ABOUT, "query", "instruction", "passage"),
}


@dataclass(frozen=True)
class Asking:
    """How the language model is asked: which model, how it draws its replies, and with which prompts.

    Attributes:
        model: its name.
        sampling: sampling parameters.
        prompts: by name.
        domain: fills the prompts' fields on expert, asker, query and passage.
    """

    model: str
    sampling: Sampling
    prompts: Mapping[str, Prompt]
    domain: Domain

    def request(self, name: str, **values: str) -> Request:
        """The request that a prompt makes, with the fields that the domain does not give."""
        domain = self.domain
        of_domain = {
            "expert": domain.expert,
            "asker": domain.asker,
            "kind": domain.query,
            "passage_kind": domain.passage,
        }
        used = {key: text for key, text in of_domain.items() if key in FIELDS[name]}
        return Request(self.model, self.prompts[name].messages(**used, **values), self.sampling)

    def settings(self, name: str) -> dict[str, Any]:
        """What a reply to this prompt depends on beside the data."""
        return {
            "model": self.model,
            "sampling": {**asdict(self.sampling), "extra": dict(self.sampling.extra)},
            "prompt": f"{name} {self.prompts[name].version}",
            "domain": f"{self.domain.name} {self.domain.version}",
        }


def read_prompts(folder: Path | None = None) -> dict[str, Prompt]:
    """The prompts of the package, or those of the same name in the user's folder where it has them.

    Raises:
        FileNotFoundError: if there is no such folder, or it holds none of them.
        ValueError: naming a file whose form or fields are others.
    """
    names = list(FIELDS)
    own = {name for name in names if folder is not None and (folder / f"{name}.txt").is_file()}
    if folder is not None and not own:
        raise FileNotFoundError(f"{folder} holds none of {', '.join(f'{name}.txt' for name in names)}")
    return {
        name: read_prompt((folder if folder and name in own else FOLDER) / f"{name}.txt", FIELDS[name])
        for name in names
    }
