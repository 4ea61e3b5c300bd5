"""`ifir build` end to end against a local server whose model knows the embedded sample's truth."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import mteb
import pytest
from construction_sample import (
    TAGS,
    Rows,
    SampleModel,
    build,
    built,
    fill,
    read_csv,
    sample,
    source_rows,
    truth,
    write_beir,
    write_source,
)
from fixed_ranking import FixedRanking, scores_of
from language_model_faults import always, in_turn
from language_model_server import LanguageModelServer

from evaluators import cli
from evaluators.judge import EndpointError
from evaluators.plugin.dataset import fingerprint
from ifir_tasks.construction.command import WAITING
from ifir_tasks.ids import parse_query_id

SHEETS = ("review-instructions.csv", "review-passages.csv")


@pytest.fixture
def model() -> SampleModel:
    return SampleModel()


@pytest.fixture
def server(model: SampleModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LanguageModelServer]:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    with LanguageModelServer(scorer=model) as running:
        yield running


def of_first(rows: Rows, domain: str, n_queries: int = 3) -> Rows:
    """The rows on the domain's first base queries."""
    bases = {f"{TAGS[domain]}-{n:02d}" for n in range(1, n_queries + 1)}
    return [row for row in rows if parse_query_id(row.get("query-id") or row["_id"]).base in bases]


def pairs(rows: Rows) -> set[tuple[str, str]]:
    return {(row["query-id"], row["corpus-id"]) for row in rows}


@pytest.mark.parametrize("domain", TAGS)
def test_the_sample_is_built_again(domain: str, server: LanguageModelServer, tmp_path: Path) -> None:
    """Oracle: the sample's own judgements, which its builder drew from facets without any of this code."""
    source = write_source(tmp_path / "source", source_rows(domain, 3))
    before = fingerprint(source, ("*",))
    out = tmp_path / "out"
    route = "nfcorpus" if domain == "nutrition" else "levels"
    assert build(source, out, server.url, f"--route={route}", "--accept-unreviewed", domain=domain) == 0
    assert pairs(built(out, "qrels")) == pairs(of_first(sample("qrels"), domain))
    assert built(out, "queries") == of_first(sample("queries"), domain)
    assert {r["query-id"] for r in built(out, "instruction")} == {
        r["query-id"] for r in of_first(sample("instruction"), domain)
    }
    assert built(out, "corpus") == sample("corpus")
    assert built(out, "base_queries") == [
        {"query-id": r["_id"], "domain": domain} for r in source_rows(domain, 3)["queries"]
    ]
    assert fingerprint(source, ("*",)) == before


def test_the_dataset_passes_the_check_and_scores_through_mteb(
    server: LanguageModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = write_source(tmp_path / "source", source_rows("finance", 2)), tmp_path / "out"
    build(source, out, server.url, "--accept-unreviewed")
    capsys.readouterr()
    assert cli.main(["check", str(out)]) == 0
    assert "8 queries, 324 documents" in capsys.readouterr().out
    task = mteb.get_task("IFIRSample")
    task.data_path = out
    # A ranker by the truth of level 3 first: every level's relevant passages lead the ranking.
    queries = [row["_id"] for row in built(out, "queries")]
    run = {
        q: {row["_id"]: float(truth()[parse_query_id(q).base, row["_id"]]) for row in sample("corpus")} for q in queries
    }
    scores = scores_of(task, FixedRanking(run))
    assert scores["ndcg_at_20"] == scores["level_1_ndcg_at_20"] == scores["level_3_ndcg_at_20"] == 1.0
    assert scores["n_queries"] == 6


def test_statistics_by_hand(server: LanguageModelServer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rows = source_rows("finance", 3)
    nothing = {"_id": "unjudged", "text": "What is money?"}
    build(write_source(tmp_path / "source", rows | {"queries": [*rows["queries"], nothing]}), out, server.url,
          "--accept-unreviewed")  # fmt: skip
    report = json.loads((out / "work" / "report.json").read_text())
    counts = Counter(row["query-id"][-1] for row in of_first(sample("qrels"), "finance"))
    size = report["size"]
    assert (size["n_queries"], size["n_base_queries"], size["corpus_size"]) == (9, 3, 324)
    assert size["relevant_per_query"] == pytest.approx(sum(counts.values()) / 9)
    assert {level: found["relevant_per_query"] for level, found in size["by_level"].items()} == {
        level: pytest.approx(n / 3) for level, n in counts.items()
    }
    n_checked = 3 * len(rows["qrels"])
    told = report["counts"]
    assert (told["n_source_queries"], told["n_queries_without_relevant"]) == (4, 1)
    assert told["n_passages_checked"] == n_checked
    assert told["n_passages_excluded"] == n_checked - sum(counts.values())
    assert told["n_unreviewed_instructions_without_decision"] == 9
    assert told["n_unreviewed_passages_without_decision"] == n_checked
    assert report["review"]["naturalness"] == {"mean": None, "n": 0}
    card = (out / "README.md").read_text()
    assert "9 instructions without decision" in card
    assert "| all     | 9 " in card


def test_nothing_is_asked_twice_after_an_interruption(
    server: LanguageModelServer, model: SampleModel, tmp_path: Path
) -> None:
    source, out = write_source(tmp_path / "source", source_rows("finance", 2)), tmp_path / "out"
    n_pairs = len(source_rows("finance", 2)["qrels"])
    healthy = 2 + 2 + n_pairs  # both instructions of both queries, and some of the relevance
    server.faults = lambda number, body: "unauthorized" if number >= healthy else None
    with pytest.raises(EndpointError):
        build(source, out, server.url, "--llm-concurrency=1")  # what is in flight at a fault is asked again
    assert [p.name for p in sorted((out / "work").glob("*.jsonl"))] == [
        f"instructions-level-{n}.jsonl" for n in (1, 2, 3)
    ]
    server.faults = lambda number, body: None
    assert build(source, out, server.url) == WAITING
    assert max(server.counts.answered_well.values()) == 1
    assert sum(server.counts.answered_well.values()) == 4 + 3 * n_pairs
    asked = len(server.counts.requests)
    # Finished stages answer from their own files, even without the store.
    (tmp_path / "store.sqlite").unlink()
    assert build(source, out, server.url) == WAITING
    assert len(server.counts.requests) == asked


def test_every_call_is_repeated_until_it_succeeds(server: LanguageModelServer, tmp_path: Path) -> None:
    source, out = write_source(tmp_path / "source", source_rows("law", 1)), tmp_path / "out"
    server.faults = in_turn("truncated_json", "server_error", None, "no_choices", "dropped_in_body")
    assert build(source, out, server.url, "--accept-unreviewed", domain="law") == 0
    assert pairs(built(out, "qrels")) == {p for p in pairs(sample("qrels")) if p[0].startswith("law-01")}


def test_calls_that_fail_stop_the_stage_or_are_left_out_on_demand(server: LanguageModelServer, tmp_path: Path) -> None:
    source, out = write_source(tmp_path / "source", source_rows("finance", 2)), tmp_path / "out"
    bad = source_rows("finance", 2)["queries"][0]["text"]
    server.faults = lambda number, body: "context_exceeded" if bad in str(body) else None
    with pytest.raises(ConnectionError, match=r"instructions-level-2: 1 of 2 calls failed.*context length"):
        build(source, out, server.url)
    assert build(source, out, server.url, "--allow-failed", "--accept-unreviewed") == 0
    report = json.loads((out / "work" / "report.json").read_text())
    assert report["counts"]["n_instructions_unreadable"] == 1
    # Level 1 of that query comes from a template, but its passages could not be checked.
    assert {parse_query_id(r["_id"]).base for r in built(out, "queries")} == {"fin-02"}
    assert report["counts"]["n_passages_undecided"] == sum(
        row["query-id"] == "fin-01" for row in source_rows("finance", 2)["qrels"]
    )
    server.faults = always("unauthorized")
    with pytest.raises(EndpointError):
        build(source, out, server.url, "--ask-again")


def test_unreadable_replies_are_kept_and_counted_and_never_used(
    server: LanguageModelServer, model: SampleModel, tmp_path: Path
) -> None:
    def misbehave(kind: str, base: str, level: int, reply: str) -> str:
        if (kind, base, level) == ("instruction", "fin-01", 3):
            return "I would rather not say."
        if kind == "relevance" and base == "fin-02" and level == 2:
            return "Perhaps."
        return reply

    source, out = write_source(tmp_path / "source", source_rows("finance", 3)), tmp_path / "out"
    model.change = misbehave
    assert build(source, out, server.url, "--accept-unreviewed") == 0
    work = out / "work"
    unread = [json.loads(line) for line in (work / "instructions-level-3.jsonl").read_text().splitlines()]
    assert [(r["query-id"], r["reply"], r["instruction"]) for r in unread if r["problem"]] == [
        ("fin-01-v3", "I would rather not say.", None)
    ]
    report = json.loads((work / "report.json").read_text())
    n_second = sum(row["query-id"] == "fin-02" for row in source_rows("finance", 3)["qrels"])
    assert report["counts"]["n_instructions_unreadable"] == 1
    assert report["counts"]["n_verdicts_unreadable"] == n_second
    # Undecided at level 2 is undecided at level 3 too, unless excluded there by itself.
    met_third = sum(truth()["fin-02", d["_id"]] == 3 for d in sample("corpus"))
    assert {query for query, _ in report["undecided"]} == {"fin-02-v2", "fin-02-v3"}
    assert sum(query == "fin-02-v3" for query, _ in report["undecided"]) == met_third
    assert {r["query-id"] for r in built(out, "instruction")} == {
        *("fin-01-v1", "fin-01-v2", "fin-02-v1", "fin-03-v1", "fin-03-v2", "fin-03-v3")
    }
    # Asked again, the model behaves: only what could not be read is asked.
    before = len(model.calls)
    model.change = lambda kind, base, level, reply: reply
    assert build(source, out, server.url, "--accept-unreviewed", "--ask-again") == 0
    n_first = sum(row["query-id"] == "fin-01" for row in source_rows("finance", 3)["qrels"])
    assert len(model.calls) - before == 1 + n_second + n_first
    assert pairs(built(out, "qrels")) == {
        p for p in pairs(sample("qrels")) if p[0].startswith(("fin-01", "fin-02", "fin-03"))
    }


def test_nesting_repairs_a_model_that_contradicts_itself(
    server: LanguageModelServer, model: SampleModel, tmp_path: Path
) -> None:
    source, out = write_source(tmp_path / "source", source_rows("finance", 1)), tmp_path / "out"
    model.change = lambda kind, base, level, reply: (
        reply if kind == "instruction" else f"Answer: {'no' if level == 2 else 'yes'}\nReason: none."
    )
    build(source, out, server.url, "--accept-unreviewed")
    n = len(source_rows("finance", 1)["qrels"])
    assert {r["query-id"] for r in built(out, "qrels")} == {"fin-01-v1"}
    counts = json.loads((out / "work" / "report.json").read_text())["counts"]
    # Every passage was yes at level 3 and no at level 2.
    assert counts["n_lowered_by_nesting"] == n
    assert counts["n_instructions_without_relevant"] == 2
    build(source, out, server.url, "--accept-unreviewed", "--keep-empty")
    assert {r["query-id"] for r in built(out, "instruction")} == {"fin-01-v1", "fin-01-v2", "fin-01-v3"}
    assert cli.main(["check", str(out)]) == 0


def test_dry_run_counts_the_calls_of_the_next_stage_only(
    server: LanguageModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = write_source(tmp_path / "source", source_rows("finance", 3)), tmp_path / "out"
    assert build(source, out, server.url, "--dry-run", "--llm-price=1,2") == 0
    assert "instructions-level-2: 3 different requests, 0 already stored, 3 calls to make" in capsys.readouterr().out
    assert server.counts.requests == []
    assert build(source, out, server.url) == WAITING
    capsys.readouterr()
    assert build(source, out, server.url, "--dry-run") == 0
    assert "nothing is left to ask" in capsys.readouterr().out
    assert not (out / "corpus.parquet").exists()


def test_what_changes_is_told_and_made_again_only_on_demand(
    server: LanguageModelServer, model: SampleModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = source_rows("finance", 2)
    source, out = write_source(tmp_path / "source", rows), tmp_path / "out"
    build(source, out, server.url)
    calls = len(model.calls)
    # A passage that no query needs: nothing to do again.
    write_source(source, rows | {"corpus": [*rows["corpus"], {"_id": "new", "title": "", "text": "On money."}]})
    assert build(source, out, server.url) == WAITING
    for change, named in (("--seed=1", "seed"), ("--llm-temperature=0.5", "sampling"), ("--llm=other", "model")):
        with pytest.raises(ValueError, match=f"other settings: .*{named}.*--redo"):
            build(source, out, server.url, change)
    assert len(model.calls) == calls
    # A relevant passage changes: its checks are made again, the instructions stay.
    touched = next(row["corpus-id"] for row in rows["qrels"] if row["query-id"] == "fin-01")
    text = next(row["text"] for row in rows["corpus"] if row["_id"] == touched)
    model.documents |= {f"{text} Indeed.": touched}
    write_source(source, rows | {"corpus": [
        row | {"title": "", "text": f"{text} Indeed."} if row["_id"] == touched else row for row in rows["corpus"]
    ]})  # fmt: skip
    with pytest.raises(ValueError, match=r"relevance.jsonl was made with other settings: passages"):
        build(source, out, server.url)
    capsys.readouterr()
    (tmp_path / "store.sqlite").unlink()  # the rows that stay are taken from the stage's own file
    assert build(source, out, server.url, "--redo") == WAITING
    told = capsys.readouterr().out
    assert "instructions-level-3: done already" in told and "relevance: made again" in told
    assert [call[0] for call in model.calls[calls:]] == ["relevance"] * 3
    assert (out / "work" / "relevance.old-1.jsonl").is_file()


def test_what_the_source_knows_reaches_the_second_level(
    server: LanguageModelServer, model: SampleModel, tmp_path: Path
) -> None:
    rows = source_rows("health", 1)
    rows["queries"] = [row | {"age": 38, "gender": "male"} for row in rows["queries"]]
    build(write_beir(tmp_path / "health", rows), tmp_path / "a", server.url, domain="health")
    asked = [r.body["messages"][-1]["content"] for r in server.counts.requests]
    assert sum("the patient's age and sex: age 38, gender male" in text for text in asked) == 1
    # Claims whose passages are labelled; the model keeps at level 2 what meets the sample's wish, whatever the label.
    rows = source_rows("science", 1)
    (claim,) = rows["queries"]
    wanted = claim.pop("label")
    other = {"SUPPORT": "CONTRADICT", "CONTRADICT": "SUPPORT"}[wanted]
    rows["qrels"] = [row | {"label": other if row["score"] > 1 else wanted} for row in rows["qrels"]]
    instructions = set()
    for seed in range(4):
        out = tmp_path / f"science-{seed}"
        build(write_source(tmp_path / "science", rows), out, server.url, f"--seed={seed}", "--accept-unreviewed",
              domain="science")  # fmt: skip
        given = json.loads((out / "work" / "instructions-level-2.jsonl").read_text())["given"]["label"]
        text = next(r["instruction"] for r in built(out, "instruction") if r["query-id"].endswith("-v2"))
        assert {"SUPPORT": "supports", "CONTRADICT": "contradicts"}[given] in text
        instructions.add(given)
        against = json.loads((out / "work" / "report.json").read_text())["counts"]["n_kept_against_label"]
        kept = [r for r in built(out, "qrels") if not r["query-id"].endswith("-v1")]
        assert against == (len(kept) if given == wanted else 0)
    assert instructions == {"SUPPORT", "CONTRADICT"}


def test_foreign_directories_are_left_alone(server: LanguageModelServer, tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", source_rows("finance", 1))
    with pytest.raises(ValueError, match="was not made by this command"):
        build(source, source, server.url)
    with pytest.raises(ValueError, match=r"unknown domain 'money'; known are finance, health, law, nutrition, science"):
        build(source, tmp_path / "out", server.url, domain="money")
    with pytest.raises(ValueError, match=r"--route nfcorpus"):
        build(source, tmp_path / "out", server.url, domain="nutrition")
    with pytest.raises(ValueError, match="instructions-level-2 asks a language model: name one with --llm"):
        build(source, tmp_path / "out", None)


def test_beir_files_give_the_same_dataset(server: LanguageModelServer, tmp_path: Path) -> None:
    rows = source_rows("health", 2)
    build(write_source(tmp_path / "own", rows), tmp_path / "a", server.url, "--accept-unreviewed", domain="health")
    asked = len(server.counts.requests)
    build(write_beir(tmp_path / "beir", rows), tmp_path / "b", server.url, "--accept-unreviewed", domain="health")
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    assert len(server.counts.requests) == asked  # the store knows every request already


def test_final_check(server: LanguageModelServer, tmp_path: Path) -> None:
    source, out = write_source(tmp_path / "source", source_rows("finance", 3)), tmp_path / "out"
    build(source, out, server.url, "--accept-unreviewed", "--examples=5")
    sheet = out / "work" / "final-check.csv"
    examples = read_csv(sheet)
    assert len(examples) == 5 and all(row["relevant_passage"] for row in examples)
    fill(sheet, naturalness="4", fluency="5", expertise="3,0", relevant_passage_agreement="2")
    build(source, out, server.url, "--accept-unreviewed", "--examples=5")
    report = json.loads((out / "work" / "report.json").read_text())
    assert report["final_check"] == {
        "naturalness": {"mean": 4.0, "n": 5},
        "fluency": {"mean": 5.0, "n": 5},
        "expertise": {"mean": 3.0, "n": 5},
        "relevant_passage_agreement": {"mean": 2.0, "n": 5},
        "exclusion_agreement": {"mean": None, "n": 0},
    }
    assert "| Instruction: naturalness    | not rated   | 4.00 (5)" in (out / "work" / "report.md").read_text()
    fill(sheet, fluency="7")
    with pytest.raises(ValueError, match="row 2, column fluency: '7' is no rating"):
        build(source, out, server.url, "--accept-unreviewed", "--examples=5")
