"""From a judged collection to a FollowIR-style dataset: every stage that can be done now, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evaluators.construction.counts import counted
from evaluators.construction.workspace import Pause, Workspace
from evaluators.files import write_text
from evaluators.judge import PromptedAsking
from evaluators.plugin.checks import shown
from evaluators.plugin.dataset import is_dataset_directory
from followir_tasks.construction import export, statistics
from followir_tasks.construction.card import CANDIDATES, WHOLE, card
from followir_tasks.construction.collection import Collection
from followir_tasks.construction.drafting import MOST_WORDS, Drafts, Verdict, draft, verdicts_on
from followir_tasks.construction.maxp import best_passages
from followir_tasks.construction.pooling import Ranker, candidates, pool
from followir_tasks.construction.review import (
    DOCUMENTS,
    TOPICS,
    Wording,
    read_wordings,
    review_documents,
    update_topics,
)
from followir_tasks.construction.selection import Band, Chosen
from followir_tasks.construction.settling import Settled, settle
from followir_tasks.construction.sources import Source, collected, with_texts

__all__ = ["Options", "build"]


@dataclass(frozen=True)
class Options:
    """What the user chose.

    Attributes:
        band: for the share of relevant documents that stay relevant.
        rounds: of drafts at most.
        candidates: of every topic.
        seed: of every random choice.
        accept_unreviewed: whether to write the dataset although people's decisions are missing.
        license: of the dataset, a hub licence id.
        whole_collection: whether the dataset's corpus is the whole collection instead of the candidates.
    """

    band: Band
    rounds: int = 3
    candidates: int = 1000
    seed: int = 0
    accept_unreviewed: bool = False
    license: str = "unknown"
    whole_collection: bool = False


@dataclass(frozen=True)
class _Reviewed:
    """What drafts and people came to, by topic."""

    wordings: dict[str, Wording]
    settled: dict[str, Settled]
    counts: dict[str, int]


def build(
    workspace: Workspace,
    source: Source,
    asking: PromptedAsking | None,
    options: Options,
    pools: Sequence[Ranker],
    scorer: Ranker,
) -> dict[str, Any]:
    """Do every stage that is not done yet, up to the first that waits for somebody; return the report.

    Args:
        workspace: the dataset's directory.
        source: topics, judgements and documents.
        asking: how to ask for drafts; ``None``: every wording and every verdict is a person's.
        options: what the user chose.
        pools: the models that candidates come from.
        scorer: the model that chooses the passages.

    Raises:
        Pause: if people's decisions are missing, or in a dry run.
        ValueError: naming what is wrong with a source, a setting or a sheet.
        ConnectionError: if calls failed.
    """
    topics, texts, missing = with_texts(workspace, source, options.band)
    _tell_what_is_used(workspace, source, topics, missing)
    reviewed = _reviewed(workspace, topics, texts, asking, options)
    used = _used(topics, reviewed, options.band)
    collection = collected(workspace, source)
    lists = [
        pool(workspace, n, ranker, collection, source.key, topics, options.candidates)
        for n, ranker in enumerate(pools, 1)
    ]
    relevant = {t.topic: [*reviewed.settled[t.topic].stay, *reviewed.settled[t.topic].leave] for t in used}
    chosen = candidates(relevant, lists, options.candidates)
    passages = best_passages(workspace, scorer, collection, source.key, {t.topic: t.query for t in used}, chosen)
    pairs = [
        export.Pair(
            t.topic,
            t.query,
            t.instruction,
            reviewed.wordings[t.topic].text,
            t.relevant,
            t.judged,
            reviewed.settled[t.topic],
            passages[t.topic],
        )
        for t in used
    ]
    report = {
        "size": {"source": asdict(source.size), **_sizes(pairs)},
        "topics": {p.topic: _topic_row(p.settled) for p in pairs},
        "counts": {
            **source.selection.counts,
            **missing,
            **reviewed.counts,
            **collection.counts,
            "n_files_without_documents": len(collection.without),
            **_candidate_counts(pairs),
            **(_whole_counts(pairs, collection) if options.whole_collection else {}),
        },
        "excluded": source.selection.excluded,
        "record": _record(source, asking, options, pools, scorer),
    }
    told = card(report, options.band, options.license)
    export.write(workspace, pairs, collection, source.key, told, whole=options.whole_collection)
    write_text(workspace.work / "report.json", statistics.as_json(report))
    write_text(workspace.work / "report.md", statistics.markdown(report, options.band))
    if report["excluded"]:
        workspace.tell(f"topics left out, since other sets have them: {len(report['excluded'])} (see the report)")
    workspace.tell(f"report: {workspace.work / 'report.md'}")
    return report


def _tell_what_is_used(
    workspace: Workspace, source: Source, topics: Sequence[Chosen], missing: Mapping[str, int]
) -> None:
    """What is left out is told before anybody works on the rest."""
    counts = {**source.selection.counts, **missing}
    workspace.tell(f"{len(topics)} topics can be used ({counted(counts)})")


def _reviewed(
    workspace: Workspace,
    topics: Sequence[Chosen],
    texts: Mapping[str, str],
    asking: PromptedAsking | None,
    options: Options,
) -> _Reviewed:
    drafts = (
        draft(workspace, asking, topics, texts, options.band, rounds=options.rounds, seed=options.seed)
        if asking
        else Drafts()
    )
    wordings, present = read_wordings(workspace, topics, drafts.best)
    verdicts: dict[str, Mapping[str, Verdict]] = {t: found.verdicts for t, found in drafts.best.items()}
    edited = {t: w.text for t, w in wordings.items() if w.edited}
    verdicts = {t: said for t, said in verdicts.items() if t not in edited}
    if asking and edited:
        verdicts |= verdicts_on(workspace, asking, topics, edited, texts, "verdicts-edited")
    if workspace.dry_run:
        raise Pause("dry run: nothing is left to ask")
    decided, undecided = review_documents(workspace, topics, wordings, verdicts, texts)
    settled = {t.topic: settle(list(t.relevant), decided.get(t.topic, {})) for t in topics}
    returned = {
        t: f"{settled[t].told(options.band)}: write another wording, drop the topic, or run with another --stay and "
        "--redo (stored replies are not paid for again)"
        for t in decided
        if wordings[t].decision and t not in undecided and not settled[t].within(options.band)
    }
    update_topics(workspace, topics, drafts.best, options.band, returned, present)
    waiting = {
        "topics_without_decision": [t for t, w in wordings.items() if not w.decision],
        "topics_returned": [f"{t}: {settled[t].told(options.band)}" for t in returned],
        "documents_without_decision": [f"{t} {d}" for t, documents in undecided.items() for d in documents],
    }
    if any(waiting.values()) and not options.accept_unreviewed:
        raise Pause(_what_waits(workspace, waiting))
    overruled = [
        said.relevant != decided[t][d]
        for t, of in verdicts.items()
        for d, said in of.items()
        if said.relevant is not None and d in decided.get(t, {}) and d not in undecided.get(t, [])
    ]
    counts = {
        **drafts.counts,
        "n_relevant_documents_cut_for_the_model": sum(len(x.split()) > MOST_WORDS for x in texts.values())
        if asking
        else 0,
        "n_wordings_by_a_person": len(edited),
        "n_verdicts_that_a_person_confirmed": len(overruled) - sum(overruled),
        "n_verdicts_that_a_person_overruled": sum(overruled),
        **{f"n_unreviewed_{what}": len(ids) for what, ids in waiting.items()},
    }
    return _Reviewed(wordings, settled, counts)


def _used(topics: Sequence[Chosen], reviewed: _Reviewed, band: Band) -> list[Chosen]:
    """The topics of the dataset; the others are counted by reason."""
    out: list[Chosen] = []
    counts = dict.fromkeys(
        ("n_topics_dropped_by_a_person", "n_topics_without_changed_instruction", "n_topics_outside_the_band"), 0
    )
    for topic in topics:
        wording = reviewed.wordings[topic.topic]
        if wording.decision == "drop":
            counts["n_topics_dropped_by_a_person"] += 1
        elif not wording.text:
            counts["n_topics_without_changed_instruction"] += 1
        elif not reviewed.settled[topic.topic].within(band):
            counts["n_topics_outside_the_band"] += 1
        else:
            out.append(topic)
    if not out:
        raise ValueError(f"no topic is left for the dataset: {counted(counts)}")
    reviewed.counts.update(counts)
    reviewed.counts["n_documents_left_out_undecided"] = sum(len(reviewed.settled[t.topic].undecided) for t in out)
    return out


def _what_waits(workspace: Workspace, waiting: Mapping[str, list[str]]) -> str:
    told = "; ".join(f"{what.replace('_', ' ')}: {len(ids)} ({shown(ids)})" for what, ids in waiting.items() if ids)
    before = is_dataset_directory(workspace.directory)
    sheets = []
    if waiting["topics_without_decision"] or waiting["topics_returned"]:
        sheets.append(
            f"{TOPICS.path(workspace)} (decision: accept the draft; edit, with the whole changed instruction beside "
            "it; or drop)"
        )
    if waiting["documents_without_decision"]:
        sheets.append(f"{DOCUMENTS.path(workspace)} (decision: accept the verdict, relevant or not_relevant)")
    return f"waiting for review: {told}. Fill in {' and '.join(sheets)}, and run again; or pass --accept-unreviewed" + (
        f". The dataset in {workspace.directory} is the one written before" if before else ""
    )


def _sizes(pairs: Sequence[export.Pair]) -> dict[str, Any]:
    queries = [p.query for p in pairs]
    original = statistics.size(queries, [p.original for p in pairs], [p.settled.decided for p in pairs])
    changed = statistics.size(queries, [p.changed for p in pairs], [len(p.settled.stay) for p in pairs])
    return {"original": asdict(original), "changed": asdict(changed)}


def _topic_row(settled: Settled) -> dict[str, Any]:
    return {
        "relevant": settled.decided,
        "stay": len(settled.stay),
        "leave": len(settled.leave),
        "share": settled.share,
    }


def _candidate_counts(pairs: Sequence[export.Pair]) -> dict[str, int]:
    judged = sum(sum(d in p.passages for d in p.judged) for p in pairs)
    relevant = sum(p.settled.decided for p in pairs)
    return {
        "n_candidates": sum(len(p.passages) for p in pairs),
        "n_candidates_relevant": relevant,
        "n_candidates_judged_not_relevant": judged,
        "n_candidates_not_judged": sum(len(p.passages) for p in pairs) - relevant - judged,
        "n_passages_in_dataset": len({x for p in pairs for x in p.passages.values()}),
    }


def _whole_counts(pairs: Sequence[export.Pair], collection: Collection) -> dict[str, int]:
    """Of a corpus that is the whole collection: its size, and relevant documents of which it also holds a passage that
    was chosen for another topic."""
    passages: dict[str, set[str]] = {}
    for pair in pairs:
        for document, passage in pair.passages.items():
            passages.setdefault(document, set()).add(passage)
    relevant = [d for p in pairs for d in (*p.settled.stay, *p.settled.leave)]
    # Of candidates it holds the chosen passages only.
    n_left_out = sum(map(len, collection.of_documents(passages.keys()).values()))
    return {
        "n_passages_in_dataset": collection.counts["n_passages"] - n_left_out + sum(map(len, passages.values())),
        "n_candidates_relevant_with_another_topics_passage": sum(len(passages[d]) > 1 for d in relevant),
    }


def _record(
    source: Source, asking: PromptedAsking | None, options: Options, pools: Sequence[Ranker], scorer: Ranker
) -> dict[str, Any]:
    return {
        "documents": source.documents.name,
        **source.settings,
        "band": [options.band.least, options.band.most],
        "rounds": options.rounds,
        "candidates": options.candidates,
        "pool": [ranker.label for ranker in pools],
        "passages_chosen_by": scorer.label,
        "corpus": WHOLE if options.whole_collection else CANDIDATES,
        "model": asking.model if asking else None,
        "prompts": {name: prompt.version for name, prompt in asking.prompts.items()} if asking else {},
    }
