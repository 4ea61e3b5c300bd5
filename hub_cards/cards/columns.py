"""What the columns of each config hold, for cards."""

from __future__ import annotations

from collections.abc import Iterable

_HEADER = "| config | column | content |\n|---|---|---|"

# The configs of the project's layout. A config of a folder has the folder's name and a hyphen before it.
_CONTENT: dict[str, tuple[tuple[str, str], ...]] = {
    "corpus": (("`_id`, `title`, `text`", "the documents; a model reads title and text"),),
    "queries": (("`_id`, `text`", "the queries"),),
    "qrels": (("`query-id`, `corpus-id`, `score`", "judgements: relevant if the score is above 0"),),
    "instruction": (("`query-id`, `instruction`", "what the query asks for beyond its text"),),
    "instruction_forms": (
        ("`query-id`, `keywords`, `short`", "the instruction's keywords and a short form of it, for ablations"),
    ),
    "top_ranked": (("`query-id`, `corpus-ids`", "the candidates to rank"),),
    "qrel_diff": (("`query-id`, `corpus-ids`", "documents that the changed instruction excludes, by topic"),),
    "facets": (("`query-id`, `corpus-id`, `score`", "how many nested levels of the base query the document meets"),),
    "base_queries": (("`query-id`, `domain`, `facets`", "what each base query asks for, as JSON"),),
    "topics": (
        ("`query-id`, `title`, `description`", "the topic"),
        ("`narrative`, `changed_narrative`, `constraint`", "both instructions, and the kind of what was added"),
    ),
    "groups": (
        ("`query-id`, `target`, `corpus-ids`", "the one table that answers, and its group"),
        ("`question_type`", "EM, SF or SA"),
        ("`answer`", "JSON list of the answer's values"),
        ("`record`", "JSON: the question as its authors publish it"),
    ),
    "tables": (
        ("`db_id`, `table_path`", "where the table lies; its key is `db_id::table_path`"),
        ("`table_name`, `table_format`", "the name printed before it; its format in the Mixed setting"),
        ("`csv`", "the table itself, as CSV"),
    ),
}
INSTRUCTIR = f"""{_HEADER}
| `corpus` | `_id`, `title`, `text` | the passages |
| `queries` | `_id`, `text`, `instruction` | ids are `<base query>_<n>`; a model reads both texts, in that order |
| `qrels` | `query-id`, `corpus-id`, `score` | judgements: relevant if the score is above 0 |"""


def table(files: Iterable[str]) -> str:
    """A Markdown table of configs and their columns; configs of several folders that are alike share a line."""
    names = list(files)
    kinds = {name: name.rsplit("-", 1)[-1] for name in names}
    lines = [_HEADER]
    for kind in dict.fromkeys(kinds.values()):
        of_kind = [name for name in names if kinds[name] == kind]
        label = ", ".join(f"`{name}`" for name in of_kind)
        for number, (columns, text) in enumerate(_CONTENT[kind]):
            lines.append(f"| {'' if number else label} | {columns} | {text} |")
    return "\n".join(lines)
