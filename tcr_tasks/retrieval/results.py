"""What other first stages scored, in the shape of the paper's Tables 9, 10 and 28, as Markdown and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from evaluators.files import write_text
from evaluators.markdown import told, unpadded_table
from evaluators.plugin.doubt import FAILED_CALLS
from tcr_tasks.loaded import data_of, require_same
from tcr_tasks.retrieval.replies import UNREADABLE_REPLIES

__all__ = ["Row", "add_rows", "failed_calls", "markdown", "read_rows", "require_table_of", "rows_of"]

TABLE_CSV, TABLE_MARKDOWN = "table.csv", "table.md"
AUGMENTED = "LLM augmentation"
# What stands before a subset in a line's task.
_SUBSET = "/"
_K = (1, 3, 5)
# Where every line has it, the table does not tell it.
_DEFAULT_INSTRUCTION = "mteb"
# Decimals that mteb's result files keep.
_DECIMALS = 6
_SCORES = ("recall_at", "gr_at", "group_hit_at")
# What a wrapper says of its own run, worth a column of notes where it is not 0.
_DOUBTS: Mapping[str, str] = {
    "documents_without_pieces_share": "documents that print no table, embedded as a whole",
    "unclear_rows_share": "rows whose cells are unclear",
    "documents_without_description_share": "documents without a description",
    "documents_shortened_for_description_share": "documents of which the language model saw the first rows only",
    "queries_without_table_share": "questions without a table, searched with as they are",
    "tables_cut_share": "tables of which rows, columns or words were left out",
    "rows_cut_share": "rows left out",
    "columns_cut_share": "columns left out",
    "cell_tokens_cut_share": "tokens left out of the cells of the other rows and columns",
    "queries_cut_share": "questions of which words were left out",
    "documents_without_table_share": "documents that print no table, read as text",
    "truncated_pieces_share": "rows or other pieces longer than the model reads",
    "truncated_documents_share": "documents longer than the model reads",
    "tied_top_share": "queries with tied first tables",
}
# The same, as numbers.
_COUNTS: Mapping[str, str] = {
    FAILED_CALLS: "calls to the language model failed, so these are not yet its scores: run it again",
    UNREADABLE_REPLIES: "replies of the language model cannot be used",
}
_ABOUT = (
    "All numbers were measured here; none is the paper's. R@k: the target is among the first k; GR@k: members of the "
    "group among the first k, of as many as there could be; DS@1 = R@1 / GR@1; higher is better, 0..1. In square "
    "brackets stand 95 % percentile bootstrap intervals over queries (1,000 resamples); one without width means that "
    "all queries agree, not that the score is certain."
)
_ABOUT_HITS = (
    "Hit@k: any member of the group is among the first k. The paper's Table 10 prints this under the name GR@k: "
    "compare it with Hit@k only."
)


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        task: name of the task, with the subset of one that has several.
        data_revision: of its data.
        model: what ranked.
        kind: the paradigm.
        setting: the method's own settings.
        instruction: how the retrieval instruction was given, as the task's option says it.
        revision: of the model.
        record: what else mteb files its result under, ``""`` if nothing.
        scores: flat scores of the result, 0..1, and ``n_queries``.
        notes: what makes them doubtful.
    """

    task: str
    data_revision: str
    model: str
    kind: str
    setting: str
    instruction: str
    revision: str
    record: str
    scores: Mapping[str, float]
    notes: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What tells a line from every other."""
        return (self.task, self.model, self.kind, self.setting, self.instruction, self.revision, self.record)

    @property
    def label(self) -> tuple[str, ...]:
        """What the printed table says of what ranked."""
        return (self.model, self.kind, self.setting, self.instruction)


def rows_of(result: Any, *, model: str, kind: str, setting: str, instruction: str) -> list[Row]:
    """The lines of a model's result on one task, one for each subset (of mteb's ``ModelResult``)."""
    (found,) = result.task_results
    out = []
    for scores in found.scores["test"]:
        subset = scores["hf_subset"]
        doubts = [f"{scores[k]:.0f} {text}" for k, text in _COUNTS.items() if scores.get(k)]
        doubts += [f"{text}: {_percent(scores[k])}" for k, text in _DOUBTS.items() if scores.get(k)]
        out.append(
            Row(
                task=found.task_name + ("" if subset == "default" else f"{_SUBSET}{subset}"),
                data_revision=found.dataset_revision,
                model=model,
                kind=kind,
                setting=setting,
                instruction=instruction,
                revision=str(result.model_revision),
                record=result.experiment_name or "",
                scores={name: float(scores[name]) for name in _score_names() if _is_number(scores.get(name))},
                notes="; ".join(doubts),
            )
        )
    return out


def failed_calls(result: Any) -> int:
    """How many calls to a language model stayed without a reply, over all subsets (of mteb's ``ModelResult``)."""
    (found,) = result.task_results
    return sum(int(scores.get(FAILED_CALLS, 0)) for scores in found.scores["test"])


def _percent(share: float) -> str:
    """A share that is not 0; it does not become 0 %."""
    return f"{share:.0%}" if share >= 0.005 else f"{100 * share:.1g}%"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _score_names() -> list[str]:
    bounded = ("recall_at_1", "gr_at_1", "ds_at_1")
    names = [f"{name}_{k}" for name in _SCORES for k in _K] + ["ds_at_1", "chance_ds_at_1"]
    return [*names, *(f"{name}_{end}" for name in bounded for end in ("low", "high")), "ds_at_1_p_null", "n_queries"]


def add_rows(folder: Path, rows: Sequence[Row]) -> list[Path]:
    """Add lines to the table in a folder, in place of earlier ones of the same task, model, settings and instruction.

    mteb's result files have six decimals: a line read from one of them keeps the earlier line's numbers if these are
    the same to so many.

    Returns:
        The files: the table as CSV, from which it is read again, and as Markdown.

    Raises:
        ValueError: if the CSV is not such a table.
    """
    earlier = {row.key: row for row in read_rows(folder)}
    kept = earlier | {row.key: _in_full(row, earlier.get(row.key)) for row in rows}
    ordered = sorted(kept.values(), key=lambda row: row.task)
    write_text(folder / TABLE_CSV, _csv(ordered))
    write_text(folder / TABLE_MARKDOWN, markdown(ordered))
    return [folder / TABLE_CSV, folder / TABLE_MARKDOWN]


def _in_full(row: Row, earlier: Row | None) -> Row:
    """The line, with an earlier one's numbers if these are the same with more decimals."""
    if earlier is None or row.data_revision != earlier.data_revision:
        return row
    rounded = {name: round(score, _DECIMALS) for name, score in earlier.scores.items()}
    return replace(row, scores=earlier.scores) if rounded == row.scores else row


def require_table_of(folder: Path, task: Any) -> None:
    """Refuse a folder whose table has lines of the task on other data, beside which new ones would stand.

    Args:
        folder: with or without a table; lines of other tasks stand apart in it.
        task: with its data loaded.

    Raises:
        ValueError: if it has such lines, or its CSV is no such table.
    """
    for row in read_rows(folder):
        before = {"task": row.task.partition(_SUBSET)[0], "data_revision": row.data_revision}
        if before["task"] == task.metadata.name:
            require_same(folder / TABLE_CSV, before, data_of(task))


def read_rows(folder: Path) -> list[Row]:
    """The lines of the table in a folder; none if there is no table.

    Raises:
        ValueError: if the CSV is not such a table.
    """
    path = folder / TABLE_CSV
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if list(reader.fieldnames or ()) != _columns():
            raise ValueError(f"{path} is no table of this version's `tcr retrieve`; name another folder with --out")
        return [
            Row(
                **{name: line[name] for name in _texts()},
                scores={name: float(line[name]) for name in _score_names() if line[name]},
            )
            for line in reader
        ]


def _texts() -> list[str]:
    return [field.name for field in fields(Row) if field.name != "scores"]


def _columns() -> list[str]:
    return [*_texts(), *_score_names()]


def _csv(rows: Sequence[Row]) -> str:
    written = io.StringIO()
    writer = csv.DictWriter(written, _columns(), lineterminator="\n", restval="")
    writer.writeheader()
    for row in rows:
        values = asdict(row)
        writer.writerow({**{name: values[name] for name in _texts()}, **row.scores})
    return written.getvalue()


def markdown(rows: Sequence[Row]) -> str:
    """The table as Markdown: in the shape of Table 9 (and 28), and of Table 10 for augmentation by a language model."""
    out = ["# Other first stages", "", _ABOUT]
    plain = {"R@1": "recall_at_1", "R@3": "recall_at_3", "R@5": "recall_at_5", "GR@1": "gr_at_1", "DS@1": "ds_at_1"}
    hits = {f"Hit@{k}": f"group_hit_at_{k}" for k in _K}
    groups = {f"GR@{k}": f"gr_at_{k}" for k in _K}
    recalls = {f"R@{k}": f"recall_at_{k}" for k in _K}
    for task in dict.fromkeys(row.task for row in rows):
        own = _told_apart([row for row in rows if row.task == task])
        n = max(row.scores.get("n_queries", 0) for row in own)
        chance = next((row.scores["chance_ds_at_1"] for row in own if "chance_ds_at_1" in row.scores), None)
        about = [f"data revision {revision}" for revision in dict.fromkeys(row.data_revision for row in own)]
        about += [f"{n:.0f} queries"] if n else []
        about += [f"DS@1 by chance {chance:.3f}"] if chance is not None else []
        out += ["", f"## {task}", "", "; ".join(about) + ".", "", _grid(own, plain)]
        augmented = [row for row in own if AUGMENTED in row.kind]
        if augmented:
            columns = {**recalls, **hits, **groups, "DS@1": "ds_at_1"}
            out += ["", "### Augmentation (Table 10)", "", _ABOUT_HITS, "", _grid(augmented, columns)]
    return "\n".join(out) + "\n"


def _told_apart(rows: Sequence[Row]) -> list[Row]:
    """The lines of a task; those that would look alike have the model's revision and record in their setting."""
    n_alike = Counter(row.label for row in rows)
    return [
        replace(row, setting="; ".join(filter(None, (row.setting, row.revision[:8], row.record))))
        if n_alike[row.label] > 1
        else row
        for row in rows
    ]


def _grid(rows: Sequence[Row], columns: Mapping[str, str]) -> str:
    chosen = any(row.instruction != _DEFAULT_INSTRUCTION for row in rows)
    lines = [
        [
            row.model,
            row.kind,
            row.setting,
            row.instruction if chosen else "",
            *(_told(row.scores, name) for name in columns.values()),
            row.notes,
        ]
        for row in rows
    ]
    heads = ["Model", "Type", "Setting", "Instruction", *columns, "Notes"]
    shown = [at for at in range(len(heads)) if any(line[at] for line in lines)]
    cells = [[line[at] for at in shown] for line in (heads, *lines)]
    return unpadded_table(cells[0], cells[1:])


def _told(scores: Mapping[str, float], name: str) -> str:
    if name not in scores:
        return ""
    return told(scores[name], scores.get(f"{name}_low"), scores.get(f"{name}_high"))
