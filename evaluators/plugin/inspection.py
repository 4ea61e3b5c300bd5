"""`mteb-beyond check` and `mteb-beyond show`: what is wrong with a dataset, and what a model really reads."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from evaluators.plugin.checks import DatasetError, column, retrieval_problems, shown
from evaluators.plugin.data import read_layout
from evaluators.plugin.dataset import TRAINING_LINES, fingerprint, is_dataset_directory
from evaluators.plugin.jsonl import read_json_lines
from evaluators.plugin.mteb_internals import document_texts, query_texts
from evaluators.plugin.registry import registered_tasks
from evaluators.plugin.task import BeyondTask


def tasks_for(target: str) -> list[BeyondTask]:
    """The task of that name, or the tasks whose data a directory holds.

    Raises:
        ValueError: if it is neither.
    """
    by_name = {cls.metadata.name: cls for cls in registered_tasks()}
    if target in by_name:
        return [by_name[target]()]
    path = Path(target).expanduser()
    if not path.is_dir():
        raise ValueError(f"{target!r} is neither a directory nor one of our tasks: {', '.join(sorted(by_name))}")
    found: list[BeyondTask] = []
    for cls in registered_tasks():
        # In the project's layout a directory is of a family, not of one published subset: the sample's class, which
        # expects no published sizes, reads it. The authors' layouts belong to their subsets.
        if (cls.embedded is not None) == is_dataset_directory(path) and cls.recognises(path.resolve()):
            task = cls()
            task.data_path = path
            found.append(task)
    if not found:
        if _is_unfinished(path):
            raise ValueError(f"{path} holds an unfinished build: run the command that builds it again, to its end")
        if _is_training_set(path):
            raise ValueError(
                f"{path} holds a training set, which no task scores; train with `mteb-beyond followir train`"
            )
        what = "a dataset of no known family" if is_dataset_directory(path) else "no dataset in a known layout"
        raise ValueError(
            f"{path} holds {what}: expected corpus, queries and qrels as parquet with what the family adds (groups, "
            "qrel_diff, levelled query ids), or the authors' files of IFIR, TCR-Bench or InstructIR"
        )
    return found


def _is_unfinished(directory: Path) -> bool:
    """Whether a builder began here and did not note that its dataset is written."""
    state = directory / "work" / "state.json"
    return state.is_file() and "export" not in json.loads(state.read_text(encoding="utf-8"))


def _is_training_set(directory: Path) -> bool:
    return is_dataset_directory(directory) and (directory / TRAINING_LINES).is_file()


def check(target: str) -> int:
    """Print everything that is wrong with a task's data or a directory. Returns 1 if anything is, else 0."""
    path = Path(target).expanduser()
    if path.is_dir() and _is_training_set(path) and not _is_unfinished(path):
        return _told(_training_faults(path))
    faults: list[str] = []
    for task in tasks_for(target):
        name = target if Path(target).is_dir() else task.metadata.name
        try:
            task.load_data()
        except DatasetError as error:
            faults += [f"{name}: {problem}" for problem in error.problems]
            continue
        except (ValueError, FileNotFoundError) as error:
            faults.append(f"{name}: {error}")
            continue
        assert task.data is not None
        data = task.data
        print(f"{name}: {len(data.queries)} queries, {len(data.corpus)} documents, revision {task.metadata.revision}")
        for note in data.notes:
            print(f"  note: {note}")
        task.unload_data()
    return _told(faults)


def _training_faults(directory: Path) -> list[str]:
    """What is wrong with a set that is made to train on, and that no task scores."""
    try:
        data = read_layout(directory)
        n_lines = sum(1 for _ in read_json_lines(directory / TRAINING_LINES))
    except DatasetError as error:
        return [f"{directory}: {problem}" for problem in error.problems]
    except ValueError as error:
        return [f"{directory}: {error}"]
    out = retrieval_problems(data.corpus, data.queries, data.relevant_docs, data.top_ranked)
    if unjudged := [q for q in column(data.queries, "id") if not data.relevant_docs.get(q)]:
        out.append(f"qrels: queries without any judgement: {shown(unjudged)}")
    n_judged = sum(map(len, data.relevant_docs.values()))
    if n_lines != n_judged:
        out.append(
            f"{TRAINING_LINES} has {n_lines} lines, but qrels has {n_judged} judgements: one of them is outdated"
        )
    told = f"{len(data.queries)} queries, {len(data.corpus)} documents, {n_judged} instances"
    print(f"{directory}: a training set, which no task scores: {told}, revision {fingerprint(directory)}")
    return [f"{directory}: {problem}" for problem in out]


def _told(faults: list[str]) -> int:
    for fault in dict.fromkeys(faults):
        print(fault)
    print(f"{len(dict.fromkeys(faults))} problem(s)" if faults else "no problem found")
    return 1 if faults else 0


def show(target: str, query: str | None, n_documents: int) -> int:
    """Print the exact text a model gets for a query, its relevant documents and what the family adds."""
    task = tasks_for(target)[0]
    task.load_data()
    assert task.data is not None
    data = task.data
    ids = list(data.queries["id"])
    wanted = query or ids[0]
    if wanted not in ids:
        raise ValueError(f"{target} has no query {wanted!r}; it has {len(ids)}, for instance {', '.join(ids[:5])}")
    text = query_texts(data.queries.select([ids.index(wanted)]))[0]
    print(f"query {wanted}\n{_framed(text)}")
    prompt = task.metadata.prompt
    if isinstance(prompt, dict) and prompt.get("query"):
        print(f"task prompt, for models that use one\n{_framed(str(prompt['query']))}")
    for key, value in task.describe_query(wanted, data).items():
        print(f"{key}: {value}")
    relevant = [d for d, grade in data.relevant_docs.get(wanted, {}).items() if grade > 0]
    print(f"relevant documents: {len(relevant)} {relevant}")
    places = {d: i for i, d in enumerate(data.corpus["id"])}
    for document in relevant[:n_documents]:
        print(f"document {document}\n{_framed(document_texts(data.corpus.select([places[document]]))[0])}")
    sys.stdout.flush()
    return 0


def _framed(text: str) -> str:
    """The text between lines that show where it begins and ends, blanks at its ends included."""
    return f"----8<----\n{text}\n---->8----"
