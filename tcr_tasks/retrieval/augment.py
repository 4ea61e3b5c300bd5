"""Tables described by a language model, and questions turned into tables (TCR-Bench, appendices D.2 and D.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from datasets import Dataset
from mteb.models import EncoderProtocol
from mteb.types import PromptType

from evaluators.judge import Prompt, PromptedAsking, Reply, Request, package_prompts
from evaluators.judge.replies import read_replies
from evaluators.plugin.doubt import FAILED_CALLS
from evaluators.plugin.given import given_model
from evaluators.plugin.models import recorded
from evaluators.plugin.searching import is_searcher, searcher
from tcr_tasks.builder.tokens import default_counter
from tcr_tasks.cutting import Cutter
from tcr_tasks.retrieval.replies import UNREADABLE_REPLIES, read_description, read_table
from tcr_tasks.tasks import INSTRUCTION

__all__ = ["CRAFT", "META", "QUERY_TO_TABLE", "MetaInfo", "QueryToTable", "meta_info", "query_to_table", "read_prompts"]

_T = TypeVar("_T")
META, CRAFT, QUERY_TO_TABLE = "meta", "craft", "q2t"
FIELDS: Mapping[str, tuple[str, ...]] = {META: ("table",), CRAFT: ("table",), QUERY_TO_TABLE: ("question",)}
# What each description must say, each on a line of its own.
PARTS: Mapping[str, tuple[str, ...]] = {META: ("Theme", "Columns", "Values"), CRAFT: ("Title", "Description")}
_COUNTS = (FAILED_CALLS, UNREADABLE_REPLIES)
FOLDER = Path(__file__).parent / "prompts"
# Tokens. The paper's tables have 7,000 to 8,000; an estimated count may be a fifth too high.
_LONGEST_TABLE = 10_000


def read_prompts() -> dict[str, Prompt]:
    """The prompts of the package."""
    return package_prompts(FOLDER, FIELDS)


def description_requests(
    asking: PromptedAsking, prompt: str, texts: Sequence[str]
) -> Iterator[tuple[Request, tuple[str]]]:
    """What is asked of each document, with what the language model sees of it: all, or the first rows of a long one."""
    cutter = Cutter(default_counter())
    for text in texts:
        found = cutter.shown({"": text}, _LONGEST_TABLE)
        # Of a text without rows the beginning.
        seen = text[: len(text) * _LONGEST_TABLE // cutter.tokens(text)] if found is None else found[0].text
        yield asking.request_by(prompt, table=seen), (seen,)


def table_requests(asking: PromptedAsking, queries: Sequence[str]) -> Iterator[tuple[Request, tuple[()]]]:
    """What is asked of each query."""
    for text in queries:
        yield asking.request_by(QUERY_TO_TABLE, question=_question(text)), ()


def _question(query: str) -> str:
    """The language model gets the question; the retrieval instruction is for embeddings of questions."""
    return query.removeprefix(f"{INSTRUCTION} ")


class _Augmented:
    """What both ways of asking share: a search model inside, and counts of what the language model did not give.

    Attributes:
        doubt_figures: after a run, what makes a score doubtful: ``n_failed_calls`` (different ones), for which
            :func:`evaluators.plugin.evaluate` asks again when it is run again; ``n_unreadable_replies``, which stay;
            those of the model inside.
    """

    def __init__(self, model: Any, asking: PromptedAsking) -> None:
        self.mteb_model_meta = model.mteb_model_meta
        self._inside = searcher(model)
        self._asking = asking
        self._figures: dict[str, float] = {}

    @property
    def doubt_figures(self) -> dict[str, float]:
        """Counts, and shares of what is missing, 0..1."""
        inside: dict[str, float] = getattr(self._inside, "doubt_figures", {})
        both = {name: inside.get(name, 0) + self._figures.get(name, 0) for name in _COUNTS}
        return {**inside, **self._figures, **both}

    def _read(
        self, requests: Sequence[Request], ids: Sequence[str], label: str, read: Callable[[Reply], _T]
    ) -> dict[str, _T]:
        """What was read from the replies, by id; the rest is logged and counted, and stays as it is."""
        replies = read_replies(ids, self._asking.language_model.ask(requests, label=label), read)
        replies.warn(label)
        key_of = dict(zip(ids, (request.key for request in requests), strict=True))
        self._figures = {
            FAILED_CALLS: len({key_of[one] for one in replies.failed}),
            UNREADABLE_REPLIES: len({key_of[one] for one in replies.unreadable}),
        }
        return replies.read


class MetaInfo(_Augmented):
    """A model that reads a description, written by a language model, before each table: as the document's title.

    A table whose description is missing is read as it is. ``doubt_figures``: ``documents_without_description_share``,
    and ``documents_shortened_for_description_share``, of which the language model saw the first rows only.
    """

    def __init__(self, model: Any, asking: PromptedAsking, prompt: str) -> None:
        super().__init__(model, asking)
        self._prompt = prompt

    def index(self, corpus: Any, **kwargs: Any) -> None:
        """Ask for a description of every document, and let the model inside index both."""
        ids = list(corpus["id"])
        asked = list(description_requests(self._asking, self._prompt, corpus["text"]))
        requests = [request for request, _ in asked]
        parts = PARTS[self._prompt]
        found = self._read(requests, ids, "descriptions", lambda reply: read_description(reply, parts))
        own = corpus["title"] if "title" in corpus.column_names else [""] * len(ids)
        titles = [" ".join(filter(None, (title, found.get(key)))) for key, title in zip(ids, own, strict=True)]
        augmented = Dataset(pa.table({"id": ids, "title": titles, "text": list(corpus["text"])}))
        n_cut = sum(shown != (text,) for (_, shown), text in zip(asked, corpus["text"], strict=True))
        self._figures |= {
            "documents_without_description_share": 1 - len(found) / max(len(ids), 1),
            "documents_shortened_for_description_share": n_cut / max(len(ids), 1),
        }
        self._inside.index(augmented, **kwargs)

    def search(self, queries: Any, **kwargs: Any) -> Any:
        """What the model inside finds."""
        return self._inside.search(queries, **kwargs)


class QueryToTable(_Augmented):
    """A model that searches with a table which a language model thinks would answer, in place of the question.

    An encoder reads that table as it reads the corpus' tables. Where no table could be read, it is searched with the
    question. ``doubt_figures``: ``queries_without_table_share``.
    """

    def index(self, corpus: Any, **kwargs: Any) -> None:
        """Let the model inside index the corpus."""
        self._inside.index(corpus, **kwargs)

    def search(self, queries: Any, **kwargs: Any) -> Any:
        """Ask for a table for every question, and let the model inside search with it."""
        ids = list(queries["id"])
        asked = [_question(text) for text in queries["text"]]
        requests = [request for request, _ in table_requests(self._asking, queries["text"])]
        found = self._read(requests, ids, "tables for questions", read_table)
        # Stripped, as mteb hands documents to encoders.
        texts = [found.get(key, text).strip() for key, text in zip(ids, asked, strict=True)]
        self._figures |= {"queries_without_table_share": 1 - len(found) / max(len(ids), 1)}
        return self._inside.search(Dataset(pa.table({"id": ids, "text": texts})), **kwargs)


class _AsDocuments:
    """An encoder that reads queries as it reads documents."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self.mteb_model_meta = encoder.mteb_model_meta

    def encode(self, inputs: Any, *, prompt_type: PromptType | None = None, **kwargs: Any) -> Any:
        return self._encoder.encode(inputs, prompt_type=PromptType.document, **kwargs)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        return self._encoder.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        return self._encoder.similarity_pairwise(embeddings1, embeddings2)


def meta_info(model: Any, asking: PromptedAsking, *, prompt: str = META) -> Any:
    """The model with a description of each table before it: Meta-Info Generation, or CRAFT's augmentation.

    Where the description stands is our choice; the paper says that it is concatenated with the table.

    Args:
        model: a sentence-transformers model, a model in mteb's form such as a cascade, or a ``ModelMeta``.
        asking: the language model.
        prompt: ``meta`` for the paper's three kinds of metadata, ``craft`` for a title and a description.
    """
    inside = given_model(model)
    return recorded(MetaInfo(inside, asking, prompt), inside.mteb_model_meta, _record(asking, prompt))


def query_to_table(model: Any, asking: PromptedAsking) -> Any:
    """The model, searching with a hypothetical table in place of each question: Query-to-Table.

    Args:
        model: a sentence-transformers model, a model in mteb's form, or a ``ModelMeta``.
        asking: the language model.
    """
    given = given_model(model)
    encodes = isinstance(given, EncoderProtocol) and not is_searcher(given)
    inside = _AsDocuments(given) if encodes else given
    return recorded(QueryToTable(inside, asking), given.mteb_model_meta, _record(asking, QUERY_TO_TABLE))


def _record(asking: PromptedAsking, prompt: str) -> dict[str, Any]:
    """What the texts depend on beside the data."""
    sampling = ",".join(f"{name}={value}" for name, value in asking.sampling.body().items())
    return {"augmentation": f"{prompt}-{asking.prompts[prompt].version}", "llm": f"{asking.model} {sampling}"}
