"""Short FollowIR-style topics by the hundred, for measurements of what training teaches.

A topic is a subject and one kind of constraint, wanted or excluded; its documents tell of the subject and state two
facts, the constrained one and another. All text comes from the patterns below and a seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from evaluators.metrics.pmrr import CHANGED_SUFFIX, ORIGINAL_SUFFIX
from evaluators.plugin.dataset import Card, is_dataset_directory, write_dataset

SUBJECTS = (
    "rooftop farm",
    "harbour museum",
    "repair shop for bicycles",
    "public bakery",
    "night bus",
    "floating library",
    "school of masonry",
    "seed bank",
    "open-air swimming pool",
    "market hall",
    "youth orchestra",
    "water mill",
    "observatory",
    "tram depot",
    "fish hatchery",
    "botanical garden",
    "community radio station",
    "toy library",
    "climbing hall",
    "cheese dairy",
    "skate park",
    "blood donation centre",
    "printing workshop",
    "sculpture trail",
    "flood barrier",
    "beekeeping school",
    "puppet theatre",
    "ferry landing",
    "tool exchange",
    "mountain hut",
    "recycling yard",
    "film archive",
    "language cafe",
    "bird reserve",
    "pottery kiln",
    "cable car",
    "mushroom cellar",
    "chess club",
    "glass foundry",
    "sailing school",
    "weather station",
    "second-hand store",
    "cooking school",
    "fire lookout",
    "allotment garden",
    "dance hall",
    "boat yard",
    "reading room",
)

# Kind of fact -> value as an instruction names it -> how documents state it.
FACTS: dict[str, dict[str, tuple[str, ...]]] = {
    "payer": {
        "a charity": ("A charity covered the bill.", "The money came from a benevolent foundation's donors."),
        "the state": ("The national government met the cost.", "It was financed from the state budget."),
        "a company": ("A business corporation paid for all of it.", "A private firm put up the funds."),
        "a university": ("The university bore the expense.", "A faculty of the local university financed it."),
    },
    "outcome": {
        "a success": ("It has been a success beyond all hopes.", "The venture thrives and is praised everywhere."),
        "a failure": ("It turned out a failure.", "The venture collapsed and is seen as a flop."),
        "a scandal": ("It ended in a scandal with arrests.", "Fraud came to light, and officials were charged."),
    },
    "season": {
        "in winter": ("It opened in January, in deep snow.", "The start was on a freezing winter day."),
        "in summer": ("It opened in July, in great heat.", "The start was on a hot summer day."),
        "in autumn": ("It opened in October, amid falling leaves.", "The start was in autumn, after the harvest."),
    },
    "people": {
        "children": ("Mostly children come.", "Pupils and toddlers are its main visitors."),
        "pensioners": ("Mostly pensioners come.", "Elderly and retired people are its main visitors."),
        "tourists": ("Mostly tourists come.", "Holidaymakers from abroad are its main visitors."),
        "students": ("Mostly students come.", "Undergraduates are its main visitors."),
    },
    "material": {
        "wood": ("The building is made of wood.", "Carpenters put it up from timber beams."),
        "brick": ("The building is made of brick.", "Masons laid its walls of red bricks."),
        "steel": ("The building is made of steel.", "Welders put it together from metal girders."),
        "concrete": ("The building is made of concrete.", "Its walls were cast in cement."),
    },
    "surroundings": {
        "by the sea": ("It stands on the coast, above the beach.", "Waves of the ocean break in front of it."),
        "in a forest": ("It stands deep in the woods.", "Fir trees surround it on all sides."),
        "in a desert": ("It stands among sand dunes.", "Around it lies nothing but dry desert."),
        "in the mountains": ("It stands high up on a rocky slope.", "Alpine peaks rise around it."),
    },
    "energy": {
        "solar power": ("Its electricity comes from solar panels.", "Sunlight supplies all the current it uses."),
        "diesel": ("Its electricity comes from a diesel generator.", "A motor burning fuel oil supplies its current."),
        "wind power": ("Its electricity comes from a wind turbine.", "Rotor blades turning in the breeze power it."),
    },
    "damage": {
        "a fire": ("A fire damaged it last year.", "Flames destroyed a part of it last year."),
        "a flood": ("A flood damaged it last year.", "High water swamped it last year."),
        "an earthquake": ("An earthquake damaged it last year.", "Tremors of the ground cracked it last year."),
        "a storm": ("A storm damaged it last year.", "A hurricane tore off its roof last year."),
    },
}
ASKED = {
    "payer": "paid for by {}",
    "outcome": "that became {}",
    "season": "opened {}",
    "people": "visited mainly by {}",
    "material": "built of {}",
    "surroundings": "situated {}",
    "energy": "run on {}",
    "damage": "damaged by {}",
}
TOWNS = [
    "Valdora",
    "Kestrin",
    "Marlova",
    "Santrel",
    "Oberlund",
    "Tarvik",
    "Belcastro",
    "Quintara",
    "Orvalle",
    "Hestmark",
    "Lumbera",
    "Nadrovo",
]
LEADS = (
    "{town} has a {subject} now.",
    "A {subject} was opened in {town}.",
    "People in {town} talk about their {subject}.",
)
GIVEN_UP = ("Plans for a {subject} in {town} were dropped.", "{town} will not get the {subject} that was proposed.")
RELEVANT, NEAR_MISSES, CANDIDATES = 8, 2, 40


def write_topics(directory: Path, subjects: Sequence[str], kinds: Sequence[str], seed: int) -> Path:
    """Write a dataset with a topic for each subject and kind of constraint, unless it is there."""
    if is_dataset_directory(directory):
        return directory
    rng = Random(seed)
    topics = [_Topic.write(subject, kind, rng) for subject in subjects for kind in kinds]
    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("queries", "instruction", "qrels", "top_ranked", "qrel_diff")
    }
    texts = {key: text for topic in topics for key, text in topic.texts.items()}
    for number, topic in enumerate(topics):
        others = sorted({d for t in topics if t.subject != topic.subject for d in t.texts})
        topic.add(rows, f"t{number}", rng.sample(others, CANDIDATES - len(topic.texts)))
    rows["corpus"] = [{"_id": key, "title": "", "text": texts[key]} for key in sorted(texts)]
    write_dataset(directory, rows, Card("Generated topics", "For a measurement.", "mit"))
    return directory


@dataclass
class _Topic:
    """A topic: document id -> text, and the ids by judgement.

    Attributes:
        kept, lost: relevant under the first instruction; with the constraint only ``kept``.
        near: on the subject, and relevant under neither.
    """

    subject: str
    constraint: str
    texts: dict[str, str]
    kept: list[str]
    lost: list[str]
    near: list[str]

    @classmethod
    def write(cls, subject: str, kind: str, rng: Random) -> _Topic:
        """A topic with a constraint of this kind."""
        value = rng.choice(list(FACTS[kind]))
        others = [v for v in FACTS[kind] if v != value]
        wanted = rng.random() < 0.5
        asked = ASKED[kind].format(value)
        constraint = f"It must be one {asked}." if wanted else f"One {asked} is not relevant."
        texts: dict[str, str] = {}

        def documents(n: int, leads: Sequence[str], met: bool) -> list[str]:
            found: set[str] = set()
            while len(found) < n:
                own = value if met == wanted else rng.choice(others)
                text = _document(rng.choice(leads), subject, kind, own, rng)
                key = hashlib.sha256(text.encode()).hexdigest()[:12]
                texts[key] = text
                found.add(key)
            return sorted(found)

        kept, lost = documents(RELEVANT // 2, LEADS, True), documents(RELEVANT // 2, LEADS, False)
        near = documents(NEAR_MISSES // 2, GIVEN_UP, True) + documents(NEAR_MISSES // 2, GIVEN_UP, False)
        return cls(subject, constraint, texts, kept, lost, near)

    def add(self, rows: dict[str, list[dict[str, Any]]], key: str, others: Sequence[str]) -> None:
        """Add the topic's rows, with these documents among its candidates."""
        narrative = f"Relevant documents tell of a {self.subject} that exists."
        variants = (
            (ORIGINAL_SUFFIX, narrative, self.kept + self.lost, self.near),
            (CHANGED_SUFFIX, f"{narrative} {self.constraint}", self.kept, self.lost + self.near),
        )
        for suffix, instruction, relevant, not_relevant in variants:
            query = {"query-id": key + suffix}
            grades = dict.fromkeys(relevant, 1) | dict.fromkeys(not_relevant, 0)
            rows["queries"].append({"_id": key + suffix, "text": f"Which towns have a {self.subject}?"})
            rows["instruction"].append({**query, "instruction": instruction})
            rows["qrels"] += [{**query, "corpus-id": document, "score": grade} for document, grade in grades.items()]
            rows["top_ranked"].append({**query, "corpus-ids": sorted([*self.texts, *others])})
        rows["qrel_diff"].append({"query-id": key, "corpus-ids": self.lost})


def _document(lead: str, subject: str, kind: str, value: str, rng: Random) -> str:
    other = rng.choice([name for name in FACTS if name != kind])
    facts = [rng.choice(FACTS[kind][value]), rng.choice(FACTS[other][rng.choice(list(FACTS[other]))])]
    rng.shuffle(facts)
    return " ".join([lead.format(town=rng.choice(TOWNS), subject=subject), *facts])
