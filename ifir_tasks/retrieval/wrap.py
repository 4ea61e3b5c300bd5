"""All settings of the paper at once, in the order in which they compose."""

from __future__ import annotations

from typing import Any

from ifir_tasks.retrieval.hybrid import hybrid
from ifir_tasks.retrieval.prompted import prompted
from ifir_tasks.retrieval.sliding_window import sliding_window


def wrap(
    model: Any,
    *,
    window: int | None = None,
    overlap: int = 128,
    paper_window: bool = False,
    prompts: str | None = None,
    bm25: bool = False,
) -> Any:
    """The model with the given settings: a sliding window, prompts around it, and BM25 beside both.

    Args:
        model: what :func:`sliding_window`, :func:`prompted` and :func:`hybrid` take.
        window, overlap, paper_window: as in :func:`sliding_window`; ``None`` for no window.
        prompts: a family as in :func:`prompted`; ``None`` for what mteb does without.
        bm25: whether to join it with BM25 as :func:`hybrid` does. BM25 gets no prompt.
    """
    if window is not None:
        model = sliding_window(model, window=window, overlap=overlap, paper=paper_window)
    if prompts is not None:
        model = prompted(model, prompts)
    return hybrid(model) if bm25 else model
