"""The store of replies: its keys, the files it refuses, and what it gives back."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.judge.request import Request, Sampling
from evaluators.judge.store import STORE_VARIABLE, Store

URL = "http://127.0.0.1:1/v1"


def request(content: str = "relevant?", model: str = "m", role: str = "user", **sampling: Any) -> Request:
    return Request(model, ({"role": role, "content": content},), Sampling(**sampling))


def response(text: str) -> str:
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})


def keep(store: Store, asked: Request, text: str) -> None:
    store.put(asked, asked.body(), response(text), URL)


# -- keys -------------------------------------------------------------------------------------------------------------

DIFFERENT = [
    request(),
    request(content="relevant? "),
    request(model="n"),
    request(role="system"),
    Request("m", ({"role": "user", "content": "relevant?"},) * 2),
    *(request(temperature=t) for t in (0.5, None)),
    *(request(top_p=p) for p in (0.8, None)),
    request(max_tokens=511),
    *(request(top_logprobs=n) for n in (1, 5)),
    *(request(seed=n) for n in (0, 1)),
    request(extra={"response_format": {"type": "json_object"}}),
    request(extra={"response_format": {"type": "text"}}),
]


def test_every_part_changes_the_key() -> None:
    assert len({r.key for r in DIFFERENT}) == len(DIFFERENT)
    assert request().key == request(content="relevant?").key


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.none()), min_size=2), st.randoms())
def test_order_of_parameters_is_no_part_of_the_key(extra: dict[str, Any], random: Any) -> None:
    names = list(extra)
    random.shuffle(names)
    plain = Request("m", ({"role": "user", "content": "a"},), Sampling(extra=extra))
    turned = Request("m", ({"content": "a", "role": "user"},), Sampling(extra={n: extra[n] for n in names}))
    assert plain.key == turned.key


@given(st.lists(st.text(st.characters()), min_size=2, max_size=2, unique=True))
def test_contents_that_differ_have_keys_that_differ(contents: list[str]) -> None:
    first, second = (request(content=c) for c in contents)
    assert first.key != second.key


# -- replies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "relevant: 2", "a\0b", "é \U0001f600 \u2028"])
def test_texts_come_back_as_they_were(tmp_path: Path, text: str) -> None:
    path = tmp_path / "replies.sqlite"
    store = Store(path)
    keep(store, request(content=text), text)
    store.close()
    assert Store(path).reply(request(content=text).key).text == text


def test_two_stores_on_one_file(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "s.sqlite"), Store(tmp_path / "s.sqlite")
    keep(first, request("a"), "one")
    assert second.reply(request("a").key).text == "one"
    keep(second, request("a"), "two")
    keep(second, request("b"), "three")
    assert first.reply(request("a").key).text == "two" and len(first) == 2
    assert first.endpoints([request(c).key for c in "abc"]) == {request(c).key: URL for c in "ab"}


KILLED = """
import os, signal, sys
from evaluators.judge import Request, Store
store, text = Store(sys.argv[1]), '{"choices": [{"message": {"content": "%s"}}]}' % ("x" * 20_000)
for i in range(int(sys.argv[2])):
    request = Request("m", ({"role": "user", "content": str(i)},))
    store.put(request, request.body(), text, "http://127.0.0.1:1/v1")
os.kill(os.getpid(), signal.SIGKILL)
"""


# Two hundred start the copying into the file, which the kill then cuts off.
@pytest.mark.parametrize("count", [3, 200, 205, 430])
def test_a_kill_loses_no_reply(tmp_path: Path, count: int) -> None:
    path = tmp_path / "s.sqlite"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), str(count)])
    assert killed.returncode == -signal.SIGKILL
    store = Store(path)
    assert len(store) == count
    assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_what_is_written_ahead_stays_small(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    for i in range(3000):
        keep(store, request(str(i)), "x" * 20_000)
    written, ahead = ((tmp_path / f"s.sqlite{end}").stat().st_size for end in ("", "-wal"))
    # 8,000 pages of 4,096 bytes with 24 more for each; and what comes while the thread copies, here without a pause.
    assert written > 20_000 * 1000 and ahead < 1.5 * 8000 * 4120
    store.close()
    assert len(Store(tmp_path / "s.sqlite")) == 3000


def test_a_missing_reply_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match=request().key):
        Store(tmp_path / "s.sqlite").reply(request().key)


def test_more_keys_than_one_query_takes(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    asked = [request(str(i)) for i in range(1203)]
    for one in asked[::2]:
        keep(store, one, "-")
    assert set(store.endpoints(r.key for r in asked)) == {r.key for r in asked[::2]}


def test_pending_requests(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    asked, other = request("a"), request("never written")
    store.put_pending([asked])
    assert len(store) == 0 and store.endpoints([asked.key]) == {}
    assert store.take_pending(asked.key, response("first"), URL) is True
    assert store.take_pending(asked.key, response("second"), URL) is False
    assert store.take_pending(other.key, response("third"), URL) is None
    assert store.reply(asked.key).text == "first" and len(store) == 1


# -- files ------------------------------------------------------------------------------------------------------------


def test_the_variable_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "new" / "own.sqlite"))
    keep(Store(), request(), "here")
    assert Store(tmp_path / "new" / "own.sqlite").reply(request().key).text == "here"


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE photo (name TEXT)")
    with pytest.raises(ValueError, match=f"other.sqlite is a database of something else; set {STORE_VARIABLE}"):
        Store(path)
    names = sqlite3.connect(path).execute("SELECT name FROM sqlite_master").fetchall()
    assert names == [("photo",)]


def test_what_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database " * 100)
    with pytest.raises(ValueError, match=f"notes.txt cannot be read.*{STORE_VARIABLE}"):
        Store(path)
    assert path.read_text() == "no database " * 100


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "later.sqlite"
    Store(path).close()
    with sqlite3.connect(path) as later:
        later.execute("PRAGMA user_version = 99")
    with pytest.raises(ValueError, match=r"later.sqlite was written by a later version.*99"):
        Store(path)


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=f"file/s.sqlite: .*Set {STORE_VARIABLE}"):
        Store(tmp_path / "file" / "s.sqlite")
    with pytest.raises(OSError, match=f"Set {STORE_VARIABLE}"):
        Store(tmp_path)
