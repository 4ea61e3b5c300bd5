"""`mteb-beyond publish`: build, check and send a dataset, or write what would be sent."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hub_cards.publish_build import Built


def add_publish_commands(action: Any) -> None:
    """Add ``mteb-beyond publish``."""
    command = action.add_parser("publish", help="publish a dataset on the hub, with card and eval.yaml, in one commit")
    command.add_argument("target", metavar="TASK_OR_DIR", help="a task's name, or a directory with a dataset")
    command.add_argument("--repo", required=True, metavar="USER/NAME", help="the dataset repository, made if needed")
    command.add_argument("--private", action="store_true", help="a private repository")
    command.add_argument("--revision", metavar="BRANCH", help="publish on this branch, made if needed (default: main)")
    command.add_argument("--replace", action="store_true", help="put it in the place of another dataset that is there")
    command.add_argument("--dry-run", action="store_true", help="write what would be sent into --out and send nothing")
    command.add_argument("--out", metavar="DIR", help="folder of the dry run, new or empty (default: NAME-dry-run)")
    command.set_defaults(func=_publish)


def _publish(args: argparse.Namespace) -> int:
    import logging

    import datasets

    from hub_cards.publish_send import check_names

    if args.out is not None and not args.dry_run:
        raise ValueError("--out names the folder of a dry run; add --dry-run, or leave it out")
    check_names(args.repo, args.revision)
    datasets.disable_progress_bars()
    notes = logging.getLogger("evaluators.plugin.task")
    level = notes.level
    notes.setLevel(logging.ERROR)  # they are told once, at the end
    try:
        return _build_and_send(args)
    finally:
        notes.setLevel(level)


def _build_and_send(args: argparse.Namespace) -> int:
    import tempfile

    from hub_cards.publish_build import build
    from hub_cards.publish_send import check_access, send
    from tcr_tasks.builder.output import completed

    if args.dry_run:
        place = Path(args.out or f"{args.repo.split('/')[1]}-dry-run")
        with completed(place) as folder:
            _tell(build(args.target, folder, args.repo))
        print(f"dry run: nothing was sent; {place} holds exactly what would be sent to {args.repo}")
        return 0
    check_access(args.repo, private=args.private)
    with tempfile.TemporaryDirectory() as scratch:
        built = build(args.target, Path(scratch), args.repo)
        _tell(built)
        published = send(built, args.repo, private=args.private, branch=args.revision, replace=args.replace)
    if published.card_replaced:
        print("note: the card there was another one, edited on the hub or of other data; its history keeps it")
    print(f"{'published' if published.changed else 'nothing has changed'}: {published.url} at {published.revision}")
    print(f'to pin it in a task: dataset={{"path": "{published.repository}", "revision": "{published.revision}"}}')
    where = f"hf://datasets/{published.repository}@{published.revision}"
    print(f'to read it now: task.data_path = "{where}", or mteb-beyond run ... --data {where}')
    return 0


def _tell(built: Built) -> None:
    for line in built.told:
        print(line)
    for name in built.files:
        print(f"  {name} ({(built.folder / name).stat().st_size:,} bytes)")
    sys.stdout.flush()
