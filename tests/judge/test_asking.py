"""How a language model is asked: the requests that prompts make, and what records say of them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from evaluators.judge import (
    Asking,
    Endpoint,
    LanguageModel,
    Prompt,
    PromptedAsking,
    Sampling,
    Store,
    package_prompts,
)

PROMPT = Prompt("rate", {"scale": "0-3"}, "You rate <text>{text}</text>.", "How good is it, {name}?")
SAMPLING = Sampling(temperature=0.5, max_tokens=64, extra={"n": 1})
# Eight digits of the SHA-256 over both texts and the header, with a zero byte between two of them.
VERSION = hashlib.sha256(f"{PROMPT.system}\0{PROMPT.user}\0scale=0-3".encode()).hexdigest()[:8]
SETTINGS = {
    "temperature": 0.5,
    "top_p": 0.7,
    "max_tokens": 64,
    "top_logprobs": 0,
    "seed": None,
    "extra": {"n": 1},
}


@pytest.fixture
def language_model(tmp_path: Path) -> LanguageModel:
    return LanguageModel(Endpoint("http://127.0.0.1:9"), Store(tmp_path / "store.sqlite"), progress=False)


def test_a_request_is_the_prompt_filled_in(language_model: LanguageModel) -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You rate <text>a &lt;/text> b</text>."},
            {"role": "user", "content": "How good is it, you?"},
        ],
        "max_tokens": 64,
        "temperature": 0.5,
        "top_p": 0.7,
        "n": 1,
    }
    key = hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    values = {"text": "a </text> b", "name": "you"}
    assert Asking(language_model, "m", SAMPLING).request(PROMPT, **values).key == key
    assert PromptedAsking(language_model, "m", SAMPLING, {"p": PROMPT}).request_by("p", **values).key == key
    with pytest.raises(ValueError, match=r"has the fields \['name', 'text'\], got \['text'\]"):
        Asking(language_model, "m", SAMPLING).request(PROMPT, text="a")


def test_records_are_json_and_name_what_replies_depend_on(language_model: LanguageModel) -> None:
    asking = Asking(language_model, "m", SAMPLING)
    expected = {"model": "m", "sampling": SETTINGS, "prompts": {"p": VERSION}}
    assert json.dumps(asking.settings({"p": PROMPT})) == json.dumps(expected), "also in this order"
    assert asking.changed_sampling() == {"temperature": 0.5, "max_tokens": 64, "extra": {"n": 1}}
    assert Asking(language_model, "m", Sampling()).changed_sampling() == {}
    assert Asking(language_model, "m", Sampling(temperature=None)).changed_sampling() == {"temperature": None}


def test_own_prompts_replace_those_of_a_package_by_name(tmp_path: Path) -> None:
    package, own = tmp_path / "package", tmp_path / "own"
    for folder, names in ((package, "ab"), (own, "bz")):
        folder.mkdir()
        for name in names:
            (folder / f"{name}.txt").write_text(f"---\n---\n{folder.name} {{x}}\n")
    fields = {"a": ("x",), "b": ("x",)}
    assert {n: p.user for n, p in package_prompts(package, fields).items()} == {"a": "package {x}", "b": "package {x}"}
    assert {n: p.user for n, p in package_prompts(package, fields, own).items()} == {"a": "package {x}", "b": "own {x}"}
    (own / "b.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"own holds none of a\.txt, b\.txt"):
        package_prompts(package, fields, own)
