"""Drawing the facets of a topic's passages, so that each level of its query has enough of them, and decoys."""

from __future__ import annotations

import random

from ifir_tasks.sample_source.model import Axis, Domain, Facets, Topic

# How many passages of a topic exactly meet levels 1, 2 and 3 (and no more): per query 6 to 10 meet level 1,
# 3 to 5 level 2 and 1 to 3 level 3. Topics without level instructions have fewer passages.
PLANS = ((5, 2, 1), (3, 2, 2), (4, 2, 3), (5, 1, 3), (5, 3, 1), (5, 3, 2), (5, 2, 2), (3, 2, 1))
PLANS_SINGLE = ((2, 3, 2), (2, 2, 3), (3, 2, 1), (2, 2, 4))

_DECOY = 0.4  # share of low passages whose facets are those another query asks for
_ANY = 0.35  # chance that a value for everybody may stand for the value asked for
_NEAR = 0.65  # chance that a passage meets a wish that it need not meet


def plan(domain: Domain, topic: Topic, seed: int) -> list[Facets]:
    """The facets of the topic's passages, in a random order."""
    rng = random.Random(f"{seed}/{domain.name}/{topic.number}/facets")
    plans = PLANS if domain.generic else PLANS_SINGLE
    # Shifted by domain, so that a topic number says nothing about the counts.
    counts = plans[(topic.number * 3 + len(domain.name)) % len(plans)]
    targets = [level for level, count in enumerate(counts, start=1) for _ in range(count)]
    drawn = [_draw(domain, topic, target, rng) for target in targets]
    rng.shuffle(drawn)
    return drawn


def _draw(domain: Domain, topic: Topic, target: int, rng: random.Random) -> Facets:
    while True:
        decoy = target == 1 and rng.random() < _DECOY
        facets = {axis.name: _value(domain, topic, axis, target, decoy, rng) for axis in topic.axes}
        forbidden = any(all(facets[k] == v for k, v in pair.items()) for pair in domain.forbid)
        if not forbidden and topic.score(topic.number, facets) == target:
            return facets


def _value(domain: Domain, topic: Topic, axis: Axis, target: int, decoy: bool, rng: random.Random) -> str:
    wish = topic.want[axis.name]
    if decoy:
        # The sibling's wish, where this topic knows it: its query then finds all it asks for but the topic.
        wish = domain.topics[topic.sibling].want[axis.name]
    good = [v for v in axis.values() if axis.satisfied(wish, v)]
    bad = [v for v in axis.values() if not axis.satisfied(wish, v)]
    if axis.kind == "equal" and len(good) > 1 and rng.random() > _ANY:
        good.remove("any")
    meets = bool(good) and (axis.level <= target or not bad or rng.random() < _NEAR)
    return rng.choice(good if meets else bad)
