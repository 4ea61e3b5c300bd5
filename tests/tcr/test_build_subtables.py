"""Targets and siblings: each obeys its strategy, the budget and the questions; the counters count tokens.

The oracle for answers is :meth:`Query.answer`, itself tested against SQLite and DuckDB; for lengths, the text that is
encoded, counted anew; for the offline counter, totals of tiktoken 0.14 (cl100k_base).
"""

from __future__ import annotations

import importlib.util
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.plugin.dataset import read_config
from tcr_tasks.builder.assembly import assemble_natural
from tcr_tasks.builder.generate import Planned
from tcr_tasks.builder.groups import Making, misprinted
from tcr_tasks.builder.kinds import Kind, typed
from tcr_tasks.builder.length import Budget, size_for
from tcr_tasks.builder.losses import lost_cells
from tcr_tasks.builder.sources import SourceTable
from tcr_tasks.builder.subtables import FORMATS, Member, NoGroupError, make_group
from tcr_tasks.builder.tokens import OfflineCounter, TiktokenCounter, default_counter
from tcr_tasks.queries import Condition, Query
from tcr_tasks.sample_build import SAMPLE_DIRECTORY
from tcr_tasks.serialize import TableFormat
from tcr_tasks.tables import Table

COUNTER = OfflineCounter()
SMALL = Budget(700, 850)


def source(n: int, *, seed: int = 0, zips: bool = False) -> SourceTable:
    rng = random.Random(seed)
    raw: dict[str, list[object]] = {
        "station": [f"S{i}" for i in range(n)],
        "city": [rng.choice(["Oslo", "Rome", "Lima"]) for _ in range(n)],
        "opened": [f"{rng.randrange(1950, 2020)}-{rng.randrange(1, 13):02d}-07" for _ in range(n)],
        "rain_mm": [rng.choice([None, round(rng.uniform(0, 90), 1)]) for _ in range(n)],
        "visitors": [rng.randrange(50_000) for _ in range(n)],
    }
    raw["rain_mm"][0] = 1.5  # a column without any value is none
    if zips:
        raw["zip"] = [f"{i:05d}" for i in range(n)]
    columns, kinds = {}, {}
    for name, cells in raw.items():
        columns[name], kinds[name] = typed(name, cells)
    return SourceTable("weather", "stations", pd.DataFrame(columns), kinds, n)


def planned(table: SourceTable, query: Query) -> Planned:
    """The rows that answer: what the query finds if it asks for the numbers of rows whose target is not missing."""
    frame = table.frame.assign(row=range(len(table.frame)))[table.frame[query.target].notna()]
    rows = replace(query, question_type="EM" if query.question_type == "EM" else "SF", target="row", aggregate=None)
    return Planned("Q7", table, query, tuple(int(row) for row in rows.answer(frame)))


QUERIES = (
    Query("EM", (Condition("station", "=", "S1"),), "visitors"),
    Query("SF", (Condition("visitors", ">=", 46_000), Condition("city", "=", "Rome")), "station"),
    Query("SA", (Condition("opened", "<", "1950-06-01"),), "visitors", "AVG"),
)


def canonical(table: SourceTable, member: Member) -> pd.DataFrame:
    return table.frame.iloc[list(member.rows)][list(member.columns)]


def encoded(table: SourceTable, member: Member) -> str:
    return Table("weather", "stations_T0", table.name, member.format, member.csv(table)).text()


def check_group(plan: Planned, forbidden: frozenset[int], group: Sequence[Member]) -> None:
    """What must hold for every group, whatever the budget."""
    table, query = plan.source, plan.query
    target, siblings = group[0], group[1:]
    assert target.strategy == "target" and target.columns == tuple(table.frame.columns)
    assert set(plan.answer_rows) <= set(target.rows)
    wanted = query.answer(table.frame)
    found = query.answer(canonical(table, target))
    assert found == pytest.approx(wanted) if query.aggregate else sorted(found, key=str) == sorted(wanted, key=str)
    assert 2 <= len(siblings) <= 7
    gone = []
    for member in group:
        assert len(set(member.rows)) == len(member.rows)
        assert not set(member.rows) & (forbidden - set(plan.answer_rows))
        assert member.tokens == COUNTER.count(encoded(table, member))
    for sibling in siblings:
        assert query.answer(canonical(table, sibling)) == []
        if sibling.strategy == "column_deletion":
            missing = set(table.frame.columns) - set(sibling.columns)
            assert missing == {sibling.deleted} and missing <= set(query.columns)
            assert set(plan.answer_rows) <= set(sibling.rows)
            gone.append(sibling.deleted)
            continue
        assert sibling.columns == tuple(table.frame.columns) and sibling.deleted is None
        assert not set(sibling.rows) & set(plan.answer_rows)
        if sibling.strategy == "row_deletion":
            lost = 1 - len(set(sibling.rows) & set(target.rows)) / len(target.rows)
            assert 0.3 <= lost <= 0.7
        else:
            assert sibling.strategy == "resampling"
    assert len(set(gone)) == len(gone)


@cache
def large() -> SourceTable:
    return source(900)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.question_type)
def test_a_group_keeps_to_budget_question_and_strategies(query: Query) -> None:
    plan = planned(large(), query)
    assert plan.answer_rows
    forbidden = frozenset({1, 2, 3, plan.answer_rows[0]})
    seen = set()
    for seed in range(3):
        group = make_group(plan, forbidden, SMALL, COUNTER, random.Random(seed))
        check_group(plan, forbidden, group)
        assert all(SMALL.holds(member.tokens) for member in group), [member.tokens for member in group]
        seen |= {member.strategy for member in group}
    assert seen == {"target", "column_deletion", "row_deletion", "resampling"}


def test_the_default_budget_is_the_papers() -> None:
    plan = planned(source(2_000), QUERIES[0])
    group = make_group(plan, frozenset(), Budget(), COUNTER, random.Random(3))
    check_group(plan, frozenset(), group)
    assert all(6_500 <= member.tokens <= 7_800 for member in group)


def test_the_same_generator_gives_the_same_group() -> None:
    plan = planned(large(), QUERIES[1])

    def made(seed: int) -> list[tuple[Member, str]]:
        members = make_group(plan, frozenset({1}), SMALL, COUNTER, random.Random(seed))
        return [(replace(member, look=None), member.csv(plan.source)) for member in members]

    assert made(4) == made(4)
    assert made(4) != made(5)


def test_tables_may_be_measured_in_one_format() -> None:
    plan = planned(large(), QUERIES[0])
    budget = Budget(1_800, 2_200, TableFormat.HTML)
    for member in make_group(plan, frozenset(), budget, COUNTER, random.Random(1)):
        html = Table("weather", "p", "stations", TableFormat.HTML, member.csv(plan.source)).text()
        assert member.tokens == COUNTER.count(html) and budget.holds(member.tokens)


@settings(max_examples=7, deadline=None)
@given(
    n=st.integers(2, 25),
    query=st.sampled_from(QUERIES),
    forbidden=st.frozensets(st.integers(0, 24), max_size=8),
    seed=st.integers(0, 99),
)
def test_a_small_source_gives_shorter_tables_or_a_reason(
    n: int, query: Query, forbidden: frozenset[int], seed: int
) -> None:
    plan = planned(source(n, seed=seed), query)
    try:
        group = make_group(plan, forbidden, Budget(), COUNTER, random.Random(seed))
    except NoGroupError as error:
        reason = str(error)
    else:
        reason = ""
    if reason:
        assert "Q7" in reason and "weather/stations" in reason
        return
    check_group(plan, forbidden, group)
    # No table holds nearly all rows: all would be one table.
    free = set(range(n)) - forbidden - set(plan.answer_rows)
    assert all(len(set(member.rows) & free) <= max(3, 0.65 * len(free)) + len(plan.answer_rows) for member in group)
    assert all(member.tokens < 6_500 for member in group)


def test_a_source_that_only_some_looks_fill_is_drawn_until_one_does() -> None:
    """38 rows at most: some 500 tokens as CSV in plain words, 1,500 as HTML."""
    plan = planned(source(60), QUERIES[0])
    members = [m for seed in range(4) for m in make_group(plan, frozenset(), SMALL, COUNTER, random.Random(seed))]
    # One draw in two does; six tries for each table.
    assert sum(SMALL.holds(member.tokens) for member in members) > 0.8 * len(members)
    assert len({member.format for member in members}) > 1


def test_tables_that_no_format_fills_are_of_every_format() -> None:
    plan = planned(source(40), QUERIES[0])
    groups = [make_group(plan, frozenset(), Budget(), COUNTER, random.Random(seed)) for seed in range(5)]
    counts = Counter(m.format for group in groups for m in group)
    assert not any(Budget().holds(m.tokens) for group in groups for m in group)
    assert min(counts[fmt] for fmt in FORMATS) > counts.total() / 6  # a third each, but for chance; the seeds are fixed


def test_why_there_is_no_group_is_said() -> None:
    table = source(30)
    with pytest.raises(NoGroupError, match="no row of weather/stations answers it"):
        make_group(Planned("Q7", table, QUERIES[0], ()), frozenset(), SMALL, COUNTER, random.Random(0))
    with pytest.raises(NoGroupError, match="1 rows that answer no question, and a group needs 4"):
        make_group(planned(table, QUERIES[0]), frozenset(range(29)), SMALL, COUNTER, random.Random(0))
    every = planned(source(400), Query("SA", (Condition("visitors", "<", 25_000),), "visitors", "SUM"))
    with pytest.raises(NoGroupError, match=r"its \d+ answering rows leave no room in 850 tokens"):
        make_group(every, frozenset(), SMALL, COUNTER, random.Random(0))
    with pytest.raises(ValueError, match="a token budget runs from"):
        Budget(10, 9)


def test_rounding_in_print_must_not_make_other_tables_answer() -> None:
    """Beside a gap Markdown prints 1234511 and 1234549 as 1.23451e+06 and 1.23455e+06, which read 1234510 and 1234550.

    So a reader finds a weight of at most 1234510 where there is none.
    """
    frame = pd.DataFrame({"box": ["a", "b", "c"], "weight": pd.array([1234511, 1234549, None], dtype="Int64")})
    table = SourceTable("db", "boxes", frame, {"box": "text", "weight": "integer"}, 3)
    for fmt, read in ((TableFormat.MARKDOWN, [1234510, 1234550, None]), (TableFormat.CSV, [1234511, 1234549, None])):
        made = Making(SMALL, COUNTER, 0, {}, fmt).as_it_is(table)
        assert [None if pd.isna(v) else v for v in made.as_read(table)["weight"]] == read
        query = Query("SF", (Condition("weight", "<=", 1234510),), "box")
        assert query.rows(made.frame(table)) == []
        assert query.rows(made.as_read(table)) == ([0] if fmt is TableFormat.MARKDOWN else [])
        # The target may not show more rows than answer: b does not weigh 1234550 or more.
        heavy = Planned("Q0", table, Query("SF", (Condition("weight", ">=", 1234512),), "box"), (1,))
        heavier = replace(heavy, query=Query("SF", (Condition("weight", ">=", 1234550),), "box"), answer_rows=())
        why = (misprinted(heavy, made), misprinted(heavier, made))
        expected = ("its answer is not printed in full in column 'weight'", "printed, other rows answer, too")
        assert why == (expected if fmt is TableFormat.MARKDOWN else (None, None))


def test_a_table_that_answers_as_printed_makes_a_question_ambiguous() -> None:
    """Two partitions as they are, in Markdown: in the second a weight is rounded into the answer of the first."""
    first = pd.DataFrame({"box": ["a", "b", "c"], "weight": pd.array([12, 2_000_000, None], dtype="Int64")})
    second = pd.DataFrame({"box": ["d", "e", "f"], "weight": pd.array([1234511, 3_000_000, None], dtype="Int64")})
    kinds: dict[str, Kind] = {"box": "text", "weight": "integer"}
    one, two = (SourceTable("db", name, frame, kinds, 3) for name, frame in (("one", first), ("two", second)))
    asked = Planned("Q0", one, Query("SF", (Condition("weight", "<=", 1234510),), "box"), (0,))
    for fmt, found in ((TableFormat.MARKDOWN, {"Q0": ("db::one", "db::two")}), (TableFormat.CSV, {})):
        making = Making(SMALL, COUNTER, 0, {}, fmt)
        tables = {s.place: making.as_it_is(s) for s in (one, two)}
        assert assemble_natural({"Q0": (asked, (one, two))}, tables).ambiguous()[0] == found


def test_an_answer_that_no_format_prints_is_no_answer() -> None:
    """pandas reads 00005 as 5, so no printed table shows that ZIP code; a question about others is none the worse."""
    table = source(300, zips=True)
    hidden = planned(table, Query("EM", (Condition("zip", "=", "00005"),), "city"))
    with pytest.raises(NoGroupError, match="not printed in full in column 'zip'"):
        make_group(hidden, frozenset(), SMALL, COUNTER, random.Random(0))
    group = make_group(planned(table, QUERIES[0]), frozenset(), SMALL, COUNTER, random.Random(0))
    assert "zip" in group[0].lost


@pytest.mark.parametrize(
    ("csv", "fmt", "lost"),
    [
        # Six significant digits in Markdown: 1234567.8 is 1.23457e+06 there; 12.5 keeps its digits.
        ("a,b\n1234567.8,12.5\n2,1\n", TableFormat.MARKDOWN, {"a": {0: "1.23457e+06"}}),
        ("a,b\n1234567.8,12.5\n2,1\n", TableFormat.HTML, {}),
        # Six decimals in HTML.
        ("a\n0.12345678\n1\n", TableFormat.HTML, {"a": {0: "0.123457"}}),
        ("a\n0.12345678\n1\n", TableFormat.CSV, {}),
        # An integer beside a gap becomes a float: 1.0 is still 1, but 2^53 + 1 is lost.
        ("a,b\n1,x\n,x\n", TableFormat.CSV, {}),
        ("a,b\n9007199254740993,x\n,x\n", TableFormat.CSV, {"a": {0: "9007199254740992.0"}}),
        ("a,b\n9007199254740993,x\n1,x\n", TableFormat.CSV, {}),
        # Texts to pandas, numbers to tabulate.
        ("a,b\n123456789012345678901,x\n,x\n", TableFormat.MARKDOWN, {"a": {0: "1.23457e+20"}}),
        ("a,b\n123456789012345678901,x\n5,x\n", TableFormat.MARKDOWN, {}),
        ("a,b\n1_0.50,x\n2,x\n", TableFormat.MARKDOWN, {"a": {0: "10.5"}}),
        ("a,b\n1_0.50,x\n2,x\n", TableFormat.HTML, {}),
        ("a,b\n01234,x\n02345,x\n", TableFormat.HTML, {"a": {0: "1234", 1: "2345"}}),
        ("a,b\nNA,TRUE\ny,false\n", TableFormat.CSV, {"a": {0: ""}}),
        ('a\n1.5\n""\n', TableFormat.CSV, {}),
    ],
)
def test_what_a_format_loses(csv: str, fmt: TableFormat, lost: dict[str, dict[int, str]]) -> None:
    assert lost_cells(csv, fmt) == lost


@given(
    lengths=st.lists(st.integers(1, 60), max_size=80),
    header=st.integers(0, 50),
    lower=st.integers(1, 400),
    room=st.integers(0, 100),
    share=st.floats(0, 1),
)
def test_the_size_is_the_best_there_is(lengths: list[int], header: int, lower: int, room: int, share: float) -> None:
    """Against every size: in the budget if one is, else the largest below it (or nothing at all)."""
    budget = Budget(lower, lower + room)
    totals = [header + sum(lengths[:k]) for k in range(len(lengths) + 1)]
    size, found = size_for(lambda k: totals[k], len(lengths), lower + share * room, budget)
    assert found == totals[size]
    if any(budget.holds(total) for total in totals):
        assert budget.holds(found)
    else:
        assert size == max((k for k, total in enumerate(totals) if total <= budget.upper), default=0)


# --- tokens ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        # zip | _ | code | , | 123 | 45 | line end
        ("zip_code,12345\n", 7),
        # The line end belongs to the sign before it: a | ," | b | "
        ('a,"b"\n', 4),
        # A run of equal signs is one token: | | ------ | |
        ("|------|\n", 3),
        # A blank belongs to a word, but not to a number: of | blank | 5 | 日 | 本
        ("of 5日本", 5),
        # abcdef | g
        ("abcdefg", 2),
    ],
)
def test_the_offline_counter_by_hand(text: str, tokens: int) -> None:
    assert COUNTER.count(text) == tokens


def test_the_offline_counter_is_near_tiktoken() -> None:
    """Totals over the sample's texts by format, which tiktoken 0.14 counted with cl100k_base."""
    tiktoken = {"csv": 29_484, "html": 54_057, "markdown": 38_291}
    ours = dict.fromkeys(tiktoken, 0)
    corpus, tables = (read_config(SAMPLE_DIRECTORY, name) for name in ("corpus", "tables"))
    assert corpus is not None and tables is not None
    formats = {table["table-key"]: table["table_format"] for table in tables.to_pylist()}
    for document in corpus.to_pylist():
        ours[formats[document["_id"].split("::", 1)[1]]] += COUNTER.count(document["text"])
    for fmt, total in tiktoken.items():
        assert ours[fmt] == pytest.approx(total, rel=0.03), fmt


def test_tiktoken_never_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another content under the vocabulary's name would make tiktoken fetch it anew."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    (tmp_path / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4").write_text("something else")
    assert default_counter().name == "offline estimate of cl100k_base"
    missing = importlib.util.find_spec("tiktoken") is None
    with pytest.raises(FileNotFoundError, match="not installed" if missing else "is not at"):
        TiktokenCounter()
    assert (tmp_path / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4").read_text() == "something else"


def test_tiktoken_counts_where_its_vocabulary_is() -> None:
    try:
        counter = TiktokenCounter()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert counter.name == default_counter().name == "tiktoken cl100k_base"
    assert counter.count("hello <|endoftext|> 12345") == 10


def test_a_column_that_another_one_tells_is_not_deleted() -> None:
    """The year stands in the date, and the town is there twice: without one of them a reader still finds the answer."""
    years = [1950 + i % 60 for i in range(300)]
    raw: dict[str, list[object]] = {
        "year": list(years),
        "date": [f"{year}-06-{1 + i % 28:02d}" for i, year in enumerate(years)],
        "town": [f"Town {i}" for i in range(300)],
        "Town_Name": [f"TOWN {i}" for i in range(300)],
        "rain": [i * 7 + 1001 for i in range(300)],
    }
    columns, kinds = {}, {}
    for name, cells in raw.items():
        columns[name], kinds[name] = typed(name, cells)
    table = SourceTable("weather", "towns", pd.DataFrame(columns), kinds, 300)
    query = Query("EM", (Condition("year", "=", 1957), Condition("town", "=", "Town 67")), "rain")
    deleted = {
        member.deleted
        for seed in range(6)
        for member in make_group(planned(table, query), (), SMALL, COUNTER, random.Random(seed))
        if member.strategy == "column_deletion"
    }
    assert deleted == {"rain"}
