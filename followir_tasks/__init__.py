"""FollowIR and InstructIR's robustness, as mteb tasks. Importing registers them with mteb."""

from evaluators.plugin.registry import benchmark, register
from followir_tasks.instructir import InstructIRRobustness
from followir_tasks.tasks import SUBSET_TASKS, FollowIRSample, FollowIRTask

__all__ = ["SUBSET_TASKS", "FollowIRSample", "FollowIRTask", "InstructIRRobustness"]

register(
    (*SUBSET_TASKS, FollowIRSample, InstructIRRobustness),
    [
        benchmark(
            "FollowIR(paired)",
            SUBSET_TASKS,
            description="Does a ranking change as the instruction does? Paired instructions over the same candidates.",
            reference="https://arxiv.org/abs/2403.15246",
            citation=FollowIRSample.metadata.bibtex_citation,
        )
    ],
)
