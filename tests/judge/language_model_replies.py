"""What the test server's model says: the default verdict, its tokens and their log-probabilities; all deterministic."""

from __future__ import annotations

import hashlib
import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

Body = dict[str, Any]
Messages = list[dict[str, Any]]
Verdict = dict[str, Any]
Scorer = Callable[[Messages], Verdict | str]
# The text of a score's digits -> probability by token, the most likely first, which need not be those digits.
Distribution = Callable[[str], dict[str, float]]

_PLACE = "\0the tokens' log-probabilities\0"
_TOKEN = re.compile(r" ?[^\W\d]+|\d{1,3}| ?[^\w\s]+|\s")
_BEFORE_SCORE = re.compile(r'"score"\s*:\s*"?')
_DIGITS = re.compile(r"(\D*)(\d+)(\D*)", re.DOTALL)


def fingerprint(value: Any) -> str:
    """SHA-256 of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def hash_score(messages: Messages, highest: int = 3) -> Verdict:
    """The default scorer: a score in 0..highest and a reason, both drawn from the hash of the messages.

    The reason holds other digits, so that a reader of the first or last number in the reply is caught.
    """
    digest = fingerprint(messages)
    score = int(digest, 16) % (highest + 1)
    return {"score": score, "reason": f"Of 7 points, verdict {digest[:8]} meets 5."}


def score_distribution(digits: str) -> dict[str, float]:
    """Probabilities at the token that holds a score: by hand, with the five most likely tokens and the scale 0..3.

    score 0: 0 .62, 1 .22, 2 .10, 7 .03, 3 .006 -> (.22 + .20) / .94 = .42 / .94
    score 1: 1 .62, 0 .22, 2 .10, 7 .03, 3 .006 -> (.62 + .20) / .94 = .82 / .94
    score 2: 2 .62, 1 .22, 3 .10, 7 .03, 0 .006 -> (1.24 + .22 + .30) / .94 = 1.76 / .94
    score 3: 3 .62, 2 .22, 1 .10, 7 .03, 0 .006 -> (1.86 + .44 + .10) / .94 = 2.40 / .94
    The fourth is outside the scale and the fifth is under 0.01: whoever keeps either gets another value.
    """
    near = sorted((d for d in "0123" if d != digits), key=lambda d: (abs(int(d) - int(digits)), d))
    outside = "8" if digits == "7" else "7"
    return {digits: 0.62, near[0]: 0.22, near[1]: 0.10, outside: 0.03, near[2]: 0.006, "two": 0.004}


@dataclass(frozen=True)
class Answer:
    """A reply's text and the tokens it is cut into, which joined give the text."""

    text: str
    tokens: tuple[str, ...]
    finish_reason: str = "stop"


def answer(text: str, tokens: Sequence[str] | None = None, finish_reason: str = "stop") -> Answer:
    """A reply with the given tokens, or cut like OpenAI's tokenizers: words, up to three digits, punctuation."""
    return Answer(text, tuple(_TOKEN.findall(text) if tokens is None else tokens), finish_reason)


def within_limit(body: Body, reply: Answer) -> Answer:
    """The reply, cut at the request's token limit if it has one."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or len(reply.tokens)
    if limit >= len(reply.tokens):
        return reply
    return answer("".join(reply.tokens[:limit]), reply.tokens[:limit], "length")


def completion(body: Body, reply: Answer, number: int) -> dict[str, Any]:
    """The chat completion for a valid request; `encode` puts the log-probabilities in, where it asks for them."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": reply.text, "refusal": None, "annotations": []},
        "logprobs": {"content": _PLACE, "refusal": None} if body.get("logprobs") else None,
        "finish_reason": reply.finish_reason,
    }
    prompt_tokens = sum(len(str(m.get("content"))) // 4 + 4 for m in body["messages"])
    return {
        "id": f"chatcmpl-test-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000 + number,
        "model": body["model"],
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": len(reply.tokens),
            "total_tokens": prompt_tokens + len(reply.tokens),
        },
        "system_fingerprint": "fp_test",
    }


def encode(completed: dict[str, Any], body: Body, reply: Answer, distribution: Distribution) -> bytes:
    """The completion as JSON. Tokens are encoded once each: to do so for every reply would take most of its time."""
    text = json.dumps(completed)
    place = json.dumps(_PLACE)
    if place in text:
        scores = score_tokens(reply)
        count = body.get("top_logprobs") or 0
        entries = (_entry(t, count, distribution if i in scores else None) for i, t in enumerate(reply.tokens))
        text = text.replace(place, f"[{', '.join(entries)}]")
    return text.encode()


def score_tokens(reply: Answer) -> list[int]:
    """The positions of the tokens on which the value of a "score" begins."""
    ends = list(accumulate(map(len, reply.tokens)))
    starts = [found.end() for found in _BEFORE_SCORE.finditer(reply.text)]
    return [bisect_right(ends, at) for at in starts if at < len(reply.text)]


@lru_cache(maxsize=16384)
def _entry(token: str, count: int, distribution: Distribution | None) -> str:
    """JSON of a token with its `count` most likely alternatives; what surrounds a score's digits surrounds these."""
    parts = _DIGITS.fullmatch(token)
    if distribution is not None and parts is not None:
        before, digits, after = parts.groups()
        likely = {f"{before}{other}{after}": p for other, p in distribution(digits).items()}
    else:
        likely = {token: 0.97}
    fillers = ((f"~{i}", 0.001 / (i + 1)) for i in range(count))
    top = [*likely.items(), *fillers][:count]
    return json.dumps({**_scored(token, likely.get(token, 0.0)), "top_logprobs": [_scored(*pair) for pair in top]})


def _scored(token: str, probability: float) -> dict[str, Any]:
    """OpenAI writes -9999 for a token outside the most likely twenty."""
    logprob = math.log(probability) if probability else -9999.0
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
