"""FollowIR and InstructIR's robustness, as mteb tasks. Importing registers them with mteb."""

from evaluators.plugin.registry import benchmark, register
from followir_tasks.collection import FollowIRCollection
from followir_tasks.command import add_commands
from followir_tasks.instructir import InstructIRRobustness
from followir_tasks.mfollowir import MFOLLOWIR_TASKS
from followir_tasks.tasks import SUBSET_TASKS, FollowIRSample, FollowIRTask

__all__ = [
    "MFOLLOWIR_TASKS",
    "SUBSET_TASKS",
    "FollowIRCollection",
    "FollowIRSample",
    "FollowIRTask",
    "InstructIRRobustness",
    "add_commands",
]

register(
    (*SUBSET_TASKS, FollowIRSample, FollowIRCollection, *MFOLLOWIR_TASKS, InstructIRRobustness),
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
