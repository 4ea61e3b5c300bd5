"""Tables, intervals and differences as the Markdown of reports prints them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tabulate import tabulate

from evaluators.metrics.bootstrap import RESAMPLES, Bootstrapped

__all__ = ["difference", "interval", "markdown_table", "p_value", "quoted", "told", "unpadded_table"]


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str] | None = None) -> str:
    """A table whose columns also line up on a terminal.

    Args:
        heads: of the columns.
        rows: their cells; a pipe in one is escaped.
        left: the heads of the columns of words; the others are aligned to the right. ``None``: all are of words.
    """
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    alignment = ["left" if left is None or head in left else "right" for head in heads]
    return str(tabulate(cells, headers=heads, tablefmt="github", disable_numparse=True, colalign=alignment))


def unpadded_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are as wide as what they hold: for tables too wide for a terminal."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in (heads, *rows)]
    return "\n".join([lines[0], "|" + " --- |" * len(heads), *lines[1:]])


def quoted(text: str) -> str:
    """A text from elsewhere, such as a server's message, as code in one line: nothing in it is Markdown or HTML."""
    return f"`{' '.join(text.split()).replace('`', chr(39))}`"


def told(value: float, low: float | None, high: float | None) -> str:
    """A score with the ends of its interval in short, if there are any."""
    return f"{value:.3f}" + ("" if low is None or high is None else f" [{low:.2f}, {high:.2f}]")


def interval(low: float, high: float) -> str:
    """The ends of an interval on the scale 0-1."""
    return f"[{low:z.3f}, {high:z.3f}]"


def difference(score: Bootstrapped) -> tuple[str, str]:
    """A difference of scores with its sign, and its interval."""
    return f"{score.value:+z.3f}", interval(*score.interval())


def p_value(value: float) -> str:
    """A share of resamples; none of them is less than one."""
    smallest = 1 / RESAMPLES
    return f"{value:.3f}" if value >= smallest else f"<{smallest:.3f}"
