"""TCR-Bench: the answerable table among its siblings, as mteb tasks. Importing registers them with mteb."""

from evaluators.plugin.registry import benchmark, register
from tcr_tasks.command import add_commands
from tcr_tasks.diagnostics.tasks import FAMILY_TASKS
from tcr_tasks.tasks import BENCHMARK_TASKS, CITATION, SAFE_TASK, TCRSample, TCRTask

__all__ = ["BENCHMARK_TASKS", "FAMILY_TASKS", "SAFE_TASK", "TCRSample", "TCRTask", "add_commands"]

register(
    (*BENCHMARK_TASKS, SAFE_TASK, TCRSample, *FAMILY_TASKS),
    [
        benchmark(
            "TCR-Bench",
            BENCHMARK_TASKS,
            description="Find the one table that can answer a question among sibling tables that look alike.",
            reference="https://arxiv.org/abs/2607.17742",
            citation=CITATION,
        )
    ],
)
