"""Topics in every form, and which of them are chosen.

The real topics are read from the folder `trec` in `$MTEB_BEYOND_DATA` (topics.core17.txt, topics.robust04.txt,
qrels.core17.txt); the tests that need them are skipped without it.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.construction.readers import read_judgements
from evaluators.plugin.checks import DatasetError
from followir_tasks.construction.exclusion import QueryField, without_topics_of_others
from followir_tasks.construction.selection import Band, select
from followir_tasks.construction.statistics import size, size_of_source
from followir_tasks.construction.topics import Topic, read_topics

BAND = Band(0.35, 0.65)
EXPECTED = [
    Topic("301", "Organized Crime", "Identify organizations, and R&D.", "A relevant document names one: clearly."),
    Topic("302", "Polio", "Is polio under control?", "Data on outbreaks are relevant."),
]
UNCLOSED = """<top>

<num> Number: 301
<title> Organized Crime

<desc> Description:
Identify organizations,
and R&D.

<narr> Narrative:
A relevant document names one: clearly.

</top>
<top>
<num> Number: 302
<title> Polio
<desc>
Is polio under control?
<narr>
Data on outbreaks are relevant.
</top>
"""
CLOSED = """<top><num> Number: 301 </num><docid>abc</docid><title>Organized Crime</title>
<desc>Description: Identify organizations, and R&amp;D.</desc><narr>Narrative: A relevant document names one: clearly.
</narr><subtopics><sub num="1">Not this.</sub></subtopics></top>
<top><num>302</num><title>Polio</title><desc>Is polio under control?</desc><narr>Data on outbreaks are relevant.</narr>
</top>"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<topics><topic number="301"><title>Organized Crime</title>
<description>Identify organizations, and R&amp;D.</description>
<narrative>A relevant document names one: clearly.</narrative></topic>
<topic number="302"><query>Polio</query><question>Is polio under control?</question>
<narrative>Data on outbreaks are relevant.</narrative></topic></topics>"""
LINES = "".join(
    json.dumps({"_id": int(t.number), "title": t.title, "description": t.description, "narrative": t.narrative}) + "\n"
    for t in EXPECTED
)


def written(folder: Path, text: str, name: str = "topics.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "name"),
    [(UNCLOSED, "a.txt"), (UNCLOSED.upper(), ""), (CLOSED, "b.sgml"), (XML, "c.xml"), (LINES, "d.jsonl")],
    ids=["unclosed", "capitals", "closed", "xml", "jsonl"],
)
def test_all_forms_give_the_same_topics(text: str, name: str, tmp_path: Path) -> None:
    found = read_topics(written(tmp_path, text, name or "e.txt"))
    if name:
        assert found == EXPECTED
    else:  # tags and labels in capitals
        assert [(t.number, t.title) for t in found] == [("301", "ORGANIZED CRIME"), ("302", "POLIO")]
        assert found[0].narrative == "A RELEVANT DOCUMENT NAMES ONE: CLEARLY."


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("nothing", "a.txt", "it holds no topics"),
        (UNCLOSED.replace("302", "301"), "a.txt", "1 topics occur more than once: '301'"),
        (UNCLOSED.replace("</top>", "").replace("<top>\n<num>", "<num>"), "a.txt", "<num> more than once"),
        ("<top><title>No number</title></top>", "a.txt", "the id None is neither"),
        ("<?xml version='1.0'?><topics><topic>", "a.xml", "not well-formed XML"),
        ('{"_id": "1", "title": ["a"]}\n', "a.jsonl", "line 1: title must be strings"),
        (
            '\n{"_id": "1", "title": "a\\ud800", "narrative": "n"}\n',
            "a.jsonl",
            "line 2: title of topic '1' holds a NUL or",
        ),
        ('{"_id": "1", "narrative": "a\\u0000"}\n', "a.jsonl", "line 1: narrative of topic '1' holds .*remove it"),
        ('{"_id": "1\\ud800", "title": "a"}\n', "a.jsonl", "line 1: the id '1.ud800' holds"),
        (
            '{"_id": "1", "topic": "a", "story": "b"}\n',
            "a.jsonl",
            "no topic has a narrative: .*, found _id, story, topic",
        ),
        ("<top><num>1<title>a\0<desc>b<narr>c</top>", "a.txt", "it holds NULs: if it is UTF-16 without"),
    ],
)
def test_faults_are_named(text: str, name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=reason):
        read_topics(written(tmp_path, text, name))


def test_a_field_that_is_needed_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    path = written(tmp_path, '{"_id": "1", "title": "a"}\n{"_id": "2", "title": "b", "text": ""}\n', "a.jsonl")
    assert [t.title for t in read_topics(path)] == ["a", "b"]
    with pytest.raises(DatasetError, match=r"no topic has a narrative: .* narr or .*, found _id, text, title"):
        read_topics(path, ("title", "narrative"))


@pytest.mark.parametrize(
    ("row", "title", "description"),
    [
        ({"_id": "1", "text": "q", "instruction": "n"}, "q", "q"),
        ({"topic_id": 1, "query": "q", "narrative": "n"}, "q", "q"),
        ({"query-id": "1", "text": "q", "description": "d", "narr": "n"}, "q", "d"),
        ({"_id": "1", "text": "q", "metadata": {"query": "t", "narrative": "n"}}, "t", "q"),  # BEIR's TREC-COVID
        ({"_id": "1", "text": "t", "metadata": {"description": "d", "narrative": "n"}}, "t", "d"),  # and Touche
        ({"_id": "1", "title": "", "text": "q", "narrative": "n"}, "q", "q"),
    ],
)
def test_usual_names_of_fields(row: dict[str, object], title: str, description: str, tmp_path: Path) -> None:
    assert read_topics(written(tmp_path, json.dumps(row), "a.jl")) == [Topic("1", title, description, "n")]


@pytest.mark.parametrize(("text", "name"), [(UNCLOSED, "a.txt"), (CLOSED, "a.txt"), (XML, "a.xml"), (LINES, "a.jsonl")])
def test_old_line_ends_and_packed_files(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.replace("\n", "\r").encode())
    assert read_topics(tmp_path / name) == EXPECTED
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.replace("\n", "\r\n").encode()))
    assert read_topics(tmp_path / f"{name}.gz") == EXPECTED


def test_entities_are_resolved_where_they_are_meant(tmp_path: Path) -> None:
    text = "<top><num>1<title>post&hyph;war<desc>P&LTD &region &lt;5 &odd;<narr>AT&amp;T&blank;x</top>"
    assert read_topics(written(tmp_path, text)) == [Topic("1", "post-war", "P&LTD &region <5 &odd;", "AT&T x")]


def test_markup_in_a_closed_field_does_not_end_it(tmp_path: Path) -> None:
    text = """<top><num>1</num><title>Narrative: the art</title><desc>
<p>Where?</p>
</desc><narr>
<p>Relevant is where they are.</p>
<b>Not</b> relevant are toys with 3 < 4 wheels.
</narr></top>"""
    expected = Topic(
        "1", "Narrative: the art", "Where?", "Relevant is where they are. Not relevant are toys with 3 < 4 wheels."
    )
    assert read_topics(written(tmp_path, text)) == [expected]
    opened = re.sub(r"</(num|title|desc|narr)>", "", text.replace("</top>", "\n<subtopics>None.</subtopics></top>"))
    assert read_topics(written(tmp_path, opened)) == [expected]


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "utf-16", "utf-8"])
def test_xml_is_read_in_the_encoding_that_it_declares(encoding: str, tmp_path: Path) -> None:
    xml = (
        f"<?xml version='1.0' encoding='{encoding}'?><!-- topics --><topics xmlns='urn:t'><topic number='1'>"
        "<title>café</title><desc>Description: Où?</desc><narr>Narrative: Là.</narr></topic></topics>"
    )
    path = tmp_path / "topics.xml"
    path.write_bytes(xml.encode(encoding))
    assert read_topics(path) == [Topic("1", "café", "Où?", "Là.")]


def test_latin_1_is_read(tmp_path: Path) -> None:
    path = tmp_path / "topics.txt"
    path.write_bytes("<top><num>1<title>Café<desc>Où?<narr>Là.</top>".encode("latin-1"))
    assert read_topics(path) == [Topic("1", "Café", "Où?", "Là.")]


def topic(number: str, words: str) -> Topic:
    return Topic(number, "a title", words, f"narrative {number}")


def test_signs_within_a_field_do_not_end_it(tmp_path: Path) -> None:
    text = "<top>\n<num>1\n<title>t\n<desc>Is x <y> z, and 3 < 4?\n<narr>Rates of <5 percent.\n<con> 1. rate\n</top>"
    assert read_topics(written(tmp_path, text)) == [Topic("1", "t", "Is x <y> z, and 3 < 4?", "Rates of <5 percent.")]


def test_every_topic_that_is_left_out_is_counted(tmp_path: Path) -> None:
    topics = [
        topic("1", "alpha beta gamma delta"),
        topic("2", "one two three four five"),
        topic("3", "six seven eight nine ten"),
        replace(topic("4", "black white grey"), narrative=""),
        topic("5", "north south east west"),
        topic("6", "spring summer autumn winter"),
        topic("7", "iron copper silver gold"),
        topic("8", "oak elm ash birch"),
    ]
    many = {f"d{n}": 1 for n in range(4)}
    judged = dict.fromkeys("12347X", many) | {"5": {"d": 0}, "6": {"d": 1, "e": 0}, "8": many}
    others = [
        replace(topic("1", "quite another request here"), narrative="unlike"),
        topic("99", "Two, one; three five FOUR"),
    ]
    found = select(topics, judged, query="description", min_grade=1, band=BAND, excluded=others, number=2, seed=3)
    assert len(found.chosen) == 2 and {c.topic for c in found.chosen} <= {"3", "7", "8"}
    assert found.counts == {
        "n_source_topics": 8,
        "n_judged_topics_not_in_source": 1,
        "n_topics_excluded_by_number": 1,
        "n_topics_excluded_by_number_with_another_wording": 1,
        "n_topics_excluded_by_wording": 1,
        "n_topics_without_query_or_narrative": 1,
        "n_topics_without_relevant": 1,
        "n_topics_with_too_few_relevant": 1,  # one document: all or none stays
        "n_topics_not_drawn": 1,
    }
    again = select(topics, judged, query="description", min_grade=1, band=BAND, excluded=others, number=2, seed=3)
    assert again == found
    assert found.excluded == {"1": "number, with another wording", "2": "wording of 99"}
    draws = {
        tuple(c.topic for c in select(topics, judged, query="title", min_grade=1, band=BAND, number=2, seed=s).chosen)
        for s in range(20)
    }
    assert len(draws) > 3 and all(draw == tuple(sorted(draw)) for draw in draws)
    with pytest.raises(ValueError, match="3 topics can be used, 4 are wanted"):
        select(topics, judged, query="description", min_grade=1, band=BAND, excluded=others, number=4)


def test_one_topic_is_known_by_text_or_words_whatever_its_number() -> None:
    mine = [
        Topic("1", "ports", "Which ports are closed in winter?", "Ice that closes a port is relevant, storms are not."),
        Topic("2", "ports", "How many cranes stand in the ports?", "Numbers and places of cranes."),
        Topic("3", "oak", "Where do oaks grow?", "A relevant text names a wood."),
    ]

    def left(*others: Topic, query: QueryField = "description") -> list[str]:
        return [t.number for t in without_topics_of_others(mine, others, query).topics]

    assert left(Topic("9", "ports", "x", "y")) == ["1", "2", "3"]  # topics share titles
    assert left(Topic("9", "Ports", "x", "y"), query="title") == ["3"]
    assert left(Topic("9", "", "", "Ice that closes a port is relevant, and storms are not.")) == ["2", "3"]
    assert left(Topic("9", "", "where do  OAKS grow?", "")) == ["1", "2"]
    assert left(Topic("9", "", "Do oaks grow... where", "Leaves.")) == ["1", "2"]
    assert left(Topic("9", "", "Where do o\u00adak grow?", "Leaves.")) == ["1", "2"]
    assert left(Topic("2", "x", "x", "x")) == ["1", "3"]


def test_grades_below_the_lowest_relevant_one_are_not_relevant() -> None:
    judged = {"1": {"a": 2, "b": 1, "c": 2, "d": -2}}
    (chosen,) = select([topic("1", "x")], judged, query="title", min_grade=2, band=BAND).chosen
    assert (dict(chosen.relevant), list(chosen.judged)) == ({"a": 2, "c": 2}, ["b", "d"])


@given(st.integers(0, 40), st.integers(1, 99), st.integers(1, 99))
def test_a_band_is_attainable_if_any_number_lies_in_it(of: int, first: int, second: int) -> None:
    band = Band(min(first, second) / 100, max(first, second) / 100)
    assert band.attainable(of) == any(band.holds(n, of) for n in range(of + 1))


@pytest.mark.parametrize(("least", "most"), [(0.0, 0.5), (0.5, 1.0), (0.6, 0.4), (float("nan"), 0.5)])
def test_bands_that_make_no_pair_are_refused(least: float, most: float) -> None:
    with pytest.raises(ValueError, match="the share that stays relevant must lie in"):
        Band(least, most)


@pytest.mark.parametrize(
    "text",
    [
        "query-id\tcorpus-id\tscore\nquery-id\ta\t1\n2\tb\t0\n",
        "corpus-id query-id score\r\na query-id 1\r\nb 2 0\r\n",
        "query-id 0 a 1\r2 0 b 0\r",
    ],
)
def test_judgements_with_and_without_header(text: str, tmp_path: Path) -> None:
    assert read_judgements(written(tmp_path, text)) == {"query-id": {"a": (1, "")}, "2": {"b": (0, "")}}


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("query-id\tdoc\tscore\nq\ta\t1\n", "a.tsv", r"line 1: the header .* lacks the columns corpus-id"),
        ("1 0 a\0 1\n", "a.txt", "line 1: the id .* holds a NUL"),
        ('{"query-id": "1", "corpus-id": "\\udc00", "score": 1}\n', "a.jsonl", "line 1: the id .* half a character"),
        ('{"query-id": null, "corpus-id": "a", "score": 1}\n', "a.jsonl", "line 1: the id None is neither"),
    ],
)
def test_faults_in_judgements_are_named(text: str, name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=reason):
        read_judgements(written(tmp_path, text, name))


def test_sizes_by_hand() -> None:
    found = size(["a b c", "d"], ["e  f\ng", "h i j k l"], [3, 4])
    assert (found.n_queries, found.query_words, found.instruction_words, found.relevant_per_query) == (2, 2.0, 4.0, 3.5)


class TestRealTopics:
    """Expected: FollowIR's table 1, and Core17's 50 topics being Robust04's (paper, section 3)."""

    @pytest.fixture(scope="class")
    def folder(self) -> Path:
        folder = Path(os.environ.get("MTEB_BEYOND_DATA", "")) / "trec"
        if not (folder / "topics.core17.txt").is_file():
            pytest.skip("$MTEB_BEYOND_DATA/trec is not there")
        return folder

    @pytest.fixture(scope="class")
    def core17(self, folder: Path) -> list[Topic]:
        return read_topics(folder / "topics.core17.txt")

    @pytest.fixture(scope="class")
    def robust04(self, folder: Path) -> list[Topic]:
        return read_topics(folder / "topics.robust04.txt")

    def test_the_row_of_core17_in_table_1(self, folder: Path, core17: list[Topic]) -> None:
        judged = {
            q: {d: grade for d, (grade, _) in found.items()}
            for q, found in read_judgements(folder / "qrels.core17.txt").items()
        }
        row = size_of_source(core17, judged, query="description", min_grade=1)
        printed = [f"{x:.1f}" for x in (row.query_words, row.instruction_words, row.relevant_per_query)]
        assert (row.n_queries, printed) == (50, ["16.6", "44.0", "180.0"])

    def test_robust04_is_read_whole(self, robust04: list[Topic]) -> None:
        assert [t.number for t in robust04] == [str(n) for n in (*range(301, 451), *range(601, 701))]
        assert all(t.title and t.description and t.narrative for t in robust04)
        assert not any("<" in text or "Narrative:" in text for t in robust04 for text in (t.title, t.narrative))
        assert robust04[0].title == "International Organized Crime"
        assert robust04[-1].narrative.endswith("the price of gasoline are not relevant.")

    @pytest.mark.parametrize("renumbered", [False, True])
    def test_core17_is_taken_out_of_robust04(
        self, renumbered: bool, core17: list[Topic], robust04: list[Topic]
    ) -> None:
        """Under their own numbers, and found by their words alone, of which NIST changed some."""
        others = [replace(t, number=f"core-{t.number}") if renumbered else t for t in core17]
        judged = {t.number: {str(n): 1 for n in range(10)} for t in robust04}
        found = select(robust04, judged, query="description", min_grade=1, band=BAND, excluded=others)
        assert len(found.chosen) == 200
        by = "wording" if renumbered else "number"
        assert found.counts[f"n_topics_excluded_by_{by}"] == 50
        assert not {c.topic for c in found.chosen} & {t.number for t in core17}
