"""Our tasks and benchmarks inside mteb's own lookups, and what this relies on in mteb."""

from __future__ import annotations

import subprocess
import sys

import mteb
import pytest
from mteb.benchmarks.benchmark import Benchmark

import followir_tasks
import ifir_tasks
import tcr_tasks
from evaluators.plugin import mteb_internals
from evaluators.plugin.registry import load_plugins, register, registered_tasks

SUBSETS = {
    "IFIR(InstFol)": {
        "IFIRFiQAInstFol",
        "IFIRScifactOpenInstFol",
        "IFIRNFCorpusInstFol",
        "IFIRAilaInstFol",
        "IFIRFireInstFol",
        "IFIRPmInstFol",
        "IFIRCdsInstFol",
    },
    "FollowIR(paired)": {"FollowIRCore17", "FollowIRNews21", "FollowIRRobust04"},
    "TCR-Bench": {
        "TCRBenchMixed",
        "TCRBenchCSV",
        "TCRBenchHTML",
        "TCRBenchMarkdown",
        "TCRBenchTSen",
        "TCRBenchTSenS",
        "TCRBenchDiagnosticMixed",
    },
    "Beyond(sample)": {"IFIRSample", "FollowIRSample", "TCRSample"},
}


def test_mteb_is_as_this_package_expects() -> None:
    assert mteb_internals.problems() == [], "mteb has moved something that evaluators/plugin/mteb_internals.py uses"


@pytest.mark.parametrize(
    ("where", "name", "told"),
    [
        ("_tasks_module", "_TASKS_REGISTRY", "_TASKS_REGISTRY is a dict"),
        ("_tasks_module", "TASK_LIST", "TASK_LIST is a tuple"),
        ("_lookup_module", "_build_registry", "_build_registry is an lru_cache"),
        ("_evaluate_module", "_sanitize_model", "_sanitize_model exists"),
    ],
)
def test_a_changed_mteb_is_named(monkeypatch: pytest.MonkeyPatch, where: str, name: str, told: str) -> None:
    monkeypatch.setattr(getattr(mteb_internals, where), name, None)
    found = mteb_internals.problems()
    assert len(found) == 1
    assert told in found[0]
    assert mteb.__version__ in found[0]


@pytest.mark.parametrize("name", sorted(SUBSETS))
def test_benchmarks_hold_their_tasks(name: str) -> None:
    benchmark = mteb.get_benchmark(name)
    assert {t.metadata.name for t in benchmark.tasks} == SUBSETS[name]
    assert len(benchmark) == len(SUBSETS[name])
    assert benchmark[0].metadata.name == next(iter(benchmark)).metadata.name
    assert benchmark.description
    assert benchmark.reference


@pytest.mark.parametrize("cls", registered_tasks(), ids=lambda c: c.metadata.name)
def test_tasks_are_found_by_name_and_described_in_full(cls: type) -> None:
    task = mteb.get_task(cls.metadata.name)
    assert type(task) is cls
    assert cls.metadata.is_filled()
    assert cls.metadata.bibtex_citation.strip().startswith("@")
    assert cls.metadata.intext_citation()
    assert len(cls.metadata.description) > 60


def test_filters_find_them() -> None:
    by_type = {t.metadata.name for t in mteb.get_tasks(task_types=["InstructionRetrieval"], languages=["eng"])}
    assert SUBSETS["IFIR(InstFol)"] <= by_type
    by_domain = {t.metadata.name for t in mteb.get_tasks(domains=["Legal"], task_types=["InstructionRetrieval"])}
    assert {"IFIRAilaInstFol", "IFIRFireInstFol", "IFIRSample"} <= by_domain
    assert "IFIRFiQAInstFol" not in by_domain
    by_names = mteb.get_tasks(tasks=["TCRSample", "FollowIRSample"])
    assert [t.metadata.name for t in by_names] == ["TCRSample", "FollowIRSample"]


def test_tasks_adapted_from_mteb_know_each_other() -> None:
    similar = mteb_internals._tasks_module._SIMILAR_TASKS
    assert "FollowIRCore17" in similar["Core17InstructionRetrieval"]
    upstream = mteb.get_task("Core17InstructionRetrieval").metadata.dataset
    assert mteb.get_task("FollowIRCore17").metadata.dataset == upstream


def test_registering_again_does_nothing() -> None:
    before = (len(mteb_internals._tasks_module.TASK_LIST), len(mteb.get_benchmarks()), registered_tasks())
    register(ifir_tasks.SUBSET_TASKS)
    register((tcr_tasks.TCRSample, followir_tasks.FollowIRSample), [mteb.get_benchmark("TCR-Bench")])
    load_plugins()
    assert (len(mteb_internals._tasks_module.TASK_LIST), len(mteb.get_benchmarks()), registered_tasks()) == before


def test_a_name_that_mteb_has_is_refused() -> None:
    class Clash(tcr_tasks.TCRSample):
        metadata = tcr_tasks.TCRSample.metadata.model_copy(update={"name": "NFCorpus"})

    with pytest.raises(ValueError, match="already has a task named 'NFCorpus'"):
        register((Clash,))
    assert mteb.get_task("NFCorpus").__class__.__name__ == "NFCorpus"
    with pytest.raises(ValueError, match="already has a benchmark named 'TCR-Bench'"):
        register((), [Benchmark(name="TCR-Bench", tasks=[])])


def test_metrics_import_neither_mteb_nor_torch() -> None:
    code = "import evaluators, sys; assert not {'mteb', 'torch', 'datasets'} & set(sys.modules), 'heavy import'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
