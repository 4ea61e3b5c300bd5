"""Topics, judgements and documents for `followir build`, and a model that knows the truth about them.

Every relevant document names a colour and a town. The constraints of the model ask for a colour (half of the documents
have it), for a town (all of them have it) or for a river (none has it), so the shares that stay are known beforehand.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluators.plugin.dataset import read_config

sys.path.insert(0, str(Path(__file__).parent.parent / "judge"))

Rows = list[dict[str, Any]]
HALF, ALL, NONE = "the colour red", "a town", "a river"
SUBJECTS = {"401": "harbour cranes", "402": "glass bridges", "403": "night trains", "404": "salt mines"}
QRELS = "qrels.txt"


def topic_text(number: str, subject: str) -> str:
    return (
        f"<top>\n<num> Number: {number}\n<title> {subject}\n\n<desc> Description:\nFind reports on {subject}.\n\n"
        f"<narr> Narrative:\nA relevant document reports on {subject} and says where they are.\n</top>\n\n"
    )


def relevant_text(subject: str, n: int) -> str:
    colour = "red" if n % 2 else "blue"
    return f"A report on {subject}: number {n} of them is painted {colour}. It is in the town of Aldburg."


@dataclass
class Material:
    """Files of a small collection.

    Attributes:
        folder: where they are.
        relevant: topic -> its relevant documents with their texts.
    """

    folder: Path
    relevant: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def topics(self) -> Path:
        return self.folder / "topics.txt"

    @property
    def qrels(self) -> Path:
        return self.folder / QRELS

    @property
    def docs(self) -> Path:
        return self.folder / "docs"


def trec_document(number: str, title: str, text: str) -> str:
    return f"<DOC>\n<DOCNO> {number} </DOCNO>\n<HEADLINE>{title}</HEADLINE>\n<TEXT>\n<P>{text}</P>\n</TEXT>\n</DOC>\n"


def write_documents(material: Material, subjects: Mapping[str, str], n_relevant: int, n_others: int) -> None:
    """Documents and judgements: relevant ones, judged ones that are not, and ones that nobody judged."""
    documents: list[str] = []
    judged: list[str] = []
    for topic, subject in subjects.items():
        material.relevant[topic] = {}
        for n in range(n_relevant):
            document, text = f"R{topic}-{n}", relevant_text(subject, n)
            material.relevant[topic][document] = text
            documents.append(trec_document(document, f"Report {n}", text))
            judged.append(f"{topic} 0 {document} {1 + n % 2}")
        documents.append(trec_document(f"N{topic}", "Remark", f"Somebody spoke of {subject} without saying more."))
        judged.append(f"{topic} 0 N{topic} 0")
    documents += [
        trec_document(f"U{n}", "", f"Find nothing here but the reports on weather, page {n}.") for n in range(n_others)
    ]
    material.docs.mkdir(parents=True, exist_ok=True)
    (material.docs / "part1.sgml").write_text("".join(documents))
    material.qrels.write_text("\n".join(judged) + "\n")


def write_material(folder: Path, n_topics: int = 3, n_relevant: int = 8, n_others: int = 12) -> Material:
    material = Material(folder)
    subjects = dict(list(SUBJECTS.items())[:n_topics])
    write_documents(material, subjects, n_relevant, n_others)
    material.topics.write_text("".join(topic_text(*item) for item in subjects.items()))
    return material


class TruthfulModel:
    """Answers with constraints by topic and round, and judges documents by their words.

    `plan`: topic -> what its constraints ask for, round by round. `change` may replace a reply: (kind, text, reply).
    """

    def __init__(self, subjects: Mapping[str, str] = SUBJECTS) -> None:
        self.subjects = {subject: topic for topic, subject in subjects.items()}
        self.plan: dict[str, list[str]] = {}
        self.change: Callable[[str, str, str], str] = lambda kind, text, reply: reply
        self.asked: list[str] = []

    def __call__(self, messages: Rows) -> str:
        text = str(messages[-1]["content"])
        kind = "verdict" if "Is the document relevant" in text else "constraint"
        self.asked.append(kind)
        if kind == "verdict":
            wanted = re.findall(r"must name (the colour red|a town|a river)", between("instruction", text))[-1]
            words = {HALF: "red", ALL: "town of", NONE: "river"}
            met = words[wanted] in between("document", text)
            reply = f"Answer: {'yes' if met else 'no'}\nReason: it was read."
        else:
            topic = next(t for subject, t in self.subjects.items() if subject in between("query", text))
            done = len(re.findall(r"^\d+\. ", between("tried", text), re.MULTILINE))
            plan = self.plan.get(topic, [HALF])
            reply = f"Constraint: Relevant documents must name {plan[min(done, len(plan) - 1)]}."
        return self.change(kind, text, reply)


def between(tag: str, text: str) -> str:
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


def build(material: Material, out: Path, url: str | None, *more: str, candidates: int = 12) -> int:
    """`followir build` as the command line runs it; returns the exit code."""
    from followir_tasks.construction.command import add_build_command

    parser = argparse.ArgumentParser()
    add_build_command(parser.add_subparsers())
    model = [] if url is None else ["--llm=test-model", f"--llm-base-url={url}"]
    places = [f"--topics={material.topics}", f"--qrels={material.qrels}", f"--docs={material.docs}"]
    args = parser.parse_args(["build", *places, f"--out={out}", f"--candidates={candidates}", *model, *more])
    return int(args.func(args))


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def fill(path: Path, decide: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """Fill in a sheet, row by row."""
    rows = [row | decide(row) for row in read_csv(path)]
    with path.open("w", encoding="utf-8-sig", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def built(out: Path, config: str) -> Rows:
    table = read_config(out, config)
    assert table is not None
    return list(table.to_pylist())


def report_of(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "work" / "report.json").read_text()))
