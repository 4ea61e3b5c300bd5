"""The results page in a real browser: Debian's Chromium without a window, which no page may ask for the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import CHROMEDRIVER, CHROMIUM, start, visit

from hub_cards.report.collect import collect
from hub_cards.report.page import page
from hub_cards.report.queries import sheets


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("selenium.webdriver", reason="pip install selenium")
    if not (CHROMEDRIVER.exists() and CHROMIUM.exists()):
        pytest.skip("needs Debian's packages: apt-get install chromium chromium-driver")
    driver = start(tmp_path_factory.mktemp("profile"))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def visited() -> list[Any]:
    """The page that is open, with its width and whether it is dark."""
    return []


@pytest.fixture
def show(browser: Any, visited: list[Any]) -> Iterator[Callable[..., Any]]:
    """Open a page in a window of a width, in light or dark; the console must be empty when the test is done.

    Tests that follow each other and ask for the same share the visit, as opening a page takes seconds, unless one
    asks for a new one: each brings about what it looks at, and undoes nothing.
    """

    def open_page(path: Path, width: int = 1280, dark: bool = False, anew: bool = False) -> Any:
        if anew or visited != [path, width, dark]:
            visit(browser, path, width, dark)
            visited[:] = [path, width, dark]
        return browser

    yield open_page
    assert browser.get_log("browser") == []


@pytest.fixture(scope="session")
def made_page(made_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples' results, with drill-downs."""
    collected = collect([made_results])
    found, notes = sheets(collected, [made_results / "predictions"], [], 1000)
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(collected, found, notes), encoding="utf-8")
    return path
