"""The IFIR sample: its shape, and that its prose says what its facets claim.

The readers below know nothing of the builder's vocabulary files: they decide from a passage's sentences, as a
person would, and their verdicts are compared with the shipped scores.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from typing import Any

import pytest

from evaluators.plugin.dataset import card_text, read_config
from ifir_tasks.sample_build import CARD, DIRECTORY, build

CONFIGS = ("corpus", "queries", "qrels", "instruction", "facets", "base_queries")
LEVELS = {"v0": 3, "v1": 1, "v2": 2, "v3": 3}
Rows = list[dict[str, Any]]


def _counts_fit(data: dict[str, Rows]) -> None:
    per_query = Counter(row["query-id"] for row in data["qrels"])
    ranges = {"v0": (1, 4), "v1": (6, 10), "v2": (3, 5), "v3": (1, 3)}
    for query_id in (row["query-id"] for row in data["instruction"]):
        low, high = ranges[query_id[-2:]]
        assert low <= per_query[query_id] <= high, query_id


@pytest.fixture(scope="module")
def data() -> dict[str, Rows]:
    tables = {name: read_config(DIRECTORY, name) for name in CONFIGS}
    return {name: table.to_pylist() for name, table in tables.items() if table is not None}


@pytest.fixture(scope="module")
def scores(data: dict[str, Rows]) -> dict[tuple[str, str], int]:
    return {(row["query-id"], row["corpus-id"]): row["score"] for row in data["facets"]}


@pytest.fixture(scope="module")
def texts(data: dict[str, Rows]) -> dict[str, str]:
    return {row["_id"]: row["text"] for row in data["corpus"]}


@pytest.fixture(scope="module")
def wants(data: dict[str, Rows]) -> dict[str, dict[str, str]]:
    return {row["query-id"]: json.loads(row["facets"]) for row in data["base_queries"]}


@pytest.fixture(scope="module")
def instructions(data: dict[str, Rows]) -> dict[str, str]:
    return {row["query-id"]: row["instruction"] for row in data["instruction"]}


def test_rebuild_equals_shipped(data: dict[str, Rows]) -> None:
    rebuilt = build()
    assert list(rebuilt) == list(CONFIGS)
    for name in CONFIGS:
        assert rebuilt[name] == data[name], name
    assert (DIRECTORY / "README.md").read_text(encoding="utf-8") == card_text(CARD, CONFIGS)


def test_another_seed_is_another_sample_of_the_same_shape(data: dict[str, Rows]) -> None:
    other = build(seed=1)
    assert other["corpus"] != data["corpus"]
    assert other["queries"] == data["queries"]
    _counts_fit(other)


def test_size_on_disk() -> None:
    assert sum(file.stat().st_size for file in DIRECTORY.iterdir()) < 700_000


def test_counts(data: dict[str, Rows]) -> None:
    domains = Counter(row["domain"] for row in data["base_queries"])
    assert domains == dict.fromkeys(("finance", "science", "law", "health", "nutrition"), 8)
    passages = Counter(row["_id"][-3:] for row in data["corpus"])
    assert all(passages[tag] >= 64 for tag in ("fin", "sci", "law", "hea"))
    variants = Counter(row["_id"][-2:] for row in data["queries"])
    assert variants == {"og": 40, "v0": 8, "v1": 32, "v2": 32, "v3": 32}
    _counts_fit(data)


def test_ids_are_unique_and_tell_nothing(data: dict[str, Rows]) -> None:
    for name, column in (("corpus", "_id"), ("queries", "_id"), ("instruction", "query-id")):
        ids = [row[column] for row in data[name]]
        assert len(set(ids)) == len(ids)
    ids = [row["_id"] for row in data["corpus"]]
    assert all(re.fullmatch(r"[0-9a-f]{8}-[a-z]{3}", _id) for _id in ids)
    assert ids == sorted(ids)


def test_references_exist(data: dict[str, Rows]) -> None:
    passages = {row["_id"] for row in data["corpus"]}
    queries = {row["_id"] for row in data["queries"]}
    bases = {row["query-id"] for row in data["base_queries"]}
    instructed = {q for q in queries if not q.endswith("-og")}
    assert {row["query-id"] for row in data["instruction"]} == instructed
    assert {row["query-id"] for row in data["qrels"]} == instructed
    assert {row["corpus-id"] for row in data["qrels"]} <= passages
    assert {q.rsplit("-", 1)[0] for q in queries} == bases
    pairs = [(row["query-id"], row["corpus-id"]) for row in data["facets"]]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == {(base, passage) for base in bases for passage in passages}


def test_query_text_is_plain_in_all_variants(data: dict[str, Rows]) -> None:
    plain: dict[str, set[str]] = defaultdict(set)
    for row in data["queries"]:
        plain[row["_id"].rsplit("-", 1)[0]].add(row["text"])
    assert all(len(variants) == 1 for variants in plain.values())
    assert len(set.union(*plain.values())) == 40


def test_qrels_follow_from_facets(data: dict[str, Rows], scores: dict[tuple[str, str], int]) -> None:
    expected = {
        (row["_id"], passage)
        for row in data["queries"]
        if not row["_id"].endswith("-og")
        for (base, passage), score in scores.items()
        if base == row["_id"][:-3] and score >= LEVELS[row["_id"][-2:]]
    }
    assert {(row["query-id"], row["corpus-id"]) for row in data["qrels"]} == expected
    assert {row["score"] for row in data["qrels"]} == {1}
    assert set(scores.values()) == {0, 1, 2, 3}


def test_levels_are_nested(data: dict[str, Rows]) -> None:
    relevant: dict[str, set[str]] = defaultdict(set)
    for row in data["qrels"]:
        relevant[row["query-id"]].add(row["corpus-id"])
    for base in {q[:-3] for q in relevant if q.endswith("-v1")}:
        assert relevant[f"{base}-v3"] < relevant[f"{base}-v2"] < relevant[f"{base}-v1"]


def test_passages(data: dict[str, Rows]) -> None:
    passages = [row["text"] for row in data["corpus"]]
    assert len(set(passages)) == len(passages)
    assert all(60 <= len(text.split()) <= 200 for text in passages)
    assert not any(re.search(r"[{}]", row["title"] + row["text"]) for row in data["corpus"])
    assert 0 < sum(not row["title"] for row in data["corpus"]) < len(passages) / 3


# --- Readers: what a passage says, decided from its sentences alone ---------------------------------------------

WORDS = {"forty": 40, "fifty": 50, "sixty": 60, "sixty-five": 65}
DECADES = {"twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60, "seventies": 70}


def read_age(text: str) -> tuple[int, int]:
    """The lowest and the highest age that a passage admits."""
    found: set[tuple[int, int]] = set()
    found |= {(int(a), int(b)) for a, b in re.findall(r"(?:aged|between) (\d+) (?:to|and) (\d+)", text)}
    for first, second in re.findall(r"in their (\w+ties)(?: or (\w+ties))?", text):
        found.add((DECADES[first], DECADES[second or first] + 9))
    found |= {(int(low), 999) for low in re.findall(r"aged (\d+) or older", text)}
    found |= {(WORDS[low], 999) for low in re.findall(r"of at least ([a-z-]+) years", text)}
    found |= {(18, WORDS[cap] - 1) for cap in re.findall(r"under ([a-z-]+ty(?:-\w+)?)", text)}
    found |= {(18, int(cap) - 1) for cap in re.findall(r"younger than (\d+)", text)}
    found |= {(18, 999) for _ in re.findall(r"of any age", text)}
    found |= {(int(a), int(b)) for a, b in re.findall(r"from (\d+) upward are admitted, but patients over (\d+)", text)}
    found |= {(int(a), int(b)) for a, b in re.findall(r"limit is (\d+) years; nobody past (\d+)", text)}
    found |= {(int(a), int(b) - 1) for b, a in re.findall(r"reached (\d+) should.*every adult from (\d+)", text)}
    assert len(found) == 1, text
    return found.pop()


def read_one(text: str, patterns: dict[str, str]) -> str:
    """The one label whose pattern the text matches."""
    found = [label for label, pattern in patterns.items() if re.search(pattern, text, re.IGNORECASE)]
    assert len(found) == 1, (found, text)
    return found[0]


def without_asides(text: str) -> str:
    """The text without sentences about something that the passage is not about."""
    aside = r"not eligible|is an exclusion|separate protocol|another issue|authors say nothing|Unlike|distinguished"
    aside += r"|Counsel cited|No question of"
    return " ".join(s for s in re.split(r"(?<=\.) ", text) if not re.search(aside, s))


DISEASE = {"lung": r"lung cancer|pulmonary|of the lung", "bowel": r"colorectal|bowel|colon or rectum"}
DISEASE |= {"skin": "melanoma", "breast": "breast cancer|mammary|of the breast"}
VARIANT = {"BRAF V600E": r"BRAF (V600E|p\.Val600Glu|codon 600)", "KRAS G12C": r"KRAS (G12C|p\.Gly12Cys|codon 12)"}
VARIANT |= {"EGFR exon 19": r"EGFR exon 19|EGFR ex19|exon 19 of the EGFR", "NRAS Q61R": r"NRAS"}
VARIANT |= {"PIK3CA H1047R": r"PIK3CA"}
GENDER = {"women": r"only women|\bmale patients are excluded|to female volunteers"}
GENDER |= {"men": r"only men|female patients are excluded|to male volunteers"}
GENDER |= {"any": r"both sexes|men and women|either gender"}
TREATMENT = {"chemo": r"chemotherapy|cytotoxic", "immuno": r"immunotherapy|checkpoint"}
TREATMENT |= {"radio": r"radiotherapy|irradiation", "targeted": r"kinase|targeted tablets"}
HISTORY = {"diabetes": "diabetes", "heart": "heartbeat|atrial", "hepatitis": "hepatitis|viral infection of the liver"}
HISTORY |= {"autoimmune": "autoimmune", "family": "parent or sibling|first-degree"}
REFUSES = r"nobody who|rules a person out|must be free|ground for exclusion|cannot be enrolled|turns away anyone"
DEMANDS = r"must already|is a requirement|study is for people previously|condition of entry|recruits only"


def admits(text: str, items: dict[str, str], patient: str) -> bool:
    """Whether a trial's one rule on these items admits a patient with the history ``patient``."""
    sentences = [s for s in re.split(r"(?<=\.) ", text) if re.search("|".join(items.values()), s)]
    assert len(sentences) == 1, text
    has = read_one(sentences[0], items) in patient.split("+")
    if re.search(REFUSES, sentences[0], re.IGNORECASE):
        return not has
    return has or not re.search(DEMANDS, sentences[0], re.IGNORECASE)


def test_health_prose_carries_the_scores(
    texts: dict[str, str],
    scores: dict[tuple[str, str], int],
    wants: dict[str, dict[str, str]],
    instructions: dict[str, str],
) -> None:
    for base in (b for b in wants if b.startswith("hea")):
        want, asked = wants[base], instructions[f"{base}-v2"]
        age = int(re.findall(r"\b\d\d\b", asked)[0])
        gender = "women" if re.search(r"woman|female", asked) else "men"
        for passage in (p for p in texts if p.endswith("hea")):
            text = without_asides(texts[passage])
            low, high = read_age(text)
            levels = [
                read_one(text, DISEASE) == read_one(want["topic"], DISEASE)
                and read_one(text, VARIANT) == read_one(want["topic"], VARIANT),
                low <= age <= high and read_one(text, GENDER) in (gender, "any"),
                admits(text, TREATMENT, want["treatment"]) and admits(text, HISTORY, want["history"]),
            ]
            read = [*levels, False].index(False)
            assert read == scores[base, passage], (base, passage, text)


SUBJECT = {
    "law-01": r"deposit|returned when it ended|the bond",
    "law-02": r"failure to repair|mouldy|upkeep",
    "law-03": r"overtime|extra hours|evenings and weekends",
    "law-04": r"followed a report|whistleblower|speaking up",
    "law-05": r"customer's fall|slippery tiles|spilled liquid",
    "law-06": r"household appliance|kettle|kitchen machine",
    "law-07": r"months late|overrun|past its deadline",
    "law-08": r"leaking roof|rainwater|let water in",
}
SIDE = {
    "plaintiff": r"entered for|favour of .* every head|defence put forward .* failed|recovered in full"
    r"|restored the award|The plaintiff, .*, won",
    "defendant": r"rejected with costs|set aside on appeal|sided with|cleared .* of liability|empty-handed"
    r"|The defendant, .*, won",
}
PROOF = {
    "documents": r"documentary|signed papers\.|paperwork|written records",
    "witness": r"eyewitness|bystanders|own eyes|passer-by",
    "expert": r"expert evidence|specialist|engineer|called to advise",
    "video": r"surveillance|camera|footage|filmed",
}


def test_law_prose_carries_the_scores(
    texts: dict[str, str],
    scores: dict[tuple[str, str], int],
    wants: dict[str, dict[str, str]],
    instructions: dict[str, str],
) -> None:
    for base in SUBJECT:
        side = read_one(instructions[f"{base}-v2"], {"plaintiff": "plaintiff", "defendant": "defendant"})
        for passage in (p for p in texts if p.endswith("law")):
            text, score = without_asides(texts[passage]), scores[base, passage]
            similar, benefits = read_one(text, SUBJECT) == base, read_one(text, SIDE) == side
            assert min(score, 2) == similar + (similar and benefits), (base, passage, text)
            if score == 3:
                assert read_one(text, PROOF) == wants[base]["evidence"]


def test_finance_prose_carries_the_age(
    texts: dict[str, str], scores: dict[tuple[str, str], int], instructions: dict[str, str]
) -> None:
    for (base, passage), score in scores.items():
        if base.startswith("fin") and score >= 2:
            low, high = read_age(texts[passage])
            assert low <= int(re.findall(r"\b\d\d\b", instructions[f"{base}-v2"])[0]) <= high


STANCE = {
    "support": r"less often|third rarer|clear drop|sooner in users|clearly earlier|faster by|clearly better|fifth more"
    r"|much reduced|minutes longer|later sleep came|clearly longer|points lower|clearly rarer|markedly lower"
    r"|degrees cooler|clearly milder|distinct fall|half as much|clearly below|most of the water",
    "contradict": r"caught just as|no protection|little commoner|as long in users|no sooner|slower when|no better"
    r"|no more items|just as great|just as quickly|sleep came no later|unchanged by use|were the same in|as common with"
    r"|not a bit lower|just as hot|no milder|no change|^as much water|\. as much water|no lower|none of the water",
    "unclear": r"too sparse|no conclusion|inconclusive",
}


def test_science_prose_carries_the_stance(
    texts: dict[str, str], scores: dict[tuple[str, str], int], instructions: dict[str, str]
) -> None:
    for (base, passage), score in scores.items():
        if base.startswith("sci") and score:
            asked = read_one(instructions[f"{base}-v2"], {"support": "support", "contradict": "contradict"})
            assert (read_one(texts[passage], STANCE) == asked) == (score >= 2), texts[passage]


DESIGN = {
    "human": r"placebo-controlled|sixty volunteers|allotted at random|men and women ate",
    "animal": r"laboratory animals|in mice|laboratory rats|rodents",
    "cells": r"in vitro|cells in a dish|test tubes|isolated cells",
    "survey": r"epidemiological|inhabitants|whole province|register of the population",
}


def test_nutrition_prose_carries_the_kind_of_study(
    texts: dict[str, str], scores: dict[tuple[str, str], int], wants: dict[str, dict[str, str]]
) -> None:
    for (base, passage), score in scores.items():
        if base.startswith("nut") and score:
            assert (read_one(texts[passage], DESIGN) == wants[base]["design"]) == (score >= 2)


def test_no_passage_of_another_domain_is_relevant(scores: dict[tuple[str, str], int]) -> None:
    assert all(base[:3] == passage[-3:] for (base, passage), score in scores.items() if score)
