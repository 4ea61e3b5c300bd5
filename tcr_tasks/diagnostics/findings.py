"""Where the paper makes a finding: what was measured here, and whether it is enough to say the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from evaluators.metrics.bootstrap import Bootstrapped, Hits, SiblingBootstrap, bootstrap_difference
from tcr_tasks.diagnostics.catalogue import FORMAT_NAMES, VOLUME_NAMES
from tcr_tasks.diagnostics.results import Finding
from tcr_tasks.diagnostics.score import COIN
from tcr_tasks.diagnostics.tables import Findings, cut_off, p_values, told
from tcr_tasks.diagnostics.transforms.intra import CHUNKS
from tcr_tasks.diagnostics.transforms.length import LENGTHS
from tcr_tasks.diagnostics.transforms.volume import VOLUMES

# Queries that all agree show no interval; of fewer than six, chance lets all agree in over 5 % of cases: 2 * 0.5^5.
_FEWEST_AGREEING = 6
# From this share of the tokens on, the length limit is named as a possible reason.
_MUCH_CUT = 0.1
_DISCRIMINATION = {
    "main/mixed": "all questions",
    "strategies/without-column-deletion": "without column-deletion siblings",
    "formats/mixed/natural": "diagnostic questions",
}
_TOP = ("position/top-original", "position/top-middle", "position/top-bottom")
_BINDINGS = {
    "ori": "as it is (Ori)",
    "rid": "with row numbers (RID)",
    "rid-shuf": "with row numbers, shuffled (RID+Shuf)",
}
_PERTURBATIONS = {
    "content": "one with other entries where it answered",
    "rename": "one with a renamed header",
    "delete": "one without a column",
}


def statements(findings: Findings) -> list[str]:
    """One Markdown sentence or more per finding of the paper for which one model was measured."""
    made = (_discrimination, _formats, _forms, _consistent, _volume, _inside, _binding, _perturbed)
    return [text for make in (*made, _position, _transposed, _shorter) for text in make(findings)]


# ---- against chance --------------------------------------------------------------------------------------------


def _discrimination(findings: Findings) -> Iterator[str]:
    for key, what in _DISCRIMINATION.items():
        finding = findings.get(key)
        if finding is None:
            continue
        begin = f"The target among its siblings, {what}, Mixed:"
        score, chance, asked = (finding.value(name) for name in ("ds_at_1", "chance_ds_at_1", "recall_at_1"))
        if score is None or chance is None or asked is None:
            yield f"{begin} {_missing(finding)}."
        elif score.n == 0:
            yield f"{begin} DS@1 says nothing, since none of the {asked.n} queries has a table of its group first."
        else:
            verdict = _verdict(
                (score.low, score.high), chance.value, score.n, "targets are told from siblings", "siblings go first"
            )
            by_bootstrap, exact = p_values(finding)
            yield (
                f"{begin} DS@1 is {told(score)} (n = {score.n} of {asked.n}, whose group was hit; chance "
                f"{chance.value:.3f}; p {by_bootstrap} by bootstrap, {exact} exact): {verdict}."
            )


def _inside(findings: Findings) -> Iterator[str]:
    for kind in VOLUMES:
        verdicts, shown, n = {}, [], 0
        for size in CHUNKS:
            finding = findings.get(f"intra/{'row' if size == 1 else f'chunk{size}'}/{kind}")
            if finding is None:
                continue
            unit = "rows" if size == 1 else f"{size} rows at a time"
            score, chance = finding.value("recall_at_1"), finding.value("chance_recall_at_1")
            if score is None or chance is None:
                verdicts[unit] = _missing(finding)
                continue
            n = max(n, score.n)
            shown.append(f"{told(score)} by {unit} (chance {chance.value:.3f})")
            verdicts[unit] = _verdict(
                (score.low, score.high), chance.value, score.n, "above chance", "below chance", "chance"
            )
        if verdicts:
            yield f"Inside the target as {VOLUME_NAMES[kind]} (n = {n}), R@1: {', '.join(shown)}. {_grouped(verdicts)}."


def _preference(findings: Findings, key: str, begin: str, first: str, above: str, below: str) -> Iterator[str]:
    """In how many pairs the first table scores higher."""
    finding = findings.get(key)
    if finding is None:
        return
    score = finding.value("preference")
    if score is None:
        yield f"{begin}: {_missing(finding)}."
        return
    verdict = _verdict((score.low, score.high), COIN, score.n, above, below)
    yield f"{begin}: {first} scores higher in {told(score)} of the pairs (n = {score.n}, chance {COIN}): {verdict}."


def _binding(findings: Findings) -> Iterator[str]:
    for kind, how in _BINDINGS.items():
        begin = f"A target {how} against one with other entries where it answered"
        words = "the target is preferred", "the target is avoided"
        yield from _preference(findings, f"binding/{kind}", begin, "the target", *words)
    if "binding/rid-shuf" in findings:
        what = "Broken rows (RID+Shuf) against whole ones (RID)"
        yield from _difference(findings, "binding/rid-shuf", "binding/rid", what, "shuffling")


def _perturbed(findings: Findings) -> Iterator[str]:
    for kind, other in _PERTURBATIONS.items():
        words = "the target is preferred", "the changed table is preferred"
        yield from _preference(findings, f"perturbation/{kind}", f"A target against {other}", "the target", *words)


def _position(findings: Findings) -> Iterator[str]:
    for key in _TOP:
        first, second = key.split("/")[1].split("-")
        other = "in its original place" if second == "original" else f"at the {second}"
        begin = f"Answer at the {first} against answer {other}"
        words = f"the {first} is preferred", f"the {first} is avoided"
        for text in _preference(findings, key, begin, f"the {first}", *words):
            yield text + _limit({"these tables": [findings[key]]})


# ---- against another diagnostic --------------------------------------------------------------------------------


def _transposed(findings: Findings) -> Iterator[str]:
    yield from _difference(findings, "transposed", "main/mixed", "Transposed tables against plain ones", "transposing")


def _volume(findings: Findings) -> Iterator[str]:
    what = "Only the question's columns (SenSS) against whole rows (Sen)"
    yield from _difference(findings, "volume/senss", "volume/sen", what, "leaving out the other columns")
    what = "Columns in random order (SenS) against the table's order (Sen)"
    yield from _difference(findings, "volume/sens", "volume/sen", what, "shuffling columns")


def _formats(findings: Findings) -> Iterator[str]:
    for key, what in (("main/{}", "all questions"), ("formats/{}/natural", "diagnostic questions")):
        others = {text: key.format(name) for name, text in FORMAT_NAMES.items() if name != "mixed"}
        yield from _changes(findings, others, key.format("mixed"), f"One format against Mixed, {what}")


def _forms(findings: Findings) -> Iterator[str]:
    others = {form: f"formats/mixed/{form}" for form in ("template", "sentential")}
    what = "Other forms of the query against natural ones"
    yield from _changes(findings, others, "formats/mixed/natural", what, same_tables=True)


def _shorter(findings: Findings) -> Iterator[str]:
    others = {f"1/{n}": f"length/{n}" for n in LENGTHS}
    yield from _changes(findings, others, "main/mixed", "Tables with a part of their rows against whole ones")


def _difference(findings: Findings, changed: str, plain: str, what: str, doing: str) -> Iterator[str]:
    """R@1 and GR@1 of one diagnostic minus those of another, over the queries of both."""
    if changed not in findings:
        return
    found = _compared(findings, changed, plain)
    if isinstance(found, str):
        yield f"{what}: {found}."
        return
    drawn, n = found
    parts = [
        f"{name} changes by {_signed(score)}: {_verdict(score.interval(), 0, n, f'{doing} helps', f'{doing} hurts')}"
        for name, score in (("R@1", drawn.recall_at_1), ("GR@1", drawn.gr_at_1))
    ]
    limit = _limit({"the former": [findings[changed]], "the latter": [findings[plain]]})
    yield f"{what} (n = {n}): {'; '.join(parts)}.{limit}"


def _changes(
    findings: Findings, changed: Mapping[str, str], plain: str, what: str, same_tables: bool = False
) -> Iterator[str]:
    """R@1 of several diagnostics (name -> key) minus that of one, in one sentence."""
    run = {name: key for name, key in changed.items() if key in findings}
    if not run:
        return
    shown, verdicts, counts = [], {}, set()
    for name, key in run.items():
        found = _compared(findings, key, plain)
        if isinstance(found, str):
            verdicts[name] = found
            continue
        drawn, n = found
        counts.add(n)
        shown.append(f"{name} {_signed(drawn.recall_at_1)}")
        verdicts[name] = _verdict(drawn.recall_at_1.interval(), 0, n, "R@1 is higher", "R@1 is lower")
    if not shown:
        yield f"{what}: {_grouped(verdicts)}."
        return
    of = f"n = {min(counts)}" + (f" to {max(counts)}" if len(counts) > 1 else "")
    tables = {"the former": [findings[key] for key in run.values()], "the latter": [findings[plain]]}
    limit = "" if same_tables else _limit(tables)
    yield f"{what} ({of}), change of R@1: {', '.join(shown)}. {_grouped(verdicts)}.{limit}"


def _compared(findings: Findings, changed: str, plain: str) -> tuple[SiblingBootstrap, int] | str:
    """The paired difference and the number of queries that both have; or why there is none."""
    if plain not in findings:
        return f"no comparison, since {plain} was not run"
    for key in (changed, plain):
        if findings[key].reason is not None:
            return _missing(findings[key])
    first, second = findings[changed].hits, findings[plain].hits
    shared = [q for q in first if q in second]
    if not shared:
        return "the two have no query in common"
    seed = findings[plain].origin.seed
    return bootstrap_difference(_hits(first, shared), _hits(second, shared), seed=seed), len(shared)


def _consistent(findings: Findings) -> Iterator[str]:
    found = [f for key, f in findings.items() if key.startswith("consistency/") and f.reason is None]
    if not found:
        return
    ranges = []
    for metric, name in (("hit", "hit or miss"), ("top_1_identity", "the first table")):
        values = [score.value for f in found if (score := f.value(metric)) is not None]
        ranges.append(f"{name} in {min(values):.3f} to {max(values):.3f}")
    n = max(score.n for f in found for score in f.scores)
    yield f"Formats and forms of the query agree on {' and on '.join(ranges)} of the queries (n = {n})."


# ---- words -----------------------------------------------------------------------------------------------------


def _verdict(
    interval: tuple[float | None, float | None], border: float, n: int, above: str, below: str, named: str = ""
) -> str:
    low, high = interval
    if low is None or high is None:
        return "undecided, without an interval"
    if low == high == border:
        return "undecided, since no query differs"
    if low <= border <= high:
        return f"undecided, since the interval includes {named or f'{border:.3g}'}"
    if low == high and n < _FEWEST_AGREEING:
        return f"undecided, since all {n} queries agree, but fewer than {_FEWEST_AGREEING} may do so by chance"
    return above if low > border else below


def _grouped(verdicts: Mapping[str, str]) -> str:
    """``1/2, 1/3: undecided; 1/4: R@1 is higher``."""
    names: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        names.setdefault(verdict, []).append(name)
    return "; ".join(f"{', '.join(some)}: {verdict}" for verdict, some in names.items())


def _limit(tables: Mapping[str, Iterable[Finding]]) -> str:
    """A sentence on the length limit, where it cuts off much; empty otherwise, and where it is not known."""
    parts, largest = [], 0.0
    for name, some in tables.items():
        shares = [cut_off(finding)[-1].value for finding in some if cut_off(finding)]
        if shares:
            low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
            parts.append(f"{low if low == high else f'{low} to {high}'} of the tokens of {name}")
            largest = max(largest, *shares)
    if largest < _MUCH_CUT:
        return ""
    return f" Beyond the model's length limit lie {' and '.join(parts)}, which may be the reason for any difference."


def _signed(score: Bootstrapped) -> str:
    low, high = score.interval()
    return f"{score.value:+.3f} [{low:+.2f}, {high:+.2f}]"


def _hits(hits: Mapping[str, Sequence[int]], queries: Sequence[str]) -> Hits:
    return Hits([hits[q][0] for q in queries], [hits[q][1] for q in queries])


def _missing(finding: Finding) -> str:
    return "no number, since " + (finding.reason[1] if finding.reason else "it was not measured")
