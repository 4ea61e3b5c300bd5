"""Rerankings whose replies cannot be used, what records say of how they asked, and folders of other commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from qa_parts import command as qa_command
from rerank_parts import asking, command, listed, pool, rows_of, save_predictions, says, shuffled_run

from evaluators.judge import Endpoint, LanguageModel, Sampling, Store
from tcr_tasks.reranking.asking import Asking
from tcr_tasks.reranking.execution import Execution
from tcr_tasks.reranking.json_replies import last_object
from tcr_tasks.reranking.lines import Line
from tcr_tasks.reranking.listwise import Listwise
from tcr_tasks.reranking.pointwise import Pointwise
from tcr_tasks.reranking.pool import AskingReranker
from tcr_tasks.reranking.scaling import scaling_figures
from tcr_tasks.tasks import TCRTask

from language_model_server import LanguageModelServer  # isort: skip

Arguments = Callable[..., list[str | Path]]


@pytest.fixture
def arguments(small: Path, small_task: TCRTask, server: LanguageModelServer, tmp_path: Path) -> Arguments:
    saved = save_predictions(tmp_path / "saved", small_task.metadata.name, shuffled_run(small_task)).parent
    found: list[str | Path] = ["--first-stage", saved, "--data", small, "--out", tmp_path / "out"]
    return lambda *more: [*found, "--llm", "m", "--llm-base-url", server.url, *more]


@pytest.fixture(autouse=True)
def _sound(server: LanguageModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcr_tasks.reranking.run.draw", lambda figures, folder: [])
    server.faults = lambda number, body: None


def test_rows_without_usable_replies_are_marked(
    server: LanguageModelServer, arguments: Arguments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.scorer = lambda messages: "Hm." if "Answer: yes or no" in str(messages[-1]["content"]) else listed(["T3"])
    given = arguments("--methods", "pw", "lw", "--budgets", "3")
    assert command(*given) == 0
    told = capsys.readouterr()
    note = "AAR-LLM-PW (T3): 9 of 9 prompts without a usable reply"
    assert told.err.splitlines()[-1].startswith(f"warning: {note}; such tables keep the first stage's order; --ask-")
    assert "| AAR-LLM-PW (T3) † " in told.out and f"\n\n† {note}; such tables keep" in told.out
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    # Under each of the four tables of scores; the listing is unmarked.
    assert text.count(f"\n\n† {note}") == 4 and "AAR-LLM-LW (T3, shuffled) †" not in text
    stage, pointwise, listwise = rows_of(tmp_path / "out")
    assert pointwise["recall_at_1"] == stage["recall_at_1"]
    assert (pointwise["prompts"], pointwise["prompts_without_usable_reply"]) == ("9", "9")
    assert (listwise["prompts"], listwise["prompts_without_usable_reply"]) == ("3", "0")
    assert pointwise["mark"].startswith(f"† {note}") and stage["mark"] == listwise["mark"] == ""
    # Stored for good, unless one asks for more.
    server.scorer, before = says, server.counts.as_dict()["requests"]
    assert command(*given) == 0 and "†" in capsys.readouterr().out
    assert server.counts.as_dict()["requests"] == before
    assert command(*given, "--dry-run", "--ask-again") == 0
    dry = capsys.readouterr().out.splitlines()
    assert "0 already stored, 9 calls" in dry[0] and "3 already stored, 0 calls" in dry[1]
    assert command(*given, "--ask-again") == 0
    told = capsys.readouterr()
    assert "†" not in told.out and "warning: " not in told.err
    assert server.counts.as_dict()["requests"] == before + 9


def test_figures_show_marks_too() -> None:
    names = [f"{metric}_at_{k}" for metric in ("recall", "gr", "ds") for k in (1, 2, 3, 4, 5)]
    scores = dict.fromkeys([n + end for n in names for end in ("", "_low", "_high")], 0.5)
    scores |= {"chance_ds_at_1": 0.2, "n_queries": 3.0}
    lines = [Line("", "", "s", None, scores)]
    lines += [Line("X", "m", "s", k, scores, counts={"failed calls": n}, n_prompts=9) for k, n in ((3, 0), (5, 9))]
    (figure,) = scaling_figures(lines, "T")
    assert figure.subtitle.endswith("; †: many replies are unusable")
    assert list(figure.panels[0].marks[0].x) == ["none", "T3", "T5 †"]
    (figure,) = scaling_figures([*lines[:2], replace(lines[1], budget=5)], "T")
    assert "†" not in figure.subtitle


def test_qa_and_rerank_do_not_replace_each_other(
    server: LanguageModelServer, arguments: Arguments, small: Path, tmp_path: Path
) -> None:
    server.scorer = says
    assert command(*arguments("--methods", "pw", "--budgets", "2")) == 0
    before, n_asked = (tmp_path / "out" / "report.md").read_bytes(), server.counts.as_dict()["requests"]
    reader = ("--data", small, "--llm", "m", "--llm-base-url", server.url, "--out")
    with pytest.raises(ValueError, match=r"results\.csv holds other results, .* \(command tcr rerank, task TCRBenchM"):
        qa_command(*reader, tmp_path / "out")
    assert (tmp_path / "out" / "report.md").read_bytes() == before
    assert server.counts.as_dict()["requests"] == n_asked
    server.scorer = lambda messages: "Answer: []"
    answers = tmp_path / "answers"
    assert qa_command(*reader, answers) == 0
    before, n_asked = (answers / "report.md").read_bytes(), server.counts.as_dict()["requests"]
    with pytest.raises(
        ValueError, match=r"holds other results, .* \(command tcr qa, task TCRBenchMixed, data revision"
    ):
        command(*arguments("--methods", "pw"), "--out", answers)
    assert (answers / "report.md").read_bytes() == before
    assert server.counts.as_dict()["requests"] == n_asked


def test_a_refused_run_leaves_no_folder(arguments: Arguments, tiny_models: dict[str, Path], tmp_path: Path) -> None:
    other = save_predictions(tmp_path / "other", "TCRBenchMixed", {"q": {"t": 1.0}}).parent
    for more in ((), ("--ce", tiny_models["CrossEncoder"])):
        with pytest.raises(ValueError, match=r"no ranking for 3 queries|ranks the queries"):
            command(*arguments(*more), "--first-stage", other)
        assert not (tmp_path / "out").exists()


# --- how they ask ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampling", "more", "changed", "keys"),
    [
        (Sampling(), {}, {}, ("1381441fbb1f", "31c3e96ad010")),
        (
            Sampling(temperature=None, top_p=0.5, max_tokens=64, extra={"n": 1}),
            {"context_tokens": 4000},
            {"context_tokens": 4000, "temperature": None, "top_p": 0.5, "max_tokens": 64, "extra": {"n": 1}},
            None,
        ),
    ],
)
def test_what_is_recorded_and_asked_stays_the_same(
    tmp_path: Path,
    sampling: Sampling,
    more: dict[str, int],
    changed: dict[str, object],
    keys: Sequence[str] | None,
) -> None:
    """Letter by letter: mteb names a run's folder after the settings, and replies are stored under the keys."""
    model = LanguageModel(Endpoint("http://127.0.0.1:9"), Store(tmp_path / "s.sqlite"), progress=False)
    one = Asking(model, "org/m", sampling, **more)
    pointwise, listwise, execution = Pointwise(one), Listwise(one, "paper"), Execution(one, {})
    assert json.dumps(pointwise.settings) == json.dumps({"prompt": "8dca4530", **changed})
    assert json.dumps(listwise.settings) == json.dumps({"prompt": "b6898afe", **changed, "protocol": "paper"})
    assert json.dumps(execution.settings) == json.dumps({"prompt": "59611281", **changed})
    shuffled = {"prompt": "b6898afe", **changed, "protocol": "shuffled", "seed": 7}
    assert json.dumps(Listwise(one, seed=7).settings) == json.dumps(shuffled)
    asks: list[AskingReranker] = [pointwise, listwise]
    documents = {"a": "a:\na,b\n1,2\n", "b": "b:\na,b\n3,4\n"}
    given = pool({"<q>": ["a", "b"]}, documents)
    if keys is not None:
        assert tuple(next(iter(way.planned(given))).request.key[:12] for way in asks) == keys


def test_whether_it_asks_again_is_not_recorded(tmp_path: Path) -> None:
    first, again = (asking("http://127.0.0.1:9", tmp_path / "s.sqlite", again=value) for value in (False, True))
    assert Pointwise(first).settings == Pointwise(again).settings


def test_half_a_character_in_a_reply_is_replaced() -> None:
    assert last_object('{"sql": "\\ud800 x", "columns": {"\\udc00": 1}}', "sql") == {
        "sql": "\ufffd x",
        "columns": {"\ufffd": 1},
    }
