"""How the test server misbehaves: the faults by name, and the rules that choose one for a request."""

from __future__ import annotations

import email.utils
import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from language_model_replies import Answer, Body, Verdict, answer, fingerprint, score_tokens

# (number of the request from 0, its body) -> name of a fault, or None for a good reply
Faults = Callable[[int, Body], str | None]

# -- chosen by --------------------------------------------------------------------------------------------------------


def no_faults(number: int, body: Body) -> None:
    """Every request gets a good reply."""


def always(name: str) -> Faults:
    """Every request gets this fault."""
    return lambda number, body: name


def in_turn(*names: str | None) -> Faults:
    """The first request that comes gets the first of these, and so on; later ones get good replies."""
    return lambda number, body: names[number] if number < len(names) else None


def on_attempts(*names: str | None) -> Faults:
    """Like ``in_turn``, but counted for each body by itself: how a body fares at its first attempt, its second, ..."""
    attempts: Counter[str] = Counter()

    def choose(number: int, body: Body) -> str | None:
        key = fingerprint(body)
        attempts[key] += 1
        return names[attempts[key] - 1] if attempts[key] <= len(names) else None

    return choose


def at_random(rates: Mapping[str, float], seed: int = 0) -> Faults:
    """Each fault with its probability; drawn from (seed, body, attempt), so that the order of arrival is no matter."""
    if min(rates.values(), default=0) < 0 or sum(rates.values()) > 1 + 1e-9:
        raise ValueError(f"the rates of faults {dict(rates)} must not be negative and sum to 1 at most")
    attempts: Counter[str] = Counter()
    names = [*rates, None]
    weights = [*rates.values(), max(0.0, 1 - sum(rates.values()))]

    def choose(number: int, body: Body) -> str | None:
        key = fingerprint(body)
        attempts[key] += 1
        return random.Random(f"{seed}-{key}-{attempts[key]}").choices(names, weights)[0]

    return choose


# -- errors: instead of a reply ---------------------------------------------------------------------------------------


def error_body(message: str, kind: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """The shape of OpenAI's errors."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


_LIMIT = (429, error_body("Rate limit reached for requests per min.", "requests", code="rate_limit_exceeded"))
_INVALID = "invalid_request_error"
_UNSUPPORTED = "unsupported_parameter"
_ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "rate_limited": _LIMIT,
    "rate_limited_seconds": _LIMIT,
    "rate_limited_date": _LIMIT,
    "quota_exceeded": (
        429,
        error_body("You exceeded your current quota.", "insufficient_quota", code="insufficient_quota"),
    ),
    "server_error": (500, error_body("The server had an error processing your request.", "server_error")),
    "overloaded": (503, error_body("The engine is currently overloaded.", "server_error")),
    "unauthorized": (401, error_body("Incorrect API key provided: {key}.", _INVALID, code="invalid_api_key")),
    "logprobs_refused": (
        400,
        error_body("'logprobs' is not supported with this model.", _INVALID, "logprobs", _UNSUPPORTED),
    ),
    "max_tokens_refused": (
        400,
        error_body(
            "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            _INVALID,
            "max_tokens",
            _UNSUPPORTED,
        ),
    ),
    "context_exceeded": (
        400,
        error_body("The context length is exceeded.", _INVALID, "messages", "context_length_exceeded"),
    ),
}
_REFUSED = {"logprobs_refused": "logprobs", "max_tokens_refused": "max_tokens"}


def applies(name: str, body: Body) -> bool:
    """A parameter is refused only where it was sent; every other fault applies to any request."""
    return name not in _REFUSED or bool(body.get(_REFUSED[name]))


def error_reply(name: str, api_key: str, retry_after: float) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and further headers of an error; `retry_after` is in seconds."""
    status, body = _ERRORS[name]
    headers = {}
    if name == "rate_limited_seconds":
        headers["Retry-After"] = f"{retry_after:g}"
    if name == "rate_limited_date":
        # The form knows whole seconds only: round up, or a client that obeys would come too early.
        headers["Retry-After"] = email.utils.formatdate(math.ceil(time.time() + retry_after), usegmt=True)
    if name == "unauthorized":
        text = body["error"]["message"].format(key=api_key)
        body = {"error": {**body["error"], "message": text}}
    return status, body, headers


# -- texts: what the model says ---------------------------------------------------------------------------------------


def _plain(verdict: Verdict) -> Answer:
    return answer(json.dumps(verdict))


def _with_score(value: Any) -> Callable[[Verdict], Answer]:
    return lambda verdict: _plain({**verdict, "score": value})


def _other(verdict: Verdict) -> Verdict:
    """A verdict with another score on the scale 0..1 or more: the neighbour below, or 1 for 0."""
    score = int(verdict["score"])
    return {**verdict, "score": score - 1 if score else 1, "reason": "A first thought."}


def _duplicate_score(verdict: Verdict) -> Answer:
    return answer(f'{{"score": {_other(verdict)["score"]}, {json.dumps(verdict)[1:]}')


def _cut_before_score(verdict: Verdict) -> Answer:
    text = json.dumps(verdict)
    return answer(text[: text.index('"score"') + len('"sco')], finish_reason="length")


def _cut_after_score(verdict: Verdict) -> Answer:
    return answer(json.dumps(verdict).rstrip('"}'), finish_reason="length")


def _rejoined(verdict: Verdict, separator: str, first: int, last: int, pieces: Callable[[str], list[str]]) -> Answer:
    """The same text with the tokens first..last around the score (0 is the score's own) cut anew."""
    usual = answer(json.dumps(verdict, separators=(", ", separator)))
    at = score_tokens(usual)[0]
    around = "".join(usual.tokens[at + first : at + last + 1])
    return answer(usual.text, [*usual.tokens[: at + first], *pieces(around), *usual.tokens[at + last + 1 :]])


_TEXTS: dict[str, Callable[[Verdict], Answer]] = {
    "cut_before_score": _cut_before_score,
    "cut_after_score": _cut_after_score,
    "text_around": lambda v: answer(f"Verdict 1 of 1 follows.\n\n{json.dumps(v)}\n\nI hope that these 3 lines help."),
    "code_fence": lambda v: answer(f"```json\n{json.dumps(v, indent=2)}\n```"),
    "prose_only": lambda v: answer("Such a passage would get 2 of 3 points."),
    "score_joined_before": lambda v: _rejoined(v, ":", -1, 0, lambda t: [t[:1], t[1:]]),
    "score_joined_after": lambda v: _rejoined(v, ": ", 0, 1, lambda t: [t]),
    "score_leading_blank": lambda v: _rejoined(v, ": ", -1, 0, lambda t: [t]),
    "score_split": lambda v: _rejoined({**v, "score": 10}, ": ", 0, 0, list),
    "score_seven": _with_score(7),
    "score_negative": _with_score(-1),
    "score_fraction": _with_score(1.5),
    "score_null": _with_score(None),
    "score_word": _with_score("two"),
    "score_true": _with_score(True),
    "score_quoted": lambda v: _plain({**v, "score": str(v["score"])}),
    "score_missing": lambda v: _plain({k: value for k, value in v.items() if k != "score"}),
    "duplicate_score": _duplicate_score,
    "two_objects": lambda v: answer(f"{json.dumps(_other(v))}\n{json.dumps(v)}"),
}


def spoken(name: str | None, verdict: Verdict | str) -> Answer:
    """The model's text under a fault (None, or one that leaves the text alone: as it should be)."""
    if isinstance(verdict, str):
        if name in _TEXTS:
            raise ValueError(f"the fault {name!r} changes a verdict, but the scorer gave text: return a dict there")
        return answer(verdict)
    return _TEXTS.get(name or "", _plain)(verdict)


# -- wrappings: what surrounds the text -------------------------------------------------------------------------------


def _no_choices(reply: dict[str, Any]) -> None:
    reply["choices"] = []


def _no_logprobs(reply: dict[str, Any]) -> None:
    reply["choices"][0]["logprobs"] = None


def _null_logprobs(reply: dict[str, Any]) -> None:
    reply["choices"][0]["logprobs"] = {"content": None, "refusal": None}


def _without_text(finish_reason: str, content: str | None = None, refusal: str | None = None) -> Callable[[Body], None]:
    def change(reply: dict[str, Any]) -> None:
        _no_logprobs(reply)
        choice = reply["choices"][0]
        choice["message"] |= {"content": content, "refusal": refusal}
        choice["finish_reason"] = finish_reason

    return change


_WRAPPINGS: dict[str, Callable[[dict[str, Any]], None]] = {
    "no_choices": _no_choices,
    "no_logprobs": _no_logprobs,
    "null_logprobs": _null_logprobs,
    "null_content": _without_text("stop"),
    "empty_content": _without_text("stop", content=""),
    "refusal": _without_text("stop", refusal="I cannot help with that."),
    "content_filter": _without_text("content_filter"),
}


def wrap(name: str | None, reply: dict[str, Any]) -> None:
    """Change a completion in place under a fault of its wrapping; any other leaves it alone."""
    if name in _WRAPPINGS:
        _WRAPPINGS[name](reply)


# -- names ------------------------------------------------------------------------------------------------------------

ERRORS: Sequence[str] = tuple(_ERRORS)
TEXTS: Sequence[str] = tuple(_TEXTS)
WRAPPINGS: Sequence[str] = tuple(_WRAPPINGS)
# What the connection does to a reply that is otherwise good; the server carries these out.
DELIVERIES: Sequence[str] = (
    "never_answers",
    "dropped_before",
    "dropped_in_body",
    "connection_reset",
    "truncated_json",
    "html_page",
    "late",
    "trickling",
)
ALL_FAULTS: Sequence[str] = (*ERRORS, *TEXTS, *WRAPPINGS, *DELIVERIES)


def checked(name: str | None) -> str | None:
    """The name itself; ValueError for one that is no fault's."""
    if name is not None and name not in ALL_FAULTS:
        raise ValueError(f"there is no fault {name!r}; choose one of {', '.join(ALL_FAULTS)}")
    return name
