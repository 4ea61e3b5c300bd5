"""Writes a finished benchmark with its report into the folder that the user named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluators.files import write_text
from evaluators.plugin.dataset import Card
from tcr_tasks.builder.output import COLUMNS, BuiltQuestion, BuiltTable, write_layout, write_tcr_open
from tcr_tasks.builder.plans import Options
from tcr_tasks.builder.report import markdown


def write_benchmark(
    out: Path,
    options: Options,
    tables: Sequence[BuiltTable],
    questions: Sequence[BuiltQuestion],
    report: Mapping[str, Any],
) -> None:
    """Write the layouts that were asked for and the report, in place of what an earlier run wrote."""
    made, made_open = out / "work" / "made", out / "work" / "made-open"
    for folder in (made, made_open):
        shutil.rmtree(folder, ignore_errors=True)
    # All of it before anything of an earlier run goes: a layout may refuse these tables.
    if options.layout != "tcr-open":
        write_layout(made, tables, questions, _card(options, report))
    if options.layout != "own":
        write_tcr_open(made_open, tables, questions)
    # What an earlier run wrote must not stay beside this one's.
    for file in (*out.glob("*.parquet"), out / "README.md"):
        file.unlink(missing_ok=True)
    shutil.rmtree(out / "tcr-open", ignore_errors=True)
    if made.is_dir():
        for file in sorted(made.iterdir()):
            file.replace(out / file.name)
        made.rmdir()
    if made_open.is_dir():
        made_open.replace(out / "tcr-open")
    write_text(out / "report.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    write_text(out / "report.md", markdown(report))


def _card(options: Options, report: Mapping[str, Any]) -> Card:
    written = report["written"]
    kind = "source tables that share a schema, as they are" if options.natural else "sub-tables of one source table"
    return Card(
        title=report["title"],
        license=options.license,
        tags=("table-retrieval", "answerability", "tcr-bench"),
        body=(
            "Table retrieval in the manner of *Semantically Similar, Yet Not Answerable: Diagnosing the "
            "Semantic-Answerability Gap in Table RAG* (TCR-Bench), built by `mteb-beyond tcr build`. **It is not "
            f"TCR-Bench**, and scores on it compare with no published number.\n\n{written['n_questions']} questions "
            f"({', '.join(f'{n} {t}' for t, n in written['by_type'].items())}) over {written['n_tables']} tables; each "
            f"question's group are {kind}. Every question was executed on every table that has its columns: exactly "
            "one answers it (columns count as the same under names in any style or abbreviated; that other words mean "
            "the same only a person can see). `report.md` tells how it came about.\n\n" + COLUMNS
        ),
    )
