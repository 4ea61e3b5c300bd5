"""IFIR: instruction-following retrieval in expert domains, as mteb tasks. Importing registers them with mteb."""

from evaluators.plugin.registry import benchmark, register
from ifir_tasks.command import add_commands
from ifir_tasks.tasks import CITATION, SUBSET_TASKS, IFIRSample, IFIRTask

__all__ = ["SUBSET_TASKS", "IFIRSample", "IFIRTask", "add_commands"]

register(
    (*SUBSET_TASKS, IFIRSample),
    [
        benchmark(
            "IFIR(InstFol)",
            SUBSET_TASKS,
            description="Expert-domain retrieval for plain queries and for instructions of rising complexity.",
            reference="https://arxiv.org/abs/2503.04644",
            citation=CITATION,
        )
    ],
)
