"""Making a training set with a scripted language model: what is excluded, filtered, balanced, exported and resumed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from followir_topics import short_topics
from language_model_server import LanguageModelServer

from evaluators.cli import main
from evaluators.judge import Reply
from evaluators.judge.reply import UnreadableReplyError
from followir_tasks.teaching.balance import agreement
from followir_tasks.teaching.instances import read_instances
from followir_tasks.teaching.sources import choose_topics
from followir_tasks.teaching.synthesis import FORMS, _read_document

SUBJECTS = ("ferries", "schools", "bees", "films", "bridges")


def topic_lines(subjects: tuple[str, ...] = SUBJECTS) -> str:
    rows = [
        {"number": str(n), "title": s, "description": f"News of {s}?", "narrative": f"Only {s} of the south."}
        for n, s in enumerate(subjects, 1)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


class Writer:
    """Writes a document that says what it is meant to be, and judges by what documents say.

    The second form of a document on bees is written as if for the other label; on films nothing readable comes for one
    label; the judge has no opinion on the first document on bridges.
    """

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        text = messages[-1]["content"]
        subject = next(s for s in SUBJECTS if s in text)
        if "Is the document relevant" in text:
            document = re.search(r"<document>(.*?)</document>", text, re.DOTALL)
            assert document is not None
            if subject == "bridges" and FORMS[0] in document[1]:
                return "Hard to say."
            return f"Answer: {'yes' if 'southern' in document[1] else 'no'}\nReason: the place."
        form = next(f for f in FORMS if f in text)
        meets = "mistake for relevant" not in text
        if subject == "films" and meets:
            return "No."
        if subject == "bees" and form == FORMS[1]:
            meets = not meets
        place = "southern" if meets else "northern"
        return f"As {form} says, {subject} in the {place} region. " + "The rest is filler about the day. " * 4


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_cache: Path) -> Iterator[LanguageModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with LanguageModelServer(scorer=Writer()) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    path = tmp_path / "topics.jsonl"
    path.write_text(topic_lines())
    return path


def test_a_set_is_made_filtered_and_balanced(
    server: LanguageModelServer, topics: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "set"
    arguments = ["followir", "teach", "--topics", str(topics), "--out", str(out), "--llm", "w", "--judge", "j"]
    assert main([*arguments, "--dry-run"]) == 0
    assert "next: documents: 20 different requests" in capsys.readouterr().out and not server.counts.requests
    assert main(arguments) == 0
    mind = "2 of 20 documents and 2 of 18 verdicts could not be read"
    assert mind in capsys.readouterr().out and f"**Mind:** {mind}" in (out / "README.md").read_text()
    assert "The judge agreed with the intended label of 14 of 16 documents." in (out / "README.md").read_text()
    counts = json.loads((out / "report.json").read_text())["counts"]
    # 5 topics with 2 documents of either label. Films: 2 unreadable. Bees: of 4 the judge agrees with the first of
    # either label. Bridges: no verdict on the first of either label. So 18 documents, 16 verdicts, 14 agreements.
    assert counts == {
        "n_source_topics": 5,
        "n_topics_excluded_by_number": 0,
        "n_topics_excluded_by_number_with_another_wording": 0,
        "n_topics_excluded_by_wording": 0,
        "n_topics_without_query_or_narrative": 0,
        "n_topics_repeated": 0,
        "n_pairs": 5,
        "n_documents_asked_for": 20,
        "n_documents_written": 18,
        "n_documents_judged": 16,
        "n_documents_without_verdict": 2,
        "n_agreed_relevant": 6,
        "n_agreed_not_relevant": 8,
        "n_pairs_with_both_labels": 4,
        "n_pairs_with_one_label": 1,
        "n_pairs_with_none": 0,
        "n_instances": 8,
    }
    rows = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
    assert [row["label"] for row in rows] == [1, 0] * 4
    assert all(("southern" in row["document"]) == bool(row["label"]) for row in rows)
    assert not any("films" in row["query"] for row in rows)
    triplets = [json.loads(line) for line in (out / "triplets.jsonl").read_text().splitlines()]
    assert triplets[0]["anchor"] == "News of ferries? Only ferries of the south."
    # Both exports are the same instances.
    from_lines, from_layout = (read_instances(place, 0) for place in (out / "train.jsonl", out))
    assert set(from_lines.rows) == set(from_layout.rows) and len(from_lines.rows) == 8
    before = len(server.counts.requests)
    written = {path: path.stat().st_mtime_ns for path in out.glob("*.*")}
    assert main([*arguments, "--seed", "1"]) == 1  # another draw would replace what may be trained on already
    assert "seed (was 0, is 1)" in capsys.readouterr().err
    assert main(arguments) == 0
    assert {path: path.stat().st_mtime_ns for path in out.glob("*.*")} == written
    assert main([*arguments, "--seed", "1", "--redo"]) == 0
    assert len(server.counts.requests) == before  # everything is stored
    assert json.loads((out / "report.json").read_text())["record"]["seed"] == 1


def test_a_finished_set_passes_the_check(
    server: LanguageModelServer, topics: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "set"
    assert main(["followir", "teach", "--topics", str(topics), "--out", str(out), "--llm", "w", "--judge", "j"]) == 0
    assert main(["check", str(out)]) == 0
    assert "a training set, which no task scores: 4 queries, 8 documents, 8 instances" in capsys.readouterr().out
    lines = out / "train.jsonl"
    lines.write_text("".join(lines.read_text().splitlines(keepends=True)[1:]))
    assert main(["check", str(out)]) == 1
    assert "train.jsonl has 7 lines, but qrels has 8 judgements" in capsys.readouterr().out
    state = out / "work" / "state.json"
    state.write_text(json.dumps({k: v for k, v in json.loads(state.read_text()).items() if k != "export"}))
    assert main(["check", str(out)]) == 1
    assert "an unfinished build" in capsys.readouterr().err


def test_a_local_reranker_judges_and_scores_each_document_once(
    server: LanguageModelServer, topics: Path, tmp_path: Path, causal_models: dict[str, Path]
) -> None:
    place = tmp_path / "reranker"
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("---\n---\n{document} {instruction} {query}\nAnswer:\n")
    model = ["--model", str(causal_models["gpt2"]), "--prompt", str(prompt)]
    assert main(["followir", "reranker", *model, "--out", str(place)]) == 0
    out = tmp_path / "set"
    arguments = ["followir", "teach", "--topics", str(topics), "--out", str(out), "--llm", "w"]
    assert main([*arguments, "--reranker", str(place), "--judge", "j"]) == 1  # one of the two
    main([*arguments, "--reranker", str(place)])  # a random model may agree with nothing
    scored = [json.loads(line) for line in (out / "work" / "judged.jsonl").read_text().splitlines()]
    assert len(scored) == 18
    for row in scored:
        assert 0 < row["probability"] < 1
        assert row["judged"] == ("relevant" if row["probability"] > 0.5 else "not-relevant")
    kept = out / "work" / "probabilities.jsonl"
    lines = kept.read_text().splitlines()
    changed = json.loads(lines[0]) | {"probability": 0.75}
    kept.write_text("\n".join([json.dumps(changed), *lines[2:]]) + "\n")  # one is missing, one would be seen
    main([*arguments, "--reranker", str(place)])
    again = [json.loads(line)["probability"] for line in (out / "work" / "judged.jsonl").read_text().splitlines()]
    assert again[0] == 0.75
    assert again[1:] == pytest.approx([row["probability"] for row in scored[1:]], rel=1e-5)


@pytest.mark.parametrize(
    "said",
    [
        "I'm sorry, but that is more than I can do.",
        "I can\u2019t help with that, and",
        "Here is the report:\n\n",
        "```\n",
        '{"document": "',
        "Sure! ",
    ],
)
def test_what_is_no_document_is_not_kept(said: str) -> None:
    """A judge would find a refusal not relevant, as it was to be."""
    text = "Ferries run to the islands once a day. " * 5
    with pytest.raises(UnreadableReplyError, match="no document"):
        _read_document({}, Reply(said + text, "stop", 1, 1))
    row: dict[str, Any] = {}
    _read_document(row, Reply(f"Here is where ferries run: to the islands. I can see them.\n\n{text}", "stop", 1, 1))
    assert row["document"].startswith("Here is where")


def test_topics_of_evaluation_sets_are_excluded(topics: Path, tmp_path: Path) -> None:
    other = tmp_path / "more.jsonl"
    rows = [
        {"number": "901", "title": "x", "description": "News of  FERRIES?", "narrative": "Anything."},
        {"number": "3", "title": "y", "description": "Something else?", "narrative": "Whatever."},
        {"number": "903", "title": "z", "description": "", "narrative": "Only z."},
        {"number": "904", "title": "w", "description": "Film stories, too", "narrative": "All parts of  the country."},
        {"number": "905", "title": "v", "description": "News of v?", "narrative": "Only v."},
        {"number": "906", "title": "u", "description": "News of V?", "narrative": "only v."},
    ]
    other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    evaluation = short_topics(tmp_path / "evaluation")
    chosen = choose_topics([other], [topics, evaluation], "description")
    assert [(pair.id, pair.query, pair.instruction) for pair in chosen.pairs] == [("more-905", "News of v?", "Only v.")]
    assert chosen.counts == {
        "n_source_topics": 6,
        "n_topics_excluded_by_number": 1,
        "n_topics_excluded_by_number_with_another_wording": 1,
        "n_topics_excluded_by_wording": 2,
        "n_topics_without_query_or_narrative": 1,
        "n_topics_repeated": 1,
        "n_pairs": 1,
    }
    with pytest.raises(ValueError, match="no topic is left"):
        choose_topics([topics], [topics], "title")


def test_robust04_without_the_topics_of_core17() -> None:
    """The published files share 50 topics, of which Core17 words four anew."""
    base = os.environ.get("MTEB_BEYOND_DATA")
    if not base or not (Path(base) / "trec").is_dir():
        pytest.skip("MTEB_BEYOND_DATA names no folder that holds trec/")
    robust, core = (Path(base) / "trec" / f"topics.{name}.txt" for name in ("robust04", "core17"))
    chosen = choose_topics([robust], [core], "description")
    assert chosen.counts["n_source_topics"] == 250
    assert chosen.counts["n_topics_excluded_by_number"] == len(chosen.excluded) == 50
    assert chosen.counts["n_topics_excluded_by_number_with_another_wording"] == 0
    # Topic 412 shares its title with 341, which is in Core17, and nothing else.
    assert len(chosen.pairs) == 200 and "topics.robust04-412" in {pair.id for pair in chosen.pairs}


@pytest.mark.parametrize(("agreed", "of", "by_luck"), [(5, 5, False), (4, 5, True), (30, 60, True), (39, 60, False)])
def test_a_judge_that_may_have_tossed_a_coin_is_told(agreed: int, of: int, by_luck: bool) -> None:
    """P of at least so many heads: 1/32, 6/32, above a half, and .0137."""
    told = agreement({"n_documents_judged": of, "n_agreed_relevant": agreed - 2, "n_agreed_not_relevant": 2})
    assert f"{agreed} of {of} documents" in told and ("coin" in told) == by_luck
