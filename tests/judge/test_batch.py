"""The Batch API's files beyond the way out and in: sizes, faulty lines; and the options that name a model."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from evaluators.judge import Price, Request, Sampling, Store
from evaluators.judge import batch as batch_module
from evaluators.judge.batch import read_batch, write_batch
from evaluators.judge.options import add_model_options, language_model_of, sampling_of


def request(number: int) -> Request:
    return Request("m", ({"role": "user", "content": f"question {number} \u00fc"},))


def result(key: str, body: Any, status: int = 200) -> str:
    response = {"status_code": status, "request_id": "r", "body": body}
    return json.dumps({"id": "batch_req_1", "custom_id": key, "response": response, "error": None})


GOOD = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(("lines", "sizes"), [(0, [1, 1, 1, 1]), (1, [1, 1, 1, 1]), (2, [2, 2]), (3, [3, 1]), (4, [4])])
def test_files_are_split_at_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int, sizes: list[int]
) -> None:
    asked = [request(n) for n in range(4)]  # lines of equal length
    (whole,) = write_batch(asked[:1], Store(tmp_path / "one.sqlite"), tmp_path / "whole.jsonl")
    monkeypatch.setattr(batch_module, "MOST_BYTES", lines * whole.stat().st_size)
    files = write_batch(asked, Store(tmp_path / "s.sqlite"), tmp_path / "new" / "b.jsonl")
    assert [len(f.read_text().splitlines()) for f in files] == sizes
    entries = [json.loads(line) for f in files for line in f.read_text().splitlines()]
    assert [(e["custom_id"], e["body"]) for e in entries] == [(r.key, r.body()) for r in asked]


def test_what_is_no_reply_is_failed_and_can_be_had_later(tmp_path: Path) -> None:
    store, keys = Store(tmp_path / "s.sqlite"), [request(n).key for n in range(4)]
    write_batch([request(n) for n in range(4)], store, tmp_path / "b.jsonl")
    path = tmp_path / "r.jsonl"
    expired = json.dumps({"id": "x", "custom_id": keys[2], "response": None, "error": {"code": "batch_expired"}})
    lines = [result(keys[0], {"choices": []}), result(keys[1], {"error": {"message": "slow"}}, 429), expired]
    path.write_text("\ufeff" + "\n".join([*lines, "", result(keys[3], GOOD)]), encoding="utf-8")
    report = read_batch(path, store, "there")
    assert (report.stored, report.unknown, [k for k, _ in report.failed]) == (1, [], keys[:3])
    for (_, reason), told in zip(report.failed, ("no choice", "status 429", "batch_expired"), strict=True):
        assert told in reason
    assert store.endpoints(keys) == {keys[3]: "there"} and store.reply(keys[3]).text == "yes"
    path.write_text("\n".join(result(k, GOOD) for k in keys))
    assert read_batch(path, store, "there").stored == 3
    assert read_batch(path, store, "there").stored == 0 and len(store) == 4


@pytest.mark.parametrize("line", ["[]", "3", "{}", '{"id": "x"}', "{", "null"])
def test_a_line_of_another_form_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(f"{result('a', GOOD)}\n\n{line}\n")
    with pytest.raises(ValueError, match=r"r\.jsonl, line 3: not a line of a batch result file"):
        read_batch(path, Store(tmp_path / "s.sqlite"), "there")


# ---- options -----------------------------------------------------------------------------------------------------


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_model_options(parser, "judge", "what judges")
    return parser.parse_args(arguments)


def test_options_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    args = parsed()
    assert args.judge is None and sampling_of(args, "judge") == Sampling()
    model = language_model_of(args, "judge")
    assert model.price is None and model.endpoint.url == "http://127.0.0.1:9/v1"
    assert (model.endpoint.concurrency, model.endpoint.timeout, model.endpoint.key_variable) == (
        32,
        60.0,
        "OPENAI_API_KEY",
    )


def test_options_given() -> None:
    words = "--judge big --judge-base-url http://127.0.0.1:8/v1 --judge-key-variable OTHER --judge-concurrency 3"
    more = "--judge-rpm 10 --judge-tpm 2e5 --judge-timeout 7 --judge-price 0.15,0.60 --judge-temperature none"
    args = parsed(*words.split(), *more.split(), "--judge-top-p", "0.9", "--judge-max-tokens", "99")
    assert args.judge == "big"
    assert sampling_of(args, "judge") == Sampling(temperature=None, top_p=0.9, max_tokens=99)
    model = language_model_of(args, "judge")
    assert model.price == Price(0.15, 0.60) and model.endpoint.key_variable == "OTHER"
    assert model.endpoint.url == "http://127.0.0.1:8/v1" and model.endpoint.concurrency == 3
    assert (model.endpoint.requests_per_minute, model.endpoint.tokens_per_minute) == (10, 2e5)
    assert model.endpoint.timeout == 7


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("price", "0.15", "expected two numbers"),
        ("price", "1,2,3", "expected two numbers"),
        ("price", "a,b", "expected two numbers"),
        ("price", "-1,2", "must not be negative"),
        ("price", "nan,2", "must not be negative"),
        ("temperature", "hot", "expected a number or none"),
        ("max-tokens", "1.5", "invalid int"),
        ("base-url", "", "shell variable"),
    ],
)
def test_bad_options(name: str, value: str, told: str) -> None:
    with pytest.raises(argparse.ArgumentError, match=told):
        parsed(f"--judge-{name}={value}")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("temperature", "nan", "temperature"),
        ("top-p", "0", "top_p"),
        ("max-tokens", "0", "max_tokens"),
        ("concurrency", "0", "concurrency"),
        ("rpm", "-1", "requests_per_minute"),
        ("tpm", "nan", "tokens_per_minute"),
        ("timeout", "0", "timeout"),
    ],
)
def test_numbers_out_of_range_are_named(name: str, value: str, told: str) -> None:
    args = parsed(f"--judge-{name}={value}")
    of_sampling = name in ("temperature", "top-p", "max-tokens")
    with pytest.raises(ValueError, match=told):
        (sampling_of if of_sampling else language_model_of)(args, "judge")
