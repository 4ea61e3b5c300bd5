"""Reading FollowIR in the project's layout and InstructIR's files, and everything that can be wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mteb
import pytest

import followir_tasks
from evaluators.plugin.checks import DatasetError
from evaluators.plugin.dataset import Card, write_dataset
from evaluators.plugin.task import BeyondTask
from followir_tasks.ids import base_query, parse_query_id

assert followir_tasks.SUBSET_TASKS  # the import registers the tasks

pytestmark = pytest.mark.usefixtures("fresh_cache")

Rows = list[dict[str, Any]]
Change = Callable[[dict[str, Rows]], object]
TOPICS = ("t1", "t2", "t3")
QUERIES = [topic + suffix for topic in TOPICS for suffix in ("-og", "-changed")]
DOCS = [f"d{i}" for i in range(6)]


def configs() -> dict[str, Rows]:
    """Three topics over the same five candidates; the third topic has no changed document."""
    judged = {
        "t1-og": {"d0": 1, "d1": 1},
        "t1-changed": {"d0": 1, "d1": 0},
        "t2-og": {"d2": 2},
        "t2-changed": {"d2": 0, "d0": 1},
        "t3-og": {"d3": 1},
        "t3-changed": {"d3": 1},
    }
    return {
        "corpus": [{"_id": d, "title": f"Title {d}", "text": f"Text of {d}, naïve."} for d in DOCS],
        "queries": [{"_id": q, "text": f"Description of {q[:2]}"} for q in QUERIES],
        "instruction": [{"query-id": q, "instruction": f"Narrative of {q}"} for q in QUERIES],
        "qrels": [
            {"query-id": q, "corpus-id": d, "score": grade} for q, docs in judged.items() for d, grade in docs.items()
        ],
        "top_ranked": [{"query-id": q, "corpus-ids": DOCS[:5]} for q in QUERIES],
        "qrel_diff": [
            {"query-id": "t1", "corpus-ids": ["d1"]},
            {"query-id": "t2", "corpus-ids": ["d2"]},
            {"query-id": "t3", "corpus-ids": []},
        ],
    }


SIZE = "not comparable with the published ones"


def other_notes(notes: list[str]) -> list[str]:
    """The notes beside the one on sizes, which a small directory always gets."""
    return [note for note in notes if SIZE not in note]


def loaded(directory: Path, name: str = "FollowIRCore17") -> BeyondTask:
    task = mteb.get_task(name)
    assert isinstance(task, BeyondTask)
    task.data_path = directory
    task.load_data()
    return task


def write(directory: Path, rows: Mapping[str, Rows]) -> Path:
    write_dataset(directory, rows, Card("Test", "For a test.", "mit"))
    return directory


def problems_of(directory: Path, name: str = "FollowIRCore17") -> list[str]:
    with pytest.raises(DatasetError) as caught:
        loaded(directory, name)
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    return caught.value.problems


# --- FollowIR ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["FollowIRCore17", "FollowIRNews21", "FollowIRRobust04"])
def test_own_layout(tmp_path: Path, name: str) -> None:
    task = loaded(write(tmp_path / "set", configs()), name)
    data = task.data
    assert data is not None
    assert data.corpus[0] == {"id": "d0", "title": "Title d0", "text": "Text of d0, naïve."}
    assert data.queries.to_list() == [
        {"id": q, "text": f"Description of {q[:2]}", "instruction": f"Narrative of {q}"} for q in QUERIES
    ]
    assert data.relevant_docs["t2-changed"] == {"d2": 0, "d0": 1}
    assert data.top_ranked == {q: ["d0", "d1", "d2", "d3", "d4"] for q in QUERIES}
    assert data.side["qrel_diff"] == {"t1": ["d1"], "t2": ["d2"], "t3": []}
    assert other_notes(data.notes) == []
    assert data.counts == {"n_changed_documents_outside_candidates": 0}
    assert type(task).recognises(tmp_path / "set")
    assert len(task.metadata.revision) == 40
    split = task.dataset["default"]["test"]
    assert split["top_ranked"] == data.top_ranked and split["relevant_docs"] == data.relevant_docs


def test_folders_of_parquet_files_and_a_corpus_without_titles(tmp_path: Path) -> None:
    rows = configs()
    directory = write(tmp_path / "set", rows)
    (directory / "queries").mkdir()
    (directory / "queries.parquet").rename(directory / "queries" / "test-00000-of-00001.parquet")
    assert len(loaded(directory).data.queries) == 6  # type: ignore[union-attr]


def _set(config: str, row: int, column: str, value: Any) -> Change:
    return lambda rows: rows[config][row].__setitem__(column, value)


def _drop(config: str, row: int) -> Change:
    return lambda rows: rows[config].pop(row)


def _again(config: str, row: int) -> Change:
    return lambda rows: rows[config].append(dict(rows[config][row]))


def _rename(old: str, new: str | None) -> Change:
    """Another id for a query, in every config that names it."""

    def change(rows: dict[str, Rows]) -> None:
        for row in (row for config in rows.values() for row in config):
            for column in ("_id", "query-id"):
                if row.get(column) == old:
                    row[column] = new

    return change


def _drop_query(query: str) -> Change:
    def change(rows: dict[str, Rows]) -> None:
        for config in rows.values():
            config[:] = [row for row in config if query not in (row.get("_id"), row.get("query-id"))]

    return change


def _add_diff(topic: str | None, docs: list[str] | None) -> Change:
    return lambda rows: rows["qrel_diff"].append({"query-id": topic, "corpus-ids": docs})


def _no_change(rows: dict[str, Rows]) -> None:
    for row in rows["qrel_diff"]:
        row["corpus-ids"] = []


WRONG: dict[str, tuple[Change, tuple[str, ...]]] = {
    "an original without its pair": (_rename("t1-changed", "t9-changed"), ("'t1'", "'t9'", "-og and -changed")),
    "a pair without its original": (_drop_query("t1-og"), ("'t1'", "-og and -changed")),
    "an id of another form": (_rename("t1-og", "t1"), ("'t1'", "ends neither in")),
    "an id that is only the suffix": (_rename("t1-og", "-og"), ("'-og'", "ends neither in")),
    "a null id": (_rename("t1-og", None), ("query None has a missing id",)),
    "a query twice": (_again("queries", 0), ("'t1-og'", "more than once")),
    "an empty query": (_set("queries", 2, "text", ""), ("'t2-og'", "no text")),
    "a null query": (_set("queries", 2, "text", None), ("'t2-og'", "no text")),
    "a null instruction": (_set("instruction", 2, "instruction", None), ("instruction", "'t2-og'")),
    "a blank instruction": (_set("instruction", 2, "instruction", "\n"), ("instruction", "'t2-og'")),
    "no instruction for a query": (_drop("instruction", 2), ("instruction", "'t2-og'")),
    "an instruction twice": (_again("instruction", 0), ("instruction", "more than one row")),
    "an instruction for nobody": (_set("instruction", 0, "query-id", "t9-og"), ("instruction", "'t9-og'")),
    "an empty passage": (_set("corpus", 4, "text", " "), ("corpus", "'d4'", "no text")),
    "a passage twice": (_set("corpus", 4, "_id", "d3"), ("corpus", "'d3'", "more than once")),
    "a changed document of an unknown topic": (_add_diff("t9", ["d0"]), ("qrel_diff", "unknown", "'t9'")),
    "a changed document of a query": (_add_diff("t1-og", ["d0"]), ("qrel_diff", "unknown", "'t1-og'")),
    "an unknown changed document": (
        _set("qrel_diff", 0, "corpus-ids", ["d1", "d99"]),
        ("qrel_diff", "not in the corpus", "('t1', 'd99')"),
    ),
    "a changed document twice": (
        _set("qrel_diff", 0, "corpus-ids", ["d1", "d1"]),
        ("qrel_diff", "listed twice", "('t1', 'd1')"),
    ),
    "a topic twice in qrel_diff": (_add_diff("t1", ["d0"]), ("qrel_diff", "'t1'", "more than once")),
    "null changed documents": (_set("qrel_diff", 0, "corpus-ids", None), ("qrel_diff", "'t1'")),
    "a null changed document": (_set("qrel_diff", 0, "corpus-ids", [None]), ("qrel_diff", "'t1' has a missing id")),
    "no topic with a change": (_no_change, ("no topic has a changed document",)),
    "no row in qrel_diff": (lambda rows: rows["qrel_diff"].clear(), ("no topic has a changed document",)),
    "a candidate twice": (
        _set("top_ranked", 3, "corpus-ids", ["d0", "d1", "d2", "d3", "d3"]),
        ("top_ranked", "listed twice", "('t2-changed', 'd3')"),
    ),
    "an unknown candidate": (
        _set("top_ranked", 3, "corpus-ids", ["d0", "d1", "d2", "d99"]),
        ("top_ranked", "not in the corpus", "('t2-changed', 'd99')"),
    ),
    "a null candidate": (
        _set("top_ranked", 3, "corpus-ids", ["d0", "d1", "d2", None]),
        ("top_ranked", "'t2-changed' has a missing id"),
    ),
    "no row of candidates": (_drop("top_ranked", 3), ("top_ranked", "no candidates", "'t2-changed'")),
    "no candidate": (_set("top_ranked", 3, "corpus-ids", []), ("top_ranked", "no candidates", "'t2-changed'")),
    "null candidates": (_set("top_ranked", 3, "corpus-ids", None), ("top_ranked", "'t2-changed'")),
    "candidates for nobody": (_set("top_ranked", 3, "query-id", "t9-og"), ("top_ranked", "unknown", "'t9-og'")),
    "candidates twice": (_again("top_ranked", 0), ("top_ranked", "'t1-og'", "more than once")),
    "a judgement on nothing": (_set("qrels", 0, "corpus-id", "d99"), ("qrels", "('t1-og', 'd99')")),
    "a judgement for nobody": (_set("qrels", 0, "query-id", "t9-og"), ("qrels", "'t9-og'")),
    "a judgement twice": (_again("qrels", 0), ("qrels", "'d0'", "judged twice", "'t1-og'")),
    "a negative grade": (_set("qrels", 0, "score", -1), ("qrels", "negative", "('t1-og', 'd0')")),
    "a null grade": (_set("qrels", 0, "score", None), ("qrels", "'t1-og'", "'d0'", "no score")),
    "a query without judgement": (
        lambda rows: rows["qrels"].__delitem__(slice(4, 5)),
        ("qrels", "'t2-og'", "without any judgement"),
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_data(tmp_path: Path, wrong: str) -> None:
    change, expected = WRONG[wrong]
    rows = configs()
    change(rows)
    told = "\n".join(problems_of(write(tmp_path / "set", rows)))
    assert all(part in told for part in expected), told


@pytest.mark.parametrize("config", ["corpus", "queries", "qrels", "instruction", "top_ranked", "qrel_diff"])
def test_a_missing_config(tmp_path: Path, config: str) -> None:
    directory = write(tmp_path / "set", configs())
    (directory / f"{config}.parquet").unlink()
    assert config in "\n".join(problems_of(directory))


def test_faults_of_several_configs_are_said_at_once(tmp_path: Path) -> None:
    rows = configs()
    for change in (
        _set("queries", 5, "_id", "t3"),
        _set("corpus", 5, "text", ""),
        _add_diff("t9", ["d0"]),
        _set("top_ranked", 0, "corpus-ids", ["d0", "d99"]),
        _set("instruction", 5, "query-id", "t3"),
        _set("instruction", 4, "instruction", ""),
    ):
        change(rows)
    told = "\n".join(problems_of(write(tmp_path / "set", rows)))
    assert all(part in told for part in ("'t3'", "'d5'", "'t9'", "'d99'", "instruction: 1 queries have none: 't3-og'"))


def test_changed_documents_that_are_no_candidates_are_noted(tmp_path: Path) -> None:
    rows = configs()
    rows["top_ranked"][1]["corpus-ids"] = ["d0", "d2", "d3", "d4"]  # t1-changed lacks d1
    data = loaded(write(tmp_path / "set", rows)).data
    assert data is not None
    assert data.counts == {"n_changed_documents_outside_candidates": 1}
    assert [note.split(":")[0] for note in other_notes(data.notes)] == [
        "topics whose candidates differ between the original and the changed query, so that p-MRR compares ranks in "
        "different lists",
        "changed documents that are no candidates, as (topic, document)",
    ]
    assert other_notes(data.notes)[1].endswith("('t1', 'd1')")


def test_changed_documents_that_do_not_change_in_the_judgements_are_noted(tmp_path: Path) -> None:
    rows = configs()
    rows["qrel_diff"][2]["corpus-ids"] = ["d3", "d4"]  # d3 stays relevant, d4 never was
    rows["qrel_diff"][0]["corpus-ids"] = ["d1", "d0"]
    data = loaded(write(tmp_path / "set", rows)).data
    assert data is not None
    assert data.counts == {"n_changed_documents_outside_candidates": 0}
    assert other_notes(data.notes) == [
        "3 changed documents do not go from relevant to non-relevant in the judgements, as (topic, document): "
        "('t1', 'd0'), ('t3', 'd3'), ('t3', 'd4')"
    ]


def test_a_topic_that_qrel_diff_leaves_out(tmp_path: Path) -> None:
    rows = configs()
    del rows["qrel_diff"][2]
    data = loaded(write(tmp_path / "set", rows)).data
    assert data is not None and other_notes(data.notes) == []


def test_ids_of_topics() -> None:
    assert parse_query_id("307-og") == ("307", False)
    assert parse_query_id("307-changed") == ("307", True)
    assert parse_query_id("a-og-changed") == ("a-og", True)
    for wrong in ("307", "307-OG", "-og", "-changed", "", "307-og "):
        with pytest.raises(ValueError, match="ends neither in"):
            parse_query_id(wrong)


# --- InstructIR ----------------------------------------------------------------------------------------------------

PASSAGES = [
    {"_id": "m1", "title": "", "text": "Wine cabinets keep wine."},
    {"_id": 2, "title": None, "text": "Spiders — Ärger."},
    {"_id": "m3", "title": "empty", "text": "  "},
]
ASKED = [
    {"_id": "10_1", "text": "wine", "instruction": "I am a cook."},
    {"_id": "10_2", "text": "wine", "instruction": "I am a child."},
    {"_id": "a_b_1", "text": "spiders", "instruction": "I am a teacher."},
]
QRELS = "query-id\tcorpus-id\tscore\n10_1\tm1\t1\n10_2\tm1\t1\na_b_1\t2\t3\n"


def write_instructir(directory: Path, passages: Rows = PASSAGES, asked: Rows = ASKED, qrels: str = QRELS) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", passages), ("queries", asked)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (directory / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (directory / "qrels.tsv").write_text(qrels, encoding="utf-8")
    return directory


def instructir_problems(directory: Path) -> str:
    with pytest.raises(DatasetError) as caught:
        loaded(directory, "InstructIRRobustness")
    return str(caught.value)


def test_instructir(tmp_path: Path) -> None:
    task = loaded(write_instructir(tmp_path, qrels=QRELS + "10_2\tm3\t1\n"), "InstructIRRobustness")
    data = task.data
    assert data is not None
    assert data.corpus.to_list() == [
        {"id": "m1", "title": "", "text": "Wine cabinets keep wine."},
        {"id": "2", "title": "", "text": "Spiders — Ärger."},
    ]
    assert data.queries.to_list() == [
        {"id": q["_id"], "text": q["text"], "instruction": q["instruction"]} for q in ASKED
    ]
    assert data.relevant_docs == {"10_1": {"m1": 1}, "10_2": {"m1": 1}, "a_b_1": {"2": 3}}
    assert data.counts == {"n_dropped_empty_passages": 1, "n_judgements_on_dropped_passages": 1}
    told = other_notes(data.notes)
    assert told[:2] == ["1 dropped empty passages", "1 judgements on dropped passages"]
    assert len(told) == 3
    assert "not comparable with InstructIR's" in told[2]
    assert type(task).recognises(tmp_path)
    before = task.metadata.revision
    write_instructir(tmp_path, qrels=QRELS.replace("m1\t1", "m1\t2"))
    assert loaded(tmp_path, "InstructIRRobustness").metadata.revision != before


def test_instructir_with_relevance_by_instruction_needs_no_warning(tmp_path: Path) -> None:
    qrels = QRELS.replace("10_2\tm1", "10_2\t2")
    data = loaded(write_instructir(tmp_path, passages=PASSAGES[:2], qrels=qrels), "InstructIRRobustness").data
    assert data is not None
    assert data.notes == []


def _asked(**changed: Any) -> dict[str, Any]:
    return {"asked": [*ASKED[:2], ASKED[2] | changed]}


WRONG_INSTRUCTIR: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "no number": (_asked(_id="a_b"), ("'a_b'", "is not of the form")),
    "no base": (_asked(_id="_1"), ("'_1'", "is not of the form")),
    "no separator": (_asked(_id=101), ("'101'", "is not of the form")),
    "an id with a superscript": (_asked(_id="a_²"), ("'a_²'", "is not of the form")),
    "a null id": (_asked(_id=None), ("queries.jsonl", "line 3", "None")),
    "an id twice": (_asked(_id="10_1"), ("'10_1'", "more than once")),
    "no text": (_asked(text=None), ("'a_b_1'", "text of query", "None")),
    "a blank text": (_asked(text=" "), ("'a_b_1'", "no text")),
    "no instruction": (_asked(instruction=None), ("instruction", "'a_b_1'")),
    "a blank instruction": (_asked(instruction=""), ("instruction", "'a_b_1'")),
    "a text that is a number": (_asked(text=5), ("queries.jsonl", "a_b_1")),
    "an instruction that is a list": (_asked(instruction=["I am"]), ("queries.jsonl", "a_b_1")),
    "another header": ({"qrels": QRELS.replace("query-id", "qid")}, ("qrels.tsv", "query-id, corpus-id and score")),
    "a header in another order": (
        {"qrels": QRELS.replace("query-id\tcorpus-id", "corpus-id\tquery-id")},
        ("qrels.tsv", "query-id, corpus-id and score"),
    ),
    "no header": ({"qrels": QRELS.split("\n", 1)[1]}, ("qrels.tsv", "query-id, corpus-id and score")),
    "an empty file": ({"qrels": ""}, ("qrels.tsv", "query-id, corpus-id and score")),
    "commas": ({"qrels": QRELS.replace("\t", ",")}, ("qrels.tsv", "query-id, corpus-id and score")),
    "a score of half": ({"qrels": QRELS.replace("2\t3", "2\t0.5")}, ("qrels.tsv", "line 4", "0.5")),
    "a score in words": ({"qrels": QRELS.replace("2\t3", "2\tyes")}, ("qrels.tsv", "line 4", "yes")),
    "a score with two signs": ({"qrels": QRELS.replace("2\t3", "2\t--1")}, ("qrels.tsv", "line 4", "--1")),
    "an empty score": ({"qrels": QRELS.replace("2\t3", "2\t")}, ("qrels.tsv", "line 4")),
    "a negative score": ({"qrels": QRELS + "a_b_1\tm1\t-1\n"}, ("negative", "('a_b_1', 'm1')")),
    "two columns": ({"qrels": QRELS + "10_1\tm1\n"}, ("qrels.tsv", "line 5")),
    "judged twice": ({"qrels": QRELS + "10_1\tm1\t0\n"}, ("line 5", "'m1'", "judged twice", "'10_1'")),
    "an unknown passage": ({"qrels": QRELS + "10_1\tm9\t1\n"}, ("('10_1', 'm9')", "not in the corpus")),
    "an unknown query": ({"qrels": QRELS + "10_9\tm1\t1\n"}, ("'10_9'", "unknown")),
    "a query without judgement": (
        {"qrels": QRELS.rsplit("a_b_1", 1)[0]},
        ("'a_b_1'", "without a relevant document"),
    ),
    "a query with grade 0 alone": ({"qrels": QRELS.replace("2\t3", "2\t0")}, ("'a_b_1'", "without a relevant")),
    "a passage with a number as text": ({"passages": [*PASSAGES, {"_id": "m4", "text": 4}]}, ("line 4", "'m4'")),
    "a passage twice": ({"passages": [*PASSAGES, PASSAGES[0]]}, ("'m1'", "more than once")),
}


@pytest.mark.parametrize("wrong", WRONG_INSTRUCTIR)
def test_wrong_instructir(tmp_path: Path, wrong: str) -> None:
    change, expected = WRONG_INSTRUCTIR[wrong]
    told = instructir_problems(write_instructir(tmp_path, **change))
    assert all(part in told for part in expected), told


def test_a_broken_line_of_the_queries(tmp_path: Path) -> None:
    write_instructir(tmp_path)
    (tmp_path / "queries.jsonl").write_text(json.dumps(ASKED[0]) + "\n\n{\n", encoding="utf-8")
    assert "line 3" in instructir_problems(tmp_path)


def test_all_bad_lines_of_the_judgements_are_named(tmp_path: Path) -> None:
    told = instructir_problems(write_instructir(tmp_path, qrels=QRELS + "x\ny\tm1\tz\n10_1\tm1\t1\n"))
    assert all(f"line {number}" in told for number in (5, 6, 7))


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file(tmp_path: Path, name: str) -> None:
    (write_instructir(tmp_path) / name).unlink()
    assert name in instructir_problems(tmp_path)


def test_ids_of_instructir() -> None:
    assert base_query("1078446_12") == "1078446"
    assert base_query("a_b_3") == "a_b"
    for wrong in ("1078446", "1078446_", "_3", "a_x", "a_٣", "a_-1", "a_1 "):
        with pytest.raises(ValueError, match="is not of the form"):
            base_query(wrong)
