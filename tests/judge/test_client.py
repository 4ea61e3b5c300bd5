"""Asking a server that misbehaves: what is tried again, what fails, what is paid for twice, and where the key goes."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import language_model_faults as faults
import pytest
from language_model_replies import fingerprint, hash_score
from language_model_server import LanguageModelServer

from evaluators.judge.endpoint import Endpoint, EndpointError
from evaluators.judge.language_model import LanguageModel, Outcome, Plan
from evaluators.judge.progress import Price
from evaluators.judge.request import Request, Sampling
from evaluators.judge.store import Store

pytest_plugins = ["judge_fixtures"]

KEY = "sk-test-0123456789"


def requests(count: int, **sampling: Any) -> list[Request]:
    return [Request("m", ({"role": "user", "content": f"text {i}"},), Sampling(**sampling)) for i in range(count)]


def model(server: LanguageModelServer, folder: Path, **settings: Any) -> LanguageModel:
    settings = {"api_key": KEY, "backoff": 0.01, "timeout": 3.0, **settings}
    return LanguageModel(Endpoint(server.url, **settings), Store(folder / "replies.sqlite"), progress=False)


def texts(outcomes: list[Outcome]) -> list[str | None]:
    return [None if o.reply is None else o.reply.text for o in outcomes]


def chain(error: BaseException) -> str:
    """Every text that a traceback of the error could show."""
    seen: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is not None and one not in seen:
            seen.append(one)
            todo += [one.__cause__, one.__context__]
    return "\n".join(f"{e!r} {e} {vars(e)}" for e in seen)


# -- passing faults ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rate_limited_seconds", "rate_limited_date"])
def test_a_named_wait_is_kept(server: LanguageModelServer, tmp_path: Path, name: str) -> None:
    server.faults, server.retry_after = faults.in_turn(name), 0.4
    (outcome,) = model(server, tmp_path).ask(requests(1))
    first, second = server.counts.arrivals
    assert outcome.failure is None and 0.4 <= second - first < 2.5


@pytest.mark.parametrize(
    "name",
    [
        "rate_limited", "server_error", "overloaded", "dropped_before", "dropped_in_body", "connection_reset",
        "truncated_json", "html_page", "no_choices", "never_answers", "trickling",
    ],
)  # fmt: skip
def test_a_passing_fault_is_tried_again(server: LanguageModelServer, tmp_path: Path, name: str) -> None:
    server.faults, server.slow = faults.in_turn(name, name), 5.0
    start = time.monotonic()
    (outcome,) = model(server, tmp_path, timeout=0.3).ask(requests(1))
    assert outcome.failure is None and len(server.counts.requests) == 3
    # Twice the time limit at most, and two short waits: a reply that trickles keeps no one for 5 seconds.
    assert time.monotonic() - start < 2


def test_a_fault_that_stays_fails_the_call(server: LanguageModelServer, tmp_path: Path) -> None:
    server.faults = faults.always("server_error")
    (outcome,) = model(server, tmp_path, attempts=4).ask(requests(1))
    assert outcome.reply is None and outcome.failure is not None
    assert "HTTP 500" in outcome.failure and "4 attempts" in outcome.failure
    assert len(server.counts.requests) == 4


def test_a_mixture_of_faults_changes_no_reply(server: LanguageModelServer, tmp_path: Path) -> None:
    names = ["rate_limited", "server_error", "overloaded", "dropped_before", "dropped_in_body", "truncated_json"]
    server.faults = faults.at_random({**dict.fromkeys(names, 0.04), "html_page": 0.03, "no_choices": 0.03}, seed=3)
    asked = requests(150)
    outcomes = model(server, tmp_path).ask(asked)
    assert sum(server.counts.faults.values()) > 30
    with LanguageModelServer() as sound:
        right = texts(model(sound, tmp_path / "sound").ask(asked))
    told = texts(outcomes)
    assert all((t is None) != (o.failure is None) for t, o in zip(told, outcomes, strict=True))
    assert all(t in (None, r) for t, r in zip(told, right, strict=True)) and None not in right
    # Six attempts: 0.3^6 * 150 = 0.1 failures are expected.
    assert told.count(None) <= 2


# -- faults that stay -------------------------------------------------------------------------------------------------


def only(content: str, name: str) -> Callable[[int, dict[str, Any]], str | None]:
    return lambda number, body: name if body["messages"][0]["content"] == content else None


@pytest.mark.parametrize(
    ("name", "reason"), [("rate_limited_seconds", "asks to wait 7 seconds"), ("context_exceeded", "context length")]
)
def test_one_call_fails_alone(server: LanguageModelServer, tmp_path: Path, name: str, reason: str) -> None:
    server.faults, server.retry_after = only("text 3", name), 7.0
    outcomes = model(server, tmp_path, longest_wait=5).ask(requests(8))
    assert [i for i, o in enumerate(outcomes) if o.reply is None] == [3]
    assert outcomes[3].failure is not None and reason in outcomes[3].failure
    assert len(server.counts.requests) == 8


@pytest.mark.parametrize(("name", "status"), [("quota_exceeded", 429), ("unauthorized", 401), ("no_route", 404)])
def test_an_endpoint_that_refuses_all(server: LanguageModelServer, tmp_path: Path, name: str, status: int) -> None:
    asked = model(server, tmp_path, concurrency=2)
    if name == "no_route":
        endpoint = Endpoint(f"{server.url}/elsewhere", api_key=KEY, backoff=0.01)
        asked = LanguageModel(endpoint, Store(tmp_path / "s.sqlite"), progress=False)
    else:
        server.faults = faults.always(name)
    with pytest.raises(EndpointError, match=f"HTTP {status}") as caught:
        asked.ask(requests(50))
    assert KEY not in chain(caught.value)
    assert len(server.counts.requests) <= 2


def test_a_server_that_is_down(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, but nothing listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        endpoint = Endpoint(url, api_key=KEY, backoff=0.01, attempts=3, concurrency=8)
        start = time.monotonic()
        with pytest.raises(EndpointError, match=r"calls in a row failed.*connection failed"):
            LanguageModel(endpoint, Store(tmp_path / "s.sqlite"), progress=False).ask(requests(5000))
        assert time.monotonic() - start < 3


# -- what a model refuses ---------------------------------------------------------------------------------------------


def test_refused_logprobs_are_left_out_and_the_reply_is_stored(server: LanguageModelServer, tmp_path: Path) -> None:
    server.faults = faults.always("logprobs_refused")
    asked, judge = requests(3, top_logprobs=5), model(server, tmp_path, concurrency=1)
    outcomes = judge.ask(asked)
    assert all(o.reply is not None and o.reply.tokens is None and o.reply.text for o in outcomes)
    assert server.counts.faults == {"logprobs_refused": 1} and len(server.counts.requests) == 4
    assert [o.cached for o in judge.ask(asked)] == [True] * 3 and len(server.counts.requests) == 4


def test_the_other_name_of_max_tokens(server: LanguageModelServer, tmp_path: Path) -> None:
    server.faults = faults.always("max_tokens_refused")
    outcomes = model(server, tmp_path, concurrency=1).ask(requests(3, max_tokens=77))
    assert None not in texts(outcomes)
    bodies = [r.body for r in server.counts.requests]
    assert ["max_tokens" in b for b in bodies] == [True, False, False, False]
    assert {b.get("max_completion_tokens") for b in bodies[1:]} == {77}


# -- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limit", [{"requests_per_minute": 1200}, {"tokens_per_minute": 120_000}], ids=["requests", "tokens"]
)
def test_rate_limits(server: LanguageModelServer, tmp_path: Path, limit: dict[str, float]) -> None:
    # 20 requests a second; in tokens: "text 10" has 7 characters, hence 2 tokens, and 98 for the reply make 100.
    asked = requests(36, max_tokens=98)[10:]
    start = time.monotonic()
    assert None not in texts(model(server, tmp_path, **limit).ask(asked))
    # Spaced from the moment of asking: on a busy machine some come late, and then closer together, but never early.
    assert all(at >= start + i / 20 for i, at in enumerate(server.counts.arrivals))
    assert 25 / 20 - 0.1 < time.monotonic() - start < 3


def test_calls_in_flight(server: LanguageModelServer, tmp_path: Path) -> None:
    server.delay = 0.02
    model(server, tmp_path, concurrency=7).ask(requests(60))
    assert server.counts.max_in_flight == 7


# -- interruptions and company ----------------------------------------------------------------------------------------

CHILD = """
import sys
from evaluators.judge.endpoint import Endpoint
from evaluators.judge.language_model import LanguageModel
from evaluators.judge.request import Request, Sampling
from evaluators.judge.store import Store
url, path, count = sys.argv[1:]
asked = [Request("m", ({"role": "user", "content": f"text {i}"},), Sampling()) for i in range(int(count))]
endpoint = Endpoint(url, api_key="sk-test-0123456789", backoff=0.01, concurrency=8)
outcomes = LanguageModel(endpoint, Store(path), progress=False).ask(asked)
print(sum(o.reply is not None for o in outcomes))
"""


def child(server: LanguageModelServer, path: Path, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, server.url, str(path), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(server: LanguageModelServer, answered: int) -> None:
    end = time.monotonic() + 20
    while server.counts.answered.total() < answered:
        assert time.monotonic() < end, "the child asked too little"
        time.sleep(0.002)


@pytest.mark.parametrize("answered", [1, 50, 110])
def test_nothing_stored_is_asked_again_after_a_kill(server: LanguageModelServer, tmp_path: Path, answered: int) -> None:
    server.delay, asked = 0.03, requests(120)
    path = tmp_path / "replies.sqlite"
    with child(server, path, 120) as process:
        wait_for(server, answered)
        process.kill()
    time.sleep(0.1)  # the server notices that the connections are gone
    stored = Store(path).endpoints(r.key for r in asked)
    assert len(stored) < 120
    outcomes = model(server, tmp_path, concurrency=8).ask(asked)
    assert None not in texts(outcomes) and {o.request.key for o in outcomes if o.cached} == set(stored)
    times = {r.key: server.counts.asked[fingerprint(r.body())] for r in asked}
    assert all(times[key] == 1 for key in stored)
    assert set(times.values()) <= {1, 2} and list(times.values()).count(2) <= 8


def test_an_interrupt_ends_the_run_soon(server: LanguageModelServer, tmp_path: Path) -> None:
    server.delay, asked = 0.05, requests(600)
    with child(server, tmp_path / "replies.sqlite", 600) as process:
        wait_for(server, 20)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        _, told = process.communicate(timeout=20)
    assert time.monotonic() - start < 2 and "KeyboardInterrupt" in told
    assert KEY not in told
    store = Store(tmp_path / "replies.sqlite")
    found = store.endpoints(r.key for r in asked)
    assert 12 <= len(found) < 600 and all(store.reply(key).text for key in found)


def test_two_processes_share_a_store(server: LanguageModelServer, tmp_path: Path) -> None:
    server.delay = 0.01
    path = tmp_path / "replies.sqlite"
    with child(server, path, 150) as first, child(server, path, 150) as second:
        told = [p.communicate(timeout=20) for p in (first, second)]
    assert [out.strip() for out, _ in told] == ["150", "150"], told
    assert len(Store(path)) == 150
    # Twice only what both have in flight at one time: with 8 each of r left about 8 / r per call, 8 ln(150 / 8) = 23.
    assert server.counts.asked.total() <= 150 + 60


def test_inside_a_running_loop(server: LanguageModelServer, tmp_path: Path) -> None:
    judge = model(server, tmp_path)

    async def cell() -> list[Outcome]:
        return judge.ask(requests(5))

    assert None not in texts(asyncio.run(cell()))
    server.faults = faults.always("unauthorized")

    async def refused() -> list[Outcome]:
        return judge.ask(requests(6))

    with pytest.raises(EndpointError, match="HTTP 401"):
        asyncio.run(refused())


# -- the key ----------------------------------------------------------------------------------------------------------


def test_the_key_is_written_nowhere(
    server: LanguageModelServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.scorer = lambda messages: f"The key is {KEY}."
    server.faults = faults.in_turn("server_error", "dropped_before", "html_page", "truncated_json")
    judge = model(server, tmp_path)
    with caplog.at_level(logging.DEBUG):
        outcomes = judge.ask(requests(5))
        server.faults = faults.always("unauthorized")
        with pytest.raises(EndpointError) as caught:
            judge.ask(requests(6))
    assert server.counts.headers["authorization"] == {f"Bearer {KEY}"}
    assert texts(outcomes) == ["The key is [key]."] * 5
    assert caplog.records and KEY not in caplog.text
    assert KEY not in chain(caught.value) + repr(judge.endpoint) + repr(outcomes)
    files = list(tmp_path.iterdir())
    assert files and not any(KEY.encode() in f.read_bytes() for f in files)


def test_secrets_of_the_base_url_are_not_shown(
    server: LanguageModelServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    withheld = Endpoint(f"http://someone:secretword@127.0.0.1:{server.port}/v1?key=othersecret", api_key=KEY)
    endpoint = Endpoint(f"{server.url}?key=othersecret", api_key=KEY, backoff=0.01)
    for one in (withheld, endpoint):
        assert one.shown_url == server.url and repr(one) == f"Endpoint({server.url!r})"
    with pytest.raises(ValueError, match="leave them out") as refused:
        LanguageModel(withheld, Store(tmp_path / "s.sqlite"), progress=False).ask(requests(1))
    assert "secretword" not in chain(refused.value)
    # This server takes no query, and repeats it in its refusal.
    with caplog.at_level(logging.DEBUG), pytest.raises(EndpointError, match=r"HTTP 404.*\[query\]") as caught:
        LanguageModel(endpoint, Store(tmp_path / "s.sqlite"), progress=False).ask(requests(2))
    shown = chain(caught.value) + caplog.text + "".join(f.read_bytes().decode("latin-1") for f in tmp_path.iterdir())
    assert [secret for secret in ("secretword", "othersecret") if secret in shown] == []


# -- the store in use -------------------------------------------------------------------------------------------------


def test_plan_by_hand(server: LanguageModelServer, tmp_path: Path) -> None:
    judge, asked = model(server, tmp_path), requests(4, max_tokens=100)
    judge.ask(asked[:1])
    plan = judge.plan([*asked, *asked])
    # "text 1" has 6 characters: 2 tokens; three calls are left.
    assert plan == Plan(requests=4, stored=1, prompt_tokens=6, most_completion_tokens=300) and plan.calls == 3
    # 6 * 1000 / 1e6 = 0.006; 300 * 2000 / 1e6 = 0.6
    assert "cost 0.006 (prompts alone) to 0.61 at most" in plan.told(Price(1000, 2000))
    assert len(server.counts.requests) == 1


def test_counts_of_the_bar_add_up(
    server: LanguageModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    judge, asked = model(server, tmp_path), requests(9)
    judge.ask(asked[:2])
    server.faults = only("text 3", "context_exceeded")
    judge.progress = True
    judge.ask([*asked, *asked])
    assert "7 of 7, done 6, cached 2, failed 1" in capsys.readouterr().err


def test_asking_again_keeps_both(server: LanguageModelServer, tmp_path: Path) -> None:
    judge, asked = model(server, tmp_path), requests(2)
    judge.ask(asked)
    server.scorer = lambda messages: "second thought"
    right = '{"score": ' + str(hash_score([dict(m) for m in asked[1].messages])["score"])
    first, second = judge.ask(asked, again=frozenset({asked[0].key}))
    assert first.reply is not None and first.reply.text == "second thought" and not first.cached
    assert second.reply is not None and second.reply.text.startswith(right) and second.cached
    rows = judge.store._connection.execute("SELECT key, number FROM reply ORDER BY number, key").fetchall()
    assert sorted(rows) == sorted([(asked[0].key, 1), (asked[0].key, 2), (asked[1].key, 1)])
    assert server.counts.asked[fingerprint(asked[0].body())] == 2


def test_half_a_character_in_a_prompt_stops_nobody_else(server: LanguageModelServer, tmp_path: Path) -> None:
    odd = Request("m", ({"role": "user", "content": "half \ud83d"},))
    outcomes = model(server, tmp_path).ask([odd, *requests(3)])
    assert None not in texts(outcomes[1:])
    assert (outcomes[0].reply is None) == (outcomes[0].failure is not None)


def test_many_refused_prompts_do_not_mean_that_the_server_is_down(server: LanguageModelServer, tmp_path: Path) -> None:
    server.faults = lambda number, body: "context_exceeded"
    outcomes = model(server, tmp_path).ask(requests(60))
    assert all(o.failure is not None and o.failure.startswith("HTTP 400") for o in outcomes)
