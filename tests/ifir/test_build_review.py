"""The sheets of `ifir build`: filled in, read back, and every fault in them named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from construction_sample import (
    SampleModel,
    build,
    built,
    fill,
    read_csv,
    sample,
    source_rows,
    truth,
    write_csv,
    write_source,
)
from language_model_server import LanguageModelServer

from evaluators.construction.sheets import Sheet
from evaluators.construction.workspace import Workspace
from ifir_tasks.construction.command import WAITING

Cells = dict[str, str]


class Review:
    """A finished build of two queries that waits for review, and its sheets."""

    def __init__(self, folder: Path, url: str) -> None:
        self.url = url
        self.source = write_source(folder / "source", source_rows("finance", 2))
        self.out = folder / "out"
        self.instructions = self.out / "work" / "review-instructions.csv"
        self.passages = self.out / "work" / "review-passages.csv"
        assert self.run() == WAITING

    def run(self, *more: str) -> int:
        return build(self.source, self.out, self.url, *more)

    def accept_all(self, **cells: str) -> None:
        fill(self.instructions, decision="accept", **cells)
        for_passages = {"agreement": "4"} if cells else {}
        fill(self.passages, decision="accept", **for_passages)

    def set(self, sheet: Path, query: str, passage: str = "", **cells: str) -> int:
        """Fill in one row; returns its number in a spreadsheet."""
        rows = read_csv(sheet)
        place = next(
            i for i, r in enumerate(rows) if r["query-id"] == query and (not passage or r["passage-id"] == passage)
        )
        rows[place] |= cells
        write_csv(sheet, rows)
        return place + 2

    def row(self, sheet: Path, query: str) -> Cells:
        return next(row for row in read_csv(sheet) if row["query-id"] == query)

    def report(self) -> dict[str, dict[str, object]]:
        return dict(json.loads((self.out / "work" / "report.json").read_text()))

    def relevant(self, query: str) -> set[str]:
        return {row["corpus-id"] for row in built(self.out, "qrels") if row["query-id"] == query}


@pytest.fixture
def model() -> SampleModel:
    return SampleModel()


@pytest.fixture
def review(model: SampleModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Review]:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    with LanguageModelServer(scorer=model) as server:
        yield Review(tmp_path, server.url)


def meeting(base: str, *levels: int) -> list[str]:
    return [d["_id"] for d in sample("corpus") if truth()[base, d["_id"]] in levels]


def test_round_trip(review: Review, capsys: pytest.CaptureFixture[str]) -> None:
    review.accept_all(naturalness="4", fluency="5", expertise="3")
    dropped, kept = meeting("fin-01", 3)[0], meeting("fin-01", 1)[0]
    review.set(review.passages, "fin-01-v2", dropped, decision="exclude", agreement="1")
    review.set(review.passages, "fin-01-v2", kept, decision="Keep", agreement="2")
    review.set(review.instructions, "fin-02-v3", decision=" EXCLUDE ", naturalness="1")
    # What was decided for level 2 also holds for level 3, whose row nobody decided on.
    review.set(review.passages, "fin-01-v3", dropped, decision="")
    assert review.run() == WAITING
    assert f"passages without decision: 1 ('fin-01-v3 {dropped}')" in capsys.readouterr().out
    assert review.run("--accept-unreviewed") == 0
    assert review.relevant("fin-01-v1") == set(meeting("fin-01", 1, 2, 3))
    assert review.relevant("fin-01-v2") == {*meeting("fin-01", 2, 3), kept} - {dropped}
    assert review.relevant("fin-01-v3") == set(meeting("fin-01", 3)) - {dropped}
    assert "fin-02-v3" not in {row["_id"] for row in built(review.out, "queries")}
    report = review.report()
    # Six instructions, five of them rated 4 and one 1: (5 * 4 + 1) / 6 = 3.5
    assert report["review"]["naturalness"] == {"mean": 3.5, "n": 6}
    verdicts = [r["verdict"] for r in read_csv(review.passages)]
    n_kept, n_excluded = verdicts.count("kept"), verdicts.count("excluded")
    # One kept passage got 1 in place of 4, one excluded passage 2 in place of 4.
    assert report["review"]["relevant_passage_agreement"] == {
        "mean": pytest.approx((4 * n_kept - 3) / n_kept),
        "n": n_kept,
    }
    assert report["review"]["exclusion_agreement"] == {
        "mean": pytest.approx((4 * n_excluded - 2) / n_excluded),
        "n": n_excluded,
    }
    assert report["decisions"]["instructions_accepted"] == {"share": pytest.approx(5 / 6), "n": 6}
    assert report["decisions"]["kept_confirmed"] == {
        "share": pytest.approx((n_kept - 2) / (n_kept - 1)),
        "n": n_kept - 1,
    }
    assert report["counts"]["n_unreviewed_passages_without_decision"] == 1
    assert report["counts"]["n_lowered_by_nesting_after_review"] == 1


def test_an_edit_is_checked_again_and_makes_the_levels_above_stale(
    review: Review, model: SampleModel, capsys: pytest.CaptureFixture[str]
) -> None:
    review.accept_all(naturalness="5")
    calls = len(model.calls)
    # The new wording is that of level 3, so the model's verdicts become those of level 3.
    wording = f"Dear librarian: {model.wordings['fin-01', 3]}"
    model.levels["fin-01", wording] = 3
    review.set(review.instructions, "fin-01-v2", decision="edit", edited_instruction=wording)
    assert review.run() == WAITING
    n = len(meeting("fin-01", 1, 2, 3))
    assert model.calls[calls:] == [("relevance", "fin-01", 3)] * n
    above = review.row(review.instructions, "fin-01-v3")
    assert "a level below has changed" in above["stale"] and above["decision"] == "accept"
    assert wording in above["levels_below"]
    assert review.row(review.instructions, "fin-01-v1")["stale"] == ""
    assert review.row(review.instructions, "fin-02-v3")["stale"] == ""
    again = [row for row in read_csv(review.passages) if row["query-id"] == "fin-01-v2"]
    assert {row["instruction"] for row in again} == {wording}
    assert {row["decision"] for row in again} == {""}
    assert {row["comment"] for row in again} == {"[before the row changed: decision: accept, agreement: 4]"}
    assert review.run() == WAITING and len(model.calls) == calls + n  # nothing new is asked

    fill(review.passages, decision="accept")
    assert review.run() == WAITING  # the stale row still waits
    review.set(review.instructions, "fin-01-v3", stale="")
    assert review.run() == 0
    assert review.relevant("fin-01-v2") == set(meeting("fin-01", 3))
    instruction = {row["query-id"]: row["instruction"] for row in built(review.out, "instruction")}
    assert instruction["fin-01-v2"] == wording
    assert review.report()["counts"]["n_instructions_edited"] == 1
    capsys.readouterr()
    # An edit at level 1 makes both levels above stale.
    review.set(review.instructions, "fin-02-v1", decision="edit", edited_instruction="Advice on this, please.")
    assert review.run() == WAITING
    assert "is the one written before" in capsys.readouterr().out
    assert [bool(review.row(review.instructions, f"fin-02-v{n}")["stale"]) for n in (1, 2, 3)] == [False, True, True]


def test_a_spreadsheet_may_change_form_and_order(review: Review) -> None:
    review.accept_all()
    before = review.instructions.read_bytes()
    rows = read_csv(review.instructions)
    rows.reverse()
    write_csv(review.instructions, [{**row, "remark": "a new column"} for row in rows], delimiter=";")
    assert review.run() == 0
    assert len(built(review.out, "instruction")) == 6
    assert review.instructions.read_bytes() != before  # left as the person saved it


def test_faults_are_named_by_row_and_column(review: Review) -> None:
    first = review.set(review.instructions, "fin-01-v1", decision="yes", naturalness="6", fluency="4.5")
    second = review.set(review.instructions, "fin-01-v2", decision="edit")
    third = review.set(review.instructions, "fin-01-v3", decision="accept", edited_instruction="Other words.")
    with pytest.raises(ValueError) as caught:
        review.run()
    for expected in (
        "review-instructions.csv: 5 problem(s)",
        f"row {first}, column decision: 'yes' is none of accept, edit, exclude",
        f"row {first}, column naturalness: '6' is no rating",
        f"row {first}, column fluency: '4.5' is no rating",
        f"row {second}, column edited_instruction: it has no new wording",
        f"row {third}, column edited_instruction: a new wording needs the decision 'edit'",
    ):
        assert expected in str(caught.value)


def test_written_cells_must_stay(review: Review) -> None:
    rows = read_csv(review.instructions)
    changed = [rows[0] | {"instruction": "Mine."}, *rows[1:-1], rows[1], rows[1] | {"query-id": "fin-09-v1"}]
    write_csv(review.instructions, changed)
    with pytest.raises(ValueError) as caught:
        review.run()
    for expected in (
        "'fin-01-v2' is there 2 times",
        f"the row of {rows[-1]['query-id']!r} is missing",
        "row 2, column instruction: it was changed; only stale, decision, edited_instruction",
        "row 8: 'fin-09-v1' is no row of this sheet",
    ):
        assert expected in str(caught.value)
    review.instructions.write_bytes("query-id,Größe\n".encode("latin-1"))
    with pytest.raises(ValueError, match="save it as 'CSV UTF-8'"):
        review.run()
    review.instructions.write_text("query-id,decision\nfin-01-v1,accept\n")
    with pytest.raises(ValueError, match=r"row 1: the columns query, levels_below, instruction, .* are missing"):
        review.run()
    review.instructions.unlink()
    with pytest.raises(FileNotFoundError, match=r"review-instructions.csv is gone; put it back"):
        review.run()


def test_decisions_that_contradict_each_other(review: Review) -> None:
    review.accept_all()
    passage = meeting("fin-01", 3)[0]
    below = review.set(review.passages, "fin-01-v1", passage, decision="exclude")
    row = review.set(review.passages, "fin-01-v3", passage, decision="keep")
    with pytest.raises(
        ValueError, match=f"row {row}, column decision: passage .* is kept for .* but not for .* .row {below}."
    ):
        review.run()


def test_a_passage_kept_by_hand_is_kept_above_by_its_own_verdict(
    model: SampleModel, review: Review, tmp_path: Path
) -> None:
    # No at level 2 and yes at level 3, which nesting turns into a no; somebody overrules level 2 only.
    model.change = lambda kind, base, level, reply: (
        reply if kind == "instruction" else f"Answer: {'no' if level == 2 else 'yes'}"
    )
    args = (review.source, tmp_path / "other", review.url, "--llm-max-tokens=100")
    assert build(*args) == WAITING
    work = tmp_path / "other" / "work"
    fill(work / "review-instructions.csv", decision="accept")
    rows = read_csv(work / "review-passages.csv")
    assert {(r["query-id"][-1], r["verdict"]) for r in rows} == {("1", "kept"), ("2", "excluded"), ("3", "excluded")}
    assert {r["reason"] for r in rows if r["query-id"][-1] == "3"} == {"excluded at level 2, so also here; by itself: "}
    decisions = {"1": "accept", "2": "keep", "3": ""}
    write_csv(work / "review-passages.csv", [r | {"decision": decisions[r["query-id"][-1]]} for r in rows])
    assert build(*args, "--accept-unreviewed") == 0
    assert len(built(tmp_path / "other", "qrels")) == len(rows)


def test_an_undecided_passage_needs_a_decision(model: SampleModel, review: Review, tmp_path: Path) -> None:
    model.change = lambda kind, base, level, reply: "Hm." if kind == "relevance" and level == 3 else reply
    other = tmp_path / "other"
    assert build(review.source, other, review.url, "--seed=5", "--llm-max-tokens=100") == WAITING
    passages = other / "work" / "review-passages.csv"
    fill(other / "work" / "review-instructions.csv", decision="accept")
    rows = fill(passages, decision="accept", agreement="")
    number = next(i for i, row in enumerate(rows, 2) if row["verdict"] == "undecided")
    with pytest.raises(ValueError, match=f"row {number}, column decision: there is no verdict to accept"):
        build(review.source, other, review.url, "--seed=5", "--llm-max-tokens=100")
    write_csv(passages, [r | {"decision": "keep"} if r["verdict"] == "undecided" else r for r in rows])
    assert build(review.source, other, review.url, "--seed=5", "--llm-max-tokens=100") == 0
    of_third = {r["corpus-id"] for r in built(other, "qrels") if r["query-id"] == "fin-01-v3"}
    assert of_third == set(meeting("fin-01", 2, 3))  # undecided at level 3, kept at level 2, and now by hand


def test_cells_that_look_like_formulas_survive_a_spreadsheet(tmp_path: Path) -> None:
    sheet = Sheet("sheet", key=("id",), shown=("text",), basis=("text",), filled=("said",))
    workspace = Workspace(tmp_path / "out", None, tell=lambda text: None)
    texts = ["=1+1", "-v", "@x", "+3", "'quoted'", 'a "b",\r\nc;d', "", "x" * 40_000]
    wanted = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
    rows = sheet.update(workspace, wanted, None)
    raw = read_csv(sheet.path(workspace))
    assert not any(row["text"].startswith(("=", "-", "@", "+")) for row in raw)
    assert max(len(row["text"]) for row in raw) < 32_767
    assert sheet.read(workspace) == rows
    assert [row["text"] for row in rows][:-1] == texts[:-1]
    assert rows[-1]["text"].endswith("[... and 10000 more characters]")
