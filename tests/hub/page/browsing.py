"""What the tests of the results page do in a browser."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMEDRIVER, CHROMIUM = Path("/usr/bin/chromedriver"), Path("/usr/bin/chromium")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def start(profile: Path) -> Any:
    """Chromium without a window, which keeps what its console says."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(str(CHROMEDRIVER)))


def visit(browser: Any, path: Path, width: int, dark: bool) -> None:
    """Open a page in a window of a width, in light or dark; its tables are there when this returns."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    # Without motion nothing is still scrolling when it is clicked.
    media = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in media.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"


def see(browser: Any, plot: Any) -> None:
    """Scroll to a figure and wait until it is drawn."""
    browser.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", plot)
    wait(lambda: browser.execute_script("return !!arguments[0].querySelector('.main-svg')", plot))


def see_all(browser: Any) -> None:
    """Scroll through the page with every drill-down open, until all figures are drawn."""
    browser.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for plot in browser.find_elements("css selector", ".plot"):
        see(browser, plot)


def wait(condition: Callable[[], Any], seconds: float = 10) -> Any:
    """What the condition gives, as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "this took too long"
        time.sleep(0.02)
    return found


def choose(browser: Any, place: str, *options: str) -> None:
    """Choose these in the lists of choices of a place, one in each."""
    from selenium.webdriver.support.ui import Select

    for select, option in zip(browser.find_elements("css selector", f"{place} select"), options, strict=False):
        Select(select).select_by_visible_text(option)


def column(browser: Any, table: str, at: int) -> list[str]:
    """The texts of a column, without the chance level."""
    script = """
        const rows = [...document.querySelectorAll(arguments[0] + " tbody:last-of-type tr")];
        return rows.map((row) => row.children[arguments[1]].firstChild.textContent);"""
    return list(browser.execute_script(script, table, at))
