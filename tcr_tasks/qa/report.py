"""The report of `mteb-beyond tcr qa`: tables in the shape of the paper's Tables 1 and 12, and the same as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluators.markdown import interval, markdown_table, quoted
from evaluators.metrics.bootstrap import RESAMPLES, SEED, Interval
from tcr_tasks.asking import MARK
from tcr_tasks.qa import published
from tcr_tasks.qa.asking import NO_TABLE, ORACLE
from tcr_tasks.qa.published import PublishedRow
from tcr_tasks.qa.scoring import ALL, Cell

__all__ = ["csv_rows", "report"]

_ABSENT = "–"
_DEFINITIONS = (
    "F1 is of the sets of values that were given and expected; its definition, and the rules by which two values are "
    "the same, are this project's own (numbers with a fraction within a relative {tolerance:g}).",
    "QA@k: mean F1 over all questions with the retriever's k best tables in its order; a reply from which no answer "
    f"can be read is wrong. It is absent ({_ABSENT}) if a call got no reply: run again to ask what is missing. It is "
    "also absent if no answer at all could be read.",
    f"Eff@k = (QA@k / Oracle) / R@k, of averages; absent where R@k or Oracle is 0. In brackets 95 % from {RESAMPLES:,} "
    f"resamples of the questions (seed {SEED}), absent where more than 2.5 % of them have no Eff@k.",
)


def report(cells: Sequence[Cell], about: Mapping[str, Any], first_failure: str | None = None) -> str:
    """The report as Markdown; scores on the scale 0-1.

    Args:
        cells: of every setting and question type.
        about: what the numbers depend on; ``tolerance`` among it.
        first_failure: why the first call without a reply has none.
    """
    names = list(dict.fromkeys(c.setting.retriever.name for c in cells if c.setting.retriever is not None))
    ks = list(dict.fromkeys(c.setting.k for c in cells if c.setting.k is not None))
    parts = [
        "# Questions answered from the tables found",
        "\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in about.items()),
        *[text.format(tolerance=about["tolerance"]) for text in _DEFINITIONS],
        _noted(_baselines(cells)),
    ]
    if names:
        parts += [
            "## By retriever (shape of Table 1)",
            _noted(markdown_table(["Method", *_heads(ks)], [*_retriever_rows(cells, names, ks), *_published_rows(ks)])),
        ]
    parts.append("## By question type (shape of Table 12)")
    for name in names:
        table = markdown_table(["Type", "Oracle", "R@k", *_heads(ks)], _type_rows(cells, name, ks))
        parts += [f"### {name}", _noted(table)]
    rows = [[f"*{r.name}*", _plain(r.oracle), _recalls(r, ks), *_published(r, ks)] for r in published.BY_TYPE]
    parts += [
        "### Published: Qwen3-Embedding-8B",
        markdown_table(["Type", "Oracle", "R@k", *_heads(ks)], rows),
        published.ABOUT,
        "## Replies and cuts",
        markdown_table(
            ["Retriever", "Setting", "questions", "unreadable", "failed", "no answer", "F1 of the readable", "cut"],
            [_count_row(cell) for cell in cells if cell.question_type == ALL],
        ),
        "unreadable: a reply without an answer that can be read; failed: no reply; no answer: the reply says that "
        "there is none. cut: tables shown without some of their rows (the share of all rows that is missing; targets "
        "among them), because the prompt would not have fitted.",
    ]
    if first_failure is not None:
        parts.append(f"The first call without a reply: {quoted(first_failure)}")
    return "\n\n".join(parts) + "\n"


def _baselines(cells: Sequence[Cell]) -> str:
    oracle, none = (next(c for c in cells if c.setting.name == name and c.question_type == ALL) for name in _BASES)
    published_ones = f"(published: {published.ORACLE} and {published.NO_TABLE})"
    return f"**Target alone (Oracle): {_qa(oracle)}; no table: {_qa(none)}** {published_ones}"


_BASES = (ORACLE, NO_TABLE)


def _noted(text: str) -> str:
    """A table, or a line, with what its marks mean directly under it."""
    if MARK not in text:
        return text
    return f"{text}\n\n{MARK} more than 5 % of the replies behind it cannot be used, see Replies and cuts."


def _heads(ks: Iterable[int]) -> list[str]:
    ks = list(ks)
    return [*(f"QA@{k}" for k in ks), *(f"Eff@{k}" for k in ks)]


def _retriever_rows(cells: Sequence[Cell], names: Sequence[str], ks: Sequence[int]) -> list[list[str]]:
    return [[name, *_scores(cells, name, ALL, ks)] for name in names]


def _published_rows(ks: Sequence[int]) -> list[list[str]]:
    return [[f"*{row.name} (published)*", *_published(row, ks)] for row in published.BY_RETRIEVER]


def _published(row: PublishedRow, ks: Sequence[int]) -> list[str]:
    """A published row's values at these k; absent at others than 1, 3 and 5."""
    qa, efficiency = (dict(zip(published.KS, values, strict=True)) for values in (row.qa, row.efficiency))
    return [_plain(values.get(k)) for values in (qa, efficiency) for k in ks]


def _recalls(row: PublishedRow, ks: Sequence[int]) -> str:
    known = dict(zip(published.KS, row.recall, strict=True))
    return " / ".join(_plain(known.get(k)) for k in ks)


def _type_rows(cells: Sequence[Cell], name: str, ks: Sequence[int]) -> list[list[str]]:
    out = []
    for kind in dict.fromkeys(c.question_type for c in cells):
        oracle, found = _oracle(cells, kind), _of(cells, name, kind)
        recalls = " / ".join(_plain(found[k].recall) for k in ks)
        out.append(
            [f"{kind} ({oracle.n})", _marked(_plain(oracle.qa), oracle), recalls, *_scores(cells, name, kind, ks)]
        )
    return out


def _of(cells: Sequence[Cell], name: str, kind: str) -> dict[int, Cell]:
    """A retriever's cells of a question type by k."""
    return {
        c.setting.k: c
        for c in cells
        if c.setting.k is not None
        and c.setting.retriever is not None
        and c.setting.retriever.name == name
        and c.question_type == kind
    }


def _scores(cells: Sequence[Cell], name: str, kind: str, ks: Sequence[int]) -> list[str]:
    oracle, found = _oracle(cells, kind), _of(cells, name, kind)
    return [*(_qa(found[k]) for k in ks), *(_eff(found[k], oracle) for k in ks)]


def _oracle(cells: Sequence[Cell], kind: str) -> Cell:
    return next(c for c in cells if c.setting.name == ORACLE and c.question_type == kind)


def _count_row(cell: Cell) -> list[str]:
    setting = cell.setting
    cut = _ABSENT
    if cell.tables_cut:
        share = cell.rows_cut / cell.rows
        cut = f"{cell.tables_cut} of {cell.tables} ({share:.1%} of rows; {cell.targets_cut} targets)"
    name = setting.retriever.name if setting.retriever is not None else _ABSENT
    counts = [str(n) for n in (cell.n, cell.n_unreadable, cell.n_failed, cell.n_empty)]
    return [name, setting.name, *counts, _plain(cell.qa_readable), cut]


def _plain(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:.3f}"


def _qa(cell: Cell) -> str:
    return _marked(_score(cell.qa, cell.qa_interval), cell)


def _eff(cell: Cell, oracle: Cell) -> str:
    found = cell.efficiency
    return _marked(_ABSENT if found is None else _score(found.value, found.interval), cell, oracle)


def _marked(text: str, *cells: Cell) -> str:
    return f"{text} {MARK}" if any(cell.is_doubtful for cell in cells) else text


def _score(value: float | None, between: Interval | None) -> str:
    return _plain(value) + (f" {interval(between.low, between.high)}" if between is not None else "")


# --- rows ----------------------------------------------------------------------------------------------------------


def csv_rows(cells: Sequence[Cell], about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each setting and question type, then the published ones (``source`` tells); scores on the scale 0-1."""
    return [*(_csv_row(cell, about) for cell in cells), *_published_csv()]


def _csv_row(cell: Cell, about: Mapping[str, Any]) -> dict[str, Any]:
    efficiency, interval = cell.efficiency, cell.qa_interval
    inside = efficiency.interval if efficiency is not None else None
    return {
        "source": "measured",
        "retriever": cell.setting.retriever.name if cell.setting.retriever is not None else None,
        "question_type": cell.question_type,
        "setting": cell.setting.name,
        "k": cell.setting.k,
        "n": cell.n,
        "qa": cell.qa,
        "qa_low": interval.low if interval is not None else None,
        "qa_high": interval.high if interval is not None else None,
        "qa_readable": cell.qa_readable,
        "recall": cell.recall,
        "eff": efficiency.value if efficiency is not None else None,
        "eff_low": inside.low if inside is not None else None,
        "eff_high": inside.high if inside is not None else None,
        "eff_undefined_resamples": efficiency.undefined if efficiency is not None else None,
        "n_unreadable": cell.n_unreadable,
        "n_failed": cell.n_failed,
        "n_empty": cell.n_empty,
        "mark": f"{MARK} many replies cannot be used" if cell.is_doubtful else None,
        "tables": cell.tables,
        "tables_cut": cell.tables_cut,
        "rows": cell.rows,
        "rows_cut": cell.rows_cut,
        "targets_cut": cell.targets_cut,
        **about,
    }


def _published_csv() -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [
        {"source": "published, Table 1", "question_type": ALL, "setting": NO_TABLE, "qa": published.NO_TABLE}
    ]
    for row in published.BY_TYPE:
        source = "published, Table 12"
        out.append({"source": source, "question_type": row.name, "setting": ORACLE, "qa": row.oracle})
    listed = [("Table 1", row.name, ALL, row) for row in published.BY_RETRIEVER]
    listed += [("Table 12", "Qwen3-E8B", row.name, row) for row in published.BY_TYPE if row.name != ALL]
    for table, retriever, kind, row in listed:
        named = {"source": f"published, {table}", "retriever": retriever, "question_type": kind}
        for k, recall, qa, eff in zip(published.KS, row.recall, row.qa, row.efficiency, strict=True):
            out.append({**named, "setting": f"top_{k}", "k": k, "qa": qa, "recall": recall, "eff": eff})
    return out
