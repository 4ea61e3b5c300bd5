"""Command line options that name a language model, the same for every command that asks one."""

from __future__ import annotations

import argparse
from typing import Any

from evaluators.judge.endpoint import BASE_URL_VARIABLE, KEY_VARIABLE, Endpoint
from evaluators.judge.language_model import LanguageModel
from evaluators.judge.llm_judge import ModelJudge
from evaluators.judge.progress import Price
from evaluators.judge.request import Sampling


def add_model_options(parser: Any, prefix: str, what: str) -> None:
    """Add ``--<prefix> MODEL``, ``--<prefix>-base-url`` and so on to a parser or a group of options.

    Args:
        parser: anything with ``add_argument``.
        prefix: ``judge`` or ``llm``.
        what: what the model is for, in the help of ``--<prefix>``.
    """

    def add(name: str, **settings: Any) -> None:
        parser.add_argument(f"--{prefix}-{name}", **settings)

    parser.add_argument(f"--{prefix}", metavar="MODEL", type=_not_empty, default=None, help=what)
    # An unset shell variable must not send the data to the default endpoint.
    add(
        "base-url",
        metavar="URL",
        type=_not_empty,
        help=f"any OpenAI-compatible endpoint (default: ${BASE_URL_VARIABLE}, else OpenAI)",
    )
    add("key-variable", metavar="NAME", default=KEY_VARIABLE, help="environment variable with the key (%(default)s)")
    add("concurrency", metavar="N", type=int, default=32, help="most calls in flight (%(default)s)")
    add("rpm", metavar="N", type=float, help="most requests a minute")
    add("tpm", metavar="N", type=float, help="most tokens a minute, estimated before each call")
    add("timeout", metavar="SECONDS", type=float, default=60.0, help="time limit of a call (%(default)s)")
    add(
        "price",
        metavar="IN,OUT",
        type=_price,
        help="price of a million prompt tokens and of a million completion tokens, in any currency, for estimates",
    )
    add(
        "temperature",
        metavar="T",
        type=_number_or_none,
        default=0.0,
        help="0..2, or none to leave it out (%(default)s)",
    )
    add("top-p", metavar="P", type=_number_or_none, default=0.7, help="or none to leave it out (%(default)s)")
    add("max-tokens", metavar="N", type=int, default=512, help="longest reply (%(default)s)")


def add_dry_run_option(parser: Any) -> None:
    """Add ``--dry-run`` to a command that asks a language model."""
    parser.add_argument(
        "--dry-run", action="store_true", help="say how many calls it takes and what they cost, and stop"
    )


def add_judge_model_options(parser: Any, what: str) -> None:
    """Add the options of a language model as judge: those of :func:`add_model_options` and how its scores are read."""
    add_model_options(parser, "judge", what)
    parser.add_argument(
        "--judge-top-logprobs",
        metavar="N",
        type=int,
        default=5,
        help="token probabilities that a score is weighted with; 0: take the whole number (%(default)s)",
    )


def judge_settings(args: argparse.Namespace) -> dict[str, Any]:
    """What :func:`add_judge_model_options` says, as arguments of a :class:`~evaluators.judge.llm_judge.ModelJudge`."""
    top = args.judge_top_logprobs
    return {
        "model": args.judge,
        "language_model": language_model_of(args, "judge"),
        "sampling": sampling_of(args, "judge"),
        "top_logprobs": top,
        "paper_top_logprobs": max(ModelJudge.paper_top_logprobs, top),
    }


def language_model_of(args: argparse.Namespace, prefix: str) -> LanguageModel:
    """The endpoint that the options name, with the user's store."""

    def given(name: str) -> Any:
        return getattr(args, f"{prefix}_{name}")

    endpoint = Endpoint(
        base_url=given("base_url"),
        key_variable=given("key_variable"),
        concurrency=given("concurrency"),
        requests_per_minute=given("rpm"),
        tokens_per_minute=given("tpm"),
        timeout=given("timeout"),
    )
    return LanguageModel(endpoint, price=given("price"))


def sampling_of(args: argparse.Namespace, prefix: str) -> Sampling:
    """The sampling parameters that the options name."""
    given = {name: getattr(args, f"{prefix}_{name}") for name in ("temperature", "top_p", "max_tokens")}
    return Sampling(**given)


def _not_empty(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; is a shell variable not set?")
    return text


def _price(text: str) -> Price:
    try:
        prompt, completion = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected two numbers such as 0.15,0.60, got {text!r}") from None
    if not (0 <= prompt < 1e9 and 0 <= completion < 1e9):
        raise argparse.ArgumentTypeError(f"a price must not be negative, got {text!r}")
    return Price(prompt, completion)


def _number_or_none(text: str) -> float | None:
    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number or none, got {text!r}") from None
