"""Rows read back from every printed format, the reduction of their scores, and row vectors over any encoder."""

from __future__ import annotations

import io
import logging
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_tables import CSV, QUESTIONS, WordEncoder, run_of, small_task, write_small
from sentence_transformers import MultiVectorEncoder, SentenceTransformer

import tcr_tasks
from evaluators.plugin import evaluate
from tcr_tasks.diagnostics.transforms.transposition import transposed
from tcr_tasks.retrieval.multivector import PieceIndex, multi_vector
from tcr_tasks.retrieval.pieces import pieces_of
from tcr_tasks.retrieval.printed import read_printed
from tcr_tasks.retrieval.segments import reduction, segment_scores
from tcr_tasks.serialize import TableFormat, read_table, read_text_table, serialize
from tcr_tasks.tables import Table, corpus_id

MIXED = (TableFormat.CSV, TableFormat.HTML, TableFormat.MARKDOWN)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("tcr"))


# --- reading rows ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample_tables() -> list[Table]:
    """Of every database of the sample one table, the longest ones left out."""
    task = tcr_tasks.TCRSample()
    task.load_data()
    assert task.data is not None
    by_database = {t.db_id: t for t in task.data.side["tables"].values() if len(t.csv) < 6_000}
    assert len(by_database) > 5
    return list(by_database.values())


@pytest.mark.parametrize("fmt", list(TableFormat))
def test_rows_of_the_sample_are_recovered(fmt: TableFormat, sample_tables: list[Table]) -> None:
    """The oracle is the frame that was printed: its name, number of columns, rows, and the cells of CSV as text."""
    for table in sample_tables:
        read = read_text_table if fmt is TableFormat.SAFE_MARKDOWN else read_table
        frame = read(io.StringIO(str(table.csv)))
        found = read_printed(serialize(table.name, frame, fmt))
        assert found is not None, table.key
        assert (found.name, found.unclear) == (table.name, 0)
        assert list(found.header) == list(frame.columns) or fmt is TableFormat.TSENS
        assert sorted(found.header) == sorted(frame.columns)
        assert [len(row) for row in found.rows] == [len(frame.columns)] * len(frame), table.key
        if fmt in (TableFormat.CSV, TableFormat.SAFE_MARKDOWN):
            written = read_text_table(io.StringIO(frame.to_csv(index=False))).to_numpy().tolist()
            if fmt is TableFormat.CSV:  # which squeezes blanks
                written = [[re.sub(" +", " ", cell) for cell in row] for row in written]
            assert [list(row) for row in found.rows] == written
        if fmt is TableFormat.TSEN:  # as Python prints the values of a row
            first = [str(value) for value in next(frame.iterrows())[1]]
            assert [" ".join(cell.split()) for cell in first] == [" ".join(cell.split()) for cell in found.rows[0]]


@pytest.mark.parametrize("fmt", MIXED)
def test_transposed_rows_are_those_presented(fmt: TableFormat, sample_tables: list[Table]) -> None:
    for table in sample_tables:
        frame = transposed(read_table(io.StringIO(str(table.csv))))
        found = read_printed(serialize(table.name, frame, fmt))
        assert found is not None
        assert [len(row) for row in found.rows] == [len(frame.columns)] * len(frame)
        assert [row[0] for row in found.rows] == list(frame.iloc[:, 0])


AWKWARD = pd.DataFrame({"a, b": ["x", "p|q", '"'], "n": [1.5, None, 3], "t": ["a  b", "R&D <b>", "\\|"]})


def test_awkward_cells_by_hand() -> None:
    def rows(fmt: TableFormat, frame: pd.DataFrame = AWKWARD) -> Any:
        found = read_printed(serialize("n", frame, fmt))
        assert found is not None and found.header == ("a, b", "n", "t")
        return found.rows

    # CSV squeezes two blanks to one; HTML prints the second one as an entity.
    assert rows(TableFormat.CSV) == (("x", "1.5", "a b"), ("p|q", "", "R&D <b>"), ('"', "3.0", "\\|"))
    assert rows(TableFormat.HTML) == (("x", "1.5", "a  b"), ("p|q", "NaN", "R&D <b>"), ('"', "3.0", "\\|"))
    text = AWKWARD.assign(n=["1.5", "", "3"], t=["a  b", "one\ntwo", "\\|"]).astype(object)
    assert rows(TableFormat.SAFE_MARKDOWN, text) == tuple(map(tuple, text.to_numpy().tolist()))
    found = read_printed(serialize("n", AWKWARD, TableFormat.MARKDOWN))
    assert found is not None and found.unclear == 2
    # The surplus of a row with a pipe in a cell stays in its last cell.
    assert found.rows == (("x", "1.5", "a b"), ("p", "q", "nan|R&D <b>"), ('"', "3", "\\|"))


# What one of the formats marks, escapes or squeezes, and letters of several planes.
CELLS = st.text("ab1 |\\,\"'\n-:.<>&;\té—語😀", max_size=6)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=4)))
def test_safe_markdown_and_csv_are_exact(grid: list[list[str]]) -> None:
    frame = pd.DataFrame(grid[1:], columns=pd.Index(grid[0], dtype=object), dtype=object)
    found = read_printed(serialize("name", frame, TableFormat.SAFE_MARKDOWN))
    assert found is not None
    assert [list(found.header), *map(list, found.rows)] == grid
    squeezed = [[re.sub(" +", " ", cell) for cell in row] for row in grid]
    found = read_printed(serialize("name", frame, TableFormat.CSV))
    assert found is not None
    assert [list(found.header), *map(list, found.rows)] == squeezed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A sentence.",
        "Note:\nIt is late. Nobody is here.",
        "Two lines:\nwith one, comma\nand two, commas, each",
        "t:\n\n\n",
        "t:\n<table><tr></tr></table>\n\n",
        'x:\na,b\n"open,1\n\n\n',
        "x:\na,b\n1\n\n\n",
    ],
)
def test_what_prints_no_table_is_one_piece(text: str) -> None:
    assert read_printed(text) is None
    found = pieces_of(text, "rows")
    assert (found.texts, found.whole) == ((text,), True)


def test_pieces_by_hand() -> None:
    text = serialize("owl", pd.DataFrame({"name": ["barn", "eagle"], "span": [90, 170]}), TableFormat.HTML)
    assert pieces_of(text, "rows").texts == ("name is barn. span is 90.", "name is eagle. span is 170.")
    assert pieces_of(text, "columns").texts == ("owl. name: barn, eagle", "owl. span: 90, 170")
    assert pieces_of(text, "schema").texts == ("owl: name, span",)
    empty = serialize("owl", pd.DataFrame({"name": [], "span": []}), TableFormat.CSV)
    assert pieces_of(empty, "rows").texts == ("owl: name, span",)


# --- reduction ---------------------------------------------------------------------------------------------------

SCORES = st.floats(-1, 1, width=32)


@settings(max_examples=60)
@given(
    segments=st.lists(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=6), min_size=1, max_size=6),
    how=st.sampled_from(["max", "mean", "top1", "top2", "top3", "top9"]),
)
def test_reduction_against_the_definition(segments: list[list[tuple[float, float]]], how: str) -> None:
    scores = np.array([pair for segment in segments for pair in segment], dtype=np.float32).T
    starts = np.cumsum([0, *map(len, segments)])[:-1]
    before = scores.copy()
    found = segment_scores(scores, starts, reduction(how))
    for query in range(2):
        for at, segment in enumerate(segments):
            ordered = sorted((pair[query] for pair in segment), reverse=True)
            kept = ordered[: {"max": 1, "mean": len(ordered)}.get(how) or int(how[3:])]
            assert found[query, at] == pytest.approx(math.fsum(kept) / len(kept), abs=1e-7)
    assert (scores == before).all()


@pytest.mark.parametrize("name", ["", "min", "top", "top0", "top-1", "Max"])
def test_an_unknown_reduction_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must be max, mean, or topN"):
        reduction(name)


def test_blocks_of_queries_do_not_change_the_scores() -> None:
    rng = np.random.default_rng(0)
    vectors, queries = rng.normal(size=(20, 8)).astype(np.float32), rng.normal(size=(7, 8)).astype(np.float32)
    counts = [3, 1, 10, 6]
    whole = PieceIndex(vectors, counts).scores(queries, reduction("top2"))
    assert whole.shape == (7, 4)
    for held in (1, 40, 60):  # one query, two, three at a time
        assert PieceIndex(vectors, counts, held).scores(queries, reduction("top2")) == pytest.approx(whole, abs=1e-6)


# --- as a model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task_name", "unit"), [("TCRBenchMixed", False), ("TCRBenchTSenS", True), ("TCRBenchSafeMarkdown", True)]
)
def test_the_scores_are_those_of_the_rows(task_name: str, unit: bool, small: Path) -> None:
    """Against a loop over the rows of the CSV files, however they were printed."""
    encoder = WordEncoder(unit=unit)
    run = run_of(multi_vector(encoder), small_task(small, task_name))
    for query, (_, _, _, text) in QUESTIONS.items():
        for (db_id, path), (fmt, content) in CSV.items():
            shown = {"TCRBenchMixed": fmt, "TCRBenchTSenS": "tsen"}.get(task_name, "safe")
            rows = _sentences(content, shown)
            asked = encoder.vectors([text])
            expected = max(float((asked @ encoder.vectors([row]).T)[0, 0]) for row in rows)
            assert run[query][corpus_id(f"{db_id}::{path}")] == pytest.approx(expected, abs=1e-6)


def _sentences(content: str, fmt: str) -> list[str]:
    """The rows by hand; only what is missing differs by format."""
    missing = {"csv": "", "html": "NaN", "markdown": "nan", "tsen": "nan", "safe": ""}[fmt]
    header, *rows = [line.split(",") for line in content.splitlines()]
    cells = [[cell or missing for cell in row] for row in rows]
    if fmt in ("csv", "html") and header == ["owl", "wingspan", "note"]:
        assert cells[0] == ["barn", "90", missing]
    return [". ".join(f"{c} is {v}" for c, v in zip(header, row, strict=True)) + "." for row in cells]


def test_equal_rows_are_encoded_once_and_tie(small: Path) -> None:
    encoder = WordEncoder()
    model = multi_vector(encoder)
    run = run_of(model, small_task(small))
    documents = encoder.read["document"]
    assert len(documents) == len(set(documents)) == 14  # 15 rows; Nice is the same in city_T0 and city_T2
    assert model.doubt_figures == {"n_pieces": 15, "documents_without_pieces_share": 0, "unclear_rows_share": 0}
    assert set(map(len, run.values())) == {6}


def test_pieces_beyond_the_models_limit_are_counted(tiny_models: dict[str, Path], small: Path) -> None:
    encoder = SentenceTransformer(str(tiny_models["SentenceTransformer"]), device="cpu")
    encoder.max_seq_length = 14
    model = multi_vector(encoder)
    run_of(model, small_task(small))
    lengths = [
        len(encoder.tokenizer(row)["input_ids"])
        for row in {row for (fmt, text) in CSV.values() for row in _sentences(text, fmt)}
    ]
    assert 0 < model.doubt_figures["truncated_pieces_share"] < 1
    assert model.doubt_figures["truncated_pieces_share"] == pytest.approx(sum(n > 14 for n in lengths) / len(lengths))


def test_transposed_rows_are_indexed(small: Path) -> None:
    encoder = WordEncoder()
    evaluate(multi_vector(encoder), small_task(small, "TCRDiagnosticTransposed"), output_folder=small / "out")
    read = encoder.read["document"]
    assert "city is mayor. Lyon is Doucet. Nice is Estrosi. Lille is Aubry." in read
    assert "owl is note. barn is NaN. eagle is largest. snowy is white." in read or any(
        "owl is note" in r for r in read
    )


def test_documents_without_a_table_are_counted(caplog: pytest.LogCaptureFixture, small: Path) -> None:
    task = small_task(small)
    task.load_data()
    texts = [*task.dataset["default"]["test"]["corpus"]["text"][:3], "Only prose."]
    corpus = Dataset.from_dict({"id": list("abcd"), "title": ["", "A title", "", ""], "text": texts})
    encoder = WordEncoder()
    model = multi_vector(encoder)
    with caplog.at_level(logging.WARNING):
        model.index(corpus, task_metadata=task.metadata, hf_split="test", hf_subset="default", encode_kwargs={})
    assert model.doubt_figures["documents_without_pieces_share"] == 0.25
    assert "1 of 4 documents print no table, so each is embedded as a whole: 'd'" in caplog.text
    read = encoder.read["document"]
    assert "Only prose." in read and any(text.startswith("A title ") and " is " in text for text in read)


def test_what_cannot_have_row_vectors_is_refused(tiny_models: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match="need an encoder with dense embeddings"):
        multi_vector(MultiVectorEncoder(str(tiny_models["MultiVectorEncoder"]), device="cpu"))
    with pytest.raises(ValueError, match="unknown pieces 'cells'; one of rows, columns, schema"):
        multi_vector(WordEncoder(), pieces="cells")


def test_a_similarity_of_another_kind_is_refused(small: Path) -> None:
    class Distance(WordEncoder):
        def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
            return -np.abs(np.asarray(embeddings1)[:, None] - np.asarray(embeddings2)[None]).sum(axis=2)

    with pytest.raises(ValueError, match="neither by cosine nor by inner product"):
        run_of(multi_vector(Distance()), small_task(small))


def test_variants_are_filed_apart() -> None:
    names = {
        multi_vector(WordEncoder(), reduce=reduce, pieces=pieces).mteb_model_meta.experiment_name
        for reduce in ("max", "mean", "top3")
        for pieces in ("rows", "columns")
    }
    assert len(names) == 6
