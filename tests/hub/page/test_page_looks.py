"""How the results page looks: silent, in dark, on a phone, on paper, and whatever names and texts hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsing import column, see, see_all, wait
from many_results import FOLLOWIR, IFIR, TCR, write_many

from hub_cards.report.collect import Collected, collect
from hub_cards.report.page import page
from hub_cards.report.queries import Sheet

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'><!-- <script>"
UNBROKEN = "n" * 300


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names and texts that try to run a script or to burst the page."""
    folder = tmp_path_factory.mktemp("hostile")
    write_many(folder, 2, (*IFIR[:1], *FOLLOWIR[:1], *TCR, "SciFact"))
    plain = collect([folder])
    names = dict(zip(plain.models, (HOSTILE, UNBROKEN), strict=True))
    entries = tuple(replace(e, model=names[e.model]) for e in plain.entries)
    item = {
        "id": HOSTILE,
        "q": HOSTILE + UNBROKEN,
        "a": HOSTILE,
        "k": None,
        "c": [{"l": HOSTILE, "i": UNBROKEN, "k": {HOSTILE: [0]}, "n": 1}],
        "runs": [{"m": 0, "c": [{"t": [0, 1], "r": [None, 1]}], "s": [[HOSTILE, "0"]], "x": [[0, 1]], "n": 1}],
    }
    docs = [[HOSTILE, HOSTILE], [UNBROKEN, UNBROKEN]]
    content = {"place": HOSTILE, "about": HOSTILE, "family": "TCR-Bench", "docs": docs, "queries": [item]}
    collected = Collected((HOSTILE, UNBROKEN), entries, (Path(HOSTILE),))
    path = folder / "hostile.html"
    sheet = Sheet(plain.places[0], content, 1, 1)
    path.write_text(page(collected, [sheet], [HOSTILE], title=HOSTILE), encoding="utf-8")
    return path


def test_it_opens_without_a_word_in_the_console_and_without_the_network(show: Any, made_page: Path) -> None:
    browser = show(made_page)
    see_all(browser)
    assert browser.get_log("browser") == []
    asked = browser.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert [name for name in asked if not name.startswith(("data:", "blob:"))] == []
    assert browser.title == "Beyond relevance: retrieval results"
    assert browser.find_element("css selector", "html").get_attribute("lang") == "en"
    headings = [h.text for h in browser.find_elements("css selector", "h1, h2")]
    assert headings[1:] == ["Overview", "IFIR", "FollowIR", "TCR-Bench", "Single queries", "Notes"]
    figures = browser.find_elements("css selector", "figure")
    assert len(figures) == 7
    for figure in figures:  # a legend stands below its plot, never over its points
        plot = figure.find_element("css selector", ".plot").rect
        for legend in figure.find_elements("css selector", ".legend"):
            assert legend.rect["y"] >= plot["y"] + plot["height"]
    words = browser.find_element("css selector", "#family-followir .glossary").text
    assert "documents that the changed instruction excludes moved down" in words
    unnamed = browser.execute_script("""
        return [...document.querySelectorAll('select, input, button, figure .plot, .box, table')].filter((one) => !(
            one.labels?.length || one.textContent.trim() || one.getAttribute('aria-label') || one.caption)).length""")
    assert unnamed == 0


def test_dark_is_dark_in_tables_and_figures(show: Any, made_page: Path) -> None:
    def brightness(dark: bool) -> tuple[int, int]:
        browser = show(made_page, dark=dark)
        plot = browser.find_element("css selector", ".plot")
        see(browser, plot)
        text = wait(lambda: plot.find_elements("css selector", ".xtick text"))[0]
        script = (
            "return getComputedStyle(arguments[0])[arguments[1]].match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
        )
        body = browser.find_element("css selector", "body")
        return (browser.execute_script(script, body, "backgroundColor"), browser.execute_script(script, text, "fill"))

    page_light, ink_light = brightness(False)
    page_dark, ink_dark = brightness(True)
    assert page_light > 700 > 100 > page_dark
    assert ink_light < 150 < 600 < ink_dark


def test_on_paper_every_figure_is_drawn_and_no_table_is_cut(show: Any, made_page: Path) -> None:
    """Seen as the browser begins to lay out the sheets, and again when the page is back on the screen."""
    state = """() => ({
        plots: [...document.querySelectorAll('.plot')].map((one) => one.querySelector('.main-svg')?.clientWidth),
        rooms: [...document.querySelectorAll('.plot')].map((one) => one.clientWidth),
        right: Math.max(...[...document.querySelectorAll('table, .main-svg')].map(
            (one) => one.getBoundingClientRect().right)),
        closed: document.querySelectorAll('details.glossary:not([open])').length,
        paper: getComputedStyle(document.body).backgroundColor})"""
    browser = show(made_page, dark=True)
    before = browser.execute_script(f"return ({state})()")
    assert None in before["plots"]  # only those in sight
    browser.execute_script(f"window.addEventListener('beforeprint', () => {{ window.printed = ({state})(); }})")
    browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    printed = browser.execute_script("return window.printed")
    assert printed["plots"] == printed["rooms"]
    assert printed["right"] <= 277 / 25.4 * 96  # A4 on its side without its margins, in CSS pixels
    assert (printed["closed"], printed["paper"]) == (0, "rgb(255, 255, 255)")
    after = browser.execute_script(f"return ({state})()")
    assert after["plots"] == after["rooms"] == before["rooms"]
    assert (after["closed"], after["paper"], after["right"]) == (before["closed"], before["paper"], before["right"])


def check_width(browser: Any, width: int) -> None:
    """With everything drawn and open, the page fits, and wide tables scroll inside their own box."""
    see_all(browser)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    script = "return [...document.querySelectorAll('.box')].some((box) => box.scrollWidth > box.clientWidth)"
    assert browser.execute_script(script)


def test_no_page_scrolls_sideways(show: Any, made_page: Path) -> None:
    check_width(show(made_page, 390), 390)


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_in_names_and_texts_is_run_or_bursts_the_page(show: Any, hostile_page: Path, width: int) -> None:
    browser = show(hostile_page, width)
    check_width(browser, width)
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_elements("css selector", "main img, header img") == []
    assert browser.find_element("css selector", "h1").text == HOSTILE
    assert HOSTILE in browser.find_element("css selector", ".items").text
    assert HOSTILE in column(browser, "#overview-table", 0)
