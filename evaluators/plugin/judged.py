"""Tasks whose runs a judge can score beside their relevance judgements."""

from __future__ import annotations

import inspect
import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml

from evaluators.judge.endpoint import EndpointError
from evaluators.judge.judges import Judge, Judgement, Pair, as_judge, frequent, unscored, weighted_share
from evaluators.plugin.data import TaskData
from evaluators.plugin.results import SpecialScores
from evaluators.plugin.task import BeyondTask

logger = logging.getLogger(__name__)

JUDGE_KEY = "judge"


@dataclass(frozen=True)
class Judged:
    """What a judge's scores of a run come to.

    Attributes:
        scores: flat values by key.
        per_query: query id -> the same for that query alone.
        pairs: the different pairs that were judged.
        judgements: one for each pair.
        withheld: whether too many pairs have no score, so that ``scores`` holds counts only.
    """

    scores: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, Any]]
    pairs: Sequence[Pair]
    judgements: Sequence[Judgement]
    withheld: bool = False

    def beside(self, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """A table of scores per query with these beside them."""
        return {query: {**row, **self.per_query.get(query, {})} for query, row in rows.items()}

    def counts(self) -> dict[str, Any]:
        """``n_judged`` pairs with a score, ``n_unscored`` without; ``weighted``: share scored by log-probabilities."""
        n_judged = sum(j.score is not None for j in self.judgements)
        counts = {"n_judged": n_judged, "n_unscored": len(self.judgements) - n_judged}
        weighted = weighted_share(self.judgements)
        return counts if weighted is None else counts | {"weighted": weighted}


class JudgedTask(BeyondTask):
    """A task that takes a judge: set ``judge`` on an object, or on the class where mteb creates the objects.

    Attributes:
        judge: a :class:`~evaluators.judge.Judge`, or a function of a :class:`~evaluators.judge.Pair`.
        most_unscored: the judge's scores are withheld if a larger share (0..1) of the pairs has none.
        report_folder: where a record of the judging goes, as ``<task>.judge.yaml``; the commands set it to the folder
            of the result file.
        rubrics: directory with the rubrics for a language model as judge.
        judged_score: the key that a judged result has.
    """

    rubrics: ClassVar[Path]
    judged_score: ClassVar[str]

    judge: Judge | Callable[[Pair], float | None] | None = None
    most_unscored: float = 0.05
    report_folder: Path | None = None
    _judge_failed = False

    @abstractmethod
    def judged_scores(self, run: dict[str, dict[str, float]], data: TaskData, judge: Judge) -> Judged:
        """Let the judge score what it has to of a complete run, each different pair once."""

    def active_judge(self) -> Judge | None:
        """The judge in force."""
        # Read without binding: a function set on the class must not become a method of the task.
        judge = inspect.getattr_static(self, "judge")
        return None if judge is None else as_judge(judge.__func__ if isinstance(judge, staticmethod) else judge)

    def record(self) -> dict[str, Any]:
        judge = None if self._judge_failed else self.active_judge()
        return super().record() | ({} if judge is None else {JUDGE_KEY: judge.record()})

    def all_scores(self, run: dict[str, dict[str, float]], data: TaskData) -> SpecialScores:
        self._judge_failed = False
        special = super().all_scores(run, data)
        if self.active_judge() is None:
            logger.warning(
                "%s: without a judge there is no %s. Set task.judge, use `mteb-beyond run --judge MODEL`, or score "
                "saved predictions with `mteb-beyond judge`",
                self.metadata.name,
                self.judged_score,
            )
            return special
        try:
            judged = self.judge_run(run, data)
        except EndpointError as error:
            # The retrieval is done and its scores are sound; losing them would cost more than it saves.
            self._judge_failed = True
            logger.error(
                "%s: scored without judge, so there is no %s: %s. Judge its saved predictions with "
                "`mteb-beyond judge`, or run again",
                self.metadata.name,
                self.judged_score,
                error,
            )
            return special
        return SpecialScores(special.scores | dict(judged.scores), judged.beside(special.per_query))

    def judge_run(self, run: dict[str, dict[str, float]], data: TaskData) -> Judged:
        """The judge's scores of a run and its counts, and a report of it in ``report_folder``.

        The scores, not the counts, are withheld if too many pairs have none, overall and for each query.

        Raises:
            ValueError: if there is no judge, or ``most_unscored`` is no share.
        """
        judge = self.active_judge()
        if judge is None:
            raise ValueError(f"{self.metadata.name} has no judge: set task.judge")
        check_share(self.most_unscored)
        judged = self.judged_scores(run, data, judge)
        missing = unscored(judged.pairs, judged.judgements)
        share = len(missing) / len(judged.pairs)
        withheld = share > self.most_unscored
        if missing:
            logger.warning(
                "%s: %d of %d pairs have no judge's score%s: %s",
                self.metadata.name,
                len(missing),
                len(judged.pairs),
                f", more than {self.most_unscored:.0%}, so there is no {self.judged_score}" if withheld else "",
                frequent(entry["reason"] for entry in missing),
            )
        scores, per_query = ({}, {}) if withheld else (dict(judged.scores), judged.per_query)
        complete = Judged(scores | judged.counts(), per_query, judged.pairs, judged.judgements, withheld)
        if self.report_folder is not None:
            self.write_report(complete, self.report_folder)
        return complete

    def write_report(self, judged: Judged, folder: Path) -> None:
        """Write the record of a judging (:meth:`judge_run`) into a folder, as ``<task>.judge.yaml``."""
        judge = self.active_judge()
        assert judge is not None
        report = {
            "task": self.metadata.name,
            "dataset_revision": self.metadata.revision,
            **judge.record(),
            **judged.counts(),
            "withheld": judged.withheld,
            "unscored": unscored(judged.pairs, judged.judgements),
        }
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.metadata.name}.judge.yaml"
        path.write_text(yaml.safe_dump(report, sort_keys=False, allow_unicode=True), encoding="utf-8")


def check_share(most_unscored: float) -> None:
    """Raise a ``ValueError`` unless it is a share, 0..1."""
    if not 0 <= most_unscored <= 1:
        raise ValueError(f"most_unscored must lie in 0..1, got {most_unscored!r}")


def judge_reason(task: JudgedTask, scores: Mapping[str, Any], record: Mapping[str, Any]) -> str | None:
    """Why a result's judge scores are not what the task would compute now; ``None`` if they are or none are wanted."""
    judge = task.active_judge()
    if judge is None:
        return None
    now, then = judge.record(), record.get(JUDGE_KEY)
    if then is None or task.judged_score not in scores:
        return "it has no judge's scores"
    if "version" in now and now["version"] is None:
        return "its judge is a function without an attribute `version`, so it may have changed"
    # The same model at another address gives the same numbers: its replies come from the store.
    differing = sorted(k for k in {*now, *then} - {"endpoint"} if now.get(k) != then.get(k))
    return f"its judge differs in {', '.join(differing)}" if differing else None
