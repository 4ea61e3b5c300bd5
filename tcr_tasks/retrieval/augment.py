"""Tables described by a language model, and questions turned into tables (TCR-Bench, appendices D.2 and D.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset
from mteb.models import EncoderProtocol
from mteb.types import PromptType

from evaluators.judge import Prompt, PromptedAsking, Reply, package_prompts
from evaluators.plugin.doubt import FAILED_CALLS
from evaluators.plugin.given import given_model
from evaluators.plugin.models import recorded
from evaluators.plugin.searching import is_searcher, searcher
from tcr_tasks.asking import Asker, Planned
from tcr_tasks.builder.tokens import default_counter
from tcr_tasks.cutting import Cutter
from tcr_tasks.retrieval.replies import UNREADABLE_REPLIES, read_description, read_table
from tcr_tasks.tasks import INSTRUCTION

__all__ = ["CRAFT", "META", "QUERY_TO_TABLE", "MetaInfo", "QueryToTable", "meta_info", "query_to_table", "read_prompts"]

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


def descriptions_planned(asking: PromptedAsking, prompt: str, texts: Sequence[str]) -> Iterator[Planned[str]]:
    """What is asked of each document, with what the language model sees of it: all, or the first rows of a long one."""

    def read(reply: Reply) -> str:
        return read_description(reply, PARTS[prompt])

    cutter = Cutter(default_counter())
    for text in texts:
        found = cutter.shown({"": text}, _LONGEST_TABLE)
        # Of a text without rows the beginning.
        seen = text[: len(text) * _LONGEST_TABLE // cutter.tokens(text)] if found is None else found[0].text
        yield Planned(asking.request_by(prompt, table=seen), (seen,), read)


def tables_planned(asking: PromptedAsking, queries: Sequence[str]) -> Iterator[Planned[str]]:
    """What is asked of each query."""
    for text in queries:
        yield Planned(asking.request_by(QUERY_TO_TABLE, question=_question(text)), (), read_table)


def _question(query: str) -> str:
    """The language model gets the question; the retrieval instruction is for embeddings of questions."""
    return query.removeprefix(f"{INSTRUCTION} ")


class _Augmented:
    """What both ways of asking share: a search model inside, and counts of what the language model did not give.

    Attributes:
        doubt_figures: after a run, what makes a score doubtful: ``n_failed_calls`` (different ones), for which
            :func:`evaluators.plugin.evaluate` asks again when it is run again; ``n_unreadable_replies``, which stay
            unless they are asked for again; those of the model inside.
    """

    def __init__(self, model: Any, asking: PromptedAsking, again: bool) -> None:
        self.mteb_model_meta = model.mteb_model_meta
        self._inside = searcher(model)
        self._asking = asking
        self._asker = Asker(asking.language_model, again=again)
        self._figures: dict[str, float] = {}

    @property
    def doubt_figures(self) -> dict[str, float]:
        """Counts, and shares of what is missing, 0..1."""
        inside: dict[str, float] = getattr(self._inside, "doubt_figures", {})
        both = {name: inside.get(name, 0) + self._figures.get(name, 0) for name in _COUNTS}
        return {**inside, **self._figures, **both}

    def _read(self, asked: Mapping[str, Planned[str]], label: str) -> dict[str, str]:
        """What was read from the replies, by id; the rest is logged and counted, and stays as it is."""
        replies, _ = self._asker.ask(asked, label)
        self._figures = {
            FAILED_CALLS: len({asked[one].request.key for one in replies.failed}),
            UNREADABLE_REPLIES: len({asked[one].request.key for one in replies.unreadable}),
        }
        return replies.read


class MetaInfo(_Augmented):
    """A model that reads a description, written by a language model, before each table: as the document's title.

    A table whose description is missing is read as it is. ``doubt_figures``: ``documents_without_description_share``,
    and ``documents_shortened_for_description_share``, of which the language model saw the first rows only.
    """

    def __init__(self, model: Any, asking: PromptedAsking, prompt: str, again: bool) -> None:
        super().__init__(model, asking, again)
        self._prompt = prompt

    def index(self, corpus: Any, **kwargs: Any) -> None:
        """Ask for a description of every document, and let the model inside index both."""
        ids = list(corpus["id"])
        asked = dict(zip(ids, descriptions_planned(self._asking, self._prompt, corpus["text"]), strict=True))
        found = self._read(asked, "descriptions")
        own = corpus["title"] if "title" in corpus.column_names else [""] * len(ids)
        titles = [" ".join(filter(None, (title, found.get(key)))) for key, title in zip(ids, own, strict=True)]
        augmented = Dataset(pa.table({"id": ids, "title": titles, "text": list(corpus["text"])}))
        n_cut = sum(one.tables != (text,) for one, text in zip(asked.values(), corpus["text"], strict=True))
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
        asked = dict(zip(ids, tables_planned(self._asking, queries["text"]), strict=True))
        found = self._read(asked, "tables for questions")
        # Stripped, as mteb hands documents to encoders.
        texts = [found.get(key, _question(text)).strip() for key, text in zip(ids, queries["text"], strict=True)]
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


def meta_info(model: Any, asking: PromptedAsking, *, prompt: str = META, again: bool = False) -> Any:
    """The model with a description of each table before it: Meta-Info Generation, or CRAFT's augmentation.

    Where the description stands is our choice; the paper says that it is concatenated with the table.

    Args:
        model: a sentence-transformers model, a model in mteb's form such as a cascade, or a ``ModelMeta``.
        asking: the language model.
        prompt: ``meta`` for the paper's three kinds of metadata, ``craft`` for a title and a description.
        again: whether to ask once more where a stored reply cannot be read.
    """
    inside = given_model(model)
    return recorded(MetaInfo(inside, asking, prompt, again), inside.mteb_model_meta, _record(asking, prompt))


def query_to_table(model: Any, asking: PromptedAsking, *, again: bool = False) -> Any:
    """The model, searching with a hypothetical table in place of each question: Query-to-Table.

    Args:
        model: a sentence-transformers model, a model in mteb's form, or a ``ModelMeta``.
        asking: the language model.
        again: whether to ask once more where a stored reply cannot be read.
    """
    given = given_model(model)
    encodes = isinstance(given, EncoderProtocol) and not is_searcher(given)
    inside = _AsDocuments(given) if encodes else given
    return recorded(QueryToTable(inside, asking, again), given.mteb_model_meta, _record(asking, QUERY_TO_TABLE))


def _record(asking: PromptedAsking, prompt: str) -> dict[str, Any]:
    """What the texts depend on beside the data."""
    sampling = ",".join(f"{name}={value}" for name, value in asking.sampling.body().items())
    return {"augmentation": f"{prompt}-{asking.prompts[prompt].version}", "llm": f"{asking.model} {sampling}"}
