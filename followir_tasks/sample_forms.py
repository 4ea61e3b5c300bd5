"""Shorter forms of the sample's narratives, by rule: no language model has a part in the sample.

The short form is the narrative's first sentence, which says what is relevant, and for the changed narrative the added
sentence, too. Its keywords are its words in small letters, each once, in order, without the words of ``_LEFT_OUT``.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[a-z0-9]+(?:[-,'][a-z0-9]+)*")
_SENTENCE = re.compile(r"(?<=\.) ")
# Words without a subject of their own, and those that only speak of relevance.
_LEFT_OUT = frozenset(
    re.findall(
        r"[a-z]+",
        """a about across actually addition after again alone also an and any are as at be been before being between
        both but by can count did do does down either every everyone first for from get give given go goes had has have
        her his how i if in into is it its itself least like made make may more most must name neither no nor not of
        off on one only or other otherwise out over own put said say saying says shall she should show shown so some
        somebody such than that the their them themselves these they this those through to too under until up upon use
        used was way were what when where whether which while who whose why will with within without would yet
        document documents relevant report reported reporting reports describe describes explain explains""",
    )
)


def short_forms(narrative: str, changed: str) -> tuple[str, str]:
    """The short forms of a narrative and of the changed one, which has a sentence more.

    Raises:
        ValueError: if the changed narrative is not the narrative with sentences added.
    """
    plain, longer = _SENTENCE.split(narrative), _SENTENCE.split(changed)
    added = [sentence for sentence in longer if sentence not in plain]
    if not added or [sentence for sentence in longer if sentence in plain] != plain:
        raise ValueError(f"the changed narrative does not add a sentence to {narrative[:60]!r}")
    return plain[0], " ".join([plain[0], *added])


def keywords(text: str) -> str:
    """The words that carry the subject of a text."""
    words = _WORD.findall(text.lower())
    return " ".join(dict.fromkeys(word for word in words if word not in _LEFT_OUT))
