"""Training: configurations, parts by source database, negatives that never answer, and the losses."""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import re
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from training_data import DATABASES, SIBLINGS_THAT_ANSWER, WRONG, write_plain, write_small

from evaluators.training.config import Adaptation, Shares
from evaluators.training.extra import MissingExtraError, require_extra
from evaluators.training.splits import split
from evaluators.training.trainers import Resumable
from tcr_tasks.serialize import TableFormat
from tcr_tasks.tasks import INSTRUCTION
from tcr_tasks.training import command
from tcr_tasks.training.batches import IN_BATCH, POSITIVE, SIBLING, UNUSED, roles
from tcr_tasks.training.collection import Collection, Problem, read_collection
from tcr_tasks.training.config import CrossEncoding, Evaluation, Keeping, NamedModel, Source, TrainingConfig
from tcr_tasks.training.examples import Example, make_examples
from tcr_tasks.training.objective import AnswerabilityLoss, contrast, drift
from tcr_tasks.training.reading import READY, config_file, read_config, with_places
from tcr_tasks.training.splits import part_of


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return read_collection(write_small(tmp_path_factory.mktemp("small") / "data"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return read_collection(write_plain(tmp_path_factory.mktemp("plain") / "data"))


def config(**fields: Any) -> TrainingConfig:
    given: dict[str, Any] = {
        "name": "test",
        "base": "model",
        "learning_rates": [1e-3],
        "sources": [{"name": "a", "data": "x"}],
        "evaluations": [{"name": "e", "data": "x", "select": True}],
        **fields,
    }
    return TrainingConfig.model_validate(given)


# --- configurations -----------------------------------------------------------------------------------------------

# Tables 30, 35 and 38 of the paper, and the learning rates of its L.1, L.3 and L.4.
PAPER: dict[str, dict[str, Any]] = {
    "table-30": {
        "learning_rates": (1e-5, 3e-5, 1e-4, 2e-4, 3e-4, 5e-4, 1e-3, 2e-3, 5e-3),
        "batch_size": 8,
        "gradient_accumulation": 2,
        "passage_length": 512,
        "lora": None,
        "sources": {"TCR-Bench": None},
    },
    "table-35": {
        "learning_rates": (5e-5, 1e-4, 2e-4, 3e-4, 5e-4),
        "batch_size": 4,
        "gradient_accumulation": 4,
        "passage_length": 2048,
        "lora": (16, 32, 0.05),
        "sources": {"TabFact-train": 7326, "FeTaQA-train": 7326},
    },
    "table-38": {
        "learning_rates": (1e-4, 2e-4),
        "batch_size": 4,
        "gradient_accumulation": 4,
        "passage_length": 2048,
        "lora": (16, 32, 0.05),
        "sources": {"TabFact-train": 7326, "FeTaQA-train": 7326, "TCR-Bench": 7326},
    },
}


@pytest.mark.parametrize("name", PAPER)
def test_the_ready_configurations_are_the_papers(name: str) -> None:
    ready, paper = read_config(name), PAPER[name]
    assert ready.base == "Qwen/Qwen3-Embedding-0.6B"
    assert (ready.temperature, ready.epochs, ready.max_negatives, ready.seeds) == (0.1, 5, 16, (42,))
    assert (ready.warmup_ratio, ready.weight_decay, ready.precision) == (0.05, 0.01, "bf16")
    assert (ready.query_length, ready.passage_length) == (512, paper["passage_length"])
    assert (ready.batch_size, ready.gradient_accumulation) == (paper["batch_size"], paper["gradient_accumulation"])
    assert ready.learning_rates == paper["learning_rates"]
    assert (ready.lora and (ready.lora.r, ready.lora.alpha, ready.lora.dropout)) == paper["lora"]
    assert {source.name: source.examples for source in ready.sources} == paper["sources"]
    assert ready.in_batch and ready.keep is None and ready.cross_encoder is None
    for entry in (*ready.sources, *ready.evaluations):
        if entry.name == "TCR-Bench":
            assert entry.prefix == f"{INSTRUCTION} "


def test_the_example_shows_every_key() -> None:
    assert set(READY) == {"small", *PAPER}
    text = config_file("small").read_text(encoding="utf-8")
    given = read_config("small")
    assert given.sources[0].task == "TCRSample"
    for model in (TrainingConfig, Source, Evaluation, Shares, CrossEncoding, Adaptation, Keeping, NamedModel):
        for key in model.model_fields:
            assert re.search(rf"^(# )?\[?\[?{key}( =|\])", text, re.MULTILINE) or f" {key} = " in text, key
    # Whatever stands behind a comment is right, too.
    whole = re.sub(r"^# (?=[\[a-z_]+( =|\]))", "", text.split("\n", 2)[2], flags=re.MULTILINE)
    TrainingConfig.model_validate(tomllib.loads(whole) | {"cross_encoder": None})


def test_joint_training_is_1_to_1_to_1_with_21978_examples() -> None:
    assert sum(source.examples or 0 for source in read_config("table-38").sources) == 21_978


WRONG_KEYS = {
    "learning_rate = 1e-3": "unknown key 'learning_rate'; did you mean 'learning_rates'?",
    "[lora]\nalfa = 3": "unknown key 'lora.alfa'; did you mean 'alpha'?",
    "[keep]\nwieght = 2": "unknown key 'keep.wieght'; did you mean 'weight'?",
    "temperature = 0": "temperature: Input should be greater than 0, got 0",
    "seeds = [1, 1]": "seeds: a value occurs twice: [1, 1]",
    "[[models]]\nname = 'a b'\npath = 'x'\n[[models]]\nname = 'a_b'\npath = 'y'": "models: names that occur twice",
    "[cross_encoder]\n[lora]": "[cross_encoder] trains all weights of a reranker: leave out [keep] and [lora]",
}
BODY = """
name = "t"
base = "b"
learning_rates = [1e-3]
sources = [{ name = "a", data = "x" }]
evaluations = [{ name = "e", data = "x", select = true }]
"""


@pytest.mark.parametrize("line", WRONG_KEYS)
def test_what_a_file_says_wrongly_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(BODY + line)
    with pytest.raises(ValueError) as caught:
        read_config(tmp_path / "c.toml")
    assert WRONG_KEYS[line] in str(caught.value)


def test_keys_in_lists_and_missing_ones_are_named(tmp_path: Path) -> None:
    fields = {"name": "t", "base": "b", "learning_rates": [1e-3], "evaluations": [{"name": "e", "slect": True}]}
    (tmp_path / "c.json").write_text(json.dumps(fields))
    with pytest.raises(ValueError, match=r"(?s)'sources' is missing.*'evaluations.0.slect'; did you mean 'select'\?"):
        read_config(tmp_path / "c.json")


def test_files_are_looked_for_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(BODY)
    read = read_config(tmp_path / "c.toml")
    assert read.sources[0].data == tmp_path / "x"
    with pytest.raises(FileNotFoundError, match="table-30"):
        read_config(tmp_path / "other.toml")


def test_data_without_a_place_ask_for_one() -> None:
    ready = read_config("table-35")
    with pytest.raises(ValueError, match="--data 'TabFact-train'=DIR"):
        with_places(ready, {})
    with pytest.raises(ValueError, match="did you mean 'FeTaQA-train'"):
        with_places(ready, {"FetaQA-train": Path("x")})
    names = {s.name for s in ready.sources} | {e.name for e in ready.evaluations}
    placed = with_places(ready, {name: Path(name) for name in names})
    assert [s.data for s in placed.sources] == [Path("TabFact-train"), Path("FeTaQA-train")]
    assert all(e.task is None for e in placed.evaluations)


def test_settings_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(ValueError, match="no evaluation has `select = true`"):
        config(evaluations=[{"name": "e", "data": "x"}])
    with pytest.raises(ValueError, match=r"'a' is the part 'train', but there is no \[split\]"):
        config(sources=[{"name": "a", "data": "x", "part": "train"}])
    with pytest.raises(ValueError, match="both `data` and `task`"):
        config(sources=[{"name": "a", "data": "x", "task": "TCRSample"}])
    with pytest.raises(ValueError, match="leave nothing to train on"):
        config(split={"test": 0.5, "validation": 0.5})


# --- the extra ----------------------------------------------------------------------------------------------------


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs accelerate, .*pip install 'mteb-beyond\[train\]'"):
        require_extra()
    with pytest.raises(MissingExtraError, match="accelerate and peft"):
        require_extra(lora=True)


def test_the_command_line_does_not_import_the_training() -> None:
    tree = ast.parse(Path(command.__file__).read_text(encoding="utf-8"))
    names = {n.module for n in tree.body if isinstance(n, ast.ImportFrom)}
    names |= {a.name for n in tree.body if isinstance(n, ast.Import) for a in n.names}
    assert names == {"__future__", "argparse", "pathlib", "typing"}


# --- parts --------------------------------------------------------------------------------------------------------


def units(collection: Collection) -> dict[str, frozenset[str]]:
    return {problem.id: problem.units for problem in collection.problems}


def test_parts_share_no_database_and_no_source_table(small: Collection) -> None:
    database = {p.id: DATABASES[int(p.id[1])] for p in small.problems}
    seen = set()
    for seed in range(20):
        chosen = split(units(small), Shares(validation=0.2, test=0.2, seed=seed))
        parts = {name: {chosen[q] for q in chosen if database[q] == name} for name in DATABASES}
        assert all(len(part) == 1 for part in parts.values())
        assert parts["shops"] == parts["ships"]
        sizes = [list(chosen.values()).count(part) for part in ("train", "validation", "test")]
        assert sum(sizes) == 10 and min(sizes) >= 2
        seen.add(tuple(chosen.values()))
    assert len(seen) > 1  # the seed decides


def test_a_part_that_would_be_empty_is_refused(small: Collection) -> None:
    assert len(part_of(small, "all", None)) == 10
    with pytest.raises(ValueError, match=r"the part 'validation' is empty; its 10 questions lie in 4 sources"):
        part_of(small, "validation", Shares(test=0.2))


def test_questions_on_one_document_stay_together(plain: Collection) -> None:
    # p0 and p1 both have d1.
    for seed in range(10):
        chosen = split(units(plain), Shares(test=0.4, seed=seed))
        assert chosen["p0"] == chosen["p1"]


# --- examples -----------------------------------------------------------------------------------------------------


def test_siblings_that_answer_are_no_negatives(small: Collection) -> None:
    made = make_examples(config(), {"a": small}, 0)
    by_id = {example.id: example for example in made.rows}
    for problem in small.problems:
        example = by_id[problem.id]
        assert example.positive == small.texts[problem.positives[0]]
        expected = {small.texts[d] for d in problem.group or ()} - {small.texts[d] for d in problem.answering}
        assert set(example.negatives) == expected
    wrong = next(p for p in small.problems if DATABASES[int(p.id[1])] == WRONG and p.id.endswith("0"))
    assert len(by_id[wrong.id].negatives) == 2 and all(len(e.negatives) == 3 for k, e in by_id.items() if k != wrong.id)
    assert f"{SIBLINGS_THAT_ANSWER} siblings that answer" in "".join(made.notes)


def test_an_answer_in_another_sources_format_is_barred(small: Collection) -> None:
    sources = [{"name": "a", "data": "x", "prefix": "q: "}, {"name": "b", "data": "x", "format": "html"}]
    made = make_examples(config(sources=sources), {"a": small, "b": small}, 0)
    html = small.printed(TableFormat.HTML)
    assert len(made.rows) == 20
    for example in made.rows:
        problem = next(p for p in small.problems if p.id == example.id)
        assert example.barred == {texts[d] for texts in (small.texts, html) for d in problem.answering}
        assert example.query == ("q: " if example.source == "a" else "") + problem.text


def test_without_groups_there_are_in_batch_negatives_only(plain: Collection) -> None:
    rows = {(e.id, e.positive): e for e in make_examples(config(), {"a": plain}, 0).rows}
    assert len(rows) == 7 and not any(e.negatives for e in rows.values())
    assert rows["p0", plain.texts["d0"]].barred == {plain.texts["d0"], plain.texts["d1"]}
    with pytest.raises(ValueError, match="its questions have no siblings, and in_batch = false"):
        make_examples(config(in_batch=False), {"a": plain}, 0)


def test_upsampling_gives_as_many_examples_as_asked_for(small: Collection, plain: Collection) -> None:
    sources = [{"name": "a", "data": "x", "examples": 25}, {"name": "b", "data": "y", "examples": 5}]
    asked = config(sources=sources)
    made = [make_examples(asked, {"a": small, "b": plain}, seed) for seed in (1, 1, 2)]
    assert [e.source for e in made[0].rows] == ["a"] * 25 + ["b"] * 5
    assert all(e.negatives for e in made[0].rows if e.source == "a")
    assert made[0] == made[1] != made[2]
    assert made[0].notes[-2:] == (
        "a: 25 examples, drawn with replacement from 10",
        "b: 5 of 7 examples, drawn",
    )


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    """Groups with repeated texts, and answers that nobody judged."""
    n = draw(st.integers(3, 12))
    texts = {f"d{at}": draw(st.sampled_from("abcdefgh")) for at in range(n)}
    problems = []
    for at in range(draw(st.integers(1, 5))):
        group = draw(st.lists(st.sampled_from(sorted(texts)), min_size=2, max_size=n, unique=True))
        also = draw(st.sets(st.sampled_from(sorted(texts)), max_size=2))
        text = draw(st.sampled_from(("same", f"question {at}")))
        problems.append(
            Problem(f"q{at}", text, (group[0],), frozenset({group[0], *also}), tuple(group), "EM", frozenset({"u"}))
        )
    return Collection(Path("x"), "r", tuple(problems), {}, texts)


@settings(max_examples=60, deadline=None)
@given(collection=collections(), most=st.integers(0, 4), seed=st.integers(0, 3))
def test_no_negative_answers_whatever_it_is_called(collection: Collection, most: int, seed: int) -> None:
    made = make_examples(config(max_negatives=most), {"a": collection}, seed)
    answers: dict[str, set[str]] = {}
    for problem in collection.problems:  # of questions with one text, too
        answers.setdefault(problem.text, set()).update(collection.texts[d] for d in problem.answering)
    documents, matrix = roles(made.rows)
    assert len(set(documents)) == len(documents)
    for example, row in zip(made.rows, matrix.tolist(), strict=True):
        role = dict(zip(documents, row, strict=True))
        assert len(example.negatives) <= most
        assert [d for d in documents if role[d] == POSITIVE] == [example.positive]
        assert {d for d in documents if role[d] == SIBLING} == set(example.negatives)
        used = {d for d in documents if role[d] in (SIBLING, IN_BATCH)}
        assert used.isdisjoint(answers[example.question])
        assert used | answers[example.question] >= set(documents)  # and nothing else is left out


def test_at_most_so_many_siblings_drawn_by_the_seed(small: Collection) -> None:
    def drawn(seed: int) -> list[tuple[str, ...]]:
        return [e.negatives for e in make_examples(config(max_negatives=2), {"a": small}, seed).rows]

    assert drawn(1) == drawn(1) != drawn(2)
    assert {len(negatives) for negatives in drawn(1)} == {2}


# --- batches and losses -------------------------------------------------------------------------------------------


def example(query: str, positive: str, *negatives: str, barred: Mapping[str, None] | set[str] = frozenset()) -> Example:
    return Example("s", query, query, query, positive, negatives, frozenset({positive, *barred}), positive[0])


def test_roles_of_a_batch_by_hand() -> None:
    # Two questions on one group (a1, a2, a3), one on another; b1 answers the first, too.
    batch = [
        example("one", "a1", "a2", "a3", barred={"b1"}),
        example("two", "a2", "a1", "a3"),
        example("three", "b1", "b2"),
    ]
    documents, matrix = roles(batch)
    assert documents == ["a1", "a2", "a3", "b1", "b2"]
    assert matrix.tolist() == [
        [POSITIVE, SIBLING, SIBLING, UNUSED, IN_BATCH],
        [SIBLING, POSITIVE, SIBLING, IN_BATCH, IN_BATCH],
        [IN_BATCH, IN_BATCH, IN_BATCH, POSITIVE, SIBLING],
    ]


def test_contrast_by_hand() -> None:
    # exp(c / 0.1) of the positive is exp(8); the differences to the others are 2, 6 and 1 (not allowed).
    cosines = torch.tensor([[0.8, 0.6, 0.2, 0.7]])
    assert contrast(cosines, torch.tensor([[POSITIVE, SIBLING, IN_BATCH, UNUSED]]), 0.1, True).item() == pytest.approx(
        math.log(1 + math.exp(-2) + math.exp(-6)), rel=1e-5
    )
    assert contrast(cosines, torch.tensor([[POSITIVE, SIBLING, IN_BATCH, UNUSED]]), 0.1, False).item() == pytest.approx(
        math.log(1 + math.exp(-2)), rel=1e-5
    )
    assert contrast(cosines, torch.tensor([[POSITIVE, UNUSED, UNUSED, UNUSED]]), 0.1, True).item() == 0


def test_contrast_is_sentence_transformers_loss_where_that_one_is_defined() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    generator = torch.Generator().manual_seed(0)
    n, siblings = 5, 3
    columns = [torch.randn(n, 8, generator=generator) for _ in range(2 + siblings)]
    expected = MultipleNegativesRankingLoss(torch.nn.Identity(), scale=10.0).compute_loss_from_embeddings(
        columns, torch.empty(0)
    )
    units = [torch.nn.functional.normalize(c, dim=1) for c in columns]
    matrix = torch.full((n, n * (1 + siblings)), IN_BATCH)
    for row in range(n):
        matrix[row, row::n] = SIBLING
        matrix[row, row] = POSITIVE
    found = contrast(units[0] @ torch.cat(units[1:]).T, matrix, 0.1, True)
    torch.testing.assert_close(found, expected)


def test_drift_looks_at_pairs_of_different_groups_only() -> None:
    # Texts 0 and 1 are of one group. Base: all at right angles. Now: cos(0, 1) = 1 and cos(0, 2) = cos(1, 2) = 0.6.
    vectors = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.6, 0.8]])
    groups = torch.tensor([0, 0, 1])
    assert drift(vectors, torch.eye(3), groups).item() == pytest.approx(0.36)
    assert drift(vectors, torch.eye(3), torch.zeros(3)).item() == 0


class _Table(torch.nn.Module):
    """A model whose texts are numbers and whose embeddings are free."""

    def __init__(self, vectors: torch.Tensor) -> None:
        super().__init__()
        self.vectors = torch.nn.Parameter(vectors.clone())

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"sentence_embedding": self.vectors[features["at"]]}


def test_holding_similarities_moves_them_less_and_still_finds_the_target() -> None:
    # Two queries (0, 1) with a target and a sibling each (2, 3 and 4, 5), and two other texts (6, 7).
    base = torch.randn(8, 4, generator=torch.Generator().manual_seed(3))
    units = torch.nn.functional.normalize(base, dim=1)
    groups = torch.tensor([0, 1, 0, 0, 1, 1, 2, 3])
    matrix = torch.tensor([[POSITIVE, SIBLING, IN_BATCH, IN_BATCH], [IN_BATCH, IN_BATCH, POSITIVE, SIBLING]])
    features = [{"at": torch.arange(2)}, {"at": torch.arange(2, 8)}]
    moved, target_first = {}, {}
    for keep in (0.0, 1.0):
        model = _Table(base)
        loss = AnswerabilityLoss(model, 0.1, True, keep)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(200):
            optimiser.zero_grad()
            loss(features, {"roles": matrix, "teacher": units, "groups": groups}).backward()
            optimiser.step()
        after = torch.nn.functional.normalize(model.vectors.detach(), dim=1)
        moved[keep] = drift(after, units, groups).item()
        cosines = after[:2] @ after[2:6].T
        target_first[keep] = [bool(cosines[0, 0] > cosines[0, 1]), bool(cosines[1, 2] > cosines[1, 3])]
    assert moved[1.0] < moved[0.0] / 3
    assert target_first == {0.0: [True, True], 1.0: [True, True]}


def test_batches_depend_on_seed_and_epoch_and_keep_groups_together() -> None:
    trainer = Resumable()

    def order(groups: list[str] | None, seed: int, epoch: int) -> list[list[int]]:
        trainer.groups = groups
        sampler = trainer.get_batch_sampler(range(12), 3, False, seed=seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    assert order(None, 1, 0) == order(None, 1, 0) != order(None, 1, 1) != order(None, 2, 1)
    assert sorted(row for batch in order(None, 1, 0) for row in batch) == list(range(12))
    names = [str(at % 4) for at in range(12)]
    assert all(len({names[at] for at in batch}) == 1 for batch in order(names, 1, 0))
    assert sorted(row for batch in order(names, 1, 0) for row in batch) == list(range(12))


def test_the_place_of_data_is_name_and_folder() -> None:
    assert command._place("A b=x/y=z") == ("A b", Path("x/y=z"))
    with pytest.raises(Exception, match="expected NAME=DIR"):
        command._place("x/y")


def test_texts_cannot_be_printed_as_tables(plain: Collection) -> None:
    source = Source(name="a", data=Path("x"), format=TableFormat.HTML)
    with pytest.raises(ValueError, match="holds texts, not tables"):
        make_examples(config().model_copy(update={"sources": (source,)}), {"a": plain}, 0)
