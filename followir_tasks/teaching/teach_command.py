"""`mteb-beyond followir teach`: a training set of synthetic documents for narratives."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_teach_command(steps: Any) -> None:
    """Add ``teach`` to the steps of ``mteb-beyond followir``."""
    from evaluators.construction.options import add_stage_options
    from evaluators.judge.options import add_dry_run_option, add_model_options

    command = steps.add_parser(
        "teach",
        help="make a training set: synthetic documents for narratives, filtered by a judge",
        description="Make a training set as in FollowIR's section 5: for each topic that is in no evaluation set, "
        "relevant and non-relevant documents by a language model; a judge (--judge or --reranker) must agree with the "
        "intended label; of each topic one document of either label is kept. DIR then holds a dataset in the project's "
        "layout, train.jsonl (which `followir train` reads), triplets.jsonl (for sentence-transformers) and, in "
        "report.json, the counts of every step. Run it again with the same arguments: stored replies are not asked for "
        "again.",
    )
    command.add_argument(
        "--topics", required=True, nargs="+", type=Path, metavar="FILE", help="TREC topics (SGML, XML) or JSON lines"
    )
    command.add_argument(
        "--exclude",
        nargs="*",
        default=[],
        type=Path,
        metavar="PATH",
        help="evaluation sets whose topics must not be in, under their or other numbers: files of topics, or dataset "
        "directories",
    )
    command.add_argument("--out", required=True, type=Path, metavar="DIR", help="where everything goes")
    command.add_argument(
        "--query", choices=("description", "title"), default="description", help="the topic's field (%(default)s)"
    )
    command.add_argument(
        "--per-label", type=int, default=2, metavar="N", help="documents of either label for a topic (%(default)s)"
    )
    command.add_argument("--seed", type=int, default=0, help="of the draw of the documents that are kept (%(default)s)")
    command.add_argument("--prompts", type=Path, metavar="DIR", help="prompts to use in place of ours of the same name")
    command.add_argument("--license", default="unknown", metavar="ID", help="of the set, for its card (%(default)s)")
    command.add_argument(
        "--reranker",
        metavar="MODEL",
        help="judge by a local reranker of a causal language model: a directory of `followir reranker` or `followir "
        "train`, or causal-lm:MODEL; relevant where its probability is above a half",
    )
    add_stage_options(command)
    add_dry_run_option(command)
    add_model_options(command.add_argument_group("writer"), "llm", "model that writes the documents")
    add_model_options(command.add_argument_group("judge"), "judge", "model that judges them, if not --reranker")
    command.set_defaults(func=_teach)


def _teach(args: argparse.Namespace) -> int:
    from evaluators.construction.options import workspace_of
    from evaluators.construction.workspace import Pause
    from evaluators.judge.asking import PromptedAsking
    from evaluators.judge.options import language_model_of, sampling_of
    from evaluators.plugin.checks import shown
    from followir_tasks.teaching import synthesis
    from followir_tasks.teaching.balance import REPORT, balanced, export, keep
    from followir_tasks.teaching.sources import choose_topics

    if args.llm is None:
        raise ValueError("name the model that writes the documents with --llm")
    if (args.judge is None) == (args.reranker is None):
        raise ValueError("say who judges the documents: either --judge MODEL or --reranker MODEL")
    prompts = synthesis.read_prompts(args.prompts)

    def asking(prefix: str) -> PromptedAsking:
        model = getattr(args, prefix)
        return PromptedAsking(language_model_of(args, prefix), model, sampling_of(args, prefix), prompts)

    writer = asking("llm")
    chosen = choose_topics(args.topics, args.exclude, args.query)
    workspace = workspace_of(args, writer.language_model)
    if chosen.excluded:
        named = shown(f"{topic}: {why}" for topic, why in chosen.excluded.items())
        workspace.tell(
            f"topics left out, since evaluation sets have them: {len(chosen.excluded)} ({named}); the finished set's "
            f"{REPORT} names all"
        )
    try:
        documents = synthesis.write_documents(workspace, writer, chosen.pairs, args.per_label)
        if args.reranker is None:
            judge = asking("judge")
            workspace.model = judge.language_model
            told, judged = args.judge, synthesis.judge_by_model(workspace, judge, documents)
        else:
            told, score = _reranker(args.reranker)
            judged = synthesis.judge_by_reranker(workspace, told, score, documents)
    except Pause as pause:
        print(pause)
        return 0
    couples, counts = balanced(documents, judged, args.seed)
    if couples:
        keep(workspace, couples, judged, args.seed)
    record = {
        "writer": args.llm,
        "judge": told,
        "prompts": {name: prompt.version for name, prompt in prompts.items()},
        "seed": args.seed,
        "excluded": chosen.excluded,
    }
    export(workspace, couples, {**chosen.counts, **counts}, record, args.license)
    return 0


def _reranker(name: str) -> tuple[str, Any]:
    """Name with revision, and what scores; the model is loaded when it is first needed."""
    from evaluators.causal.reranker import CausalReranker
    from evaluators.plugin.models import resolve_model, told_model

    meta = resolve_model(name)
    loaded: list[CausalReranker] = []

    def score(rows: list[tuple[str, str, str]]) -> Any:
        if not loaded:
            model = meta.load_model()
            if not isinstance(model, CausalReranker):
                raise ValueError(f"{name} is no reranker of a causal language model; make one with `followir reranker`")
            loaded.append(model)
        return loaded[0].score(rows, progress=True)

    return told_model(meta), score
