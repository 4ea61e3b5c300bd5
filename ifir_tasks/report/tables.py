"""The report's sections: the shapes of the paper's Tables 3, 8, 9, 10 and 11, the sample, and the judging."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from evaluators.plugin.judged import JUDGE_KEY
from evaluators.plugin.task import RECORD_KEY
from ifir_tasks.report.content import (
    INSTFOL,
    MRR,
    NDCG,
    PAPER_INSTFOL,
    PAPER_MRR,
    PAPER_NDCG,
    PLAIN_NDCG,
    Block,
    Line,
    OwnMeasure,
    Place,
    Section,
    own_lines,
    published_line,
    value,
)
from ifir_tasks.report.published import (
    AVERAGE,
    LEVELLED,
    LEVELS,
    SUBSET_TASK_NAMES,
    Setting,
    published_models,
    published_tables,
)
from ifir_tasks.report.results import SAMPLE_TASK, ModelScores

Which = Literal["all", "matching", "none"]
LinesOf = Callable[[OwnMeasure], Sequence[Line]]

BY_SUBSET = tuple(Place(subset) for subset in (*SUBSET_TASK_NAMES, AVERAGE))
BY_LEVEL = tuple(Place(subset, level) for subset in LEVELLED for level in LEVELS)
# The sample's instructions without levels count as a level of their own in its overall InstFol.
OF_SAMPLE = tuple(Place(SAMPLE_TASK, level) for level in (None, *LEVELS, 0))
JUDGING = (
    OwnMeasure("n_judged", "pairs of instruction and passage with a judge's score"),
    OwnMeasure("n_unscored", "such pairs without a score"),
    OwnMeasure("weighted", "percentage of these scores that is weighted by log-probabilities", percent=True),
)
JUDGE_HINT = (
    "InstFol needs a judge: `mteb-beyond run ... --judge MODEL --judge-base-url URL`, or afterwards `mteb-beyond judge "
    "--task T --predictions DIR --results DIR --judge MODEL --judge-base-url URL`."
)


def report_sections(models: Sequence[ModelScores], which: Which = "matching") -> list[Section]:
    """Everything there is to show of these results, the paper's values beside them as ``which`` says."""
    ordered = sorted(models, key=_by_average)
    subsets = set(SUBSET_TASK_NAMES.values())
    in_paper = [m for m in ordered if m.scores.keys() & subsets]
    sample = [m for m in ordered if SAMPLE_TASK in m.scores]
    sections: list[Section] = []
    if in_paper or which == "all":
        sections += [
            _main_table(in_paper, which),
            _hybrid_table(in_paper, which),
            _prompt_table(in_paper, which),
            _level_table("Table 10: nDCG@20", 10, (PAPER_NDCG, NDCG), in_paper, which),
            _level_table("Table 11: InstFol@20", 11, (PAPER_INSTFOL, INSTFOL), in_paper, which),
        ]
        judging = _judging(in_paper, list(SUBSET_TASK_NAMES))
        sections += [judging] if judging.blocks else []
    return [*sections, _sample(sample)] if sample else sections


# ---- the paper's tables ----------------------------------------------------------------------------------------


def _main_table(models: Sequence[ModelScores], which: Which) -> Section:
    def lines(measure: OwnMeasure) -> list[Line]:
        return [*own_lines(models, measure, BY_SUBSET), *_published(3, measure, BY_SUBSET, models, which)]

    blocks = _blocks((PAPER_NDCG, NDCG, PAPER_INSTFOL, INSTFOL), BY_SUBSET, 2, lines)
    chosen = _in_paper(models, which)
    about_published = [f"published {m.name}: {m.note}." for m in published_models() if m.name in chosen and m.note]
    notes = (*_lacking(models), *_instfol_note(models, tuple(SUBSET_TASK_NAMES.values())), *about_published)
    return Section("Table 3: nDCG@20 and InstFol@20 by subset", blocks, notes)


def _hybrid_table(models: Sequence[ModelScores], which: Which) -> Section:
    parts: tuple[tuple[str, Setting, list[ModelScores]], ...] = (
        ("End-to-end retrieval", "end-to-end", [m for m in models if not m.is_hybrid]),
        ("Hybrid retrieval", "hybrid", [m for m in models if m.is_hybrid]),
    )

    def lines(measure: OwnMeasure) -> list[Line]:
        out: list[Line] = []
        for heading, setting, chosen in parts:
            ours = own_lines(chosen, measure, BY_SUBSET)
            theirs = _published(8, measure, BY_SUBSET, models, which, setting)
            out += [Line(heading), *ours, *theirs] if ours or theirs else []
        return out

    blocks = _blocks((PAPER_NDCG, NDCG, PAPER_MRR, MRR), BY_SUBSET, 2, lines)
    return Section("Table 8: nDCG@20 and MRR@20, end-to-end and hybrid", blocks, tuple(_lacking(models)))


def _prompt_table(models: Sequence[ModelScores], which: Which) -> Section:
    pairs = prompt_pairs(models)
    chosen = _in_paper([prompted for _, prompted in pairs], which)

    def lines(measure: OwnMeasure) -> list[Line]:
        out: list[Line] = []
        for without, prompted in pairs:
            nothing = Line(f"(no result without prompt) {prompted.name}", (None,) * len(BY_SUBSET))
            out += own_lines([without], measure, BY_SUBSET) if without else [nothing]
            out += own_lines([prompted], measure, BY_SUBSET)
        if measure.published:
            rows = [row for row in published_tables()[9].rows if row.model in chosen]
            out += [published_line(row, measure, BY_SUBSET, f"{row.model} {row.setting}") for row in rows]
        return out

    notes = _lacking([m for pair in pairs for m in pair if m])
    if not pairs:
        notes.append("No result has a prompt before its queries (an option of the model whose name says 'prompt').")
    title = "Table 9: nDCG@20 without and with a prompt before query and instruction"
    return Section(title, _blocks((PAPER_NDCG, NDCG), BY_SUBSET, 3, lines), tuple(notes))


def prompt_pairs(models: Iterable[ModelScores]) -> list[tuple[ModelScores | None, ModelScores]]:
    """Every entry with a prompt, after its counterpart: the same model and other options, without one."""
    listed = list(models)
    plain = {m.without_prompt: m for m in listed if not m.has_prompt}
    return [(plain.get(m.without_prompt), m) for m in listed if m.has_prompt]


def _level_table(
    title: str, number: int, measures: tuple[OwnMeasure, ...], models: Sequence[ModelScores], which: Which
) -> Section:
    def lines(measure: OwnMeasure) -> list[Line]:
        return [*own_lines(models, measure, BY_LEVEL), *_published(number, measure, BY_LEVEL, models, which)]

    levelled = [SUBSET_TASK_NAMES[subset] for subset in LEVELLED]
    notes = _instfol_note(models, levelled) if INSTFOL in measures else []
    return Section(f"{title} by level of the instruction", _blocks(measures, BY_LEVEL, 3, lines), tuple(notes))


# ---- what the paper has no table for ---------------------------------------------------------------------------


def _sample(models: Sequence[ModelScores]) -> Section:
    measures = (NDCG, PLAIN_NDCG, PAPER_NDCG, MRR, PAPER_MRR, INSTFOL, PAPER_INSTFOL)
    notes = [
        "IFIRSample is a small generated set, not part of the paper: nothing here compares with published values.",
        *map(_title, measures),
        *_instfol_note(models, [SAMPLE_TASK]),
    ]
    scores = Block("", OF_SAMPLE, 3, tuple(_lines_by_model(models, measures, OF_SAMPLE)))
    judging = _judging(models, [SAMPLE_TASK])
    return Section(SAMPLE_TASK, (scores, *judging.blocks), (*notes, *judging.notes))


def _judging(models: Sequence[ModelScores], subsets: Sequence[str]) -> Section:
    """How many pairs were judged behind InstFol, and by whom; without blocks if none was."""
    places = tuple(Place(subset) for subset in subsets)
    judged = [m for m in models if any(value(m, JUDGING[0], place) is not None for place in places)]
    if not judged:
        return Section("", ())
    by_judge: dict[str, list[str]] = {}
    for model in judged:
        for subset in subsets:
            scores = model.scores.get(SUBSET_TASK_NAMES.get(subset, subset), {})
            by_judge.setdefault(_judge_text(scores), []).append(model.label)
    notes = [_title(measure) for measure in JUDGING]
    notes += [f"{text}: {', '.join(dict.fromkeys(labels))}." for text, labels in by_judge.items() if text]
    block = Block("", places, 0, tuple(_lines_by_model(judged, JUDGING, places)))
    return Section("Judging behind InstFol (the paper: gpt-4o-mini with the authors' prompts)", (block,), tuple(notes))


def _judge_text(scores: Mapping[str, Any]) -> str:
    """What the numbers of a judged result depend on, as text; empty for one without judge."""
    record = (scores.get(RECORD_KEY) or {}).get(JUDGE_KEY) or {}
    settings = ", ".join(f"{name}={setting}" for name, setting in record.items() if name not in ("judge", "endpoint"))
    return f"Judged by {record['judge']}{f' ({settings})' if settings else ''}" if record else ""


def _lines_by_model(
    models: Iterable[ModelScores], measures: Iterable[OwnMeasure], places: Sequence[Place]
) -> Iterable[Line]:
    listed = list(measures)
    for model in models:
        yield Line(model.label)
        for measure in listed:
            # Here scales meet in one table.
            label = f"  {measure.key}{' x100' if measure.percent else ''}"
            yield Line(label, tuple(value(model, measure, place) for place in places))


# ---- parts -----------------------------------------------------------------------------------------------------


def _blocks(
    measures: Iterable[OwnMeasure], places: tuple[Place, ...], decimals: int, lines: LinesOf
) -> tuple[Block, ...]:
    """One block per measure that has lines; its title says whether published values compare with it."""
    out = []
    for measure in measures:
        of_measure = tuple(lines(measure))
        compare = "COMPARE THIS with the published values" if measure.published else "not comparable with the paper"
        title = f"{_title(measure)}; {compare}"
        digits = 2 if measure.percent else decimals
        out += [Block(title, places, digits, of_measure)] if of_measure else []
    return tuple(out)


def _title(measure: OwnMeasure) -> str:
    return f"{measure.key}: {measure.text}"


def _published(
    number: int,
    measure: OwnMeasure,
    places: Sequence[Place],
    models: Sequence[ModelScores],
    which: Which,
    setting: Setting = "end-to-end",
) -> list[Line]:
    """The paper's lines in a setting; none beside a measure that they do not compare with."""
    if measure.published is None:
        return []
    chosen = _in_paper(models, which)
    rows = [row for row in published_tables()[number].rows if row.setting == setting and row.model in chosen]
    return [published_line(row, measure, places) for row in rows]


def _in_paper(models: Iterable[ModelScores], which: Which) -> set[str]:
    """The paper's names of the models whose published lines are shown."""
    ours = {name for model in models for name in model.model_names}
    return {m.name for m in published_models() if which == "all" or (which == "matching" and m.mteb_name in ours)}


def _by_average(model: ModelScores) -> tuple[float, str]:
    average = value(model, PAPER_NDCG, Place(AVERAGE))
    return (float("inf") if average is None else -average, model.label)


def _lacking(models: Iterable[ModelScores]) -> list[str]:
    return [
        f"{m.label}: no average, since {', '.join(lacking)} {'has' if len(lacking) == 1 else 'have'} no result."
        for m in models
        if (lacking := m.missing_subsets())
    ]


def _instfol_note(models: Iterable[ModelScores], tasks: Sequence[str]) -> list[str]:
    entries = [m.scores[task] for m in models for task in tasks if task in m.scores]
    unjudged = sum(INSTFOL.key not in entry and JUDGING[0].key not in entry for entry in entries)
    withheld = sum(INSTFOL.key not in entry and JUDGING[0].key in entry for entry in entries)
    notes = [f"{unjudged} of {len(entries)} results have no InstFol, shown as '-'. {JUDGE_HINT}"] if unjudged else []
    if withheld:
        notes.append(
            f"{withheld} of {len(entries)} results were judged, but too many pairs lack a score for an InstFol."
        )
    return notes
