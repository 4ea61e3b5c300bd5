"""Reading IFIR: the authors' files, the project's layout, everything that can be wrong with them, and the cache."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mteb
import pytest

import ifir_tasks
from evaluators.plugin import jsonl
from evaluators.plugin.checks import DatasetError
from evaluators.plugin.dataset import Card, write_dataset
from ifir_tasks.data import read_authors
from ifir_tasks.ids import parse_query_id, query_id
from ifir_tasks.tasks import IFIRTask

assert ifir_tasks.SUBSET_TASKS  # the import registers the tasks

Rows = list[dict[str, Any]]

CORPUS = [
    {"_id": "p1", "title": None, "text": "Sparen für Anfänger — 貯金 😀"},
    {"_id": 2, "title": "Bonds", "text": "Bonds pay interest."},
    {"_id": "p3", "title": "empty", "text": ""},
    {"_id": "p4", "title": "blank", "text": " \t\n\u00a0"},
    {"_id": "p5", "title": "null", "text": None},
    {"_id": "p6", "text": "Shares rise."},
    {"_id": "p7", "title": "", "text": " Tax rules. "},
]
QUERIES: Rows = [
    {
        "_id": "q1",
        "text": "How to save?",
        "corpus": [{"_id": "p1"}, {"_id": 2, "title": "Bonds"}, {"_id": "p3"}, {"_id": "p6"}],
        "instructions": [
            {"level": 1, "instruction": "I am 20.", "rel": [0, 1, 2, 3]},
            {"level": 2, "instruction": "I am 20 and poor.", "rel": [3, 2]},
            {"level": 3, "instruction": "I am 20, poor and in Köln.", "rel": [2]},
        ],
    },
    {
        "_id": 7,
        "text": "How to save?",
        "corpus": [{"_id": "2"}],
        "instructions": [
            {"level": 2, "instruction": "For a child.", "rel": [0]},
            {"level": 2, "instruction": "For a firm.", "rel": []},
        ],
    },
    {
        "_id": "steuer-ü",
        "text": "Steuern?",
        "corpus": [{"_id": "p7"}, {"_id": "p1"}],
        "instructions": [
            {"level": 3, "instruction": "In Österreich.", "rel": [0]},
            {"level": 1, "instruction": "Kurz.", "rel": [1, 0]},
        ],
    },
    {"_id": "q4", "text": "Nothing asked", "corpus": [{"_id": "p1"}], "instructions": []},
]


@pytest.fixture(autouse=True)
def cache(fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; the home directory is another one, so that a stray file would be seen."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return fresh_cache


def write_authors(root: Path, folder: str, corpus: Rows | str, queries: Any) -> Path:
    """A subset in the authors' layout; strings are written as they are. Returns the root."""
    directory = root / folder
    directory.mkdir(parents=True, exist_ok=True)
    lines = corpus if isinstance(corpus, str) else "".join(json.dumps(row) + "\n" for row in corpus)
    (directory / f"{folder}-corpus.jsonl").write_text(lines, encoding="utf-8")
    text = queries if isinstance(queries, str) else json.dumps(queries)
    (directory / "test_data.json").write_text(text, encoding="utf-8")
    return root


def loaded(root: Path, name: str = "IFIRFiQAInstFol") -> IFIRTask:
    task = mteb.get_task(name)
    assert isinstance(task, IFIRTask)
    task.data_path = root
    task.load_data()
    return task


def problems_of(root: Path, name: str = "IFIRFiQAInstFol") -> list[str]:
    with pytest.raises(DatasetError) as caught:
        loaded(root, name)
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    return caught.value.problems


# --- what is read ------------------------------------------------------------------------------------------------


def test_authors_layout(tmp_path: Path) -> None:
    blank_line_inside = "".join(json.dumps(row) + "\n" for row in CORPUS).replace("\n", "\n\n", 1)
    data = loaded(write_authors(tmp_path, "fiqa", blank_line_inside, QUERIES)).data
    assert data is not None
    assert data.corpus.to_list() == [
        {"id": "p1", "title": "", "text": "Sparen für Anfänger — 貯金 😀"},
        {"id": "2", "title": "Bonds", "text": "Bonds pay interest."},
        {"id": "p6", "title": "", "text": "Shares rise."},
        {"id": "p7", "title": "", "text": " Tax rules. "},
    ]
    assert dict(zip(data.queries["id"], data.queries["text"], strict=True)) == {
        "q1-og": "How to save?",
        "q1-v1": "How to save? I am 20.",
        "q1-v2": "How to save? I am 20 and poor.",
        "q1-v3": "How to save? I am 20, poor and in Köln.",
        "7-og": "How to save?",
        "7-v2": "How to save? For a child.",
        "7~2-v2": "How to save? For a firm.",
        "steuer-ü-og": "Steuern?",
        "steuer-ü-v3": "Steuern? In Österreich.",
        "steuer-ü-v1": "Steuern? Kurz.",
    }
    assert data.queries.column_names == ["id", "text"]
    assert data.relevant_docs == {
        "q1-og": {},
        "q1-v1": {"p1": 1, "2": 1, "p6": 1},
        "q1-v2": {"p6": 1},
        "q1-v3": {},
        "7-og": {},
        "7-v2": {"2": 1},
        "7~2-v2": {},
        "steuer-ü-og": {},
        "steuer-ü-v3": {"p7": 1},
        "steuer-ü-v1": {"p1": 1, "p7": 1},
    }
    assert data.top_ranked is None
    assert data.counts == {"n_dropped_empty_passages": 3, "n_judgements_on_dropped_passages": 3}
    assert data.notes == [
        "3 dropped empty passages",
        "3 judgements on dropped passages",
        "queries without any instruction are left out: 'q4'",
        "7 instructed queries and 7 passages, while 1718 and 57638 were published: this is a subset or another "
        "edition, and its scores are not comparable with the published ones",
    ]


def test_every_query_is_searched_and_the_real_judgements_stay(tmp_path: Path) -> None:
    task = loaded(write_authors(tmp_path, "fiqa", CORPUS, QUERIES))
    assert task.data is not None
    split = task.dataset["default"]["test"]
    assert list(split["relevant_docs"]) == list(task.data.queries["id"])
    assert all(split["relevant_docs"].values())
    for query, docs in task.data.relevant_docs.items():
        assert {d: g for d, g in split["relevant_docs"][query].items() if g > 0} == docs
    assert split["top_ranked"] is None


@pytest.mark.parametrize("inside", [True, False])
def test_the_root_or_the_folder_itself(tmp_path: Path, inside: bool) -> None:
    write_authors(tmp_path, "fiqa", CORPUS, QUERIES)
    task = loaded(tmp_path / "fiqa" if inside else tmp_path)
    assert len(task.data.queries) == 10  # type: ignore[union-attr]
    assert task.metadata.revision == task.current_revision()
    assert len(task.metadata.revision) == 40
    assert type(task).recognises(tmp_path) and type(task).recognises(tmp_path / "fiqa")
    others = [cls for cls in ifir_tasks.SUBSET_TASKS if cls is not type(task)]
    assert not any(cls.recognises(place) for cls in others for place in (tmp_path, tmp_path / "fiqa"))


@pytest.mark.parametrize("name", ["fiqa-corpus.jsonl", "test_data.json"])
def test_an_edited_file_is_another_revision_with_other_rows(tmp_path: Path, name: str) -> None:
    write_authors(tmp_path, "fiqa", CORPUS, QUERIES)
    before = loaded(tmp_path)
    file = tmp_path / "fiqa" / name
    file.write_text(file.read_text(encoding="utf-8").replace("p1", "p0"), encoding="utf-8")
    other = tmp_path / "fiqa" / ({"fiqa-corpus.jsonl", "test_data.json"} - {name}).pop()
    other.write_text(other.read_text(encoding="utf-8").replace("p1", "p0"), encoding="utf-8")
    after = loaded(tmp_path)
    assert after.metadata.revision != before.metadata.revision
    assert after.data is not None and after.data.corpus["id"][0] == "p0"
    assert after.data.relevant_docs["steuer-ü-v1"] == {"p0": 1, "p7": 1}


def test_a_subset_without_levels(tmp_path: Path) -> None:
    queries = [
        {
            "_id": "PLAIN-1",
            "text": "Breast cancer",
            "corpus": [{"_id": "MED-1"}, {"_id": "MED-2"}],
            # no level, an odd one, or one of three: none of them says anything here
            "instructions": [
                {"instruction": "diet only", "rel": [1]},
                {"level": "none", "instruction": "exercise", "rel": [0]},
                {"level": 3, "instruction": "drugs", "rel": []},
            ],
        }
    ]
    corpus = [{"_id": "MED-1", "title": "A", "text": "one"}, {"_id": "MED-2", "title": "B", "text": "two"}]
    task = loaded(write_authors(tmp_path, "nfcorpus", corpus, queries), "IFIRNFCorpusInstFol")
    assert task.data is not None
    assert dict(zip(task.data.queries["id"], task.data.queries["text"], strict=True)) == {
        "PLAIN-1-og": "Breast cancer",
        "PLAIN-1-v0": "Breast cancer diet only",
        "PLAIN-1~2-v0": "Breast cancer exercise",
        "PLAIN-1~3-v0": "Breast cancer drugs",
    }
    assert task.data.relevant_docs == {
        "PLAIN-1-og": {},
        "PLAIN-1-v0": {"MED-2": 1},
        "PLAIN-1~2-v0": {"MED-1": 1},
        "PLAIN-1~3-v0": {},
    }
    assert task.data.counts == {"n_dropped_empty_passages": 0, "n_judgements_on_dropped_passages": 0}
    assert task.data.notes == [
        "3 instructed queries and 2 passages, while 86 and 3633 were published: this is a subset or another "
        "edition, and its scores are not comparable with the published ones"
    ]


def test_a_passage_listed_twice_counts_once_and_is_noted(tmp_path: Path) -> None:
    queries = [with_instruction(rel=[0, 0, 1]), {**with_instruction(), "_id": "other"}]
    data = loaded(write_authors(tmp_path, "fiqa", CORPUS, queries)).data
    assert data is not None
    assert data.relevant_docs["q-v1"] == {"p1": 1, "p6": 1}
    assert data.notes[-2] == "passages listed twice as relevant count once: ('q', 'p1')"


def test_ids_of_instructions_and_back() -> None:
    for base in ("q", "-og", "a-v1", "x~1", "q~02", "é\n", "7"):
        for level in (None, 0, 1, 2, 3):
            for number in (1,) if level is None else (1, 2, 9, 10, 123):
                parsed = parse_query_id(query_id(base, level, number))
                assert parsed == (base, level, number)
                assert parsed.plain == f"{base}-og"


@pytest.mark.parametrize("wrong", ["q", "q-v4", "-og", "-v1", "q-og ", "q~2-og", "q-v1-", "q-v", "Q-OG", "q-v11", ""])
def test_ids_of_another_form(wrong: str) -> None:
    with pytest.raises(ValueError, match="is not of the form"):
        parse_query_id(wrong)


# --- what can be wrong with test_data.json -------------------------------------------------------------------------


def with_instruction(**changed: Any) -> dict[str, Any]:
    """A sound query ``q`` with one instruction, of which the given fields are replaced."""
    instruction = {"level": 1, "instruction": "Now.", "rel": [0]} | changed
    return {"_id": "q", "text": "What?", "corpus": [{"_id": "p1"}, {"_id": "p6"}], "instructions": [instruction]}


def without(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in entry.items() if k != key}


SOUND = with_instruction()
WRONG_ENTRIES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "rel out of range": (with_instruction(rel=[0, 2]), ("'q'", "level 1", "points to 2", "2 passages")),
    "rel negative": (with_instruction(rel=[-1]), ("'q'", "points to -1")),
    "rel bool": (with_instruction(rel=[True]), ("'q'", "points to True")),
    "rel string": (with_instruction(rel=["0"]), ("'q'", "points to '0'")),
    "rel float": (with_instruction(rel=[0.0]), ("'q'", "points to 0.0")),
    "rel null": (with_instruction(rel=None), ("'q'", "level 1", "`rel` must be a list")),
    "rel a number": (with_instruction(rel=0), ("'q'", "level 1", "`rel` must be a list")),
    "rel a string": (with_instruction(rel="01"), ("'q'", "level 1", "`rel` must be a list")),
    "level 4": (with_instruction(level=4), ("'q'", "level 4")),
    "level 0": (with_instruction(level=0), ("'q'", "level 0")),
    "level a string": (with_instruction(level="2"), ("'q'", "level '2'")),
    "level true": (with_instruction(level=True), ("'q'", "level True")),
    "level null": (with_instruction(level=None), ("'q'", "level None")),
    "level a list": (with_instruction(level=[1]), ("'q'", "level [1]")),
    "instruction null": (with_instruction(instruction=None), ("'q'", "level-1 instruction has no text")),
    "instruction blank": (with_instruction(instruction=" \n"), ("'q'", "level-1 instruction has no text")),
    "instruction a number": (with_instruction(instruction=5), ("'q'", "level-1 instruction has no text")),
    "an instruction that is a string": ({**SOUND, "instructions": ["Now."]}, ("'q'", "instruction")),
    "text missing": (without(SOUND, "text"), ("'q'", "no text")),
    "text null": ({**SOUND, "text": None}, ("'q'", "no text")),
    "text blank": ({**SOUND, "text": "  "}, ("'q'", "no text")),
    "text a number": ({**SOUND, "text": 12}, ("'q'", "text")),
    "instructions missing": (without(SOUND, "instructions"), ("'q'", "instructions")),
    "corpus missing": (without(SOUND, "corpus"), ("'q'", "corpus")),
    "corpus a dictionary": ({**SOUND, "corpus": {"_id": "p1"}}, ("'q'", "corpus")),
    "a passage that is a bare id": ({**SOUND, "corpus": ["p1"]}, ("'q'",)),
    "a passage without id": ({**SOUND, "corpus": [{"text": "Sparen"}]}, ("'q'", "id None")),
    "an unknown passage": ({**SOUND, "corpus": [{"_id": "p99"}]}, ("'q-v1'", "'p99'", "not in the corpus")),
    "_id missing": (without(SOUND, "_id"), ("entry 1", "id None")),
    "_id float": ({**SOUND, "_id": 1.0}, ("entry 1", "id 1.0")),
    "_id bool": ({**SOUND, "_id": True}, ("entry 1", "id True")),
    "_id blank": ({**SOUND, "_id": " "}, ("entry 1", "id ' '")),
    "_id a list": ({**SOUND, "_id": ["q"]}, ("entry 1", "id ['q']")),
    "_id with a NUL": ({**SOUND, "_id": "a\0b"}, ("a\\x00b",)),
    "_id that ends like a further instruction": (
        {**SOUND, "_id": "claim~2"},
        ("'claim~2'", "ends like a numbered instruction"),
    ),
}


@pytest.mark.parametrize("wrong", WRONG_ENTRIES)
def test_wrong_queries(tmp_path: Path, wrong: str) -> None:
    entry, expected = WRONG_ENTRIES[wrong]
    problems = problems_of(write_authors(tmp_path, "fiqa", CORPUS, [{**SOUND, "_id": "fine"}, entry]))
    assert len(problems) == 1
    assert all(part in problems[0] for part in expected), problems


def test_duplicate_query_ids(tmp_path: Path) -> None:
    entries = [{**SOUND, "_id": 7}, {**SOUND, "_id": "7"}]
    problems = problems_of(write_authors(tmp_path, "fiqa", CORPUS, entries))
    assert problems == ["query id '7-og' occurs more than once", "query id '7-v1' occurs more than once"]


def test_everything_wrong_with_queries_is_said_at_once(tmp_path: Path) -> None:
    entries = [
        {**with_instruction(rel=[5, True, "x"]), "_id": "a"},
        {**with_instruction(level=4), "_id": "b"},
        {**without(SOUND, "text"), "_id": "c"},
        {**with_instruction(instruction=""), "_id": "d"},
        {**SOUND, "_id": "e"},
        {**SOUND, "_id": "e"},
    ]
    problems = problems_of(write_authors(tmp_path, "fiqa", CORPUS, entries))
    assert [problem.split(":")[0].split("'")[1] for problem in problems] == [*"aaabcd", "e-og", "e-v1"]


def test_an_unusable_id_does_not_hide_the_other_faults(tmp_path: Path) -> None:
    entries = [{**SOUND, "_id": None}, {**with_instruction(level=4), "_id": "b"}, {**SOUND, "_id": 0.5}]
    told = "\n".join(problems_of(write_authors(tmp_path, "fiqa", CORPUS, entries)))
    assert "entry 0" in told and "'b'" in told and "entry 2" in told


def test_every_base_that_ends_like_a_numbered_instruction_is_named(tmp_path: Path) -> None:
    entries = [
        {**SOUND, "_id": "a~2"},
        {**SOUND, "_id": "b~3"},
    ]
    told = "\n".join(problems_of(write_authors(tmp_path, "fiqa", CORPUS, entries)))
    assert "'a~2'" in told and "'b~3'" in told


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[{]", "cannot be read as JSON"),
        ("", "cannot be read as JSON"),
        ('{"_id": "q"}', "expected a JSON list"),
        ('["q"]', "expected a JSON list"),
        ("null", "expected a JSON list"),
        ("[]", "queries: it is empty"),
        (json.dumps([{"_id": "q", "text": "x", "corpus": [], "instructions": []}]), "queries: it is empty"),
    ],
)
def test_wrong_query_files(tmp_path: Path, content: str, expected: str) -> None:
    assert expected in "\n".join(problems_of(write_authors(tmp_path, "fiqa", CORPUS, content)))


# --- what can be wrong with the corpus -----------------------------------------------------------------------------

GOOD_LINE = '{"_id": "p1", "title": "", "text": "one"}\n'
WRONG_CORPORA: dict[str, tuple[str, tuple[str, ...]]] = {
    "broken line": (GOOD_LINE + "\n" + '{"_id": "p2", "text": "tw\n', ("line 3", "JSON")),
    "a list": (GOOD_LINE + '["p2", "two"]\n', ("line 2", "list")),
    "a bare string": (GOOD_LINE + '"p2"\n', ("line 2", "str")),
    "text a number": (GOOD_LINE + '{"_id": "p2", "text": 5}\n', ("line 2", "'p2'", "text")),
    "text a list": (GOOD_LINE + '{"_id": "p2", "text": ["a"]}\n', ("line 2", "'p2'", "text")),
    "text false": (GOOD_LINE + '{"_id": "p2", "text": false}\n', ("line 2", "'p2'", "text")),
    "title a number": (GOOD_LINE + '{"_id": "p2", "title": 5, "text": "two"}\n', ("line 2", "'p2'", "title")),
    "no id": (GOOD_LINE + '{"title": "", "text": "two"}\n', ("line 2", "None")),
    "id float": (GOOD_LINE + '{"_id": 2.0, "text": "two"}\n', ("line 2", "2.0")),
    "id bool": (GOOD_LINE + '{"_id": true, "text": "two"}\n', ("line 2", "True")),
    "id blank": (GOOD_LINE + '{"_id": "", "text": "two"}\n', ("line 2", "''")),
    "duplicate id": (GOOD_LINE + '{"_id": "p1", "text": "two"}\n', ("'p1'", "occur more than once")),
    "duplicate id, number and string": (
        GOOD_LINE + '{"_id": 5, "text": "two"}\n{"_id": "5", "text": "three"}\n',
        ("'5'", "occur more than once"),
    ),
    "nothing but empty passages": ('{"_id": "p1", "text": ""}\n', ("corpus: it is empty",)),
    "no line": ("", ("corpus: it is empty",)),
    "half a character in a text": (GOOD_LINE + '{"_id": "p2", "text": "two \\ud83d"}\n', ("line 2", "'p2'")),
    "half a character in an id": (GOOD_LINE + '{"_id": "p\\udc00", "text": "two"}\n', ("line 2",)),
}


@pytest.mark.parametrize("wrong", WRONG_CORPORA)
def test_wrong_corpora(tmp_path: Path, wrong: str) -> None:
    content, expected = WRONG_CORPORA[wrong]
    root = write_authors(tmp_path, "fiqa", content, [{**SOUND, "corpus": [{"_id": "p1"}]}])
    told = "\n".join(problems_of(root))
    assert all(part in told for part in expected), told
    assert not list((tmp_path / "cache").rglob("*.tmp"))


def test_bytes_that_are_no_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    root = write_authors(tmp_path, "fiqa", GOOD_LINE, [SOUND])
    (root / "fiqa" / "fiqa-corpus.jsonl").write_bytes(GOOD_LINE.encode() + b'{"_id": "p2", "text": "\xfc"}\n')
    with pytest.raises(DatasetError, match=r"fiqa-corpus\.jsonl(.|\n)*line 2"):
        loaded(root)


def test_a_passage_both_empty_and_given_with_text_is_a_duplicate(tmp_path: Path) -> None:
    """Otherwise a judgement on it would be taken for one on a dropped passage although the passage is there."""
    content = GOOD_LINE + '{"_id": "p2", "text": ""}\n{"_id": "p2", "text": "two"}\n'
    root = write_authors(tmp_path, "fiqa", content, [{**SOUND, "corpus": [{"_id": "p2"}]}])
    assert "'p2'" in "\n".join(problems_of(root))


@pytest.mark.parametrize("n_files", [0, 2])
def test_not_exactly_one_corpus_file(tmp_path: Path, n_files: int) -> None:
    root = write_authors(tmp_path, "fiqa", GOOD_LINE, [{**SOUND, "corpus": [{"_id": "p1"}]}])
    file = root / "fiqa" / "fiqa-corpus.jsonl"
    if n_files == 2:
        shutil.copy(file, root / "fiqa" / "old-corpus.jsonl")
    else:
        file.unlink()
    with pytest.raises(DatasetError, match=r"exactly one file \*-corpus\.jsonl"):
        read_authors(root / "fiqa", has_levels=True)
    assert not any(cls.recognises(root) for cls in ifir_tasks.SUBSET_TASKS)
    with pytest.raises((DatasetError, FileNotFoundError)) as caught:
        loaded(root)
    if n_files == 2:  # a message that denies the files would send the reader looking for them
        assert "exactly one" in str(caught.value) or "old-corpus.jsonl" in str(caught.value)
    else:
        assert "corpus.jsonl" in str(caught.value)


def test_no_query_file(tmp_path: Path) -> None:
    root = write_authors(tmp_path, "fiqa", GOOD_LINE, [SOUND])
    (root / "fiqa" / "test_data.json").unlink()
    with pytest.raises((DatasetError, FileNotFoundError), match=r"test_data\.json"):
        loaded(root)


def test_a_data_path_that_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        loaded(tmp_path / "nowhere")


# --- the project's layout ------------------------------------------------------------------------------------------


def own_configs() -> dict[str, Rows]:
    """Two base queries; ``b`` has no relevant passage at level 2."""
    return {
        "corpus": [{"_id": f"d{i}", "title": "", "text": f"passage {i}"} for i in range(4)],
        "queries": [
            {"_id": query, "text": f"query {query[0]}"} for query in ("a-og", "a-v1", "a~2-v1", "b-og", "b-v2")
        ],
        "qrels": [
            {"query-id": "a-v1", "corpus-id": "d0", "score": 1},
            {"query-id": "a~2-v1", "corpus-id": "d1", "score": 1},
        ],
        "instruction": [
            {"query-id": "a-v1", "instruction": "first"},
            {"query-id": "a~2-v1", "instruction": "second"},
            {"query-id": "b-v2", "instruction": "third"},
        ],
        "facets": [{"query-id": b, "corpus-id": f"d{i}", "score": i} for b in "ab" for i in range(4)],
    }


def write_own(directory: Path, configs: Mapping[str, Rows]) -> Path:
    write_dataset(directory, configs, Card("Test", "For a test.", "mit"))
    return directory


def test_own_layout(tmp_path: Path) -> None:
    task = loaded(write_own(tmp_path / "own", own_configs()))
    assert task.data is not None
    assert dict(zip(task.data.queries["id"], task.data.queries["text"], strict=True)) == {
        "a-og": "query a",
        "a-v1": "query a first",
        "a~2-v1": "query a second",
        "b-og": "query b",
        "b-v2": "query b third",
    }
    assert task.data.queries.column_names == ["id", "text"]
    assert task.data.relevant_docs == {"a-v1": {"d0": 1}, "a~2-v1": {"d1": 1}, "a-og": {}, "b-og": {}, "b-v2": {}}
    assert len(task.data.notes) == 1
    assert "not comparable with the published ones" in task.data.notes[0]
    assert task.data.side["facets"].num_rows == 8
    assert type(task).recognises(tmp_path / "own")


def test_own_layout_without_facets(tmp_path: Path) -> None:
    task = loaded(write_own(tmp_path / "own", without(own_configs(), "facets")))
    assert task.data is not None and "facets" not in task.data.side


Change = Callable[[dict[str, Rows]], object]


def _set(config: str, row: int, column: str, value: Any) -> Change:
    return lambda configs: configs[config][row].__setitem__(column, value)


def _drop(config: str, row: int) -> Change:
    return lambda configs: configs[config].pop(row)


def _add(config: str, **row: Any) -> Change:
    return lambda configs: configs[config].append({k.replace("_id", "-id"): v for k, v in row.items()})


WRONG_OWN: dict[str, tuple[Change, tuple[str, ...]]] = {
    "a plain query with an instruction": (
        _add("instruction", query_id="b-og", instruction="fourth"),
        ("'b-og'", "is plain but has an instruction"),
    ),
    "an instructed query without one": (_drop("instruction", 1), ("'a~2-v1'", "has no instruction")),
    "a null instruction": (_set("instruction", 0, "instruction", None), ("'a-v1'", "has no instruction")),
    "an empty instruction": (_set("instruction", 0, "instruction", ""), ("'a-v1'", "instruction")),
    "a blank instruction": (_set("instruction", 0, "instruction", " \n"), ("'a-v1'", "instruction")),
    "an instruction for nobody": (
        _add("instruction", query_id="z-v1", instruction="fourth"),
        ("'z-v1'", "unknown query"),
    ),
    "two instructions": (_add("instruction", query_id="a-v1", instruction="again"), ("more than one row",)),
    "no plain query": (_drop("queries", 0), ("no plain query", "'a-v1'")),
    "an id of another form": (_set("queries", 3, "_id", "b-plain"), ("'b-plain'", "is not of the form")),
    "a null id": (_set("queries", 3, "_id", None), ("query id None",)),
    "a query twice": (lambda c: c["queries"].append(dict(c["queries"][0])), ("'a-og'", "more than once")),
    "a null text of a plain query": (_set("queries", 0, "text", None), ("'a-og'", "no text")),
    "a null text of an instructed query": (_set("queries", 1, "text", None), ("'a-v1'", "no text")),
    "a blank text of an instructed query": (_set("queries", 1, "text", " "), ("'a-v1'", "no text")),
    "an empty passage": (_set("corpus", 2, "text", ""), ("corpus", "'d2'", "no text")),
    "a passage twice": (_set("corpus", 2, "_id", "d1"), ("corpus", "'d1'", "more than once")),
    "a judgement on nothing": (_set("qrels", 0, "corpus-id", "d9"), ("'a-v1'", "'d9'", "not in the corpus")),
    "a judgement for nobody": (_set("qrels", 0, "query-id", "z-v1"), ("'z-v1'", "unknown")),
    "a negative grade": (_set("qrels", 0, "score", -1), ("'a-v1'", "'d0'", "negative")),
    "a null grade": (_set("qrels", 0, "score", None), ("'a-v1'", "'d0'", "no score")),
    "a judgement twice": (lambda c: c["qrels"].append(dict(c["qrels"][0])), ("'a-v1'", "'d0'", "judged twice")),
    "a facet score of 4": (_set("facets", 0, "score", 4), ("facets", "('a', 'd0', 4)")),
    "a negative facet score": (_set("facets", 0, "score", -1), ("facets", "('a', 'd0', -1)")),
    "a null facet score": (_set("facets", 0, "score", None), ("facets", "('a', 'd0', None)")),
    "a facet of an unknown query": (_set("facets", 0, "query-id", "a-v1"), ("facets", "'a-v1'")),
    "a facet of an unknown passage": (_set("facets", 0, "corpus-id", "d9"), ("facets", "'d9'")),
    "a facet of no query": (_set("facets", 0, "query-id", None), ("facets", "None")),
}


@pytest.mark.parametrize("wrong", WRONG_OWN)
def test_wrong_own_layout(tmp_path: Path, wrong: str) -> None:
    change, expected = WRONG_OWN[wrong]
    configs = own_configs()
    change(configs)
    told = "\n".join(problems_of(write_own(tmp_path / "own", configs)))
    assert all(part in told for part in expected), told


def test_every_id_of_another_form_is_named(tmp_path: Path) -> None:
    configs = own_configs()
    configs["queries"] += [{"_id": "x", "text": "?"}, {"_id": "y-v4", "text": "?"}]
    told = "\n".join(problems_of(write_own(tmp_path / "own", configs)))
    assert "'x'" in told and "'y-v4'" in told


def test_nothing_but_plain_queries(tmp_path: Path) -> None:
    configs = own_configs()
    configs["queries"] = [row for row in configs["queries"] if row["_id"].endswith("-og")]
    configs["qrels"] = [{"query-id": "a-og", "corpus-id": "d0", "score": 1}]
    del configs["instruction"]
    assert "queries: none carries an instruction" in problems_of(write_own(tmp_path / "own", configs))


@pytest.mark.parametrize("config", ["corpus", "queries", "qrels"])
def test_a_missing_config(tmp_path: Path, config: str) -> None:
    directory = write_own(tmp_path / "own", own_configs())
    (directory / f"{config}.parquet").unlink()
    with pytest.raises((DatasetError, FileNotFoundError), match=config):
        loaded(directory)


# --- the cache of converted corpora --------------------------------------------------------------------------------


def _files(cache: Path) -> dict[str, tuple[int, int]]:
    return {f.name: (f.stat().st_ino, f.stat().st_mtime_ns) for f in cache.rglob("*") if f.is_file()}


def test_the_second_load_uses_what_the_first_one_converted(tmp_path: Path, cache: Path) -> None:
    root = write_authors(tmp_path, "fiqa", CORPUS, QUERIES)
    first = loaded(root)
    files = _files(cache)
    assert sorted(Path(name).suffix for name in files) == [".arrow", ".json"]
    copy = tmp_path / "elsewhere"
    shutil.copytree(root / "fiqa", copy / "fiqa")
    second = loaded(copy)
    assert _files(cache) == files
    assert first.data is not None and second.data is not None
    assert second.data.corpus.to_list() == first.data.corpus.to_list()
    assert (second.data.counts, second.data.notes) == (first.data.counts, first.data.notes)
    assert second.data.relevant_docs == first.data.relevant_docs
    assert not (tmp_path / "home" / ".cache" / "mteb-beyond").exists()


def test_the_second_load_does_not_convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_authors(tmp_path, "fiqa", CORPUS, QUERIES)
    loaded(root)

    def never(*args: object) -> None:
        raise AssertionError("converted again")

    monkeypatch.setattr(jsonl, "_record_batch", never)
    assert loaded(root).data is not None


def test_a_corpus_of_several_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "_BATCH", 3)
    corpus = [{"_id": f"p{i}", "text": "" if i in (2, 3, 4, 9) else f"text {i}"} for i in range(10)]
    data = loaded(write_authors(tmp_path, "fiqa", corpus, [{**SOUND, "corpus": [{"_id": "p9"}]}])).data
    assert data is not None
    assert data.corpus["id"][:] == ["p0", "p1", "p5", "p6", "p7", "p8"]
    assert data.counts == {"n_dropped_empty_passages": 4, "n_judgements_on_dropped_passages": 1}


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_conversion_is_never_taken_for_whole(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    root = write_authors(tmp_path, "fiqa", CORPUS, QUERIES)
    real, calls = jsonl._record_batch, 0

    def fails_in_the_middle(rows: list[tuple[str, str, str]]) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise error
        return real(rows)

    with monkeypatch.context() as patched:
        patched.setattr(jsonl, "_BATCH", 1)
        patched.setattr(jsonl, "_record_batch", fails_in_the_middle)
        with pytest.raises(error):
            loaded(root)
    assert calls == 2
    assert not _files(cache)
    data = loaded(root).data
    assert data is not None and len(data.corpus) == 4


def test_a_broken_last_line_leaves_nothing_behind(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "_BATCH", 2)
    lines = "".join(json.dumps(row) + "\n" for row in CORPUS)
    assert "line 8" in "\n".join(problems_of(write_authors(tmp_path, "fiqa", lines + "{", QUERIES)))
    assert not _files(cache)
    data = loaded(write_authors(tmp_path, "fiqa", lines, QUERIES)).data
    assert data is not None and len(data.corpus) == 4


@pytest.mark.parametrize("lost", [".arrow", ".json"])
def test_half_a_cache_entry_is_made_anew(tmp_path: Path, cache: Path, lost: str) -> None:
    """What a killed process can leave: one of the two files, and an unfinished one."""
    root = write_authors(tmp_path, "fiqa", CORPUS, QUERIES)
    loaded(root)
    (file,) = cache.rglob(f"*{lost}")
    file.with_suffix(".1.tmp").write_bytes(b"ARROW1 unfinished")
    file.unlink()
    data = loaded(root).data
    assert data is not None
    assert len(data.corpus) == 4
    assert data.counts["n_dropped_empty_passages"] == 3


def test_a_report_cut_short_is_made_anew(tmp_path: Path, cache: Path) -> None:
    """A full disk or a killed process can leave a report that ends in the middle."""
    root = write_authors(tmp_path, "fiqa", CORPUS, QUERIES)
    loaded(root)
    (report,) = cache.rglob("*.json")
    report.write_text(report.read_text(encoding="utf-8")[:10], encoding="utf-8")
    next(cache.rglob("*.arrow")).unlink()  # the report is written before the corpus takes its place
    data = loaded(root).data
    assert data is not None and data.counts["n_dropped_empty_passages"] == 3


def test_the_cache_is_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_authors(tmp_path, "fiqa", CORPUS, QUERIES)
    monkeypatch.setenv("MTEB_BEYOND_CACHE", str(tmp_path / "deep" / "elsewhere"))
    loaded(root)
    assert list((tmp_path / "deep" / "elsewhere").rglob("*.arrow"))
    assert not (tmp_path / "cache").exists()
    monkeypatch.delenv("MTEB_BEYOND_CACHE")
    loaded(root)
    assert list((tmp_path / "home" / ".cache" / "mteb-beyond").rglob("*.arrow"))
