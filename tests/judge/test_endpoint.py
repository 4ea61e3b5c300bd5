"""What is said of an endpoint that refuses, and keys that are odd or come back in odd forms."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import language_model_faults as faults
import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_model_server import LanguageModelServer

from evaluators.judge import Endpoint, EndpointError, LanguageModel, Request, Sampling, Store
from evaluators.judge.client import Client, retry_after

pytest_plugins = ["judge_fixtures"]

KEY = "sk-test-0123456789"


def requests(count: int, **sampling: Any) -> list[Request]:
    return [Request("m", ({"role": "user", "content": f"text {i}"},), Sampling(**sampling)) for i in range(count)]


def model(server: LanguageModelServer, folder: Path, **settings: Any) -> LanguageModel:
    settings = {"api_key": KEY, "backoff": 0.01, **settings}
    return LanguageModel(Endpoint(server.url, **settings), Store(folder / "s.sqlite"), progress=False)


# -- remedies ---------------------------------------------------------------------------------------------------------


def test_a_refusal_of_every_call_names_the_remedy(
    server: LanguageModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.faults = faults.always("unauthorized")
    with pytest.raises(EndpointError, match="is the key in api_key right"):
        model(server, tmp_path).ask(requests(1))
    monkeypatch.setenv("MY_KEY", KEY)
    with pytest.raises(EndpointError, match="is the key in MY_KEY right") as caught:
        model(server, tmp_path, api_key=None, key_variable="MY_KEY").ask(requests(1))
    assert KEY not in str(caught.value)
    server.faults = faults.always("quota_exceeded")
    with pytest.raises(EndpointError, match="is there credit left"):
        model(server, tmp_path).ask(requests(1))
    elsewhere = Endpoint(f"{server.url}/elsewhere", api_key=KEY)
    with pytest.raises(EndpointError, match="are the base URL and the model's name right"):
        LanguageModel(elsewhere, Store(tmp_path / "s.sqlite"), progress=False).ask(requests(1))


def test_a_setting_that_is_refused_stops_everything(server: LanguageModelServer, tmp_path: Path) -> None:
    # Every call has it, so every call would be refused: the run ends at the first.
    with pytest.raises(EndpointError, match=r"refuses a setting of every call: HTTP 400.*'n'"):
        model(server, tmp_path, concurrency=1).ask(requests(50, extra={"n": 2}))
    assert len(server.counts.requests) == 1


@pytest.mark.parametrize("setting", ["backoff", "longest_wait"])
def test_waits_below_zero(setting: str) -> None:
    with pytest.raises(ValueError, match=f"{setting} must not be negative"):
        Endpoint("http://127.0.0.1/v1", **{setting: -1})  # type: ignore[arg-type]


@given(
    st.text(max_size=40) | st.from_regex(r"\d{1,2} (Jan|Feb) \d{1,5} \d\d?:\d\d:\d\d ?([+-]\d{4}|GMT|)", fullmatch=True)
)
def test_any_retry_after_is_a_wait_or_none(value: str) -> None:
    wait = retry_after({"retry-after": value})
    assert wait is None or wait >= 0


def test_a_date_without_a_zone_is_in_utc() -> None:
    zoned, bare = (retry_after({"retry-after": f"Wed, 21 Oct 2099 07:28:00 {zone}"}) for zone in ("GMT", "-0000"))
    assert zoned is not None and bare == pytest.approx(zoned, abs=2)


# -- the key ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["sk-secret-\u00e9-0123", "sk-secret 0123", "sk-secret\r\nX-Other: 1", "sk-secret\0"])
def test_a_key_that_cannot_be_sent_is_told_without_it(
    server: LanguageModelServer, tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="the API key has a character that no key has") as caught:
        model(server, tmp_path, api_key=key).ask(requests(1))
    assert "secret" not in f"{caught.value!r}"
    if "\0" not in key:
        monkeypatch.setenv("MY_KEY", key)
        with pytest.raises(ValueError, match="the API key in MY_KEY"):
            model(server, tmp_path, api_key=None, key_variable="MY_KEY").ask(requests(1))
    assert not server.counts.requests


def test_a_line_break_after_the_key_is_no_part_of_it(server: LanguageModelServer, tmp_path: Path) -> None:
    (outcome,) = model(server, tmp_path, api_key=f" {KEY}\r\n").ask(requests(1))
    assert outcome.failure is None and server.counts.headers["authorization"] == {f"Bearer {KEY}"}


def test_the_tokens_of_a_reply_do_not_spell_the_key(server: LanguageModelServer, tmp_path: Path) -> None:
    server.scorer = lambda messages: {"score": 2, "reason": f"It is {KEY}."}
    (outcome,) = model(server, tmp_path).ask(requests(1, top_logprobs=5))
    assert outcome.reply is not None
    assert outcome.reply.text == '{"score": 2, "reason": "It is [key]."}' and outcome.reply.tokens is None
    ((stored,),) = sqlite3.connect(tmp_path / "s.sqlite").execute("SELECT response FROM reply")
    assert "token" not in json.dumps(json.loads(stored)["choices"])
    # Counts of tokens and the rest of the body are as they came.
    assert json.loads(stored)["usage"]["completion_tokens"] > 0


@pytest.mark.parametrize("escape", [lambda c: f"\\u{ord(c):04x}", lambda c: "\\/" if c == "/" else c])
def test_a_key_in_other_notation_is_found(escape: Any) -> None:
    key = "sk/test/0123456789"
    client = Client(Endpoint("http://127.0.0.1:1/v1", api_key=key))
    client._key = key
    body = json.dumps({"choices": [{"message": {"content": "PLACE"}}]}).replace("PLACE", "".join(map(escape, key)))
    assert key not in body
    answer = client._read(body.encode(), {})
    assert answer.reply.text == "[key]" and json.loads(answer.response)["choices"][0]["message"]["content"] == "[key]"
