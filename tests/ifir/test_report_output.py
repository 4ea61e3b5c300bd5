"""How the IFIR report looks on a terminal, as Markdown and HTML, its figures, and its command."""

from __future__ import annotations

import html
import json
import re
from io import StringIO
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_files import run, write_published, write_result
from rich.console import Console

from ifir_tasks.report.content import NDCG, PAPER_NDCG, Block, Line, Place, Section
from ifir_tasks.report.figures import as_html, figures, level_means, prompt_gains, published_level_means
from ifir_tasks.report.figures import published_prompt_gains as gains_of_paper
from ifir_tasks.report.layout import _columns_that_fit, html_page, markdown, print_report
from ifir_tasks.report.results import load_results
from ifir_tasks.report.tables import BY_LEVEL, BY_SUBSET

GTR = "sentence-transformers/gtr-t5-xl"
INSTRUCTOR = "hkunlp/instructor-xl"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_published(folder, "GTR-XL", name=GTR)
    write_published(folder, "Instructor-XL", "without prompt", name=INSTRUCTOR)
    write_published(folder, "Instructor-XL", "with prompt", name=INSTRUCTOR, options={"prompts": "instructor"})
    remark = {"ndcg_at_20": 0.5, "mteb_beyond": {"notes": ["smaller than | the published <set>"]}}
    write_result(folder, "IFIRSample", remark, "local/a|b_c_d")
    return folder


# --- terminal ------------------------------------------------------------------------------------------------------


def printed(block: Block, width: int) -> list[str]:
    out = StringIO()
    print_report([Section("Title", (block,))], [], Console(width=width, file=out))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize(("places", "decimals"), [(BY_SUBSET, 2), (BY_LEVEL, 3), (BY_LEVEL, 2)])
def test_every_number_is_printed_whole_and_in_its_place(width: int, places: tuple[Place, ...], decimals: int) -> None:
    values = tuple(-10.0 - i for i in range(len(places)))
    lines = printed(Block("key: text", places, decimals, (Line("a" * 70, values), Line("b", values, True))), width)
    assert max(map(len, lines)) <= width
    own = [cell for line in lines if line.startswith("aaa") for cell in line.split()[1:]]
    published = [cell for line in lines if line.startswith("published: b") for cell in line.split()[2:]]
    assert own == published == [f"{v:.{decimals}f}" for v in values]
    assert sum(line.count("level 1") for line in lines) == sum(place.level == 1 for place in places)


def test_seven_subsets_and_their_average_fit_100_columns() -> None:
    assert _columns_that_fit(BY_SUBSET, 100) == [list(BY_SUBSET)]


def test_missing_values_are_dashes() -> None:
    lines = printed(Block("", BY_SUBSET[:2], 2, (Line("Heading"), Line("own", (None, 0.0)))), 100)
    assert [line.split() for line in lines[-2:]] == [["Heading"], ["own", "-", "0.00"]]


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=9),
    st.integers(20, 300),
)
def test_splitting_keeps_all_columns_in_order_and_levels_together(levels: list[int], width: int) -> None:
    places = [Place(f"s{i}", level) for i, n in enumerate(levels) for level in range(n)]
    parts = _columns_that_fit(places, width)
    assert [place for part in parts for place in part] == places
    for one, other in pairwise(parts):
        assert one[-1].subset != other[0].subset


# --- Markdown and HTML ---------------------------------------------------------------------------------------------


def cells(page: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [[html.unescape(re.sub("<.*?>", "", c)) for c in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", r)] for r in rows]


def test_markdown_tables_are_read_back_whole(results: Path, tmp_path: Path) -> None:
    assert run("report", str(results), "--out", str(tmp_path / "new" / "report.md")) == 0
    text = (tmp_path / "new" / "report.md").read_text(encoding="utf-8")
    rows = cells(MarkdownIt().enable("table").render(text))
    assert rows[0] == ["", *(place.subset for place in BY_SUBSET)]
    own, published = (next(r for r in rows if r[0] == name) for name in (GTR, "published: GTR-XL"))
    assert own[1:8] == published[1:8] == ["0.44", "0.54", "0.60", "0.05", "0.54", "0.31", "0.15"]
    assert "local/a|b_c_d" in [row[0] for row in rows]
    widths = {len(row) for row in rows}
    assert widths <= {8, 9, 13, 6, 2}, widths
    for number in (3, 8, 9, 10, 11):
        assert f"## Table {number}:" in text
    assert "- IFIRSample: smaller than | the published <set>" in text


def test_html_holds_tables_and_figures_and_loads_nothing(results: Path, tmp_path: Path) -> None:
    assert run("report", str(results), "--out", str(tmp_path)) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.md"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert ["published: GTR-XL", "0.44"] in [row[:2] for row in cells(page)]
    assert "the published &lt;set&gt;" in page
    assert 'id="figure-3"' in page and 'id="figure-4"' in page
    assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)\s*=", page)


def test_text_from_results_cannot_become_markup() -> None:
    line = Line("<script>alert(1)</script>", (1.0,))
    page = html_page(markdown([Section("<b>", (Block("<i>", (Place("FiQA"),), 2, (line,)),))], ["<u>"]))
    assert not re.search("<(script|b|i|u)>", page)


# --- figures -------------------------------------------------------------------------------------------------------


def test_gains_from_prompts(results: Path) -> None:
    """Table 9, Instructor-XL: 0.489 - 0.484 for FiQA, 0.204 - 0.169 for TREC-PM, 0.362 - 0.351 on average."""
    models = load_results(results).models
    (gains,) = prompt_gains(models).values()
    published = gains_of_paper()["Instructor-XL"]
    for found, tolerance in ((gains, 0.001), (published, 1e-9)):
        assert found["FiQA"] == pytest.approx(0.005, abs=1e-9)
        assert found["TREC-PM"] == pytest.approx(0.035, abs=1e-9)
        assert found["Average"] == pytest.approx(0.011, abs=tolerance)
    assert set(gains_of_paper()) == {
        "Instructor-Base",
        "Instructor-Large",
        "Instructor-XL",
        "E5-mistral-7B",
        "GritLM-7B",
    }
    assert prompt_gains([m for m in models if m.has_prompt]) == {}


def test_means_by_level(tmp_path: Path) -> None:
    for name, scores in (("a", (0.2, 0.4, 0.6)), ("b", (0.4, 0.8, 0.0)), ("c", (0.9, 0.9, None))):
        found = {f"level_{n}_ndcg_at_20": v for n, v in enumerate(scores, 1) if v is not None}
        write_result(tmp_path, "IFIRAilaInstFol", found, f"test/{name}")
    models = load_results(tmp_path).models
    (means,) = level_means(models, NDCG).values()
    assert means == pytest.approx({"level 1": 0.3, "level 2": 0.6, "level 3": 0.3})
    assert level_means(models, PAPER_NDCG) == {}
    # Table 10, AILA, level 1, from top to bottom.
    column = [0.158, 0.144, 0.111, 0.096, 0.117, 0.073, 0.110, 0.110, 0.122, 0.162, 0.185, 0.140, 0.116, 0.148, 0.158]
    assert published_level_means()["AILA"]["level 1"] == pytest.approx(fmean(column))


def test_figures_show_results_and_published_values_apart(results: Path) -> None:
    models = load_results(results).models
    gain, level = (json.loads(figure.to_json()) for figure in figures(models))
    titles = [[a["text"] for a in figure["layout"]["annotations"]] for figure in (gain, level)]
    assert [title.split(":")[0] for title in titles[0]] == ["results", "results", "published"]
    assert [title.split(":")[0] for title in titles[1]] == ["results", "published"]  # no level has a standard nDCG
    assert titles[0][2] == "published: computed from IFIR, Table 9"
    bars = [trace for trace in level["data"] if trace["name"] == "level 2" and trace["xaxis"] == "x2"]
    assert [dict(zip(b["x"], b["y"], strict=True)) for b in bars] == [
        {subset: means["level 2"] for subset, means in published_level_means().items()}
    ]
    assert not any("published" in a["text"] for f in figures(models, False) for a in f.layout.annotations)


def test_figures_without_anything_to_show_say_so() -> None:
    gain, level = figures([], published=False)
    assert "no result with a prompt" in gain.layout.title.text and "no result has all three" in level.layout.title.text
    first, second = as_html([gain, level])
    assert len(first) > 1_000_000 > len(second)  # plotly itself comes once


# --- command -------------------------------------------------------------------------------------------------------


def test_the_command_prints_tables(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run("report", str(results), "--published", "all") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    text = "\n".join(lines)
    assert "COMPARE THIS" in text and "published: Promptriever-7B" in text and "published <set>" in text
    assert run("report", str(results), "--published", "none") == 0
    assert "published: " not in capsys.readouterr().out.split("Table 3", 1)[1]


def test_figures_as_a_page_of_their_own(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "figures.html"
    assert run("report", str(results), "--figures", str(target)) == 0
    assert f"written: {target}" in capsys.readouterr().out
    page = target.read_text(encoding="utf-8")
    assert "Figure 3" in page and "Figure 4" in page and "<table" not in page.split("<script")[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "report.pdf"], "--out report.pdf must end in .md or .html"),
        (["--figures", "figures.png"], "--figures figures.png must end in .html"),
    ],
)
def test_unusable_targets(results: Path, options: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run("report", str(results), *options)


def test_unusable_folders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder 'results'"):
        run("report", str(tmp_path / "nothing"))
