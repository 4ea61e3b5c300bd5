"""`mteb-beyond followir train` and `reranker`: models that learn to follow instructions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_train_command(steps: Any) -> None:
    """Add ``train`` to the steps of ``mteb-beyond followir``."""
    from evaluators.training.options import add_config_options

    command = steps.add_parser(
        "train",
        help="teach a reranker or an encoder to follow instructions",
        description="Train by a configuration file: each learning rate and seed is a run, and the epoch with the best "
        "p-MRR on each selection set is kept as a model that `mteb-beyond run -m DIR` takes. Run it again with the "
        "same arguments: finished runs are kept, and one that was killed goes on from its last state. Training needs "
        "pip install 'mteb-beyond[train]'.",
    )
    add_config_options(command, "small (an encoder on the sample, offline; explains every key)")
    command.set_defaults(func=_train)


def _train(args: argparse.Namespace) -> int:
    from evaluators.training.extra import require_extra
    from evaluators.training.options import show
    from followir_tasks.teaching.config import config_file, read_config

    if args.show:
        return show(config_file(args.config))
    config = read_config(args.config)
    if args.base is not None:
        config = config.model_copy(update={"base": args.base})
    require_extra(lora=config.lora is not None)
    from followir_tasks.teaching.train import train

    for path in train(config, args.out.expanduser()):
        print(path)
    return 0


def add_reranker_command(steps: Any) -> None:
    """Add ``reranker`` to the steps of ``mteb-beyond followir``."""
    command = steps.add_parser(
        "reranker",
        help="make a reranker of a causal language model",
        description="Write a directory that `mteb-beyond run -m DIR` takes: it scores a document by the probability "
        "that the language model answers true and not false. `run -m causal-lm:MODEL` does the same with every option "
        "at its default.",
    )
    command.add_argument("--model", required=True, help="the language model: a hub name or a directory")
    command.add_argument("--revision", help="of a model on the hub (default: the one that mteb or the hub names)")
    command.add_argument("--adapter", type=Path, metavar="DIR", help="LoRA weights of peft")
    command.add_argument(
        "--prompt", type=Path, metavar="FILE", help="with the fields query, instruction and document (default: ours)"
    )
    for answer in ("true", "false"):
        told = f"one token after the prompt (default: {answer}, after a blank if there is no --chat)"
        command.add_argument(f"--{answer}", metavar="WORD", help=told)
    command.add_argument("--chat", action="store_true", help="put the prompt through the model's chat template")
    command.add_argument(
        "--max-length", type=int, default=2048, metavar="N", help="tokens; documents are cut to fit (%(default)s)"
    )
    command.add_argument(
        "--dtype", default="auto", choices=("auto", "float32", "bfloat16", "float16"), help="of the weights"
    )
    command.add_argument("--out", required=True, type=Path, metavar="DIR", help="the directory")
    command.set_defaults(func=_reranker)


def _reranker(args: argparse.Namespace) -> int:
    from evaluators.causal.loading import require_usable
    from evaluators.causal.settings import FIELDS, PROMPT, CausalSettings, write_settings
    from evaluators.judge import read_prompt
    from evaluators.training.reading import checked

    def place(path: Path) -> str:
        return str(path.expanduser().resolve())

    out: Path = args.out.expanduser()
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"{out} is not empty; name a new directory with --out")
    prompt = args.prompt or PROMPT
    given = {
        "base": place(Path(args.model)) if Path(args.model).expanduser().is_dir() else args.model,
        "adapter": None if args.adapter is None else place(args.adapter),
        **{name: getattr(args, name) for name in ("revision", "true", "false", "chat", "max_length", "dtype")},
    }
    settings = checked(given, CausalSettings, "mteb-beyond followir reranker")
    unchecked = require_usable(settings, read_prompt(prompt, FIELDS))
    write_settings(out, settings, prompt)
    print(f"{out}: run it with `mteb-beyond run -m {out} -t ...`")
    if unchecked is not None:
        print(f"not checked: {unchecked}")
    return 0
