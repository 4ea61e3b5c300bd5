"""Questions in words by template and by a language model, which a local server stands in for; the command."""

from __future__ import annotations

import json
import random
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from builder_tables import HEADER, shops, write_sqlite

sys.path.insert(0, str(Path(__file__).parent.parent / "judge"))

from language_model_replies import Messages
from language_model_server import LanguageModelServer

from tcr_tasks.builder.command import add_build_command
from tcr_tasks.builder.paraphrase import paraphrase_fault, read_headers, read_prompts, unnamed_columns
from tcr_tasks.builder.wording import column_words, natural_question
from tcr_tasks.queries import Condition, Query

ARGUMENTS = ("--queries", "3", "--tokens", "200,300", "--top-k", "1", "--types", "em=2,SF=1", "--seed", "3")


@pytest.mark.parametrize(
    ("name", "words"),
    [("zip_code", "zip code"), ("zipCode", "zip code"), ("% of GDP", "% of GDP"), ("größe", "größe"), ("A-B", "a b")],
)
def test_column_words(name: str, words: str) -> None:
    assert column_words(name) == words


def test_natural_questions_hold_everything_that_is_asked() -> None:
    query = Query("SA", (Condition("openedOn", ">=", "2012-01-31"), Condition("n", "!=", 5)), "net_gain", "AVG")
    count = Query("SA", query.conditions, "net_gain", "COUNT")
    seen = set()
    for seed in range(40):
        text = natural_question(query, random.Random(seed))
        seen.add(text)
        assert re.search("(average|mean) net gain", text)
        assert re.search("opened on is (at least|no less than) “2012-01-31” and the n is (not|other than) 5", text)
        assert re.search("[Hh]ow many|count", natural_question(count, random.Random(seed)))
    assert len(seen) > 8


def test_other_names_are_names_of_one_column() -> None:
    reply = (
        "So:\n- city: town | town (x 10) | town (+ 3) | place | City\nzip: postal code | place\nstaff: \n"
        "unknown: x | y\n**opened**: since"
    )
    assert read_headers(reply, ["city", "zip", "staff", "opened"]) == {
        # "town (x 10)" and "town (+ 3)" would tell of shifts; "place" would name two columns; "City" is its own name.
        "city": ("town",),
        "zip": ("postal code",),
        "opened": ("since",),
    }
    assert read_headers("city: zip code | townName\nzipCode: town_name | post", ["city", "zipCode"]) == {
        "zipCode": ("post",)
    }


def test_columns_that_a_wording_does_not_name() -> None:
    query = Query("SF", (Condition("net_gain", "<=", 7), Condition("openedOn", "=", "2012-01-31")), "staff")
    assert unnamed_columns("Who gained at most 7 in shops that were opening on 2012-01-31?", query) == ["staff"]
    assert unnamed_columns("Staff where it is at most 7 and 2012-01-31?", query) == ["net_gain", "openedOn"]


def test_prompts_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none of question\.txt, headers\.txt"):
        read_prompts(tmp_path)
    (tmp_path / "question.txt").write_text("---\n---\nSay {question} otherwise.")
    with pytest.raises(ValueError, match="expected the fields"):
        read_prompts(tmp_path)


# --- with a language model ---------------------------------------------------------------------------------------


def reply(messages: Messages) -> str:
    """Other words for a question, which lose its values where staff is a condition; other names for columns."""
    asked = messages[-1]["content"]
    question = re.search(r"<question>\n(.*)\n</question>", asked)
    if question is None:
        return "city: town | municipality\nrevenue: turnover"
    return "Question: " + (
        re.sub("[0-9]|“.*?”", "", question[1]) if "the staff is" in question[1] else f"Please: {question[1]}"
    )


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LanguageModelServer]:
    monkeypatch.setenv("MTEB_BEYOND_STORE", str(tmp_path / "store.sqlite"))
    with LanguageModelServer(scorer=reply) as running:
        yield running


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sqlite(tmp_path_factory.mktemp("s") / "trade.sqlite", {"shops": (HEADER, shops(200))})


def command(*arguments: str | Path) -> int:
    parser = ArgumentParser()
    add_build_command(parser.add_subparsers())
    parsed = parser.parse_args(["build", *map(str, arguments)])
    return int(parsed.func(parsed))


def texts(out: Path) -> dict[str, str]:
    return {row["_id"]: row["text"] for row in pq.read_table(out / "queries.parquet").to_pylist()}


def test_the_command_with_a_language_model(
    source: Path, server: LanguageModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asking = ("--llm", "m", "--llm-base-url", server.url)
    out = tmp_path / "out"
    assert command(source, "--out", out, *ARGUMENTS, *asking, "--dry-run") == 0
    told = capsys.readouterr().out
    assert "1 usable tables; 3 of 3 questions {'EM': 2, 'SF': 1}" in told and "4 calls to make" in told
    assert not out.exists()
    assert command(source, "--out", out, *ARGUMENTS, *asking) == 0
    plain = {
        row["query-id"]: natural_question(Query.from_json(row["query"]), random.Random(f"3:wording:{row['query-id']}"))
        for row in pq.read_table(out / "groups.parquet").to_pylist()
    }
    reworded = texts(out)
    lost = {q for q, text in plain.items() if "the staff is" in text}
    assert len(plain) == 3 and len(lost) == 1
    assert reworded == {q: text if q in lost else f"Please: {text}" for q, text in plain.items()}
    report = json.loads((out / "report.json").read_text())
    assert report["wording"]["n_paraphrased"] == 2
    assert report["wording"]["n_not_paraphrased"] == {"the paraphrase lost a value": 1}
    recorded = report["record"]["language_model"]
    assert recorded["model"] == "m" and recorded["prompts"] == {n: p.version for n, p in read_prompts().items()}
    assert (recorded["sampling"]["max_tokens"], recorded["sampling"]["extra"]) == (512, {})
    assert report["wording"]["headers"] == {"columns without another name": len(HEADER) - 2}
    named = {}
    for row in pq.read_table(out / "tables.parquet").to_pylist():
        for header, column in json.loads(row["canonical_columns"]).items():
            named.setdefault(column, set()).add(re.sub(r" \(.*", "", header).lower())
    assert named["city"] & {"town", "municipality"} and named["staff"] == {"staff"}
    # A rejected paraphrase gives way to the question by template.
    path = out / "work" / "review.csv"
    rejected = next(q for q in plain if q not in lost)
    text = path.read_text(encoding="utf-8-sig")
    row = next(line for line in text.splitlines() if line.startswith(f"{rejected},wording"))
    path.write_text(text.replace(row, row.removesuffix(",,,") + ",drop,,"), encoding="utf-8-sig")
    assert command(source, "--out", out, *ARGUMENTS, *asking, "--review", path) == 0
    assert texts(out) == reworded | {rejected: plain[rejected]}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--queries", "0"), "--queries must be at least 1"),
        (("--prompts", "x"), "--prompts are for a language model"),
        (("--plain", "2"), "probabilities"),
    ],
)
def test_wrong_arguments_are_named(source: Path, tmp_path: Path, wrong: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        command(source, "--out", tmp_path / "out", *wrong)


@pytest.mark.parametrize("wrong", [("--tokens", "9"), ("--tokens", "9,5"), ("--types", "XX=1"), ("--types", "EM=0")])
def test_arguments_that_cannot_be_read(source: Path, wrong: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        command(source, "--out", "x", *wrong)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Which staff is listed with a gain of no more than 7?", None),
        ("Where the gain is at most 7, who is the staff?", None),
        ("Which staff is listed with a gain of at most 17?", "lost a value"),
        ("Which staff is listed with a gain above 7?", "compares otherwise"),
        ("Which staff is listed with a gain of no less than 7?", "compares otherwise"),
        ("Which staff has a gain of at most 7? Note: see table 3.", "says more"),
    ],
)
def test_what_is_wrong_with_a_paraphrase(text: str, fault: str | None) -> None:
    found = paraphrase_fault(text, Query("SF", (Condition("gain", "<=", 7),), "staff"))
    assert found is None if fault is None else fault in str(found)
