"""Parsers of the standard library's argparse: what it keeps to itself."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["describe", "option_of", "sub_commands", "sub_parsers_action"]


def sub_commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The sub-commands of a parser by name (argparse keeps them in its one `_SubParsersAction`)."""
    return dict(sub_parsers_action(parser).choices)


def sub_parsers_action(parser: argparse.ArgumentParser) -> Any:
    """The object whose ``add_parser`` adds a sub-command to ``parser``."""
    action = _sub_parsers_action(parser)
    if action is None:
        raise ValueError(f"the command line parser {parser.prog!r} has no sub-commands")
    return action


def option_of(parser: argparse.ArgumentParser, flag: str) -> argparse.Action:
    """An option of a parser, for instance to reword its help."""
    action = parser._option_string_actions.get(flag)
    if action is None:
        raise ValueError(f"the command line parser {parser.prog!r} has no option {flag}")
    return action


def describe(parser: argparse.ArgumentParser) -> None:
    """Give each sub-command without a description the line by which its parent's help names it."""
    action = _sub_parsers_action(parser)
    if action is None:
        return
    lines = {choice.dest: choice.help for choice in action._choices_actions}
    for name, command in action.choices.items():
        line = lines.get(name)
        if not command.description and line:
            command.description = f"{line[0].upper()}{line[1:].rstrip('.')}."
        describe(command)


def _sub_parsers_action(parser: argparse.ArgumentParser) -> Any:
    return next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)
