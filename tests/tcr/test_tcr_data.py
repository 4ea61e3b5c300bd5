"""TCR-Bench directories: what is loaded from the authors' files and from the project's layout, and what is refused."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mteb._create_dataloaders import create_dataloader
from mteb.types import PromptType

from evaluators.plugin.checks import DatasetError
from evaluators.plugin.dataset import Card, write_dataset
from evaluators.plugin.mteb_internals import document_texts
from tcr_tasks import BENCHMARK_TASKS, SAFE_TASK, TCRSample, TCRTask
from tcr_tasks.data import PUBLISHED_SIZES

TASKS = {cls.metadata.name: cls for cls in (*BENCHMARK_TASKS, SAFE_TASK)}
MIXED, DIAGNOSTIC, SAFE = TASKS["TCRBenchMixed"], TASKS["TCRBenchDiagnosticMixed"], TASKS["TCRBenchSafeMarkdown"]

Record = dict[str, Any]
Records = list[Record]


# --- a small directory in the authors' layout --------------------------------------------------------------------

# Names hold blanks and hyphens; both databases have a table terms_T0, with other content.
CSV = {
    ("Sales Orders", "Sales Orders_T0"): "order id,unit price,note\nA1,2.50,\nA2,,late  fee\n",
    ("Sales Orders", "Sales Orders_T1"): "order id,unit price\nA1,3.25\nB7,10\n",
    ("Sales Orders", "Sales Orders_T2"): "order id\nA1\nB7\n",
    ("Sales Orders", "terms_T0"): "days,discount\n30,2\n60,1\n",
    ("historical-terms", "historical-terms_T0"): "congress,start\n1,1789\n2,1791\n",
    ("historical-terms", "historical-terms_T1"): "congress\n1\n2\n",
    ("historical-terms", "historical-terms_T2"): "congress_no,begin\nI,1789\nII,1791\n",
    ("historical-terms", "terms_T0"): "state,zip\nOhio,00501\nIowa,52001\n",
    ("historical-terms", "terms_T1"): "state\nOhio\nIowa\n",
}
FORMATS = {
    ("Sales Orders", "Sales Orders_T0"): ("csv", "html"),
    ("Sales Orders", "Sales Orders_T1"): ("html", "markdown"),
    ("Sales Orders", "Sales Orders_T2"): ("markdown", "csv"),
    ("Sales Orders", "terms_T0"): ("csv", "html"),
    ("historical-terms", "historical-terms_T0"): ("markdown", "csv"),
    ("historical-terms", "historical-terms_T1"): ("html", "csv"),
    ("historical-terms", "historical-terms_T2"): ("csv", "markdown"),
    ("historical-terms", "terms_T0"): ("html", "csv"),
    ("historical-terms", "terms_T1"): ("markdown", "html"),
}
SALES = ["Sales Orders_T0", "Sales Orders_T1", "Sales Orders_T2"]
HISTORY = ["historical-terms_T0", "historical-terms_T1", "historical-terms_T2"]
TERMS = ["terms_T0", "terms_T1"]


def question(name: str, kind: str, db_id: str, target: str, group: list[str], text: str) -> Record:
    return {
        "question_id": name,
        "db_id": db_id,
        "highlighted_table": [target],
        "all_tables_in_group": list(group),
        "question": text,
        "answer": [1],
        "answer_index": [0],
        "question_type": kind,
    }


@dataclass
class Authors:
    """The content of a directory in the authors' layout, for a test to change before it is written."""

    questions: Records = field(
        default_factory=lambda: [
            question("Question_G0_Q0", "EM", "Sales Orders", SALES[1], SALES, "What is the unit price of order B7?"),
            question("Question_G0_Q1", "SF", "Sales Orders", SALES[0], SALES, "Which order has a late fee?"),
            question("Question_G1_Q0", "SA", "historical-terms", HISTORY[0], HISTORY, "First start of a congress?"),
            question("Question_G2_Q0", "EM", "historical-terms", TERMS[0], TERMS, "Which zip is in Ohio?"),
        ]
    )
    tables: Records = field(default_factory=lambda: table_records(0))
    # The ids of the main file again, for other questions.
    em_questions: Records = field(
        default_factory=lambda: [
            question("Question_G0_Q0", "EM", "historical-terms", TERMS[0], TERMS, "Which zip is in Ohio?"),
            question("Question_G1_Q0", "EM", "Sales Orders", SALES[1], SALES, "What is the unit price of order B7?"),
        ]
    )
    em_tables: Records = field(default_factory=lambda: table_records(1))
    csv: dict[tuple[str, str], str] = field(default_factory=lambda: dict(CSV))

    def write(self, directory: Path) -> Path:
        (directory / "data").mkdir(parents=True, exist_ok=True)
        for name in ("questions", "tables"):
            for part, records in (("", getattr(self, name)), ("_EM", getattr(self, f"em_{name}"))):
                file = directory / "data" / f"TCR_{name.title()}{part}.json"
                file.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
        for (db_id, path), text in self.csv.items():
            file = directory / "tables" / "TCR_8k" / db_id / f"{path}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        return directory


def table_records(column: int) -> Records:
    return [
        {"db_id": db, "table_path": path, "table_name": path.rsplit("_T", 1)[0], "table_format": formats[column]}
        for (db, path), formats in FORMATS.items()
    ]


def cid(db_id: str, path: str) -> str:
    key = f"{db_id}::{path}"
    return f"{hashlib.sha256(key.encode('utf-8')).hexdigest()[:8]}::{key}"


def loaded(cls: type[TCRTask], directory: Path) -> TCRTask:
    task = cls()
    task.data_path = directory
    task.load_data()
    assert task.data is not None
    return task


def texts_of(task: TCRTask) -> dict[str, str]:
    """What mteb's data loader hands to a model, by key without the hash."""
    corpus = task.dataset["default"]["test"]["corpus"]
    loader = create_dataloader(corpus, task_metadata=task.metadata, prompt_type=PromptType.document, batch_size=4)
    texts = [text for batch in loader for text in batch["text"]]
    assert texts == document_texts(corpus)
    return {i.split("::", 1)[1]: text for i, text in zip(corpus["id"], texts, strict=True)}


def problems_of(cls: type[TCRTask], directory: Path) -> str:
    with pytest.raises(DatasetError) as caught:
        loaded(cls, directory)
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    return str(caught.value)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authors().write(tmp_path_factory.mktemp("small"))


# --- what is loaded ----------------------------------------------------------------------------------------------

SALES_T0_CSV = "Sales Orders:\norder id,unit price,note\nA1,2.5,\nA2,,late fee"
TERMS_T0_HTML = (
    'terms:\n<table border="1" class="dataframe">\n <thead>\n <tr style="text-align: right;">\n'
    " <th>state</th>\n <th>zip</th>\n </tr>\n </thead>\n <tbody>\n"
    " <tr>\n <td>Ohio</td>\n <td>501</td>\n </tr>\n"
    " <tr>\n <td>Iowa</td>\n <td>52001</td>\n </tr>\n"
    " </tbody>\n</table>"
)
# Numbers to the right (--:); a column of dashes is as wide as its widest cell, two blanks more, and two of padding.
HISTORY_T0_MARKDOWN = "historical-terms:\n| congress | start |\n|-----------:|--------:|\n| 1 | 1789 |\n| 2 | 1791 |"
SALES_T0_TSEN = (
    "Sales Orders:\norder id is A1. unit price is 2.5. note is nan.\n"
    "order id is A2. unit price is nan. note is late fee."
)


def test_ids_are_a_hash_and_the_key(small: Path) -> None:
    # First digits of `printf 'Sales Orders::Sales Orders_T0' | sha256sum`.
    assert cid("Sales Orders", "Sales Orders_T0") == "8e5ee6e6::Sales Orders::Sales Orders_T0"
    corpus = loaded(MIXED, small).dataset["default"]["test"]["corpus"]
    assert list(corpus["id"]) == sorted(cid(*key) for key in CSV)
    assert set(corpus["title"]) == {""}


def test_texts_by_hand(small: Path) -> None:
    by_csv = texts_of(loaded(TASKS["TCRBenchCSV"], small))
    assert by_csv["Sales Orders::Sales Orders_T0"] == SALES_T0_CSV
    assert by_csv["historical-terms::terms_T0"] == "terms:\nstate,zip\nOhio,501\nIowa,52001"
    assert by_csv["Sales Orders::terms_T0"] == "terms:\ndays,discount\n30,2\n60,1"
    assert texts_of(loaded(TASKS["TCRBenchHTML"], small))["historical-terms::terms_T0"] == TERMS_T0_HTML
    by_markdown = texts_of(loaded(TASKS["TCRBenchMarkdown"], small))
    assert by_markdown["historical-terms::historical-terms_T0"] == HISTORY_T0_MARKDOWN
    assert texts_of(loaded(TASKS["TCRBenchTSen"], small))["Sales Orders::Sales Orders_T0"] == SALES_T0_TSEN
    assert texts_of(loaded(SAFE, small))["Sales Orders::Sales Orders_T0"] == (
        "Sales Orders:\n| order id | unit price | note |\n| --- | --- | --- |\n| A1 | 2.50 |  |\n| A2 |  | late  fee |"
    )


def test_shuffled_sentences_hold_the_same_pairs(small: Path) -> None:
    plain, shuffled = (texts_of(loaded(TASKS[f"TCRBench{name}"], small)) for name in ("TSen", "TSenS"))
    assert plain.keys() == shuffled.keys()
    for key, text in plain.items():
        for straight, mixed in zip(text.split("\n"), shuffled[key].split("\n"), strict=True):
            assert sorted(straight.removesuffix(".").split(". ")) == sorted(mixed.removesuffix(".").split(". "))
    assert shuffled != plain


def test_mixed_prints_every_table_in_its_own_format(small: Path) -> None:
    by_format = {
        fmt: texts_of(loaded(TASKS[f"TCRBench{name}"], small))
        for fmt, name in (("csv", "CSV"), ("html", "HTML"), ("markdown", "Markdown"))
    }
    mixed = texts_of(loaded(MIXED, small))
    assert mixed == {f"{db}::{path}": by_format[fmt][f"{db}::{path}"] for (db, path), (fmt, _) in FORMATS.items()}
    assert mixed["Sales Orders::Sales Orders_T0"] == SALES_T0_CSV
    assert mixed["historical-terms::terms_T0"] == TERMS_T0_HTML
    assert mixed["historical-terms::historical-terms_T0"] == HISTORY_T0_MARKDOWN


def test_queries_groups_and_qrels(small: Path) -> None:
    task = loaded(MIXED, small)
    parts = task.dataset["default"]["test"]
    assert dict(zip(parts["queries"]["id"], parts["queries"]["text"], strict=True)) == {
        "Question_G0_Q0": "What is the unit price of order B7?",
        "Question_G0_Q1": "Which order has a late fee?",
        "Question_G1_Q0": "First start of a congress?",
        "Question_G2_Q0": "Which zip is in Ohio?",
    }
    assert parts["relevant_docs"] == {
        "Question_G0_Q0": {cid("Sales Orders", "Sales Orders_T1"): 1},
        "Question_G0_Q1": {cid("Sales Orders", "Sales Orders_T0"): 1},
        "Question_G1_Q0": {cid("historical-terms", "historical-terms_T0"): 1},
        "Question_G2_Q0": {cid("historical-terms", "terms_T0"): 1},
    }
    assert parts["top_ranked"] is None
    assert task.data is not None
    groups = {q.id: (q.type, set(q.group)) for q in task.data.side["questions"]}
    assert groups["Question_G2_Q0"] == ("EM", {cid("historical-terms", path) for path in TERMS})
    assert groups["Question_G0_Q1"] == ("SF", {cid("Sales Orders", path) for path in SALES})


def test_the_diagnostic_subset_uses_its_own_questions_tables_and_formats(small: Path) -> None:
    task = loaded(DIAGNOSTIC, small)
    texts = texts_of(task)
    searched = {*(("Sales Orders", path) for path in SALES), *(("historical-terms", path) for path in TERMS)}
    assert texts.keys() == {f"{db}::{path}" for db, path in searched}
    assert texts["Sales Orders::Sales Orders_T0"].startswith("Sales Orders:\n<table")
    assert texts["Sales Orders::Sales Orders_T2"] == "Sales Orders:\norder id\nA1\nB7"
    assert texts["historical-terms::terms_T0"] == "terms:\nstate,zip\nOhio,501\nIowa,52001"
    parts = task.dataset["default"]["test"]
    # The id that the main file gives to a question about sales.
    assert parts["relevant_docs"]["Question_G0_Q0"] == {cid("historical-terms", "terms_T0"): 1}
    assert dict(zip(parts["queries"]["id"], parts["queries"]["text"], strict=True))["Question_G0_Q0"] == (
        "Which zip is in Ohio?"
    )


def test_other_than_published_sizes_are_noted(small: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        task = loaded(MIXED, small)
    assert task.data is not None
    (note,) = task.data.notes
    assert note.startswith("4 questions {'EM': 2, 'SF': 1, 'SA': 1} over 9 tables, while 209")
    assert "637 were published" in note
    assert "these are other data" in note
    assert f"TCRBenchMixed: {note}" in caplog.messages
    diagnostic = loaded(DIAGNOSTIC, small).data
    assert diagnostic is not None
    assert diagnostic.notes[0].startswith("2 questions {'EM': 2} over 5 tables, while 70 {'EM': 70} over 271 were")


def full_size() -> Authors:
    """209 questions (98 EM, 55 SF, 56 SA) in 146 groups of 637 tables; 70 EM questions in the first 55 groups (271)."""
    # 51 * 5 + 4 * 4 = 271, and 2 * 5 + 89 * 4 = 366 more.
    sizes = [5] * 51 + [4] * 4 + [5] * 2 + [4] * 89
    full = Authors([], [], [], [], {})
    groups = []
    for g, size in enumerate(sizes):
        groups.append([f"t{g}_T{i}" for i in range(size)])
        full.csv |= {("db", path): f"a,b\n{g},{path}\n" for path in groups[-1]}
    full.tables = full.em_tables = [
        {"db_id": "db", "table_path": path, "table_name": path.split("_T")[0], "table_format": "csv"}
        for _, path in full.csv
    ]
    places = [(g, i) for i, g in product(range(2), range(len(sizes)))]
    kinds = ["EM"] * 98 + ["SF"] * 55 + ["SA"] * 56
    for n, (kind, (g, i)) in enumerate(zip(kinds, places, strict=False)):
        full.questions.append(question(f"q{n}", kind, "db", groups[g][i], groups[g], f"What is {n}?"))
    em_places = [(g, i) for i, g in product(range(2), range(55))][:70]
    for n, (g, i) in enumerate(em_places):
        full.em_questions.append(question(f"q{n}", "EM", "db", groups[g][i], groups[g], f"What is {n}?"))
    return full


def test_the_published_sizes_give_no_note(tmp_path: Path) -> None:
    full = full_size()
    assert len(full.questions) == 209
    assert len(full.csv) == 637
    directory = full.write(tmp_path)
    for cls in (MIXED, DIAGNOSTIC):
        data = loaded(cls, directory).data
        assert data is not None
        assert data.notes == []


@pytest.mark.parametrize("change", ["type", "table"])
def test_one_off_the_published_sizes_is_noted(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The small set as if it were the published one.
    monkeypatch.setitem(PUBLISHED_SIZES, "", ({"EM": 2, "SF": 1, "SA": 1}, 9))
    authors = Authors()
    data = loaded(MIXED, authors.write(tmp_path)).data
    assert data is not None
    assert data.notes == []
    if change == "type":
        authors.questions[2]["question_type"] = "SF"
    else:
        authors.tables = [t for t in authors.tables if (t["db_id"], t["table_path"]) != ("Sales Orders", "terms_T0")]
    data = loaded(MIXED, authors.write(tmp_path)).data
    assert data is not None
    assert len(data.notes) == 1


def test_the_revision_follows_the_files_that_are_read(tmp_path: Path) -> None:
    directory = Authors().write(tmp_path)
    before = loaded(MIXED, directory).metadata.revision
    assert re.fullmatch("[0-9a-f]{40}", before)
    (directory / "README.md").write_text("other words")
    assert loaded(MIXED, directory).metadata.revision == before
    changed = Authors()
    changed.csv["Sales Orders", "terms_T0"] += "90,0\n"
    changed.write(directory)
    task = loaded(MIXED, directory)
    assert task.metadata.revision != before
    task.unload_data()
    assert task.metadata.revision == MIXED.metadata.revision


def test_which_directories_are_recognised(small: Path, tmp_path: Path) -> None:
    assert MIXED.recognises(small)
    assert not TASKS["TCRBenchCSV"].recognises(small)  # the same data, printed otherwise
    assert not MIXED.recognises(tmp_path)


# --- what is refused: the authors' layout ------------------------------------------------------------------------

Change = Callable[[Authors], object]


def _set(records: str, at: int, **values: Any) -> Change:
    return lambda authors: getattr(authors, records)[at].update(values)


def _without(records: str, at: int, key: str) -> Change:
    return lambda authors: getattr(authors, records)[at].pop(key)


def _csv(path: str, text: str) -> Change:
    return lambda authors: authors.csv.update({("Sales Orders", path): text})


FAULTS: dict[str, tuple[Change, list[str]]] = {
    "no text": (_without("questions", 0, "question"), ["'Question_G0_Q0' has no text"]),
    "blank text": (_set("questions", 1, question=" \n"), ["'Question_G0_Q1' has no text"]),
    "text is a number": (_set("questions", 0, question=7), ["'Question_G0_Q0' has no text"]),
    "no id": (_without("questions", 0, "question_id"), ["question without question_id", SALES[1]]),
    "empty id": (_set("questions", 0, question_id=""), ["question without question_id"]),
    "blank id": (_set("questions", 0, question_id="  "), ["queries: 1 ids are missing, blank", "'  '"]),
    "id is a number": (_set("questions", 0, question_id=12), ["question without question_id", "'question_id': 12"]),
    "unknown type": (_set("questions", 2, question_type="XX"), ["'Question_G1_Q0': its type 'XX'", "EM, SF, SA"]),
    "lower-case type": (_set("questions", 2, question_type="em"), ["'Question_G1_Q0': its type 'em'"]),
    "no type": (_without("questions", 2, "question_type"), ["'Question_G1_Q0': its type"]),
    "two targets": (
        _set("questions", 0, highlighted_table=SALES[:2]),
        ["'Question_G0_Q0': expected one highlighted_table"],
    ),
    "no target": (_set("questions", 0, highlighted_table=[]), ["'Question_G0_Q0': expected one highlighted_table"]),
    "target is a text": (
        _set("questions", 0, highlighted_table=SALES[1]),
        ["'Question_G0_Q0': expected one highlighted_table"],
    ),
    "group is null": (
        _set("questions", 0, all_tables_in_group=None),
        ["'Question_G0_Q0': expected one highlighted_table and a list"],
    ),
    "target outside its group": (
        _set("questions", 0, all_tables_in_group=[SALES[0], SALES[2]]),
        ["'Question_G0_Q0': its target", cid("Sales Orders", SALES[1]), "is not in its group"],
    ),
    "table twice in its group": (
        _set("questions", 0, all_tables_in_group=[*SALES, SALES[2]]),
        ["'Question_G0_Q0'", "twice in its group", cid("Sales Orders", SALES[2])],
    ),
    "group of one": (
        _set("questions", 3, all_tables_in_group=[TERMS[0]]),
        ["'Question_G2_Q0': its group has no sibling"],
    ),
    "unlisted sibling": (
        _set("questions", 3, all_tables_in_group=[*TERMS, "terms_T9"]),
        ["'Question_G2_Q0'", "not listed", "'terms_T9'"],
    ),
    "sibling of another database": (
        _set("questions", 3, all_tables_in_group=[*TERMS, SALES[0]]),
        ["'Question_G2_Q0'", "not listed", "'Sales Orders_T0'"],
    ),
    "sibling is a list": (
        _set("questions", 3, all_tables_in_group=[*TERMS, ["terms_T1"]]),
        ["'Question_G2_Q0'", "terms_T1"],
    ),
    "question without database": (_without("questions", 3, "db_id"), ["'Question_G2_Q0'", "not listed"]),
    "unlisted table": (lambda a: a.tables.pop(2), ["'Question_G0_Q0'", "not listed", "'Sales Orders_T2'"]),
    "table without file": (
        lambda a: a.csv.pop(("Sales Orders", SALES[2])),
        ["Sales Orders::Sales Orders_T2", "no file"],
    ),
    "empty file": (_csv(SALES[2], ""), ["table 'Sales Orders::Sales Orders_T2' cannot be read"]),
    "ragged row": (_csv(SALES[2], "a\n1\n2,3\n"), ["table 'Sales Orders::Sales Orders_T2' cannot be read", "line 3"]),
    "unknown format": (
        _set("tables", 3, table_format="xml"),
        ["Sales Orders::terms_T0' has the unknown format 'xml'"],
    ),
    "format is a list": (_set("tables", 3, table_format=["csv"]), ["Sales Orders::terms_T0", "unknown format"]),
    "no format": (_without("tables", 3, "table_format"), ["Sales Orders::terms_T0' has the unknown format None"]),
    "table listed twice": (
        lambda a: a.tables.append(dict(a.tables[3])),
        ["table 'Sales Orders::terms_T0' is listed twice"],
    ),
    "table without name": (_without("tables", 3, "table_name"), ["a table without db_id", "terms_T0"]),
    "table name is a number": (_set("tables", 3, table_name=5), ["a table without db_id", "terms_T0"]),
    "two questions with one id": (
        _set("questions", 1, question_id="Question_G0_Q0"),
        ["ids occur more than once", "'Question_G0_Q0'"],
    ),
    "two questions with one target": (
        _set("questions", 1, highlighted_table=[SALES[1]]),
        ["target of several questions", cid("Sales Orders", SALES[1])],
    ),
    "no question": (lambda a: a.questions.clear(), ["queries: it is empty"]),
    "no table": (lambda a: a.tables.clear(), ["'Question_G0_Q0'", "not listed"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str, tmp_path: Path) -> None:
    change, expected = FAULTS[name]
    authors = Authors()
    change(authors)
    message = problems_of(MIXED, authors.write(tmp_path))
    assert "TCRBenchMixed" in message or str(tmp_path) in message or "tables" in message
    assert [part for part in expected if part not in message] == []


def test_a_file_without_a_header_is_refused_by_every_task(tmp_path: Path) -> None:
    authors = Authors()
    authors.csv["Sales Orders", SALES[2]] = "\n\n"
    directory = authors.write(tmp_path)
    for cls in TASKS.values():
        assert "table 'Sales Orders::Sales Orders_T2' cannot be read" in problems_of(cls, directory)


def test_bytes_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    directory = Authors().write(tmp_path)
    (directory / "tables" / "TCR_8k" / "Sales Orders" / "terms_T0.csv").write_bytes(b"a\n\xff\xfe\n")
    assert "table 'Sales Orders::terms_T0' cannot be read" in problems_of(MIXED, directory)


def test_faults_of_questions_and_tables_are_listed_together(tmp_path: Path) -> None:
    authors = Authors()
    _set("questions", 0, question="")(authors)
    _set("questions", 1, highlighted_table=SALES[:2])(authors)
    _set("questions", 3, all_tables_in_group=[*TERMS, "terms_T9"])(authors)
    _set("tables", 3, table_format="xml")(authors)
    authors.tables.append(dict(authors.tables[0]))
    authors.questions.append({"question": "Who?"})
    with pytest.raises(DatasetError) as caught:
        loaded(MIXED, authors.write(tmp_path))
    listed = "\n".join(caught.value.problems)
    for part in ("'Question_G0_Q0'", "'Question_G0_Q1'", "'terms_T9'", "'xml'", "listed twice", "without question_id"):
        assert part in listed
    assert len(caught.value.problems) == 6


def test_faults_of_groups_are_listed_together(tmp_path: Path) -> None:
    authors = Authors()
    _set("questions", 0, all_tables_in_group=[SALES[0], SALES[2], SALES[2]])(authors)
    _set("questions", 1, question_type="XX")(authors)
    _set("questions", 2, question_id="Question_G0_Q0")(authors)
    _set("questions", 3, all_tables_in_group=[TERMS[0]])(authors)
    message = problems_of(MIXED, authors.write(tmp_path))
    for part in ("is not in its group", "twice in its group", "'XX'", "occur more than once", "has no sibling"):
        assert part in message


def test_every_unreadable_table_is_listed(tmp_path: Path) -> None:
    authors = Authors()
    authors.csv["Sales Orders", SALES[2]] = ""
    authors.csv["historical-terms", TERMS[0]] = "a\n1,2\n1,2,3\n"
    message = problems_of(MIXED, authors.write(tmp_path))
    assert "'Sales Orders::Sales Orders_T2'" in message
    assert "'historical-terms::terms_T0'" in message


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("TCR_Questions.json", "{", "cannot be read as JSON"),
        ("TCR_Questions.json", "", "cannot be read as JSON"),
        ("TCR_Questions.json", '{"a": []}', "expected a JSON list of objects"),
        ("TCR_Questions.json", '["a"]', "expected a JSON list of objects"),
        ("TCR_Questions.json", "null", "expected a JSON list of objects"),
        ("TCR_Tables.json", "[1]", "expected a JSON list of objects"),
        ("TCR_Questions.json", '[{"a": "b"}, {"a": ["\\ud83d"]}]', "entry 2 holds half a character"),
        ("TCR_Tables.json", "[{]", "cannot be read as JSON"),
        ("TCR_Tables.json", None, "cannot be read as JSON"),
        ("TCR_Questions.json", None, "expected data/TCR_Questions.json"),
    ],
)
def test_a_file_that_is_missing_or_no_list_of_objects(
    file: str, content: str | None, expected: str, tmp_path: Path
) -> None:
    path = Authors().write(tmp_path) / "data" / file
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    message = problems_of(MIXED, tmp_path)
    assert expected in message
    assert file in message


def test_a_missing_diagnostic_file_is_named_and_hurts_no_other_task(tmp_path: Path) -> None:
    directory = Authors().write(tmp_path)
    (directory / "data" / "TCR_Questions_EM.json").unlink()
    assert "TCR_Questions_EM.json" in problems_of(DIAGNOSTIC, directory)
    assert loaded(MIXED, directory).data is not None


def test_a_diagnostic_group_with_an_unlisted_table_is_refused(tmp_path: Path) -> None:
    authors = Authors()
    authors.em_tables = [t for t in authors.em_tables if t["table_path"] != "terms_T1"]
    message = problems_of(DIAGNOSTIC, authors.write(tmp_path))
    assert "'Question_G0_Q0'" in message
    assert "'terms_T1'" in message


def test_a_path_that_is_no_directory(tmp_path: Path) -> None:
    task = MIXED()
    task.data_path = tmp_path / "none"
    with pytest.raises(FileNotFoundError, match=r"the data path .*none is not a directory"):
        task.load_data()


# --- the project's layout ----------------------------------------------------------------------------------------

Configs = dict[str, Records]
CARD = Card("Small", "A small set.", "cc-by-4.0")


def own_rows() -> Configs:
    """The content of :class:`Authors` as rows of the project's layout, the texts by hand."""
    groups = [
        ("q1", "EM", "Sales Orders", SALES[1], SALES, "What is the unit price of order B7?"),
        ("q2", "SA", "historical-terms", HISTORY[0], HISTORY[:2], "First start of a congress?"),
    ]
    tables = [
        *(("Sales Orders", path, "csv") for path in SALES),
        ("historical-terms", HISTORY[0], "markdown"),
        ("historical-terms", HISTORY[1], "csv"),
    ]
    texts = [
        SALES_T0_CSV + "\n\n\n",
        "Sales Orders:\norder id,unit price\nA1,3.25\nB7,10.0\n\n\n",
        "Sales Orders:\norder id\nA1\nB7\n\n\n",
        HISTORY_T0_MARKDOWN + "\n\n",
        "historical-terms:\ncongress\n1\n2\n\n\n",
    ]
    return {
        "corpus": [{"_id": cid(db, p), "title": "", "text": t} for (db, p, _), t in zip(tables, texts, strict=True)],
        "queries": [{"_id": name, "text": text} for name, _, _, _, _, text in groups],
        "qrels": [{"query-id": n, "corpus-id": cid(db, t), "score": 1} for n, _, db, t, _, _ in groups],
        "groups": [
            {
                "query-id": name,
                "corpus-ids": [cid(db, path) for path in group],
                "target": cid(db, target),
                "question_type": kind,
                "strategies": ["target" if path == target else "row_deletion" for path in group],
            }
            for name, kind, db, target, group, _ in groups
        ],
        "tables": [
            {
                "db_id": db,
                "table_path": path,
                "table_name": path.rsplit("_T", 1)[0],
                "table_format": fmt,
                "csv": CSV[db, path],
            }
            for db, path, fmt in tables
        ],
    }


def own(directory: Path, configs: Configs) -> Path:
    write_dataset(directory, configs, CARD)
    return directory


def test_the_own_layout_is_loaded(tmp_path: Path) -> None:
    directory = own(tmp_path, own_rows())
    texts = texts_of(loaded(TCRSample, directory))
    assert texts["Sales Orders::Sales Orders_T0"] == SALES_T0_CSV
    assert texts["historical-terms::historical-terms_T0"] == HISTORY_T0_MARKDOWN
    assert len(texts) == 5
    task = loaded(TASKS["TCRBenchTSen"], directory)
    assert texts_of(task)["Sales Orders::Sales Orders_T0"] == SALES_T0_TSEN
    assert task.describe_query("q1", task.data) == {  # type: ignore[arg-type]
        "question type": "EM",
        "target": cid("Sales Orders", SALES[1]),
        "siblings": [cid("Sales Orders", SALES[0]), cid("Sales Orders", SALES[2])],
        "strategies": {cid("Sales Orders", path): "target" if path == SALES[1] else "row_deletion" for path in SALES},
    }


def fill(rows: Records, column: str, *values: str | None) -> None:
    """A column with these values in the first rows and null in the others."""
    for row, value in itertools.zip_longest(rows, values):
        row[column] = value


def test_answers_and_notes_are_read_where_they_are(tmp_path: Path) -> None:
    rows = own_rows()
    fill(rows["groups"], "answer", '["B7", 9007199254740993, 35156.0]')
    fill(rows["tables"], "prompt_notes", "[]", '["Halve the price."]')
    data = loaded(TCRSample, own(tmp_path / "own", rows)).data
    assert data is not None
    assert [q.answer for q in data.side["questions"]] == [("B7", 9007199254740993, 35156.0), None]
    assert {key: t.notes for key, t in data.side["tables"].items() if t.notes} == {T1: ("Halve the price.",)}
    authors = Authors()
    for entry, answer in zip(authors.questions, (["a", 2], 7, None), strict=False):
        entry["answer"] = answer
    authors.write(tmp_path / "authors")
    data = loaded(MIXED, tmp_path / "authors").data
    assert data is not None
    assert [q.answer for q in data.side["questions"]] == [("a", 2), (7,), None, (1,)]
    assert not any(t.notes for t in data.side["tables"].values())


OwnChange = Callable[[Configs], object]


def _again(config: str, at: int, **values: Any) -> OwnChange:
    """A row a second time, changed, before all others: in a dictionary the later, unchanged row would win."""
    return lambda rows: rows[config].insert(0, {**rows[config][at], **values})


T1 = cid("Sales Orders", SALES[1])
OWN_FAULTS: dict[str, tuple[OwnChange, list[str]]] = {
    "edited corpus text": (
        lambda rows: rows["corpus"][1].update(text="Sales Orders:\norder id\n\n\n"),
        ["corpus: texts that differ", T1],
    ),
    "trailing blank in a corpus text": (
        lambda rows: rows["corpus"][1].update(text=rows["corpus"][1]["text"] + " "),
        ["corpus: texts that differ", T1],
    ),
    "document without table": (
        lambda rows: rows["tables"].pop(2),
        [cid("Sales Orders", SALES[2]), "'q1'"],
    ),
    "table without document": (lambda rows: rows["corpus"].pop(2), [cid("Sales Orders", SALES[2])]),
    "query without group": (lambda rows: rows["groups"].pop(1), ["'q2' has no group"]),
    "group of an unknown query": (_again("groups", 0, **{"query-id": "q9"}), ["unknown query 'q9'"]),
    "qrels name a sibling": (
        lambda rows: rows["qrels"][0].update({"corpus-id": cid("Sales Orders", SALES[0])}),
        ["'q1': its qrels", "not its target", T1],
    ),
    "qrels name a sibling too": (
        _again("qrels", 0, **{"corpus-id": cid("Sales Orders", SALES[0])}),
        ["'q1': its qrels", "not its target", T1],
    ),
    "qrels grade the target 0": (lambda rows: rows["qrels"][0].update(score=0), ["'q1': its qrels"]),
    "no qrels": (lambda rows: rows["qrels"].pop(0), ["'q1': its qrels None"]),
    "qrels of an unknown query": (_again("qrels", 0, **{"query-id": "q9"}), ["qrels", "'q9'"]),
    "a judgement twice": (_again("qrels", 0), ["judged twice", "'q1'", T1]),
    "query twice in groups": (_again("groups", 0), ["'q1'", "more than once"]),
    "query twice in queries": (_again("queries", 0, text="Another question?"), ["'q1'", "more than once"]),
    "document twice in corpus": (_again("corpus", 0, text="old text"), [cid("Sales Orders", SALES[0])]),
    "table listed twice": (_again("tables", 0, csv="other\n1\n"), ["Sales Orders::Sales Orders_T0"]),
    "query without text": (lambda rows: rows["queries"][0].update(text=None), ["queries: 1 have no text", "'q1'"]),
    "unknown format": (
        lambda rows: rows["tables"][0].update(table_format="xml"),
        ["Sales Orders::Sales Orders_T0' has the unknown format 'xml'"],
    ),
    "unreadable table": (
        lambda rows: rows["tables"][0].update(csv=""),
        ["table 'Sales Orders::Sales Orders_T0' cannot be read"],
    ),
    "table without content": (
        lambda rows: rows["tables"][0].update(csv=None),
        ["table 'Sales Orders::Sales Orders_T0' has no content"],
    ),
    "unknown sibling": (
        lambda rows: rows["groups"][0]["corpus-ids"].append("00000000::a::b"),
        ["'q1'", "00000000::a::b"],
    ),
    "sibling without its hash": (
        lambda rows: rows["groups"][0]["corpus-ids"].__setitem__(0, "Sales Orders::Sales Orders_T0"),
        ["'q1'", "'Sales Orders::Sales Orders_T0'"],
    ),
    "group is null": (lambda rows: rows["groups"][0].update({"corpus-ids": None}), ["'q1'"]),
    "target outside its group": (lambda rows: rows["groups"][0]["corpus-ids"].remove(T1), ["'q1'", "not in its group"]),
    "unknown type": (lambda rows: rows["groups"][0].update(question_type="XX"), ["'q1'", "'XX'"]),
    "type is null": (lambda rows: rows["groups"][0].update(question_type=None), ["'q1'", "None"]),
    "answer that is no list": (
        lambda rows: fill(rows["groups"], "answer", "[1]", "10"),
        ["question 'q2': its answer must be a list in JSON, got '10'"],
    ),
    "half a character in an answer": (
        lambda rows: fill(rows["groups"], "answer", "[1]", '["\\ud83d"]'),
        ["question 'q2': its answer holds half a character"],
    ),
    "notes that are no JSON": (
        lambda rows: fill(rows["tables"], "prompt_notes", None, "x 10"),
        ["Sales Orders::Sales Orders_T1", "its prompt_notes must be a list in JSON, got 'x 10'"],
    ),
    "fewer strategies than tables": (lambda rows: rows["groups"][0]["strategies"].pop(), ["'q1'", "strateg"]),
}


@pytest.mark.parametrize("name", OWN_FAULTS)
def test_a_fault_in_the_own_layout_is_named(name: str, tmp_path: Path) -> None:
    change, expected = OWN_FAULTS[name]
    rows = own_rows()
    change(rows)
    message = problems_of(TCRSample, own(tmp_path, rows))
    assert [part for part in expected if part not in message] == []


@pytest.mark.parametrize("missing", [["groups"], ["tables"], ["groups", "tables"]])
def test_missing_side_configs_are_all_named(missing: list[str], tmp_path: Path) -> None:
    rows = {name: content for name, content in own_rows().items() if name not in missing}
    message = problems_of(TCRSample, own(tmp_path, rows))
    assert re.findall(r"config '(\w+)' is missing", message) == missing


@pytest.mark.parametrize("missing", ["corpus", "queries", "qrels"])
def test_a_missing_main_config_is_named(missing: str, tmp_path: Path) -> None:
    (own(tmp_path, own_rows()) / f"{missing}.parquet").unlink()
    assert missing in problems_of(TCRSample, tmp_path)


@pytest.mark.parametrize(
    ("config", "column"),
    [
        ("groups", "target"),
        ("groups", "question_type"),
        ("tables", "db_id"),
        ("tables", "csv"),
        ("tables", "table_format"),
    ],
)
def test_a_missing_column_is_named(config: str, column: str, tmp_path: Path) -> None:
    path = own(tmp_path, own_rows()) / f"{config}.parquet"
    pq.write_table(pq.read_table(path).drop_columns(column), path)
    with pytest.raises(ValueError, match=column) as caught:
        loaded(TCRSample, tmp_path)
    assert config in str(caught.value)


def test_ids_that_are_numbers_are_refused(tmp_path: Path) -> None:
    # A column of numbers becomes text on reading; then nothing points at the tables any more.
    path = own(tmp_path, own_rows()) / "corpus.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "_id", pa.array(range(len(table)), pa.int64())), path)
    assert "corpus: texts that differ" in problems_of(TCRSample, tmp_path)


def test_several_faults_of_the_own_layout_are_listed_together(tmp_path: Path) -> None:
    rows = own_rows()
    rows["groups"].pop(1)
    rows["groups"].append({**rows["groups"][0], "query-id": "q9"})
    rows["qrels"][0]["score"] = 2
    rows["tables"][0]["table_format"] = "xml"
    message = problems_of(TCRSample, own(tmp_path, rows))
    for part in ("'q2' has no group", "unknown query 'q9'", "'q1': its qrels", "'xml'"):
        assert part in message


def test_the_diagnostic_task_searches_exact_match_questions_only(tmp_path: Path) -> None:
    # Whatever the layout: a result of the diagnostic subset must not hold other questions unsaid.
    try:
        task = loaded(DIAGNOSTIC, own(tmp_path, own_rows()))
    except DatasetError:
        return
    assert task.data is not None
    assert {q.type for q in task.data.side["questions"]} == {"EM"}


def test_a_published_task_on_another_set_in_the_own_layout_says_so(tmp_path: Path) -> None:
    data = loaded(MIXED, own(tmp_path, own_rows())).data
    assert data is not None
    assert any("published" in note for note in data.notes)
