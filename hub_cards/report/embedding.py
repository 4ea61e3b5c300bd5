"""Data in an HTML page."""

from __future__ import annotations

import json
from typing import Any


def script_json(data: Any) -> str:
    """JSON for a ``script`` element: no text in it can end the element or begin a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
