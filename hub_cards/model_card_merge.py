"""Putting results into a model card without touching anything else in it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from huggingface_hub import EvalResult
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

_KEY = "model-index"
_BYTE_ORDER_MARK = "\ufeff"


def merged(card: str, model: str, entries: Sequence[EvalResult]) -> str:
    """The card with the entries in its model-index.

    They stand in the model-index's entry of the model's name, or else in a new one. Results of the same task, subset,
    variant and split are replaced there, other results stay. Outside the replaced results no character changes; the
    model-index is written anew as a whole only where it is not in YAML's block style.

    Args:
        card: text of a model card, with or without a YAML header.
        model: its name, with or without the organisation.
        entries: at least one.

    Raises:
        ValueError: if the header or its model-index cannot be understood, or the header would not read back as meant.
    """
    mark = _BYTE_ORDER_MARK if card.startswith(_BYTE_ORDER_MARK) else ""
    card = card.removeprefix(_BYTE_ORDER_MARK)
    if "\r" in card and "\n" not in card:
        raise ValueError("its lines end with \\r alone, which the hub does not read; save it with \\n")
    ours: list[dict[str, Any]] = eval_results_to_model_index(model, list(entries))[0]["results"]
    found = REGEX_YAML_BLOCK.search(card)
    if found is None:
        return f"{mark}---\n{_dump({_KEY: [{'name': model, 'results': ours}]})}---\n{card}"
    end = "\r\n" if "\r\n" in found.group(1) else "\n"
    rest = card[found.end(2) :].lstrip("\r\n")  # from the line that ends the header
    text = card[found.start(2) : len(card) - len(rest)]
    header = _parsed(found.group(2))
    wanted = header | {_KEY: _merged_index(header.get(_KEY) or [], model, ours)}
    for changed in _candidates(text, header, wanted, model, ours, end):
        new = card[: found.start(2)] + changed + rest
        if _reads_as(new, wanted):
            return mark + new
    raise ValueError(
        f"{_KEY} cannot be put into the card's header without changing other keys; write the header in YAML's block "
        f"style, not indented and without '...', and {_KEY} on lines of its own, without anchors"
    )


def card_notes(card: str, model: str) -> list[str]:
    """What is worth knowing about a card that results of a model are merged into, before they are."""
    notes = []
    if card.startswith(_BYTE_ORDER_MARK):
        notes.append("begins with a byte order mark, so huggingface_hub finds no metadata in it; save it without")
    found = REGEX_YAML_BLOCK.search(card.removeprefix(_BYTE_ORDER_MARK))
    entries = (_parsed(found.group(2)).get(_KEY) if found else None) or []
    if entries and _entry_index(entries, model) == len(entries):
        names = ", ".join(str(entry["name"]) for entry in entries)
        notes.append(
            f"its {_KEY} is of {names}, so the results of {model} have an entry of their own; if that is the same "
            "model, join the two (huggingface_hub's ModelCard would save both under one name)"
        )
    return notes


def _candidates(
    text: str,
    before: Mapping[str, Any],
    wanted: Mapping[str, Any],
    model: str,
    ours: list[dict[str, Any]],
    end: str,
) -> Iterator[str]:
    """Changed headers to try, the one that changes least first."""
    block = _dump({_KEY: wanted[_KEY]}).replace("\n", end)
    if _KEY not in before:
        # At the end, block text would gain the line break before the new key.
        yield from (text + block, block + text)
        return
    if before[_KEY] is not None:
        edited = _edited_in_place(text, _entry_index(before[_KEY], model), model, ours, end)
        if edited is not None:
            yield edited
    yield _with_block(text, block)


def _parsed(header: str) -> dict[str, Any]:
    try:
        data = yaml.safe_load(header) or {}
        node = yaml.compose(header)
    except yaml.YAMLError as error:
        raise ValueError(f"the card's YAML header cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ValueError(f"the card's YAML header must be a mapping of keys to values, got {type(data).__name__}")
    if isinstance(node, yaml.MappingNode) and sum(key.value == _KEY for key, _ in node.value) > 1:
        raise ValueError(f"the card's header has {_KEY} more than once; keep one")
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
    """Which entry of the model-index has this model's name; their number, for a new one, if none has."""
    names = [entry["name"] for entry in entries]
    fitting = [i for i, name in enumerate(names) if name in (model, model.split("/")[-1])]
    if len(fitting) > 1:
        raise ValueError(f"the card's {_KEY} has entries for {', '.join(map(str, names))}, several for {model}")
    return fitting[0] if fitting else len(names)


def _identity(result: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a later result of the same task, subset, variant and split has in common; the name tells the first three."""
    return result["dataset"]["name"], result["dataset"].get("split")


def _merged_index(entries: Sequence[Mapping[str, Any]], model: str, ours: list[dict[str, Any]]) -> list[dict[str, Any]]:
    index, replaced = _entry_index(entries, model), {_identity(result) for result in ours}
    whole = [*map(dict, entries), *([{"name": model, "results": []}] if index == len(entries) else [])]
    # In the place of the first one that is replaced, so that little moves.
    before = [_identity(result) for result in whole[index]["results"]]
    at = next((i for i, identity in enumerate(before) if identity in replaced), len(before))
    results = whole[index]["results"]
    whole[index]["results"] = [*results[:at], *ours, *(r for r in results[at:] if _identity(r) not in replaced)]
    return whole


def _reads_as(card: str, wanted: Mapping[str, Any]) -> bool:
    found = REGEX_YAML_BLOCK.search(card)
    try:
        header = yaml.safe_load(found.group(2)) if found else None
    except yaml.YAMLError:
        return False
    # As text, so that a value that is no number equals itself.
    return isinstance(header, dict) and repr(sorted(header.items(), key=repr)) == repr(sorted(wanted.items(), key=repr))


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


def _edited_in_place(header: str, index: int, model: str, ours: list[dict[str, Any]], end: str) -> str | None:
    """The header with our results replaced line by line, or ``None`` where they are not in block style."""
    _, value = _value_of(yaml.compose(header), _KEY)
    is_new = index == len(value.value)
    results = value if is_new else _value_of(value.value[index], "results")[1]
    if not isinstance(results, yaml.SequenceNode) or results.flow_style or not results.value:
        return None
    lines = header.splitlines(keepends=True)
    indents = {_dash(lines[item.start_mark.line], item.start_mark.column) for item in results.value}
    if len(indents) != 1 or None in indents:
        return None
    replaced = {_identity(result) for result in ours}
    gone: set[int] = set()
    for item in () if is_new else results.value:
        if _identity(yaml.safe_load(yaml.serialize(item))) in replaced:
            gone |= set(range(item.start_mark.line, _last_line(item) + 1))
    at = _last_line(results) + 1
    indent = indents.pop() or ""
    new = _dump([{"name": model, "results": ours}] if is_new else ours)
    added = "".join(f"{indent}{line}{end}" for line in new.removesuffix("\n").split("\n"))
    place = min(gone, default=at)
    rest = [line for i, line in enumerate(lines[place:], place) if i not in gone]
    return "".join([*lines[:place], added, *rest])


def _dash(line: str, column: int) -> str | None:
    """The blanks before the dash of a sequence's item that begins at a column; ``None`` if the dash is elsewhere."""
    before = line[:column]
    return before.split("-")[0] if before.strip() == "-" else None
