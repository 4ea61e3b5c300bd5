"""Forms of instructions: what models read, faults in a dataset's forms, and how a language model makes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mteb
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import Dataset
from fixed_ranking import FixedRanking, scores_of
from followir_sets import CANDIDATES, DOCS, QUERIES, Rows, configs, forms_rows, full, write_set
from language_model_server import LanguageModelServer

from evaluators.cli import main
from evaluators.judge import Reply
from evaluators.judge.reply import UnreadableReplyError
from evaluators.plugin import with_variant
from evaluators.plugin.checks import DatasetError
from evaluators.plugin.dataset import read_config
from evaluators.plugin.mteb_internals import query_texts
from followir_tasks.ablation.making import read_form
from followir_tasks.data import read_followir
from followir_tasks.forms import FORMS, FULL, KEYWORDS, NONE, SHORT, QueryForms, with_form
from followir_tasks.sample_build import DIRECTORY
from followir_tasks.sample_forms import keywords, short_forms
from followir_tasks.tasks import FollowIRTask

pytestmark = pytest.mark.usefixtures("fresh_cache")


class ByText:
    """Ranks candidates by a hash of the text that it reads, and remembers these texts."""

    def __init__(self) -> None:
        self.mteb_model_meta = FixedRanking({}).mteb_model_meta
        self.read: dict[str, str] = {}

    def index(self, corpus: Any, **kwargs: Any) -> None:
        self.documents = list(corpus["id"])

    def search(self, queries: Any, *, top_ranked: Any = None, **kwargs: Any) -> dict[str, dict[str, float]]:
        texts = dict(zip(queries["id"], query_texts(queries), strict=True))
        self.read |= texts
        ranked = top_ranked or dict.fromkeys(texts, self.documents)
        return {q: {d: float(sum(map(ord, text)) * int(d[1:]) % 101) for d in ranked[q]} for q, text in texts.items()}


def task_on(directory: Path, form: str = FULL) -> FollowIRTask:
    task = mteb.get_task("FollowIRCore17")
    assert isinstance(task, FollowIRTask)
    task.data_path, task.instruction_form = directory, form
    return task


@pytest.mark.parametrize("form", FORMS)
def test_what_a_model_reads(tmp_path: Path, form: str) -> None:
    task = task_on(write_set(tmp_path / "set"), form)
    model = ByText()
    scores = scores_of(task, with_variant(model, task))
    kept = {row["query-id"]: row for row in forms_rows()}
    wanted = {q: {NONE: None, FULL: full(q)}.get(form, kept[q].get(form)) for q in QUERIES}
    assert model.read == {q: f"topic {q[:2]}" + ("" if text is None else f" {text}") for q, text in wanted.items()}
    if form == NONE:
        assert math.isnan(scores["p-MRR"]) and "p-MRR_low" not in scores
    else:
        assert -1 <= scores["p-MRR_low"] <= scores["p-MRR"] <= scores["p-MRR_high"] <= 1
    # t2 has the same keywords under both instructions.
    assert scores.get("n_topics_with_equal_instructions") == {KEYWORDS: 1, SHORT: 0}.get(form)
    assert scores["mteb_beyond"]["options"]["instruction_form"] == form


def test_queries_that_were_selected_keep_their_own_forms() -> None:
    """mteb's loader selects rows, which leaves the others in the table underneath."""
    queries = Dataset.from_dict({"id": ["a", "b", "c"], "text": ["A", "B", "C"], "instruction": ["1", "2", "3"]})
    forms = {query: QueryForms(f"k{query}", f"s{query}") for query in "abc"}
    found = with_form(queries.select([2, 0]), KEYWORDS, forms, "set")
    assert query_texts(found) == ["C kc", "A ka"]
    assert query_texts(with_form(queries.select([2, 0]), NONE, None, "set")) == ["C", "A"]


def test_forms_are_filed_apart_and_need_a_record(tmp_path: Path) -> None:
    task = task_on(write_set(tmp_path / "set"), KEYWORDS)
    assert with_variant(ByText(), task).mteb_model_meta.experiment_kwargs == {"task_instruction_form": "keywords"}
    with pytest.raises(ValueError, match="with_variant"):
        scores_of(task, ByText())


@pytest.mark.parametrize("form", [KEYWORDS, SHORT])
def test_a_dataset_without_forms(tmp_path: Path, form: str) -> None:
    directory = write_set(tmp_path / "set", configs(with_forms=False))
    task_on(directory).load_data()
    with pytest.raises(DatasetError, match="mteb-beyond followir forms"):
        task_on(directory, form).load_data()


FAULTS: dict[str, tuple[Callable[[Rows], object], str]] = {
    "lacking": (lambda rows: rows.pop(), "1 queries have no row: 't3-changed'"),
    "unknown": (lambda rows: rows.append({"query-id": "t9-og", "keywords": "a", "short": "b"}), "unknown queries: 't9"),
    "blank": (lambda rows: rows[0].update(keywords=" "), "1 queries have an empty 'keywords': 't1-og'"),
    "twice": (lambda rows: rows.append(rows[0]), "more than one row"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_the_forms_are_found_by_check(tmp_path: Path, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = configs()
    change, message = FAULTS[fault]
    change(rows["instruction_forms"])
    assert main(["check", str(write_set(tmp_path / "set", rows))]) == 1
    assert message in capsys.readouterr().out


# --- the sample's forms --------------------------------------------------------------------------------------------


def test_the_samples_forms_say_less_and_less() -> None:
    instruction, kept = (read_config(DIRECTORY, name) for name in ("instruction", "instruction_forms"))
    assert instruction is not None and kept is not None
    narratives = {row["query-id"]: row["instruction"] for row in instruction.to_pylist()}
    forms = {row["query-id"]: row for row in kept.to_pylist()}
    assert forms.keys() == narratives.keys()
    for query, row in forms.items():
        words = row["keywords"].split()
        assert 4 <= len(words) < len(row["short"].split()) < len(narratives[query].split()), query
        assert len(set(words)) == len(words)
        assert all(word in row["short"].lower() for word in words)
        assert all(sentence in narratives[query] for sentence in row["short"].split(". "))
        other = forms[query.replace("-changed", "-og")]
        assert query.endswith("-og") or (row["short"] != other["short"] and row["keywords"] != other["keywords"])


def test_the_rule_by_hand() -> None:
    plain, changed = "Relevant documents report A-b 5,000. No c.", "Relevant documents report A-b 5,000. Only D. No c."
    assert short_forms(plain, changed) == (
        "Relevant documents report A-b 5,000.",
        "Relevant documents report A-b 5,000. Only D.",
    )
    assert keywords("Relevant documents report A-b 5,000. Only D, a-b.") == "a-b 5,000 d"
    with pytest.raises(ValueError, match="does not add a sentence"):
        short_forms(changed, plain)


# --- forms by a language model -------------------------------------------------------------------------------------


class Writer:
    """The language model: keywords and short forms from the instruction that it reads; ``said`` replaces some."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        prompt = messages[-1]["content"]
        instruction = prompt.partition("<instruction>\n")[2].partition("\n</instruction>")[0]
        topic, variant = instruction.split()[4], instruction.split()[-8]
        kind = "keywords" if "Write the keywords" in prompt else "short"
        text = f"**Keywords:** {topic} {variant}" if kind == "keywords" else f'Instruction: "Only {topic}, {variant}."'
        return self.said.get(f"{kind} {topic} {variant}", text)


@pytest.fixture
def writer() -> Writer:
    return Writer()


@pytest.fixture
def server(writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    with LanguageModelServer(scorer=writer) as running:
        yield running


def make(server: LanguageModelServer, data: Path, out: Path, *more: str) -> int:
    model = ["--llm", "test-model", "--llm-base-url", server.url]
    return main(["followir", "forms", "--data", str(data), "--out", str(out), *model, *more])


def test_a_dataset_with_forms(server: LanguageModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = write_set(tmp_path / "set", configs(with_forms=False)), tmp_path / "new" / "set"
    assert make(server, data, out, "--dry-run") == 0
    assert "12 forms: 12 different requests, 0 already stored" in capsys.readouterr().out
    assert not out.exists()
    assert make(server, data, out) == 0
    kept = {row["query-id"]: row for row in pq.read_table(out / "instruction_forms.parquet").to_pylist()}
    assert kept["t1-og"] == {"query-id": "t1-og", "keywords": "t1 og", "short": "Only t1, og."}
    assert kept["t3-changed"]["keywords"] == "t3 changed"
    assert list(kept) == QUERIES
    for name in ("corpus", "queries", "qrels", "instruction", "top_ranked", "qrel_diff"):
        assert (out / f"{name}.parquet").read_bytes() == (data / f"{name}.parquet").read_bytes()
    header = yaml.safe_load((out / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert header["configs"][-1]["config_name"] == "instruction_forms" and len(header["configs"]) == 7
    assert "written by test-model, prompts keywords " in (out / "README.md").read_text(encoding="utf-8")
    assert main(["check", str(out)]) == 0
    # Once paid for: into the dataset itself, twice, without another call, and described once.
    asked = len(server.counts.requests)
    assert make(server, data, data) == make(server, data, data) == 0
    assert len(server.counts.requests) == asked == 12
    assert (data / "instruction_forms.parquet").read_bytes() == (out / "instruction_forms.parquet").read_bytes()
    assert (data / "README.md").read_text(encoding="utf-8") == (out / "README.md").read_text(encoding="utf-8")


def test_a_public_set_becomes_a_directory_with_forms(
    server: LanguageModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = read_followir(write_set(tmp_path / "public", configs(with_forms=False)))
    monkeypatch.setattr(FollowIRTask, "fetch", lambda self, source: public)
    monkeypatch.delenv("MTEB_BEYOND_DATA", raising=False)
    out = tmp_path / "out"
    model = ["--llm", "test-model", "--llm-base-url", server.url]
    assert main(["followir", "forms", "--task", "FollowIRCore17", "--out", str(out), *model]) == 0
    read = read_followir(out)
    assert read.side["instruction_forms"]["t1-og"] == ("t1 og", "Only t1, og.")
    assert (read.relevant_docs, read.top_ranked) == (public.relevant_docs, public.top_ranked)
    assert (read.queries.to_list(), read.corpus.to_list()) == (public.queries.to_list(), public.corpus.to_list())
    card = (out / "README.md").read_text(encoding="utf-8")
    dataset = mteb.get_task("Core17InstructionRetrieval").metadata.dataset
    assert f"A copy of `{dataset['path']}` at revision `{dataset['revision']}`" in card
    assert yaml.safe_load(card.split("---")[1])["license"] == "mit"


def test_what_cannot_be_used_is_counted_and_nothing_is_written(
    server: LanguageModelServer, writer: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = write_set(tmp_path / "set", configs(with_forms=False)), tmp_path / "out"
    writer.said = {"keywords t1 og": "Keywords: ...", "short t2 changed": "Instruction: " + "word " * 30}
    assert make(server, data, out) == 1
    told = capsys.readouterr().out
    assert "t1-og, keywords: the reply holds no words" in told
    assert "t2-changed, short: the reply is longer than the instruction" in told
    assert "0 of 12 calls failed and 2 replies cannot be used: nothing was written" in told
    assert not out.exists()
    writer.said = {}
    assert make(server, data, out) == 1  # stored replies stay what they are
    assert make(server, data, out, "--ask-again") == 0
    assert len(server.counts.requests) == 14
    assert len(pq.read_table(out / "instruction_forms.parquet")) == 6


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Keywords: ship port", "ship port"),
        ("ship port", "ship port"),
        ("<think>Keywords: no</think>Sure! Here they are:\n\n```\n## Keywords:\nship port\n```", "ship port"),
        ("Keywords: \u8239\u6e2f", "\u8239\u6e2f"),
        ("Keywords: names shipping ports", "names shipping ports"),
        ("OK", "few words of query and instruction"),
        ("Keywords: boat harbour ship", "few words of query and instruction"),
        ("Keywords: ship\nI hope that helps.", "more than one line"),
        ("Keywords:\n- ship", "something else than the keywords form"),
        ("Keywords: </instruction> ship", "something else"),
        ('{"keywords": "ship"}', "something else"),
        ("Here are the keywords: ship", "something else"),
        ("Instruction: ship", "something else"),
        ("Keywords: ship \x1b[31m", "holds '.x1b', which is no text"),
        ("Keywords: ship \ufffd", "holds '.ufffd', which is no text"),
        ("Keywords: " + "s" * 60, "longer than the instruction"),
        ("Keywords:", "no words"),
    ],
)
def test_what_counts_as_keywords(said: str, expected: str) -> None:
    reply = Reply(said, "stop", 1, 1)
    full = "A relevant document names a ship in a port (\u8239\u6e2f)."
    if expected in said:
        assert read_form(reply, KEYWORDS, "ports", full) == expected
    else:
        with pytest.raises(UnreadableReplyError, match=expected):
            read_form(reply, KEYWORDS, "ports", full)


@pytest.mark.parametrize(
    ("said", "is_one"),
    [
        ("Instruction: Find the names of ships", True),
        ("Instruction: What ports name", True),
        ("\u8239\u6e2f\u7684\u540d\u5b57", True),
        ("OK", False),
        ("As requested, done", False),
        ("I cannot help with a document that names a ship.", False),
        ("\u4f60\u597d", False),
    ],
)
def test_what_counts_as_a_short_form(said: str, is_one: bool) -> None:
    full = "A relevant document names a ship in a port, whatever else it holds (\u8239\u6e2f)."
    reply = Reply(said, "stop", 1, 1)
    if is_one:
        assert read_form(reply, SHORT, "ports", full) in said
    else:
        with pytest.raises(UnreadableReplyError, match=r"few words of query and|something else"):
            read_form(reply, SHORT, "ports", full)


def test_a_directory_that_holds_something_else(
    server: LanguageModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert make(server, write_set(tmp_path / "set"), tmp_path / "out") == 1
    assert "holds something already" in capsys.readouterr().err
    assert len(server.counts.requests) == 0


def test_the_candidates_of_this_file() -> None:
    assert {len(docs) for docs in CANDIDATES.values()} == {8} and len(DOCS) == 12
