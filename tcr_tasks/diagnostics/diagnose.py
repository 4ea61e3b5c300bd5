"""The whole of `mteb-beyond tcr diagnose`: model and data in, results, report and figures out."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from evaluators.files import only_run, write_text
from evaluators.metrics.ranking import NotFiniteError
from evaluators.plugin.dataset import fingerprint, is_dataset_directory
from evaluators.plugin.models import loaded
from tcr_tasks.conduct import terminated_as_interrupted, without_tqdm_bars
from tcr_tasks.data import authors_patterns
from tcr_tasks.diagnostics.base import Base
from tcr_tasks.diagnostics.catalogue import CATALOGUE, Diagnostic
from tcr_tasks.diagnostics.consistency import COMPARISONS
from tcr_tasks.diagnostics.models import encoded_once
from tcr_tasks.diagnostics.reading import read_base
from tcr_tasks.diagnostics.report import report
from tcr_tasks.diagnostics.results import Finding, Origin, Store, safe_name, tidy_rows, write_rows
from tcr_tasks.diagnostics.running import VERSION, comparisons, pending, run
from tcr_tasks.options import require_folder
from tcr_tasks.tasks import SAMPLE

logger = logging.getLogger(__name__)

FINDINGS, EMBEDDINGS, FIGURES, REPORT = "findings", "embeddings", "figures", "report.md"


@dataclass(frozen=True)
class Order:
    """What to do.

    Attributes:
        model: a name that mteb knows, or a directory.
        data: a TCR dataset; ``None``: the embedded sample.
        only: families of the catalogue; empty: all.
        out: where everything goes.
        batch_size: texts encoded at a time.
        seed: of everything random.
    """

    model: str
    data: Path | None
    only: tuple[str, ...]
    out: Path
    batch_size: int = 32
    seed: int = 0


def diagnose(order: Order) -> list[Path]:
    """Run what is missing and write results, report and figures of all that the folder holds of these data.

    Returns:
        The files written.

    Raises:
        FileNotFoundError, DatasetError, ValueError: if model, data or folder cannot be used; the message says why.
        NotFiniteError: after everything is written, if the model failed in some diagnostics.
        BlockingIOError: if another run uses the folder.
    """
    require_folder(order.out)
    base = read_base(order.data)
    store = Store(order.out / FINDINGS)
    _require_same_data(store, base.name, order)
    model, name, revision = loaded(order.model)
    origin = Origin(name, revision, base.name, data_revision(order.data), order.seed, VERSION)
    chosen = [d for d in CATALOGUE if not order.only or d.family in order.only]
    with only_run(order.out), without_tqdm_bars(), terminated_as_interrupted():
        kept, todo = pending(chosen, origin, store)
        if kept:
            logger.warning("%d of %d diagnostics are in %s already", len(kept), len(chosen), order.out)
        once = encoded_once(model, order.out / EMBEDDINGS / safe_name(name) / safe_name(revision))
        try:
            _run_all(once, base, todo, origin, store, order.batch_size)
        finally:
            # What is finished is worth a report, also after an interrupt.
            written = write_all(order.out, store, origin, base.notes)
    found = (store.read(origin, diagnostic.key) for diagnostic in chosen)
    failed = [f for f in found if f is not None and f.failed]
    if failed:
        told = ", ".join(f.diagnostic for f in failed)
        why = failed[0].reason[1] if failed[0].reason else ""
        raise NotFiniteError(
            f"{name} failed in {len(failed)} of {len(chosen)} diagnostics ({told}): {why}. What did not fail is in "
            f"{order.out / REPORT}"
        )
    return written


def _require_same_data(store: Store, name: str, order: Order) -> None:
    """Refuse a folder with findings on another dataset or with another seed, whose place new ones would take."""
    for kept in (finding.origin for finding in store.all()):
        if (kept.data, kept.seed) != (name, order.seed):
            raise ValueError(
                f"{order.out} holds findings on the dataset {kept.data} with seed {kept.seed}; those on {name} with "
                f"seed {order.seed} would replace them: name another folder with --out"
            )


def _run_all(model: Any, base: Base, todo: Sequence[Diagnostic], origin: Origin, store: Store, batch_size: int) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("diagnostics", total=len(todo))
        findings = run(model, base, todo, origin, store, batch_size)
        for number, diagnostic in enumerate(todo, 1):
            progress.update(bar, description=diagnostic.key)
            began = time.perf_counter()
            next(findings)
            progress.advance(bar)
            if not console.is_terminal:  # a bar would appear in a file at the end only
                seconds = time.perf_counter() - began
                print(f"{number} of {len(todo)}: {diagnostic.key}, {seconds:.1f} s", file=sys.stderr, flush=True)


def write_all(out: Path, store: Store, origin: Origin, notes: Sequence[str]) -> list[Path]:
    """Write results, report and figures of every model's findings on the same data with the same seed."""
    from evaluators.drawing import draw
    from tcr_tasks.diagnostics.figures import figures

    every = store.all()
    same = [f for f in every if replace(f.origin, model=origin.model, revision=origin.revision) == origin]
    if len(same) < len(every):
        logger.warning(
            "%d findings in %s are of other data, seeds or versions and left out", len(every) - len(same), out
        )
    if not same:
        return []
    models = _by_model(same)
    about = {d.key: (d.family, d.paper, dict(d.settings)) for d in CATALOGUE}
    about |= {c.key: ("consistency", c.paper, dict(c.settings)) for c in COMPARISONS}
    write_rows(out, tidy_rows((f for found in models.values() for f in found.values()), about))
    drawn: dict[str, list[Path]] = {}
    for model, found in models.items():
        drawn[model] = draw(figures(found), out / FIGURES / safe_name(model))
    shown = {model: [path.relative_to(out).as_posix() for path in paths] for model, paths in drawn.items()}
    write_text(out / REPORT, report(models, origin, notes, shown))
    listed = [out / REPORT, out / "results.csv", out / "results.parquet"]
    return [*listed, *(path for paths in drawn.values() for path in paths)]


def _by_model(findings: Sequence[Finding]) -> dict[str, dict[str, Finding]]:
    """Model -> diagnostic -> finding, in the catalogue's order, with the consistency of rankings at the end."""
    place = {d.key: at for at, d in enumerate(CATALOGUE)}
    known = sorted((f for f in findings if f.diagnostic in place), key=lambda f: place[f.diagnostic])
    revisions: dict[str, set[str]] = {}
    for finding in known:
        revisions.setdefault(finding.origin.model, set()).add(finding.origin.revision)
    out: dict[str, dict[str, Finding]] = {}
    for finding in known:
        origin = finding.origin
        several = len(revisions[origin.model]) > 1
        name = f"{origin.model}@{origin.revision[:8]}" if several else origin.model
        out.setdefault(name, {})[finding.diagnostic] = finding
    return {name: found | {c.diagnostic: c for c in comparisons(list(found.values()))} for name, found in out.items()}


def data_revision(directory: Path | None) -> str:
    """The fingerprint of a TCR dataset; ``None``: of the embedded sample."""
    place = directory or SAMPLE
    return fingerprint(place) if is_dataset_directory(place) else fingerprint(place, authors_patterns())
