"""Tables as text: what TCR-Bench's authors print, with its losses, and the form that loses nothing."""

from __future__ import annotations

import io
import random
import re
import types

import pandas as pd
import pytest
import tabulate
from hypothesis import given, settings
from hypothesis import strategies as st

from tcr_tasks.serialize import TableFormat, read_table, read_text_table, serialize

AUTHORS_FORMATS = ["csv", "html", "markdown", "tsen", "tsens"]


def printed(csv: str, fmt: str) -> str:
    return serialize("t", read_table(io.StringIO(csv)), fmt)


def safe(csv: str) -> str:
    return serialize("t", read_text_table(io.StringIO(csv)), "safe_markdown")


def cells_of_html(text: str) -> list[str]:
    return re.findall(r"<t[dh]>(.*?)</t[dh]>", text, flags=re.DOTALL)


# --- whole texts -------------------------------------------------------------------------------------------------

PLAIN = "city,people\nRome,2800000\nOslo,700000\n"


def test_csv_text() -> None:
    assert printed(PLAIN, "csv") == "t:\ncity,people\nRome,2800000\nOslo,700000\n\n\n"


def test_html_text_has_single_blanks() -> None:
    assert printed(PLAIN, "html") == (
        't:\n<table border="1" class="dataframe">\n <thead>\n <tr style="text-align: right;">\n'
        " <th>city</th>\n <th>people</th>\n </tr>\n </thead>\n <tbody>\n"
        " <tr>\n <td>Rome</td>\n <td>2800000</td>\n </tr>\n"
        " <tr>\n <td>Oslo</td>\n <td>700000</td>\n </tr>\n"
        " </tbody>\n</table>\n\n"
    )


def test_markdown_text_has_single_blanks() -> None:
    # tabulate: text to the left (:--), numbers to the right (--:); dashes as wide as column and two blanks.
    assert printed(PLAIN, "markdown") == (
        "t:\n| city | people |\n|:-------|---------:|\n| Rome | 2800000 |\n| Oslo | 700000 |\n\n"
    )


def test_tsen_text() -> None:
    assert printed(PLAIN, "tsen") == "t:\ncity is Rome. people is 2800000.\ncity is Oslo. people is 700000.\n\n"


def test_safe_markdown_text() -> None:
    assert safe(PLAIN) == "t:\n| city | people |\n| --- | --- |\n| Rome | 2800000 |\n| Oslo | 700000 |\n\n"


def test_runs_of_blanks_are_squeezed_in_the_body_but_not_in_the_name() -> None:
    frame = read_table(io.StringIO("a\nx   y\n"))
    assert serialize("my  table", frame, "csv") == "my  table:\na\nx y\n\n\n"
    assert serialize("my  table", frame, "tsen") == "my  table:\na is x y.\n\n"


def test_blanks_in_html_cells_are_printed_as_pandas_3_prints_them() -> None:
    # Two by two they become &nbsp;&nbsp;, which no squeezing finds; leading ones go; an ampersand is escaped.
    cells = cells_of_html(printed("a  b\nx  y   z\n  q\n&nbsp;\n", "html"))
    assert cells == ["a&nbsp;&nbsp;b", "x&nbsp;&nbsp;y&nbsp;&nbsp; z", "q", "&amp;nbsp;"]


def test_markdown_does_not_depend_on_wcwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = printed("名前,n\n東京,1\n", "markdown")
    # As if the optional package were installed: every East Asian character twice as wide.
    wide = types.SimpleNamespace(wcswidth=lambda text: sum(2 if c > "\u2e80" else 1 for c in text))
    monkeypatch.setattr(tabulate, "wcwidth", wide)
    monkeypatch.setattr(tabulate, "WIDE_CHARS_MODE", True)
    assert printed("名前,n\n東京,1\n", "markdown") == plain
    assert tabulate.WIDE_CHARS_MODE is True


# --- what reading and printing lose ------------------------------------------------------------------------------


def test_integers_with_a_gap_become_floats() -> None:
    csv = "id,n\nx,1\ny,\nz,30\n"
    assert printed(csv, "csv") == "t:\nid,n\nx,1.0\ny,\nz,30.0\n\n\n"
    assert cells_of_html(printed(csv, "html")) == ["id", "n", "x", "1.0", "y", "NaN", "z", "30.0"]
    assert printed(csv, "tsen") == "t:\nid is x. n is 1.0.\nid is y. n is nan.\nid is z. n is 30.0.\n\n"
    # tabulate's "g" takes the needless .0 away again.
    assert "| x | 1 |\n| y | nan |\n| z | 30 |" in printed(csv, "markdown")
    assert "| x | 1 |\n| y |  |\n| z | 30 |" in safe(csv)


def test_nineteen_digits() -> None:
    # 2^53 has 16 digits: exact as an integer, rounded as a float. 1234567890123456789 lies between the doubles
    # 1234567890123456768 and 1234567890123457024.
    whole = "id,n\nx,1234567890123456789\ny,1\n"
    assert "x,1234567890123456789\n" in printed(whole, "csv")
    assert "n is 1234567890123456789." in printed(whole, "tsen")
    gap = "id,n\nx,1234567890123456789\ny,\n"
    assert "x,1.2345678901234568e+18\n" in printed(gap, "csv")
    assert "n is 1.2345678901234568e+18." in printed(gap, "tsen")
    assert cells_of_html(printed(gap, "html"))[3] == "1.234568e+18"
    assert "| x | 1.23457e+18 |" in printed(gap, "markdown")
    assert "| x | 1234567890123456789 |" in safe(gap)


def test_leading_zeros_go() -> None:
    csv = "zip,city\n00501,Holtsville\n07652,Paramus\n"
    assert printed(csv, "csv") == "t:\nzip,city\n501,Holtsville\n7652,Paramus\n\n\n"
    assert "zip is 501." in printed(csv, "tsen")
    assert "| 00501 | Holtsville |" in safe(csv)


def test_na_as_a_text_becomes_missing() -> None:
    csv = "country,region\nNA,Africa\nnull,Europe\nFR,Europe\n"
    assert printed(csv, "csv") == "t:\ncountry,region\n,Africa\n,Europe\nFR,Europe\n\n\n"
    assert printed(csv, "tsen").startswith("t:\ncountry is nan. region is Africa.\n")
    assert cells_of_html(printed(csv, "html"))[2] == "NaN"
    assert "| NA | Africa |\n| null | Europe |" in safe(csv)


def test_all_numeric_rows_take_the_type_of_the_widest_column() -> None:
    assert printed("a,b\n1,2.5\n", "tsen") == "t:\na is 1.0. b is 2.5.\n\n"
    assert printed("a,b,c\n1,2.5,x\n", "tsen") == "t:\na is 1. b is 2.5. c is x.\n\n"


def test_digits_of_floats() -> None:
    csv = "a,b\nx,1234567.891\ny,0.123456789\n"
    assert "x,1234567.891\ny,0.123456789\n" in printed(csv, "csv")
    assert cells_of_html(printed(csv, "html"))[2:] == ["x", "1.234568e+06", "y", "1.234568e-01"]
    assert cells_of_html(printed("a\n1.5\n0.123456789\n", "html")) == ["a", "1.500000", "0.123457"]
    assert "| x | 1.23457e+06 |\n| y | 0.123457 |" in printed(csv, "markdown")


# --- awkward cells -----------------------------------------------------------------------------------------------

AWKWARD = 'k,v\n1,"say ""hi"", ok"\n2,a|b\n3,"two\nlines"\n'


def test_quotes_commas_pipes_and_line_ends() -> None:
    assert printed(AWKWARD, "csv") == 't:\nk,v\n1,"say ""hi"", ok"\n2,a|b\n3,"two\nlines"\n\n\n'
    # to_html escapes & < > alone, and shows a line end as a backslash and an n.
    assert cells_of_html(printed(AWKWARD, "html"))[2:] == ["1", 'say "hi", ok', "2", "a|b", "3", "two\\nlines"]
    assert printed(AWKWARD, "tsen") == (
        't:\nk is 1. v is say "hi", ok.\nk is 2. v is a|b.\nk is 3. v is two\nlines.\n\n'
    )
    # As the authors print it: the pipe is a column boundary now, and the line end a row of its own.
    assert printed(AWKWARD, "markdown") == (
        't:\n| k | v |\n|----:|:-------------|\n| 1 | say "hi", ok |\n| 2 | a|b |\n| 3 | two |\n| | lines |\n\n'
    )
    assert safe(AWKWARD) == (
        't:\n| k | v |\n| --- | --- |\n| 1 | say "hi", ok |\n| 2 | a\\|b |\n| 3 | two\\nlines |\n\n'
    )


def test_html_escapes_markup() -> None:
    assert cells_of_html(printed("a\n<b>&\n", "html")) == ["a", "&lt;b&gt;&amp;"]


def test_duplicate_column_names() -> None:
    csv = "a,a,b\n1,2,x\n"
    assert printed(csv, "csv") == "t:\na,a.1,b\n1,2,x\n\n\n"
    assert printed(csv, "tsen") == "t:\na is 1. a.1 is 2. b is x.\n\n"
    assert safe(csv) == "t:\n| a | a | b |\n| --- | --- | --- |\n| 1 | 2 | x |\n\n"


def test_a_table_without_rows() -> None:
    csv = "a,b\n"
    assert printed(csv, "csv") == "t:\na,b\n\n\n"
    assert printed(csv, "html") == (
        't:\n<table border="1" class="dataframe">\n <thead>\n <tr style="text-align: right;">\n'
        " <th>a</th>\n <th>b</th>\n </tr>\n </thead>\n <tbody>\n </tbody>\n</table>\n\n"
    )
    assert printed(csv, "markdown") == "t:\n| a | b |\n|-----|-----|\n\n"
    assert printed(csv, "tsen") == printed(csv, "tsens") == "t:\n\n\n"
    assert safe(csv) == "t:\n| a | b |\n| --- | --- |\n\n"


def test_non_ascii() -> None:
    csv = "città,größe\nZürich,über 3\nŁódź,½\n"
    assert printed(csv, "csv") == f"t:\n{csv}\n\n"
    assert cells_of_html(printed(csv, "html")) == ["città", "größe", "Zürich", "über 3", "Łódź", "½"]
    assert printed(csv, "tsen") == "t:\ncittà is Zürich. größe is über 3.\ncittà is Łódź. größe is ½.\n\n"
    assert "| città | größe |" in printed(csv, "markdown")


# --- what must not change the text -------------------------------------------------------------------------------


def test_html_cuts_no_cell_row_or_column() -> None:
    # Defaults that a notebook shows tables with: 50 characters, 60 rows, 20 columns. to_html heeds none of them.
    cell, columns, rows = "x" * 300, [f"c{i}" for i in range(40)], 200
    frame = pd.DataFrame([[cell] * len(columns)] * rows, columns=columns)
    assert cells_of_html(serialize("t", frame, "html")) == columns + [cell] * (len(columns) * rows)
    assert cell in serialize("t", frame.head(1), "markdown")


@pytest.mark.parametrize("fmt", AUTHORS_FORMATS)
def test_user_options_of_pandas_do_not_change_the_text(fmt: str) -> None:
    frame = read_table(io.StringIO(f"a,b\n{'x' * 80},0.00012345678\n北京,12345.678\n"))
    expected = serialize("t", frame, fmt)
    options = (
        *("display.precision", 2, "display.float_format", "{:.1f}".format, "display.chop_threshold", 1.0),
        *("display.max_colwidth", 5, "display.max_rows", 1, "display.min_rows", 1, "display.max_columns", 1),
        *("display.colheader_justify", "left", "display.html.border", 7, "display.html.use_mathjax", False),
        *("display.html.table_schema", True, "display.show_dimensions", True, "display.width", 10),
        *("display.unicode.east_asian_width", True, "display.expand_frame_repr", False),
    )
    with pd.option_context(*options):
        assert serialize("t", frame, fmt) == expected
    assert pd.get_option("display.precision") == 6


# --- tsens -------------------------------------------------------------------------------------------------------


def test_tsens_shuffles_every_row_with_one_generator() -> None:
    frame = read_table(io.StringIO("a,b,c,d\n1,2,3,w\n4,5,6,x\n7,8,9,y\n"))
    generator = random.Random(42)
    expected = []
    for row in [["1", "2", "3", "w"], ["4", "5", "6", "x"], ["7", "8", "9", "y"]]:
        order = [0, 1, 2, 3]
        generator.shuffle(order)
        expected.append(" ".join(f"{'abcd'[i]} is {row[i]}." for i in order))
    # The rows keep their order, and the generator is not started anew for each of them.
    assert len({tuple(re.findall(r"(\w) is", line)) for line in expected}) > 1
    for _ in range(2):
        assert serialize("t", frame, "tsens") == "t:\n" + "\n".join(expected) + "\n\n"


def test_tsens_literal() -> None:
    # random.Random(42).shuffle of three items exchanges 2 <-> 2, then 1 <-> 0: Fisher-Yates draws 2 of 0..2, 0 of 0..1.
    drawn = random.Random(42)
    assert (drawn.randrange(3), drawn.randrange(2)) == (2, 0)
    assert printed("a,b,c\n1,2,x\n", "tsens") == "t:\nb is 2. a is 1. c is x.\n\n"


# --- safe_markdown -----------------------------------------------------------------------------------------------


def parse_safe(text: str) -> list[list[str]]:
    """The inverse of safe_markdown, written independently: split at bare pipes, undo the escapes."""
    lines = text.removeprefix("t:\n").removesuffix("\n\n").split("\n")
    rows = []
    for line in [lines[0], *lines[2:]]:
        cells, cell, escaped = [], "", False
        for sign in line[1:]:
            if escaped:
                cell += {"n": "\n", "r": "\r"}.get(sign, sign)
                escaped = False
            elif sign == "\\":
                escaped = True
            elif sign == "|":
                cells.append(cell[1:-1])
                cell = ""
            else:
                cell += sign
        rows.append(cells)
    return rows


CELLS = st.text(st.sampled_from(list("a0 |\\\n\r\"',<é-NA")), max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=4)))
def test_safe_markdown_loses_nothing(rows: list[list[str]]) -> None:
    frame = pd.DataFrame(rows[1:], columns=pd.Index(rows[0], dtype=object), dtype=object)
    assert parse_safe(serialize("t", frame, "safe_markdown")) == rows


def test_read_text_table_fills_short_rows_and_refuses_long_ones() -> None:
    assert read_text_table(io.StringIO("a,b\n1\n")).to_numpy().tolist() == [["1", ""]]
    with pytest.raises(pd.errors.ParserError):
        read_text_table(io.StringIO("a,b\n1,2,3\n"))


def test_safe_markdown_refuses_a_table_that_lost_its_text_already() -> None:
    with pytest.raises(ValueError, match=r"'people' holds .*read_text_table"):
        serialize("t", read_table(io.StringIO(PLAIN)), "safe_markdown")


def test_unknown_format() -> None:
    with pytest.raises(ValueError, match="unknown table format 'xml'; one of csv, html"):
        serialize("t", read_table(io.StringIO(PLAIN)), "xml")
    assert [str(f) for f in TableFormat] == [*AUTHORS_FORMATS, "safe_markdown"]
