"""All diagnostics: what each is called, where the paper has it, and the function that makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tcr_tasks.diagnostics.base import Base
from tcr_tasks.diagnostics.cases import Case
from tcr_tasks.diagnostics.transforms.binding import BINDINGS, binding
from tcr_tasks.diagnostics.transforms.formats import QUERY_FORMS, formats, whole
from tcr_tasks.diagnostics.transforms.intra import CHUNKS, intra_table
from tcr_tasks.diagnostics.transforms.length import LENGTHS, length
from tcr_tasks.diagnostics.transforms.perturbation import PERTURBATIONS, perturbation
from tcr_tasks.diagnostics.transforms.position import COMPARISONS, position
from tcr_tasks.diagnostics.transforms.strategies import without_column_deletion, without_siblings
from tcr_tasks.diagnostics.transforms.transposition import transposition
from tcr_tasks.diagnostics.transforms.volume import VOLUMES, volume
from tcr_tasks.serialize import TableFormat

__all__ = ["CATALOGUE", "FAMILIES", "Diagnostic"]


@dataclass(frozen=True)
class Diagnostic:
    """One diagnostic.

    Attributes:
        key: its name, unique: ``formats/markdown/natural``.
        family: the part of the key before the first slash; what ``--only`` chooses by.
        title: what it is, in words.
        paper: where the paper has it, such as ``Table 16``; empty if the paper has no such combination.
        settings: what distinguishes it within its family.
        make: the diagnostic on a dataset.
    """

    key: str
    title: str
    paper: str
    settings: Mapping[str, str | int]
    make: Callable[[Base], Case]

    @property
    def family(self) -> str:
        return self.key.split("/")[0]


# Name -> format; None: each table in its own.
FORMATS: dict[str, TableFormat | None] = {
    "csv": TableFormat.CSV,
    "html": TableFormat.HTML,
    "markdown": TableFormat.MARKDOWN,
    "mixed": None,
    "tsen": TableFormat.TSEN,
    "tsens": TableFormat.TSENS,
}
FORMAT_NAMES = {
    "csv": "CSV",
    "html": "HTML",
    "markdown": "Markdown",
    "mixed": "Mixed",
    "tsen": "TSen",
    "tsens": "TSenS",
}
BINDING_FORMATS = ("mixed", "csv", "html", "markdown")
VOLUME_NAMES = {"sen": "Sen", "sens": "SenS", "senss": "SenSS"}
BINDING_NAMES = {"ori": "Ori", "rid": "RID", "rid-shuf": "RID+Shuf"}
_PERTURBATION_NAMES = {"content": "Content perturbation", "rename": "Renamed header", "delete": "Deleted column"}


def _whole() -> list[Diagnostic]:
    return [
        Diagnostic(
            f"main/{name}",
            f"All questions, {FORMAT_NAMES[name]}",
            "Table 8",
            {"format": name},
            partial(whole, fmt=fmt),
        )
        for name, fmt in FORMATS.items()
    ]


def _formats() -> list[Diagnostic]:
    out = []
    for name, fmt in FORMATS.items():
        for form in QUERY_FORMS:
            natural, mixed = form == "natural", name == "mixed"
            paper = "Tables 16, 17" if natural and mixed else "Table 16" if natural else "Table 17" if mixed else ""
            out.append(
                Diagnostic(
                    f"formats/{name}/{form}",
                    f"{FORMAT_NAMES[name]}, {form} query",
                    paper,
                    {"format": name, "query_form": form},
                    partial(formats, fmt=fmt, form=form),
                )
            )
    return out


def _volume() -> list[Diagnostic]:
    return [
        Diagnostic(
            f"volume/{kind}",
            f"Tables as {VOLUME_NAMES[kind]}",
            "Table 2",
            {"volume": kind},
            partial(volume, kind=kind),
        )
        for kind in VOLUMES
    ]


def _intra() -> list[Diagnostic]:
    out = []
    for size in CHUNKS:
        unit = "row" if size == 1 else f"chunk{size}"
        paper = {1: "Table 20", 10: "Tables 20, 21", 20: "Table 21"}[size]
        for kind in VOLUMES:
            out.append(
                Diagnostic(
                    f"intra/{unit}/{kind}",
                    f"Inside the target, {'rows' if size == 1 else f'chunks of {size} rows'} as {VOLUME_NAMES[kind]}",
                    paper,
                    {"rows": size, "volume": kind},
                    partial(intra_table, size=size, kind=kind),
                )
            )
    return out


def _binding() -> list[Diagnostic]:
    return [
        Diagnostic(
            f"binding/{kind}" + ("" if name == "mixed" else f"/{name}"),
            f"{BINDING_NAMES[kind]}, {FORMAT_NAMES[name]}",
            "Tables 3, 22" if name == "mixed" else "Table 22",
            {"configuration": kind, "format": name},
            partial(binding, kind=kind, fmt=FORMATS[name]),
        )
        for kind in BINDINGS
        for name in BINDING_FORMATS
    ]


def _perturbation() -> list[Diagnostic]:
    return [
        Diagnostic(
            f"perturbation/{kind}",
            _PERTURBATION_NAMES[kind],
            "Table 26",
            {"perturbation": kind},
            partial(perturbation, kind=kind),
        )
        for kind in PERTURBATIONS
    ]


def _position() -> list[Diagnostic]:
    return [
        Diagnostic(
            f"position/{first}-{second}",
            f"{first.capitalize()} vs {second.capitalize()}",
            "Table 27",
            {"first": first, "second": second},
            partial(position, first=first, second=second),
        )
        for first, second in COMPARISONS
    ]


def _others() -> list[Diagnostic]:
    return [
        Diagnostic(
            "strategies/without-column-deletion",
            "Without column-deletion siblings",
            "Section 4.1.3",
            {},
            without_column_deletion,
        ),
        Diagnostic("strategies/without-siblings", "Without any sibling", "Table 25", {}, without_siblings),
        Diagnostic("transposed", "Transposed tables", "Table 28", {}, transposition),
        *(Diagnostic(f"length/{n}", f"1/{n} of the rows", "Figure 6", {"n": n}, partial(length, n=n)) for n in LENGTHS),
    ]


CATALOGUE: tuple[Diagnostic, ...] = (
    *_whole(),
    *_formats(),
    *_volume(),
    *_intra(),
    *_binding(),
    *_perturbation(),
    *_position(),
    *_others(),
)
FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(diagnostic.family for diagnostic in CATALOGUE))
