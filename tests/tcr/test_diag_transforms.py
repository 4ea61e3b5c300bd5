"""The diagnostics on hand-made tables, with their texts written out; then on the sample and on the real part."""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_diag_base import some_questions
from test_tcr_data import own
from test_tcr_real import real  # noqa: F401  (a fixture)

from tcr_tasks.diagnostics.base import Base, BaseQuestion, BaseTable, NotPossibleError, QuestionSet, Structure
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.catalogue import CATALOGUE, FAMILIES
from tcr_tasks.diagnostics.reading import read_base
from tcr_tasks.diagnostics.transforms.binding import binding, shuffled, with_row_ids
from tcr_tasks.diagnostics.transforms.formats import formats, whole
from tcr_tasks.diagnostics.transforms.intra import intra_table
from tcr_tasks.diagnostics.transforms.length import length, sampled_rows
from tcr_tasks.diagnostics.transforms.pairs import differ_within, first_difference, within_limit
from tcr_tasks.diagnostics.transforms.perturbation import perturbation
from tcr_tasks.diagnostics.transforms.position import COMPARISONS, placed, position
from tcr_tasks.diagnostics.transforms.strategies import without_column_deletion, without_siblings
from tcr_tasks.diagnostics.transforms.transposition import transposed, transposition
from tcr_tasks.diagnostics.transforms.volume import row_sentences, sufficient, volume
from tcr_tasks.queries import Condition, Query
from tcr_tasks.serialize import TableFormat, serialize
from tcr_tasks.tables import Table

CANONICAL = {"Town": "town", "place": "town", "st": "state", "Inhabitants": "people", "inhabitants": "people"}
# Of the towns in Ohio, how many people live there? Rows 0 and 2 of T0. Of the river Ems, how long is it? Row 1 of T0.
CSV = {
    "cities_T0": "town,state,people\nActon,OH,120\nBerea,KY,85\nCuba,OH,40\nDover,DE,310\nEaton,KY,77\n",
    "cities_T1": "Town,Inhabitants\nActon,120\nFerry,9\n",
    "cities_T2": "place,st,inhabitants\nGary,IN,12\nDover,DE,310\n",
    "rivers_T0": "river,km\nDon,1870.0\nEms,371.0\nLot,485.5\n",
    "rivers_T1": "river,km\nPo,652.0\nLot,485.5\n",
}
FORMATS = {"cities_T1": TableFormat.HTML, "cities_T2": TableFormat.MARKDOWN}
CITIES = ("cities_T0", "cities_T1", "cities_T2")
RIVERS = ("rivers_T0", "rivers_T1")


def made_table(path: str) -> BaseTable:
    frame = pd.read_csv(io.StringIO(CSV[path]))
    columns = {header: CANONICAL.get(header, header) for header in frame.columns}
    table = Table("db", path, path.split("_")[0], FORMATS.get(path, TableFormat.CSV), CSV[path])
    canonical = pd.read_csv(io.StringIO(CSV[path]), dtype=str).rename(columns=columns)
    return BaseTable(table, frame, canonical, columns)


TABLES = {path: made_table(path) for path in CSV}
OHIO = BaseQuestion(
    "q1",
    "How many people live in the towns of Ohio?",
    "EM",
    "cities_T0",
    CITIES,
    {"cities_T0": "target", "cities_T1": "column_deletion", "cities_T2": "resampling"},
    "List the people for the entries with state is OH.",
    "state is OH. people is ?",
    (0, 2),
    Structure(("state",), "people", Query("EM", (Condition("state", "=", "OH"),), "people")),
)
EMS = BaseQuestion(
    "q2",
    "How long is the Ems?",
    "EM",
    "rivers_T0",
    RIVERS,
    {"rivers_T0": "target", "rivers_T1": "row_deletion"},
    None,
    "river is Ems. km is ?",
    (1,),
    Structure(("river",), "km", Query("EM", (Condition("river", "=", "Ems"),), "km")),
)
LONG = replace(EMS, id="q3", text="Which rivers are longer than 1000 km?", type="SF", answer_rows=None, structure=None)


def made_base(*questions: BaseQuestion, main: tuple[BaseQuestion, ...] = ()) -> Base:
    """A base of these questions, by default the two exact-match ones, over all tables (here named by their paths)."""
    chosen = questions or (OHIO, EMS)
    return Base("tiny", QuestionSet(main or chosen, TABLES), QuestionSet(chosen, TABLES))


def with_table(base: Base, csv: str, question: BaseQuestion) -> Base:
    """One question over a table of its own, without canonical table and query."""
    frame = pd.read_csv(io.StringIO(csv))
    table = BaseTable(Table("db", "x_T0", "x", TableFormat.CSV, csv), frame)
    assert question.structure is not None
    asked = replace(question, target="x_T0", group=("x_T0",), strategies={"x_T0": "target"})
    asked = replace(asked, structure=replace(question.structure, query=None))
    return replace(base, diagnostic=QuestionSet((asked,), {"x_T0": table}))


def pair_texts(case: Case, query: str) -> tuple[str, str]:
    """The formal target's text, and its variant's."""
    (target,) = case.targets[query]
    (other,) = set(case.groups[query]) - {target}
    return case.documents[target], case.documents[other]


def check(case: Case, pairwise: bool = False) -> None:
    """What must hold of every case."""
    asked = set(case.queries)
    assert asked and asked == set(case.targets) == set(case.groups) == set(case.labels) == set(case.strata)
    assert set(case.not_measurable) <= asked
    assert case.pairwise is pairwise
    for query in asked:
        group, pool = set(case.groups[query]), set(case.documents)
        assert len(group) == len(case.groups[query])
        assert case.targets[query] and set(case.targets[query]) <= group == set(case.labels[query]) <= pool
        assert not pairwise or (len(group) == 2 and len(case.targets[query]) == 1)
        if case.candidates is not None:
            assert group <= set(case.candidates[query]) <= pool
            assert len(set(case.candidates[query])) == len(case.candidates[query])
    if pairwise:
        assert case.candidates is None and len(case.documents) == 2 * len(asked)


# --- formats ------------------------------------------------------------------------------------------------------


def test_formats_and_query_forms() -> None:
    case = formats(made_base(), TableFormat.CSV, "natural")
    check(case)
    assert case.documents["rivers_T1"] == "rivers:\nriver,km\nPo,652.0\nLot,485.5\n\n\n"
    assert case.queries == {"q1": OHIO.text, "q2": EMS.text}
    assert case.targets["q1"] == ("cities_T0",) and case.groups["q1"] == CITIES and case.candidates is None
    assert case.labels["q1"]["cities_T1"] == "column_deletion" and case.strata == {"q1": "EM", "q2": "EM"}
    mixed = formats(made_base(), None, "sentential")
    assert mixed.queries == {"q1": "state is OH. people is ?", "q2": "river is Ems. km is ?"}
    assert mixed.documents["cities_T1"].startswith('cities:\n<table border="1"')
    assert mixed.documents["cities_T2"].startswith("cities:\n| place | st | inhabitants |")
    assert mixed.documents["cities_T0"] == f"cities:\n{CSV['cities_T0']}\n\n"


def test_questions_without_a_form_are_counted() -> None:
    case = formats(made_base(), None, "template")
    assert case.queries == {"q1": OHIO.template} and len(case.documents) == 5
    assert case.notes == ("1 of 2 questions left out, since they have no template form: 'q2'",)
    with pytest.raises(NotPossibleError, match="tiny: none of its 1 exact-match questions has a template form"):
        formats(made_base(EMS), None, "template")


def test_all_questions_of_all_types() -> None:
    case = whole(made_base(main=(OHIO, LONG)), None)
    check(case)
    assert case.strata == {"q1": "EM", "q3": "SF"}
    assert case.notes == ()
    inferred = whole(made_base(main=(OHIO, replace(LONG, inferred=True))), None)
    assert inferred.notes[0].startswith("1 of 2 questions: how their siblings were made is not labelled")


def test_nothing_to_ask() -> None:
    empty = replace(made_base(), diagnostic=QuestionSet((), {}), main=QuestionSet((), {}))
    for diagnostic in CATALOGUE:
        with pytest.raises(NotPossibleError, match="tiny"):
            diagnostic.make(empty)
    without = replace(made_base(LONG), diagnostic=QuestionSet((), {}))
    with pytest.raises(NotPossibleError, match="tiny has no exact-match question"):
        next(d for d in CATALOGUE if d.family == "perturbation").make(without)
    unknown = made_base(LONG)
    for diagnostic in CATALOGUE:
        if diagnostic.family in ("volume", "intra", "binding", "perturbation", "position", "length"):
            with pytest.raises(NotPossibleError, match="tiny: of none of its 1 "):
                diagnostic.make(unknown)


# --- semantic volume ----------------------------------------------------------------------------------------------


def test_sen_and_sens() -> None:
    sen, sens = volume(made_base(), "sen"), volume(made_base(), "sens")
    check(sen)
    check(sens)
    assert sen.documents["cities_T1"] == (
        "cities:\nTown is Acton. Inhabitants is 120.\nTown is Ferry. Inhabitants is 9.\n\n"
    )
    assert sens.documents == {key: table.text(TableFormat.TSENS) for key, table in TABLES.items()}


def test_senss_is_about_the_questions_columns_alone() -> None:
    case = volume(made_base(), "senss")
    check(case)
    (target,) = case.targets["q1"]
    assert case.documents[target] == (
        "cities:\nstate is OH. people is 120.\nstate is KY. people is 85.\nstate is OH. people is 40.\n"
        "state is DE. people is 310.\nstate is KY. people is 77.\n\n"
    )
    texts = {label: case.documents[key] for key, label in case.labels["q1"].items()}
    assert texts["column_deletion"] == "cities:\nInhabitants is 120.\nInhabitants is 9.\n\n"  # has no state
    assert texts["resampling"] == "cities:\nst is IN. inhabitants is 12.\nst is DE. inhabitants is 310.\n\n"
    # The pool: the group in this form, every other table as Sen.
    assert case.candidates is not None
    assert set(case.candidates["q1"]) == {*case.groups["q1"], *RIVERS}
    assert case.documents["rivers_T1"] == "rivers:\nriver is Po. km is 652.0.\nriver is Lot. km is 485.5.\n\n"


def test_a_table_without_any_of_the_columns_is_its_name() -> None:
    assert OHIO.structure is not None
    frame = pd.DataFrame({"town": ["Acton"]})
    bare = BaseTable(TABLES["cities_T1"].table, frame, frame, {"town": "town"})
    questions = QuestionSet((OHIO,), {**TABLES, "cities_T1": bare})
    case = volume(Base("tiny", questions, questions), "senss")
    (text,) = {case.documents[key] for key, label in case.labels["q1"].items() if label == "column_deletion"}
    assert text == "cities:\n\n\n"


def pairs_of(line: str) -> list[str]:
    return line.removesuffix(".").split(". ")


@given(
    st.lists(st.tuples(st.integers(0, 99), st.sampled_from([0.5, 2.0, None]), st.sampled_from("abc")), min_size=1),
    st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_senss_is_a_part_of_sen(rows: list[tuple[int, float | None, str]], with_text: bool) -> None:
    """Cell by cell as the whole row prints it, be the other columns numbers or text."""
    frame = pd.DataFrame(rows, columns=["year", "share", "kind"])
    frame = frame if with_text else frame.drop(columns="kind")
    table = BaseTable(Table("db", "x_T0", "x", TableFormat.CSV, ""), frame)
    question = replace(OHIO, target="x", group=("x",), structure=Structure(("year",), "year"))
    part = sufficient(QuestionSet((question,), {"x": table}), question, "x")
    for whole_row, row in zip(row_sentences(table, frame), row_sentences(table, part), strict=True):
        assert [pair for pair in pairs_of(whole_row) if pair.startswith("year is")] == pairs_of(row)


def test_sentences_of_cells_with_line_ends() -> None:
    frame = pd.DataFrame({"a\nb": ["x\ny", "z"], "n": [1, 2]})
    table = BaseTable(Table("db", "x_T0", "x", TableFormat.CSV, ""), frame)
    assert row_sentences(table, frame) == ["a b is x y. n is 1.", "a b is z. n is 2."]
    assert row_sentences(table, frame.iloc[:0]) == []


# --- inside the target --------------------------------------------------------------------------------------------


def test_rows_of_the_target() -> None:
    case = intra_table(made_base(), 1, "sen")
    check(case)
    assert case.candidates == case.groups
    assert [case.documents[key] for key in case.groups["q2"]] == [
        "rivers:\nriver is Don. km is 1870.0.\n\n",
        "rivers:\nriver is Ems. km is 371.0.\n\n",
        "rivers:\nriver is Lot. km is 485.5.\n\n",
    ]
    assert [case.documents[key] for key in case.targets["q2"]] == ["rivers:\nriver is Ems. km is 371.0.\n\n"]
    assert len(case.targets["q1"]) == 2 and len(case.groups["q1"]) == 5
    assert Counter(case.labels["q1"].values()) == {"answer": 2, "other": 3}


def test_chunks_do_not_overlap_and_the_last_may_be_short() -> None:
    case = intra_table(made_base(OHIO), 2, "senss")
    check(case)
    assert [case.documents[key] for key in case.groups["q1"]] == [
        "cities:\nstate is OH. people is 120.\nstate is KY. people is 85.\n\n",
        "cities:\nstate is OH. people is 40.\nstate is DE. people is 310.\n\n",
        "cities:\nstate is KY. people is 77.\n\n",
    ]
    assert case.targets["q1"] == case.groups["q1"][:2]  # the answers stand in rows 0 and 2
    all_in_one = intra_table(made_base(OHIO), 10, "sens")
    (key,) = all_in_one.targets["q1"]
    assert all_in_one.documents[key] == TABLES["cities_T0"].text(TableFormat.TSENS)
    with pytest.raises(ValueError, match="at least 1 row, not 0"):
        intra_table(made_base(), 0, "sen")


# --- minimal pairs: perturbation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_other_content_changes_the_answers_cells_alone(seed: int) -> None:
    case = perturbation(made_base(), "content", seed)
    check(case, pairwise=True)
    assert set(case.labels["q1"].values()) == {"original", "content"}
    original, changed = (text.splitlines() for text in pair_texts(case, "q1"))
    assert original == ["cities:", *CSV["cities_T0"].splitlines(), "", ""]
    differing = [at for at, (a, b) in enumerate(zip(original, changed, strict=True)) if a != b]
    assert differing == [2, 4]  # the rows of Acton and Cuba
    for at in differing:
        town, state, people = changed[at].split(",")
        assert town == original[at].split(",")[0]
        assert state in ("KY", "DE") and people in ("85", "310", "77")  # entries of rows that did not answer
    # The float column stays one: 371.0, not 371.
    river, km = pair_texts(case, "q2")[1].splitlines()[3].split(",")
    assert river in ("Don", "Lot") and km in ("1870.0", "485.5")


def test_without_another_entry_there_is_no_pair() -> None:
    """All rows hold OH, so the variant would still answer; a constant target column alone does not matter."""
    base = with_table(made_base(), "town,state,people\na,OH,1\nb,OH,2\n", replace(OHIO, answer_rows=(0,)))
    with pytest.raises(NotPossibleError, match="1 of 1 questions left out, since their conditions' columns hold no"):
        perturbation(base, "content")
    base = with_table(made_base(), "town,state,people\na,OH,1\nb,KY,1\n", replace(OHIO, answer_rows=(0,)))
    assert pair_texts(perturbation(base, "content"), "q1")[1] == "x:\ntown,state,people\na,KY,1\nb,KY,1\n\n\n"


def test_a_header_is_renamed_or_its_column_deleted() -> None:
    base = made_base(OHIO)
    seen = set()
    for seed in range(8):
        renamed, deleted = (perturbation(base, kind, seed) for kind in ("rename", "delete"))
        check(renamed, pairwise=True)
        text = pair_texts(renamed, "q1")[1]
        header = text.splitlines()[1]
        assert text == f"cities:\n{CSV['cities_T0']}\n\n".replace("town,state,people", header)
        rest = pair_texts(deleted, "q1")[1].splitlines()[1:3]
        expected = {
            "town,Column_2,people": ["town,people", "Acton,120"],
            "town,state,Column_3": ["town,state", "Acton,OH"],
        }
        assert rest == expected[header]  # the same column with the same seed
        seen.add(header)
    assert len(seen) == 2


def test_a_table_that_has_generic_headers_gives_no_pair() -> None:
    base = with_table(made_base(), "Column_1,Column_2\na,1\nb,2\n", OHIO)
    (question,) = base.diagnostic.questions
    question = replace(question, answer_rows=(0,), structure=Structure(("Column_1",), "Column_2"))
    base = replace(base, diagnostic=replace(base.diagnostic, questions=(question,)))
    with pytest.raises(NotPossibleError, match="the generic header is one of the table's own"):
        perturbation(base, "rename")


# --- minimal pairs: binding ---------------------------------------------------------------------------------------


def test_row_numbers_in_front_of_every_cell() -> None:
    case = binding(made_base(), "rid")
    check(case, pairwise=True)
    assert pair_texts(case, "q2")[0] == "rivers:\nriver,km\n1: Don,1: 1870.0\n2: Ems,2: 371.0\n3: Lot,3: 485.5\n\n\n"
    assert "does not name the table that the target is compared with" in case.notes[0]


@pytest.mark.parametrize("seed", range(3))
def test_each_binding_has_the_content_perturbation_as_its_counterpart(seed: int) -> None:
    content = perturbation(made_base(), "content", seed)
    ori, rid, shuf = (binding(made_base(), kind, None, seed) for kind in ("ori", "rid", "rid-shuf"))
    for query in ("q1", "q2"):
        assert pair_texts(ori, query) == pair_texts(content, query)
        for text, plain in zip(pair_texts(rid, query), pair_texts(content, query), strict=True):
            head, *rows = text.strip().splitlines()[1:]
            without = [",".join(cell.split(": ", 1)[1] for cell in row.split(",")) for row in rows]
            assert [head, *without] == plain.strip().splitlines()[1:]
        first, second = (text.strip().splitlines()[2:] for text in pair_texts(shuf, query))
        # Shuffled alike: both tables have the same row number in the same place.
        numbers = [[[cell.split(": ")[0] for cell in row.split(",")] for row in rows] for rows in (first, second)]
        assert numbers[0] == numbers[1]
        assert any(len(set(row)) > 1 for row in numbers[0])


def test_tables_that_are_printed_alike_are_no_pair() -> None:
    """HTML prints six decimals."""
    base = with_table(made_base(), "state,people\n1.00000001,3\n1.00000002,3\n", replace(OHIO, answer_rows=(0,)))
    assert len(binding(base, "ori", TableFormat.CSV).queries) == 1
    with pytest.raises(NotPossibleError, match="1 of 1 questions left out, since their two tables are printed alike"):
        binding(base, "ori", TableFormat.HTML)


def test_binding_in_another_format() -> None:
    first, second = pair_texts(binding(made_base(), "rid", TableFormat.MARKDOWN), "q2")
    assert first.startswith("rivers:\n| river | km |\n") and "| 2: Ems | 2: 371.0 |" in first and first != second


@given(st.integers(1, 5), st.integers(1, 12), st.text(max_size=3))
@settings(max_examples=30, deadline=None)
def test_shuffling_keeps_every_columns_cells_and_breaks_a_row(columns: int, rows: int, seed: str) -> None:
    values = [[row % 3 for _ in range(columns)] for row in range(rows)]
    frame = with_row_ids(pd.DataFrame(values, columns=[f"c{c}" for c in range(columns)]))
    mixed = shuffled(frame, seed)
    assert list(mixed.columns) == list(frame.columns)
    for column in frame.columns:
        assert Counter(mixed[column]) == Counter(frame[column])
    numbers = [{cell.split(": ")[0] for cell in row} for row in mixed.to_numpy().tolist()]
    assert any(len(row) > 1 for row in numbers) is (columns > 1 and rows > 1)
    pd.testing.assert_frame_equal(mixed, shuffled(frame, seed))


# --- minimal pairs: position and the length limit -----------------------------------------------------------------


def test_places() -> None:
    assert placed(6, [4, 1], "top") == [1, 4, 0, 2, 3, 5]
    assert placed(6, [4, 1], "middle") == [0, 2, 1, 4, 3, 5]
    assert placed(7, [4, 1], "middle") == [0, 2, 1, 4, 3, 5, 6]
    assert placed(6, [4, 1], "bottom") == [0, 2, 3, 5, 1, 4]
    assert placed(6, [4, 1], "original") == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("first", "second"), COMPARISONS)
def test_the_first_named_place_is_the_target(first: str, second: str) -> None:
    case = position(made_base(OHIO), first, second)
    check(case, pairwise=True)
    rows = CSV["cities_T0"].splitlines()
    orders = {
        "top": (0, 2, 1, 3, 4),
        "middle": (1, 0, 2, 3, 4),
        "bottom": (1, 3, 4, 0, 2),
        "original": (0, 1, 2, 3, 4),
    }
    for place, text in zip((first, second), pair_texts(case, "q1"), strict=True):
        assert text.split("\n") == ["cities:", rows[0], *(rows[at + 1] for at in orders[place]), "", "", ""]
    assert case.labels["q1"][case.targets["q1"][0]] == first


def test_the_same_place_twice_is_no_pair() -> None:
    at_top = replace(OHIO, id="q9", answer_rows=(0, 1))
    case = position(made_base(at_top, EMS), "top", "original")
    assert set(case.queries) == {"q2"} and len(case.documents) == 2
    assert case.notes == (
        "1 of 2 questions left out, since their answers stand at the same place in top and original: 'q9'",
    )


@pytest.mark.parametrize(
    ("first", "second", "places"),
    [
        ("abc", "abc", None),
        ("t:\na,1\nb,2\n", "t:\na,1\nc,2\n", (7, 7)),
        ("t:\na,1\n", "t:\na,1\nb,2\n", (7, 7)),
        # A longer cell far below widens the rule under the header, which tells a reader nothing.
        ("t:\n| a |\n|:--|\n| x |\n| y |\n", "t:\n| a |\n|:----|\n| x |\n| yyy |\n", (24, 26)),
        ("t:\n| a |\n|:--|\n| x |\n", "t:\n| a |\n|:--|\n| x |\n", None),
        # HTML prints a column with as many decimals as its longest number has.
        ("<td>3.30</td>\n<td>1.25</td>\n", "<td>3.3</td>\n<td>1.5</td>\n", (20, 19)),
        ("<td>3.00</td>\n", "<td>30</td>\n", (5, 5)),
    ],
)
def test_where_two_texts_differ(first: str, second: str, places: tuple[int, int] | None) -> None:
    assert first_difference(first, second) == places
    for characters in range(30):
        seen = places is not None and characters > min(places)
        assert differ_within(first, second, lambda _, read=characters: read) is seen


def test_what_the_model_does_not_read_is_not_measurable() -> None:
    # "cities:\ntown,state,people\n" are 26 characters; the first change, in Acton's row, comes behind "Acton,".
    base = made_base()
    assert not perturbation(base, "content").not_measurable
    assert set(within_limit(perturbation(base, "content"), lambda document, query: 33).not_measurable) == set()
    assert set(within_limit(perturbation(base, "content"), lambda document, query: 32).not_measurable) == {"q1"}
    assert set(within_limit(perturbation(base, "content"), lambda document, query: 10).not_measurable) == {"q1", "q2"}
    reason = within_limit(position(base, "top", "bottom"), lambda document, query: 10).not_measurable["q1"]
    assert reason == "their two tables differ only beyond the length that the model reads"


# --- transposition ------------------------------------------------------------------------------------------------


def test_the_header_becomes_the_first_column() -> None:
    case = transposition(made_base())
    check(case)
    assert case.documents["rivers_T0"] == "rivers:\nriver,Don,Ems,Lot\nkm,1870.0,371.0,485.5\n\n\n"
    assert case.documents["cities_T0"] == (
        "cities:\ntown,Acton,Berea,Cuba,Dover,Eaton\nstate,OH,KY,OH,DE,KY\npeople,120,85,40,310,77\n\n\n"
    )
    assert "| place | Gary | Dover |" in case.documents["cities_T2"]


TEXTS = st.text("ab1.", max_size=3)


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(TEXTS, min_size=n, max_size=n), min_size=1, max_size=4)))
@settings(max_examples=30, deadline=None)
def test_transposing_twice_changes_nothing(grid: list[list[str]]) -> None:
    frame = pd.DataFrame(grid[1:], columns=pd.Index(grid[0], dtype=object), dtype=object)
    once = transposed(frame)
    assert [list(once.columns), *once.to_numpy().tolist()] == [list(column) for column in zip(*grid, strict=True)]
    twice = transposed(once)
    assert [list(twice.columns), *twice.to_numpy().tolist()] == grid
    for fmt in (TableFormat.CSV, TableFormat.HTML, TableFormat.MARKDOWN):
        serialize("t", once, fmt)  # headers that repeat, a single column, no row


# --- length -------------------------------------------------------------------------------------------------------


@given(st.integers(1, 200), st.integers(1, 20), st.data())
@settings(max_examples=60, deadline=None)
def test_the_rows_of_a_shorter_table(size: int, n: int, data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.integers(0, size - 1), max_size=6))
    rows = sampled_rows(size, n, needed, "seed")
    assert rows == sorted(set(rows)) and needed <= set(rows) <= set(range(size))
    assert len(rows) == max(1, round(size / n), len(needed))
    assert set(sampled_rows(size, n + 1, needed, "seed")) <= set(rows)


def test_shorter_tables() -> None:
    case = length(made_base(main=(OHIO, EMS, LONG)), 2)
    check(case)
    assert set(case.queries) == {"q1", "q2"}
    assert case.notes == ("1 of 3 questions left out, since the rows that answer them are not known: 'q3'",)
    assert case.documents["cities_T0"] == "cities:\ntown,state,people\nActon,OH,120\nCuba,OH,40\n\n\n"
    # One of three rows at least; the target keeps its answer; numbers keep their type.
    assert length(made_base(), 16).documents["rivers_T0"] == "rivers:\nriver,km\nEms,371.0\n\n\n"
    assert length(made_base(), 1).documents["rivers_T1"] == TABLES["rivers_T1"].text()
    with pytest.raises(ValueError, match="at least 1, not 0"):
        length(made_base(), 0)


def test_each_table_has_a_sampling_of_its_own() -> None:
    drawn = {tuple(sampled_rows(100, 10, (), f"0:{table}")) for table in "abcdef"}
    assert len(drawn) == 6
    assert sampled_rows(100, 10, (), "0:a") == sampled_rows(100, 10, (), "0:a") != sampled_rows(100, 10, (), "1:a")


# --- siblings by strategy -----------------------------------------------------------------------------------------


def test_without_column_deletion() -> None:
    case = without_column_deletion(made_base())
    check(case)
    assert case.groups == {"q1": ("cities_T0", "cities_T2"), "q2": RIVERS}
    assert set(case.documents) == {"cities_T0", "cities_T2", *RIVERS} and case.candidates is None


def test_without_any_sibling() -> None:
    case = without_siblings(made_base())
    check(case)
    assert case.groups == {"q1": ("cities_T0",), "q2": ("rivers_T0",)} and set(case.documents) == set(TABLES)
    assert case.candidates is not None
    assert set(case.candidates["q1"]) == {"cities_T0", *RIVERS}
    assert set(case.candidates["q2"]) == {"rivers_T0", *CITIES}


def test_a_table_that_lacks_a_column_for_one_question_stays_for_another() -> None:
    labels = {"cities_T0": "resampling", "cities_T1": "target", "cities_T2": "resampling"}
    people = replace(OHIO, id="q4", target="cities_T1", strategies=labels)
    case = without_column_deletion(made_base(main=(OHIO, people, EMS)))
    check(case)
    assert set(case.documents) == set(TABLES)
    assert case.candidates is not None
    assert set(case.candidates["q1"]) == set(TABLES) - {"cities_T1"}
    assert set(case.candidates["q4"]) == set(case.candidates["q2"]) == set(TABLES)
    assert case.groups["q4"] == CITIES


def test_questions_left_without_siblings_are_counted() -> None:
    lacking = {**EMS.strategies, "rivers_T1": "column_deletion"}
    case = without_column_deletion(made_base(OHIO, replace(EMS, strategies=lacking)))
    assert set(case.queries) == {"q1"} and "rivers_T1" not in case.documents and "rivers_T0" in case.documents
    assert case.notes == ("1 of 2 questions left out, since no sibling of theirs has all their columns: 'q2'",)
    with pytest.raises(NotPossibleError, match="no question has a sibling with all columns"):
        without_column_deletion(made_base(replace(EMS, strategies=lacking)))


# --- the catalogue, on whole datasets -----------------------------------------------------------------------------

PAIRWISE = ("binding", "perturbation", "position")


def test_the_catalogue() -> None:
    keys = [diagnostic.key for diagnostic in CATALOGUE]
    assert len(set(keys)) == len(keys)
    assert {
        *("formats/markdown/natural", "volume/senss", "intra/chunk10/sen", "binding/rid", "perturbation/rename"),
        *("position/top-bottom", "transposed", "length/16", "main/mixed"),
    } <= set(keys)
    count = Counter(diagnostic.family for diagnostic in CATALOGUE)
    assert tuple(count) == FAMILIES
    # Table 8: 6 formats; x 3 query forms; 3 volumes, x 3 units; 3 x 4 formats; Tables 26 and 27; Figure 6.
    assert count == {
        "main": 6,
        "formats": 18,
        "volume": 3,
        "intra": 9,
        "binding": 12,
        "perturbation": 3,
        "position": 4,
        "strategies": 2,
        "transposed": 1,
        "length": 7,
    }
    for diagnostic in CATALOGUE:
        check(diagnostic.make(made_base()), diagnostic.family in PAIRWISE)


def assert_whole(base: Base, keys: set[str]) -> None:
    for diagnostic in CATALOGUE:
        if diagnostic.key in keys:
            case = diagnostic.make(base)
            check(case, diagnostic.family in PAIRWISE)
            for key in case.documents:  # an id begins with the hash of the rest: nothing in it orders targets first
                assert key.split("::", 1)[0] == hashlib.sha256(key.split("::", 1)[1].encode()).hexdigest()[:8]


SOME = {
    *("formats/csv/template", "formats/mixed/sentential", "volume/senss", "intra/row/senss", "intra/chunk20/sens"),
    *("binding/rid-shuf", "perturbation/content", "perturbation/delete", "position/top-middle", "transposed"),
    *("length/16", "strategies/without-column-deletion", "strategies/without-siblings"),
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Base:
    """A part of the embedded sample: three exact-match questions and two others."""
    configs = some_questions("em-01", "em-03", "em-04", "sf-02", "sa-04")
    return read_base(own(tmp_path_factory.mktemp("sample"), configs))


def test_on_the_sample(sample: Base) -> None:
    assert_whole(sample, SOME)
    content = perturbation(sample, "content")
    assert set(content.queries) == {"em-01", "em-03", "em-04"} and content.notes == ()
    assert set(whole(sample, None).queries) == {"em-01", "em-03", "em-04", "sf-02", "sa-04"}


def test_what_is_made_is_the_same_every_time(sample: Base) -> None:
    for key in ("binding/rid-shuf", "perturbation/content", "perturbation/rename", "length/8", "intra/row/sens"):
        (diagnostic,) = (d for d in CATALOGUE if d.key == key)
        assert diagnostic.make(sample) == diagnostic.make(sample)


def printed_values(text: str) -> set[str]:
    """The lines of a table that say something, without what depends on its other rows: rules and zeros at the end."""
    return {re.sub(r"(\.\d*?)0+\b", r"\1", line) for line in text.splitlines() if any(sign.isalnum() for sign in line)}


def test_shorter_tables_of_the_sample_keep_their_answers(sample: Base) -> None:
    documents = length(sample, 16).documents
    for question in sample.main.questions:
        assert question.answer_rows
        table = sample.main.tables[question.target]
        lines = printed_values(documents[question.target])
        for row in question.answer_rows:
            assert printed_values(table.text(frame=table.frame.iloc[[row]])) <= lines
        assert len(documents[question.target]) < len(table.text()) / 2


def test_on_the_real_part(real: Path) -> None:  # noqa: F811
    base = read_base(real)
    assert_whole(base, {"volume/senss", *(k for k in SOME if k.split("/")[0] in (*PAIRWISE, "length", "strategies"))})
    case = intra_table(base, 1, "sen")
    cities = next(q for q in base.diagnostic.questions if "Ohio" in q.text)
    found = {case.documents[key] for key in case.targets[cities.id]}
    # Line 25 of zip_code_T0.csv, and line 123.
    assert any("zip_code is 43068. type is Standard. city is Reynoldsburg." in text for text in found)
    assert len(found) == 2
