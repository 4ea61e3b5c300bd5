"""The values that TCR-Bench prints, to stand beside one's own as points of reference."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ABOUT", "BY_RETRIEVER", "BY_TYPE", "KS", "NO_TABLE", "ORACLE", "PublishedRow"]

ABOUT = (
    "Published rows: Tables 1 and 12 of the paper, 209 questions, Qwen3-30B-A3B-Thinking-2507 with the LongTableBench "
    "pipeline, whose prompt and F1 are others than ours: for orientation, not for comparison."
)
# Mean F1 with the target alone and without a table (Table 1).
ORACLE, NO_TABLE = 0.755, 0.014


class PublishedRow(NamedTuple):
    """A row of Table 1 or 12, with R@k of the same retriever; the values are those at k = 1, 3, 5."""

    name: str
    oracle: float
    recall: tuple[float, float, float]
    qa: tuple[float, float, float]
    efficiency: tuple[float, float, float]


# Table 1: by retriever, all questions; R@k from Table 8, Mixed.
BY_RETRIEVER = (
    PublishedRow("Qwen3-E0.6B", ORACLE, (0.182, 0.411, 0.555), (0.144, 0.244, 0.276), (1.046, 0.786, 0.659)),
    PublishedRow("Qwen3-E4B", ORACLE, (0.172, 0.469, 0.632), (0.113, 0.269, 0.329), (0.871, 0.760, 0.690)),
    PublishedRow("Qwen3-E8B", ORACLE, (0.182, 0.469, 0.665), (0.139, 0.266, 0.330), (1.014, 0.751, 0.657)),
)
# Table 12: by question type, Qwen3-Embedding-8B; R@k from Table 11.
BY_TYPE = (
    PublishedRow("All", ORACLE, (0.182, 0.469, 0.665), (0.139, 0.266, 0.330), (1.014, 0.751, 0.657)),
    PublishedRow("EM", 0.884, (0.224, 0.531, 0.724), (0.194, 0.415, 0.486), (0.977, 0.885, 0.759)),
    PublishedRow("SF", 0.711, (0.182, 0.418, 0.600), (0.129, 0.180, 0.204), (0.998, 0.605, 0.479)),
    PublishedRow("SA", 0.571, (0.107, 0.411, 0.625), (0.054, 0.089, 0.179), (0.876, 0.381, 0.500)),
)
KS = (1, 3, 5)
