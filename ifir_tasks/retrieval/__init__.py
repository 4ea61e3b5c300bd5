"""IFIR's retrieval settings as mteb models that wrap mteb models: sliding window, hybrid with BM25, prompts."""

from evaluators.plugin.prompting import PromptFamily, TaskPrompts
from ifir_tasks.retrieval.hybrid import hybrid, rank_fusion
from ifir_tasks.retrieval.prompted import prompted
from ifir_tasks.retrieval.prompts import prompt_family
from ifir_tasks.retrieval.sliding_window import sliding_window
from ifir_tasks.retrieval.wrap import wrap

__all__ = [
    "PromptFamily",
    "TaskPrompts",
    "hybrid",
    "prompt_family",
    "prompted",
    "rank_fusion",
    "sliding_window",
    "wrap",
]
