"""Merging into a card's YAML header, whatever shape it has."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from huggingface_hub import EvalResult, ModelCard
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from hypothesis import given, settings
from hypothesis import strategies as st

from hub_cards.model_card_merge import card_notes, merged

BODY = "\n# Title\n\ntext --- with: colons\n---\nnot a header\n"


def entry(name: str, value: float, metric: str = "recall_at_1") -> EvalResult:
    return EvalResult(
        task_type="text-retrieval",
        dataset_type="x/y",
        dataset_name=name,
        dataset_config=name,
        dataset_split="test",
        metric_type=metric,
        metric_value=value,
    )


def index_of(card: str) -> Any:
    found = REGEX_YAML_BLOCK.search(card.removeprefix("\ufeff"))
    assert found is not None
    return yaml.safe_load(found.group(2))["model-index"]


def values_of(card: str) -> dict[str, Any]:
    return {r["dataset"]["name"]: r["metrics"][0]["value"] for r in index_of(card)[0]["results"]}


OTHER = {"task": {"type": "t"}, "dataset": {"type": "d", "name": "other"}, "metrics": [{"type": "m", "value": 7}]}
OURS = {
    "task": {"type": "t"},
    "dataset": {"type": "d", "name": "A", "split": "test"},
    "metrics": [{"type": "recall_at_1", "value": 0.1}],
}
FLOW = yaml.safe_dump([{"name": "m", "results": [OTHER, OURS]}], default_flow_style=True, width=9999)
BLOCK = yaml.safe_dump({"model-index": [{"name": "m", "results": [OURS, OTHER]}]})
WIDE = """---
model-index:
    -   name: m
        results:
            -   task: {type: t}
                dataset:
                    type: d
                    name: other
                metrics:
                    -   type: m
                        value: 7
                        # c
# d
x: |
  a
---
"""
NAME_LAST = """---
model-index:
- results:
  - task: {type: t}
    dataset: {type: d, name: A, split: test}
    metrics: [{type: recall_at_1, value: 0.1}]
  # c
  name: m
license: mit
---
"""


@pytest.mark.parametrize(
    ("card", "wanted"),
    [
        ("", {"A": 0.5}),
        (BODY, {"A": 0.5}),
        (f"---\nlicense: mit\n---\n{BODY}", {"A": 0.5}),
        (f"---\nmodel-index:\nlicense: mit\n---\n{BODY}", {"A": 0.5}),
        (f"---\nmodel-index:\n- name: m\n  results: []\nlicense: mit # c\n---\n{BODY}", {"A": 0.5}),
        (f"---\nmodel-index: {FLOW}license: mit\n---\n{BODY}", {"other": 7, "A": 0.5}),
        (f"---\n{BLOCK}---\n", {"other": 7, "A": 0.5}),
        (WIDE, {"other": 7, "A": 0.5}),
        (NAME_LAST, {"A": 0.5}),
        ("---\nlicense: mit\n...\n---\n", {"A": 0.5}),
    ],
)
def test_headers_of_every_shape(card: str, wanted: dict[str, Any]) -> None:
    new = merged(card, "m", [entry("A", 0.5)])
    assert values_of(new) == wanted
    assert ModelCard(new).data.to_dict().get("license") == ("mit" if "license" in card else None)
    before, after = REGEX_YAML_BLOCK.search(card), REGEX_YAML_BLOCK.search(new)
    assert after is not None
    assert new[after.end() :] == (card if before is None else card[before.end() :])
    for comment in ("# c", "# d"):
        assert (comment in new) == (comment in card)
    assert merged(new, "m", [entry("A", 0.5)]) == new


@pytest.mark.parametrize("name", ["b/m", "m"])
def test_the_entry_of_the_models_name_is_the_models(name: str) -> None:
    card = f"---\nmodel-index:\n- name: {name}\n  results:\n  - {OTHER}\n---\n"
    new = merged(card, "b/m", [entry("A", 0.5)])
    assert [e["name"] for e in index_of(new)] == [name]
    assert values_of(new) == {"other": 7, "A": 0.5}
    assert card_notes(card, "b/m") == []


@pytest.mark.parametrize("style", ["block", "flow"])
def test_what_is_replaced_keeps_its_place(style: str) -> None:
    card = merged("text\n", "b/m", [entry(name, 0.5) for name in "ABC"])
    if style == "flow":
        header = yaml.safe_load(card.split("---")[1])
        card = f"---\n{yaml.safe_dump(header, default_flow_style=True)}---\ntext\n"
    new = merged(card, "b/m", [entry("B", 0.7)])
    assert list(values_of(new).items()) == [("A", 0.5), ("B", 0.7), ("C", 0.5)]
    if style == "block":
        assert new == card.replace("name: B", "name: \0").replace("value: 0.5", "value: 0.7", 2).replace(
            "value: 0.7", "value: 0.5", 1
        ).replace("name: \0", "name: B")


def test_an_entry_of_another_name_is_another_models_and_stays() -> None:
    card = f"---\nmodel-index:\n- name: renamed  # c\n  results:\n  - {OTHER}\n---\n"
    new = merged(card, "b/m", [entry("A", 0.5)])
    assert [(e["name"], len(e["results"])) for e in index_of(new)] == [("renamed", 1), ("b/m", 1)]
    assert new.startswith(card.removesuffix("---\n"))
    assert merged(new, "b/m", [entry("A", 0.5)]) == new
    (note,) = card_notes(card, "b/m")
    assert "is of renamed, so the results of b/m have an entry of their own" in note


def test_of_several_entries_the_one_of_its_name_changes_or_none() -> None:
    card = f"---\nmodel-index:\n- name: first\n  results:\n  - {OTHER}\n- name: m\n  results:\n  - {OTHER}\n---\n"
    new = index_of(merged(card, "b/m", [entry("A", 0.5)]))
    assert [len(e["results"]) for e in new] == [1, 2]
    assert [e["name"] for e in index_of(merged(card, "b/n", [entry("A", 0.5)]))] == ["first", "m", "b/n"]
    with pytest.raises(ValueError, match="entries for m, m, several"):
        merged(card.replace("first", "m"), "b/m", [entry("A", 0.5)])


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("a: [1\n", "cannot be read"),
        ("- a\n", "must be a mapping"),
        ("model-index: []\n", "does not follow the format"),
        ("{model-index: [{name: m, results: []}], license: mit}\n", "without changing other keys"),
        ("{license: mit}\n", "without changing other keys"),
        ("  license: mit\n  tags: [a]\n", "without changing other keys"),
        ("model-index:\nmodel-index:\n", "more than once"),
        ("model-index: 3\n", "does not follow the format"),
        ("model-index:\n- name: m\n  results:\n  - task: {}\n", "does not follow the format"),
    ],
)
def test_a_header_that_is_not_understood_is_refused(header: str, told: str) -> None:
    with pytest.raises(ValueError, match=told) as error:
        merged(f"---\n{header}---\n", "m", [entry("A", 0.5)])
    assert "\n" not in str(error.value)


def test_line_ends_and_byte_order_mark_stay() -> None:
    card = "\ufeff---\r\nlicense: mit\r\n---\r\n\r\nbody\nmixed\r\n"
    new = merged(card, "m", [entry("A", 0.5)])
    assert new.startswith("\ufeff---\r\nlicense: mit\r\nmodel-index:\r\n")
    assert new.endswith("\r\n---\r\n\r\nbody\nmixed\r\n")
    assert values_of(new) == {"A": 0.5}
    assert merged(new, "m", [entry("A", 0.5)]) == new


@pytest.mark.parametrize("header", ["a: 1\r\nb:\n  c: 2\r\n", "a: |+\n  text\n\n", "a: |\n  text\n", "a: >-\n  t\n"])
def test_other_lines_and_values_of_the_header_stay(header: str) -> None:
    card = f"---\n{header}---\nbody"
    new = merged(card, "m", [entry("A", 0.5)])
    assert values_of(new) == {"A": 0.5}
    assert header in new
    assert ModelCard(new).data.to_dict()["a"] == ModelCard(card).data.to_dict()["a"]
    assert merged(new, "m", [entry("A", 0.5)]) == new


def test_what_the_hub_cannot_read_is_told() -> None:
    with pytest.raises(ValueError, match=r"end with \\r alone"):
        merged("---\rlicense: mit\r---\rbody", "m", [entry("A", 0.5)])
    (note,) = card_notes("\ufeff---\nlicense: mit\n---\n", "m")
    assert "byte order mark" in note


names = st.sampled_from(["A", "B", "C ä: #x", "- d", "{e}", "other"])
results = st.dictionaries(names, st.floats(-1, 1), min_size=1)


@settings(max_examples=20, deadline=None)
@given(results, results, st.booleans())
def test_merging_is_a_union_in_which_the_later_wins(
    first: dict[str, float], second: dict[str, float], flow: bool
) -> None:
    first_card = merged(BODY, "m", [entry(name, value) for name, value in first.items()])
    if flow:
        header = yaml.safe_dump({"model-index": index_of(first_card)}, default_flow_style=True)
        first_card = f"---\n{header}---\n{BODY}"
    both = merged(first_card, "m", [entry(name, value) for name, value in second.items()])
    assert values_of(both) == first | second
    assert both.endswith(f"---\n{BODY}")
