"""The results page with many models: its size, how long it takes to open, its figures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from browsing import choose, column, see, wait
from many_results import write_many

from hub_cards.report.collect import collect
from hub_cards.report.page import page
from hub_cards.report.queries import MOST_BYTES, Sheet


@pytest.fixture(scope="module")
def many_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """50 models on 20 tasks, with as much about single queries as a page may hold."""
    folder = tmp_path_factory.mktemp("many")
    write_many(folder, 50)
    many = collect([folder])
    docs = [[f"document-{n}", "x" * 200] for n in range(1000)]
    runs = [{"m": m, "c": [{"t": list(range(10))}], "s": []} for m in range(50)]
    query = {
        "id": "q",
        "q": "word " * 20,
        "a": "",
        "k": 0.5,
        "c": [{"l": "ranking", "i": "", "k": {}, "n": 0}],
        "runs": runs,
    }
    n = (MOST_BYTES // 20 - 225 * 1000) // 2_500
    content = {"place": "a task", "about": "", "family": "TCR-Bench", "docs": docs, "queries": [query] * n}
    path = folder / "many.html"
    path.write_text(page(many, [Sheet(many.places[0], content, n, n)] * 20, []), encoding="utf-8")
    return path


def test_50_models_on_20_tasks_open_in_three_seconds_from_less_than_15_mb(show: Any, many_page: Path) -> None:
    size = many_page.stat().st_size
    assert 12e6 < size < 15e6  # with as much about single queries as there may be
    start = time.monotonic()
    browser = show(many_page, anew=True)
    opened = time.monotonic() - start
    told = browser.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000
    print(f"{size / 1e6:.1f} MB, opened in {told:.2f} s ({opened:.2f} s with the test's own time)")
    assert told < 3


def test_many_numbers_sort_and_another_task_can_be_chosen(show: Any, many_page: Path) -> None:
    browser = show(many_page)
    heads = browser.find_elements("css selector", "#overview-table thead tr:last-child th")
    for at in (1, 10, 20):
        browser.execute_script("arguments[0].click()", heads[at].find_element("css selector", "button"))
        numbers = [float(text) for text in column(browser, "#overview-table", at)]
        assert numbers == sorted(numbers, reverse=True)
        assert len(numbers) == 50
    choose(browser, "#family-tcr-bench", "TCRBenchHTML")
    assert "TCRBenchHTML" in browser.find_element("css selector", "#family-tcr-bench caption").text


def test_published_values_are_explained_beside_any_number_of_models(show: Any, many_page: Path) -> None:
    """By the mark that they have: a point, a dotted line or a bar."""
    browser = show(many_page)
    choose(browser, "#family-ifir", "IFIRFiQAInstFol")
    script = """
        return [...document.querySelectorAll(".legend li")].filter((one) => one.checkVisibility() &&
            one.innerText.includes("published values")).flatMap((one) => [...one.querySelectorAll("path")]).map(
            (path) => ["fill", "stroke", "stroke-dasharray"].map((name) => path.getAttribute(name)).join())"""
    grey = "#8a8f98"
    assert set(browser.execute_script(script)) == {f"none,{grey},", f"none,{grey},2 2", f"{grey},,"}


@pytest.fixture(scope="module")
def crowded_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One task with intervals of 11 models, another with those of 10."""
    folder = tmp_path_factory.mktemp("crowded")
    write_many(folder, 11, ("TCRBenchMixed",))
    write_many(folder, 10, ("TCRBenchCSV",))
    path = folder / "report.html"
    path.write_text(page(collect([folder]), [], []), encoding="utf-8")
    return path


@pytest.mark.parametrize(("task", "n_models", "faint"), [("TCRBenchCSV", 10, False), ("TCRBenchMixed", 11, True)])
def test_intervals_of_many_models_are_faint_until_pointed_at(
    show: Any, crowded_page: Path, task: str, n_models: int, faint: bool
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    browser = show(crowded_page)
    choose(browser, "#family-tcr-bench", task)
    figure = browser.find_element("css selector", "#family-tcr-bench figure")
    see(browser, figure.find_element("css selector", ".plot"))

    def opacities() -> list[float]:
        script = "return [...arguments[0].querySelectorAll('.errorbars')].map((one) => +getComputedStyle(one).opacity)"
        return list(browser.execute_script(script, figure))

    bars = opacities()
    assert len(bars) >= n_models and {opacity < 0.2 for opacity in bars} == {faint}
    assert ("point at a model" in figure.text) == faint
    ActionChains(browser).move_to_element(figure.find_elements("css selector", ".point")[-1]).perform()
    wait(lambda: opacities().count(1) == (1 if faint else len(bars)))
