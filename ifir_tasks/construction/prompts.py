"""The prompts of the construction, and the requests made with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.judge import Prompt, PromptedAsking, Request, package_prompts
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
class DomainAsking(PromptedAsking):
    """How the language model is asked about a domain.

    Attributes:
        domain: fills the prompts' fields on expert, asker, query and passage.
    """

    domain: Domain

    def request_by(self, name: str, /, **values: str) -> Request:
        """The request that a prompt makes, with the fields that the domain does not give."""
        domain = self.domain
        of_domain = {
            "expert": domain.expert,
            "asker": domain.asker,
            "kind": domain.query,
            "passage_kind": domain.passage,
        }
        used = {key: text for key, text in of_domain.items() if key in FIELDS[name]}
        return super().request_by(name, **used, **values)

    def record(self) -> dict[str, Any]:
        """What replies to the prompts depend on beside the data."""
        return {**self.settings(self.prompts), "domain": self.domain_version}

    def record_of(self, name: str) -> dict[str, Any]:
        """What a reply to this prompt depends on beside the data."""
        return {**super().record_of(name), "domain": self.domain_version}

    @property
    def domain_version(self) -> str:
        """The domain's name and version, as records name it."""
        return f"{self.domain.name} {self.domain.version}"


def read_prompts(folder: Path | None = None) -> dict[str, Prompt]:
    """The prompts of the package, or those of the same name in the user's folder where it has them.

    Raises:
        FileNotFoundError: if there is no such folder, or it holds none of them.
        ValueError: naming a file whose form or fields are others.
    """
    return package_prompts(FOLDER, FIELDS, folder)
