"""`mteb-beyond model-card`: the results of an evaluated model for its card on the hub."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hub_cards.results import Result

EVAL_RESULTS = ".eval_results"


@dataclass(frozen=True)
class Chosen:
    """The results of one run.

    Attributes:
        results: one for each task.
        left_out: names of the model's other runs in the folder.
    """

    results: Sequence[Result]
    left_out: Sequence[str]


def add_model_card_commands(action: Any) -> None:
    """Add ``mteb-beyond model-card``."""
    command = action.add_parser("model-card", help="put an evaluated model's scores on its card (model-index, YAML)")
    command.add_argument("--results", required=True, metavar="DIR", help="the --output-folder of `mteb-beyond run`")
    command.add_argument(
        "--model", required=True, metavar="NAME", help="the model as the results name it, or its directory"
    )
    command.add_argument("--revision", metavar="REVISION", help="its revision, where the results have several")
    command.add_argument(
        "--variant",
        metavar="SETTINGS",
        help="a run with settings of its own, such as 'instruction=prepend' (default: the plain model)",
    )
    command.add_argument("-t", "--tasks", nargs="+", metavar="TASK", help="these tasks only (default: all)")
    command.add_argument(
        "--into",
        metavar="README.md",
        help=f"the model card to merge into; {EVAL_RESULTS}/<task>.yaml of the plain model is written beside it "
        "(default: print both)",
    )
    command.set_defaults(func=_model_card)


def choose(
    results: Sequence[Result], model: str, revision: str | None, variant: str | None, tasks: Sequence[str] | None = None
) -> Chosen:
    """The results of one run of a model: never of two revisions or variants together.

    Args:
        results: all that a folder holds.
        model: its name.
        revision: ``None`` if there is one only.
        variant: its settings as :func:`evaluators.plugin.variants.variant_words` puts them; ``None``: the plain model.
        tasks: names of the wanted tasks; ``None`` for all.

    Raises:
        ValueError: listing the choice, if nothing or several runs fit, or a task has no result.
    """
    from evaluators.plugin.variants import variant_words

    of_model = [r for r in results if r.model == model]
    if not of_model:
        raise ValueError(f"no result of {model!r}; there are results of {_listed(r.model for r in results)}")
    revisions = {r.revision for r in of_model}
    if revision is None and len(revisions) > 1:
        raise ValueError(f"{model} has results of several revisions; choose with --revision: {_listed(revisions)}")
    of_revision = [r for r in of_model if revision in (None, r.revision)]
    if not of_revision:
        raise ValueError(f"{model} has no result of revision {revision!r}; it has {_listed(revisions)}")
    fitting = [r for r in of_revision if variant_words(r.variant) == (variant or "")]
    others = sorted({r.name for r in of_revision if r not in fitting})
    if not fitting:
        wanted = f"settings {variant!r}" if variant else "the plain model"
        choice = "\n  ".join(f"--variant {variant_words(r.variant)!r}" for r in of_revision if r.variant)
        plain = "" if all(r.variant for r in of_revision) else "\n  (no --variant: the plain model)"
        raise ValueError(f"{model} has no result of {wanted}; there are{plain}\n  {choice}".rstrip())
    lacking = sorted(set(tasks or ()) - {r.task.task_name for r in fitting})
    if lacking:
        raise ValueError(
            f"{model} has no result on {', '.join(lacking)}; it has {_listed(r.task.task_name for r in fitting)}"
        )
    wanted_results = [r for r in fitting if tasks is None or r.task.task_name in tasks]
    for result in wanted_results:
        same = [str(r.path) for r in wanted_results if r.task.task_name == result.task.task_name]
        if len(same) > 1:
            raise ValueError(f"several results of one run on {result.task.task_name}; keep one: {', '.join(same)}")
    return Chosen(wanted_results, others)


def _listed(names: Any) -> str:
    return ", ".join(sorted(set(names)))


def eval_results_files(results: Sequence[Result]) -> tuple[dict[str, str], list[str]]:
    """File name -> content of the files below ``.eval_results``, and why results have none."""
    import yaml
    from huggingface_hub import eval_result_entries_to_yaml

    from hub_cards.model_card_scores import eval_result_entries, on_pinned_data, task_of

    files: dict[str, str] = {}
    notes: list[str] = []
    for result in results:
        name = result.task.task_name
        if not on_pinned_data(result, task_of(result)):
            notes.append(
                f"{name}: no {EVAL_RESULTS}, since revision {result.task.dataset_revision} is not the data of the "
                "dataset's leaderboard"
            )
            continue
        if result.variant:
            notes.append(f"{name}: no {EVAL_RESULTS}, since the dataset's leaderboard shows models without settings")
            continue
        entries = eval_result_entries_to_yaml(eval_result_entries(result))
        files[f"{name}.yaml"] = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True)
    return files, notes


def _model_card(args: argparse.Namespace) -> int:
    from evaluators.plugin.models import local_name
    from hub_cards.model_card_merge import merged
    from hub_cards.model_card_scores import eval_results
    from hub_cards.results import read_results

    place = Path(args.model).expanduser()
    model = local_name(place.resolve()) if place.is_dir() else args.model
    chosen = choose(read_results(Path(args.results)), model, args.revision, args.variant, args.tasks)
    entries = eval_results(chosen.results)
    files, notes = eval_results_files(chosen.results)
    if chosen.left_out:
        notes.append(f"other runs of the model, left out (--variant): {'; '.join(chosen.left_out)}")
    if args.into is None:
        print(merged("", model, entries).rstrip())
        for name, content in files.items():
            print(f"\n# {EVAL_RESULTS}/{name} (values times 100)\n{content.rstrip()}")
    else:
        notes += _write_into(Path(args.into).expanduser(), model, entries, files)
    for note in notes:
        print(note, file=sys.stderr)
    return 0


def _write_into(card: Path, model: str, entries: Sequence[Any], files: dict[str, str]) -> list[str]:
    """Write all files or none, and return what is worth knowing about the card."""
    from hub_cards.model_card_merge import card_notes, merged

    if not card.is_file():
        raise FileNotFoundError(f"there is no model card at {card}; name the README.md of the model's repository")
    try:
        before = card.read_bytes().decode("utf-8")
        after = merged(before, model, entries)
    except ValueError as error:  # undecodable text, too
        raise ValueError(f"{card}: {error}") from error
    _write_all({card: after} | {card.parent / EVAL_RESULTS / name: text for name, text in files.items()})
    return [f"{card}: {note}" for note in card_notes(before, model)]


def _write_all(texts: Mapping[Path, str]) -> None:
    """Write all files or none; links stay links, and permissions stay."""
    new: dict[Path, Path] = {}  # real file -> its new content
    try:
        try:
            for path, text in texts.items():
                _prepare(path.resolve(), text, new)
        except OSError as error:
            raise ValueError(f"nothing was written: {error}; see to it and try again") from error
        for real, unfinished in new.items():
            unfinished.replace(real)
    finally:
        for unfinished in new.values():
            unfinished.unlink(missing_ok=True)
    for path in texts:
        print(f"written: {path}")


def _prepare(path: Path, text: str, new: dict[Path, Path]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        raise IsADirectoryError(f"{path} is no file")
    # Root may write everywhere, but what is marked read-only is so on purpose.
    if path.exists() and not (os.access(path, os.W_OK) and path.stat().st_mode & stat.S_IWUSR):
        raise PermissionError(f"{path} is read-only")
    new[path] = path.with_name(f"{path.name}.mteb-beyond")
    new[path].write_bytes(text.encode("utf-8"))
    if path.exists():
        new[path].chmod(path.stat().st_mode)
