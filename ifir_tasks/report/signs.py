"""What can make an instruction hard, counted: its length, its rare terms, its conditions (IFIR, section 5.3)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?]+(?=[\s\"'”’)]|$)")
# Commas between digits belong to a number.
_JOINT = re.compile(r"[;:]|,(?!\d)|\b(?:and|or|but|nor)\b", re.IGNORECASE)
_ONLY_BLANKS = re.compile(r"\s*")
# Tokenizers that state no limit give a number of this size or more.
_NO_LIMIT = 1_000_000


def terms(text: str) -> list[str]:
    """The words of a text in lower case: at least two characters, at least one letter; in order, with repetitions."""
    return [w for w in _WORD.findall(text.lower()) if len(w) > 1 and any(map(str.isalpha, w))]


def document_frequencies(passages: Iterable[str], wanted: Iterable[str]) -> dict[str, int]:
    """In how many passages each of the wanted terms occurs."""
    counts = dict.fromkeys(wanted, 0)
    for passage in passages:
        for term in counts.keys() & set(terms(passage)):
            counts[term] += 1
    return counts


def common_wording(texts_by_base: Mapping[str, Iterable[str]], share: float) -> frozenset[str]:
    """Terms in the texts of more than this share (0..1) of the base queries, and of at least two.

    They are how a task words its requests ("please", "relevant"), rare as they may be in its passages.
    """
    counts: Counter[str] = Counter()
    for texts in texts_by_base.values():
        counts.update({term for text in texts for term in terms(text)})
    return frozenset(term for term, n in counts.items() if n > max(1.0, share * len(texts_by_base)))


class RareTerms(NamedTuple):
    """The rare terms of a text, in order of appearance, and their share among its different terms (0..1)."""

    terms: tuple[str, ...]
    share: float


def rare_terms(
    text: str, frequencies: Mapping[str, int], n_passages: int, below: float, wording: frozenset[str] = frozenset()
) -> RareTerms:
    """Terms that occur in less than the share ``below`` (0..1) of the passages, or in none, and are no common wording.

    A text without any term has the share 0.
    """
    different = list(dict.fromkeys(terms(text)))
    most = below * n_passages
    rare = tuple(t for t in different if t not in wording and (frequencies[t] == 0 or frequencies[t] < most))
    return RareTerms(rare, len(rare) / len(different) if different else 0.0)


def count_conditions(instruction: str) -> int:
    """How many conditions an instruction has, by a rule of thumb: its clauses.

    One for every sentence, and one more for every joint inside a sentence: a comma, semicolon or colon, or one of
    "and", "or", "but", "nor"; joints with nothing but blanks between them (", and") are one, and a joint at the end
    of a sentence is none. Commas inside numbers do not count.
    """
    sentences = [s for s in _SENTENCE_END.split(instruction) if any(map(str.isalnum, s))]
    return len(sentences) + sum(map(_joints, sentences))


def _joints(sentence: str) -> int:
    text = sentence.strip(" \t\n\"'”’)")
    found, end = 0, None
    for joint in _JOINT.finditer(text):
        separate = end is None or not _ONLY_BLANKS.fullmatch(text, end, joint.start())
        found += separate and joint.end() < len(text) and joint.start() > 0
        end = joint.end()
    return found


@dataclass(frozen=True)
class LengthRule:
    """How long a text is, and from where on it is too long.

    Attributes:
        unit: what is counted.
        limit: how much of it the model reads, ``None`` if that is not known.
        tokenizer: a tokenizer of transformers; without one, words between blanks are counted, of which English text
            has about three for every four tokens.
    """

    unit: str = "words between blanks"
    limit: int | None = None
    tokenizer: Any = None

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """The length of each text, special tokens included."""
        if self.tokenizer is None:
            return [len(text.split()) for text in texts]
        encoded = self.tokenizer(list(texts), truncation=False, padding=False, verbose=False)
        return [len(ids) for ids in encoded["input_ids"]]


def length_rule(tokenizer: str | None, limit: int | None) -> LengthRule:
    """Tokens of a tokenizer (a model directory or a name on the hub), or words if none is given.

    The limit, unless given, is the one in a directory's ``sentence_bert_config.json``, or the tokenizer's own.

    Raises:
        ValueError: if the tokenizer cannot be loaded or the limit is not positive.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"the limit must be at least 1 token, got {limit}")
    if tokenizer is None:
        if limit is not None:
            raise ValueError(f"a limit of {limit} tokens needs the model's tokenizer to count them with")
        return LengthRule()
    from transformers import AutoTokenizer

    try:
        loaded = AutoTokenizer.from_pretrained(tokenizer)
    except Exception as error:
        raise ValueError(
            f"{tokenizer!r} holds no tokenizer that transformers can load ({type(error).__name__}: {error}); name a "
            "model directory or a model on the hub, or leave it out to count words"
        ) from error
    return LengthRule(f"tokens of {tokenizer}", limit or _stated_limit(Path(tokenizer), loaded), loaded)


def _stated_limit(directory: Path, tokenizer: Any) -> int | None:
    config = directory / "sentence_bert_config.json"
    stated = json.loads(config.read_text(encoding="utf-8")).get("max_seq_length") if config.is_file() else None
    own = tokenizer.model_max_length
    return int(stated) if stated else int(own) if own < _NO_LIMIT else None
