"""Prompt files: the version, the form of a file, and data that try to leave their place."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.judge import read_prompt
from ifir_tasks.instfol import RUBRICS

FIELDS = ("instruction", "passage")
FILES = sorted(RUBRICS.glob("*.txt"))
PIECES = st.sampled_from(
    ["<", "/", ">", " ", "\n", "passage", "PASSAGE", "instruction", "{passage}", "&lt;", "x", "\\1"]
)


@given(st.sampled_from(FILES), st.lists(PIECES, max_size=12).map("".join), st.lists(PIECES, max_size=12).map("".join))
def test_the_tags_are_the_template_s_own(file: Path, passage: str, instruction: str) -> None:
    prompt = read_prompt(file, FIELDS)
    filled = "\n".join(m["content"] for m in prompt.messages(passage=passage, instruction=instruction))
    for name in FIELDS:
        tag = re.compile(rf"<\s*/?\s*{name}\s*>", re.IGNORECASE)
        assert len(tag.findall(filled)) == len(tag.findall(f"{prompt.system}\n{prompt.user}"))
    # Each value stands there once, unchanged but for the escaped brackets; its own fields are not filled.
    inside = filled.split("<passage>\n")[1].split("\n</passage>")[0]
    assert inside.replace("&lt;", "<") == passage.replace("&lt;", "<")


def test_the_version_changes_with_every_word() -> None:
    prompt = read_prompt(FILES[0], FIELDS)
    versions = {prompt.version}
    words = [(part, m) for part in ("system", "user") for m in re.finditer(r"\S+", getattr(prompt, part))]
    for part, word in words:
        text = getattr(prompt, part)
        versions.add(replace(prompt, **{part: text[: word.start()] + "Zq" + text[word.end() :]}).version)
    versions |= {replace(prompt, header={"scale": "0-9"}).version, replace(prompt, header={}).version}
    assert len(versions) == len(words) + 3
    assert read_prompt(FILES[0], FIELDS).version == prompt.version and re.fullmatch("[0-9a-f]{8}", prompt.version)


def test_the_form_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_bytes(b"\xef\xbb\xbfscale: -1 - 3\r\nnote: a: b\r\n--- \r\n---\r\n\r\n{passage} {x y} {}\r\n")
    prompt = read_prompt(path, ["passage"])
    assert (prompt.name, prompt.scale, prompt.header["note"], prompt.system) == ("some", (-1, 3), "a: b", "")
    assert prompt.messages(passage="p") == ({"role": "user", "content": "p {x y} {}"},)
    path.write_text("---\ns\n---\nu\n---\nmore")
    with pytest.raises(ValueError, match=r"some\.txt.*found 4 part"):
        read_prompt(path, [])
    with pytest.raises(FileNotFoundError, match=r"none\.txt"):
        read_prompt(tmp_path / "none.txt", [])
    path.write_text("---\ns\n---\nu")
    assert read_prompt(path, []).scale is None
