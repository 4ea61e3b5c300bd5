"""Texts of servers and models made valid Unicode, and the places where they enter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_model_server import LanguageModelServer

from evaluators.judge import Endpoint, LanguageModel, Request, Store
from evaluators.judge.grading import read_grade
from evaluators.judge.reply import Reply
from evaluators.whole import read_json, read_json_at, whole_text

# Half of the characters are halves themselves.
TEXTS = st.text(
    st.one_of(st.characters(), st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF, categories=["Cs"]))
)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)


def slowly(text: str) -> str:
    """Character by character: a high half and the low one behind it are one character, any other is U+FFFD."""
    out, at = "", 0
    while at < len(text):
        here, after = ord(text[at]), ord(text[at + 1]) if at + 1 < len(text) else 0
        if 0xD800 <= here < 0xDC00 and 0xDC00 <= after < 0xE000:
            out, at = out + chr(0x10000 + (here - 0xD800) * 0x400 + after - 0xDC00), at + 2
        else:
            out, at = out + ("\ufffd" if 0xD800 <= here < 0xE000 else text[at]), at + 1
    return out


def slowly_all(value: Any) -> Any:
    if isinstance(value, list):
        return [slowly_all(one) for one in value]
    if isinstance(value, dict):
        return {slowly(key): slowly_all(one) for key, one in value.items()}
    return slowly(value) if isinstance(value, str) else value


@given(TEXTS)
def test_halves_of_characters_are_replaced(text: str) -> None:
    found = whole_text(text)
    assert found == slowly(text)
    found.encode()


@given(VALUES, st.booleans())
def test_json_is_read_with_whole_texts(value: Any, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    assert read_json(text) == slowly_all(value)
    assert read_json_at(json.JSONDecoder(), f"x {text}", 2) == (slowly_all(value), len(text) + 2)


@pytest.mark.parametrize("said", ["half \ud83d", "half \udc00 and \ud83d\ude00"])
def test_replies_enter_whole(tmp_path: Path, said: str) -> None:
    asked = Request("m", ({"role": "user", "content": "?"},))
    with LanguageModelServer(scorer=lambda messages: said) as server:
        endpoint = Endpoint(server.url, api_key="k", attempts=1)
        (outcome,) = LanguageModel(endpoint, Store(tmp_path / "s.sqlite"), progress=False).ask([asked])
    assert outcome.reply is not None and outcome.reply.text == slowly(said)
    # One that an earlier version stored as it came.
    store = Store(tmp_path / "earlier.sqlite")
    store.put(asked, asked.body(), json.dumps({"choices": [{"message": {"content": said}}]}), "http://127.0.0.1/v1")
    assert store.reply(asked.key).text == slowly(said)


def test_a_judges_reason_is_whole() -> None:
    said = Reply('{"score": 2, "reason": "half \\ud83d"}', "stop", 0, 0)
    assert read_grade(said, (0, 3), 5, 5).reason == "half \ufffd"
