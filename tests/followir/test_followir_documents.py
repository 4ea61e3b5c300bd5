"""Documents from every source, and how a collection is cut into passages."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.plugin.checks import DatasetError
from evaluators.plugin.dataset import Card, write_dataset
from followir_tasks.construction import collection
from followir_tasks.construction.collection import cut, write_collection
from followir_tasks.construction.documents import find_documents
from followir_tasks.construction.trec_documents import Document, read_trec_documents

FT = """<DOC>
<DOCNO>FT911-1</DOCNO>
<DATE>910514
</DATE>
<HEADLINE>
FT  14 MAY 91 / Cranes &amp; bridges
</HEADLINE>
<TEXT>
First words.
Second &lt;line&gt;.
</TEXT>
<PAGE>
London Page 1
</PAGE>
</DOC>
<doc><docno> FBIS3-1 </docno><H3> <TI>   A title </TI></H3>
<text><P>
Body <F P=105>one</F>.
</P>
<P>
Two.</P></text><text>And more.</text></doc>
<DOC>
<DOCNO>WEB-1</DOCNO>
<DOCHDR>http://example.org</DOCHDR>
<html><title>Page</title><body><p>Only a page.</p></body></html>
</DOC>
<DOC>
<DOCNO>EMPTY</DOCNO>
<TEXT>
</TEXT>
</DOC>
"""
EXPECTED = [
    Document("FT911-1", "FT 14 MAY 91 / Cranes & bridges", "First words.\nSecond <line>."),
    Document("FBIS3-1", "A title", "Body  one .\n\nTwo.\nAnd more."),
    Document("WEB-1", "Page", "Only a page."),
    Document("EMPTY", "", ""),
]


def plain(document: Document) -> tuple[str, str, list[str]]:
    return document.id, document.title, document.text.split()


def test_trec_documents_plain_packed_and_in_folders(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "deep"
    folder.mkdir(parents=True)
    (folder / "ft.sgml").write_text(FT)
    (folder.parent / "readme").write_text("On this disk there are documents.\n")
    (folder.parent / ".hidden").write_text(FT)
    found = list(read_trec_documents(folder / "ft.sgml"))
    expected = [plain(d) for d in EXPECTED]
    assert [plain(d) for d in found] == expected and found[1] == EXPECTED[1]
    with gzip.open(tmp_path / "ft.gz", "wt") as out:
        out.write(FT)
    assert list(find_documents(str(tmp_path / "ft.gz"))) == found
    documents = find_documents(str(tmp_path / "docs"))
    assert list(documents) == found
    assert documents.without == [str(folder.parent / "readme")]
    before = documents.fingerprint()
    (folder / "ft.sgml").write_text(FT.replace("First", "Last"))
    assert find_documents(str(tmp_path / "docs")).fingerprint() != before


def test_documents_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("<DOC><DOCNO>1</DOCNO><TEXT>x</TEXT></DOC> <DOC><DOCNO>2</DOCNO>\n<TEXT>y</TEXT></DOC>")
    assert list(find_documents(str(tmp_path / "a"))) == [Document("1", "", "x"), Document("2", "", "y")]


def test_documents_with_attributes_are_documents(tmp_path: Path) -> None:
    text = "<DOC><DOCNO>a</DOCNO>one</DOC>\n<DOC id='2'><DOCNO>b</DOCNO>two</DOC ><doc ><DOCNO>c</DOCNO>three</doc>\n"
    (tmp_path / "d.sgml").write_text(text)
    assert [d.id for d in read_trec_documents(tmp_path / "d.sgml")] == ["a", "b", "c"]


def test_json_lines_and_dataset_directories(tmp_path: Path) -> None:
    rows = [{"_id": "a", "title": "T", "text": "one"}, {"_id": "b", "title": "", "text": "two"}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    expected = [Document("a", "T", "one"), Document("b", "", "two")]
    beir, layout = tmp_path / "beir", tmp_path / "layout"
    beir.mkdir()
    (beir / "corpus.jsonl").write_text(lines)
    (beir / "queries.jsonl").write_text("not read\n")
    with gzip.open(tmp_path / "docs.jsonl.gz", "wt") as out:
        out.write(lines)
    write_dataset(layout, {"corpus": rows, "queries": [], "qrels": []}, Card("c", "c", "mit"))
    for place in (beir, beir / "corpus.jsonl", tmp_path / "docs.jsonl.gz", layout, layout / "corpus.parquet"):
        assert list(find_documents(str(place))) == expected


def test_articles_of_trecs_washington_post(tmp_path: Path) -> None:
    """As published: an object a line in a file .jl, the text in pieces, pictures and dates among them."""
    pieces: list[dict[str, object] | None] = [
        {"type": "kicker", "mime": "text/plain", "content": "World"},
        {"type": "date", "mime": "text/plain", "content": 1325376562000},
        {
            "type": "sanitized_html",
            "subtype": "paragraph",
            "mime": "text/html",
            "content": "<b>One</b> &amp; <a>two</a>.",
        },
        None,
        {"type": "image", "mime": "image/jpeg", "fullcaption": "A picture.", "imageURL": "u"},
        {"type": "sanitized_html", "subtype": "paragraph", "mime": "text/html", "content": "Three."},
    ]
    rows = [
        {"id": "a", "article_url": "u", "title": "T", "contents": pieces},
        {"id": "b", "title": None, "contents": []},
    ]
    (tmp_path / "wapo.jl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = [plain(d) for d in find_documents(str(tmp_path / "wapo.jl"))]
    assert found == [("a", "T", ["One", "&", "two", ".", "Three."]), ("b", "", [])]


def test_entities_of_trec_and_what_only_looks_like_one(tmp_path: Path) -> None:
    text = "post&hyph;war&blank;x &sect; 5, P&LTD, AT&amp;T R&D &#8217; &copying &pacute; &region;"
    (tmp_path / "a").write_text(f"<DOC><DOCNO>1</DOCNO><TEXT>{text}</TEXT></DOC>")
    expected = "post-war x \u00a7 5, P&LTD, AT&T R&D \u2019 &copying &pacute; &region;"
    assert list(read_trec_documents(tmp_path / "a")) == [Document("1", "", expected)]


def test_nuls_and_old_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"_id": "1", "text": "x\\u0000y"}\r{"_id": "2", "text": null}\r')
    (tmp_path / "a").write_bytes(b"<DOC>\r<DOCNO>1</DOCNO>\r<TEXT>x\0y</TEXT>\r</DOC>\r<DOC>\r<DOCNO>2</DOCNO>\r</DOC>")
    for name in ("a.jsonl", "a"):
        assert list(find_documents(str(tmp_path / name))) == [Document("1", "", "xy"), Document("2", "", "")]


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (b"<DOC>\n<TEXT>x</TEXT>\n</DOC>\n", "a", "line 1: the document has no <DOCNO>"),
        (FT.encode()[:-8], "a", "line 27: the document has no </DOC>; the file may be cut off"),
        (b"\n<DOC>\n<DOCNO>1</DOCNO>\n<DOC>\n", "a", "line 2: the document has no </DOC> before line 4"),
        (b"\x1f\x9d\x90rest", "a.Z", "packed by `compress`.*gzip -d"),
        (gzip.compress(FT.encode())[:-20], "a.gz", "cannot be unpacked"),
        (b"nothing", "a", "it holds no documents"),
        (b'{"_id": "1", "text": 3}\n', "a.jsonl", "title and text of '1' must be strings"),
        (b'{"_id": "1", "text": "\\ud800"}\n', "a.jsonl", "half a character"),
        (b'{"text": "x"}\n', "a.jsonl", "line 1: the id None"),
        (b'{"_id": "1\\u0000", "text": "x"}\n', "a.jsonl", "line 1: the id .* holds a NUL"),
        (b"<DOC><DOCNO>1\0</DOCNO></DOC>", "a", "the id .* holds a NUL"),
        (b'{"id": "1", "abstract": "x"}\n', "a.jl", "expected the text as text, contents, body.*fields id, abstract"),
        (b'{"id": "1", "contents": ["x"]}\n', "a.jl", "contents as in TREC's Washington Post"),
        (b"[" * 100_000, "a.jsonl", "line 1 is not JSON"),
    ],
)
def test_faults_in_documents_are_named(content: bytes, name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=reason):
        list(find_documents(str(tmp_path / name)))


def test_places_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file or folder of documents"):
        find_documents(str(tmp_path / "gone"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no files"):
        find_documents(str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "ir_datasets", None)  # as if it were not installed
    with pytest.raises(ModuleNotFoundError, match="pip install ir_datasets"):
        find_documents("ir_datasets:nyt/trec-core-2017")


def test_ids_of_ir_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with the package's interface, which is no dependency: named tuples of fields that differ by set."""

    class Trec(NamedTuple):
        doc_id: str
        text: str

    class Nyt(NamedTuple):
        doc_id: str
        headline: str
        body: str

    class Other(NamedTuple):
        doc_id: str
        abstract: str

        def default_text(self) -> str:
            return self.abstract

    rows = [Trec("1", "one"), Nyt("2", "T", "two"), Other("3", "three")]
    module = ModuleType("ir_datasets")
    sets = {"my/set": SimpleNamespace(docs_iter=lambda: iter(rows))}
    monkeypatch.setattr(module, "load", sets.__getitem__, raising=False)
    monkeypatch.setitem(sys.modules, "ir_datasets", module)
    documents = find_documents("ir_datasets:my/set")
    assert list(documents) == [Document("1", "", "one"), Document("2", "T", "two"), Document("3", "", "three")]
    assert len(documents.fingerprint()) == 64
    with pytest.raises(ValueError, match="knows no dataset 'my/other'"):
        find_documents("ir_datasets:my/other")


def slow_cut(text: str, words: int, overlap: int) -> list[list[str]]:
    """The definition: a passage every ``words - overlap`` words, until one reaches the end."""
    left, out = text.split(), []
    start = 0
    while True:
        out.append(left[start : start + words])
        if start + words >= len(left):
            return out
        start += words - overlap


@given(st.integers(0, 60), st.integers(1, 12), st.integers(0, 11))
def test_passages_by_slow_definition(length: int, words: int, overlap: int) -> None:
    sizes = (words, overlap % words)
    text = " ".join(f"w{n}" for n in range(length))
    assert [p.split() for p in cut(text, *sizes)] == slow_cut(text, *sizes)


@pytest.mark.parametrize(
    ("length", "expected"), [(400, [400]), (401, [400, 201]), (600, [400, 400]), (601, [400, 400, 201])]
)
def test_passages_of_400_words(length: int, expected: list[int]) -> None:
    """By hand: passages begin at words 0, 200 and 400."""
    passages = cut("\n".join(f"w{n}" for n in range(length)))
    assert [len(p.split()) for p in passages] == expected
    assert passages[-1].endswith(f"w{length - 1}") and "\n" in passages[-1]


def test_a_collection_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_PER_PART", 3)
    rows = [{"_id": f"d{n}", "title": f"t{n}", "text": " ".join(["word"] * (450 if n == 2 else 5))} for n in range(6)]
    rows.append({"_id": "blank", "title": "t", "text": " "})
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = write_collection(find_documents(str(tmp_path / "docs.jsonl")), tmp_path / "c.arrow")
    assert made.counts == {
        "n_documents": 6, "n_passages": 7, "n_documents_cut": 1, "n_documents_without_text": 1
    }  # fmt: skip
    assert [batch.num_rows for batch in made.batches()] == [4, 3]  # of whole documents
    assert made.passages()["id"] == ["d0", "d1", "d2::1", "d2::2", "d3", "d4", "d5"]
    assert made.of_documents({"d2", "d4", "gone"}) == {"d2": ["d2::1", "d2::2"], "d4": ["d4"]}
    chosen = made.some({"d2::2", "d0"})
    assert list(zip(chosen["id"], chosen["title"], strict=True)) == [("d0", "t0"), ("d2::2", "t2")]
    assert len(chosen["text"][1].split()) == 250


@pytest.mark.parametrize("second", [{"_id": "d", "text": "again"}, {"_id": "d::2", "text": "a passage's id"}])
def test_ids_that_occur_twice_are_named(second: dict[str, str], tmp_path: Path) -> None:
    rows = [{"_id": "d", "text": " ".join(["word"] * 450)}, {"_id": "e", "text": "x"}, second]
    if second["_id"] == "d":
        rows[0]["text"] = "short"
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DatasetError, match=rf"1 ids occur more than once: '{second['_id']}'"):
        write_collection(find_documents(str(tmp_path / "docs.jsonl")), tmp_path / "c.arrow")
    assert not (tmp_path / "c.arrow").exists()
