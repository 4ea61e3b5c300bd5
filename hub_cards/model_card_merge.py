"""Putting results into a model card without touching anything else in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from huggingface_hub import EvalResult
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

_KEY = "model-index"
_BYTE_ORDER_MARK = "\ufeff"


def merged(card: str, model: str, entries: Sequence[EvalResult]) -> str:
    """The card with the entries in its model-index.

    Results of the same task, subset, variant and split are replaced, other results stay. Outside the replaced results
    no character changes; the model-index is written anew as a whole only where it is not in YAML's block style.

    Args:
        card: text of a model card, with or without a YAML header.
        model: name for the model-index, if the card has none.
        entries: at least one.

    Raises:
        ValueError: if the header or its model-index cannot be understood.
    """
    mark = _BYTE_ORDER_MARK if card.startswith(_BYTE_ORDER_MARK) else ""
    card = card.removeprefix(_BYTE_ORDER_MARK)
    ours: list[dict[str, Any]] = eval_results_to_model_index(model, list(entries))[0]["results"]
    found = REGEX_YAML_BLOCK.search(card)
    if found is None:
        return f"{mark}---\n{_dump({_KEY: [{'name': model, 'results': ours}]})}---\n{card}"
    header = found.group(2)
    end = "\r\n" if "\r\n" in found.group(1) else "\n"
    changed = _merged_header(header.replace("\r\n", "\n"), model, ours).removesuffix("\n")
    return mark + card[: found.start(2)] + changed.replace("\n", end) + card[found.end(2) :]


def _merged_header(header: str, model: str, ours: list[dict[str, Any]]) -> str:
    before = _parsed(header)
    text = header if not header or header.endswith("\n") else header + "\n"
    if before.get(_KEY) is None:
        block = _dump({_KEY: [{"name": model, "results": ours}]})
        if _KEY not in before:
            return text + block
        return _with_block(text, block)
    index = _entry_index(before[_KEY], model)
    wanted = _merged_index(before[_KEY], index, ours)
    edited = _edited_in_place(text, index, ours)
    after = before | {_KEY: wanted}
    if edited is not None and _reads_as(edited, after):
        return edited
    edited = _with_block(text, _dump({_KEY: wanted}))
    if not _reads_as(edited, after):
        raise ValueError(
            f"the card's {_KEY} cannot be changed without changing other keys; put it on lines of its own, without "
            "anchors"
        )
    return edited


def _parsed(header: str) -> dict[str, Any]:
    try:
        data = yaml.safe_load(header) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"the card's YAML header cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"the card's YAML header must be a mapping of keys to values, got {type(data).__name__}")
    index = data.get(_KEY)
    if index is None:
        return data
    try:
        model_index_to_eval_results(index)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"the card's {_KEY} does not follow the format ({type(error).__name__}: {error}); correct or remove it"
        ) from error
    return data


def _entry_index(entries: Sequence[Mapping[str, Any]], model: str) -> int:
    """Which entry of the model-index is this model's: the one of its name, or the only one, whatever its name."""
    names = [entry["name"] for entry in entries]
    if len(names) == 1:
        return 0
    fitting = [i for i, name in enumerate(names) if name in (model, model.split("/")[-1])]
    if len(fitting) != 1:
        raise ValueError(f"the card's {_KEY} has entries for {', '.join(map(str, names))}, none or several for {model}")
    return fitting[0]


def _identity(result: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a later result of the same task, subset, variant and split has in common; the name tells the first three."""
    return result["dataset"]["name"], result["dataset"].get("split")


def _merged_index(entries: Sequence[Mapping[str, Any]], index: int, ours: list[dict[str, Any]]) -> list[dict[str, Any]]:
    replaced = {_identity(result) for result in ours}
    kept = [result for result in entries[index]["results"] if _identity(result) not in replaced]
    return [{**e, "results": [*kept, *ours]} if i == index else dict(e) for i, e in enumerate(entries)]


def _reads_as(header: str, wanted: Mapping[str, Any]) -> bool:
    try:
        # A card's header ends before its last line break, which matters to block text.
        found = yaml.safe_load(header.removesuffix("\n"))
    except yaml.YAMLError:
        return False
    # As text, so that a value that is no number equals itself.
    return repr(found) == repr(dict(wanted))


# ---- editing text ------------------------------------------------------------------------------------------------


def _dump(data: Any) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=math.inf))


def _last_line(node: yaml.Node) -> int:
    """The last line that a node's values stand on; PyYAML counts the comments behind a block as part of it."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        leaves = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode) and not node.flow_style:
        leaves = list(node.value)
    else:
        leaves = []
    if leaves:
        return max(map(_last_line, leaves))
    mark = node.end_mark
    return int(mark.line - 1 if mark.column == 0 and mark.line > node.start_mark.line else mark.line)


def _value_of(node: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            if key_node.value == key:
                return key_node, value
    raise KeyError(key)


def _with_block(header: str, block: str) -> str:
    """The header with the lines of its model-index replaced."""
    key, value = _value_of(yaml.compose(header), _KEY)
    lines = header.splitlines(keepends=True)
    return "".join([*lines[: key.start_mark.line], block, *lines[_last_line(value) + 1 :]])


def _edited_in_place(header: str, index: int, ours: list[dict[str, Any]]) -> str | None:
    """The header with our results replaced line by line, or ``None`` where they are not in block style."""
    _, value = _value_of(yaml.compose(header), _KEY)
    _, results = _value_of(value.value[index], "results")
    if not isinstance(results, yaml.SequenceNode) or results.flow_style or not results.value:
        return None
    lines = header.splitlines(keepends=True)
    indents = {_dash(lines[item.start_mark.line], item.start_mark.column) for item in results.value}
    if len(indents) != 1 or None in indents:
        return None
    replaced = {_identity(result) for result in ours}
    gone: set[int] = set()
    for item in results.value:
        if _identity(yaml.safe_load(yaml.serialize(item))) in replaced:
            gone |= set(range(item.start_mark.line, _last_line(item) + 1))
    at = _last_line(results) + 1
    indent = indents.pop() or ""
    added = "".join(indent + line for line in _dump(ours).splitlines(keepends=True))
    kept = [line for i, line in enumerate(lines[:at]) if i not in gone]
    return "".join([*kept, added, *lines[at:]])


def _dash(line: str, column: int) -> str | None:
    """The blanks before the dash of a sequence's item that begins at a column; ``None`` if the dash is elsewhere."""
    before = line[:column]
    return before.split("-")[0] if before.strip() == "-" else None
