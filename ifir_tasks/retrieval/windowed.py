"""A sentence-transformers encoder that embeds windows of tokens and averages them, in full batches."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device, quantize_embeddings, truncate_embeddings
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from tqdm.auto import tqdm  # type: ignore[import-untyped]

from evaluators.windows import window_starts

# Texts tokenised at once, and batches of windows held at once: what bounds memory, whatever the number of texts.
_TEXTS_TOKENISED = 64
_BATCHES_HELD = 64
# Arguments of `encode` that may be given as long as they ask for nothing special, and those that change nothing here:
# `task` concerns models with routes, which are refused.
_USUAL: dict[str, tuple[Any, ...]] = {
    "output_value": ("sentence_embedding",),
    "convert_to_numpy": (True,),
    "device": (None,),
    "pool": (None,),
}
_IGNORED = {"task", "chunk_size"}


class _Form(NamedTuple):
    """What becomes of an embedding: cut to so many dimensions, normalised."""

    truncate_dim: int | None
    normalize: bool


class WindowedEncoder(SentenceTransformer):
    """The modules of an encoder, read in windows; ``encode`` takes what mteb gives it.

    Text and prompt are tokenised as the encoder does it, once. Each window is made of the tokens in front of the text
    (special tokens and prompt), a stretch of the text's tokens, and the special tokens behind it. Windows of many
    texts share a batch.

    Attributes:
        window: tokens of a window, special tokens and prompt included: the given one or the model's limit.
        overlap: tokens of text shared by neighbouring windows.
        trailing: see :func:`~evaluators.windows.window_starts`.
    """

    def __init__(self, encoder: SentenceTransformer, window: int, overlap: int, *, trailing: bool = False) -> None:
        """Take over modules, device, prompts, similarity and truncation of ``encoder``, which is left as it is.

        Raises:
            ValueError: if a window has no room for more text than the overlap.
        """
        super().__init__(
            modules=list(encoder),
            device=str(encoder.device),
            prompts={name: prompt or "" for name, prompt in encoder.prompts.items()},
            default_prompt_name=encoder.default_prompt_name,
            similarity_fn_name=encoder.similarity_fn_name,
            truncate_dim=encoder.truncate_dim,
        )
        limit = encoder.max_seq_length
        self.window = window if limit is None else min(window, int(limit))
        self.overlap = overlap
        self.trailing = trailing
        mask = self.tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
        self._front, self._back = mask.index(0), mask[::-1].index(0)
        self._check_room(self._front)

    @property  # type: ignore[misc]
    def max_seq_length(self) -> int:
        """No text is cut off."""
        return sys.maxsize

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: whoever calls the modules directly would go without windows."""
        raise ValueError(
            "the model's wrapper does not encode through sentence-transformers' `encode`, so the sliding window would "
            "not be applied; give the SentenceTransformer itself"
        )

    @torch.inference_mode()
    def encode(  # type: ignore[override]
        self,
        inputs: Sequence[str] | str,
        prompt_name: str | None = None,
        prompt: str | None = None,
        *,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        precision: Any = "float32",
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        **others: Any,
    ) -> Tensor | NDArray[Any]:
        """Embeddings of texts, shape (texts, dimensions), or (dimensions,) for one text; float32 unless quantised.

        The arguments are those of ``SentenceTransformer.encode``; a precision is applied to the means.

        Raises:
            ValueError: for input that is no text, an argument that windows do not support, an unknown prompt name,
                or a prompt that leaves no room for text.
        """
        special = [k for k, v in others.items() if k not in _IGNORED and (k not in _USUAL or v not in _USUAL[k])]
        if special:
            raise ValueError(f"a sliding window does not support these arguments of encode: {', '.join(special)}")
        texts = [inputs] if isinstance(inputs, str) else list(inputs)
        strange = next((t for t in texts if not isinstance(t, str)), None)
        if strange is not None:
            raise ValueError(f"a sliding window reads texts, got {type(strange).__name__}")
        if not texts:
            return torch.tensor([]) if convert_to_tensor else np.array([])
        form = _Form(self.truncate_dim if truncate_dim is None else truncate_dim, normalize_embeddings)
        means = self._means(texts, self._prompt(prompt_name, prompt), form, batch_size, bool(show_progress_bar))
        found: Any = means if precision in (None, "float32") else quantize_embeddings(means, precision=precision)
        found = torch.as_tensor(found).to(self.device) if convert_to_tensor else np.asarray(found)
        return found[0] if isinstance(inputs, str) else found  # type: ignore[no-any-return]

    def _prompt(self, prompt_name: str | None, prompt: str | None) -> str:
        """What is put in front of the texts, chosen as sentence-transformers does."""
        if prompt is not None:
            return prompt
        name = self.default_prompt_name if prompt_name is None else prompt_name
        if name is None:
            return ""
        if name not in self.prompts:
            raise ValueError(f"the model has no prompt named {name!r}; it has {', '.join(self.prompts) or 'none'}")
        return self.prompts[name] or ""

    def _means(self, texts: list[str], prompt: str, form: _Form, batch_size: int, progress: bool) -> Tensor:
        """The means of the texts' windows, in the texts' order, on the processor."""
        front = self._front
        if prompt:
            front += len(self.tokenizer(prompt, add_special_tokens=False)["input_ids"])
            self._check_room(front)
        # Longest first, so that windows of similar length share a batch.
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        found = []
        self.eval()
        with tqdm(total=len(texts), desc="Texts", disable=not progress) as bar:
            for group in self._groups([texts[i] for i in order], prompt, front, _BATCHES_HELD * batch_size):
                embedded = self._embed([w for windows in group for w in windows], front, form, batch_size)
                found.append(torch.segment_reduce(embedded, "mean", lengths=torch.tensor([len(w) for w in group])))
                bar.update(len(group))
        means = torch.cat(found)
        # The plain encoder's embeddings have unit length if it normalises last, and then so have these.
        if form.normalize or (form.truncate_dim is None and type(self[-1]).__name__ == "Normalize"):
            means = torch.nn.functional.normalize(means, dim=1)
        return torch.empty_like(means).index_copy_(0, torch.tensor(order), means)

    def _groups(self, texts: list[str], prompt: str, front: int, least: int) -> Iterator[list[list[list[int]]]]:
        """Groups of texts, each text as its windows; a group has at least so many windows, but for the last one."""
        group: list[list[list[int]]] = []
        held = 0
        for start in range(0, len(texts), _TEXTS_TOKENISED):
            part = [prompt + text for text in texts[start : start + _TEXTS_TOKENISED]]
            for ids in self.tokenizer(part, truncation=False, padding=False, verbose=False)["input_ids"]:
                group.append(self._windows(ids, front))
                held += len(group[-1])
                if held >= least:
                    yield group
                    group, held = [], 0
        if group:
            yield group

    def _windows(self, ids: list[int], front: int) -> list[list[int]]:
        """The windows of one text, as token ids, of which ``front`` precede the text itself."""
        end = len(ids) - self._back
        size = self.window - front - self._back
        starts = window_starts(end - front, size, self.overlap, trailing=self.trailing)
        if len(starts) == 1:
            return [ids]
        return [ids[:front] + ids[s : min(s + size, end)] + ids[end:] for s in (front + start for start in starts)]

    def _embed(self, windows: list[list[int]], front: int, form: _Form, batch_size: int) -> Tensor:
        """The encoder's embeddings of windows, in their order, float32 on the processor."""
        order = sorted(range(len(windows)), key=lambda i: -len(windows[i]))
        padding = self.tokenizer.pad_token_id or 0
        batches = []
        for start in range(0, len(order), batch_size):
            rows = [torch.tensor(windows[i], dtype=torch.long) for i in order[start : start + batch_size]]
            features: dict[str, Any] = {
                "input_ids": pad_sequence(rows, batch_first=True, padding_value=padding),
                "attention_mask": pad_sequence([torch.ones_like(row) for row in rows], batch_first=True),
            }
            if front > self._front:
                features["prompt_length"] = front  # some encoders leave the prompt out of their mean
            out = super().forward(batch_to_device(features, self.device))["sentence_embedding"]
            out = truncate_embeddings(out, form.truncate_dim)
            batches.append((torch.nn.functional.normalize(out, dim=1) if form.normalize else out).float().cpu())
        embedded = torch.cat(batches)
        return torch.empty_like(embedded).index_copy_(0, torch.tensor(order), embedded)

    def _check_room(self, front: int) -> None:
        size = self.window - front - self._back
        if size <= self.overlap:
            raise ValueError(
                f"a window of {self.window} tokens, {self.window - size} of them special tokens or prompt, has no room "
                f"for more text than the overlap of {self.overlap}; choose a smaller overlap or shorter prompts"
            )
