"""What an import of ours does, and what the command line finds, in a process where nothing of ours was imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from evaluators.plugin.registry import SAMPLE_BENCHMARK

# Importing mteb takes seconds, so one process answers for all tests: a line of JSON, then what the command prints.
CODE = f"""
import json, logging, os, sys, torch, mteb

def state():
    root = logging.getLogger()
    return dict(os.environ), root.handlers[:], root.level, torch.get_num_threads()

def registered(name):
    try:
        return mteb.get_task(name).metadata.name == name
    except KeyError:
        return False

found = {{}}
before = state()
import ifir_tasks
found["changed by one package"] = state() != before
found["imported with it"] = [name for name in ("followir_tasks", "tcr_tasks") if name in sys.modules]
found["registered"] = {{name: registered(name) for name in ("IFIRSample", "TCRSample")}}
found["samples"] = sorted(t.metadata.name for t in mteb.get_benchmark({SAMPLE_BENCHMARK!r}).tasks)
before = state()
import followir_tasks, tcr_tasks, hub_cards, evaluators.cli
found["changed by the others"] = state() != before
evaluators.cli.build_parser()
found["slow imports"] = sorted({{"openai", "sentence_transformers", "plotly"}} & sys.modules.keys())
print(json.dumps(found), flush=True)
sys.exit(evaluators.cli.main(["available-tasks", "--task-types", "InstructionReranking"]))
"""


@dataclass(frozen=True)
class Fresh:
    """What the process found, and what its command printed and returned."""

    found: dict[str, Any]
    printed: str
    code: int


@pytest.fixture(scope="module")
def fresh() -> Fresh:
    # Two threads even where the tests themselves run on one, so that a change to one would show.
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, stdout=subprocess.PIPE, text=True, timeout=300)
    first, _, rest = done.stdout.partition("\n")
    return Fresh(json.loads(first), rest, done.returncode)


def test_one_import_registers_one_package_and_the_samples_of_all(fresh: Fresh) -> None:
    assert fresh.found["imported with it"] == []
    assert fresh.found["registered"] == {"IFIRSample": True, "TCRSample": False}
    assert fresh.found["samples"] == ["FollowIRSample", "IFIRSample", "TCRSample"]


def test_importing_changes_no_environment_and_no_logging(fresh: Fresh) -> None:
    assert not fresh.found["changed by one package"]
    assert not fresh.found["changed by the others"]


def test_no_command_waits_for_imports_that_few_need(fresh: Fresh) -> None:
    assert fresh.found["slow imports"] == []


def test_the_command_lists_our_tasks(fresh: Fresh) -> None:
    assert fresh.code == 0
    assert "FollowIRSample" in fresh.printed
    assert "Core17InstructionRetrieval" in fresh.printed
