"""Which tasks, benchmarks and plug-in packages there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, overload

import mteb
from mteb.abstasks import AbsTask
from mteb.benchmarks.benchmark import Benchmark

from evaluators.plugin.mteb_internals import register_benchmark, register_tasks
from evaluators.plugin.task import BeyondTask

PLUGIN_GROUP = "mteb_beyond.plugins"
SAMPLE_BENCHMARK = "Beyond(sample)"

Task = TypeVar("Task", bound=BeyondTask)

_registered: list[type[BeyondTask]] = []


class NamedTasks(Sequence[AbsTask]):
    """The tasks of a benchmark, created when somebody looks at them.

    A benchmark may hold tasks of packages that are not imported yet, and creating a task sets random seeds, which
    an import must not do.
    """

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names

    @overload
    def __getitem__(self, index: int) -> AbsTask: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[AbsTask]: ...
    def __getitem__(self, index: int | slice) -> AbsTask | Sequence[AbsTask]:
        names = self._names()[index]
        return mteb.get_task(names) if isinstance(names, str) else [mteb.get_task(n) for n in names]

    def __len__(self) -> int:
        return len(self._names())

    def __iter__(self) -> Iterator[AbsTask]:
        return iter([mteb.get_task(name) for name in self._names()])


def register(tasks: Sequence[type[BeyondTask]], benchmarks: Sequence[Benchmark] = ()) -> None:
    """Make a package's tasks and benchmarks known to mteb; doing so again does nothing.

    Also makes sure of the benchmark ``Beyond(sample)``, which holds the embedded samples of all plug-in packages.

    Raises:
        ValueError: if mteb already has a task or benchmark of such a name.
    """
    register_tasks(tasks)
    new = {t.metadata.name for t in tasks}
    _registered[:] = [t for t in _registered if t.metadata.name not in new or t in tasks]
    _registered.extend(t for t in tasks if t not in _registered)
    for benchmark in (*benchmarks, _SAMPLES):
        register_benchmark(benchmark)


def registered_tasks() -> list[type[BeyondTask]]:
    """The registered task classes, in order of registration."""
    return list(_registered)


def found_task(kind: str, choices: Mapping[str, type[Task]], name: str, data: Path | str | None) -> Task:
    """A task by what a command was given, without its data.

    Args:
        kind: of tasks, for the message.
        choices: by name.
        name: of the task.
        data: a dataset; ``None``: where the task finds its own.

    Raises:
        ValueError: if there is no such task.
    """
    if name not in choices:
        raise ValueError(f"there is no {kind} task {name!r}; one of {', '.join(choices)}")
    task = choices[name]()
    if data is not None:
        task.data_path = data
    return task


def benchmark(name: str, tasks: Sequence[type[BeyondTask]], **described: Any) -> Benchmark:
    """A benchmark of these task classes; ``described`` are mteb's fields (description, reference, citation)."""
    names = [t.metadata.name for t in tasks]
    return Benchmark(name=name, tasks=NamedTasks(lambda: names), **described)


def load_plugins() -> dict[str, ModuleType]:
    """Import every plug-in package, which registers its tasks, and return the modules by entry-point name."""
    found = sorted(entry_points(group=PLUGIN_GROUP), key=lambda e: e.name)
    return {point.name: point.load() for point in found}


def _sample_names() -> list[str]:
    load_plugins()
    return sorted(t.metadata.name for t in _registered if t.embedded is not None)


_SAMPLES = Benchmark(
    name=SAMPLE_BENCHMARK,
    tasks=NamedTasks(_sample_names),
    description="The embedded samples of mteb-beyond: instruction following (IFIRSample, FollowIRSample) and "
    "answerability among look-alike tables (TCRSample). They work offline and are no substitute for the real sets.",
    reference="https://arxiv.org/abs/2503.04644",
)
