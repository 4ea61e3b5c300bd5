"""Rate limits: no minute holds too much, whatever the sizes, for second tries and over several times of asking."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import language_model_faults as faults
import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_model_server import LanguageModelServer

from evaluators.judge import Endpoint, LanguageModel, Request, Sampling, Store
from evaluators.judge.pace import Pace

pytest_plugins = ["judge_fixtures"]

# Evenly, from the moment of asking: what comes may be late at times, but is never early.
PER_MINUTE, GAP = 200, 0.3


def requests(start: int, stop: int, **sampling: Any) -> list[Request]:
    return [Request("m", ({"role": "user", "content": f"text {i}"},), Sampling(**sampling)) for i in range(start, stop)]


def model(server: LanguageModelServer, folder: Path, **limits: float) -> LanguageModel:
    return LanguageModel(
        Endpoint(server.url, api_key="sk-test-0123456789", backoff=0.01, **limits),  # type: ignore[arg-type]
        Store(folder / "s.sqlite"),
        progress=False,
    )


@given(
    st.lists(st.tuples(st.integers(1, 1500), st.floats(0, 90)), min_size=1, max_size=60), st.sampled_from([1, 700, 1e3])
)
def test_no_minute_holds_more_than_the_limit(takers: list[tuple[int, float]], limit: float) -> None:
    pace, now, let = Pace(limit), 0.0, []
    for units, passed in takers:
        now += passed
        let.append((pace.reserve(units, now), units))
        assert let[-1][0] >= now
    starts = [start for start, _ in let]
    assert starts == sorted(starts)
    for first in range(len(let)):
        minute = [units for start, units in let[first:] if start < starts[first] + 60]
        assert sum(minute) <= limit or len(minute) == 1


def test_equal_takers_come_evenly() -> None:
    pace = Pace(600)
    assert [pace.reserve(1, 5.0) for _ in range(4)] == pytest.approx([5.0, 5.1, 5.2, 5.3])
    # By hand, 1000 a minute: 600 at 0; 600 more only when these are a minute old; 400 beside them after 600 x .06 s.
    tokens = Pace(1000)
    assert [tokens.reserve(n, 0.0) for n in (600, 600, 400, 5000, 1)] == pytest.approx([0, 60, 96, 156, 456])


def test_a_limit_holds_from_one_time_of_asking_to_the_next(server: LanguageModelServer, tmp_path: Path) -> None:
    asking, start = model(server, tmp_path, requests_per_minute=PER_MINUTE), time.monotonic()
    for i in range(4):
        asking.ask(requests(i, i + 1))
    arrivals = server.counts.arrivals
    assert all(at >= start + i * GAP for i, at in enumerate(arrivals)) and len(arrivals) == 4


@pytest.mark.parametrize("fault", ["logprobs_refused", "server_error"])
def test_second_tries_count_too(server: LanguageModelServer, tmp_path: Path, fault: str) -> None:
    server.faults = faults.on_attempts(fault)
    start = time.monotonic()
    model(server, tmp_path, requests_per_minute=PER_MINUTE).ask(requests(0, 2, top_logprobs=3))
    arrivals = server.counts.arrivals
    assert all(at >= start + i * GAP for i, at in enumerate(arrivals)) and len(arrivals) >= 3


def test_tokens_are_counted_by_the_longest_reply(server: LanguageModelServer, tmp_path: Path) -> None:
    # "text 0" is 2 tokens: with 98 and 198 for the replies 100 and 200, at 100 tokens in 0.1 seconds.
    asked = [*requests(0, 4, max_tokens=98), *requests(4, 8, max_tokens=198)]
    start = time.monotonic()
    model(server, tmp_path, tokens_per_minute=600 * 100).ask(asked)
    arrivals = server.counts.arrivals
    due = [0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0]
    assert all(at >= start + d for at, d in zip(arrivals, due, strict=True))


def test_what_a_model_refuses_is_learnt_once(server: LanguageModelServer, tmp_path: Path) -> None:
    server.faults = faults.always("logprobs_refused")
    asking = model(server, tmp_path)
    for i in range(3):
        (outcome,) = asking.ask(requests(i, i + 1, top_logprobs=3))
        assert outcome.reply is not None
    assert server.counts.faults == {"logprobs_refused": 1}
