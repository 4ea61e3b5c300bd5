"""Models of mteb that read a prompt in front of each query, and the prompts of a family of models."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mteb.models import CrossEncoderProtocol, EncoderProtocol, SearchProtocol
from mteb.models.abs_encoder import get_prompt
from mteb.models.hybrid_wrappers import HybridSearch
from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper
from mteb.types import PromptType
from torch.utils.data import DataLoader

from evaluators.plugin.given import given_model
from evaluators.plugin.models import recorded

# A model's own prompt that says no more than what kind of text follows: "query: ", "task: search result | query: ".
_MARK = re.compile(r"\s*(?:[^|:]+:[^|:]*\|\s*)*[\w-]+\s*:\s*")


@dataclass(frozen=True)
class TaskPrompts:
    """The prompts of one task; an empty document prompt leaves documents as they are."""

    query: str
    document: str = ""


@dataclass(frozen=True)
class PromptFamily:
    """The prompts of a family of models, and how they stand in front of a text.

    Attributes:
        name: part of the record of a model that uses them.
        template: text in front of a query or document, with ``{prompt}`` in it; not used for an empty prompt.
        tasks: task name -> its prompts.
        in_place: whether they stand in place of an instruction that a model of sentence-transformers has for queries of
            its own accord ("Represent this sentence for searching relevant passages: "), and not behind it. What only
            marks a query ("query: ") stays in front either way.
    """

    name: str
    template: str
    tasks: Mapping[str, TaskPrompts]
    in_place: bool = False

    def __post_init__(self) -> None:
        if "{prompt}" not in self.template:
            raise ValueError(f"the template of the prompts {self.name!r} lacks {{prompt}}: {self.template!r}")

    @property
    def version(self) -> str:
        """Name and a hash of the content, so that edited prompts make another variant."""
        kept = [self.template, {t: asdict(p) for t, p in sorted(self.tasks.items())}]
        content = json.dumps([*kept, "in place"] if self.in_place else kept)
        return f"{self.name}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"

    def sentence(self, task: str, kind: PromptType | None) -> str:
        """The bare prompt of a task for queries or documents; may be empty.

        Raises:
            ValueError: for a task without prompts, or a text that is neither query nor document.
        """
        if task not in self.tasks:
            raise ValueError(
                f"the prompts {self.name!r} have none for the task {task}, only for {', '.join(sorted(self.tasks))}; "
                "give a PromptFamily of your own"
            )
        if kind is None:
            raise ValueError(f"{task}: prompts are for queries and documents, and this text is neither")
        prompts = self.tasks[task]
        return prompts.query if kind == PromptType.query else prompts.document

    def rendered(self, sentence: str) -> str:
        """What stands in front of the text."""
        return self.template.format(prompt=sentence) if sentence else ""


def with_prompts(model: Any, family: PromptFamily) -> Any:
    """The model with a prompt in front of each query, and of each document where the family has one for documents.

    The prompt goes where the model expects it: into the template of mteb's instruction models (in place of the
    instruction that mteb would give them), to sentence-transformers as a prompt (which Instructor leaves out of its
    mean) behind the model's own one or in place of it, and in front of the text for all others, such as mteb's wrappers
    of single models, which use prompts in their own ways.
    The record's ``experiment_kwargs`` state the family and a hash of its content, so mteb files each variant apart.

    Args:
        model: a sentence-transformers model, any model in mteb's form, or a ``ModelMeta``, which is loaded.
        family: the prompts.

    Raises:
        ValueError: for a hybrid, a model with prompts, or a family with prompts for documents and
            a model that searches or cross-encodes. When run: for a task that the family does not know, or a model's own
            instruction that the family's prompts are to replace and cannot.
    """
    wrapped = given_model(model)
    name = wrapped.mteb_model_meta.name
    if isinstance(wrapped, _Prompted | HybridSearch):
        raise ValueError(f"{name}: prompts go around a model without them, and in a hybrid around its parts")
    kind: type[_Prompted]
    if isinstance(wrapped, EncoderProtocol) and not isinstance(wrapped, SearchProtocol):
        kind = _PromptedEncoder
    elif isinstance(wrapped, CrossEncoderProtocol):
        kind = _PromptedCrossEncoder
    elif isinstance(wrapped, SearchProtocol):
        kind = _PromptedSearch
    else:
        raise ValueError(f"{name} ({type(wrapped).__name__}) is neither encoder, cross-encoder nor search model")
    if kind is not _PromptedEncoder and any(p.document for p in family.tasks.values()):
        raise ValueError(
            f"the prompts {family.name!r} concern documents too, which only an encoder reads apart from queries; "
            f"{name} is a {type(wrapped).__name__}"
        )
    return recorded(kind(wrapped, family), wrapped.mteb_model_meta, {"prompts": family.version})


class _Prompted:
    """A wrapped model and its prompts."""

    def __init__(self, wrapped: Any, family: PromptFamily) -> None:
        self.wrapped = wrapped
        self.family = family
        self.mteb_model_meta = wrapped.mteb_model_meta

    @property
    def model(self) -> Any:
        """The model inside mteb's wrapper, from which token limits are read."""
        return getattr(self.wrapped, "model", None)

    def _text(self, task_metadata: Any) -> str:
        return self.family.rendered(self.family.sentence(task_metadata.name, PromptType.query))


class _PromptedEncoder(_Prompted):
    def encode(self, inputs: Any, *, task_metadata: Any, prompt_type: PromptType | None = None, **kwargs: Any) -> Any:
        sentence = self.family.sentence(task_metadata.name, prompt_type)
        encoder = copy.copy(self.wrapped)
        if isinstance(encoder, InstructSentenceTransformerModel) or getattr(encoder, "instruction_template", None):
            instruction = sentence if encoder.instruction_template else self.family.rendered(sentence)
            encoder.get_instruction = lambda *args, **kwargs: instruction
        elif isinstance(encoder, SentenceTransformerEncoderWrapper) and sentence and prompt_type is not None:
            own = get_prompt(encoder.model_prompts or {}, task_metadata, prompt_type) or ""
            replaces = self.family.in_place and bool(own) and not _MARK.fullmatch(own)
            if type(encoder).encode is SentenceTransformerEncoderWrapper.encode:
                front = ("" if replaces else own) + self.family.rendered(sentence)
                encoder.model_prompts = {prompt_type.value: front}
            elif replaces:
                raise ValueError(
                    f"{self.mteb_model_meta.name} has an instruction for queries ({own!r}) and uses it in a way of its "
                    f"own: the prompts {self.family.name!r} cannot take its place"
                )
            else:  # such a wrapper of mteb need not look at `model_prompts`
                inputs = _in_front(inputs, self.family.rendered(sentence))
        elif sentence:
            inputs = _in_front(inputs, self.family.rendered(sentence))
        return encoder.encode(inputs, task_metadata=task_metadata, prompt_type=prompt_type, **kwargs)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        return self.wrapped.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        return self.wrapped.similarity_pairwise(embeddings1, embeddings2)


class _PromptedCrossEncoder(_Prompted):
    def predict(self, inputs1: Any, inputs2: Any, *, task_metadata: Any, **kwargs: Any) -> Any:
        queries = _in_front(inputs1, self._text(task_metadata))
        return self.wrapped.predict(queries, inputs2, task_metadata=task_metadata, **kwargs)


class _PromptedSearch(_Prompted):
    def index(self, corpus: Any, **kwargs: Any) -> None:
        self.wrapped.index(corpus, **kwargs)

    def search(self, queries: Any, *, task_metadata: Any, **kwargs: Any) -> Any:
        changed = _with_texts(queries, self._text(task_metadata))
        return self.wrapped.search(changed, task_metadata=task_metadata, **kwargs)


def _in_front(loader: Any, prompt: str) -> Any:
    """The loader with the prompt in front of each text."""
    return DataLoader(
        _with_texts(loader.dataset, prompt),
        batch_size=loader.batch_size,
        collate_fn=loader.collate_fn,
        num_workers=loader.num_workers,
    )


def _with_texts(table: Any, prompt: str) -> Any:
    texts = table["text"]
    strange = next((t for t in texts if not isinstance(t, str)), None)
    if strange is not None:
        raise ValueError(f"a prompt needs texts in front of which to stand, got {type(strange).__name__}")
    return table.remove_columns(["text"]).add_column("text", [prompt + text for text in texts])
