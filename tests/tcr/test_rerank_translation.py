"""AAR-Exec: one query over tables with other headers, what a reply must hold, and what is counted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rerank_parts import NOWHERE, asking, pool

from evaluators.judge.reply import Reply, UnreadableReplyError
from tcr_tasks.reranking.execution import Execution
from tcr_tasks.reranking.pool import ANSWERED, LACKS
from tcr_tasks.reranking.translation import Named, Sheet, Translation, read_translation
from tcr_tasks.serialize import TableFormat
from tcr_tasks.tables import Table

from language_model_replies import Messages  # isort: skip
from language_model_server import LanguageModelServer  # isort: skip


def reply(text: str) -> Reply:
    return Reply(text, "stop", 0, 0)


def table(path: str, csv: str) -> Table:
    return Table("db", path, path, TableFormat.CSV, csv)


QUERY = Translation(
    {"a": Named("text", ("Town", "city")), "b": Named("number", ("staff (x 10)", "staff"))},
    "SELECT a FROM t WHERE b = 12",
)


@pytest.mark.parametrize(
    ("csv", "answers"),
    [
        ("city,staff\nRome,12\n", "answered"),
        ("TOWN,Staff (x 10)\nRome,120\n", "answered"),
        ("town,staff\nRome,XII\n", "answered"),
        ("town,staff\n,12\n", "no answer"),
        ("town,staff (x 10)\nRome,12\n", "no answer"),
        ("town,people\nRome,12\n", "lacks a column"),
        ("other,people\nRome,12\n", "lacks a column"),
        ("town,town,staff\nRome,Rome,12\n", "lacks a column"),
        ("town,staff\n", "no answer"),
    ],
)
def test_one_query_on_tables_with_other_headers(csv: str, answers: str) -> None:
    assert QUERY.run(Sheet(table("t", csv))) == answers


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({"sql": "SELECT a FROM t"}, "no columns"),
        ({"columns": {}, "sql": "SELECT a FROM t"}, "no columns"),
        ({"columns": {"a": {"kind": "text", "headers": ["x"]}}, "sql": " "}, "no text"),
        ({"columns": {"a": {"kind": "text", "headers": ["x"]}}, "sql": ["SELECT"]}, "no text"),
        ({"columns": {"a b": {"kind": "text", "headers": ["x"]}}, "sql": "S"}, "another form"),
        ({"columns": {"a`); DROP": {"kind": "text", "headers": ["x"]}}, "sql": "S"}, "another form"),
        ({"columns": {"a": ["x"]}, "sql": "S"}, "another form"),
        ({"columns": {"a": {"kind": "money", "headers": ["x"]}}, "sql": "S"}, "no known kind"),
        ({"columns": {"a": {"kind": ["text"], "headers": ["x"]}}, "sql": "S"}, "no known kind"),
        ({"columns": {"a": {"kind": "text", "headers": "x"}}, "sql": "S"}, "no list of headers"),
        ({"columns": {"a": {"kind": "text", "headers": [1]}}, "sql": "S"}, "no list of headers"),
        ({"columns": {c: {"kind": "text", "headers": []} for c in ("a", "A")}, "sql": "S"}, "twice"),
        ({"columns": {f"c{n}": {"kind": "text", "headers": []} for n in range(21)}, "sql": "S"}, "more than 20"),
    ],
)
def test_translations_that_cannot_be_read(found: dict[str, object], why: str) -> None:
    with pytest.raises(UnreadableReplyError, match=why):
        read_translation(reply(json.dumps(found)))


def test_execution_counts_what_does_not_run(server: LanguageModelServer, tmp_path: Path) -> None:
    tables = {"t1": table("t1", "a,b\n1,2\n"), "t2": table("t2", "a\n1\n"), "t3": table("t3", "a,b\n2,2\n")}
    column = {"kind": "number", "headers": ["a"]}
    said = {
        "q1": {"columns": {"a": column, "b": {**column, "headers": ["b"]}}, "sql": "SELECT b FROM t WHERE a = 2"},
        "q2": {"columns": {"a": column}, "sql": "ATTACH 'x' AS y"},
        "q3": {"columns": {"a": column}, "sql": "SELECT a FROM"},
        "q4": "no",
        "q5": {"columns": {"a": column}, "sql": "SELECT a FROM t WHERE a = 5"},
        "q6": {"columns": {"a": column}, "sql": "SELECT count(a) FROM t"},
    }

    def scorer(messages: Messages) -> str:
        found = re.search(r"question (q\d)", str(messages[-1]["content"]))
        assert found is not None
        return json.dumps(said[found[1]])

    server.scorer = scorer
    way = Execution(asking(server.url, tmp_path / "s.sqlite"), tables)
    found = way.rerank(pool({q: ["t1", "t2", "t3"] for q in said}), NOWHERE)
    assert found.orders == {q: ["t3", "t1", "t2"] if q == "q1" else ["t1", "t2", "t3"] for q in said}
    assert found.counts == {
        ANSWERED: 4,
        "questions that every table answers": 1,
        LACKS: 1,
        "tables on which the query was refused": 3,
        "tables on which the query failed": 3,
        "unreadable replies": 1,
        "questions without an answering table": 3,
    }
    assert found.usage.calls == 6
    # Of one candidate nothing was to be told.
    alone = way.rerank(pool({"q6": ["t1"]}), NOWHERE)
    assert alone.counts[ANSWERED] == 1 and "questions that every table answers" not in alone.counts
    with pytest.raises(ValueError, match=r"query 'q': AAR-Exec has no cells of 't9'"):
        way.rerank(pool({"q": ["t1", "t9"]}), NOWHERE)
