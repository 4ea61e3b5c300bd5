"""What commands that ask a language model share: lost calls, unreadable replies, estimates, folders, options."""

from __future__ import annotations

import argparse
import csv
import socket
from collections import Counter
from pathlib import Path

import pytest
from language_model_server import LanguageModelServer

from evaluators.files import only_run
from evaluators.judge import Endpoint, EndpointError, LanguageModel, Reply, Request, Sampling, Store
from evaluators.judge.answers import read_verdict
from evaluators.markdown import quoted
from tcr_tasks.asking import Asker, Estimate, Planned, is_doubtful
from tcr_tasks.builder.tokens import default_counter
from tcr_tasks.cutting import Cutter
from tcr_tasks.loaded import require_same_results
from tcr_tasks.options import refuse_unused


def is_yes(reply: Reply) -> bool:
    return read_verdict(reply)[0]


def asked(*names: str) -> dict[str, Planned[bool]]:
    return {n: Planned(Request("m", ({"role": "user", "content": n},)), [], is_yes) for n in names}


def model(url: str, store: Path) -> LanguageModel:
    return LanguageModel(Endpoint(url, api_key="k", attempts=1, backoff=0.0), Store(store), progress=False)


# --- calls that are lost ---------------------------------------------------------------------------------------------


def test_a_run_ends_when_nobody_answers(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, but nothing listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(EndpointError, match=r"target alone: 6 calls, and none was answered; .*connection failed"):
            Asker(model(url, tmp_path / "s.sqlite")).ask(asked(*"abcdef"), "target alone")
        few = Asker(model(url, tmp_path / "s.sqlite"))
        replies, took = few.ask(asked(*"abc"), "one")
        assert set(replies.failed) == set("abc") and (took.made, took.failed) == (3, 3)
        with pytest.raises(EndpointError, match="two: 6 calls, and none was answered"):
            few.ask(asked(*"defa"), "two")


def test_a_server_that_answers_some_calls_is_not_down(tmp_path: Path) -> None:
    """Nor is one that only has errors to say."""
    with LanguageModelServer(scorer=lambda messages: "Answer: yes") as server:
        server.faults = lambda number, body: "dropped_before" if body["messages"][0]["content"] != "a" else None
        replies, _ = Asker(model(server.url, tmp_path / "s.sqlite")).ask(asked(*"abcdefgh"), "some")
        assert set(replies.read) == {"a"} and len(replies.failed) == 7
        server.faults = lambda number, body: "server_error"
        replies, _ = Asker(model(server.url, tmp_path / "s.sqlite")).ask(asked(*"bcdefgh"), "errors")
        assert len(replies.failed) == 7


def test_unreadable_replies_are_asked_for_once_more_and_failed_calls_not(tmp_path: Path) -> None:
    said = {"a": "Answer: yes", "b": "hm", "c": "Answer: no"}
    calls: Counter[str] = Counter()
    with LanguageModelServer(scorer=lambda messages: said[str(messages[0]["content"])]) as server:

        def faults(number: int, body: dict[str, list[dict[str, str]]]) -> str | None:
            calls[body["messages"][0]["content"]] += 1
            return "context_exceeded" if body["messages"][0]["content"] == "c" else None

        server.faults = faults
        one = model(server.url, tmp_path / "s.sqlite")
        first = Asker(one, again=True)
        for _ in range(2):
            replies, took = first.ask(asked(*"abc"), "first")
            assert (replies.read, set(replies.unreadable), set(replies.failed)) == ({"a": True}, {"b"}, {"c"})
        # Neither what was unreadable just now nor what failed is asked again in the same run.
        assert calls == {"a": 1, "b": 1, "c": 1} and (took.made, took.failed) == (0, 0)
        assert Asker(one).ask(asked("b"), "without")[0].unreadable and calls["b"] == 1
        said["b"] = "Answer: no"
        assert Asker(one, again=True).ask(asked(*"ab"), "again")[0].read == {"a": True, "b": False}
        assert (calls["a"], calls["b"]) == (1, 2)


@pytest.mark.parametrize(("unusable", "n", "doubtful"), [(0, 0, False), (1, 20, False), (2, 20, True), (1, 3, True)])
def test_more_than_a_twentieth_is_doubtful(unusable: int, n: int, doubtful: bool) -> None:
    assert is_doubtful(unusable, n) == doubtful


# --- what it would take ----------------------------------------------------------------------------------------------


def test_an_estimate_counts_tables_and_takes_four_characters_of_the_rest(tmp_path: Path) -> None:
    counter = default_counter()
    one = model("http://127.0.0.1:9/v1", tmp_path / "s.sqlite")
    table = "| a | b |\n|---|---|\n| 0.123456 | 7.891011 |\n" * 5
    request = Request("m", ({"role": "user", "content": f"Which one? {table}"},), Sampling(max_tokens=10))
    planned = Planned(request, [table], is_yes)
    stored = Planned(Request("m", ({"role": "user", "content": "stored"},), Sampling(max_tokens=10)), [], is_yes)
    one.store.put(stored.request, stored.request.body(), '{"choices": [{"message": {"content": "hm"}}]}', "http://x")
    estimate = Estimate(one, Cutter(counter))
    for _ in range(2):
        estimate.add_planned([planned, stored], again=False)
    # "Which one? " has 11 characters: 3 tokens.
    assert estimate.plan.prompt_tokens == counter.count(table) + 3 > 1.3 * request.estimated_prompt_tokens()
    assert (estimate.plan.requests, estimate.plan.stored, estimate.plan.most_completion_tokens) == (2, 1, 10)
    told = estimate.told("x")
    assert (
        "\n" not in told and f"({counter.count(table)} of them in tables, counted by {counter.name}; the rest" in told
    )
    # Asking again also asks for what is stored and cannot be read: "stored" has 6 characters, 2 tokens.
    anew = Estimate(one, Cutter(counter))
    anew.add_planned([planned, stored], again=True)
    assert (anew.plan.stored, anew.plan.calls) == (0, 2)
    assert anew.plan.prompt_tokens == estimate.plan.prompt_tokens + 2


# --- folders and options ---------------------------------------------------------------------------------------------


def test_a_folder_into_which_nothing_went_is_gone(tmp_path: Path) -> None:
    out, kept = tmp_path / "new" / "out", tmp_path / "kept"
    with only_run(out):
        assert out.is_dir()
    assert not (tmp_path / "new").exists()
    with only_run(out):
        (out / "report.md").write_text("")
    assert (out / "report.md").is_file()
    kept.mkdir()
    with only_run(kept):
        pass
    assert kept.is_dir()


def test_results_keep_to_what_they_are_about(tmp_path: Path) -> None:
    path, about = tmp_path / "results.csv", {"command": "tcr qa", "task": "T", "reader": "m"}
    require_same_results(path, about)
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, [*about, "k"])
        writer.writeheader()
        writer.writerow(about | {"k": 3})
    require_same_results(path, about)
    for name in about:
        with pytest.raises(ValueError, match=r"\(command tcr qa, task T, reader m\); name another folder"):
            require_same_results(path, about | {name: "other"})
    path.write_text("model,r\nm,1\n")
    with pytest.raises(ValueError, match=r"\(command unknown, task unknown, reader unknown\)"):
        require_same_results(path, about)


def test_an_option_that_nothing_uses_is_refused() -> None:
    args = argparse.Namespace(seed=0, again=False, order=None)
    refuse_unused(args, ["again", "order"], "x")
    with pytest.raises(ValueError, match="--seed concerns --methods lw only"):
        refuse_unused(args, ["order", "seed"], "--methods lw")


def test_a_servers_message_is_no_markdown() -> None:
    assert quoted("a `b`\n\n# <c>") == "`a 'b' # <c>`"
