"""The working directory of a dataset under construction: what is done, from what, and what must be done again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluators.files import write_text
from evaluators.judge import LanguageModel, Outcome, Reply, Request
from evaluators.judge.reply import UnreadableReplyError

Row = dict[str, Any]
_STATE = "state.json"


class Pause(Exception):
    """The pipeline cannot go on by itself; the text says what it waits for."""


@dataclass(frozen=True)
class Job:
    """A row to be made: what is known of it, and what a language model is to be asked for the rest, if anything."""

    row: Row
    request: Request | None = None

    @property
    def key(self) -> str:
        """Changes with anything that the row depends on."""
        return fingerprint([self.row, self.request.key if self.request else None])[:16]


@dataclass(frozen=True)
class Stage:
    """A step whose result is one file of rows.

    Attributes:
        name: the file's name without suffix.
        settings: what the user chose and the source gave; if it changes, the stage is made again only when told to.
        jobs: one for each row. A row is taken from the file if its job is still the same.
        read: completes a job's row with the reply to its request. The row's ``problem`` says why there is nothing to
            complete it with, and ``reply`` what was said.
    """

    name: str
    settings: Mapping[str, Any]
    jobs: Sequence[Job]
    read: Callable[[Row, Reply], None] = field(default=lambda row, reply: None)

    def completed(self, row: Row, outcome: Outcome) -> Row:
        """A copy of the row with what the outcome of its request gives."""
        row = dict(row)
        reply = outcome.reply
        if reply is None:
            return row | {"problem": f"the call failed: {outcome.failure}"}
        row["reply"] = reply.text
        try:
            self.read(row, reply)
        except UnreadableReplyError as error:
            row["problem"] = str(error)
        return row


class Workspace:
    """The folder ``work`` of a dataset directory.

    Args:
        directory: of the dataset; it must be new, empty or made by this pipeline.
        model: what to ask; ``None`` if no stage asks.
        redo: whether to make stages again whose settings changed.
        dry_run: whether to stop with a plan at the first stage that has to ask.
        ask_again: whether to ask once more where a reply could not be read.
        allow_failed: whether to go on where calls failed, without what they were for.
        tell: for what happens.

    Raises:
        ValueError: if the directory holds something else.
    """

    def __init__(
        self,
        directory: Path,
        model: LanguageModel | None,
        *,
        redo: bool = False,
        dry_run: bool = False,
        ask_again: bool = False,
        allow_failed: bool = False,
        tell: Callable[[str], None] = print,
    ) -> None:
        self.directory = directory
        self.work = directory / "work"
        self.model = model
        self.redo, self.dry_run, self.ask_again, self.allow_failed = redo, dry_run, ask_again, allow_failed
        self.tell = tell
        self._state: dict[str, Any] = {}
        path = self.work / _STATE
        if path.is_file():
            try:
                self._state = dict(json.loads(path.read_text(encoding="utf-8")))
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"{path} was damaged ({error}): choose a new --out; stored replies are not paid for again"
                ) from error
        elif directory.exists() and not self._is_new():
            raise ValueError(
                f"{directory} exists and was not made by this command (it has no work/{_STATE}); choose a new --out"
            )

    def _is_new(self) -> bool:
        """Whether the directory holds nothing, or what a run left that was killed while it wrote its first file."""
        unfinished = self.work / f"{_STATE}.part"
        held = list(self.directory.rglob("*")) if self.directory.is_dir() else [self.directory]
        return not held or (unfinished in held and set(held) <= {unfinished, self.work})

    def run(self, stage: Stage) -> list[Row]:
        """The stage's rows: from its file if that is still right, else made now.

        Raises:
            ValueError: if the file was made with other settings and nobody said to make it again.
            ConnectionError: if calls failed.
            Pause: in a dry run, if the model has to be asked.
        """
        path = self.work / f"{stage.name}.jsonl"
        done = self._state.get(stage.name)
        settings = json.loads(json.dumps(stage.settings))
        present = {row["key"]: row for row in read_rows(path)} if path.is_file() else {}
        keys = [job.key for job in stage.jobs]
        right = done is not None and list(present) == keys
        again = {k for k, row in present.items() if self.ask_again and row["problem"]}
        if right and not again:
            self.tell(f"{stage.name}: done already, {_told(list(present.values()))}")
            return list(present.values())
        if done is not None and not right:
            self._explain(stage.name, done, settings)
        todo = {k: job for k, job in zip(keys, stage.jobs, strict=True) if k not in present or k in again}
        asked = {k: job.request for k, job in todo.items() if job.request is not None}
        outcomes = self._ask(stage.name, list(asked.values()), frozenset(asked[k].key for k in again & set(asked)))
        made = {k: stage.completed(todo[k].row, outcomes[r.key]) for k, r in asked.items()}
        made = {k: {"key": k, **made.get(k, job.row)} for k, job in todo.items()}
        rows = [made.get(k) or present[k] for k in keys]
        self._keep(stage.name, rows, {"settings": settings})
        return rows

    def computed(
        self, name: str, settings: Mapping[str, Any], inputs: Any, make: Callable[[], Sequence[Row]]
    ) -> list[Row]:
        """The rows of a step that asks nobody: from its file if that is still right, else made now.

        Args:
            name: the file's name without suffix.
            settings: as a stage's.
            inputs: what earlier steps gave, as JSON values; if it changes, the step is made again without being told.
            make: makes the rows; it is called only if it has to.

        Raises:
            ValueError: if the file was made with other settings and nobody said to make it again.
        """
        path = self.work / f"{name}.jsonl"
        now = {"settings": json.loads(json.dumps(settings)), "inputs": fingerprint(inputs)}
        done = self._state.get(name)
        if done == now and path.is_file():
            rows = read_rows(path)
            self.tell(f"{name}: done already, {_told(rows)}")
            return rows
        if done is not None and done != now:
            self._explain(name, done, now["settings"])
        rows = list(make())
        self._keep(name, rows, now)
        return rows

    def _keep(self, name: str, rows: Sequence[Row], entry: Mapping[str, Any]) -> None:
        """Write a step's file and remember what it was made from."""
        path = self.work / f"{name}.jsonl"
        if not (self.work / _STATE).is_file():
            self._save()  # first of all, so that the directory is known as ours
        if path.is_file():
            self.set_aside(path)
        write_rows(path, rows)
        self.record(name, entry)
        self.tell(f"{name}: {_told(rows)}")

    def record(self, name: str, entry: Mapping[str, Any]) -> None:
        """Remember that something is done."""
        self._state[name] = dict(entry)
        self._save()

    def _save(self) -> None:
        write_text(self.work / _STATE, json.dumps(self._state, indent=1, sort_keys=True))

    def write_once(self, name: str, key: str, write: Callable[[], None], *, there: bool) -> bool:
        """Write something that an earlier run may have written, and remember that it is there.

        Whoever is interrupted in between leaves no record, so that the next run writes it again.

        Args:
            name: of the record.
            key: changes with anything that is written.
            write: writes it.
            there: whether the files of an earlier run are still where it left them.

        Returns:
            Whether it was written now.
        """
        if there and self.recorded_key(name) == key:
            return False
        self._state.pop(name, None)
        self._save()
        write()
        self.record(name, {"key": key})
        return True

    def recorded_key(self, name: str) -> str | None:
        """The key under which something was recorded as done."""
        entry = self._state.get(name)
        return None if entry is None else str(entry.get("key"))

    def set_aside(self, path: Path) -> None:
        """Keep a file that is about to be replaced, under a numbered name beside it."""
        number = 1
        while (kept := path.with_name(f"{path.stem}.old-{number}{path.suffix}")).exists():
            number += 1
        path.rename(kept)
        self.tell(f"{path.name}: the earlier file is kept as {kept.name}")

    def _explain(self, name: str, done: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Say why a stage is made again.

        Raises:
            ValueError: if settings changed without leave to make it again.
        """
        before = done["settings"]
        changed = [
            f"{k} (was {before.get(k)!r}, is {settings.get(k)!r})"
            for k in sorted({*before, *settings})
            if before.get(k) != settings.get(k)
        ]
        if changed and not self.redo:
            raise ValueError(
                f"{self.work / name}.jsonl was made with other settings: {'; '.join(changed)}. Undo the change, or "
                "pass --redo to make it again with all that follows from it (the earlier files are kept beside)"
            )
        self.tell(f"{name}: made again, since {', '.join(changed) or 'what it is built on'} changed")

    def _ask(self, name: str, requests: list[Request], again: frozenset[str]) -> dict[str, Outcome]:
        if not requests:
            return {}
        if self.model is None:
            raise ValueError(f"{name} asks a language model: name one with --llm")
        if self.dry_run:
            plan = self.model.plan(requests)
            extra = f"; {len(again)} replies that could not be read would be asked for again" if again else ""
            raise Pause(f"dry run, next: {name}: {plan.told(self.model.price)}{extra}")
        outcomes = self.model.ask(requests, label=name, again=again)
        failed = [o for o in outcomes if o.failure is not None]
        if failed and not self.allow_failed:
            raise ConnectionError(
                f"{name}: {len(failed)} of {len(requests)} calls failed, for instance: {failed[0].failure}. Run again "
                "to repeat these (the other replies are stored), or pass --allow-failed to go on without them"
            )
        return {outcome.request.key: outcome for outcome in outcomes}


def fingerprint(value: Any) -> str:
    """A SHA-256 over JSON values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def read_rows(path: Path) -> list[Row]:
    """The rows of a file of JSON lines.

    Raises:
        ValueError: if it is not one.
    """
    try:
        return [dict(json.loads(line)) for line in path.read_text(encoding="utf-8").split("\n") if line]
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path} was damaged ({error}); delete it, and it is made again from stored replies"
        ) from error


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write JSON lines; a reader sees the whole file or none."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _told(rows: Sequence[Row]) -> str:
    bad = sum(bool(row.get("problem")) for row in rows)
    why = "see `problem` in the file; --ask-again asks once more"
    return f"{len(rows)} rows" + (f", {bad} of them without result ({why})" if bad else "")
