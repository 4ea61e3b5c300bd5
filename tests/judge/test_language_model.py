"""The client and its store against a server that misbehaves: nothing is lost, asked twice or told to strangers."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_model_faults import always, at_random, in_turn, on_attempts
from language_model_replies import fingerprint
from language_model_server import LanguageModelServer, server_process

from evaluators.judge import Endpoint, EndpointError, LanguageModel, Price, Request, Sampling, Store
from evaluators.judge.client import retry_after
from evaluators.judge.progress import Tally

pytest_plugins = ["judge_fixtures"]

KEY = "sk-test-0123456789"
PASSING = ("rate_limited", "server_error", "overloaded", "dropped_before", "dropped_in_body", "connection_reset")
MALFORMED = ("truncated_json", "html_page", "no_choices")


def requests(number: int, start: int = 0, **sampling: Any) -> list[Request]:
    return [
        Request("gpt-4o-mini", ({"role": "user", "content": f"passage {i}"},), Sampling(**sampling))
        for i in range(start, start + number)
    ]


def model(server: Any, store: Path, **settings: Any) -> LanguageModel:
    settings = {"api_key": KEY, "backoff": 0.01, "timeout": 3, **settings}
    return LanguageModel(Endpoint(server.url, **settings), Store(store), progress=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


def texts(outcomes: Any) -> list[str | None]:
    return [None if o.reply is None else o.reply.text for o in outcomes]


# ---- asking ------------------------------------------------------------------------------------------------------


def test_each_request_once_in_order_and_never_again(server: LanguageModelServer, path: Path) -> None:
    asked = requests(40)
    first = model(server, path).ask([*asked, *asked[:5]])
    assert len(server.counts.requests) == 40
    assert texts(first) == [json.dumps(server.scorer(list(r.messages))) for r in (*asked, *asked[:5])]
    assert not any(o.cached for o in first)
    again = model(server, path).ask(asked)
    assert texts(again) == texts(first)[:40] and all(o.cached for o in again)
    assert len(server.counts.requests) == 40
    assert len(Store(path)) == 40


def test_again_keeps_both_replies(server: LanguageModelServer, path: Path) -> None:
    (request,) = requests(1)
    asking = model(server, path)
    asking.ask([request])
    server.scorer = lambda messages: "another"
    (outcome,) = asking.ask([request], again=frozenset([request.key]))
    assert outcome.reply is not None and outcome.reply.text == "another"
    rows = sqlite3.connect(path).execute("SELECT number, response FROM reply ORDER BY number").fetchall()
    assert [n for n, _ in rows] == [1, 2] and "another" not in rows[0][1] and "another" in rows[1][1]


@pytest.mark.parametrize("fault", [*PASSING, *MALFORMED])
def test_a_passing_fault_is_tried_again(server: LanguageModelServer, path: Path, fault: str) -> None:
    server.faults = on_attempts(fault, fault)
    (outcome,) = model(server, path).ask(requests(1))
    assert outcome.failure is None
    assert len(server.counts.requests) == 3


@pytest.mark.parametrize("fault", ["never_answers", "trickling"])
def test_a_call_has_a_time_limit_on_the_clock(server: LanguageModelServer, path: Path, fault: str) -> None:
    server.faults, server.slow = on_attempts(fault), 5.0
    start = time.monotonic()
    (outcome,) = model(server, path, timeout=0.4).ask(requests(1))
    assert outcome.failure is None and time.monotonic() - start < 2


@pytest.mark.parametrize("fault", ["rate_limited_seconds", "rate_limited_date"])
def test_retry_after_is_kept(server: LanguageModelServer, path: Path, fault: str) -> None:
    server.faults, server.retry_after = on_attempts(fault), 1.0
    (outcome,) = model(server, path).ask(requests(1))
    first, second = server.counts.arrivals
    # A date has whole seconds, so it may name a moment up to one second later.
    assert outcome.failure is None and 0.95 <= second - first < 2.5


def test_retry_after_values() -> None:
    assert retry_after({"retry-after": "3"}) == 3
    assert retry_after({"retry-after-ms": "250", "retry-after": "3"}) == 0.25
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after({}) is None
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "-1"}) is None


def test_a_wait_that_is_too_long_fails_the_call_with_its_reason(server: LanguageModelServer, path: Path) -> None:
    server.faults, server.retry_after = in_turn("rate_limited_seconds"), 5.0
    asked = requests(2)
    outcomes = model(server, path, longest_wait=2, concurrency=1).ask(asked)
    assert outcomes[0].failure is not None and "asks to wait 5 seconds" in outcomes[0].failure
    assert outcomes[0].reply is None and outcomes[1].failure is None
    # A call that failed is not stored: it is asked again.
    assert model(server, path).ask(asked)[0].failure is None


def test_a_refused_prompt_fails_alone_and_is_not_tried_again(server: LanguageModelServer, path: Path) -> None:
    server.faults = in_turn("context_exceeded")
    outcomes = model(server, path, concurrency=1).ask(requests(3))
    assert [o.failure is None for o in outcomes] == [False, True, True]
    assert outcomes[0].failure is not None and outcomes[0].failure.startswith("HTTP 400: ")
    assert len(server.counts.requests) == 3


@pytest.mark.parametrize("fault", ["unauthorized", "quota_exceeded"])
def test_what_no_call_can_survive_stops_everything(server: LanguageModelServer, path: Path, fault: str) -> None:
    server.faults = always(fault)
    with pytest.raises(EndpointError, match=r"refuses every call: HTTP 4.*0 replies were stored; run again") as caught:
        model(server, path, concurrency=4).ask(requests(200))
    assert len(server.counts.requests) <= 8
    assert KEY not in str(caught.value)


def test_a_server_that_is_down_is_noticed(path: Path) -> None:
    with LanguageModelServer() as server:
        url = server.url
    endpoint = Endpoint(url, api_key=KEY, backoff=0.001, attempts=2, concurrency=8)
    with pytest.raises(EndpointError, match="20 calls in a row failed, the last one with: connection failed"):
        LanguageModel(endpoint, Store(path), progress=False).ask(requests(500))


def test_thirty_percent_of_calls_fail(server: LanguageModelServer, path: Path, tmp_path: Path) -> None:
    asked = requests(150)
    sound = texts(model(server, tmp_path / "sound.sqlite").ask(asked))
    kinds = (*PASSING, *MALFORMED, "never_answers")
    server.faults = at_random(dict.fromkeys(kinds, 0.03), seed=7)
    outcomes = model(server, path, timeout=0.5, attempts=4).ask(asked)
    failed = [o for o in outcomes if o.failure is not None]
    assert server.counts.faults.total() > 30
    assert all(o.failure and "(4 attempts)" in o.failure for o in failed)
    assert len(failed) <= 6
    assert [t for t, o in zip(texts(outcomes), outcomes, strict=True) if o.failure is None] == [
        t for t, o in zip(sound, outcomes, strict=True) if o.failure is None
    ]
    server.faults = lambda number, body: None
    before = len(server.counts.requests)
    assert texts(model(server, path).ask(asked)) == sound
    assert len(server.counts.requests) - before == len(failed)


def test_log_probabilities_refused_and_the_length_renamed(server: LanguageModelServer, path: Path) -> None:
    def refuse(number: int, body: Any) -> str | None:
        return "logprobs_refused" if body.get("logprobs") else "max_tokens_refused"

    server.faults = refuse
    asked = requests(30, top_logprobs=10)
    outcomes = model(server, path).ask(asked)
    assert all(o.failure is None for o in outcomes)
    last = server.counts.requests[-1].body
    assert "logprobs" not in last and last["max_completion_tokens"] == 512
    count = len(server.counts.requests)
    # Stored as what was wanted, so that nothing is tried anew.
    assert all(o.cached for o in model(server, path).ask(asked))
    assert len(server.counts.requests) == count


# ---- limits ------------------------------------------------------------------------------------------------------


def test_limits_hold_by_the_server_s_count(server: LanguageModelServer, path: Path) -> None:
    server.delay = 0.02
    model(server, path, concurrency=5).ask(requests(60))
    assert server.counts.max_in_flight == 5
    before = len(server.counts.arrivals)
    model(server, path, requests_per_minute=1800).ask(requests(30, start=100))
    spaced = server.counts.arrivals[before:]
    # 30 a second, evenly: 29 gaps of 1/30 s; no burst at the start.
    assert spaced[-1] - spaced[0] >= 29 / 30 - 0.05
    before = len(server.counts.arrivals)
    one = requests(1)[0]
    tokens = one.estimated_prompt_tokens() + 512
    model(server, path, tokens_per_minute=60 * 20 * tokens).ask(requests(15, start=200))
    spaced = server.counts.arrivals[before:]
    assert spaced[-1] - spaced[0] >= 14 / 20 - 0.05


@pytest.mark.parametrize("setting", ["concurrency", "attempts", "timeout", "requests_per_minute", "tokens_per_minute"])
def test_settings_that_make_no_sense(setting: str) -> None:
    with pytest.raises(ValueError, match=f"{setting} must be above 0"):
        Endpoint("http://127.0.0.1/v1", **{setting: 0})


# ---- interruption, several processes -----------------------------------------------------------------------------

WORKER = """
import sys
sys.path.insert(0, sys.argv[4])
from test_language_model import KEY, requests
from evaluators.judge import Endpoint, LanguageModel, Store
endpoint = Endpoint(sys.argv[1], api_key=KEY, concurrency=8, backoff=0.01)
asking = LanguageModel(endpoint, Store(sys.argv[2]), progress=False)
print("ready", flush=True)
outcomes = asking.ask(requests(int(sys.argv[3])))
print(sum(o.failure is None for o in outcomes))
"""


def worker(url: str, path: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, url, str(path), str(number), str(Path(__file__).parent)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stored(path: Path) -> set[str]:
    rows = sqlite3.connect(path).execute("SELECT request FROM reply")
    return {fingerprint(json.loads(row[0])) for row in rows}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_at_any_moment_nothing_stored_is_asked_again(path: Path, how: signal.Signals) -> None:
    with LanguageModelServer(delay=0.03) as server:
        before: set[str] = set()
        asked: Counter[str] = Counter()
        for wanted in (10, 60, 60):
            with worker(server.url, path, 200) as process:
                try:
                    assert process.stdout is not None and process.stdout.readline() == "ready\n"
                    deadline = time.monotonic() + 30
                    while len(server.counts.requests) < wanted + asked.total() and time.monotonic() < deadline:
                        time.sleep(0.005)
                finally:
                    process.send_signal(how)
                start = time.monotonic()
                process.wait(timeout=10)
                assert how == signal.SIGKILL or time.monotonic() - start < 3
            # What was kept when this process began, it did not ask again.
            assert all(server.counts.asked[key] == asked[key] for key in before)
            before, asked = stored(path), Counter(server.counts.asked)
            assert before
        outcomes = model(server, path, concurrency=8).ask(requests(200))
        assert all(o.failure is None for o in outcomes)
        assert all(server.counts.asked[key] == asked[key] for key in before)
        # Only calls in flight at one of the three stops, eight at most each, were asked twice.
        assert sum(n - 1 for n in server.counts.asked.values()) <= 3 * 8


def test_two_processes_at_once(path: Path) -> None:
    with LanguageModelServer(delay=0.01) as server:
        both = [worker(server.url, path, 150) for _ in range(2)]
        told = [process.communicate(timeout=60) for process in both]
        assert [out.split() for out, _ in told] == [["ready", "150"]] * 2, told
        assert len(server.counts.asked) == 150 == len(Store(path))
        # A reply is looked up just before its call: at most those in flight at the same time are asked twice.
        assert len(server.counts.requests) < 2 * 150


def test_inside_a_running_event_loop(server: LanguageModelServer, path: Path) -> None:
    async def notebook() -> Any:
        return model(server, path).ask(requests(3))

    assert all(o.failure is None for o in asyncio.run(notebook()))
    server.faults = always("unauthorized")

    async def refused() -> Any:
        return model(server, path).ask(requests(3, start=10))

    with pytest.raises(EndpointError):
        asyncio.run(refused())


# ---- secrets -----------------------------------------------------------------------------------------------------


def test_the_key_is_nowhere(
    server: LanguageModelServer, path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    server.scorer = lambda messages: f"your key is {KEY}"
    asking = model(server, path)
    (outcome,) = asking.ask(requests(1))
    assert outcome.reply is not None and outcome.reply.text == "your key is [key]"
    server.faults = always("unauthorized")
    with pytest.raises(EndpointError) as caught:
        asking.ask(requests(1, start=1))
    chain: BaseException | None = caught.value
    while chain is not None:
        assert KEY not in f"{chain!r} {chain}"
        chain = chain.__context__ if not chain.__suppress_context__ else chain.__cause__
    asking.store.close()
    assert KEY not in caplog.text + "".join(capfd.readouterr()) + repr(asking.endpoint)
    for file in path.parent.iterdir():
        assert KEY.encode() not in file.read_bytes()
    assert any(KEY in value for value in server.counts.headers["authorization"])  # it was sent


def test_addresses_are_shown_without_secrets() -> None:
    endpoint = Endpoint("https://user:pass@host:8443/v1/?key=abc", api_key=KEY)
    assert endpoint.shown_url == "https://host:8443/v1"
    assert "pass" not in repr(endpoint) and KEY not in repr(endpoint)
    with pytest.raises(ValueError, match="is no http or https address"):
        Endpoint("ftp://user:pass@host")


def test_without_a_key(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ValueError, match="set the environment variable OPENAI_API_KEY"):
        LanguageModel(Endpoint(), Store(path), progress=False).ask(requests(1))
    assert Endpoint("http://127.0.0.1:1/v1").key()  # a server of one's own needs none


# ---- the store ---------------------------------------------------------------------------------------------------


def test_files_that_are_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_text("no database at all, " * 100)
    with pytest.raises(ValueError, match=r"cannot be read.*Move it away"):
        Store(tmp_path / "text")
    foreign = sqlite3.connect(tmp_path / "foreign")
    foreign.execute("CREATE TABLE t (x)")
    foreign.commit()
    with pytest.raises(ValueError, match="a database of something else"):
        Store(tmp_path / "foreign")
    Store(tmp_path / "later").close()
    later = sqlite3.connect(tmp_path / "later")
    later.execute("PRAGMA user_version = 99")
    with pytest.raises(ValueError, match="a later version of mteb-beyond"):
        Store(tmp_path / "later")
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "deep" / "er.sqlite"))
    assert Store().path == tmp_path / "deep" / "er.sqlite"
    with pytest.raises(OSError, match="text"):
        Store(tmp_path / "text" / "below.sqlite")


def test_odd_characters_survive(server: LanguageModelServer, path: Path) -> None:
    server.scorer = lambda messages: 'a\x00b \ud83d "é" 😀'
    (outcome,) = model(server, path).ask(requests(1))
    assert outcome.reply is not None and outcome.reply.text == 'a\x00b \ud83d "é" 😀'


SAMPLINGS = st.builds(
    Sampling,
    temperature=st.sampled_from([None, 0.0, 1.0]),
    top_p=st.sampled_from([None, 0.7, 1.0]),
    max_tokens=st.integers(1, 5),
    top_logprobs=st.integers(0, 3),
    seed=st.sampled_from([None, 0, 1]),
    extra=st.sampled_from([{}, {"a": 1, "b": 2}, {"b": 2, "a": 1}]),
)
REQUESTS = st.builds(
    Request,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["x", "y"]).map(lambda text: ({"role": "user", "content": text},)),
    SAMPLINGS,
)


@given(REQUESTS, REQUESTS)
def test_equal_keys_mean_equal_requests(first: Request, second: Request) -> None:
    assert (first.key == second.key) == (first.body() == second.body())


@pytest.mark.parametrize(
    ("setting", "value"), [("temperature", 3), ("top_p", 0), ("max_tokens", 0), ("top_logprobs", 21)]
)
def test_sampling_out_of_range(setting: str, value: float) -> None:
    with pytest.raises(ValueError, match=setting):
        Sampling(**{setting: value})  # type: ignore[arg-type]


# ---- plans and prices --------------------------------------------------------------------------------------------


def test_a_plan_by_hand(server: LanguageModelServer, path: Path) -> None:
    asked = requests(4, max_tokens=100)  # "passage 0": nine characters, three tokens
    asking = model(server, path)
    asking.ask(asked[:1])
    plan = asking.plan([*asked, asked[3]])
    assert (plan.requests, plan.stored, plan.calls, plan.prompt_tokens, plan.most_completion_tokens) == (
        4,
        1,
        3,
        9,
        300,
    )
    told = plan.told(Price(1e6, 2e6))
    assert "3 calls to make" in told and "cost 9.00 (prompts alone) to 609.00 at most" in told
    assert len(server.counts.requests) == 1


def test_the_tally_expects_what_it_saw() -> None:
    tally = Tally(total=100, cached=20, done=10, failed=5, prompt_tokens=1000, completion_tokens=100)
    # 10 calls cost 1000 x 1 + 100 x 2 = 1200 millionths; 75 of that kind make 9000.
    assert tally.spent(Price(1, 2)) == pytest.approx(0.0012)
    assert tally.expected(Price(1, 2)) == pytest.approx(0.009)
    assert Tally(total=3).expected(Price(1, 2)) is None


def test_usage_is_counted(path: Path) -> None:
    with server_process() as server:
        asking = LanguageModel(Endpoint(server.url, api_key=KEY), Store(path), price=Price(1, 1))
        outcomes = asking.ask(requests(3))
    assert all(o.reply is not None and o.reply.completion_tokens > 0 for o in outcomes)
    assert os.path.getsize(path) > 0
