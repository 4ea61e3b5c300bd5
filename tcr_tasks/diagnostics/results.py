"""What the diagnostics found: kept per diagnostic, so that a run can be resumed, and as one tidy table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evaluators.files import write_text
from tcr_tasks.diagnostics.score import Score

RESULT_COLUMNS = ("model", "revision", "data", "data_revision", "diagnostic", "family", "paper", "stratum")
VALUE_COLUMNS = ("metric", "value", "low", "high", "n", "note")
# Metrics without a value: the note says why there is none.
NOT_MEASURABLE, NOT_POSSIBLE = "not_measurable", "not_possible"
SETTING_PREFIX = "setting_"
# The note of a finding that would have geometry otherwise.
NO_EMBEDDINGS = "the model gives no embeddings that a cosine compares, so there is no geometry"


@dataclass(frozen=True)
class Origin:
    """What a finding depends on; it holds as long as none of this changes.

    Attributes:
        model, revision: the model.
        data, data_revision: the dataset's name and fingerprint.
        seed: of everything random.
        version: raised whenever the same ranking or dataset would give other numbers.
    """

    model: str
    revision: str
    data: str
    data_revision: str
    seed: int
    version: int


@dataclass(frozen=True)
class Finding:
    """What one diagnostic gave for one model.

    Attributes:
        diagnostic: its key.
        origin: what it depends on.
        reason: why there is no number, and under which metric that stands (:data:`NOT_MEASURABLE`,
            :data:`NOT_POSSIBLE`); ``None`` if there are numbers.
        notes: what a reader of the numbers should know.
        scores: the numbers; where there is a reason, at most those of the documents.
        targets, tops: query id -> target, five best documents; where each query has one target.
        hits: query id -> whether the best document is the target, whether it is in the group (0 or 1 each).
        extra: what figures need beside the numbers, as JSON values.
        failed: whether ``reason`` is a failure of the model, so that the diagnostic is tried again.
    """

    diagnostic: str
    origin: Origin
    reason: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()
    targets: dict[str, str] = field(default_factory=dict)
    tops: dict[str, list[str]] = field(default_factory=dict)
    hits: dict[str, list[int]] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    failed: bool = False

    def value(self, metric: str, stratum: str = "") -> Score | None:
        """The score of that name, or ``None``."""
        return next((s for s in self.scores if s.metric == metric and s.stratum == stratum), None)


class Store:
    """The findings in a folder, one JSON file each; a file is written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, origin: Origin, diagnostic: str) -> Path:
        """Where a finding lies; the next one of the same model and diagnostic takes its place."""
        return self.folder / safe_name(origin.model) / safe_name(origin.revision) / f"{safe_name(diagnostic)}.json"

    def read(self, origin: Origin, diagnostic: str) -> Finding | None:
        """A model's finding, whatever data it is of, or ``None`` if there is none that can be read."""
        path = self.path(origin, diagnostic)
        return _read(path) if path.is_file() else None

    def write(self, finding: Finding) -> None:
        """Keep a finding."""
        path = self.path(finding.origin, finding.diagnostic)
        write_text(path, json.dumps(asdict(finding), indent=1, allow_nan=False))

    def all(self) -> list[Finding]:
        """Every finding of every model, in the order of file names."""
        read = (_read(path) for path in sorted(self.folder.rglob("*.json")))
        return [finding for finding in read if finding is not None]


def safe_name(name: str) -> str:
    """A name as the name of a file or folder."""
    return name.replace("/", "__").replace("\\", "__")


def _read(path: Path) -> Finding | None:
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        return Finding(
            **saved
            | {
                "origin": Origin(**saved["origin"]),
                "scores": tuple(Score(**score) for score in saved["scores"]),
                "reason": None if saved["reason"] is None else tuple(saved["reason"]),
                "notes": tuple(saved["notes"]),
            }
        )
    except (ValueError, TypeError, KeyError):
        return None  # of another version of this file's format; it is made anew


def changes(kept: Origin, now: Origin) -> list[str]:
    """What differs between two origins, in words."""
    before, after = asdict(kept), asdict(now)
    return [f"{name} was {before[name]} and is {after[name]}" for name in after if before[name] != after[name]]


def tidy_rows(findings: Iterable[Finding], about: dict[str, tuple[str, str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """One row per number, or per missing number with its reason.

    Args:
        findings: of any models.
        about: diagnostic -> (family, place in the paper, settings).
    """
    rows = []
    for finding in findings:
        family, paper, settings = about[finding.diagnostic]
        origin = finding.origin
        head = {
            **dict(
                zip(RESULT_COLUMNS[:4], (origin.model, origin.revision, origin.data, origin.data_revision), strict=True)
            ),
            **dict(zip(RESULT_COLUMNS[4:7], (finding.diagnostic, family, paper), strict=True)),
        }
        named = {f"{SETTING_PREFIX}{name}": value for name, value in settings.items()}
        note = " | ".join(finding.notes)
        if finding.reason is not None:
            metric, reason = finding.reason
            told = {"metric": metric, "value": None, "low": None, "high": None, "n": 0, "note": reason}
            rows.append({**head, "stratum": "", **named, **told})
        for score in finding.scores:
            told = {k: getattr(score, k) for k in ("metric", "value", "low", "high", "n")}
            rows.append({**head, "stratum": score.stratum, **named, **told, "note": note})
    return rows


def write_rows(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write ``results.parquet`` and ``results.csv`` with the same rows; settings that a row lacks are empty."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    settings = list(dict.fromkeys(name for row in rows for name in row if name.startswith(SETTING_PREFIX)))
    kinds = {
        "value": pa.float64(),
        "low": pa.float64(),
        "high": pa.float64(),
        "n": pa.int64(),
    }
    columns = {}
    for name in (*RESULT_COLUMNS, *settings, *VALUE_COLUMNS):
        values = [row.get(name) for row in rows]
        if name in settings:  # numbers and names share a column's type
            values = [None if value is None else str(value) for value in values]
        columns[name] = pa.array(values, kinds.get(name, pa.string()))
    table = pa.table(columns)
    for name, write in (("results.parquet", pa.parquet.write_table), ("results.csv", pa.csv.write_csv)):
        unfinished = folder / f"{name}.tmp"
        write(table, unfinished)
        os.replace(unfinished, folder / name)
