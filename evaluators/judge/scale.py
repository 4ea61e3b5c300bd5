"""Scales on which passages are scored."""

from __future__ import annotations

# Lowest and highest score, both whole numbers.
Scale = tuple[int, int]
# The scale on which IFIR's authors compared their judge with people (section 6).
LIKERT: Scale = (1, 5)
