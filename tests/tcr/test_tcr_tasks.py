"""TCR-Bench tasks under mteb: scores recomputed from saved predictions, the instruction option, reranking."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import pyarrow.parquet as pq
import pytest
from mteb.models import ModelMeta
from mteb.models.hybrid_wrappers import HybridSearch
from mteb.models.instruct_wrapper import InstructSentenceTransformerModel
from mteb.models.model_implementations.bm25 import BM25Search
from mteb.types import PromptType
from test_tcr_data import DIAGNOSTIC, MIXED, TASKS, Authors, loaded

from evaluators.plugin import with_variant
from evaluators.plugin.mteb_internals import document_texts
from tcr_tasks import TCRSample, TCRTask

CSV_TASK = TASKS["TCRBenchCSV"]
BM25 = "mteb/baseline-bm25s"
INSTRUCTION = (
    "Given a TableQA query, retrieve a relevant table that can answer the query. Note that the retrieved table should "
    "contain sufficient information to provide an answer, rather than resulting in an empty answer."
)
QUESTIONS = {q["question_id"]: q["question"] for q in Authors().questions}
TYPES = ("EM", "SA", "SF")
KS = (1, 2, 3, 4, 5)

Run = dict[str, dict[str, float]]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authors().write(tmp_path_factory.mktemp("small"))


def task_at(directory: Path, cls: type[TCRTask] = MIXED, **attributes: Any) -> TCRTask:
    task = cls()
    task.data_path = directory
    for name, value in attributes.items():
        setattr(task, name, value)
    return task


def evaluate(model: Any, task: TCRTask, prediction_folder: Path | None = None) -> dict[str, Any]:
    """The scores as mteb returns them."""
    result = mteb.evaluate(
        model, task, cache=None, prediction_folder=prediction_folder, co2_tracker=False, show_progress_bar=False
    )
    (found,) = result.task_results
    (scores,) = found.scores["test"]
    return dict(scores)


# --- models by protocol ------------------------------------------------------------------------------------------


def meta(name: str, *kinds: str) -> ModelMeta:
    more = {"model_type": list(kinds)} if kinds else {}
    return ModelMeta.create_empty({"name": f"test/{name}", "revision": "1", **more})


class Encoder:
    """Bags of hashed words; remembers what it was given."""

    def __init__(self, model_name: str = "hash-bow", revision: str | None = "1", **kwargs: Any) -> None:
        self.mteb_model_meta = meta(model_name, "dense")
        self.seen: dict[str, list[str]] = {"query": [], "document": []}

    def encode(self, inputs: Any, *, prompt_type: PromptType, **kwargs: Any) -> np.ndarray[Any, Any]:
        texts = [text for batch in inputs for text in batch["text"]]
        self.seen[prompt_type.value] += texts
        return np.stack([self.vector(text) for text in texts])

    @staticmethod
    def vector(text: str) -> np.ndarray[Any, Any]:
        out = np.zeros(32, dtype=np.float32)
        for word in re.findall(r"\w+", text.lower()):
            out[zlib.crc32(word.encode()) % 32] += 1
        return out / max(float(np.linalg.norm(out)), 1e-9)

    def similarity(self, first: Any, second: Any) -> Any:
        return np.asarray(first) @ np.asarray(second).T

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        return (np.asarray(first) * np.asarray(second)).sum(axis=1)


class CrossEncoder:
    """Counts common words; remembers the pairs."""

    def __init__(self, model_name: str = "overlap", revision: str | None = "1", **kwargs: Any) -> None:
        self.mteb_model_meta = meta(model_name, "cross-encoder")
        self.pairs: list[tuple[str, str]] = []

    def predict(self, inputs1: Any, inputs2: Any, **kwargs: Any) -> np.ndarray[Any, Any]:
        queries, documents = ([text for batch in loader for text in batch["text"]] for loader in (inputs1, inputs2))
        self.pairs += list(zip(queries, documents, strict=True))
        words = [[set(re.findall(r"\w+", text.lower())) for text in texts] for texts in (queries, documents)]
        return np.array([len(a & b) for a, b in zip(*words, strict=True)], dtype=np.float32)


class Ranker:
    """Ranks all tables as ``order`` says, or by what ``scores`` returns."""

    def __init__(self, order: Callable[[str, list[str]], list[str]] | None = None, scores: Run | None = None) -> None:
        self.mteb_model_meta = meta("ranker", "sparse")
        self.order, self.scores = order, scores
        self.ids: list[str] = []

    def index(self, corpus: Any, **kwargs: Any) -> None:
        self.ids = list(corpus["id"])

    def search(self, queries: Any, **kwargs: Any) -> Run:
        if self.scores is not None:
            return self.scores
        assert self.order is not None
        found = {q: self.order(q, self.ids) for q in queries["id"]}
        return {q: {d: float(len(docs) - i) for i, d in enumerate(docs)} for q, docs in found.items()}


class RecordingBM25(BM25Search):
    """mteb's BM25, remembering its queries."""

    seen: list[str]

    def search(self, queries: Any, **kwargs: Any) -> Run:
        self.seen += list(queries["text"])
        found: Run = super().search(queries, **kwargs)
        return found


def recording_bm25() -> RecordingBM25:
    model = RecordingBM25()
    model.mteb_model_meta = mteb.get_model_meta(BM25)
    model.seen = []
    return model


class InnerModel:
    """What mteb's instruction wrapper calls."""

    def __init__(self) -> None:
        self.prompts: list[str | None] = []

    def encode(self, texts: Sequence[str], prompt: str | None = None, **kwargs: Any) -> np.ndarray[Any, Any]:
        self.prompts.append(prompt)
        return np.stack([Encoder.vector((prompt or "") + text) for text in texts])


class Instructed(InstructSentenceTransformerModel):
    """mteb's wrapper for instruction-aware models around a model that needs no files."""

    def __init__(self) -> None:
        self.model = InnerModel()
        self.mteb_model_meta = meta("instructed", "dense")
        self.instruction_template = "<{instruction}>"
        self.apply_instruction_to_passages = False

    def similarity(self, first: Any, second: Any) -> Any:
        return np.asarray(first) @ np.asarray(second).T


# --- scores ------------------------------------------------------------------------------------------------------


def side(task_directory: Path, cls: type[TCRTask]) -> dict[str, tuple[str, str, set[str]]]:
    """Query id -> type, target and group."""
    data = loaded(cls, task_directory).data
    assert data is not None
    return {q.id: (q.type, q.target, set(q.group)) for q in data.side["questions"]}


def recomputed(run: Run, known: dict[str, tuple[str, str, set[str]]]) -> dict[str, float]:
    """The special scores of the paper's section 4.1.2, by plain sorting."""
    rankings = {q: [d for _, d in sorted(((s, d) for d, s in run[q].items()), reverse=True)] for q in known}
    out: dict[str, float] = {}
    for k in KS:
        out[f"recall_at_{k}"] = float(np.mean([known[q][1] in rankings[q][:k] for q in known]))
        shares = [len(set(rankings[q][:k]) & known[q][2]) / min(len(known[q][2]), k) for q in known]
        out[f"gr_at_{k}"] = float(np.mean(shares))
        out[f"group_hit_at_{k}"] = float(np.mean([bool(set(rankings[q][:k]) & known[q][2]) for q in known]))
    out["ds_at_1"] = out["recall_at_1"] / out["gr_at_1"] if out["gr_at_1"] else 0.0
    tops = {}
    for q in known:
        best = max(np.float32(s) for s in run[q].values())
        tops[q] = [d for d, s in run[q].items() if np.float32(s) == best]
    hit = sum((known[q][1] in tops[q]) / len(tops[q]) for q in known)
    near = sum(len(known[q][2] & set(tops[q])) / len(tops[q]) for q in known)
    out["ds_at_1_expected_under_ties"] = hit / near if near else 0.0
    out["tied_top_share"] = float(np.mean([len(t) > 1 for t in tops.values()]))
    out["chance_ds_at_1"] = float(np.mean([1 / len(known[q][2]) for q in known]))
    out["neighbourhood_hit_target_miss"] = float(
        np.mean([rankings[q][0] in known[q][2] - {known[q][1]} for q in known])
    )
    out["n_queries"] = len(known)
    out["n_without_results"] = 0
    return out


@pytest.mark.parametrize("cls", [MIXED, CSV_TASK, TASKS["TCRBenchTSenS"], DIAGNOSTIC], ids=lambda c: c.metadata.name)
@pytest.mark.parametrize("kind", ["dense", "bm25"])
def test_scores_are_those_of_the_saved_predictions(kind: str, cls: type[TCRTask], small: Path, tmp_path: Path) -> None:
    model = Encoder() if kind == "dense" else mteb.get_model(BM25)
    scores = evaluate(model, task_at(small, cls), tmp_path)
    name = cls.metadata.name
    run: Run = json.loads((tmp_path / f"{name}_predictions.json").read_text())["default"]["test"]
    known = side(small, cls)
    assert run.keys() == known.keys()
    assert all(len(found) == (5 if cls is DIAGNOSTIC else 9) for found in run.values())

    assert cls.metadata.main_score == "recall_at_1"
    assert scores["main_score"] == scores["recall_at_1"]
    types = [t for t in TYPES if any(k[0] == t for k in known.values())]
    assert types == (["EM"] if cls is DIAGNOSTIC else list(TYPES))
    expected = recomputed(run, known)
    for label in types:
        part = {q: k for q, k in known.items() if k[0] == label}
        expected |= {f"{label}_{key}": value for key, value in recomputed(run, part).items()}
    n_tables = 5 if cls is DIAGNOSTIC else 9
    expected |= {f"chance_recall_at_{k}": k / n_tables for k in KS}
    assert {key: scores[key] for key in expected} == pytest.approx(expected, abs=1e-12)
    wrong = {key: type(scores[key]) for key in expected if "n_" not in key and type(scores[key]) is not float}
    assert wrong == {}
    assert scores["n_queries"] == len(known)
    strangers = [key for key in scores if re.match("(EM|SF|SA)_", key) and key not in expected]
    assert strangers == []

    rows = {row["query-id"]: row for row in pq.read_table(tmp_path / f"{name}_per_query.parquet").to_pylist()}
    assert rows.keys() == known.keys()
    for query, row in rows.items():
        label, target, group = known[query]
        ranking = [d for _, d in sorted(((s, d) for d, s in run[query].items()), reverse=True)]
        assert (row["question_type"], row["target"], row["group_size"]) == (label, target, len(group))
        assert row["target_rank"] == ranking.index(target) + 1
        assert row["top"] == ranking[0]
        expected_kind = "target" if ranking[0] == target else "sibling" if ranking[0] in group else "other"
        assert row["top_is"] == expected_kind
        alone = recomputed(run, {query: known[query]})
        assert {k: row[k] for k in alone if k in row} == pytest.approx({k: v for k, v in alone.items() if k in row})
        assert row["tied_top"] == bool(alone["tied_top_share"])
    for key in [f"{measure}_at_{k}" for measure in ("recall", "gr") for k in KS]:
        assert np.mean([row[key] for row in rows.values()]) == pytest.approx(scores[key])


def test_the_record(small: Path, tmp_path: Path) -> None:
    task = task_at(small)
    scores = evaluate(Encoder(), task, tmp_path)
    record = scores["mteb_beyond"]
    assert record["metric_version"] == MIXED.metric_version
    assert record["options"] == {"instruction": "mteb"}
    assert re.fullmatch(r"\d+\.\d+.*", record["version"])
    result = mteb.evaluate(Encoder(), task, cache=None, co2_tracker=False, show_progress_bar=False).task_results[0]
    assert result.dataset_revision == task.current_revision() != MIXED.metadata.revision
    json.dumps(result.scores)  # all of it can be written


def test_a_ranker_that_knows_the_targets(small: Path) -> None:
    known = side(small, MIXED)
    scores = evaluate(Ranker(lambda q, ids: sorted(ids, key=lambda d: d != known[q][1])), task_at(small))
    assert scores["main_score"] == 1.0
    for prefix in ("", "EM_", "SF_", "SA_"):
        assert [scores[f"{prefix}recall_at_{k}"] for k in KS] == [1.0] * 5
        assert scores[f"{prefix}ds_at_1"] == scores[f"{prefix}gr_at_1"] == 1.0
        assert scores[f"{prefix}ds_at_1_expected_under_ties"] == 1.0
        assert scores[f"{prefix}neighbourhood_hit_target_miss"] == 0.0
    assert scores["chance_ds_at_1"] == pytest.approx((1 / 3 + 1 / 3 + 1 / 3 + 1 / 2) / 4)
    assert (scores["n_queries"], scores["EM_n_queries"]) == (4, 2)


def test_a_ranker_that_puts_a_sibling_first(small: Path) -> None:
    known = side(small, MIXED)

    def order(query: str, ids: list[str]) -> list[str]:
        _, target, group = known[query]
        # siblings, target, the others
        return sorted(ids, key=lambda d: (d not in group, d == target))

    scores = evaluate(Ranker(order), task_at(small))
    assert scores["main_score"] == scores["recall_at_1"] == scores["ds_at_1"] == 0.0
    assert scores["gr_at_1"] == scores["group_hit_at_1"] == scores["neighbourhood_hit_target_miss"] == 1.0
    # Groups of 3, 3, 3, 2: the target comes second in the last one and third in the others.
    assert [scores[f"recall_at_{k}"] for k in KS] == [0.0, 0.25, 1.0, 1.0, 1.0]
    assert [scores[f"gr_at_{k}"] for k in KS] == [1.0] * 5
    assert [scores[f"SA_recall_at_{k}"] for k in KS] == [0.0, 0.0, 1.0, 1.0, 1.0]


def test_a_ranker_that_finds_no_group(small: Path) -> None:
    known = side(small, MIXED)
    scores = evaluate(Ranker(lambda q, ids: sorted(ids, key=lambda d: d in known[q][2])), task_at(small))
    assert scores["recall_at_1"] == scores["gr_at_1"] == scores["ds_at_1"] == 0.0
    assert scores["neighbourhood_hit_target_miss"] == 0.0
    assert scores["group_hit_at_5"] == 0.0  # at least six of the nine tables are of other groups


def test_all_tied(small: Path) -> None:
    known = side(small, MIXED)
    ids = list(loaded(MIXED, small).dataset["default"]["test"]["corpus"]["id"])
    scores = evaluate(Ranker(scores={q: dict.fromkeys(ids, 0.5) for q in known}), task_at(small))
    assert scores["tied_top_share"] == 1.0
    # A blind draw: each group's share of hits is 1/9 over group size / 9.
    assert scores["ds_at_1_expected_under_ties"] == pytest.approx(4 / (3 + 3 + 3 + 2))
    assert scores["recall_at_1"] == recomputed({q: dict.fromkeys(ids, 0.5) for q in known}, known)["recall_at_1"]


def test_a_ranking_that_lacks_a_query_or_a_number_is_an_error(small: Path) -> None:
    ids = list(loaded(MIXED, small).dataset["default"]["test"]["corpus"]["id"])
    run: Run = {q: {d: float(i) for i, d in enumerate(ids)} for q in QUESTIONS}
    lacking = {q: found for q, found in run.items() if q != "Question_G1_Q0"}
    with pytest.raises(ValueError, match="no document for 1 queries: 'Question_G1_Q0'"):
        evaluate(Ranker(scores=lacking), task_at(small))
    run["Question_G1_Q0"][ids[3]] = float("nan")
    with pytest.raises(ValueError, match=r"'Question_G1_Q0'.*must be finite"):
        evaluate(Ranker(scores=run), task_at(small))


def test_a_query_without_results_is_an_error(small: Path) -> None:
    # trec_eval leaves it out, so mteb's own averages would run over the other queries only.
    known = side(small, MIXED)
    run: Run = {q: {known[q][1]: 1.0} for q in QUESTIONS} | {"Question_G1_Q0": {}}
    with pytest.raises(ValueError, match="returned no document for 1 queries: 'Question_G1_Q0'"):
        evaluate(Ranker(scores=run), task_at(small))


def test_strategies_label_the_best_sibling(tmp_path: Path) -> None:
    task = TCRSample()
    task.load_data()
    assert task.data is not None
    known = {q.id: q for q in task.data.side["questions"]}
    task.unload_data()

    def order(query: str, ids: list[str]) -> list[str]:
        q = known[query]
        return sorted(ids, key=lambda d: (q.strategies.get(d) != "row_deletion", d))

    evaluate(Ranker(order), task, tmp_path)
    rows = pq.read_table(tmp_path / "TCRSample_per_query.parquet").to_pylist()
    for row in rows:
        expected = "row_deletion" if "row_deletion" in known[row["query-id"]].strategies.values() else None
        assert expected is None or row["top_is"] == expected
    assert sum(row["top_is"] == "row_deletion" for row in rows) > 5


# --- the option `instruction` ------------------------------------------------------------------------------------


def test_prepend_changes_queries_and_nothing_else(small: Path) -> None:
    task = task_at(small, instruction="prepend")
    plain, model = Encoder(), Encoder()
    evaluate(plain, task_at(small))
    scores = evaluate(with_variant(model, task), task)
    assert sorted(plain.seen["query"]) == sorted(QUESTIONS.values())
    assert sorted(model.seen["query"]) == sorted(f"{INSTRUCTION} {text}" for text in QUESTIONS.values())
    assert model.seen["document"] == plain.seen["document"]
    assert sorted(plain.seen["document"]) == sorted(
        document_texts(loaded(MIXED, small).dataset["default"]["test"]["corpus"])
    )
    assert scores["mteb_beyond"]["options"] == {"instruction": "prepend"}


def test_prepend_pairs_each_question_with_its_own_id(small: Path, tmp_path: Path) -> None:
    task = task_at(small, instruction="prepend")
    evaluate(with_variant(Encoder(), task), task, tmp_path)
    run: Run = json.loads((tmp_path / "TCRBenchMixed_predictions.json").read_text())["default"]["test"]
    corpus = loaded(MIXED, small).dataset["default"]["test"]["corpus"]
    documents = dict(zip(corpus["id"], document_texts(corpus), strict=True))
    for query, text in QUESTIONS.items():
        vector = Encoder.vector(f"{INSTRUCTION} {text}")
        expected = {d: float(vector @ Encoder.vector(t)) for d, t in documents.items()}
        assert run[query] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("instruction", ["mteb", "prepend", "none"])
def test_bm25_reads_the_plain_question(instruction: str, small: Path) -> None:
    task = task_at(small, instruction=instruction)
    model = recording_bm25()
    evaluate(with_variant(model, task), task)
    assert sorted(model.seen) == sorted(QUESTIONS.values())


@pytest.mark.parametrize("instruction", ["mteb", "none"])
def test_other_values_leave_the_texts_alone(instruction: str, small: Path) -> None:
    task = task_at(small, instruction=instruction)
    model = Encoder()
    evaluate(with_variant(model, task), task)
    assert sorted(model.seen["query"]) == sorted(QUESTIONS.values())


@pytest.mark.parametrize(("instruction", "prompt"), [("mteb", f"<{INSTRUCTION}>"), ("prepend", None), ("none", None)])
@pytest.mark.filterwarnings("ignore:Prompt type")
def test_what_mtebs_instruction_wrapper_gets(instruction: str, prompt: str | None, small: Path) -> None:
    task = task_at(small, instruction=instruction)
    for _ in range(2):  # mteb unloads the task after each run
        model = Instructed()
        evaluate(with_variant(model, task), task)
        queries, documents = model.model.prompts
        assert documents is None
        if prompt is not None:
            assert queries == prompt
        else:
            assert not (queries or "").strip("<>")


@pytest.mark.parametrize("cls", [*TASKS.values(), TCRSample], ids=lambda c: c.metadata.name)
@pytest.mark.filterwarnings("ignore:Prompt type")
def test_the_prompt_in_the_metadata(cls: type[TCRTask], small: Path) -> None:
    model = Instructed()
    for instruction in ("none", "mteb"):
        task = cls()
        if cls is not TCRSample:
            task.data_path = small
        task.instruction = instruction
        expected = INSTRUCTION if instruction == "mteb" else ""
        for _ in range(2 if instruction == "none" else 1):
            task.load_data()
            assert model.get_instruction(task.metadata, PromptType.query) == expected
            task.unload_data()
    assert model.get_instruction(cls.metadata, PromptType.query) == INSTRUCTION


@pytest.mark.filterwarnings("ignore:Prompt type")
def test_a_value_that_is_set_after_loading_counts(small: Path) -> None:
    task = loaded(MIXED, small)
    task.instruction = "none"
    model = Instructed()
    scores = evaluate(with_variant(model, task), task)
    assert scores["mteb_beyond"]["options"] == {"instruction": "none"}
    assert not (model.model.prompts[0] or "").strip("<>")
    task.instruction = "mteb"
    model = Instructed()
    evaluate(model, task)
    assert model.model.prompts[0] == f"<{INSTRUCTION}>"


@pytest.mark.filterwarnings("ignore:Prompt type")
def test_the_value_of_one_task_is_not_that_of_another(small: Path) -> None:
    none = loaded(MIXED, small)
    none.unload_data()
    none.instruction = "none"
    none.load_data()
    assert Instructed().get_instruction(loaded(MIXED, small).metadata, PromptType.query) == INSTRUCTION
    assert MIXED().instruction == "mteb"


@pytest.mark.parametrize("value", ["Prepend", "", "yes", None])
def test_an_unknown_value_names_the_choices(value: Any, small: Path) -> None:
    task = task_at(small, instruction=value)
    for use in (lambda: evaluate(Encoder(), task), lambda: with_variant(Encoder(), task), task.record):
        with pytest.raises(ValueError, match=r"TCRBenchMixed\.instruction must be one of") as caught:
            use()
        for choice in ("'mteb'", "'prepend'", "'none'", repr(value)):
            assert choice in str(caught.value)


@pytest.mark.parametrize("value", ["prepend", "none"])
def test_an_option_must_be_recorded(value: str, small: Path) -> None:
    task = task_at(small, instruction=value)
    model = Encoder()
    with pytest.raises(ValueError, match=f"TCRBenchMixed is run with .*'task_instruction': '{value}'"):
        evaluate(model, task)
    recorded = with_variant(model, task)
    assert recorded.mteb_model_meta.experiment_kwargs == {"task_instruction": value}
    assert value in recorded.mteb_model_meta.experiment_name
    assert model.mteb_model_meta.experiment_kwargs is None
    assert evaluate(recorded, task)["mteb_beyond"]["options"] == {"instruction": value}
    # Recorded with another value.
    other = task_at(small, instruction="none" if value == "prepend" else "prepend")
    with pytest.raises(ValueError, match="is run with"):
        evaluate(recorded, other)


def test_a_record_that_the_run_does_not_have_is_an_error(small: Path) -> None:
    # Otherwise a default result would be filed among those with the instruction before every query.
    recorded = with_variant(Encoder(), task_at(small, instruction="prepend"))
    with pytest.raises(ValueError, match="instruction"):
        evaluate(recorded, task_at(small))


def test_a_models_own_experiment_is_kept(small: Path) -> None:
    model = Encoder()
    model.mteb_model_meta = model.mteb_model_meta.model_copy(update={"experiment_kwargs": {"depth": 3}})
    task = task_at(small, instruction="prepend")
    recorded = with_variant(model, task)
    assert recorded.mteb_model_meta.experiment_kwargs == {"depth": 3, "task_instruction": "prepend"}
    assert evaluate(recorded, task)["n_queries"] == 4


def test_a_model_by_its_record_is_loaded_without_the_option(small: Path) -> None:
    models: list[Encoder] = []

    def load(name: str, revision: str | None = None, *, device: str | None = None) -> Encoder:
        models.append(Encoder("loaded", revision))
        return models[-1]

    task = task_at(small, instruction="prepend")
    recorded = with_variant(meta("loaded", "dense").model_copy(update={"loader": load}), task)
    assert recorded.experiment_kwargs == {"task_instruction": "prepend"}
    assert evaluate(recorded, task)["mteb_beyond"]["options"] == {"instruction": "prepend"}
    assert sorted(models[0].seen["query"]) == sorted(f"{INSTRUCTION} {text}" for text in QUESTIONS.values())


def test_a_hybrid_model_is_refused_under_prepend(small: Path) -> None:
    task = task_at(small, instruction="prepend")
    model = HybridSearch([mteb.get_model(BM25), Encoder()])
    with pytest.raises(ValueError, match=r"instruction='prepend'.*hybrid.*use 'mteb' or 'none'"):
        evaluate(with_variant(model, task), task)
    plain = Encoder()
    scores = evaluate(HybridSearch([mteb.get_model(BM25), plain]), task_at(small))
    assert scores["n_queries"] == 4
    assert sorted(plain.seen["query"]) == sorted(QUESTIONS.values())


# --- reranking a first stage -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def first_stage(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    evaluate(Encoder(), task_at(small), folder)
    return folder / "TCRBenchMixed_predictions.json"


def saved(path: Path, run: Run, **more: Any) -> Path:
    content = {"mteb_model_meta": {"model_name": "test/first", "revision": "7"}, "default": {"test": run}, **more}
    path.write_text(json.dumps(content))
    return path


def candidates(task: TCRTask) -> dict[str, list[str]]:
    return {q: list(docs) for q, docs in task.dataset["default"]["test"]["top_ranked"].items()}


def test_candidates_are_cut_by_score_and_id(small: Path, tmp_path: Path) -> None:
    ids = sorted(loaded(MIXED, small).dataset["default"]["test"]["corpus"]["id"])
    run: Run = {
        # All tied, stored from the lowest id upwards and the other way round: the three highest ids.
        "Question_G0_Q0": dict.fromkeys(ids, 1.0),
        "Question_G0_Q1": dict.fromkeys(reversed(ids), 1.0),
        # One above a tie.
        "Question_G1_Q0": {ids[4]: 0.5, ids[0]: 2.0, ids[7]: 0.5, ids[2]: 0.5, ids[1]: 0.25},
        "Question_G2_Q0": {ids[3]: -1.0},
    }
    task = task_at(small).convert_to_reranking(saved(tmp_path / "run.json", run), top_k=3)
    assert isinstance(task, MIXED)
    highest = [ids[8], ids[7], ids[6]]
    assert candidates(task) == {
        "Question_G0_Q0": highest,
        "Question_G0_Q1": highest,
        "Question_G1_Q0": [ids[0], ids[7], ids[4]],
        "Question_G2_Q0": [ids[3]],
    }
    name = task.record()["options"]["first_stage"]
    assert re.fullmatch("test/first@7:3#[0-9a-f]{8}", name)
    assert task.variant() == {"task_first_stage": name}


def test_a_cross_encoder_reranks(small: Path, first_stage: Path, tmp_path: Path) -> None:
    task = task_at(small)
    task.convert_to_reranking(first_stage, top_k=4)
    model = CrossEncoder()
    with pytest.raises(ValueError, match="'task_first_stage': 'test/hash-bow@1:4#"):
        evaluate(model, task)
    recorded = with_variant(model, task)
    assert recorded.mteb_model_meta.experiment_kwargs == task.variant()
    scores = evaluate(recorded, task, tmp_path)

    first: Run = json.loads(first_stage.read_text())["default"]["test"]
    expected = {q: sorted(((s, d) for d, s in found.items()), reverse=True)[:4] for q, found in first.items()}
    assert candidates(task) == {q: [d for _, d in pairs] for q, pairs in expected.items()}
    run: Run = json.loads((tmp_path / "TCRBenchMixed_predictions.json").read_text())["default"]["test"]
    assert {q: sorted(found) for q, found in run.items()} == {q: sorted(d) for q, d in candidates(task).items()}
    corpus = task.dataset["default"]["test"]["corpus"]
    documents = dict(zip(corpus["id"], document_texts(corpus), strict=True))
    assert set(model.pairs) == {(QUESTIONS[q], documents[d]) for q, docs in candidates(task).items() for d in docs}
    assert len(model.pairs) == 16
    again = recomputed(run, side(small, MIXED))
    assert {key: scores[key] for key in again} == pytest.approx(again, abs=1e-12)
    assert scores["n_missing_candidates"] == 0
    assert scores["mteb_beyond"]["options"]["first_stage"].startswith("test/hash-bow@1:4#")


@pytest.mark.parametrize("kinds", [("cross-encoder",), ()], ids=["by its record", "by protocol alone"])
def test_a_cross_encoder_reads_the_plain_question_under_prepend(
    kinds: tuple[str, ...], small: Path, first_stage: Path
) -> None:
    task = task_at(small, instruction="prepend")
    task.convert_to_reranking(first_stage, top_k=2)
    model = CrossEncoder()
    model.mteb_model_meta = meta("overlap", *kinds)  # without a kind mteb's record says "dense"
    evaluate(with_variant(model, task), task)
    assert {query for query, _ in model.pairs} == set(QUESTIONS.values())


def test_a_lexical_model_reranks_whatever_the_cut(small: Path, first_stage: Path, tmp_path: Path) -> None:
    task = task_at(small)
    task.convert_to_reranking(first_stage, top_k=2)
    scores = evaluate(with_variant(mteb.get_model(BM25), task), task, tmp_path)
    run: Run = json.loads((tmp_path / "TCRBenchMixed_predictions.json").read_text())["default"]["test"]
    assert {q: sorted(found) for q, found in run.items()} == {q: sorted(d) for q, d in candidates(task).items()}
    assert scores["n_missing_candidates"] == 0


def test_unloading_ends_the_reranking(small: Path, first_stage: Path, tmp_path: Path) -> None:
    task = task_at(small)
    task.convert_to_reranking(first_stage, top_k=2)
    task.unload_data()
    assert task.variant() == {}
    scores = evaluate(Encoder(), task, tmp_path)
    run: Run = json.loads((tmp_path / "TCRBenchMixed_predictions.json").read_text())["default"]["test"]
    assert {len(found) for found in run.values()} == {9}  # not the two best
    assert "n_missing_candidates" not in scores
    assert "previous_results_model_meta" not in scores


def test_a_first_stage_as_attribute_survives_unloading(small: Path, first_stage: Path) -> None:
    task = task_at(small, first_stage_predictions=first_stage.parent, first_stage_top_k=3)
    name = task.variant()["task_first_stage"]
    assert name.startswith("test/hash-bow@1:3#")
    for _ in range(2):
        model = CrossEncoder()
        scores = evaluate(with_variant(model, task), task)
        assert len(model.pairs) == 12
        assert scores["mteb_beyond"]["options"]["first_stage"] == name


def test_a_missing_file_is_named(small: Path, tmp_path: Path) -> None:
    for given, file in ((tmp_path / "none.json", "none.json"), (tmp_path, "TCRBenchMixed_predictions.json")):
        with pytest.raises(FileNotFoundError, match=f"no TCRBenchMixed_predictions.json at .*{given.name}"):
            task_at(small).convert_to_reranking(given)
        task = task_at(small, first_stage_predictions=given)
        with pytest.raises(FileNotFoundError, match=file):
            task.load_data()


@pytest.mark.parametrize("change", ["missing", "empty"])
def test_a_query_without_candidates_is_named(change: str, small: Path, first_stage: Path, tmp_path: Path) -> None:
    run: Run = json.loads(first_stage.read_text())["default"]["test"]
    if change == "missing":
        del run["Question_G1_Q0"]
    else:
        run["Question_G1_Q0"] = {}
    path = saved(tmp_path / "run.json", run)
    task = task_at(small)
    with pytest.raises(ValueError, match="no candidates for 1 queries: 'Question_G1_Q0'"):
        task.convert_to_reranking(path, top_k=3)
    # Nothing of it is left: the task is what its record says.
    assert task.variant() == {}
    assert evaluate(Encoder(), task, tmp_path / "out")["n_queries"] == 4
    found: Run = json.loads((tmp_path / "out" / "TCRBenchMixed_predictions.json").read_text())["default"]["test"]
    assert {len(ranking) for ranking in found.values()} == {9}


def test_candidates_of_another_corpus_are_named(small: Path, first_stage: Path, tmp_path: Path) -> None:
    run: Run = json.loads(first_stage.read_text())["default"]["test"]
    run["Question_G1_Q0"]["00000000::other::table_T0"] = 99.0
    with pytest.raises(ValueError, match="00000000::other::table_T0"):
        task_at(small).convert_to_reranking(saved(tmp_path / "run.json", run), top_k=3)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"mteb_model_meta": {"model_name": "a/b", "revision": "1"}, "en": {"test": {}}}',
        '{"mteb_model_meta": {"model_name": "a/b", "revision": "1"}, "default": {"dev": {}}}',
        '{"default": {"test": {"Question_G0_Q0": {"a": 1.0}}}}',
    ],
    ids=["no JSON", "a list", "another subset", "another split", "no model"],
)
def test_a_file_that_is_no_run_of_this_task_is_named(content: str, tmp_path: Path, small: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"run\.json"):
        task_at(small).convert_to_reranking(path)


@pytest.mark.parametrize("top_k", [0, -1])
def test_a_cut_below_one_is_refused(top_k: int, small: Path, first_stage: Path) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        task_at(small).convert_to_reranking(first_stage, top_k=top_k)


def test_a_first_stage_that_failed_to_load_fails_again(small: Path, first_stage: Path, tmp_path: Path) -> None:
    run: Run = json.loads(first_stage.read_text())["default"]["test"]
    del run["Question_G1_Q0"]
    task = task_at(small, first_stage_predictions=saved(tmp_path / "run.json", run), first_stage_top_k=3)
    for _ in range(2):
        with pytest.raises(ValueError, match="no candidates for 1 queries: 'Question_G1_Q0'"):
            evaluate(with_variant(CrossEncoder(), task), task)


def test_candidates_with_a_score_that_is_no_number_are_refused(small: Path, first_stage: Path, tmp_path: Path) -> None:
    run: Run = json.loads(first_stage.read_text())["default"]["test"]
    run["Question_G1_Q0"][next(iter(run["Question_G1_Q0"]))] = float("nan")
    with pytest.raises(ValueError, match=r"'Question_G1_Q0'.*finite"):
        task_at(small).convert_to_reranking(saved(tmp_path / "run.json", run), top_k=3)
