"""DTR re-created from its description in TCR-Bench's appendix D.2: a dual encoder of TAPAS, for tables."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from mteb.models import ModelMeta
from mteb.models.model_meta import ScoringFunction
from mteb.similarity_functions import dot_score, pairwise_dot_score
from mteb.types import PromptType
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch.nn.utils.rnn import pad_sequence
from transformers import TapasModel, TapasTokenizer

from evaluators.plugin.models import weights_revision
from tcr_tasks.retrieval.printed import PrintedTable, read_printed

__all__ = ["DTR", "PROJECTIONS", "QUERY_TOWER", "TABLE_TOWER", "dtr"]

logger = logging.getLogger(__name__)

QUERY_TOWER, TABLE_TOWER, PROJECTIONS = "query", "table", "projections.safetensors"
# Of TAPAS' token types the first tells the table from the text before it, the second and third number columns and rows
# from 1, the fifth and sixth rank a column's numbers, of which there may be as many as rows.
_IN_TABLE, _COLUMN, _ROW, _RANKS = 0, 1, 2, (4, 5)
# What of a table may be left out.
_PARTS = ("rows", "columns", "cell_tokens")


class _Limits(NamedTuple):
    """The most columns and rows that a checkpoint can number."""

    columns: int
    rows: int


class DTR:
    """An encoder of mteb: one TAPAS model reads questions, another one tables, and their inner product counts.

    **A re-creation.** The paper names the checkpoints (tapas_nq_retriever_large and tapas_nq_hn_retriever_large) and
    their source (Herzig et al., 2021). A question is read beside an empty table, a table beside its name. Each tower's
    pooled output is projected, if the checkpoint has projections. Rows and columns beyond those that the checkpoint can
    number are left out; of what does not fit TAPAS' tokenizer leaves out the ends of cells, then the last rows.

    Attributes:
        doubt_figures: after texts were read, what makes a score doubtful: ``tables_cut_share``, documents of which
            anything was left out; ``rows_cut_share`` and ``columns_cut_share`` of all rows and columns,
            ``cell_tokens_cut_share`` of the tokens in the rows and columns that were read;
            ``documents_without_table_share``, those that print no table and are read as text; ``queries_cut_share``.
    """

    def __init__(self, directory: Path, device: str | None = None) -> None:
        """Load a checkpoint; see :func:`dtr`."""
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._towers: dict[str, TapasModel] = {}
        self._tokenizers: dict[str, TapasTokenizer] = {}
        for tower in (QUERY_TOWER, TABLE_TOWER):
            place = str(directory / tower)
            model: Any = TapasModel.from_pretrained(place)
            self._towers[tower] = model.eval().to(self.device)
            self._tokenizers[tower] = TapasTokenizer.from_pretrained(place)
        self._limits = {t: _limits(self._towers[t], self._tokenizers[t]) for t in self._towers}
        sizes = {model.config.hidden_size for model in self._towers.values()}
        self._projections = _projections(directory / PROJECTIONS, self._towers)
        if len(sizes) > 1 and not self._projections:
            raise ValueError(f"{directory}: the towers give vectors of {sizes} numbers, and there are no projections")
        self.doubt_figures: dict[str, float] = {}
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": f"local/dtr-{directory.name}",
                "revision": weights_revision(directory),
                "model_type": ["dense"],
                "similarity_fn_name": ScoringFunction.DOT_PRODUCT,
                "experiment_kwargs": {"recreation": "dtr-2"},
            }
        )

    def encode(
        self, inputs: Any, *, prompt_type: PromptType | None = None, batch_size: int = 32, **kwargs: Any
    ) -> NDArray[np.float32]:
        """Embeddings, shape (texts, dimensions): of documents by the tower for tables, of all else by the other."""
        if prompt_type != PromptType.document:
            texts = [text for batch in inputs for text in batch["text"]]
            embedded, counts = self._embedded(QUERY_TOWER, [(text, pd.DataFrame()) for text in texts], batch_size)
            self.doubt_figures["queries_cut_share"] = counts["cut"] / max(len(texts), 1)
            return embedded
        tables: list[tuple[str, pd.DataFrame]] = []
        without = 0
        for batch in inputs:
            bodies = batch.get("body", batch["text"])
            for title, text in zip(batch.get("title", [""] * len(bodies)), bodies, strict=True):
                table = read_printed(text)
                without += table is None
                name = text if table is None else table.name
                tables.append((f"{title} {name}".strip(), pd.DataFrame() if table is None else _frame(table)))
        if without:
            logger.warning("%d of %d documents print no table, so each is read as text", without, len(tables))
        embedded, counts = self._embedded(TABLE_TOWER, tables, batch_size)
        self.doubt_figures |= {
            "tables_cut_share": counts["cut"] / max(len(tables), 1),
            **{f"{part}_cut_share": counts[f"{part} cut"] / max(counts[part], 1) for part in _PARTS},
            "documents_without_table_share": without / max(len(tables), 1),
        }
        return embedded

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Inner products of all pairs."""
        return dot_score(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Inner products of pairs."""
        return pairwise_dot_score(embeddings1, embeddings2)

    @torch.inference_mode()
    def _embedded(
        self, tower: str, texts: Sequence[tuple[str, pd.DataFrame]], batch_size: int
    ) -> tuple[NDArray[np.float32], Counter[str]]:
        """The embeddings of texts, each beside a table, and counts of what was there and what was left out of it."""
        found = []
        counts: Counter[str] = Counter()
        for start in range(0, len(texts), batch_size):
            rows = [self._tokenised(tower, *pair, counts) for pair in texts[start : start + batch_size]]
            batch = {key: pad_sequence([row[key] for row in rows], batch_first=True).to(self.device) for key in rows[0]}
            pooled = self._towers[tower](**batch).pooler_output
            matrix = self._projections.get(tower)
            found.append((pooled if matrix is None else pooled @ matrix.to(self.device)).float().cpu().numpy())
        return np.concatenate(found), counts

    def _tokenised(self, tower: str, text: str, frame: pd.DataFrame, counts: Counter[str]) -> dict[str, torch.Tensor]:
        tokenizer: Any = self._tokenizers[tower]
        most = tokenizer.model_max_length
        # The text and a token of each column must fit, or the tokenizer refuses.
        limits = self._limits[tower]
        shown = frame.iloc[: limits.rows, : min(most // 2, limits.columns)]
        words = tokenizer.tokenize(text)
        kept_words = words[: most - 2 - shown.shape[1]]
        encoded = tokenizer(
            table=shown,
            queries=tokenizer.convert_tokens_to_string(kept_words),
            truncation="drop_rows_to_fit",
            max_length=most,
            return_tensors="pt",
        )
        tokens = {key: value[0] for key, value in encoded.items()}
        cut = _cut(frame, shown, tokens["token_type_ids"], tokenizer)
        counts.update(cut)
        counts["cut"] += len(kept_words) < len(words) or any(cut[f"{part} cut"] for part in _PARTS)
        return tokens


def _cut(frame: pd.DataFrame, shown: pd.DataFrame, types: torch.Tensor, tokenizer: Any) -> Counter[str]:
    """How many rows, columns and tokens of cells there are, and how many were left out: the tokenizer does not say.

    Args:
        frame: the table.
        shown: what of it the tokenizer was given.
        types: TAPAS' token types, shape (tokens, 7).
        tokenizer: of TAPAS.
    """
    n_rows = int(types[:, _ROW].max())
    heads = [""] * shown.shape[1] if tokenizer.strip_column_names else shown.columns
    cells = [*heads, *shown.iloc[:n_rows].to_numpy().flat]
    n_tokens = sum(len(tokenizer.tokenize(cell)) for cell in cells)
    return Counter(
        {
            "rows": len(frame),
            "rows cut": len(frame) - n_rows,
            "columns": frame.shape[1],
            "columns cut": frame.shape[1] - shown.shape[1],
            "cell_tokens": n_tokens,
            "cell_tokens cut": n_tokens - int((types[:, _IN_TABLE] == 1).sum()),
        }
    )


def _limits(model: TapasModel, tokenizer: Any) -> _Limits:
    sizes = model.config.type_vocab_sizes
    # Type 0 stands for none.
    columns = min(sizes[_COLUMN], tokenizer.max_column_id) - 1
    return _Limits(columns, min(sizes[_ROW], *(sizes[at] for at in _RANKS)) - 1)


def _frame(table: PrintedTable) -> pd.DataFrame:
    """The cells as text, every row as long as the header."""
    width = len(table.header)
    rows = [(*row, *[""] * (width - len(row)))[:width] for row in table.rows]
    return pd.DataFrame(rows, columns=pd.Index(table.header, dtype=object), dtype=object)


def _projections(path: Path, towers: Mapping[str, TapasModel]) -> dict[str, torch.Tensor]:
    """Tower -> matrix, shape (hidden size, dimensions); empty if the checkpoint has none."""
    if not path.is_file():
        return {}
    found: dict[str, torch.Tensor] = load_file(path)
    shapes = {tower: tuple(found[tower].shape) for tower in towers if tower in found}
    wanted = {tower: model.config.hidden_size for tower, model in towers.items()}
    outputs = {shape[-1] for shape in shapes.values()}
    if {t: s[0] for t, s in shapes.items() if len(s) == 2} != wanted or len(outputs) != 1:
        raise ValueError(
            f"{path}: expected matrices {QUERY_TOWER!r} and {TABLE_TOWER!r} of the shape (hidden size, dimensions), "
            f"with hidden sizes {wanted}; found {shapes}"
        )
    return found


def dtr(directory: str | Path, *, device: str | None = None) -> DTR:
    """A dual encoder of TAPAS from a local checkpoint.

    Args:
        directory: holds the folders ``query`` and ``table``, each a TAPAS model with its tokenizer as transformers
            saves them, and optionally ``projections.safetensors`` with the matrices ``query`` and ``table``, of the
            shape (hidden size, dimensions), without which the pooled outputs are compared. The authors' checkpoints
            are TensorFlow's: convert them first.
        device: of torch.

    Raises:
        NotADirectoryError: if there is no such directory.
        FileNotFoundError: naming what is missing in it.
        ValueError: if the projections do not fit the models, or the towers give vectors of different length.
    """
    path = Path(directory).expanduser().resolve()
    if not path.is_dir():
        raise NotADirectoryError(
            f"DTR needs a local directory with its two TAPAS models, and {str(directory)!r} is none; a name on the hub "
            "does not do: download the model, convert it, and name the directory"
        )
    missing = [tower for tower in (QUERY_TOWER, TABLE_TOWER) if not (path / tower / "config.json").is_file()]
    if missing:
        raise FileNotFoundError(f"{path} holds no TAPAS model in {' and in '.join(missing)}: no config.json is there")
    return DTR(path, device)
