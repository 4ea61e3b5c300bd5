"""The README says what is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from evaluators.cli import build_parser
from evaluators.plugin.parsers import sub_commands
from evaluators.plugin.registry import load_plugins, registered_tasks

README = Path(__file__).parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_every_task_and_benchmark_is_in_its_table() -> None:
    load_plugins()
    for cls in registered_tasks():
        assert f"`{cls.metadata.name}`" in TEXT
        assert f"`{cls.metadata.main_score}`" in TEXT
    for name in ("IFIR(InstFol)", "FollowIR(paired)", "TCR-Bench", "Beyond(sample)"):
        assert f"`{name}`" in TEXT


def test_its_two_commands_are_one_line_each_and_set_everything_up() -> None:
    commands = re.findall(r"^```bash\n(.*?)\n```$", TEXT, flags=re.DOTALL | re.MULTILINE)
    for wanted in ("mteb-beyond demo", "pytest"):
        (command,) = [c for c in commands if wanted in c and "venv" in c]
        assert "\n" not in command
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install")


def test_its_commands_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```bash\n(.*?)\n```$", TEXT, flags=re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    commands = [shlex.split(line.split(" > ")[0], comments=True) for line in lines if line.startswith("mteb-beyond ")]
    parser = build_parser()
    for command in commands:
        try:
            parser.parse_args(command[1:])
        except SystemExit:
            pytest.fail(f"{shlex.join(command)}: {capsys.readouterr().err}")
    # Every step of FollowIR is shown.
    shown = {tuple(command[1:3]) for command in commands}
    steps = sub_commands(sub_commands(parser)["followir"])
    assert {("followir", step) for step in steps} <= shown


def test_its_three_lines_of_python_run(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)\n```$", TEXT, flags=re.DOTALL | re.MULTILINE)
    lines = code.splitlines()
    assert len(lines) == 3
    # The same with the bundled copy of the model, since a test reaches no hub.
    from evaluators.plugin.models import bundled_minilm

    bundled_minilm()
    exec(compile(code, "README.md", "exec"), {})
    assert 0 <= float(capsys.readouterr().out.split()[-1]) <= 1
