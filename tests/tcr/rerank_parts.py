"""What the tests of reranking share: saved first stages, a rule-based translator, models that know the truth."""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from language_model_replies import Messages
from mteb.models import ModelMeta

from evaluators.judge import Endpoint, LanguageModel, Sampling, Store
from tcr_tasks.builder.kinds import name_words
from tcr_tasks.reranking.asking import Asking
from tcr_tasks.reranking.command import add_rerank_command
from tcr_tasks.reranking.pool import Context, Pool
from tcr_tasks.sample_sources import SOURCES
from tcr_tasks.tasks import SAMPLE, TCRTask

NOWHERE = Context(None, "test", "default", {})


def save_predictions(folder: Path, task: str, run: Mapping[str, Mapping[str, float]], model: str = "t/first") -> Path:
    """A file as mteb writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{task}_predictions.json"
    meta = {"model_name": model, "revision": "1"}
    path.write_text(json.dumps({"mteb_model_meta": meta, "default": {"test": run}}), encoding="utf-8")
    return path


def asking(url: str, store: Path, **more: Any) -> Asking:
    """A model behind the test's server, with a store of its own."""
    endpoint = Endpoint(base_url=url, api_key="k", attempts=2, backoff=0.01, concurrency=4)
    return Asking(LanguageModel(endpoint, Store(store), progress=False), "m", Sampling(), **more)


def pool(candidates: Mapping[str, Sequence[str]], documents: Mapping[str, str] | None = None) -> Pool:
    """A pool whose question and table texts are made of the ids."""
    tables = {table for listed in candidates.values() for table in listed}
    texts = documents or {table: f"{table}:\na,b\n1,{table}\n" for table in tables}
    return Pool({query: f"question {query}" for query in candidates}, candidates, texts)


def command(*arguments: str | Path) -> int:
    """`mteb-beyond tcr rerank`, and its exit code."""
    parser = argparse.ArgumentParser()
    add_rerank_command(parser.add_subparsers())
    parsed = parser.parse_args(["rerank", *map(str, arguments)])
    return int(parsed.func(parsed))


def says(messages: Messages) -> str:
    """What each prompt asks for, however wrong."""
    asked = str(messages[-1]["content"])
    if "Answer: yes or no" in asked:
        return f"Answer: {'yes' if len(asked) % 2 else 'no'}"
    if '"ranking"' in asked:
        return listed(["T3", "T1"])
    return json.dumps({"columns": {"a": {"kind": "text", "headers": ["site", "Site"]}}, "sql": "SELECT a FROM t"})


def rows_of(out: Path) -> list[dict[str, str]]:
    """What the command wrote into results.csv."""
    with (out / "results.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def template_sample(folder: Path) -> Path:
    """The sample with each question in its template form."""
    shutil.copytree(SAMPLE, folder)
    groups = pq.read_table(folder / "groups.parquet")
    template = dict(zip(groups["query-id"].to_pylist(), groups["question_template"].to_pylist(), strict=True))
    queries = pq.read_table(folder / "queries.parquet")
    texts = pa.array([template[query] for query in queries["_id"].to_pylist()])
    changed = queries.set_column(queries.column_names.index("text"), "text", texts)
    pq.write_table(changed, folder / "queries.parquet")
    return folder


class TruthfulCrossEncoder:
    """Scores 1 for the pair of a question and the table that answers it, 0 for all others; remembers the pairs."""

    def __init__(self, model_name: str = "t/truth", revision: str | None = "1", **kwargs: Any) -> None:
        self.answers: dict[str, str] = {}
        self.pairs: list[tuple[str, str]] = []
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": model_name, "revision": revision, "model_type": ["cross-encoder"]}
        )

    def predict(self, inputs1: Any, inputs2: Any, **kwargs: Any) -> list[float]:
        sides = ([text for batch in side for text in batch["text"]] for side in (inputs1, inputs2))
        pairs = list(zip(*sides, strict=True))
        self.pairs += pairs
        return [float(self.answers.get(question) == table) for question, table in pairs]


def shuffled_run(task: TCRTask, seed: int = 0) -> dict[str, dict[str, float]]:
    """Every table for every question, in a random order in which the group tends to stand above the others."""
    assert task.data is not None
    out = {}
    for question in task.data.side["questions"]:
        rng = random.Random(f"{seed}:{question.id}")
        chance = {table: rng.random() + (0.5 if table in question.group else 0) for table in task.data.side["tables"]}
        out[question.id] = chance
    return out


# --- the translator ----------------------------------------------------------------------------------------------

_AGGREGATES = {"sum": "SUM", "average": "AVG", "minimum": "MIN", "maximum": "MAX", "count": "COUNT"}
_FORM = re.compile(
    r"(?:What is|Please find|List|Which|Show me|Get|Compute|Find|Please calculate) (?:the )?"
    r"(?:(?P<agg>sum|average|minimum|maximum|count) (?:value )?of )?(?P<target>.+?)"
    r"(?: values)?(?: correspond(?:ing)? to)?(?: for)?(?: the)?(?: rows| entries| records)?"
    r"(?: where| when| with| satisfying| to)? (?P<conds>\S+ (?:is|=|!=|<=|>=|<|>) .+?)[.?]"
)
_CONDITION = re.compile(r"(\S+) (is|=|!=|<=|>=|<|>) (.+)")
_KINDS = {"date": "date", "month": "date", "hour": "date", "text": "text"}


def translate(messages: Messages) -> str:
    """A template question as the query that AAR-Exec's prompt asks for, by rules and the sample's own word lists."""
    asked = str(messages[-1]["content"])
    question = re.search(r"<question>\n(.*?)\n</question>", asked, re.DOTALL)
    tables = re.search(r"<tables>\n(.*?)\n</tables>", asked, re.DOTALL)
    assert question is not None and tables is not None
    found = _FORM.fullmatch(question[1].replace("&lt;", "<"))
    assert found is not None, question[1]
    conditions = [_CONDITION.fullmatch(part) for part in re.split(" AND | and ", found["conds"])]
    parts = [condition.groups() for condition in conditions if condition is not None]
    assert len(parts) == len(conditions), question[1]
    names = list(dict.fromkeys([*(column for column, _, _ in parts), found["target"]]))
    source = next(s for s in SOURCES.values() if set(names) <= set(s.columns))
    headers = {cell.split(": ")[0] for line in tables[1].splitlines() for cell in line.split(" | ")[1:]}
    columns = {}
    for name in names:
        column = source.columns[name]
        words = {" ".join(name_words(header)) for header in column.headers}
        same = [h for h in sorted(headers) if " ".join(name_words(re.sub(r" \(.*", "", h))) in words]
        columns[name] = {"kind": _KINDS.get(column.kind, "number"), "headers": same}
    tests = []
    for name, operator, value in parts:
        words = source.columns[name].choices.get(value, (value,))
        quoted = [word if columns[name]["kind"] == "number" else f"'{word}'" for word in words]
        sign = {"is": "=", "!=": "<>"}.get(operator, operator)
        tests.append(
            f"{name} IN ({', '.join(quoted)})" if len(quoted) > 1 and sign == "=" else f"{name} {sign} {quoted[0]}"
        )
    target = found["target"]
    selected = f"{_AGGREGATES[found['agg']]}({target})" if found["agg"] else target
    return json.dumps({"columns": columns, "sql": f"SELECT {selected} FROM t WHERE {' AND '.join(tests)}"})


def listed(texts: Iterable[str]) -> str:
    """A ranking as the model is to write it."""
    return json.dumps({"ranking": list(texts)})
