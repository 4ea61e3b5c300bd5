"""Builds the FollowIR sample inside the package: 24 topics, their passages and two instructions for each.

Run ``python -m followir_tasks.sample_build`` to write the dataset again. The texts are in ``sample_source``: one
file for each family of four topics. The same seed always gives the same rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from evaluators.metrics.pmrr import CHANGED_SUFFIX, ORIGINAL_SUFFIX
from evaluators.plugin.dataset import Card, write_dataset
from followir_tasks.forms import CONFIG as FORMS
from followir_tasks.sample_forms import keywords, short_forms
from followir_tasks.sample_text import write_passage

SOURCE = Path(__file__).parent / "sample_source"
DIRECTORY = Path(__file__).parent / "sample"
FAMILIES = ("energy", "health", "transport", "food_water", "culture", "work_tech")

CANDIDATES = 100
# Candidates from the three sister topics. The rest of the 100 comes from other families.
SISTERS = 62

CARD = Card(
    title="FollowIR sample (mteb-beyond)",
    license="mit",
    tags=("information-retrieval", "instruction-following", "synthetic"),
    body="""
A small dataset in the form of FollowIR, for trying out the evaluation without a download. Each of 24 topics has
a description (the query), a narrative (the instruction) and a changed narrative, which adds one constraint. A model
ranks the same 100 candidates under both; p-MRR tells whether the documents that lost their relevance moved down.

| config | content |
|---|---|
| `corpus` | the passages |
| `queries` | the description, once as `-og` and once as `-changed` |
| `instruction` | the narrative for `-og`, the changed narrative for `-changed` |
| `instruction_forms` | a short form of the instruction and its keywords, by rule |
| `qrels` | 1 for relevant, 0 for judged and not relevant; other candidates are not relevant either |
| `top_ranked` | the 100 candidates, sorted by id |
| `qrel_diff` | the documents that are relevant under the narrative and not under the changed one |
| `topics` | title, description, both narratives, and the kind of constraint that was added |

**How it was made.** All text comes from sentence patterns written for this purpose and filled by a seeded
random generator (`followir_tasks/sample_build.py`). A passage has facets, such as its kind of event and a value
for the topic's constraint; the judgements follow from these facets, and each facet is stated in the passage. The
changed narrative only narrows the narrative, and between 35 and 65 percent of a topic's relevant documents stay
relevant. The short form is the narrative's first sentence and, for the changed narrative, the added one; the keywords
are the words of the short form in order, each once, without function words. Candidates are a topic's relevant
documents, its near-misses, documents of its three sister topics, and some documents of other families.

**Limits.** This is generated text, not the real FollowIR, which uses TREC topics and newspaper articles. Towns,
people and events are invented, also where a real country is named. The passages repeat sentence patterns and are
shorter than real articles. Results show that a set-up works and in which direction a model moves; do not compare
them with published FollowIR scores.
""",
)


@dataclass(frozen=True)
class _Judged:
    """The documents of a topic, by judgement."""

    kept: list[dict[str, str]]
    changed: list[dict[str, str]]
    near_misses: list[dict[str, str]]

    def all(self) -> list[dict[str, str]]:
        return self.kept + self.changed + self.near_misses


def build(seed: int = 0) -> dict[str, list[dict[str, Any]]]:
    """The rows of all configs. The same seed gives the same rows."""
    common = _read("common")
    families = [_read(name) for name in FAMILIES]
    judged = {
        topic["id"]: _write_topic(common, family, topic, seed) for family in families for topic in family["topics"]
    }
    configs: dict[str, list[dict[str, Any]]] = {
        "corpus": sorted((doc for docs in judged.values() for doc in docs.all()), key=lambda doc: doc["_id"]),
        "queries": [],
        "instruction": [],
        FORMS: [],
        "qrels": [],
        "top_ranked": [],
        "qrel_diff": [],
        "topics": [],
    }
    for family in families:
        sisters = [topic["id"] for topic in family["topics"]]
        for topic in family["topics"]:
            candidates = _candidates(topic["id"], sisters, judged, seed)
            _add_topic(configs, topic, judged[topic["id"]], candidates)
    return configs


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((SOURCE / f"{name}.json").read_text(encoding="utf-8"))
    return content


def _write_topic(common: Mapping[str, Any], family: Mapping[str, Any], topic: Mapping[str, Any], seed: int) -> _Judged:
    """Decide how many documents of each judgement the topic gets, and write them."""
    rng = Random(f"{seed}/{topic['id']}/counts")
    n_relevant = rng.randint(13, 20)
    n_kept = round(n_relevant * rng.uniform(0.40, 0.60))
    relevant = [kind for kind in topic["kinds"] if kind["relevant"]]
    excluded = [kind for kind in topic["kinds"] if not kind["relevant"]]

    def write(group: str, i: int, kinds: list[dict[str, Any]], side: str) -> dict[str, str]:
        # Kinds take turns within a group, so that the constraint is independent of the kind of event.
        doc_rng = Random(f"{seed}/{topic['id']}/{group}/{i}")
        return write_passage(common, family, topic, kinds[i % len(kinds)], side, doc_rng)

    return _Judged(
        kept=[write("kept", i, relevant, "keep") for i in range(n_kept)],
        changed=[write("changed", i, relevant, "drop") for i in range(n_relevant - n_kept)],
        # Two in a row have the same side: both kinds of near-miss then occur with both sides.
        near_misses=[
            write("near", i, excluded, "keep" if i // 2 % 2 == 0 else "drop") for i in range(rng.randint(7, 9))
        ],
    )


def _candidates(topic_id: str, sisters: list[str], judged: Mapping[str, _Judged], seed: int) -> list[str]:
    """The ids of the topic's own documents, of sister documents and of others, sorted."""
    rng = Random(f"{seed}/{topic_id}/candidates")
    own = [doc["_id"] for doc in judged[topic_id].all()]
    near = [doc["_id"] for t in sisters if t != topic_id for doc in judged[t].all()]
    far = [doc["_id"] for t, docs in judged.items() if t not in sisters for doc in docs.all()]
    chosen = own + rng.sample(near, SISTERS)
    return sorted(chosen + rng.sample(far, CANDIDATES - len(chosen)))


def _add_topic(
    configs: dict[str, list[dict[str, Any]]], topic: Mapping[str, Any], docs: _Judged, candidates: list[str]
) -> None:
    narrative, changed_narrative = narratives(topic["narrative"])
    short, short_changed = short_forms(narrative, changed_narrative)
    kept, changed, near = (sorted(d["_id"] for d in group) for group in (docs.kept, docs.changed, docs.near_misses))
    variants = (
        (ORIGINAL_SUFFIX, narrative, short, kept + changed, near),
        (CHANGED_SUFFIX, changed_narrative, short_changed, kept, changed + near),
    )
    for suffix, instruction, shorter, relevant, not_relevant in variants:
        query_id = topic["id"] + suffix
        grades = dict.fromkeys(relevant, 1) | dict.fromkeys(not_relevant, 0)
        configs["queries"].append({"_id": query_id, "text": topic["description"]})
        configs["instruction"].append({"query-id": query_id, "instruction": instruction})
        configs[FORMS].append({"query-id": query_id, "keywords": keywords(shorter), "short": shorter})
        configs["qrels"] += [{"query-id": query_id, "corpus-id": doc, "score": grades[doc]} for doc in sorted(grades)]
        configs["top_ranked"].append({"query-id": query_id, "corpus-ids": candidates})
    configs["qrel_diff"].append({"query-id": topic["id"], "corpus-ids": changed})
    configs["topics"].append(
        {
            "query-id": topic["id"],
            "title": topic["title"],
            "description": topic["description"],
            "narrative": narrative,
            "changed_narrative": changed_narrative,
            "constraint": topic["constraint"],
        }
    )


def narratives(marked: str) -> tuple[str, str]:
    """The narrative without and with the part between ``<+`` and ``+>``, which is the added constraint."""
    without = re.sub(r"<\+.*?\+>", "", marked)
    with_constraint = re.sub(r"<\+|\+>", "", marked)
    return " ".join(without.split()), " ".join(with_constraint.split())


def main() -> None:
    """Write the dataset into the package."""
    write_dataset(DIRECTORY, build(), CARD)


if __name__ == "__main__":
    main()
