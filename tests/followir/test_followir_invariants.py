"""What no build may break: nothing becomes newly relevant, both queries of a pair have the same candidates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from followir_tasks.construction.export import Pair, configs
from followir_tasks.construction.pooling import candidates, interleaved
from followir_tasks.construction.selection import Band
from followir_tasks.construction.settling import settle

DOCUMENTS = [f"d{n}" for n in range(12)]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Pair, dict[str, bool | None]]:
    """A topic with verdicts of any kind on its relevant documents, some judged ones and some that nobody judged."""
    order = draw(st.permutations(DOCUMENTS))
    n = draw(st.integers(1, 8))
    relevant, rest = order[:n], order[n:]
    grades = {d: draw(st.integers(1, 3)) for d in relevant}
    verdicts = {d: draw(st.sampled_from([True, False, None])) for d in relevant}
    settled = settle(relevant, verdicts)
    shown = [*settled.stay, *settled.leave, *rest[: draw(st.integers(0, len(rest)))]]
    passages = {d: draw(st.sampled_from([d, f"{d}::2"])) for d in shown}
    judged = [d for d in rest if draw(st.booleans())]
    return Pair("7", "q", "original", "changed", grades, judged, settled, passages), verdicts


@given(pairs())
def test_the_dataset_of_any_verdicts(drawn: tuple[Pair, dict[str, bool | None]]) -> None:
    pair, verdicts = drawn
    rows = configs([pair])
    qrels: dict[str, dict[str, int]] = {"7-og": {}, "7-changed": {}}
    for row in rows["qrels"]:
        assert row["corpus-id"] not in qrels[row["query-id"]]
        qrels[row["query-id"]][row["corpus-id"]] = row["score"]
    before, after = ({d for d, g in qrels[q].items() if g > 0} for q in ("7-og", "7-changed"))
    assert after <= before
    listed: dict[str, Any] = {row["query-id"]: row["corpus-ids"] for row in rows["top_ranked"]}
    assert listed["7-og"] == listed["7-changed"] == sorted(pair.passages.values())
    (diff,) = rows["qrel_diff"]
    assert set(diff["corpus-ids"]) == before - after and diff["query-id"] == "7"
    # By definition: what somebody decided, and nothing of what nobody did.
    assert before == {pair.passages[d] for d, verdict in verdicts.items() if verdict is not None}
    assert after == {pair.passages[d] for d, verdict in verdicts.items() if verdict}
    undecided = {d for d, verdict in verdicts.items() if verdict is None}
    assert not undecided & {row["document"] for row in rows["passages"]}
    assert all(qrels["7-og"][pair.passages[d]] == pair.grades[d] for d in (*pair.settled.stay, *pair.settled.leave))
    assert {q: g.keys() for q, g in qrels.items()}["7-og"] == qrels["7-changed"].keys()
    assert {row["_id"]: row["document"] for row in rows["passages"]} == {p: d for d, p in pair.passages.items()}


def test_a_verdict_on_another_document_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'new'.*nothing may become newly relevant"):
        settle(["a"], {"a": True, "new": True})


def test_shares_by_hand() -> None:
    found = settle(["a", "b", "c", "d"], {"a": True, "b": None, "c": False})
    assert (found.stay, found.leave, found.undecided, found.share) == (["a"], ["c"], ["b", "d"], 0.5)
    assert found.within(Band(0.5, 0.5)) and not found.within(Band(0.51, 0.6))
    assert found.told(Band(0.51, 0.6)) == "50% of 2 relevant documents stay, outside 51%-60%"
    nothing = settle(["a"], {})
    assert nothing.share is None and not nothing.within(Band(0.01, 0.99))


LISTS = st.lists(st.lists(st.sampled_from(DOCUMENTS), unique=True), max_size=4)


@given(LISTS, st.integers(0, 14))
def test_lists_are_taken_in_turn(lists: list[list[str]], number: int) -> None:
    """Slow definition: sort every document by its best rank, then by the list that has it there."""
    best = {d: min((lst.index(d), n) for n, lst in enumerate(lists) if d in lst) for lst in lists for d in lst}
    assert interleaved(lists, number) == sorted(best, key=best.__getitem__)[:number]


def test_a_fixed_number_of_candidates() -> None:
    pools = [{"1": ["x", "y", "z"]}, {"1": ["z", "w", "x"]}]
    assert candidates({"1": ["a", "b"]}, pools, 5) == {"1": ["a", "b", "x", "z", "y"]}
    with pytest.raises(ValueError, match=r"1 topics have more than 1 relevant documents: '1 \(2\)'"):
        candidates({"1": ["a", "b"]}, pools, 1)
    with pytest.raises(ValueError, match="the smallest number is 6: pass --candidates 6"):
        candidates({"1": ["a", "b"]}, pools, 7)
