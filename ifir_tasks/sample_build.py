"""Builds the sample of IFIR that ships with the package: ``python -m ifir_tasks.sample_build``.

Passages are written from facets (topic, age, outcome, ...), so whether a passage meets an instruction is known
exactly and for every pair, which a judge model would otherwise have to guess.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

from evaluators.plugin.dataset import Card, write_dataset
from ifir_tasks.sample_source import draw, prose
from ifir_tasks.sample_source.model import DOMAINS, Domain, Facets, Topic, load

DIRECTORY = Path(__file__).parent / "sample"

CARD = Card(
    title="IFIR sample (mteb-beyond)",
    license="mit",
    tags=("retrieval", "instruction-following", "synthetic"),
    body="""
A small generated dataset in the shape of IFIR (instruction-following retrieval in expert domains). It exists so
that tasks, metrics and reports can be tried in seconds and offline.

**What it holds.** One corpus with passages on finance, science, law, health and nutrition. The first four
domains have eight base queries each, and each base query comes without an instruction (`-og`) and with
instructions of three levels (`-v1` to `-v3`) that ask for ever more. Nutrition has eight base queries with a
single detailed instruction each (`-v0`).

| domain | level 1 | level 2 | level 3 |
|---|---|---|---|
| finance | topic | age, occupation and means | goal |
| science | claim | supports or contradicts it, as asked | population, method and objective |
| law | similar case | the side that benefits | circumstances and evidence |
| health | disease and gene variant | age and gender admitted | treatment, medical and family history admitted |
| nutrition | subject | kind of study | information needed |

**How it was made.** Every passage was drawn as a set of facets and then written out from a vocabulary that has
several wordings for each facet. `facets` gives for every base query and every passage how many of the nested
levels the passage meets (0 to 3). In `qrels`, a passage is relevant at a level if it meets that level and all
below it; for nutrition, if it meets all three. `base_queries` lists what each query asks for.

**Limits.** The text is generated and is not taken from IFIR. Its facts are invented; nothing in it is
financial, legal or medical advice. Its scores cannot be compared with those of the paper or of the full
benchmark, and a difference between two models on it is no evidence of a difference elsewhere.
""",
)

Rows = list[dict[str, Any]]


def build(seed: int = 0) -> dict[str, Rows]:
    """The rows of all configs. The same seed gives the same rows on every machine."""
    configs: dict[str, Rows] = {
        name: [] for name in ("corpus", "queries", "qrels", "instruction", "facets", "base_queries")
    }
    domains = [load(name) for name in DOMAINS]
    passages = {d.tag: _passages(d, seed) for d in domains}
    everything = [(row, tag, number, facets) for tag, rows in passages.items() for row, number, facets in rows]
    everything.sort(key=lambda passage: passage[0]["_id"])
    configs["corpus"] = [row for row, *_ in everything]
    for domain in domains:
        for topic in domain.topics:
            base = f"{domain.tag}-{topic.number + 1:02d}"
            scores = {
                row["_id"]: topic.score(number, facets) if tag == domain.tag else 0
                for row, tag, number, facets in everything
            }
            configs["facets"] += [{"query-id": base, "corpus-id": c, "score": s} for c, s in scores.items()]
            configs["base_queries"].append(
                {"query-id": base, "domain": domain.name, "facets": json.dumps({"topic": topic.query, **topic.want})}
            )
            _add_queries(configs, base, domain, topic, scores)
    return configs


def _passages(domain: Domain, seed: int) -> list[tuple[dict[str, str], int, Facets]]:
    rows: list[tuple[dict[str, str], int, Facets]] = []
    texts: set[str] = set()
    for topic in domain.topics:
        for number, facets in enumerate(draw.plan(domain, topic, seed)):
            key = f"{seed}/{domain.name}/{topic.number}/{number}"
            rng = random.Random(key)
            title, text = prose.write(domain, topic, facets, rng)
            while text in texts or not prose.MIN_WORDS <= len(text.split()) <= prose.MAX_WORDS:
                title, text = prose.write(domain, topic, facets, rng)
            texts.add(text)
            # A hash, so that neither the order of ids nor that of the file tells which passages are relevant.
            _id = f"{hashlib.sha256(f'ifir-sample/{key}'.encode()).hexdigest()[:8]}-{domain.tag}"
            rows.append(({"_id": _id, "title": title, "text": text}, topic.number, facets))
    return rows


def _add_queries(configs: dict[str, Rows], base: str, domain: Domain, topic: Topic, scores: dict[str, int]) -> None:
    """Append the base query and its instructed variants: queries, instructions and relevant passages."""
    instructions = dict(topic.instructions)
    if domain.generic:
        instructions["v1"] = domain.generic[topic.number % len(domain.generic)]
    configs["queries"].append({"_id": f"{base}-og", "text": topic.query})
    for variant, instruction in sorted(instructions.items()):
        query_id = f"{base}-{variant}"
        # A single instruction asks for all that three levels ask for.
        level = 3 if variant == "v0" else int(variant[1:])
        configs["queries"].append({"_id": query_id, "text": topic.query})
        configs["instruction"].append({"query-id": query_id, "instruction": instruction})
        configs["qrels"] += [
            {"query-id": query_id, "corpus-id": c, "score": 1} for c, score in scores.items() if score >= level
        ]


def main() -> None:
    """Write the sample into the package."""
    write_dataset(DIRECTORY, build(), CARD)


if __name__ == "__main__":
    main()
