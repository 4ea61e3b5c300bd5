"""``mteb-beyond ifir report`` and ``mteb-beyond ifir errors``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import mteb
from rich.console import Console

from evaluators.plugin.report_options import add_report_options
from ifir_tasks.report.errors import (
    SPECIALISED,
    Thresholds,
    analyse,
    can_tell_rare_terms,
    read_rows,
    type_counts,
    write_csv,
)
from ifir_tasks.report.layout import html_page, markdown, print_report
from ifir_tasks.report.results import load_results
from ifir_tasks.report.signs import length_rule
from ifir_tasks.report.tables import report_sections
from ifir_tasks.tasks import IFIRTask


def add_report_command(action: Any) -> None:
    """Add ``report`` and ``errors`` to the sub-commands of ``mteb-beyond ifir``."""
    _add_report(action)
    _add_errors(action)


def _add_report(action: Any) -> None:
    command = action.add_parser("report", help="print results in the shapes of the IFIR paper's tables")
    add_report_options(command)
    command.add_argument(
        "--out",
        metavar="PATH",
        help="write it there instead: FILE.md, FILE.html (with figures), or a folder for both",
    )
    command.add_argument("--figures", metavar="FILE.html", help="write Figures 3 and 4 there, as one page")
    command.set_defaults(func=_report)


def _add_errors(action: Any) -> None:
    command = action.add_parser(
        "errors", help="list the instructions that are low in nDCG and in InstFol, with what may make them hard"
    )
    command.add_argument("--task", required=True, metavar="TASK", help="an IFIR task, such as IFIRFiQAInstFol")
    command.add_argument(
        "--predictions", required=True, metavar="DIR", help="the --prediction-folder of one model's judged run"
    )
    command.add_argument("--out", required=True, metavar="FILE.csv", help="the table to write")
    command.add_argument(
        "--tokenizer", metavar="DIR_OR_NAME", help="count this model's tokens (default: words between blanks)"
    )
    command.add_argument("--limit", type=int, metavar="N", help="tokens that the model reads (default: its own)")
    low = Thresholds()
    command.add_argument(
        "--quantile", type=float, default=low.low_quantile, metavar="Q", help="low: the lowest share Q (%(default)s)"
    )
    command.add_argument("--ndcg-at-most", type=float, metavar="X", help="low in nDCG: at most X, 0..1")
    command.add_argument("--instfol-at-most", type=float, metavar="X", help="low in InstFol: at most X, 1 at best")
    command.add_argument(
        "--rare",
        type=float,
        default=low.rare,
        metavar="SHARE",
        help="a term in less than this share of the passages is rare (0..1, %(default)s)",
    )
    command.set_defaults(func=_errors)


def _report(args: argparse.Namespace) -> int:
    out = _targets(args.out)
    on_its_own = [_html_file(args.figures)] if args.figures else []
    loaded = load_results(args.folder)
    sections = report_sections(loaded.models, args.published)
    if not out:
        print_report(sections, loaded.notes, Console())
    text = markdown(sections, loaded.notes)
    drawn: list[str] = []
    if on_its_own or any(path.suffix == ".html" for path in out):
        from ifir_tasks.report.figures import as_html, figures  # plotly takes a while to import

        drawn = as_html(figures(loaded.models, published=args.published != "none"))
    contents = {path: text if path.suffix == ".md" else html_page(text, drawn) for path in out}
    contents |= {path: html_page("# Figures of the IFIR report", drawn) for path in on_its_own}
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        print(f"written: {path}")
    return 0


def _targets(out: str | None) -> list[Path]:
    """The files that ``--out`` asks for."""
    if out is None:
        return []
    path = Path(out).expanduser()
    if path.suffix in (".md", ".html"):
        return [path]
    if path.suffix and not path.is_dir():
        raise ValueError(f"--out {out} must end in .md or .html, or be a folder")
    return [path / "report.md", path / "report.html"]


def _html_file(name: str) -> Path:
    path = Path(name).expanduser()
    if path.suffix != ".html":
        raise ValueError(f"--figures {name} must end in .html")
    return path


def _errors(args: argparse.Namespace) -> int:
    limits = Thresholds(
        low_quantile=args.quantile, ndcg=args.ndcg_at_most, instfol=args.instfol_at_most, rare=args.rare
    )
    out = Path(args.out).expanduser()
    if out.suffix != ".csv":
        raise ValueError(f"--out {args.out} must end in .csv")
    length = length_rule(args.tokenizer, args.limit)
    task = mteb.get_task(args.task)
    if not isinstance(task, IFIRTask):
        raise ValueError(f"{args.task} is no IFIR task with plain and instructed queries")
    task.load_data()
    found = analyse(task, read_rows(task, Path(args.predictions).expanduser()), length, limits)
    write_csv(found.low, out)
    print(
        f"{len(found.low)} of {found.n_scored} instructions have nDCG@20 <= {found.ndcg_at_most:.4f} and InstFol@20 <= "
        f"{found.instfol_at_most:.4f}; {found.n_unscored} more lack one of the two (no relevant passage, or no judge's "
        "score) and are left out"
    )
    for name, n in type_counts(found.low).items():
        print(f"  {n:4d} {name or 'without a strong sign'}")
    if not can_tell_rare_terms(found.n_passages, limits):
        print(
            f"rare terms are no sign here: {found.n_passages} passages are too few to tell them from ordinary words "
            f"(--rare {limits.rare:g} needs more than {1 / limits.rare:.0f}), so {SPECIALISED!r} is not suggested"
        )
    limit = "not known" if length.limit is None else str(length.limit)
    print(f"length in {length.unit}, limit of the model: {limit}")
    print(f"written: {out}; its types are suggestions, to be confirmed in the column confirmed_type")
    return 0
