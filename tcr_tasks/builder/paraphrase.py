"""Questions and headers in other words, by a language model (A.5.1 of the paper), with what can be checked checked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators.judge import Prompt, PromptedAsking, Reply, Request, package_prompts
from evaluators.judge.reply import UnreadableReplyError
from tcr_tasks.builder.generate import Planned
from tcr_tasks.builder.kinds import name_words
from tcr_tasks.builder.sources import SourceTable
from tcr_tasks.builder.verify import same_name
from tcr_tasks.queries import Query

FOLDER = Path(__file__).parent / "prompts"
QUESTION, HEADERS = "question", "headers"
FIELDS: Mapping[str, tuple[str, ...]] = {QUESTION: ("topic", "question", "values"), HEADERS: ("table", "columns")}
_EXAMPLES = 4
_LONGEST_HEADER = 60
# Letters of a word that its inflections share.
_STEM = 4
_HEADING = re.compile(r"^[\s*#>_]*question[\s*_]*:[ \t*_]*", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Paraphrased:
    """What the model gave: texts by id, and how often it gave nothing usable, by reason."""

    texts: Mapping[str, str]
    problems: Counter[str]


def read_prompts(folder: Path | None = None) -> dict[str, Prompt]:
    """The prompts of the package, or those of the same name in the user's folder where it has them.

    Raises:
        FileNotFoundError: if there is no such folder, or it holds none of them.
        ValueError: naming a file whose form or fields are others.
    """
    return package_prompts(FOLDER, FIELDS, folder)


# --- questions ---------------------------------------------------------------------------------------------------


def question_requests(asking: PromptedAsking, planned: Sequence[Planned], texts: Mapping[str, str]) -> list[Request]:
    """One request for each question, whose text so far is in ``texts``."""
    return [
        asking.request_by(
            QUESTION,
            topic=p.source.name,
            question=texts[p.id],
            values="; ".join(str(c.value) for c in p.query.conditions),
        )
        for p in planned
    ]


def paraphrase_questions(asking: PromptedAsking, planned: Sequence[Planned], texts: Mapping[str, str]) -> Paraphrased:
    """Every question in other words; one that lost a value of its conditions is no paraphrase."""
    requests = question_requests(asking, planned, texts)
    out: dict[str, str] = {}
    problems: Counter[str] = Counter()
    for p, outcome in zip(planned, asking.language_model.ask(requests, label="questions"), strict=True):
        if outcome.reply is None:
            problems["the call failed"] += 1
            continue
        try:
            text = _question(outcome.reply)
        except UnreadableReplyError:
            problems["the reply holds no question"] += 1
            continue
        fault = paraphrase_fault(text, p.query)
        if fault is None:
            out[p.id] = text
        else:
            problems[fault] += 1
    return Paraphrased(out, problems)


def paraphrase_fault(text: str, query: Query) -> str | None:
    """What can be seen to be wrong with other words for a question, ``None`` if nothing; the rest is for a person."""
    if not all(_has(text, c.value) for c in query.conditions):
        return "the paraphrase lost a value"
    if text.partition("?")[2].strip():
        return "the paraphrase says more than the question"
    plain = _NOT_LESS.sub("at least", _NOT_MORE.sub("at most", text))
    operators = {c.operator for c in query.conditions}
    if (_UP.search(plain) and not operators & {">", ">="}) or (_DOWN.search(plain) and not operators & {"<", "<="}):
        return "the paraphrase compares otherwise than the question"
    return None


def doubtful_rewrites(rewritten: Mapping[str, str], queries: Mapping[str, Query]) -> list[str]:
    """Notes on a person's wordings in which something seems wrong; the person's word counts all the same."""
    return [
        f"{question}: please look again, {fault.replace('the paraphrase', 'the rewrite')}: {text}"
        for question, text in rewritten.items()
        if (fault := paraphrase_fault(text, queries[question])) is not None
    ]


def unnamed_columns(text: str, query: Query) -> list[str]:
    """The columns of the query of whose names the text has no word, in any inflection: a person should look there."""
    said = name_words(text)

    def is_named(column: str) -> bool:
        return any(word[:_STEM] == found[:_STEM] for word in name_words(column) for found in said)

    return [column for column in query.columns if not is_named(column)]


def _question(reply: Reply) -> str:
    said = reply.said()
    found = " ".join(_HEADING.split(said)[-1].split()).strip("*_ ")
    if reply.finish_reason == "length" or not _HEADING.search(said) or not found:
        raise UnreadableReplyError(f"the reply holds no complete question: {said[:80]!r}")
    return found


def _has(text: str, value: str | int | float) -> bool:
    """Whether the value stands in the text by itself: 5 does not stand in 15."""
    pattern = rf"(?<!\w){re.escape(str(value))}(?!\w)(?!\.\d)"
    return re.search(pattern, text, re.IGNORECASE) is not None


_NOT_MORE = re.compile(r"\b(?:no|not) (?:more|greater|higher|later) than\b", re.IGNORECASE)
_NOT_LESS = re.compile(r"\b(?:no|not) (?:less|fewer|lower|earlier) than\b", re.IGNORECASE)
_UP = re.compile(r"\b(?:(?:more|greater|higher|larger|later) than|above|exceed\w*|at least)\b", re.IGNORECASE)
_DOWN = re.compile(r"\b(?:(?:less|fewer|lower|smaller|earlier) than|below|at most)\b", re.IGNORECASE)
# A header that speaks of arithmetic: only those of shifted columns may.
_SHIFT = re.compile(r"[(\[]\s*[x×*/÷+−-]\s*\d|10\s*\^")


# --- headers -----------------------------------------------------------------------------------------------------


def header_requests(asking: PromptedAsking, sources: Sequence[SourceTable]) -> list[Request]:
    """One request for each table."""
    return [asking.request_by(HEADERS, table=s.name, columns="\n".join(_described(s))) for s in sources]


def paraphrase_headers(
    asking: PromptedAsking, sources: Sequence[SourceTable]
) -> tuple[dict[str, dict[str, tuple[str, ...]]], Counter[str]]:
    """Other names of columns, by the table's place and the column's name, and what could not be used, by reason."""
    out: dict[str, dict[str, tuple[str, ...]]] = {}
    problems: Counter[str] = Counter()
    outcomes = asking.language_model.ask(header_requests(asking, sources), label="headers")
    for source, outcome in zip(sources, outcomes, strict=True):
        try:
            if outcome.reply is None:
                raise UnreadableReplyError("the call failed")
            out[source.place] = read_headers(outcome.reply.said(), [str(c) for c in source.frame.columns])
        except UnreadableReplyError as error:
            problems[str(error)] += 1
            continue
        problems["columns without another name"] += len(source.frame.columns) - len(out[source.place])
    return out, problems


def read_headers(reply: str, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The other names in a reply; a name that two columns would share, or that is a column's own, is left out.

    In whatever style: ``zip_code`` is the column ``zipCode``.
    """
    own = {column.casefold(): column for column in columns}
    offered: dict[str, list[str]] = {}
    for line in reply.splitlines():
        name, colon, rest = line.strip(" *-").rpartition(": ") if ": " in line else ("", "", "")
        column = own.get(name.strip("*_` ").casefold())
        if colon and column is not None:
            names = [" ".join(part.split()).strip("*_`\"'") for part in rest.split("|")]
            offered[column] = [
                n for n in dict.fromkeys(names) if 0 < len(n) <= _LONGEST_HEADER and not _SHIFT.search(n)
            ]
    uses = Counter(name for names in offered.values() for name in {same_name(n) for n in names})
    taken = {same_name(column) for column in columns} | {name for name, n in uses.items() if n > 1}
    free = {column: tuple(n for n in names if same_name(n) not in taken) for column, names in offered.items()}
    return {column: names for column, names in free.items() if names}


def _described(source: SourceTable) -> list[str]:
    lines = []
    for column in source.frame.columns:
        values = list(dict.fromkeys(str(v)[:40] for v in source.frame[column].dropna().head(200)))[:_EXAMPLES]
        lines.append(f"{column}: for instance {', '.join(values)}")
    return lines
