"""Which of the paper's tables there are, and where their numbers come from."""

from __future__ import annotations

from collections.abc import Iterable

from tcr_tasks.diagnostics.catalogue import BINDING_FORMATS, BINDING_NAMES, FORMAT_NAMES, FORMATS, VOLUME_NAMES
from tcr_tasks.diagnostics.consistency import COMPARISONS as CONSISTENCY
from tcr_tasks.diagnostics.score import MOST_NOT_MEASURABLE, MOST_TIES
from tcr_tasks.diagnostics.tables import CUT, N_HIT, P_VALUES, N, PaperTable, Row
from tcr_tasks.diagnostics.transforms.formats import QUERY_FORMS
from tcr_tasks.diagnostics.transforms.intra import CHUNKS
from tcr_tasks.diagnostics.transforms.length import LENGTHS
from tcr_tasks.diagnostics.transforms.perturbation import PERTURBATIONS
from tcr_tasks.diagnostics.transforms.position import COMPARISONS as POSITIONS
from tcr_tasks.diagnostics.transforms.volume import VOLUMES


def _recall(*ks: int) -> dict[str, str]:
    return {f"R@{k}": f"recall_at_{k}" for k in ks}


_GROUP = {"GR@1": "gr_at_1", "DS@1": "ds_at_1"}
_HIT = {"n hit": N_HIT, "n": N}
_CUT = {"tables / tokens cut": CUT}
_CHANCE = {"chance DS@1": "chance_ds_at_1", "p (bootstrap / exact)": P_VALUES}
_USUAL = {**_recall(1, 3, 5), **_GROUP, **_CHANCE, **_HIT, **_CUT}
_PAIRS = {
    **_recall(1, 2, 3),
    **_GROUP,
    "preference": "preference",
    "ties": "pair_tied_share",
    **_HIT,
    **_CUT,
}
_PAIR_NOTE = (
    "Pairs of a table and its one variant; the pool holds all pairs, no siblings. DS@1 is 0.5 by chance, and above it "
    "the first-named table is preferred where one of the two is first in the pool. Preference: share of all n queries "
    "that score it above its variant, equal scores counting one half. A comparison is not measurable if more than "
    f"{MOST_TIES:.0%} of its pairs have equal scores, or if in more than {MOST_NOT_MEASURABLE:.0%} of them the two "
    "tables differ only beyond the length that the model reads; those are left out."
)


def _paper_tables() -> tuple[PaperTable, ...]:
    named = FORMAT_NAMES.items()
    main = tuple(Row((text,), f"main/{name}") for name, text in named)
    all_k = {**_recall(1, 2, 3, 4, 5), **{f"GR@{k}": f"gr_at_{k}" for k in range(1, 6)}}
    forms = {"natural": "Final (NL)", "template": "Template", "sentential": "Sentential"}
    tops = {
        "target": "top_is_target",
        "column deletion": "top_is_column_deletion",
        "row deletion": "top_is_row_deletion",
        "resampling": "top_is_resampling",
        "natural sibling": "top_is_natural",
        "sibling, unlabelled": "top_is_sibling",
        "outside the group": "top_is_other",
    }
    return (
        PaperTable(
            "Retrieval by format (Table 8)",
            ("Format",),
            {**all_k, "DS@1": "ds_at_1", **_CHANCE, **_HIT, **_CUT},
            main,
        ),
        PaperTable(
            "Retrieval by type of question (Table 11)",
            ("Type",),
            _USUAL,
            tuple(Row((t or "All",), "main/mixed", t) for t in ("", "EM", "SF", "SA")),
        ),
        PaperTable(
            "What is ranked first, by how the sibling was made (section 4.1.3)",
            ("Format",),
            {**tops, "n": N},
            main,
            "Shares of the queries.",
        ),
        PaperTable(
            "With and without column-deletion siblings (section 4.1.3)",
            ("Siblings",),
            _USUAL,
            (
                Row(("all",), "main/mixed", baseline=True),
                Row(("with all columns",), "strategies/without-column-deletion"),
            ),
        ),
        PaperTable(
            "With siblings and without any (Table 25)",
            ("Group",),
            {**_recall(1, 3, 5), **_GROUP, **_HIT, **_CUT},
            (
                Row(("target and siblings",), "main/mixed", baseline=True),
                Row(("target alone",), "strategies/without-siblings"),
            ),
            "Each question is searched among its target and the tables of other groups. In a group of one GR@1 is R@1 "
            "and DS@1 is 1 by construction, and there is no margin.",
        ),
        PaperTable(
            "Diagnostic questions by format (Table 16)",
            ("Format",),
            _USUAL,
            tuple(Row((text,), f"formats/{name}/natural") for name, text in named),
        ),
        PaperTable(
            "Diagnostic questions by form of the query (Table 17)",
            ("Query",),
            _USUAL,
            tuple(Row((forms[form],), f"formats/mixed/{form}") for form in QUERY_FORMS),
        ),
        PaperTable(
            "Diagnostic questions by format and form of the query (beyond Tables 16 and 17)",
            ("Format", "Query"),
            _USUAL,
            tuple(
                Row((FORMAT_NAMES[name], forms[form]), f"formats/{name}/{form}")
                for name in FORMATS
                for form in QUERY_FORMS
                if form != "natural" and name != "mixed"
            ),
        ),
        *_consistency_tables(),
        PaperTable(
            "Semantic volume (Table 2)",
            ("Type",),
            _USUAL,
            tuple(Row((VOLUME_NAMES[kind],), f"volume/{kind}") for kind in VOLUMES),
        ),
        PaperTable(
            "Inside the target (Tables 20 and 21, Figure 4)",
            ("Unit", "Type"),
            {**_recall(1, 3, 5), "chance R@1": "chance_recall_at_1", "n": N, **_CUT},
            tuple(
                Row(("row" if size == 1 else f"{size} rows", VOLUME_NAMES[kind]), _intra_key(size, kind))
                for size in CHUNKS
                for kind in VOLUMES
            ),
            "A hit is any row, or chunk of rows, that holds an answer.",
        ),
        *_pair_tables(),
        PaperTable(
            "Transposed tables (Table 28)",
            ("Tables",),
            _USUAL,
            (Row(("as they are",), "main/mixed", baseline=True), Row(("transposed",), "transposed")),
        ),
        PaperTable(
            "Shorter tables (Figure 6)",
            ("Rows",),
            _USUAL,
            (Row(("all",), "main/mixed", baseline=True), *(Row((f"1/{n}",), f"length/{n}") for n in LENGTHS)),
        ),
        *_geometry_tables(main),
    )


def _consistency_tables() -> Iterable[PaperTable]:
    columns = {
        "Hit": "hit",
        "RBO": "rbo_at_5",
        "RBO / 0.4095": "rbo_at_5_normalised",
        "Partial": "partial",
        "Top-1 identity": "top_1_identity",
        "n": N,
    }
    for number, what in (("18", "formats"), ("19", "forms of the query")):
        rows = [c for c in CONSISTENCY if c.paper == f"Table {number}"]
        shown = (" vs. ".join(FORMAT_NAMES.get(str(v), str(v)) for v in c.settings.values()) for c in rows)
        yield PaperTable(
            f"Consistency across {what} (Table {number})",
            ("Base vs. comparison",),
            columns,
            tuple(Row((text,), c.key) for text, c in zip(shown, rows, strict=True)),
            "RBO of the five best is not extrapolated, as the paper's: identical lists give 0.4095.",
        )


def _pair_tables() -> Iterable[PaperTable]:
    yield PaperTable(
        "Row-column binding (Tables 3 and 22)",
        ("Config", "Format"),
        _PAIRS,
        tuple(
            Row((text, FORMAT_NAMES[name]), f"binding/{kind}" + ("" if name == "mixed" else f"/{name}"))
            for kind, text in BINDING_NAMES.items()
            for name in BINDING_FORMATS
        ),
        _PAIR_NOTE,
    )
    names = {"content": "Content perturb.", "rename": "Rename header", "delete": "Delete column"}
    yield PaperTable(
        "Small perturbations (Table 26)",
        ("Configuration",),
        _PAIRS,
        tuple(Row((names[kind],), f"perturbation/{kind}") for kind in PERTURBATIONS),
        _PAIR_NOTE,
    )
    yield PaperTable(
        "Position of the answer (Table 27)",
        ("Setting",),
        _PAIRS,
        tuple(Row((f"{a.capitalize()} vs {b.capitalize()}",), f"position/{a}-{b}") for a, b in POSITIONS),
        _PAIR_NOTE + " Both tables answer.",
    )


def _geometry_tables(main: tuple[Row, ...]) -> Iterable[PaperTable]:
    yield PaperTable(
        "Geometry of the corpus (Table 23)",
        ("Format",),
        {"d_eff": "global_d_eff", "rho": "global_rho", "mean distance": "global_mean_distance", **_CUT},
        main,
        geometry=True,
    )
    local = {
        "d_eff, med.": "median_d_eff",
        "rho, med.": "median_rho",
        "distance, med.": "median_distance",
        "margin, mean": "mean_margin",
        "margin > 0": "positive_margin_share",
        "margin, target first": "mean_margin_target_first",
        "margin, sibling first": "mean_margin_sibling_first",
        "group hit, target missed": "neighbourhood_hit_target_miss",
    }
    yield PaperTable(
        "Geometry of target and siblings (Table 24)",
        ("Format",),
        {**local, **_recall(1), **_GROUP, **_HIT},
        main,
        geometry=True,
    )
    quantities = {"d_eff": "d_eff", "rho": "rho", "distance": "distance", "margin": "margin"}
    yield PaperTable(
        "Pearson's r of local geometry with the outcome (appendix G.3)",
        ("Format",),
        {
            f"{text}, {head}": f"r_{name}_{outcome}"
            for name, text in quantities.items()
            for head, outcome in (("R@1", "r_at_1"), ("GR@1", "gr_at_1"))
        },
        main,
        "Undefined, and left empty, where a quantity or the outcome is the same for all queries. In a group of one "
        "table GR@1 = R@1 and DS@1 = 1, and margins are undefined (the paper's Table 25).",
        geometry=True,
    )


def _intra_key(size: int, kind: str) -> str:
    return f"intra/{'row' if size == 1 else f'chunk{size}'}/{kind}"


PAPER_TABLES: tuple[PaperTable, ...] = _paper_tables()
