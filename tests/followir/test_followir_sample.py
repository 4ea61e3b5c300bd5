"""The FollowIR sample: it is what the builder writes, it has the shape of FollowIR, and the prose bears it out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from evaluators.metrics.pmrr import p_mrr
from evaluators.plugin.dataset import card_text, read_config
from followir_tasks.sample_build import CARD, DIRECTORY, build, narratives

Rows = list[dict[str, Any]]
COLUMNS = {
    "corpus": ["_id", "title", "text"],
    "queries": ["_id", "text"],
    "instruction": ["query-id", "instruction"],
    "instruction_forms": ["query-id", "keywords", "short"],
    "qrels": ["query-id", "corpus-id", "score"],
    "top_ranked": ["query-id", "corpus-ids"],
    "qrel_diff": ["query-id", "corpus-ids"],
    "topics": ["query-id", "title", "description", "narrative", "changed_narrative", "constraint"],
}
TOPIC_IDS = [f"t{number}" for number in range(101, 125)]


def _read_all(directory: Path) -> dict[str, Rows]:
    tables = {name: read_config(directory, name) for name in COLUMNS}
    return {name: table.to_pylist() for name, table in tables.items() if table is not None}


SHIPPED = _read_all(DIRECTORY)
TEXTS = {doc["_id"]: doc["text"] for doc in SHIPPED["corpus"]}
CANDIDATES = {row["query-id"]: row["corpus-ids"] for row in SHIPPED["top_ranked"]}
DIFF = {row["query-id"]: row["corpus-ids"] for row in SHIPPED["qrel_diff"]}
TOPICS = {row["query-id"]: row for row in SHIPPED["topics"]}


def _judgements() -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    for row in SHIPPED["qrels"]:
        judged.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
    return judged


JUDGED = _judgements()


def _relevant(query_id: str) -> set[str]:
    return {doc for doc, score in JUDGED[query_id].items() if score > 0}


# --- the files ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built() -> dict[str, Rows]:
    return build()


@pytest.mark.parametrize("name", COLUMNS)
def test_shipped_files_are_what_the_builder_writes(name: str, built: dict[str, Rows]) -> None:
    assert list(built) == list(COLUMNS)
    assert SHIPPED[name] == built[name]
    assert all(list(row) == COLUMNS[name] for row in built[name])


def test_shipped_card_is_what_the_builder_writes() -> None:
    assert (DIRECTORY / "README.md").read_text(encoding="utf-8") == card_text(CARD, list(COLUMNS))


def test_another_seed_gives_other_passages_for_the_same_topics(built: dict[str, Rows]) -> None:
    other = build(seed=1)
    assert other["topics"] == built["topics"]
    assert not {doc["text"] for doc in other["corpus"]} & set(TEXTS.values())


def test_files_are_small() -> None:
    package = DIRECTORY.parent
    assert sum(f.stat().st_size for f in package.glob("sample*/*") if f.is_file()) < 700_000


# --- topics and passages -----------------------------------------------------------------------------------------


def test_topics() -> None:
    assert list(TOPICS) == TOPIC_IDS
    constraints = {topic["constraint"] for topic in TOPICS.values()}
    assert constraints == {"time", "place", "source", "negation", "scale", "actor", "outcome"}
    assert len({topic["description"] for topic in TOPICS.values()}) == len(TOPICS)


@pytest.mark.parametrize("topic_id", TOPIC_IDS)
def test_the_changed_narrative_is_the_narrative_with_a_sentence_added(topic_id: str) -> None:
    topic = TOPICS[topic_id]
    sentences = re.split(r"(?<=\.) ", topic["narrative"])
    changed = re.split(r"(?<=\.) ", topic["changed_narrative"])
    assert [s for s in changed if s in sentences] == sentences
    assert len(changed) == len(sentences) + 1


def test_narratives_takes_the_marked_part_out_or_leaves_the_marks_out() -> None:
    assert narratives("One. <+ Two. +> Three.") == ("One. Three.", "One. Two. Three.")
    assert narratives("One. <+ Two. +>") == ("One.", "One. Two.")


def test_both_queries_of_a_topic_ask_the_description_and_differ_in_the_instruction() -> None:
    queries = {row["_id"]: row["text"] for row in SHIPPED["queries"]}
    instructions = {row["query-id"]: row["instruction"] for row in SHIPPED["instruction"]}
    assert len(queries) == len(SHIPPED["queries"]) == 2 * len(TOPICS)
    assert queries.keys() == instructions.keys() == CANDIDATES.keys() == JUDGED.keys()
    for topic_id, topic in TOPICS.items():
        assert queries[f"{topic_id}-og"] == queries[f"{topic_id}-changed"] == topic["description"]
        assert instructions[f"{topic_id}-og"] == topic["narrative"]
        assert instructions[f"{topic_id}-changed"] == topic["changed_narrative"]


def test_passages() -> None:
    ids = [doc["_id"] for doc in SHIPPED["corpus"]]
    assert 500 <= len(ids) <= 600
    assert len(set(ids)) == len(set(TEXTS.values())) == len(ids)
    assert ids == sorted(ids)
    assert all(re.fullmatch(r"[0-9a-f]{8}-[a-z]{4}", doc_id) for doc_id in ids)
    for doc in SHIPPED["corpus"]:
        assert 60 <= len(doc["text"].split()) <= 150, doc
        assert not re.search(r"[\[\]{}|<>]|\s\s|\s[.,;]", doc["title"] + " " + doc["text"]), doc
        assert doc["text"] == doc["text"].strip()
        assert doc["title"]


# --- judgements --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic_id", TOPIC_IDS)
def test_candidates_and_counts(topic_id: str) -> None:
    original, changed = _relevant(f"{topic_id}-og"), _relevant(f"{topic_id}-changed")
    candidates = CANDIDATES[f"{topic_id}-og"]
    assert CANDIDATES[f"{topic_id}-changed"] == candidates
    assert len(set(candidates)) == len(candidates) == 100
    assert candidates == sorted(candidates)
    assert set(candidates) <= TEXTS.keys()
    assert JUDGED[f"{topic_id}-og"].keys() == JUDGED[f"{topic_id}-changed"].keys() <= set(candidates)
    assert 12 <= len(original) <= 24
    assert 0.35 <= len(changed) / len(original) <= 0.65
    assert len(JUDGED[f"{topic_id}-og"]) - len(original) >= 6  # near-misses


@pytest.mark.parametrize("topic_id", TOPIC_IDS)
def test_the_change_only_narrows_and_qrel_diff_says_by_what(topic_id: str) -> None:
    original, changed = _relevant(f"{topic_id}-og"), _relevant(f"{topic_id}-changed")
    assert changed < original
    assert DIFF[topic_id] == sorted(original - changed)


def test_every_document_is_judged_for_one_topic_only() -> None:
    judged = [doc for topic_id in TOPIC_IDS for doc in JUDGED[f"{topic_id}-og"]]
    assert len(judged) == len(set(judged)) == len(TEXTS)
    assert {row["score"] for row in SHIPPED["qrels"]} == {0, 1}
    assert list(DIFF) == TOPIC_IDS


def _oracle(sign: float) -> dict[str, dict[str, float]]:
    return {q: {doc: sign * JUDGED[q].get(doc, 0) for doc in docs} for q, docs in CANDIDATES.items()}


def _pmrr(run: dict[str, dict[str, float]]) -> float:
    original = {q: scores for q, scores in run.items() if q.endswith("-og")}
    changed = {q: scores for q, scores in run.items() if q.endswith("-changed")}
    return p_mrr(original, changed, DIFF).score


def test_judgements_as_scores_give_a_high_pmrr_and_the_reverse_a_low_one() -> None:
    assert _pmrr(_oracle(1.0)) > 0.5
    assert _pmrr(_oracle(-1.0)) < -0.3


def test_the_order_of_ids_tells_nothing() -> None:
    """Ranking by id alone is close to chance: the mean rank of relevant candidates is near the middle."""
    ranks = [CANDIDATES[q].index(doc) for q in CANDIDATES if q.endswith("-og") for doc in sorted(_relevant(q))]
    assert 44 < sum(ranks) / len(ranks) < 55


# --- an independent reader: decides from the prose, knowing nothing of the generator's facets --------------------


def _int(pattern: str, text: str) -> int:
    found = re.findall(pattern, text)
    assert len(found) == 1, (pattern, found, text)
    return int(found[0].replace(",", ""))


def _says(yes: str, no: str) -> Callable[[str], bool]:
    """A reader that must find exactly one of the two patterns."""

    def read(text: str) -> bool:
        is_yes, is_no = bool(re.search(yes, text)), bool(re.search(no, text))
        assert is_yes != is_no, text
        return is_yes

    return read


def _names(countries: Iterable[str]) -> Callable[[str], bool]:
    pattern = r"\b(" + "|".join(countries) + r")\b"
    return lambda text: bool(re.search(pattern, text))


def _due_year(text: str) -> int:
    return _int(r"(?:names|the end of|hand-over in \w+) (\d{4})", text)


MEETS_CONSTRAINT: dict[str, Callable[[str], bool]] = {
    "t101": lambda text: _due_year(text) >= 2016,
    "t102": _says(r"co-operative|\b(?:elect|choose)\b|in common", r"state power company|from the capital|held by"),
    "t103": lambda text: _int(r"([\d,]+) (?:homes|flats)", text) > 5000,
    "t104": _says(r"withdrew|off the table|refused consent|struck down", r"began|gave consent|upheld"),
    "t105": _says(
        r"(?:post .* was filled|team was complete|enough midwives|mould|cracked beams)",
        r"searched in vain|stood empty|nobody could be hired",
    ),
    "t106": _names(["Kenya", "Ghana", "Senegal", "Morocco", "Malawi", "Zambia", "Mozambique", "Cameroon"]),
    "t107": _says(r"reviewers|quarterly|Journal", r"ministry|insurance fund|test kits"),
    "t108": _says(
        r"\bfell from\b|(?:dropped|fallen) by|percent fewer", r"not changed|stayed (?:level|at)|no difference"
    ),
    "t109": _says(r"[Ee]veryone|found unharmed", r"did not come ashore|people drowned|bodies"),
    "t110": _says(
        r"years ago|(?:eighteen|twenty|thirty) months|year under",
        r"weeks ago|(?:four|five|seven|nine) months|month under",
    ),
    "t111": _says(r"neighbouring state|foreign soil|beyond the frontier", r"without leaving|still deep|short of"),
    "t113": _says(r"signed a|both approved|Hands were shaken", r"without signing|neither would|imposed"),
    "t114": lambda text: _int(r"([\d,]+) schools", text) >= 50,
    "t115": _says(r"no trace|hornets|parasite|chemicals were ruled out", r"hardly any|fungicide|seed coated"),
    "t116": lambda text: not _names(["Norway", "Ireland", "Greece", "Iceland", "Croatia", "Finland"])(text),
    "t118": lambda text: _int(r"(?:began in|September|form since) (\d{4})", text) < 2000,
    "t119": _says(r"No one has|refused|turned down|no books are lent", r"readers has carried|now staff|still lent"),
    "t121": _says(r"labour inspectorate|[Gg]overnment|national occ", r"firm's own|union|shareholders"),
    "t122": _says(r"raised|granted|gave way", r"old rate|promised|did not give way"),
    "t123": _says(r"police|Detectives|border guard|ministry", r"guards of a|Stewards|chain operates"),
    "t124": lambda text: _int(r"([\d,]+) (?:people live|inhabitants|people, the)", text) > 100_000,
}

# The same for the original narrative, where one pattern does not decide alone.
MEETS_NARRATIVE: dict[str, Callable[[str], bool]] = {
    "t101": lambda text: (
        bool(re.search(r"\d+ months", text)) and not re.search(r"hilltop|ridge|farmland|pasture", text)
    ),
    "t106": lambda text: (
        "easles" in text
        and not re.search(r"Measles is not part|measles will have to wait|no vaccination drive|nothing has been", text)
    ),
    "t109": lambda text: (
        "ferry" in text and not re.search(r"in harbour for|at the quay for|not involved|no passengers", text)
    ),
    "t116": lambda text: bool(re.search(r"swam off|escaped|got away|broke|burst|free", text)),
    "t118": lambda text: not re.search(r"evening|chosen as|may take", text),
}


@pytest.mark.parametrize("topic_id", MEETS_CONSTRAINT)
def test_a_reader_finds_the_added_constraint_in_the_prose(topic_id: str) -> None:
    for doc in sorted(_relevant(f"{topic_id}-og")):
        expected = doc in _relevant(f"{topic_id}-changed")
        assert MEETS_CONSTRAINT[topic_id](TEXTS[doc]) == expected, TEXTS[doc]


@pytest.mark.parametrize("topic_id", MEETS_NARRATIVE)
def test_a_reader_tells_relevant_documents_from_near_misses(topic_id: str) -> None:
    for doc in JUDGED[f"{topic_id}-og"]:
        assert MEETS_NARRATIVE[topic_id](TEXTS[doc]) == (doc in _relevant(f"{topic_id}-og")), TEXTS[doc]
