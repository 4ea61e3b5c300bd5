"""Reading a score from a judge's reply: weights by hand, tokens that do not fit, and nested scores."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_model_replies import score_distribution
from language_model_server import LanguageModelServer

from evaluators.judge import Endpoint, LanguageModel, Request, Store
from evaluators.judge.grading import Grade, read_grade
from evaluators.judge.reply import UnreadableReplyError, read_reply
from evaluators.judge.request import Sampling

pytest_plugins = ["judge_fixtures"]


def grade(text: str, tokens: list[tuple[str, dict[str, float]]] | None = None) -> Grade:
    """The grade on 0..3 of a reply with these tokens and the probabilities at each."""
    content = [
        {"token": t, "top_logprobs": [{"token": k, "logprob": math.log(p)} for k, p in top.items()]}
        for t, top in tokens or []
    ]
    body = {"choices": [{"message": {"content": text}, "logprobs": {"content": content}}]}
    return read_grade(read_reply(body), (0, 3), 5, 10)


@pytest.mark.parametrize(
    ("score", "weighted"), [(0, 0.42 / 0.94), (1, 0.82 / 0.94), (2, 1.76 / 0.94), (3, 2.40 / 0.94)]
)
def test_weighted_scores_by_hand(server: LanguageModelServer, tmp_path: Path, score: int, weighted: float) -> None:
    server.scorer = lambda messages: {"reason": "Of 7, 5.", "score": score}
    asking = LanguageModel(
        Endpoint(server.url, api_key="sk-test-0123456789"), Store(tmp_path / "s.sqlite"), progress=False
    )
    request = Request("m", ({"role": "user", "content": "?"},), Sampling(top_logprobs=10))
    (outcome,) = asking.ask([request])
    assert outcome.reply is not None
    found = read_grade(outcome.reply, (0, 3), 5, 10)
    assert (found.integer, found.score) == (score, pytest.approx(weighted))
    assert found.paper_score == pytest.approx(weighted)


def test_the_likeliest_count_whatever_their_order() -> None:
    # The two likeliest of three are 3 and 0, which the server lists last: (3 x .5 + 0 x .3) / .8
    body = {
        "choices": [
            {
                "message": {"content": '{"score":3}'},
                "logprobs": {
                    "content": [
                        {"token": '{"score":', "top_logprobs": []},
                        {
                            "token": "3",
                            "top_logprobs": [
                                {"token": k, "logprob": math.log(p)} for k, p in (("1", 0.2), ("0", 0.3), ("3", 0.5))
                            ],
                        },
                        {"token": "}", "top_logprobs": []},
                    ]
                },
            }
        ]
    }
    found = read_grade(read_reply(body), (0, 3), 2, 3)
    assert found.weighted == pytest.approx(1.5 / 0.8) and found.paper_weighted == pytest.approx(1.7)


@pytest.mark.parametrize(
    "tokens",
    [
        [('{"score":', {}), ("3", score_distribution("3")), ("}", {})],  # of another text
        [("x", {}), ('{"score":', {}), ("2", score_distribution("2"))],
        [("2", score_distribution("2"))],
        [('{"score":', {}), ("2}", score_distribution("2"))],  # joined with its neighbour
        [('{"score":', {}), ("2", {"two": 0.9}), ("}", {})],  # no number among the likeliest
        [],
    ],
)
def test_tokens_that_do_not_tell_leave_the_whole_number(tokens: list[tuple[str, dict[str, float]]]) -> None:
    found = grade('{"score":2}', tokens)
    assert (found.integer, found.weighted, found.score) == (2, None, 2.0)


@pytest.mark.parametrize(
    "logprobs",
    [
        [],
        {},
        {"content": {}},
        {"content": [1]},
        {"content": [{"token": "2"}]},
        {"tokens": ["2"], "token_logprobs": [0]},
    ],
)
def test_log_probabilities_of_another_form_leave_the_whole_number(logprobs: Any) -> None:
    body = {"choices": [{"message": {"content": '{"score": 2}'}, "logprobs": logprobs}]}
    found = read_grade(read_reply(body), (0, 3), 5, 10)
    assert (found.integer, found.weighted) == (2, None)


def test_a_score_inside_the_verdict_is_not_the_verdict_s() -> None:
    text = '{"parts": {"score": 3}, "score": 1}'
    assert grade(text).integer == 1
    tokens = [('{"parts": {"score": ', {}), ("3", {"3": 0.9}), ('}, "score": ', {}), ("1", {"1": 0.9}), ("}", {})]
    assert grade(text, tokens).weighted == pytest.approx(1)
    with pytest.raises(UnreadableReplyError, match="no complete JSON object with a score"):
        grade('{"verdict": {"score": 3}}')


@pytest.mark.parametrize(
    "text",
    [
        '{"verdict": {"score": 1, "reason": "r"}, "sco',
        '{"reason": "it says {\\"score\\": 3}", "sco',
        '{"verdict": {"score": 1},',
        '{\n "verdict": {"score": 1}',
        '{"a": [{"score": 1}, ',
        '[{"score": 4}]',
        '{"score": NaN}',
        '{"score": Infinity}',
        '{"score": 1e400}',
        '{"score": -0.5}',
        '{"score": "\u0662"}',
        '{"score": ""}',
        '{"score": "1.5"}',
        "{" * 5000,
    ],
)
def test_no_score_is_made_up(text: str) -> None:
    with pytest.raises(UnreadableReplyError):
        grade(text)


@given(
    st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=5), st.lists(st.integers(0, 3)))
)
def test_only_whole_numbers_of_the_scale_are_scores(value: Any) -> None:
    text = value.strip() if isinstance(value, str) else ""
    good = (
        text
        in {f"{sign}{zeros}{n}" for n in range(4) for zeros in ("", "0", "00", "000", "0000") for sign in ("", "-")}
        if isinstance(value, str)
        else not isinstance(value, bool) and isinstance(value, int | float) and value in (0, 1, 2, 3)
    )
    if not good:
        with pytest.raises(UnreadableReplyError):
            grade(json.dumps({"score": value}))
    elif not text:
        assert grade(json.dumps({"score": value})).integer == value
