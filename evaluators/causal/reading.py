"""A prompt as tokens: what is cut, what never is, and which tokens are the answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch

from evaluators.judge import Prompt

__all__ = ["Answers", "Reading", "Tokens"]

# Characters of a document that are looked at beyond a cut: a word may take fewer tokens when it is whole.
_LOOK_AHEAD = 32


class Answers(NamedTuple):
    """The token ids of the two answers."""

    false: int
    true: int


class Tokens(NamedTuple):
    """A prompt as the model reads it: token ids, and whether its document was cut."""

    ids: list[int]
    cut: bool


class Reading:
    """Makes token ids of (query, instruction, document).

    Args:
        tokenizer: of transformers.
        prompt: with the fields of :data:`evaluators.causal.settings.FIELDS`.
        true, false: the answers; what follows the prompt directly.
        chat: whether the prompt goes through the tokenizer's chat template.
        max_length: tokens at most, special ones and the chat template's included.

    Attributes:
        answers: their token ids.

    Raises:
        ValueError: if an answer is not one token after the prompt, both are the same, or there is no chat template.
    """

    def __init__(self, tokenizer: Any, prompt: Prompt, true: str, false: str, chat: bool, max_length: int) -> None:
        if chat and not getattr(tokenizer, "chat_template", None):
            raise ValueError(f"{_name(tokenizer)} has no chat template; leave out `chat`")
        self.tokenizer = tokenizer
        self.prompt = prompt
        self.chat = chat
        self.max_length = max_length
        # In plain prompts the begin token is put first by hand, since some tokenizers put an end token last, too.
        begin = tokenizer.bos_token_id
        first = tokenizer("a")["input_ids"][:1]
        self._begin = [begin] if not chat and begin is not None and first == [begin] else []
        # Chat templates use tokens that are special, but none of the named ones (all_special_tokens).
        added = {str(t) for t in tokenizer.added_tokens_decoder.values() if t.special}
        named = {str(t) for t in tokenizer.all_special_tokens}
        special = sorted((t for t in added | named if len(t) > 1), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, special))) if special else None
        self.answers = Answers(self._answer(false), self._answer(true))
        if self.answers.false == self.answers.true:
            raise ValueError(f"{_name(tokenizer)}: {false!r} and {true!r} are the same token")

    def read(self, query: str, instruction: str, document: str) -> Tokens:
        """The prompt's tokens; of a document that is too long, the longest beginning that fits.

        More characters may take fewer tokens, when they complete a word: words of up to ``_LOOK_AHEAD`` characters are
        tried as a whole.

        Special tokens within the texts are broken up, so that no document can end the place it stands in.

        Raises:
            ValueError: if query and instruction do not fit even without a document.
        """
        query, instruction, document = (self._harmless(text) for text in (query, instruction, document))
        (ids,) = self._ids((query, instruction, document))
        if len(ids) <= self.max_length:
            return Tokens(ids, False)
        (kept,) = self._ids((query, instruction, ""))
        if len(kept) > self.max_length:
            raise ValueError(self._no_room(query, len(kept)))
        fits, too_long = 0, len(document)
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            (found,) = self._ids((query, instruction, document[:middle]))
            if len(found) <= self.max_length:
                fits, kept = middle, found
            else:
                too_long = middle
        while longer := self._longer(query, instruction, document, fits):
            fits, kept = longer
        return Tokens(kept, True)

    def sizes(self, rows: Sequence[tuple[str, str, str]]) -> list[int]:
        """The tokens of each (query, instruction, document) with the prompt, nothing cut."""
        harmless = ((self._harmless(q), self._harmless(i), self._harmless(d)) for q, i, d in rows)
        return [len(ids) for ids in self._ids(*harmless)]

    def n_cut(self, rows: Sequence[tuple[str, str, str]]) -> int:
        """How many (query, instruction, document) have a document that does not fit as a whole."""
        return sum(size > self.max_length for size in self.sizes(rows))

    def require_room(self, asked: Iterable[tuple[str, str]]) -> None:
        """Check that each (query, instruction) leaves room for a document, before anything is computed for one.

        Raises:
            ValueError: naming the longest that does not fit, and how many there are.
        """
        different = list(dict.fromkeys(asked))
        whole = self._ids(*((self._harmless(query), self._harmless(told), "") for query, told in different))
        sizes = {pair: len(ids) for pair, ids in zip(different, whole, strict=True) if len(ids) > self.max_length}
        if sizes:
            longest = max(sizes, key=lambda pair: sizes[pair])
            more = f" ({len(sizes)} of {len(different)} are too long)" if len(sizes) > 1 else ""
            raise ValueError(self._no_room(longest[0], sizes[longest]) + more)

    def _no_room(self, query: str, size: int) -> str:
        what, named = ("with this query and its instruction ", f": {query[:80]!r}") if query else ("", "")
        return (
            f"the prompt {what}has {size} tokens without a document, more than the {self.max_length} that fit "
            f"(max_length, or the model's positions){named}"
        )

    def _longer(self, query: str, instruction: str, document: str, fits: int) -> tuple[int, list[int]] | None:
        """A longer beginning that fits although some between them do not."""
        ends = range(fits + 1, min(fits + _LOOK_AHEAD, len(document)) + 1)
        found = self._ids(*((query, instruction, document[:end]) for end in ends))
        fitting = [(end, ids) for end, ids in zip(ends, found, strict=True) if len(ids) <= self.max_length]
        return fitting[-1] if fitting else None

    def padded(self, rows: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
        """A batch, padded on the left: ids, mask and positions, each (rows x longest)."""
        width = max(map(len, rows))
        pad = self.tokenizer.pad_token_id
        fill = 0 if pad is None else int(pad)
        ids = torch.tensor([[fill] * (width - len(row)) + list(row) for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        return {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(1) - 1).clamp(min=0)}

    def _harmless(self, text: str) -> str:
        return text if self._special is None else self._special.sub(lambda m: m[0][:1] + " " + m[0][1:], text)

    def _text(self, query: str, instruction: str, document: str) -> str:
        messages = [dict(m) for m in self.prompt.messages(query=query, instruction=instruction, document=document)]
        if not self.chat:
            return "\n\n".join(message["content"] for message in messages)
        return str(self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    def _ids(self, *rows: tuple[str, str, str], answer: str = "") -> list[list[int]]:
        """The tokens of each (query, instruction, document), with an answer behind the prompt."""
        texts = [self._text(*row) + answer for row in rows]
        if not texts:
            return []
        found = self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        return [[*self._begin, *ids] for ids in found]

    def _answer(self, word: str) -> int:
        """The one token by which a prompt that ends in the answer is longer."""
        without, with_answer = (self._ids(("a", "b", "c"), answer=answer)[0] for answer in ("", word))
        added = with_answer[len(without) :]
        if with_answer[: len(without)] != without or len(added) != 1 or added == [self.tokenizer.unk_token_id]:
            told = self.tokenizer.convert_ids_to_tokens(with_answer[max(len(without) - 1, 0) :])
            raise ValueError(
                f"the answer {word!r} is not one token of {_name(tokenizer=self.tokenizer)} after the prompt "
                f"{self.prompt.name!r}, whose end becomes {told}; name answers that are, with or without a leading "
                "blank (true and false of the settings), or end the prompt otherwise"
            )
        return int(added[0])


def _name(tokenizer: Any) -> str:
    return str(getattr(tokenizer, "name_or_path", "") or "the tokenizer")
