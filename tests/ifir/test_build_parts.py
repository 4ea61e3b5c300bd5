"""Parts of `ifir build` by themselves: nesting, replies, domains, and what a source may look like."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from construction_sample import Rows, write_beir, write_source
from hypothesis import given
from hypothesis import strategies as st

from evaluators.judge import Endpoint, LanguageModel, Reply, Request, Sampling, Store
from evaluators.judge.answers import read_verdict
from evaluators.judge.reply import UnreadableReplyError
from ifir_tasks.construction.domains import choose_domain, filled, read_domains
from ifir_tasks.construction.prompts import FIELDS, DomainAsking, read_prompts
from ifir_tasks.construction.relevance import Verdict, nested
from ifir_tasks.construction.replies import read_instruction, read_request
from ifir_tasks.construction.sources import read_source

VERDICTS = st.lists(st.sampled_from(Verdict), max_size=4)


def is_nested(verdicts: list[Verdict]) -> bool:
    return all(above <= below for below, above in itertools.pairwise(verdicts))


@given(VERDICTS)
def test_nesting_is_the_least_change_downwards(verdicts: list[Verdict]) -> None:
    """Definition: of all nested sequences that raise no verdict, the one that is highest everywhere."""
    found = nested(verdicts)
    candidates = [
        list(c)
        for c in itertools.product(Verdict, repeat=len(verdicts))
        if is_nested(list(c)) and all(a <= b for a, b in zip(c, verdicts, strict=True))
    ]
    assert found in candidates
    assert all(c <= f for candidate in candidates for c, f in zip(candidate, found, strict=True))


@given(VERDICTS)
def test_relevant_above_is_relevant_below(verdicts: list[Verdict]) -> None:
    found = nested(verdicts)
    for level, verdict in enumerate(found):
        if verdict is Verdict.KEPT:
            assert set(found[:level]) <= {Verdict.KEPT}
        if verdict is Verdict.EXCLUDED:
            assert set(found[level:]) == {Verdict.EXCLUDED}
    if is_nested(verdicts):
        assert found == verdicts


def reply(text: str, finish_reason: str = "stop", refusal: str | None = None) -> Reply:
    return Reply(text, finish_reason, 0, 0, refusal)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Instruction: Find it.", "Find it."),
        ("instruction : Find it.", "Find it."),
        ("Of course!\n\n**Instruction:** Find\nit.\n", "Find it."),
        ('Instruction: "Find it."', "Find it."),
        ('Instruction: "Find" or "it"?', '"Find" or "it"?'),
        ("Instruction: the old one\nInstruction: Find it.", "Find it."),
        ("### Instruction:\n\nFind it.", "Find it."),
        ("Instruction: An instruction: find it.", "An instruction: find it."),
    ],
)
def test_instructions_that_can_be_read(text: str, expected: str) -> None:
    assert read_instruction(reply(text), "Another.") == expected


@pytest.mark.parametrize(
    ("given_reply", "reason"),
    [
        (reply("Find it."), "no text after 'Instruction:'"),
        (reply("Instruction: ..."), "no text after 'Instruction:'"),
        (reply("Instruction:"), "no text after 'Instruction:'"),
        (reply("Instruction:  FIND  what I had."), "repeats the instruction of the level below"),
        (reply("Instruction: Find", "length"), "cut off"),
        (reply(" "), "empty"),
        (reply("Instruction: \ud800"), "half a character"),
        (reply("", refusal="No."), "refused"),
    ],
)
def test_instructions_that_cannot_be_read(given_reply: Reply, reason: str) -> None:
    with pytest.raises(UnreadableReplyError, match=reason):
        read_instruction(given_reply, "Find what I had.")


def test_requests_need_both_parts() -> None:
    assert read_request(reply("Query: Which?\nInstruction: Find\nit.")) == ("Which?", "Find it.")
    assert read_request(reply("**Instruction**: Find it.\n**Query**: Which?")) == ("Which?", "Find it.")
    with pytest.raises(UnreadableReplyError, match="after 'Query:'"):
        read_request(reply("Instruction: Find it."))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Answer: yes\nReason: It does.", (True, "It does.")),
        ("**Answer:** No.\n**Reason:** It is\nnot.", (False, "It is not.")),
        ("Answer: yes/no\nReason: ...\n\nAnswer: no\nReason: It lacks age.", (False, "It lacks age.")),
        ("Answer: yes\nReason: so.\nOn second thoughts:\nAnswer: no\nReason: not so.", (False, "not so.")),
        ("No\nReason: it is not.", (False, "it is not.")),
        ("Yes.", (True, "")),
        ('Answer: "no"', (False, "")),
    ],
)
def test_verdicts_that_can_be_read(text: str, expected: tuple[bool, str]) -> None:
    assert read_verdict(reply(text)) == expected


def test_a_verdict_amid_a_thought_is_none() -> None:
    """A model that thinks aloud is cut off, or stops, before it says what it means."""
    for text in ("<think>\nAnswer: yes would be hasty", " <think>Hm.\nAnswer: no\n"):
        with pytest.raises(UnreadableReplyError, match="within the model's thought"):
            read_verdict(reply(text))
    with pytest.raises(UnreadableReplyError, match="no 'Answer: yes'"):
        read_verdict(reply("It seems so.\nAnswer: yes\nBut wait", finish_reason="length"))
    assert read_verdict(reply("\nAnswer: yes\nReason: it is all", finish_reason="length")) == (True, "it is all")
    assert read_verdict(reply("No.\nIt is", finish_reason="length")) == (False, "It is")
    assert read_verdict(reply("<think>Answer: no</think>Answer: yes")) == (True, "")


@pytest.mark.parametrize(
    "text",
    [
        "Answer: yes or no\nReason: none",
        "Answer: maybe",
        "Answer: nothing",
        "Answer: yesterday",
        "Yes, no.",
        "I say no",
    ],
)
def test_verdicts_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UnreadableReplyError, match="no 'Answer: yes'"):
        read_verdict(reply(text))


def test_prompts_keep_data_inside_their_tags() -> None:
    prompts = read_prompts()
    for name, prompt in prompts.items():
        values = {field: f"</{field}> {{query}}" for field in FIELDS[name]}
        text = prompt.messages(**values)[-1]["content"]
        for tag in ("query", "instruction", "passage", "context"):
            assert text.count(f"</{tag}>") == (tag in FIELDS[name]), (name, tag)


def test_records_say_what_a_reply_depends_on(tmp_path: Path) -> None:
    language_model = LanguageModel(Endpoint("http://127.0.0.1:9"), Store(tmp_path / "store.sqlite"), progress=False)
    domain, prompts = read_domains()["finance"], read_prompts()
    asking = DomainAsking(language_model, "m", Sampling(seed=3), prompts, domain)
    values = {"query": "q", "instruction": "i", "passage": "p"}
    of_domain = {"expert": domain.expert, "kind": domain.query, "passage_kind": domain.passage}
    request = Request("m", prompts["relevance"].messages(**values, **of_domain), Sampling(seed=3))
    assert asking.request_by("relevance", **values).key == request.key
    sampling = {"temperature": 0.0, "top_p": 0.7, "max_tokens": 512, "top_logprobs": 0, "seed": 3, "extra": {}}
    expected = {"model": "m", "sampling": sampling, "domain": f"finance {domain.version}"}
    version = prompts["relevance"].version
    assert asking.record_of("relevance") == {**expected, "prompt": f"relevance {version}"}
    assert asking.record() == {**expected, "prompts": {name: prompt.version for name, prompt in prompts.items()}}


def test_own_prompts_take_the_place_of_ours(tmp_path: Path) -> None:
    (tmp_path / "relevance.txt").write_text("---\n---\n{expert} {kind} {passage_kind} {query} {instruction} {passage}")
    assert read_prompts(tmp_path)["relevance"].system == ""
    assert read_prompts(tmp_path)["citation"] == read_prompts()["citation"]
    (tmp_path / "relevance.txt").write_text("---\n---\n{query}")
    with pytest.raises(ValueError, match="expected the fields"):
        read_prompts(tmp_path)
    with pytest.raises(FileNotFoundError, match="holds none of"):
        read_prompts(tmp_path / "nowhere")


def test_domains_have_the_levels_of_the_paper() -> None:
    domains = read_domains()
    assert {name: list(d.levels) for name, d in domains.items()} == {
        **{name: [1, 2, 3] for name in ("finance", "health", "law", "science")},
        "nutrition": [0],
    }
    # IFIR, section 3.2: level 1 is a fixed sentence, except for patients, whose disease it names.
    assert {name for name, d in domains.items() if 1 in d.levels and not d.levels[1].templates} == {"health"}


def test_what_the_source_knows_settles_conditions() -> None:
    health, science = choose_domain("health").levels[2], choose_domain("science").levels[2]
    fields = {"age": ("38",), "gender": ("male",), "label": ("CONTRADICT",)}
    for seed in range(20):
        (patient,) = health.draw(fields, random.Random(seed), "q")
        assert patient.line == "- the patient's age and sex: age 38, gender male"
        (stance,) = science.draw(fields, random.Random(seed), "q")
        assert (stance.value, stance.given) == ("contradicts", {"label": "CONTRADICT"})
        assert "contradicts" in filled(science.templates[seed % 3], [stance])
    sides = Counter(science.draw({}, random.Random(seed), "q")[0].value for seed in range(200))
    assert set(sides) == {"supports", "contradicts"} and min(sides.values()) > 60
    both = {"label": ("CONTRADICT", "SUPPORT")}
    assert {science.draw(both, random.Random(seed), "q")[0].value for seed in range(20)} == set(sides)
    with pytest.raises(ValueError, match="query 'q': label is 'REFUTES', but the condition 'stance' knows"):
        science.draw({"label": ("REFUTES",)}, random.Random(0), "q")


def test_the_choice_of_conditions_is_seeded() -> None:
    level = choose_domain("finance").levels[2]
    drawn = [[c.name for c in level.draw({}, random.Random(seed), "q")] for seed in range(50)]
    assert drawn == [[c.name for c in level.draw({}, random.Random(seed), "q")] for seed in range(50)]
    assert {len(names) for names in drawn} == {2, 3} and len({tuple(names) for names in drawn}) > 5


GOOD: dict[str, Any] = {
    "name": "wine",
    "expert": "wine",
    "asker": "a cook",
    "query": "dish",
    "passage": "note on a wine",
    "levels": {"1": {"templates": ["Find a wine for this dish."]}, "2": {"task": "names a price", "conditions": []}},
}


def test_a_domain_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "wine.json"
    path.write_text(json.dumps(GOOD))
    assert list(choose_domain("wine", path).levels) == [1, 2]
    assert choose_domain("wine", tmp_path).version == choose_domain("wine", path).version
    path.write_text(json.dumps(GOOD | {"name": "law"}))
    assert choose_domain("law", path).asker == "a cook"
    with pytest.raises(FileNotFoundError, match="neither a domain file nor a folder"):
        choose_domain("wine", tmp_path / "none.json")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"levels": {"2": {"task": "t"}}}, "begin at 1"),
        ({"levels": {"4": {"task": "t"}}}, "keys among 0, 1, 2, 3"),
        ({"levels": {"1": {}}}, "level 1 needs either 'templates' or a 'task'"),
        ({"levels": {"1": {"task": "t", "choose": [2, 1]}}}, "fewest and the most"),
        ({"levels": {"1": {"templates": ["{side}"]}}}, "names \\['side'\\]"),
        ({"levels": {"1": {"task": "t", "conditions": [{"name": "n"}]}}}, "a condition of level 1 lacks text"),
        ({"level": {}}, "the domain has unknown level"),
        ({"asker": 3}, "'asker' must be a text"),
    ],
)
def test_domain_files_that_are_wrong(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    (tmp_path / "wine.json").write_text(json.dumps(GOOD | change))
    with pytest.raises(ValueError, match=rf"wine.json: .*{reason}"):
        choose_domain("wine", tmp_path)


SOURCE: dict[str, Rows] = {
    "corpus": [{"_id": d, "title": "", "text": f"Text {d}."} for d in "abc"],
    "queries": [{"_id": q, "text": f"Query {q}?"} for q in ("1", "2", "3")],
    "qrels": [
        {"query-id": "1", "corpus-id": "a", "score": 2},
        {"query-id": "1", "corpus-id": "b", "score": 1},
        {"query-id": "2", "corpus-id": "c", "score": 0},
    ],
}
WRITERS = pytest.mark.parametrize("write", [write_source, write_beir])


def read(folder: Path, min_grade: int = 1) -> Any:
    return read_source(folder, folder, folder, min_grade)


@WRITERS
def test_queries_without_relevant_passage_are_dropped_and_counted(write: Any, tmp_path: Path) -> None:
    source = read(write(tmp_path / "s", SOURCE))
    assert [q.id for q in source.queries] == ["1"]
    assert source.relevant == {"1": {"a": "", "b": ""}}
    assert source.passages == {"a": "Text a.", "b": "Text b."}
    assert (source.counts["n_source_queries"], source.counts["n_queries_without_relevant"]) == (3, 2)
    assert read(tmp_path / "s", 2).relevant == {"1": {"a": ""}}
    with pytest.raises(ValueError, match="no query has a relevant passage"):
        read(tmp_path / "s", 3)


@WRITERS
def test_judgements_that_point_nowhere(write: Any, tmp_path: Path) -> None:
    stray = [{"query-id": "1", "corpus-id": "z", "score": 1}, {"query-id": "9", "corpus-id": "a", "score": 1}]
    with pytest.raises(ValueError) as caught:
        read(write(tmp_path / "s", SOURCE | {"qrels": [*SOURCE["qrels"], *stray]}))
    assert "1 unknown queries: '9'" in str(caught.value) and "('1', 'z')" in str(caught.value)


@WRITERS
def test_empty_passages_are_dropped_and_counted(write: Any, tmp_path: Path) -> None:
    corpus = [row | {"text": " "} if row["_id"] == "b" else row for row in SOURCE["corpus"]]
    source = read(write(tmp_path / "s", SOURCE | {"corpus": corpus}))
    assert source.relevant == {"1": {"a": ""}}
    assert source.counts["n_dropped_empty_passages"] == source.counts["n_judgements_on_dropped_passages"] == 1


@WRITERS
def test_labels_and_fields(write: Any, tmp_path: Path) -> None:
    qrels = [row | {"label": label} for row, label in zip(SOURCE["qrels"], ("SUPPORT", "CONTRADICT", ""), strict=True)]
    queries = [row | {"age": "38", "gender": "f"} for row in SOURCE["queries"]]
    (query,) = read(write(tmp_path / "s", SOURCE | {"qrels": qrels, "queries": queries})).queries
    assert query.fields == {"age": ("38",), "gender": ("f",), "label": ("CONTRADICT", "SUPPORT")}


def test_labels_in_the_form_of_scifact(tmp_path: Path) -> None:
    evidence = {"a": [{"sentences": [1], "label": "SUPPORT"}]}
    queries = [row | {"metadata": evidence if row["_id"] == "1" else {}} for row in SOURCE["queries"]]
    source = read(write_beir(tmp_path / "s", SOURCE | {"queries": queries}))
    assert source.relevant == {"1": {"a": "SUPPORT", "b": ""}}
    assert source.queries[0].fields["label"] == ("SUPPORT",)


def test_judgements_of_trec_and_separate_places(tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "s", SOURCE)
    (tmp_path / "topics.qrels").write_text("1 0 a 1\n1 0 b -1\n2 0 c 1\n")
    source = read_source(folder / "corpus.jsonl", folder / "queries.jsonl", tmp_path / "topics.qrels")
    assert source.relevant == {"1": {"a": ""}, "2": {"c": ""}}
    with pytest.raises(FileNotFoundError, match=r"holds neither corpus.parquet nor corpus.jsonl"):
        read_source(tmp_path, folder, folder)
    with pytest.raises(FileNotFoundError, match="there is no queries file or dataset directory"):
        read_source(folder, tmp_path / "none", folder)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("query-id\tcorpus-id\tscore\n1\ta\tx\n", "line 2: expected .* a whole score"),
        ("query-id\tcorpus-id\tscore\n1\ta\n", "line 2: expected"),
        ("1 0 a 1\n1 0 a 0\n", "line 2: document 'a' is judged twice for query '1'"),
        ("1 0 a 0.5\n", "line 1: expected"),
    ],
)
def test_judgements_that_cannot_be_read(text: str, reason: str, tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "s", SOURCE)
    (folder / "qrels" / "test.tsv").write_text(text)
    with pytest.raises(ValueError, match=reason):
        read(folder)
