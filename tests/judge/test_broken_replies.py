"""Replies and bodies that nobody foresaw: they give a score, or a reason why not, and never another error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.judge import Endpoint
from evaluators.judge.client import Client
from evaluators.judge.grading import read_grade
from evaluators.judge.reply import MalformedReplyError, UnreadableReplyError, read_reply


def integer(text: str) -> int:
    return read_grade(read_reply({"choices": [{"message": {"content": text}}]}), (0, 3), 5, 10).integer


@pytest.mark.parametrize(
    "text",
    [
        '{score: 2, "inner": {"score": 1}}',
        "{'score': 2, 'inner': {\"score\": 1}}",
        '{\u201cscore\u201d: 2, "inner": {"score": 1}}',
        '{ // note\n "score": 2, "inner": {"score": 1}}',
        '{reason: "a } b", inner: {"score": 1}}',
        '{"inner": {"score": 1}, "score": 2,}',
        '{"score": 1}\n{"score": 2, "rea',
        '{"score": 1}\n{score: 2}',
        '[{"score": 1}, {"score": 2',
        '{"score": 1, "reason": "first"}\nNo: {\n  "score": ',
    ],
)
def test_a_broken_verdict_leaves_no_other(text: str) -> None:
    with pytest.raises(UnreadableReplyError, match="no complete JSON object with a score"):
        integer(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 2, "reason": "first line\nsecond\tline"}',
        'The fields {score} and {reason, if any}: {"score": 2}',
        'With $x_{1}$ it is {"score": 2}',
        '{"score": 2} as in {reason} or {',
        '{"score": 2, "reason": "} { \\" {score: 1"}',
    ],
)
def test_what_surrounds_a_verdict_does_not_spoil_it(text: str) -> None:
    assert integer(text) == 2


@given(score=st.integers(0, 3), reason=st.text(max_size=60), cut=st.floats(0, 1, exclude_max=True))
def test_a_verdict_cut_off_anywhere_is_none(score: int, reason: str, cut: float) -> None:
    inner = {"score": 3 - score, "reason": reason}
    text = json.dumps({"reason": reason, "draft": inner, "score": score, "more": [inner]})
    assert integer(text) == score
    with pytest.raises(UnreadableReplyError):
        integer(text[: int(cut * len(text))])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
TOKENS = st.lists(
    st.fixed_dictionaries(
        {
            "token": JSON | st.sampled_from(['{"score": ', "1", "}"]),
            "top_logprobs": JSON | st.lists(st.fixed_dictionaries({"token": JSON, "logprob": JSON}), max_size=2),
        }
    ),
    max_size=3,
)
CHOICE = st.fixed_dictionaries(
    {"message": JSON | st.fixed_dictionaries({"content": JSON | st.just('{"score": 1}')}, optional={"refusal": JSON})},
    optional={"logprobs": JSON | st.fixed_dictionaries({"content": TOKENS}), "finish_reason": JSON},
)
BODY = JSON | st.fixed_dictionaries({"choices": JSON | st.lists(CHOICE, max_size=2)}, optional={"usage": JSON})


@given(BODY)
def test_any_body_is_read_or_refused(body: Any) -> None:
    try:
        reply = read_reply(body)
    except MalformedReplyError:
        return
    try:
        grade = read_grade(reply, (0, 3), 5, 10)
    except UnreadableReplyError:
        return
    assert reply.text == '{"score": 1}' and grade.integer == 1 and 0 <= grade.score <= 3


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"choices": ' + b"9" * 5000 + b"}", b"\xff\xfe", b"", b"null"])
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with pytest.raises(MalformedReplyError):
        Client(Endpoint("http://127.0.0.1:1/v1"))._read(body, {})
