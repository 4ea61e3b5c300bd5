"""Shared by the tests of FollowIR: a server that speaks a language model's protocol."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "judge"))
