"""`followir build` on real topics and judgements, over documents that the test writes.

The topics and judgements are read from the folder `trec` in `$MTEB_BEYOND_DATA`; without it the test is skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from followir_collection import HALF, Material, TruthfulModel, build, built, report_of, trec_document
from language_model_server import LanguageModelServer

from evaluators import cli
from evaluators.construction.readers import read_judgements
from followir_tasks.construction.topics import read_topics

JUDGED = 10


def test_a_set_from_core17(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.environ.get("MTEB_BEYOND_DATA", "")) / "trec"
    if not (folder / "topics.core17.txt").is_file():
        pytest.skip("$MTEB_BEYOND_DATA/trec is not there")
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    topics = {t.number: t for t in read_topics(folder / "topics.core17.txt")}
    judged = read_judgements(folder / "qrels.core17.txt")
    documents: dict[str, str] = {}
    lines: list[str] = []
    for number, of in judged.items():
        for relevant in (True, False):
            chosen = [(d, grade) for d, (grade, _) in of.items() if (grade > 0) == relevant][:JUDGED]
            for n, (document, grade) in enumerate(chosen):
                colour = "red" if n % 2 else "blue"
                # A document that several topics judge speaks of all of them.
                documents[document] = f"{documents.get(document, '')} On {topics[number].title}, painted {colour}."
                lines.append(f"{number} 0 {document} {grade}")
    material = Material(tmp_path / "source")
    material.docs.mkdir(parents=True)
    (material.docs / "nyt.sgml").write_text("".join(trec_document(d, d, t) for d, t in documents.items()))
    material.qrels.write_text("\n".join(lines) + "\n")
    (material.folder / "topics.txt").write_text((folder / "topics.core17.txt").read_text())
    model = TruthfulModel({number: topic.description for number, topic in topics.items()})
    out = tmp_path / "out"
    with LanguageModelServer(scorer=model) as server:
        more = ["--accept-unreviewed", "--n-topics=6", "--seed=1"]
        assert build(material, out, server.url, *more, candidates=30) == 0
    assert len(model.asked) == 6 + 6 * JUDGED
    instructions = {r["query-id"]: r["instruction"] for r in built(out, "instruction")}
    texts = {r["_id"]: r["text"] for r in built(out, "queries")}
    numbers = [r["query-id"] for r in built(out, "qrel_diff")]
    assert len(numbers) >= 4 and numbers == sorted(numbers)
    for number in numbers:
        assert texts[f"{number}-og"] == texts[f"{number}-changed"] == topics[number].description
        assert instructions[f"{number}-og"] == topics[number].narrative
        assert instructions[f"{number}-changed"] == f"{topics[number].narrative} Relevant documents must name {HALF}."
    for row in built(out, "qrels"):
        number, suffix = row["query-id"].rsplit("-", 1)
        grade = judged[number][row["corpus-id"]][0]
        stays = "red" in documents[row["corpus-id"]]
        assert row["score"] == (grade if suffix == "og" or stays else 0)
    source = report_of(out)["size"]["source"]
    assert source["n_queries"] == 50 and source["relevant_per_query"] == pytest.approx(
        sum(line[-1] != "0" for line in lines) / 50
    )
    assert (round(source["query_words"], 2), round(source["instruction_words"], 2)) == (16.6, 44.0)
    assert cli.main(["check", str(out)]) == 0
