"""Tables and single queries in the browser: sorting, bold, and the rankings of a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import choose, column, wait
from many_results import write_result

from hub_cards.report.collect import collect
from hub_cards.report.page import page

R_AT_1 = ("recall_at_1", "recall_at_1_low", "recall_at_1_high")
# By task: the label of a column, its scores of each model, and which of them are bold.
BOLD: dict[str, tuple[str, list[Any], list[str]]] = {
    "FollowIRCore17": ("p-MRR", [{"p-MRR": -0.02}, {"p-MRR": -0.03}], []),
    "FollowIRNews21": ("p-MRR", [{"p-MRR": 0.02}, {"p-MRR": -0.03}], ["0.020"]),
    "FollowIRRobust04": ("p-MRR", [{"p-MRR": 0.02}, {"p-MRR": 0.02}], []),
    "TCRBenchMixed": ("R@1", [{"recall_at_1": 0.02, "chance_recall_at_1": 0.02}, {"recall_at_1": 0.01}], []),
    "TCRBenchCSV": ("R@1", [(0.5, 0.4, 0.6), (0.45, 0.35, 0.55)], []),
    "TCRBenchHTML": ("R@1", [(0.5, 0.4, 0.6), (0.3, 0.1, 0.39)], ["0.500"]),
    "TCRBenchMarkdown": ("R@1", [(0.5, 0.4, 0.6), (0.3, 0.1, 0.39), (0.2, 0.0, 0.41)], []),
}


def test_tables_sort_by_mouse_and_by_keyboard_with_missing_cells_last(show: Any, made_page: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = show(made_page)
    heads = browser.find_elements("css selector", "#overview-table thead tr:last-child th")
    assert [h.get_attribute("aria-sort") for h in heads] == ["none"] * 4
    button = heads[1].find_element("css selector", "button")
    button.click()
    assert heads[1].get_attribute("aria-sort") == "descending"
    first = column(browser, "#overview-table", 1)
    assert first[-1] == "not run"  # the variant ran on TCRSample only
    assert "highest first" in browser.find_element("css selector", "#announcement").get_attribute("textContent")
    button.send_keys(Keys.ENTER)
    assert heads[1].get_attribute("aria-sort") == "ascending"
    assert column(browser, "#overview-table", 1)[-1] == "not run"
    heads[0].find_element("css selector", "button").send_keys(Keys.SPACE)
    assert [h.get_attribute("aria-sort") for h in heads] == ["ascending", "none", "none", "none"]
    names = column(browser, "#overview-table", 0)
    assert names == sorted(names)


def test_columns_are_named_with_their_group(show: Any, made_page: Path) -> None:
    browser = show(made_page)
    buttons = browser.find_elements("css selector", "#family-ifir thead button")
    names = [b.accessible_name for b in buttons]
    assert len(set(names)) == len(names)
    by_level = buttons[names.index("nDCG@20 by level 1")]
    assert by_level.text.split()[0] == "1"
    browser.execute_script("arguments[0].click()", by_level)
    told = browser.find_element("css selector", "#announcement").get_attribute("textContent")
    assert told == "sorted by nDCG@20 by level 1, highest first"


def test_a_query_opens_by_keyboard_with_its_rankings_and_what_moved(show: Any, made_page: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = show(made_page)
    choose(browser, "#queries", "FollowIRSample")
    items = browser.find_elements("css selector", ".items > details")
    assert len(items) == 24
    items[0].find_element("css selector", "summary").send_keys(Keys.ENTER)
    rankings = wait(lambda: items[0].find_elements("css selector", ".rankings ol"))
    assert [len(r.find_elements("css selector", "li")) for r in rankings] == [10, 10]
    assert any(word in rankings[1].text for word in ("▲ from", "▼ from"))
    assert "Documents that the changed instruction excludes" in items[0].text
    assert "p-MRR" in items[0].text
    search = browser.find_element("css selector", "#queries input")
    search.send_keys("t107")
    assert len(browser.find_elements("css selector", ".items > details")) == 1
    search.send_keys(" nothing-like-it")
    assert "No query has these words" in browser.find_element("css selector", ".items").text
    choose(browser, "#queries", "TCRSample", "highest scores first")
    first = browser.find_element("css selector", ".items > details")
    first.find_element("css selector", "summary").click()
    best = wait(lambda: first.find_elements("css selector", ".rankings li"))[0]
    assert "✓ target" in best.text


def test_a_move_is_coloured_by_what_moved(show: Any, made_page: Path) -> None:
    """Documents that the changed instruction excludes should move down, relevant ones up; others have no colour."""
    browser = show(made_page)
    choose(browser, "#queries", "FollowIRSample")
    browser.execute_script("document.querySelectorAll('.items > details').forEach((one) => { one.open = true; })")
    wait(lambda: browser.find_elements("css selector", ".items > details:last-child .rankings"))
    script = """
        return [...document.querySelectorAll('.items .move')].map((one) => [
            one.textContent, one.parentElement.querySelector('.what')?.textContent ?? '', one.className])"""
    seen = set()
    for text, what, look in browser.execute_script(script):
        up = text.startswith(("▲", "was not"))
        tones = {"✓ relevant": "good" if up else "bad", "✕ excluded": "bad" if up else "good"}
        assert look.split()[1:] == ([tones[what]] if what and "same" not in text else []), (text, what)
        seen.add((what, text[0]))
    assert {("✕ excluded", "▲"), ("✕ excluded", "▼"), ("✓ relevant", "▲"), ("", "▲"), ("", "▼")} <= seen


@pytest.fixture(scope="module")
def compared_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scores of :data:`BOLD`."""
    folder = tmp_path_factory.mktemp("compared")
    for task, (_, scores, _) in BOLD.items():
        for number, given in enumerate(scores):
            named = dict(zip(R_AT_1, given, strict=True)) if isinstance(given, tuple) else given
            write_result(folder, f"made-up/{number}", task, named)
    path = folder / "report.html"
    path.write_text(page(collect([folder]), [], []), encoding="utf-8")
    return path


@pytest.mark.parametrize("task", BOLD)
def test_bold_is_only_what_stands_out(show: Any, compared_page: Path, task: str) -> None:
    label, scores, bold = BOLD[task]
    browser = show(compared_page)
    family = "#family-tcr-bench" if task.startswith("TCR") else "#family-followir"
    choose(browser, family, task)
    script = """
        const texts = (one) => one.innerText.split("\\n")[0].replace("↕", "").trim();
        const section = document.querySelector(arguments[0]);
        const at = [...section.querySelectorAll("thead tr:last-child th")].map(texts).indexOf(arguments[1]);
        const cells = [...section.querySelectorAll("tbody tr.own td:nth-child(" + (at + 1) + ")")];
        return cells.map((one) => [texts(one), one.className, getComputedStyle(one).fontWeight]);"""
    cells = browser.execute_script(script, family, label)
    assert len(cells) == len(scores)
    assert [text for text, look, _ in cells if "best" in look] == bold
    assert [text for text, _, weight in cells if int(weight) >= 700] == bold
    assert browser.find_element("css selector", "main").text.count("Bold is the highest value of a column") == 1
