"""Descriptions of tables and tables for questions by a language model, which a local server stands in for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import mteb
import pytest
from language_model_faults import in_turn
from language_model_replies import Messages
from language_model_server import LanguageModelServer
from retrieval_tables import CSV, QUESTIONS, WordEncoder, run_of, small_task, write_small

from evaluators.judge import Endpoint, LanguageModel, PromptedAsking, Reply, Sampling
from evaluators.judge.reply import UnreadableReplyError
from evaluators.plugin import evaluate
from evaluators.plugin.models import BM25
from tcr_tasks.diagnostics.models import encoded_once
from tcr_tasks.retrieval.augment import CRAFT, META, descriptions_planned, meta_info, query_to_table, read_prompts
from tcr_tasks.retrieval.cascade import cascade
from tcr_tasks.retrieval.multivector import multi_vector
from tcr_tasks.retrieval.printed import read_printed
from tcr_tasks.retrieval.replies import read_description, read_table


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("tcr"))


def answer(messages: Messages) -> str:
    """A description that names the table's first word; nothing usable of HTML. A table for a question of owls."""
    asked = messages[-1]["content"]
    table = re.search(r"<content>\n(.*)\n</content>", asked, re.DOTALL)
    if table is None:
        question = re.search(r"<question>\n(.*)\n</question>", asked)
        assert question is not None
        if "owls" not in question[1]:
            return "I cannot think of a table."
        return "<think>Name: no</think>Name: owls\n```csv\nowl,wingspan\neagle,150\n```"
    if "<table border" in table[1]:
        return "Theme: only this"
    if "Title:" in asked:
        return "**Title:** on towns\n**Description:** where\nthey are"
    return (
        "<think>\nTheme: what is it?</think>\nTheme: about " + table[1][:4] + "\nColumns: some\n- Values: few, 3 rows"
    )


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LanguageModelServer]:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    with LanguageModelServer(scorer=answer) as running:
        yield running


def asking(server: LanguageModelServer, sampling: Sampling = Sampling()) -> PromptedAsking:  # noqa: B008
    model = LanguageModel(Endpoint(server.url, "k", backoff=0.01), progress=False)
    return PromptedAsking(model, "stand-in", sampling, read_prompts())


def test_descriptions_are_read_before_the_tables(
    server: LanguageModelServer, small: Path, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = WordEncoder()
    model = meta_info(encoder, asking(server))
    scores = mteb.evaluate(model, small_task(small), cache=None, show_progress_bar=False).task_results[0].scores
    texts = encoder.read["document"]
    html = [t for t in texts if "<table" in t]
    assert len(texts) == 6 and len(html) == 2
    assert all(t.startswith(("city:\n<", "owl:\n<")) for t in html), "without a description the table stands alone"
    described = {t[:60].partition("Values")[0] for t in texts if t not in html}
    assert described == {"Theme: about city Columns: some ", "Theme: about owl: Columns: some "}
    assert all("Values: few, 3 rows " in t for t in texts if t not in html)
    assert scores["test"][0]["documents_without_description_share"] == pytest.approx(2 / 6)
    assert "2 of 6 replies cannot be used" in caplog.text and "no line 'Columns:'" in caplog.text
    run_of(meta_info(WordEncoder(), asking(server)), small_task(small))
    assert len(server.counts.requests) == 6, "a second run finds all replies in the store"


def test_kept_embeddings_are_of_the_same_text(server: LanguageModelServer, small: Path, tmp_path: Path) -> None:
    """mteb's cache prepares rows a second time; the description must not stand there twice."""
    plain, kept = WordEncoder(), WordEncoder()
    expected = run_of(meta_info(plain, asking(server)), small_task(small))
    assert run_of(meta_info(encoded_once(kept, tmp_path / "e"), asking(server)), small_task(small)) == expected
    assert sorted(kept.read["document"]) == sorted(plain.read["document"])
    assert not any(text.count("Theme:") > 1 for text in kept.read["document"])


def test_results_with_failed_calls_are_made_again(server: LanguageModelServer, small: Path, tmp_path: Path) -> None:
    def scores() -> dict[str, float]:
        found = evaluate(query_to_table(WordEncoder(), asking(server)), small_task(small), output_folder=tmp_path)
        return dict(found.task_results[0].scores["test"][0])

    server.faults = lambda number, body: "context_exceeded" if "owls" in str(body) else None
    assert scores()["n_failed_calls"] == 1
    server.faults = lambda number, body: None
    again = scores()
    assert (again["n_failed_calls"], again["n_unreadable_replies"]) == (0, 1)
    n = len(server.counts.requests)
    assert scores()["recall_at_1"] == again["recall_at_1"] and len(server.counts.requests) == n


def test_unreadable_replies_are_asked_for_again(server: LanguageModelServer, small: Path) -> None:
    model = query_to_table(WordEncoder(), asking(server))
    run_of(model, small_task(small))
    assert model.doubt_figures["n_unreadable_replies"] == 1
    server.scorer = lambda messages: "Name: rivers\n```csv\nriver,length\nSaar,246\n```"
    n = len(server.counts.requests)
    again = query_to_table(WordEncoder(), asking(server), again=True)
    run_of(again, small_task(small))
    assert again.doubt_figures["n_unreadable_replies"] == 0 and len(server.counts.requests) == n + 1


def test_a_misbehaving_server(server: LanguageModelServer, small: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A refused call leaves its document without description; what passes is tried again."""
    server.faults = lambda number, body: (
        "context_exceeded" if "city,mayor,area" in str(body) else None
    )  # the one as CSV
    model = meta_info(WordEncoder(), asking(server))
    found = mteb.evaluate(model, small_task(small), cache=None, show_progress_bar=False).task_results[0].scores
    assert found["test"][0]["documents_without_description_share"] == 3 / 6, "the two as HTML, too"
    assert (found["test"][0]["n_failed_calls"], found["test"][0]["n_unreadable_replies"]) == (1, 2)
    assert "descriptions: 1 of 6 calls failed; the first one" in caplog.text
    assert "descriptions: 2 of 6 replies cannot be used" in caplog.text
    server.faults = in_turn("server_error", "dropped_in_body", "truncated_json", "html_page")
    again = mteb.evaluate(meta_info(WordEncoder(), asking(server)), small_task(small), cache=None)
    scores = again.task_results[0].scores["test"][0]
    assert scores["documents_without_description_share"] == pytest.approx(2 / 6), "only HTML's are unreadable"


def test_rows_get_the_description_each_and_craft_augments_a_cascade(server: LanguageModelServer, small: Path) -> None:
    encoder = WordEncoder()
    rows = meta_info(multi_vector(encoder), asking(server))
    mteb.evaluate(rows, small_task(small), cache=None, show_progress_bar=False)
    assert "Theme: about city Columns: some Values: few, 3 rows city is Lyon. mayor is Doucet. area is 47.9." in [
        *encoder.read["document"]
    ]
    assert rows.doubt_figures["n_pieces"] == 15
    last = WordEncoder()
    craft = meta_info(cascade([(mteb.get_model(BM25), 6), (last, 3)]), asking(server), prompt=CRAFT)
    mteb.evaluate(craft, small_task(small), cache=None, show_progress_bar=False)
    assert any(t.startswith("Title: on towns Description: where they are city:\n") for t in last.read["document"])
    plain = cascade([(mteb.get_model(BM25), 6), (last, 3)])
    assert craft.mteb_model_meta.experiment_name != plain.mteb_model_meta.experiment_name


def test_questions_become_tables(server: LanguageModelServer, small: Path) -> None:
    encoder = WordEncoder()
    model = query_to_table(encoder, asking(server))
    task = small_task(small)
    found = mteb.evaluate(model, task, cache=None, show_progress_bar=False).task_results[0].scores["test"][0]
    assert "query" not in encoder.read, "a table is read as the corpus' tables are"
    assert encoder.read["document"][:2] == [QUESTIONS["q1"][3], "owls:\nowl,wingspan\neagle,150"]
    assert len(encoder.read["document"]) == len(CSV) + 2
    assert found["queries_without_table_share"] == 0.5
    assert {"group_hit_at_3", "gr_at_3"} <= found.keys()


def test_the_retrieval_instruction_is_not_asked(server: LanguageModelServer, small: Path) -> None:
    from evaluators.plugin.models import with_variant

    encoder = WordEncoder()
    task = small_task(small)
    task.instruction = "prepend"
    mteb.evaluate(with_variant(query_to_table(encoder, asking(server)), task), task, cache=None)
    assert QUESTIONS["q1"][3] in encoder.read["document"]


def test_variants_are_filed_apart(server: LanguageModelServer) -> None:
    made = [
        meta_info(WordEncoder(), asking(server)),
        meta_info(WordEncoder(), asking(server), prompt=CRAFT),
        query_to_table(WordEncoder(), asking(server)),
        meta_info(WordEncoder(), asking(server, Sampling(temperature=0.5))),
        WordEncoder(),
    ]
    assert len({m.mteb_model_meta.experiment_name for m in made}) == 5


# --- replies -----------------------------------------------------------------------------------------------------


def reply(text: str, finish: str = "stop") -> Reply:
    return Reply(text, finish, 0, 0)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (reply(""), "empty"),
        (reply("Title: a\nDescription: b", "length"), "cut off"),
        (reply("Title: a"), "no line 'Description:'"),
        (reply("Title:\nDescription: b"), "nothing after 'Title:'"),
        (reply("Title: a\nDescription: " + "b " * 5000), "6000 at most"),
        (reply("Title: a\nDescription: b</think>no"), "no line 'Title:'"),
    ],
)
def test_unusable_descriptions(given: Reply, error: str) -> None:
    with pytest.raises(UnreadableReplyError, match=error):
        read_description(given, ("Title", "Description"))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a,b\n1,2", "no name with a table"),
        ("Name: x\n```csv\na,b\n```", "no CSV with a header and a row"),
        ("Name: x\n```csv\na,b\n1\n```", "no CSV with a header and a row"),
        ("Name: x\n```csv\na,b\n" + "1,2\n" * 5000 + "```", "12000 at most"),
    ],
)
def test_unusable_tables(text: str, error: str) -> None:
    with pytest.raises(UnreadableReplyError, match=error):
        read_table(reply(text))


def test_the_last_table_counts() -> None:
    text = "Name: first\n```csv\na\n1\n```\nBetter:\n**Name:** second one\n\n```\nb,c\n2,3\n```"
    assert read_table(reply(text)) == "second one:\nb,c\n2,3\n\n\n"


def test_of_long_documents_the_beginning_is_shown(
    server: LanguageModelServer, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, prose = "n:\na,b\n" + "".join(f'{i},"x, y"\n' for i in range(100)) + "\n\n", "word " * 400
    monkeypatch.setattr("tcr_tasks.retrieval.augment._LONGEST_TABLE", 200)
    planned = list(descriptions_planned(asking(server), META, ["x", table, prose]))
    (short,), (cut,), (begun,) = (one.tables for one in planned)
    assert short == "x"
    read = read_printed(cut)
    assert read is not None and read.header == ("a", "b") and read.rows[0] == ("0", "x, y") and 5 < len(read.rows) < 100
    assert len(begun) == 1000 and planned[2].request.messages[-1]["content"].count("word") == 200
    model = meta_info(WordEncoder(), asking(server))
    monkeypatch.setattr("tcr_tasks.retrieval.augment._LONGEST_TABLE", 30)
    run_of(model, small_task(small))
    assert 0 < model.doubt_figures["documents_shortened_for_description_share"] < 1


def test_prompts_have_their_fields() -> None:
    assert set(read_prompts()) == {META, CRAFT, "q2t"}
