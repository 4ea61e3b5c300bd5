"""`mteb-beyond runs export`: rankings of saved predictions in TREC's run format, for trec_eval and its relatives."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluators.files import write_text
from evaluators.metrics.ranking import top
from evaluators.plugin.variants import folders_of_variant
from hub_cards.saved import Saved, saved_below

_BLANK = re.compile(r"\s")
_TO_WRITE = re.compile(r"[\s%]")
DESCRIPTION = (
    "Write one TREC run file for each model, task, subset and split: lines of `query Q0 document rank score tag`. "
    "Documents of equal score stand in mteb's order, the higher id first. Blanks cannot stand in a run file: in an id "
    "that has any, blanks and percent signs are written as in addresses (%20, %25), and a file .ids.json beside the "
    "run maps the ids so written to the real ones; qrels need the same change. A query that ranks no document has no "
    "line; `trec_eval -c` counts it as 0. IFIR's runs hold the plain queries, too (ids in -og), which have no "
    "judgements of their own: leave them out of averages."
)
IDS = ".ids.json"
NO_REVISION = "no_revision_available"  # as mteb writes it
_NOT_A_NAME = re.compile(r"[^\w.+-]+")


def add_runs_command(action: Any) -> None:
    """Add ``mteb-beyond runs export``."""
    command = action.add_parser("runs", help="rankings of saved predictions for other tools")
    steps = command.add_subparsers(required=True, metavar="STEP")
    export = steps.add_parser("export", help="write saved predictions as TREC run files", description=DESCRIPTION)
    export.add_argument(
        "predictions", metavar="PREDICTIONS", help="the --prediction-folder of `mteb-beyond run`, or a folder in it"
    )
    export.add_argument("--out", required=True, metavar="DIR", help="where the run files go")
    export.set_defaults(func=_export)


def _export(args: argparse.Namespace) -> int:
    predictions, out = Path(args.predictions).expanduser(), Path(args.out).expanduser()
    for path, n_empty in export_runs(predictions, out).items():
        print(f"written: {path}")
        if n_empty:
            print(f"  queries without any document: {n_empty}, not in the file; `trec_eval -c` counts them as 0")
        if (ids := path.with_suffix(IDS)).is_file():
            print(f"  ids with blanks were changed; {ids} lists them")
    return 0


def export_runs(predictions: Path, out: Path) -> dict[Path, int]:
    """Write one run file for each model, task, subset and split below a folder of predictions.

    A line is ``query Q0 document rank score tag``. Documents stand in mteb's order, by (score, document id) descending.
    Tools that sort again by score, as trec_eval does, keep it, but for scores that are equal in float32. Scores are
    written so that they read back as the same numbers.

    Blanks cannot stand in a run file: in an id that has any, each blank and each ``%`` is written as ``%`` and the two
    hex digits of its bytes in UTF-8, as in addresses. A file ``.ids.json`` beside the run maps the ids so written to
    the real ones; qrels for it need the same change.

    Files are named ``<model>__<revision>[__<variant>].<task>[.<subset>][.<split>].run``; subset and split are there
    only where they are not ``default`` and ``test``.

    Returns:
        The files written, sorted, each with the number of its queries that rank no document: a run file has no line
        for them.

    Raises:
        FileNotFoundError: if there are no predictions.
        ValueError: naming the file, if one is no prediction file or names no model, holds no ranking, scores that are
            no finite numbers, an empty id or two ids that would be written alike, or if two would be written to the
            same place.
    """
    owners: dict[Path, Path] = {}
    n_empty: dict[Path, int] = {}
    for saved in saved_below(predictions):
        content = saved.content()
        meta = content.pop("mteb_model_meta")
        tag = _tag(saved, meta)
        for subset, splits in content.items():
            for split, run in _splits(saved, subset, splits).items():
                more = [part for part, usual in ((subset, "default"), (split, "test")) if part != usual]
                path = out / (".".join([tag, *(_safe(part) for part in (saved.task, *more))]) + ".run")
                if path in owners:
                    both = f"{owners[path]} and {saved.path}"
                    raise ValueError(f"{both} would both be written to {path}; export them apart")
                owners[path] = saved.path
                try:
                    text, changed = _written(run, tag)
                except (ValueError, AttributeError, TypeError) as error:
                    raise ValueError(f"{saved.path}, subset {subset!r}, split {split!r}: {error}") from error
                write_text(path, text)
                if changed:
                    write_text(path.with_suffix(IDS), json.dumps(changed, indent=1, sort_keys=True) + "\n")
                n_empty[path] = sum(not scores for scores in run.values())
    return dict(sorted(n_empty.items()))


def _written(run: Mapping[str, Mapping[str, float]], tag: str) -> tuple[str, dict[str, str]]:
    """A run file's text, and the ids that were changed for it: as written -> as they are."""
    if not any(run.values()):
        raise ValueError(f"none of its {len(run)} queries ranks a document: nothing to export; run the model again")
    names = {*run, *(document for scores in run.values() for document in scores)}
    if "" in names:
        raise ValueError("an empty id cannot stand in a run file")
    changed = {_without_blanks(name): name for name in names if _BLANK.search(name)}
    if alike := changed.keys() & names:
        name = min(alike)
        raise ValueError(f"the ids {name!r} and {changed[name]!r} would be written alike")
    return "".join(_lines(run, tag)), changed


def _lines(run: Mapping[str, Mapping[str, float]], tag: str) -> Iterator[str]:
    for query, scores in run.items():
        for rank, document in enumerate(top(scores, len(scores), query), 1):
            names = f"{_without_blanks(query)} Q0 {_without_blanks(document)}"
            yield f"{names} {rank} {float(scores[document])!r} {tag}\n"


def _without_blanks(name: str) -> str:
    if not _BLANK.search(name):
        return name
    return _TO_WRITE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8")), name)


def _splits(saved: Saved, subset: str, splits: Any) -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    if not isinstance(splits, Mapping) or not all(isinstance(run, Mapping) for run in splits.values()):
        raise ValueError(f"{saved.path}: subset {subset!r} holds no rankings by split")
    return splits


def _tag(saved: Saved, meta: Mapping[str, Any]) -> str:
    """Model, revision and, where the predictions lie in a folder below that of the revision, the variant."""
    name, revision = meta["model_name"], str(meta["revision"])
    if not (isinstance(name, str) and name):
        raise ValueError(f"{saved.path} names no model (model_name is {name!r}); run it under a name, or set it there")
    written = NO_REVISION if meta["revision"] is None else revision
    variant = folders_of_variant(saved.path, name, revision)
    return "__".join(_safe(part) for part in (name.replace("/", "__"), written, *variant))


def _safe(name: str) -> str:
    """A part of a file's name that is also one word of a run file."""
    return _NOT_A_NAME.sub("-", name).strip("-.") or "unnamed"
