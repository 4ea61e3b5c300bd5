"""A store that several processes open or fill at once, and asking that is interrupted inside a notebook's loop."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from language_model_faults import always
from language_model_server import LanguageModelServer

from evaluators.judge import Endpoint, LanguageModel, LLMJudge, Pair, Request, Sampling, Store
from ifir_tasks.instfol import RUBRICS

pytest_plugins = ["judge_fixtures"]

KEY = "sk-test-0123456789"


def requests(count: int) -> list[Request]:
    return [Request("m", ({"role": "user", "content": f"text {i}"},)) for i in range(count)]


def model(server: LanguageModelServer, path: Path, **settings: Any) -> LanguageModel:
    return LanguageModel(Endpoint(server.url, api_key=KEY, **settings), Store(path), progress=False)


def test_a_store_is_opened_while_another_process_makes_it(tmp_path: Path) -> None:
    # Two that open a new file at once meet like this. SQLite does not wait by itself before it changes the mode.
    path = tmp_path / "s.sqlite"
    Store(path).close()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA journal_mode=DELETE")
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, other.execute, ["COMMIT"])
    timer.start()
    assert Store(path)._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    timer.join()
    other.close()


def test_the_bar_counts_what_another_process_stores(
    server: LanguageModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path, asked = tmp_path / "s.sqlite", requests(9)
    other = Store(path)

    def scorer(messages: list[dict[str, str]]) -> str:
        # While this one asks its first, another stores the answers to four of the others.
        if len(other) == 0:
            for request in asked:
                if {"content": request.messages[0]["content"], "role": "user"} != messages[0] and len(other) < 4:
                    text = '{"choices": [{"message": {"content": "theirs"}}]}'
                    other.put(request, request.body(), text, server.url)
        return "ours"

    server.scorer = scorer
    asking = model(server, path, concurrency=1)
    asking.progress = True
    outcomes = asking.ask(asked)
    assert [o.cached for o in outcomes].count(True) == 4 and len(server.counts.requests) == 5
    assert "5 of 5, done 5, cached 4, failed 0" in capsys.readouterr().err


NOTEBOOK = """
import asyncio, sys
from evaluators.judge import Endpoint, LanguageModel, Request, Store
url, path = sys.argv[1:]
asked = [Request("m", ({"role": "user", "content": f"text {i}"},)) for i in range(400)]
asking = LanguageModel(Endpoint(url, api_key="sk-test-0123456789", concurrency=4), Store(path), progress=False)
async def cell():
    try:
        asking.ask(asked)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.stdin.readline()
loop = asyncio.new_event_loop()  # as a notebook does, and not asyncio.run, which takes the signal itself
loop.run_until_complete(cell())
"""


def test_an_interrupt_inside_a_running_loop_ends_the_calls(server: LanguageModelServer, tmp_path: Path) -> None:
    server.delay = 0.05
    command = [sys.executable, "-c", NOTEBOOK, server.url, str(tmp_path / "s.sqlite")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as notebook:
        end = time.monotonic() + 30
        while len(server.counts.requests) < 12:
            assert time.monotonic() < end
            time.sleep(0.005)
        notebook.send_signal(2)
        assert notebook.stdout is not None and notebook.stdout.readline() == "interrupted\n"
        # The notebook lives on, and asks nothing more.
        made = len(server.counts.requests)
        assert made < 100
        time.sleep(0.3)
        assert len(server.counts.requests) == made
        notebook.communicate("\n", timeout=20)
    assert notebook.returncode == 0
    assert 0 < len(Store(tmp_path / "s.sqlite")) < 100


def test_again_asks_only_what_was_stored_before(server: LanguageModelServer, tmp_path: Path) -> None:
    server.faults = always("prose_only")
    judge = LLMJudge(RUBRICS, language_model=model(server, tmp_path / "s.sqlite"), again=True)
    pairs = [Pair(f"q{i}-v1", "d", f"instruction {i}", "passage", "fiqa", 1) for i in range(2)]
    judge.judge(pairs[:1])
    assert len(server.counts.requests) == 1
    judge.judge(pairs)
    # The stored one again, the new one once.
    assert len(server.counts.requests) == 3


def test_numbers_that_are_equal_make_one_request() -> None:
    whole, broken = (
        Request("m", ({"role": "user", "content": "?"},), Sampling(temperature=t, top_p=p))
        for t, p in ((0, 1), (0.0, 1.0))
    )
    assert whole.key == broken.key and repr(whole.body()["temperature"]) == "0.0"
