"""`mteb-beyond check` and `mteb-beyond show`: what is wrong with a dataset, and what a model really reads."""

from __future__ import annotations

import sys
from pathlib import Path

from evaluators.plugin.checks import DatasetError
from evaluators.plugin.dataset import is_dataset_directory
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
        if (path / "work" / "state.json").is_file():
            raise ValueError(f"{path} holds an unfinished build: run the command that builds it again, to its end")
        what = "a dataset of no known family" if is_dataset_directory(path) else "no dataset in a known layout"
        raise ValueError(
            f"{path} holds {what}: expected corpus, queries and qrels as parquet with what the family adds (groups, "
            "qrel_diff, levelled query ids), or the authors' files of IFIR, TCR-Bench or InstructIR"
        )
    return found


def check(target: str) -> int:
    """Print everything that is wrong with a task's data or a directory. Returns 1 if anything is, else 0."""
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
    for fault in dict.fromkeys(faults):
        print(fault)
    print(f"{len(dict.fromkeys(faults))} problem(s)" if faults else "no problem found")
    return 1 if faults else 0


def show(task_name: str, query: str | None, n_documents: int) -> int:
    """Print the exact text a model gets for a query, its relevant documents and what the family adds."""
    task = tasks_for(task_name)[0]
    task.load_data()
    assert task.data is not None
    data = task.data
    ids = list(data.queries["id"])
    wanted = query or ids[0]
    if wanted not in ids:
        raise ValueError(f"{task_name} has no query {wanted!r}; it has {len(ids)}, for instance {', '.join(ids[:5])}")
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
