"""What the words in the report's tables mean: one line each, with scale, direction and place in the paper."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Cells of a table, as a regular expression, that need the line.
_TERMS: dict[str, str] = {
    r"R@\d": (
        "**R@k**: share of queries with the target among the k best tables (inside the target: with any right unit "
        "among the k best); 0..1, higher is better (section 4.1.2)"
    ),
    r"GR@\d": (
        "**GR@k**: share of the group (the target and its siblings) among the k best: mean of members found / "
        "min(group size, k); 0..1, higher is better (section 4.1.2). GR@1 is the share of queries with a *group hit*: "
        "their best table is one of the group"
    ),
    r"DS@1": (
        "**DS@1**: R@1 / GR@1, the share of group hits that are the target; 0..1, higher is better; it rests on the "
        "queries with a group hit alone (n hit), and is 0 without any (section 4.1.2)"
    ),
    r"chance DS@1": (
        "**chance DS@1**: mean of 1 / group size over all n queries: DS@1 of a blind choice within the group (section "
        "4.1.3)"
    ),
    r"p \(.*": (
        "**p (bootstrap / exact)**: bootstrap: share of 1,000 resamples with a DS@1 of at most chance (as in Table "
        "42, but against the chance of these data); exact: probability of at least as many target hits if chance "
        "chose within each group that was hit; 0..1, low speaks for DS@1 above chance (appendix M)"
    ),
    r"n|n hit": "**n**, **n hit**: queries; those with a group hit, which DS@1 and its p-values rest on",
    r"tables / tokens cut": (
        "**tables / tokens cut**: share of the documents that are longer than the model's length limit / share of all "
        "their tokens that it so does not read; lower is better; empty where no limit is known (not in the paper)"
    ),
    r"EM|SF|SA": (
        "**EM, SF, SA**: types of questions: exact match (equalities only), selective filtering (with comparisons), "
        "selective aggregation (with a sum, mean, minimum, maximum or count) (appendix A.2)"
    ),
    r"Mixed": "**Mixed**: each table in its own of the formats CSV, HTML and Markdown (section 3.2)",
    r"TSenS?": "**TSen, TSenS**: every row a sentence; with its columns in random order (section 5.1, appendix F)",
    r"target|column deletion|row deletion|resampling|natural sibling|sibling, unlabelled|outside the group": (
        "**column deletion, row deletion, resampling**: how a sibling was made: without a column that the question "
        "needs, without part of the rows, from other rows of the same source; shares of queries with such a table "
        "first, 0..1 (section 4.1.3, appendix A.3). **natural sibling**: a table found with the same columns"
    ),
    r"Sen|SenS|SenSS": (
        "**Sen, SenS, SenSS**: every row a sentence; with its columns in random order; with the columns of the "
        "question only (section 5.2, appendix G.1)"
    ),
    r"chance R@1": "**chance R@1**: R@1 of a random order of the units, 0..1 (not in the paper)",
    r"Hit": (
        "**Hit**: share of queries where both rankings have the target first, or neither has; 0..1, higher is more "
        "consistent (appendix F.2)"
    ),
    r"RBO.*": (
        "**RBO**: rank-biased overlap of the five best (p = 0.9), not extrapolated: 0..0.4095, and divided by that "
        "0..1; higher is more consistent (appendix F.2)"
    ),
    r"Partial": (
        "**Partial**: share of queries where the first table of the base is among the five best of the comparison; "
        "0..1, higher is more consistent (appendix F.2)"
    ),
    r"Top-1 identity": (
        "**Top-1 identity**: share of queries with the same first table; 0..1, higher is more consistent (appendix F.2)"
    ),
    r"Ori|RID|RID\+Shuf": (
        "**Ori, RID, RID+Shuf**: tables as they are; with each cell's row number in front; and these cells shuffled "
        "within each column (section 5.2, appendix G.2)"
    ),
    r"preference": (
        "**preference**: share of all n queries that score the first-named table above its variant, ties counting one "
        "half; 0..1, 0.5 by chance, higher is more for the first-named (not in the paper)"
    ),
    r"ties": "**ties**: share of pairs with equal scores; 0..1, lower is better (not in the paper)",
    r"d_eff.*": (
        "**d_eff**: effective dimensionality of embeddings (participation ratio of the eigenvalues), from 1; higher "
        "is more dispersed (appendix G.3)"
    ),
    r"rho.*": (
        "**rho**: share of the variance along the first principal axis; 0..1, lower is more dispersed (appendix G.3)"
    ),
    r"mean distance|distance,.*": (
        "**distance**: mean pairwise cosine distance, 0..2; higher is more dispersed (appendix G.3)"
    ),
    r"margin.*": (
        "**margin** (Delta_q): cos(query, target) - largest cos(query, sibling), -2..2; above 0 the target comes "
        "before its siblings (appendix G.3)"
    ),
    r"group hit, target missed": (
        "**group hit, target missed**: share of queries with a sibling first; 0..1, lower is better (appendix G.3)"
    ),
    r".*, G?R@1": (
        "**r with R@1, GR@1**: Pearson's correlation over queries of a quantity with the hit (0 or 1); -1..1 "
        "(appendix G.3)"
    ),
}


def glossary(tables: Iterable[str]) -> list[str]:
    """The lines for the words in the cells of Markdown tables, in a fixed order."""
    rows = (line for text in tables for line in text.splitlines() if line.startswith("|"))
    cells = {cell.strip() for row in rows for cell in row.split(" | ")}
    words = {cell.strip("| ") for cell in cells}
    return [line for pattern, line in _TERMS.items() if any(re.fullmatch(pattern, word) for word in words)]
