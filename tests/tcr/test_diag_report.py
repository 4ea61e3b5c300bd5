"""The words, tables and figures of the diagnostics' report, from findings made by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcr_tasks.diagnostics.catalogue import CATALOGUE
from tcr_tasks.diagnostics.consistency import COMPARISONS, compare
from tcr_tasks.diagnostics.figures import figures
from tcr_tasks.diagnostics.findings import statements
from tcr_tasks.diagnostics.glossary import glossary
from tcr_tasks.diagnostics.paper_tables import PAPER_TABLES
from tcr_tasks.diagnostics.results import NO_EMBEDDINGS, NOT_MEASURABLE, Finding, Origin, Store
from tcr_tasks.diagnostics.score import Score
from tcr_tasks.diagnostics.tables import markdown
from tcr_tasks.diagnostics.tasks import CaseTask

ORIGIN = Origin("m", "1", "d", "2", 0, 1)


def cut(documents: float, tokens: float) -> tuple[Score, ...]:
    return Score("truncated_documents_share", documents, 9), Score("truncated_tokens_share", tokens, 9)


def test_a_table_by_hand() -> None:
    scores = (
        *(Score("recall_at_1", 0.5, 4, 0.0, 1.0), Score("gr_at_1", 0.75, 4), Score("ds_at_1", 2 / 3, 3)),
        *(Score("ds_at_1_p_bootstrap", 0.0, 3), Score("ds_at_1_p_null", 0.0416, 3)),
        *cut(0.5, 0.128),
    )
    findings = {
        "transposed": Finding("transposed", ORIGIN, scores=scores),
        "main/mixed": Finding("main/mixed", ORIGIN, reason=(NOT_MEASURABLE, "all is tied"), scores=cut(1, 0.7)),
    }
    table = next(t for t in PAPER_TABLES if "Table 28" in t.title)
    lines = (markdown(table, {"a|b": findings}) or "").splitlines()
    assert (
        lines[2] == "| Model | Tables | R@1 | GR@1 | DS@1 | p (bootstrap / exact) | n hit | n | tables / tokens cut |"
    )
    assert lines[4] == "| a\\|b | as they are | not measurable |  |  |  |  |  | 100% / 70% |"
    shown = "0.500 [0.00, 1.00] | 0.750 | 0.667 | < 0.001 / 0.042 | 3 | 4 | 50% / 13%"
    assert lines[5] == f"| a\\|b | transposed | {shown} |"
    assert lines[-1] == "- a|b, as they are: not measurable, since all is tied"
    assert markdown(table, {"m": {}}) is None


def test_consistency_of_two_findings() -> None:
    """Over the queries of both: q1 has the same best table and q2 is in one of them only."""
    comparison = COMPARISONS[0]
    tops = {"q1": list("tabcd"), "q2": list("atbcd")}
    base = Finding(comparison.base, ORIGIN, targets={"q1": "t", "q2": "t"}, tops=tops)
    other = Finding(comparison.other, ORIGIN, targets={"q1": "t"}, tops={"q1": list("tzyxw")})
    found = compare(comparison, base, other)
    assert comparison.key == "consistency/mixed-csv"
    assert {s.metric: (s.value, s.n) for s in found.scores} == {
        "hit": (1.0, 1),
        "partial": (1.0, 1),
        "top_1_identity": (1.0, 1),
        "rbo_at_5": (pytest.approx(0.203347), 1),
        "rbo_at_5_normalised": (pytest.approx(0.203347 / 0.40951), 1),
    }
    assert found.notes == ("1 queries are in one of the two only and are left out",)
    nothing = compare(comparison, base, Finding(comparison.other, ORIGIN))
    assert nothing.reason == ("not_possible", "the two have no query in common")


def preferred(low: float, value: float) -> Finding:
    return Finding("position/top-middle", ORIGIN, scores=(Score("preference", value, 40, low, 0.9),))


def with_hits(diagnostic: str, hits: list[list[int]]) -> Finding:
    return Finding(diagnostic, ORIGIN, hits={f"q{i}": pair for i, pair in enumerate(hits)})


def test_findings_are_said_as_far_as_they_are_decided() -> None:
    assert statements({"position/top-middle": preferred(0.6, 0.75)}) == [
        "Answer at the top against answer at the middle: the top scores higher in 0.750 [0.60, 0.90] of the pairs "
        "(n = 40, chance 0.5): the top is preferred."
    ]
    (said,) = statements({"position/top-middle": preferred(0.4, 0.65)})
    assert said.endswith("(n = 40, chance 0.5): undecided, since the interval includes 0.5.")
    unread = Finding("position/top-middle", ORIGIN, (NOT_MEASURABLE, "all is beyond the limit"))
    assert statements({"position/top-middle": unread}) == [
        "Answer at the top against answer at the middle: no number, since all is beyond the limit."
    ]
    # Transposed, all 30 queries lose the target and keep the group.
    found = {
        "main/mixed": with_hits("main/mixed", [[1, 1]] * 30),
        "transposed": with_hits("transposed", [[0, 1]] * 30),
    }
    assert statements(found)[-1] == (
        "Transposed tables against plain ones (n = 30): R@1 changes by -1.000 [-1.00, -1.00]: transposing hurts; GR@1 "
        "changes by +0.000 [+0.00, +0.00]: undecided, since no query differs."
    )
    # Five queries that all agree are too few: so do five coins in 2 of 32 throws.
    few = {key: with_hits(key, list(finding.hits.values())[:5]) for key, finding in found.items()}
    assert "undecided, since all 5 queries agree" in statements(few)[-1]
    assert statements({}) == []


def test_tables_name_only_what_exists() -> None:
    known = {d.key for d in CATALOGUE} | {c.key for c in COMPARISONS}
    assert {row.diagnostic for table in PAPER_TABLES for row in table.rows} == known
    assert {key for c in COMPARISONS for key in (c.base, c.other)} <= known


def test_findings_survive_the_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    finding = Finding(
        "a/b",
        ORIGIN,
        None,
        ("note",),
        (Score("x", 0.1, 2, 0.0, 0.2, "EM"),),
        {"q": "t"},
        {"q": ["t"]},
        {"q": [1, 1]},
        {"m": {"q": 0.5}},
    )
    store.write(finding)
    assert store.read(ORIGIN, "a/b") == finding
    assert store.all() == [finding]
    store.path(ORIGIN, "a/b").write_text("{", encoding="utf-8")
    assert store.read(ORIGIN, "a/b") is None


def test_tasks_share_a_name_and_so_the_cache() -> None:
    assert CaseTask.metadata.name == "TCRDiagnostic"


def test_every_family_has_something_to_say() -> None:
    """Each family alone, whether or not what it is compared with was run."""
    usual = tuple(Score(m, 0.5, 9, 0.4, 0.6) for m in ("recall_at_1", "gr_at_1", "ds_at_1", "preference"))
    chance = tuple(Score(m, 0.2, 9) for m in ("chance_ds_at_1", "chance_recall_at_1", "ds_at_1_p_bootstrap"))
    scores = (*usual, *chance, Score("ds_at_1_p_null", 0.1, 9))
    for family in {d.family for d in CATALOGUE}:
        found = {
            d.key: Finding(d.key, ORIGIN, scores=scores, hits={"q": [1, 1]}) for d in CATALOGUE if d.family == family
        }
        assert statements(found), family
    (said,) = statements({"length/2": with_hits("length/2", [[1, 1]])})
    assert said == (
        "Tables with a part of their rows against whole ones: 1/2: no comparison, since main/mixed was not run."
    )


def test_discrimination_is_said_with_chance_and_p_values() -> None:
    def said(p: float, hit: int, low: float) -> str:
        scores = (
            *(Score("recall_at_1", 0.4, 30), Score("chance_ds_at_1", 0.25, 30), Score("ds_at_1", 0.5, hit, low, 0.6)),
            *(Score("ds_at_1_p_bootstrap", p, hit), Score("ds_at_1_p_null", 0.012, hit)),
        )
        return statements({"main/mixed": Finding("main/mixed", ORIGIN, scores=scores)})[0]

    assert said(0.0, 24, 0.3) == (
        "The target among its siblings, all questions, Mixed: DS@1 is 0.500 [0.30, 0.60] (n = 24 of 30, whose group "
        "was hit; chance 0.250; p < 0.001 by bootstrap, 0.012 exact): targets are told from siblings."
    )
    assert said(0.1, 24, 0.2).endswith("undecided, since the interval includes 0.25.")
    assert "none of the 30 queries" in said(1.0, 0, 0.5)


def test_what_is_cut_off_is_named_as_a_possible_reason() -> None:
    def said(tokens: float) -> str:
        whole = Finding("main/mixed", ORIGIN, scores=cut(1, tokens), hits={f"q{i}": [0, 1] for i in range(30)})
        half = Finding("length/2", ORIGIN, scores=cut(1, 0.02), hits={f"q{i}": [1, 1] for i in range(30)})
        third = Finding("length/3", ORIGIN, scores=cut(0, 0), hits={f"q{i}": [int(i > 28), 1] for i in range(30)})
        return statements({f.diagnostic: f for f in (whole, half, third)})[-1]

    assert said(0.7).startswith(
        "Tables with a part of their rows against whole ones (n = 30), change of R@1: 1/2 +1.000 [+1.00, +1.00], 1/3 "
        "+0.033 [+0.00, +0.10]. 1/2: R@1 is higher; 1/3: undecided, since the interval includes 0."
    )
    assert said(0.7).endswith(
        "Beyond the model's length limit lie 0% to 2% of the tokens of the former and 70% of the tokens of the latter, "
        "which may be the reason for any difference."
    )
    assert "limit" not in said(0.05)


def test_a_baseline_alone_is_no_table() -> None:
    whole = Finding("main/mixed", ORIGIN, scores=(Score("recall_at_1", 0.5, 4),))
    shorter = {"length/2": Finding("length/2", ORIGIN, scores=whole.scores)}
    for part in ("(Table 28)", "Figure 6", "With and without"):
        table = next(t for t in PAPER_TABLES if part in t.title)
        assert markdown(table, {"m": {"main/mixed": whole}}) is None
    table = next(t for t in PAPER_TABLES if "Figure 6" in t.title)
    # Of two models, the baseline of the one with shorter tables is shown.
    shown = markdown(table, {"m": {"main/mixed": whole}, "k": {"main/mixed": whole, **shorter}}) or ""
    assert len(re.findall(r"^\| k \|", shown, flags=re.M)) == 2
    assert "| m |" not in shown


def test_geometry_is_not_shown_without_embeddings() -> None:
    scores = (Score("recall_at_1", 0.5, 4), Score("neighbourhood_hit_target_miss", 0.5, 4))
    table = next(t for t in PAPER_TABLES if "(Table 24)" in t.title)
    plain = Finding("main/mixed", ORIGIN, scores=scores)
    assert markdown(table, {"m": {"main/mixed": plain}}) is not None
    lexical = Finding("main/mixed", ORIGIN, scores=scores, notes=(NO_EMBEDDINGS,))
    assert markdown(table, {"m": {"main/mixed": lexical}}) is None


def test_only_words_that_are_shown_are_explained() -> None:
    lines = glossary(["### T\n\n| Model | Type | R@1 | n |\n| --- | --- | --- | --- |\n| m | SenS | 0.1 | 3 |\nDS@1"])
    assert [re.match(r"\*\*(.+?)\*\*", line)[1] for line in lines] == ["R@k", "n", "Sen, SenS, SenSS"]  # type: ignore[index]
    heads = {head for table in PAPER_TABLES for head in table.columns}
    unexplained = {head for head in heads if not glossary([f"| {head} |"])}
    assert unexplained == set()


def test_figures_show_model_number_of_questions_intervals_and_chance() -> None:
    def finding(key: str, n: int, *names: str) -> Finding:
        chance = tuple(Score(f"chance_{name}", 0.2, n) for name in names)
        return Finding(key, ORIGIN, scores=(*(Score(name, 0.5, n, 0.25, 0.75) for name in names), *chance))

    keys = ("main/mixed", "length/2", "intra/row/sen", "intra/chunk20/sen")
    found = {key: finding(key, 12, "recall_at_1", "gr_at_1", "ds_at_1") for key in keys}
    drawn = {figure.name: figure for figure in figures(found)}
    assert drawn.keys() == {"figure-4", "figure-6"}
    for figure in drawn.values():
        assert "m, data d, n = 12 questions" in figure.subtitle
        for panel in figure.panels:
            assert panel.share and panel.x_title and panel.y_title
            scored = next(marks for marks in panel.marks if marks.name != "chance")
            chance = next(marks for marks in panel.marks if marks.name == "chance")
            assert list(zip(scored.y, scored.low, scored.high, strict=True)) == [(0.5, 0.25, 0.75)] * 2
            assert list(chance.y) == [0.2, 0.2]


def test_natural_siblings_have_a_column() -> None:
    shares = ("target", "natural", "other")
    finding = Finding("main/csv", ORIGIN, scores=tuple(Score(f"top_is_{name}", 1 / 3, 3) for name in shares))
    table = next(t for t in PAPER_TABLES if t.title.startswith("What is ranked first"))
    heads = (markdown(table, {"m": {"main/csv": finding}}) or "").splitlines()[2]
    assert "| target | natural sibling | outside the group |" in heads
