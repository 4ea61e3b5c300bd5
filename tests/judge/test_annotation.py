"""Files for annotators: the draw, and the way through a spreadsheet and back."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from annotation_files import edited
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evaluators.judge.annotation import LONGEST_CELL, read_annotations, write_annotations
from evaluators.judge.annotation_draw import Item, Stratum, draw, shares
from evaluators.judge.judges import Pair


def item(task: str, level: int, query: str, document: str, passage: str | None = None) -> Item:
    pair = Pair(query, document, f"wish of {query}", passage or f"text of {document}", "general", level)
    return Item(task, pair, (0, pair.highest), "runs")


# --- the draw -------------------------------------------------------------------------------------------------------

sizes = st.dictionaries(st.tuples(st.sampled_from("ABC"), st.integers(0, 3)), st.integers(1, 9), min_size=1)


@given(sizes, st.data())
def test_shares_are_equal_as_far_as_there_are_pairs(strata: dict[Stratum, int], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, sum(strata.values())))
    found = shares(strata, n)
    assert sum(found.values()) == n and found.keys() == strata.keys()
    for stratum, size in strata.items():
        assert 0 <= found[stratum] <= size
        if found[stratum] < size:  # not used up: nobody has two more, nor one more unless the stratum is as large
            for other, others in found.items():
                assert others <= found[stratum] + 1
                assert others <= found[stratum] or strata[other] >= size


def test_shares_by_hand() -> None:
    # 400 over the levels of two subsets of which one is small: it gives all 30, the others (400 - 30) / 3 = 123 1/3.
    strata = {("fiqa", 1): 900, ("fiqa", 2): 1000, ("fiqa", 3): 500, ("fire", 0): 30}
    assert shares(strata, 400) == {("fiqa", 1): 123, ("fiqa", 2): 124, ("fiqa", 3): 123, ("fire", 0): 30}


@settings(max_examples=50, deadline=None)
@given(sizes, st.integers(0, 3), st.data())
def test_draws(strata: dict[Stratum, int], seed: int, data: st.DataObject) -> None:
    items = [item(t, level, f"{t}q{i % 2}-{level}", f"d{i}") for (t, level), n in strata.items() for i in range(n)]
    n = data.draw(st.integers(1, len(items)))
    drawn = draw(items, n, seed)
    assert len({(i.task, i.pair) for i in drawn}) == n, "a pair was drawn twice"
    assert Counter(i.stratum for i in drawn) == Counter({s: k for s, k in shares(strata, n).items() if k})
    mixed = data.draw(st.permutations(items))
    assert draw([*mixed, *items], n, seed) == drawn, "the order or the repetition of candidates matters"


def test_seeds_draw_other_pairs_in_another_order() -> None:
    items = [item("T", 1, f"q{i}", f"d{i}") for i in range(50)]
    first, second = draw(items, 20, 0), draw(items, 20, 1)
    assert {i.pair for i in first} != {i.pair for i in second}
    two_levels = draw([*items, *(item("T", 2, f"q{i}", f"d{i}") for i in range(50))], 40, 0)
    assert {i.pair.level for i in two_levels[:10]} == {1, 2}, "one level comes after the other"
    # Each pair has the same chance: 300 draws of 20 of 50 give each 120 times, with a standard deviation of 8.5.
    counts = Counter(i.pair.query for seed in range(300) for i in draw(items, 20, seed))
    assert len(counts) == 50 and all(abs(n - 120) < 45 for n in counts.values())


def test_equal_texts_are_one_pair() -> None:
    items = [item("T", 1, "q", d, "the same words") for d in ("d1", "d2")] + [item("T", 2, "q", "d1", "the same words")]
    assert {(i.pair.document, i.pair.level) for i in draw(items, 2)} == {("d1", 1), ("d1", 2)}
    with pytest.raises(ValueError, match="3 pairs are wanted, but there are only 2 different ones"):
        draw(items, 3)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        draw(items, 0)


# --- the file -------------------------------------------------------------------------------------------------------

NASTY = [
    '=HYPERLINK("http://example.com";"x")',
    "+1-2",
    "-3",
    "@SUM(A1)",
    "  =1+1",
    "'=1",
    "''=1",
    "'tis quoted",
    "\tx",
    "\r\nx",
    'two "quotes", a comma; a semicolon\nand lines\r\nand\rmore',
    "🧾 émoji 漢字",
    " blanks at both ends ",
    "1-5",
    "\ufeffmark",
    "＝1",
]
plain_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)


def written(path: Path, *passages: str) -> Path:
    path.unlink(missing_ok=True)
    write_annotations([item("T", 2, f"q{i}", f"d{i}", passage) for i, passage in enumerate(passages)], path)
    return path


@settings(max_examples=100, deadline=None)
@example(NASTY)
@given(st.lists(plain_text, min_size=1, max_size=5))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "round-trip.csv"
    path.unlink(missing_ok=True)
    items = [
        Item(text, Pair(text, text[::-1], text, text[::-1], text, i % 4), (i % 3 - 1, 5), text)
        for i, text in enumerate(texts)
    ]
    write_annotations(items, path)
    found = read_annotations(path)
    assert [a.item for a in found] == items
    assert [(a.number, a.drawn, a.score, a.comment) for a in found] == [
        (i, len(items), None, "") for i in range(1, len(items) + 1)
    ]


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", *NASTY)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    # A second reader of CSV.
    table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    assert len(table) == len(NASTY)
    for cell in table.to_numpy().ravel():
        assert cell.strip()[:1] not in ("=", "+", "-", "@", "＝") and cell[:1] not in ("\t", "\r", "\n")
    assert list(table["passage"][6:8]) == ["'''=1", "'tis quoted"]
    assert set(table["scale"]) == {"0 to 2"}, "1-5 would become the 1st of May"


def test_what_spreadsheets_and_people_may_change(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", *NASTY)
    before = [a.item for a in read_annotations(path)]
    table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    table["score"] = ["2", "2.0", " 1 ", "0", *[""] * (len(NASTY) - 4)]
    table["document"] = "1.23E+17"
    table["by hand"] = "a further column"
    table = pd.concat([table[::-1], pd.DataFrame([dict.fromkeys(table.columns, "")])])[sorted(table.columns)]
    table.to_csv(path, sep=";", index=False, lineterminator="\n", encoding="utf-8")
    found = sorted(read_annotations(path), key=lambda a: a.number)
    assert [a.score for a in found] == [2, 2, 1, 0, *[None] * (len(NASTY) - 4)]
    assert [replace(a.item.pair, document="") for a in found] == [replace(i.pair, document="") for i in before]
    # Line ends inside a cell change with the program that saves them.
    with_lines = written(tmp_path / "b.csv", "one\r\ntwo\rthree")
    (kept,) = read_annotations(edited(with_lines, lambda r: r.update(passage="one\ntwo\nthree")))
    assert kept.item.pair.passage == "one\ntwo\nthree"


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("score", "3", "row 2 (1of1-....): the score '3' is no whole number from 0 to 2"),
        ("score", "-1", "the score '-1' is no whole number"),
        ("score", "1.5", "the score '1.5' is no whole number"),
        ("score", "good", "the score 'good' is no whole number"),
        ("passage", "text", "its texts, level or scale were changed"),
        ("instruction", "text", "its texts, level or scale were changed"),
        ("level", "3", "its texts, level or scale were changed"),
        ("scale", "0 to 3", "its texts, level or scale were changed"),
        ("scale", "02.01.2026", "its id, level or scale was changed"),
        ("id", "1", "row 2 (1): its id, level or scale was changed"),
    ],
)
def test_faults_name_the_row(tmp_path: Path, column: str, value: str, message: str) -> None:
    path = edited(written(tmp_path / "a.csv", "passage"), lambda r: r.update({column: value}))
    with pytest.raises(ValueError, match=re.escape(message).replace(r"\.\.\.\.", "[0-9a-f]{8}")) as caught:
        read_annotations(path)
    assert str(path) in str(caught.value)


def test_files_that_are_no_such_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "one", "two")
    twice = path.read_bytes() + path.read_bytes().split(b"\r\n", 1)[1]
    cases = {
        "occurs 2 times": twice,
        "save it as 'CSV UTF-8'": "id,é".encode("latin-1"),
        "expected a first row with the columns id, task": b"a,b\r\n1,2\r\n",
        "expected a first row": b"",
        "holds no pair": path.read_bytes().split(b"\r\n")[0] + b"\r\n",
        "no proper CSV file": path.read_bytes() + b'"open',
    }
    for message, content in cases.items():
        (tmp_path / "b.csv").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_annotations(tmp_path / "b.csv")
    with pytest.raises(FileNotFoundError, match="no file"):
        read_annotations(tmp_path / "c.csv")


@pytest.mark.parametrize(
    ("passage", "message"),
    [
        ("nul \0", "query 'q1', document 'd1': the passage holds a NUL"),
        ("half \ud83d", "the passage holds half of a surrogate pair"),
        ("🧾" * (LONGEST_CELL // 2 + 1), "the passage has 32768 characters, .* with --longest 32767"),
    ],
)
def test_a_pair_that_cannot_be_written_is_an_error(tmp_path: Path, passage: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        written(tmp_path / "a.csv", "x" * LONGEST_CELL, passage)
    assert not (tmp_path / "a.csv").exists()
