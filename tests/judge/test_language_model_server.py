"""The test server itself, through the OpenAI client: its protocol, every fault it can carry out, and its counts."""

from __future__ import annotations

import asyncio
import json
import math
import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import language_model_faults as faults
import openai
import pytest
from language_model_replies import fingerprint, hash_score
from language_model_server import LanguageModelServer, ServerProcess, server_process
from openai.types.chat import ChatCompletion

pytest_plugins = ["judge_fixtures"]

KEY = "sk-test-0123456789"
TOP_5: dict[str, Any] = {"logprobs": True, "top_logprobs": 5}
SCORE_2 = {"score": 2, "reason": "Two of 3."}


async def ask_all(
    server: LanguageModelServer | ServerProcess, prompts: list[str], timeout: float = 5, **options: Any
) -> list[ChatCompletion | BaseException]:
    """Ask about all prompts at once, without retries; an error takes the place of its reply."""
    async with openai.AsyncOpenAI(base_url=server.url, api_key=KEY, max_retries=0, timeout=timeout) as client:
        options = {"model": "gpt-4o-mini", **options}
        calls = [client.chat.completions.create(messages=[{"role": "user", "content": p}], **options) for p in prompts]
        return await asyncio.gather(*calls, return_exceptions=True)


def ask(server: LanguageModelServer | ServerProcess, prompt: str = "relevant?", **options: Any) -> ChatCompletion:
    """One reply, or the error raised."""
    (reply,) = asyncio.run(ask_all(server, [prompt], **options))
    if isinstance(reply, BaseException):
        raise reply
    return reply


def logprobs(reply: ChatCompletion) -> list[Any]:
    assert reply.choices[0].logprobs is not None and reply.choices[0].logprobs.content is not None
    return reply.choices[0].logprobs.content


# -- a good reply -----------------------------------------------------------------------------------------------------


def test_good_reply(server: LanguageModelServer) -> None:
    reply = ask(server, temperature=0, top_p=0.7, max_tokens=512, **TOP_5)
    content = reply.choices[0].message.content
    assert content is not None
    assert json.loads(content) == hash_score([{"role": "user", "content": "relevant?"}])
    assert reply.model == "gpt-4o-mini" and reply.choices[0].finish_reason == "stop"
    tokens = logprobs(reply)
    assert "".join(t.token for t in tokens) == content
    assert all(bytes(t.bytes).decode() == t.token and len(t.top_logprobs) == 5 for t in tokens)
    assert all(t.top_logprobs[0].token == t.token and t.top_logprobs[0].logprob == t.logprob for t in tokens)
    assert all([a.logprob for a in t.top_logprobs] == sorted([a.logprob for a in t.top_logprobs])[::-1] for t in tokens)
    assert reply.usage is not None and reply.usage.completion_tokens == len(tokens)
    assert ask(server).choices[0].logprobs is None


def test_scores_of_the_default_scorer_cover_the_scale() -> None:
    scores = [hash_score([{"role": "user", "content": str(i)}])["score"] for i in range(400)]
    assert {s for s in scores if 70 < scores.count(s) < 130} == {0, 1, 2, 3}
    assert {hash_score([{"content": str(i)}], highest=1)["score"] for i in range(20)} == {0, 1}


@pytest.mark.parametrize(("score", "weighted"), [(0, 0.42 / 0.94), (1, 0.82 / 0.94), (2, 1.76 / 0.94), (3, 2.4 / 0.94)])
def test_weighted_score_by_hand(server: LanguageModelServer, score: int, weighted: float) -> None:
    server.scorer = lambda messages: {"score": score, "reason": "-"}
    (token,) = [t for t in logprobs(ask(server, **TOP_5)) if t.token == str(score)]
    odds = {t.token: math.exp(t.logprob) for t in token.top_logprobs}
    kept = {int(t): p for t, p in odds.items() if t in ("0", "1", "2", "3") and p >= 0.01}
    assert sum(s * p for s, p in kept.items()) / sum(kept.values()) == pytest.approx(weighted, rel=1e-12)
    assert len(odds) == 5 and len(kept) == 3


def test_raw_text_own_distribution_and_token_limit(server: LanguageModelServer) -> None:
    server.scorer = lambda messages: 'Well: {"score": 1}'
    server.distribution = lambda digits: {"3": 0.6, digits: 0.3}
    reply = ask(server, logprobs=True, top_logprobs=2)
    assert reply.choices[0].message.content == 'Well: {"score": 1}'
    (token,) = [t for t in logprobs(reply) if t.token == "1"]
    assert {t.token: round(math.exp(t.logprob), 9) for t in token.top_logprobs} == {"3": 0.6, "1": 0.3}
    assert math.exp(token.logprob) == pytest.approx(0.3)
    cut = ask(server, max_completion_tokens=3).choices[0]
    assert cut.message.content == 'Well: {"' and cut.finish_reason == "length"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"top_logprobs": 5}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"max_tokens": 5, "max_completion_tokens": 5}, "max_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"model": ""}, "model"),
        ({"response_format": {"type": "json_object"}}, "messages"),
    ],
)
def test_unsound_requests_are_refused(server: LanguageModelServer, options: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask(server, **options)
    assert caught.value.param == param and server.counts.statuses == {400: 1}


def test_request_without_key_is_refused(server: LanguageModelServer) -> None:
    with pytest.raises(openai.AuthenticationError):
        ask(server, extra_headers={"Authorization": "none"})


# -- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "error", "status"),
    [
        ("rate_limited", openai.RateLimitError, 429),
        ("rate_limited_seconds", openai.RateLimitError, 429),
        ("rate_limited_date", openai.RateLimitError, 429),
        ("quota_exceeded", openai.RateLimitError, 429),
        ("server_error", openai.InternalServerError, 500),
        ("overloaded", openai.InternalServerError, 503),
        ("unauthorized", openai.AuthenticationError, 401),
        ("logprobs_refused", openai.BadRequestError, 400),
        ("max_tokens_refused", openai.BadRequestError, 400),
        ("context_exceeded", openai.BadRequestError, 400),
    ],
)
def test_errors(server: LanguageModelServer, name: str, error: type[openai.APIStatusError], status: int) -> None:
    server.faults, server.retry_after = faults.always(name), 0.25
    before = time.time()
    with pytest.raises(error) as caught:
        ask(server, max_tokens=512, **TOP_5)
    after = caught.value.response.headers.get("retry-after")
    if name == "rate_limited_seconds":
        assert after == "0.25"
    elif name == "rate_limited_date":
        assert after is not None and parsedate_to_datetime(after).timestamp() >= before + 0.25
    else:
        assert after is None
    assert (KEY in str(caught.value)) == (name == "unauthorized")
    assert {"quota_exceeded": "insufficient_quota", "context_exceeded": "context_length_exceeded"}.get(
        name, caught.value.code
    ) == caught.value.code
    assert server.counts.statuses == {status: 1} and server.counts.faults == {name: 1}
    assert not server.counts.answered


def test_date_of_retry_after_is_rounded_up() -> None:
    for retry_after in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 30.0):
        earliest = time.time() + retry_after
        _, _, headers = faults.error_reply("rate_limited_date", KEY, retry_after)
        date = parsedate_to_datetime(headers["Retry-After"]).timestamp()
        assert earliest <= date < time.time() + retry_after + 1


@pytest.mark.parametrize(("name", "param"), [("logprobs_refused", "logprobs"), ("max_tokens_refused", "max_tokens")])
def test_parameters_are_refused_only_where_sent(server: LanguageModelServer, name: str, param: str) -> None:
    server.faults = faults.always(name)
    with pytest.raises(openai.BadRequestError) as caught:
        ask(server, max_tokens=512, **TOP_5)
    assert caught.value.param == param
    reply = ask(server, max_completion_tokens=512)
    assert reply.choices[0].message.content and server.counts.faults == {name: 1}
    assert sum(server.counts.answered_well.values()) == 1


@pytest.mark.parametrize(
    ("name", "content", "finish_reason"),
    [
        ("cut_before_score", '{"sco', "length"),
        ("cut_after_score", '{"score": 2, "reason": "Two of 3.', "length"),
        ("code_fence", '```json\n{\n  "score": 2,\n  "reason": "Two of 3."\n}\n```', "stop"),
        ("prose_only", "Such a passage would get 2 of 3 points.", "stop"),
        ("score_joined_before", '{"score":2, "reason":"Two of 3."}', "stop"),
        ("score_split", '{"score": 10, "reason": "Two of 3."}', "stop"),
        ("score_seven", '{"score": 7, "reason": "Two of 3."}', "stop"),
        ("score_negative", '{"score": -1, "reason": "Two of 3."}', "stop"),
        ("score_fraction", '{"score": 1.5, "reason": "Two of 3."}', "stop"),
        ("score_null", '{"score": null, "reason": "Two of 3."}', "stop"),
        ("score_word", '{"score": "two", "reason": "Two of 3."}', "stop"),
        ("score_true", '{"score": true, "reason": "Two of 3."}', "stop"),
        ("score_quoted", '{"score": "2", "reason": "Two of 3."}', "stop"),
        ("score_missing", '{"reason": "Two of 3."}', "stop"),
        ("duplicate_score", '{"score": 1, "score": 2, "reason": "Two of 3."}', "stop"),
        ("two_objects", '{"score": 1, "reason": "A first thought."}\n{"score": 2, "reason": "Two of 3."}', "stop"),
        ("null_content", None, "stop"),
        ("empty_content", "", "stop"),
        ("refusal", None, "stop"),
        ("content_filter", None, "content_filter"),
    ],
)
def test_texts(server: LanguageModelServer, name: str, content: str | None, finish_reason: str) -> None:
    server.faults, server.scorer = faults.always(name), lambda messages: SCORE_2
    choice = ask(server, **TOP_5).choices[0]
    assert (choice.message.content, choice.finish_reason) == (content, finish_reason)
    assert (choice.message.refusal is not None) == (name == "refusal")
    if content:
        assert choice.logprobs is not None and choice.logprobs.content is not None
        assert "".join(t.token for t in choice.logprobs.content) == content
    assert not server.counts.answered_well and sum(server.counts.answered.values()) == 1


@pytest.mark.parametrize(
    ("name", "tokens", "likely"),
    [
        ("score_joined_before", [":2"], [":2", ":1", ":3", ":7", ":0"]),
        ("score_joined_after", ["2,"], ["2,", "1,", "3,", "7,", "0,"]),
        ("score_leading_blank", [" 2"], [" 2", " 1", " 3", " 7", " 0"]),
        ("score_split", ["1", "0"], ["1", "0", "2", "7", "3"]),
        ("text_around", ["2", ","], ["2", "1", "3", "7", "0"]),
        ("two_objects", ["2", ","], ["2", "1", "3", "7", "0"]),
    ],
)
@pytest.mark.parametrize("score_first", [True, False])
def test_tokens_of_scores(
    server: LanguageModelServer, name: str, tokens: list[str], likely: list[str], score_first: bool
) -> None:
    verdict = {"score": 2, "reason": "good"} if score_first else {"reason": "good", "score": 2, "more": ""}
    server.faults, server.scorer = faults.always(name), lambda messages: verdict
    reply = ask(server, **TOP_5)
    entries = logprobs(reply)
    texts = [t.token for t in entries]
    assert "".join(texts) == reply.choices[0].message.content
    at = next(i for i in range(len(texts)) if texts[i : i + len(tokens)] == tokens)
    assert [t.token for t in entries[at].top_logprobs] == likely


def test_faults_of_the_wrapping(server: LanguageModelServer) -> None:
    server.faults = faults.in_turn("no_choices", "no_logprobs", "null_logprobs")
    assert ask(server, **TOP_5).choices == []
    assert ask(server, **TOP_5).choices[0].logprobs is None
    empty = ask(server, **TOP_5).choices[0].logprobs
    assert empty is not None and empty.content is None
    assert logprobs(ask(server, **TOP_5))


@pytest.mark.parametrize("name", ["dropped_before", "dropped_in_body", "connection_reset"])
def test_dropped_connections(server: LanguageModelServer, name: str) -> None:
    server.faults = faults.in_turn(name)
    with pytest.raises(openai.APIConnectionError):
        ask(server)
    assert ask(server).choices
    assert server.counts.asked.total() == 2 and server.counts.answered.total() == 1


def test_bodies_that_are_no_completion(server: LanguageModelServer) -> None:
    server.faults = faults.in_turn("truncated_json", "html_page")
    with pytest.raises(json.JSONDecodeError):
        ask(server)
    page: Any = ask(server)
    assert isinstance(page, str) and "sign in" in page  # what this client makes of a page
    assert server.counts.answered.total() == 2 and not server.counts.answered_well


def test_slow_replies(server: LanguageModelServer) -> None:
    server.slow, server.faults = 0.6, faults.in_turn("late", "late", "trickling", "trickling", "never_answers")
    with pytest.raises(openai.APITimeoutError):
        ask(server, timeout=0.3)
    start = time.monotonic()
    assert ask(server, timeout=2).choices
    assert time.monotonic() - start >= 0.6
    # A limit between bytes, which is all the client has, misses a reply that trickles; a limit by the clock does not.
    assert ask(server, timeout=0.3).choices
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(ask_all(server, ["relevant?"]), 0.3))
    with pytest.raises(openai.APITimeoutError):
        ask(server, timeout=0.3)
    time.sleep(0.1)
    assert [r.complete for r in server.counts.requests] == [False, True, True, False, False]
    assert server.counts.in_flight == 0


def test_every_fault_is_tested_here() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert len(set(faults.ALL_FAULTS)) == len(faults.ALL_FAULTS)
    assert [name for name in faults.ALL_FAULTS if f'"{name}"' not in source] == []


# -- the choice of faults ---------------------------------------------------------------------------------------------


def test_on_attempts_counts_each_body_by_itself(server: LanguageModelServer) -> None:
    server.faults = faults.on_attempts("server_error", None, "refusal")
    outcomes = [asyncio.run(ask_all(server, ["a", "b"])) for _ in range(4)]
    assert [type(reply) for reply in outcomes[0]] == [openai.InternalServerError] * 2
    assert [r.fault for r in server.counts.requests] == ["server_error"] * 2 + [None] * 2 + ["refusal"] * 2 + [None] * 2


def test_at_random_depends_on_body_and_attempt_only() -> None:
    rates = {"server_error": 0.2, "no_choices": 0.1}
    bodies = [{"messages": [str(i)]} for i in range(500)]
    first, second = faults.at_random(rates, seed=1), faults.at_random(rates, seed=1)
    drawn = [first(i, body) for i, body in enumerate(bodies * 2)]
    assert drawn[:500] == [second(i, body) for i, body in enumerate(reversed(bodies))][::-1]
    assert drawn[:500] != drawn[500:]
    # 1,000 draws: three standard deviations are 3 sqrt(1000 * .2 * .8) = 38 and 3 sqrt(1000 * .1 * .9) = 28
    assert abs(drawn.count("server_error") - 200) < 38 and abs(drawn.count("no_choices") - 100) < 28
    with pytest.raises(ValueError, match="sum to 1"):
        faults.at_random({"refusal": 0.8, "late": 0.3})


def test_mistakes_of_a_test_come_out() -> None:
    with (
        pytest.raises(ValueError, match="no fault 'typo'"),
        LanguageModelServer(faults=faults.always("typo")) as server,
    ):
        asyncio.run(ask_all(server, ["a"]))
    with (
        pytest.raises(ValueError, match="return a dict"),
        LanguageModelServer(faults=faults.always("score_null"), scorer=lambda messages: "2") as server,
    ):
        asyncio.run(ask_all(server, ["a"]))


# -- counts -----------------------------------------------------------------------------------------------------------


def test_counts(server: LanguageModelServer) -> None:
    server.delay = 0.4
    start = time.monotonic()
    asyncio.run(ask_all(server, [str(i % 4) for i in range(12)]))
    counts = server.counts
    assert sorted(counts.asked.values()) == [3, 3, 3, 3] and counts.answered == counts.asked == counts.answered_well
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "0"}]}
    assert counts.asked[fingerprint(body)] == 3
    assert counts.max_in_flight == 12 and counts.in_flight == 0
    assert all(start < t < start + 5 for t in counts.arrivals) and counts.arrivals == sorted(counts.arrivals)
    assert all(r.finished is not None and r.finished - r.arrived >= 0.4 for r in counts.requests)
    assert counts.most_arrivals_within(30) == 12 and counts.most_arrivals_within(1e-9) == 1
    assert 12 / (time.monotonic() - start) < counts.replies_per_second < 12 / 0.4
    assert counts.headers["authorization"] == {f"Bearer {KEY}"}


def test_starting_and_stopping_is_cheap() -> None:
    start = time.monotonic()
    for _ in range(5):
        with LanguageModelServer():
            pass
    assert (time.monotonic() - start) / 5 < 0.2  # usually under 0.005


def test_server_process() -> None:
    with server_process("--delay", "0.02", "--fault", "server_error=0.5", "--highest", "1") as server:
        replies = asyncio.run(ask_all(server, [str(i) for i in range(40)]))
        counts = server.counts()
    errors = sum(isinstance(r, openai.InternalServerError) for r in replies)
    assert 5 < errors < 35
    assert counts["statuses"] == {"200": 40 - errors, "500": errors} and counts["faults"] == {"server_error": errors}
    assert len(counts["answered"]) == 40 - errors and len(counts["arrivals"]) == counts["requests"] == 40
    with pytest.raises(ValueError, match="did not start"), server_process("--fault", "typo=1"):
        pass
