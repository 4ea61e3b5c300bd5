"""`mteb-beyond check-submission`: is a folder of results fit for mteb's results repository?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hub_cards.submission_scores import Finding


def add_submission_commands(action: Any) -> None:
    """Add ``mteb-beyond check-submission``."""
    command = action.add_parser(
        "check-submission",
        help="what must be fixed before results go to mteb's results repository; exit code 1 if anything",
    )
    command.add_argument("results", metavar="RESULTS", help="the --output-folder of `mteb-beyond run`")
    command.add_argument(
        "--dry-run",
        metavar="FOLDER",
        help="let mteb submit a copy of the results to a repository in this new folder, up to the commit; nothing is "
        "sent anywhere",
    )
    command.add_argument(
        "--repository",
        metavar="CLONE",
        help="for --dry-run: your clone of the results repository, which is read only (default: an empty one)",
    )
    command.set_defaults(func=_check_submission)


def _check_submission(args: argparse.Namespace) -> int:
    from hub_cards.submission_checks import submission_findings

    if args.repository is not None and args.dry_run is None:
        raise ValueError("--repository is for --dry-run FOLDER")
    folder = Path(args.results)
    findings = submission_findings(folder)
    print(report(findings, folder))
    to_fix = any(finding.must_be_fixed for finding in findings)
    if args.dry_run is not None:
        if to_fix:
            print("no commit was tried: fix the above first")
        else:
            from hub_cards.submission_dry_run import dry_run

            repository = None if args.repository is None else Path(args.repository)
            print(dry_run(folder, Path(args.dry_run), repository))
    return 1 if to_fix else 0


def report(findings: Sequence[Finding], folder: Path) -> str:
    """The findings as text: a numbered list of what must be fixed, and what is good to know."""
    must = [finding for finding in findings if finding.must_be_fixed]
    lines = [f"{len(must)} to fix before submitting" if must else "nothing to fix before submitting"]
    for number, finding in enumerate(must, 1):
        lines += [f"{number:3d}. {_shown(finding.place, folder)}: {finding.problem}", f"     -> {finding.remedy}"]
    known: dict[str, list[str]] = {}
    for finding in findings:
        if not finding.must_be_fixed:
            known.setdefault(finding.problem, []).append(_shown(finding.place, folder))
    if known:
        lines.append("good to know")
    for problem, places in known.items():
        lines += [f"  -  {problem}", *(f"       {place}" for place in places)]
    return "\n".join(lines)


def _shown(place: Path, folder: Path) -> str:
    base = folder.expanduser()
    return str(place.relative_to(base) if place.is_relative_to(base) else place)
