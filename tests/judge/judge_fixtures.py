"""The language-model server as a fixture: a test module asks for it with ``pytest_plugins = ["judge_fixtures"]``.

This is no conftest.py because a second module of that name would shadow tests/conftest.py, which tests import from.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from language_model_server import LanguageModelServer


@pytest.fixture
def server() -> Iterator[LanguageModelServer]:
    """A well-behaved server of the test's own; set its attributes to make it misbehave."""
    with LanguageModelServer() as running:
        yield running
