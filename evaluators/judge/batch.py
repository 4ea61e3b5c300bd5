"""OpenAI's Batch API as another way to the store: a file of requests out, a file of replies in."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from evaluators.judge.reply import MalformedReplyError, read_reply
from evaluators.judge.request import Request
from evaluators.judge.store import Store
from evaluators.whole import read_json

# Limits of the service for one file: 50,000 requests, 200 MB.
MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
_URL = "/v1/chat/completions"


@dataclass
class BatchReport:
    """What was read from a batch's result files.

    Attributes:
        stored: replies that went into the store.
        failed: what came back without a usable reply, as (custom id, reason); these can be asked again.
        unknown: ids that this store never wrote to a request file.
    """

    stored: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def write_batch(requests: Iterable[Request], store: Store, path: Path) -> list[Path]:
    """Write the requests that have no stored reply as request files of the Batch API.

    What one file may not hold goes into further ones, ``name-2.jsonl`` and so on. The store remembers the requests, so
    that their results can be read into it, and no other.

    Returns:
        The files written; empty if every request has a reply.

    Raises:
        FileExistsError: if a file of that name is there.
    """
    there = [f for f in (path, *sorted(path.parent.glob(f"{path.stem}-*{path.suffix}"))) if f.exists()]
    if there:
        raise FileExistsError(f"{there[0]} is there already; results of an earlier batch may be outstanding")
    unique = {r.key: r for r in requests}
    stored = store.endpoints(unique)
    missing = [r for key, r in unique.items() if key not in stored]
    files = [path.with_name(f"{path.stem}-{n}{path.suffix}") if n > 1 else path for n in range(1, len(missing) + 1)]
    written: list[Path] = []
    lines: list[bytes] = []
    size = 0

    def flush() -> None:
        target = files[len(written)]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"".join(lines))
        written.append(target)

    # Before any file is there to be sent: the results of one that the store does not know could not be read.
    store.put_pending(missing)
    for request in missing:
        entry = {"custom_id": request.key, "method": "POST", "url": _URL, "body": request.body()}
        line = json.dumps(entry).encode() + b"\n"
        if lines and (len(lines) == MOST_REQUESTS or size + len(line) > MOST_BYTES):
            flush()
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        flush()
    return written


def read_batch(path: Path, store: Store, endpoint: str) -> BatchReport:
    """Read a result or error file of the Batch API into the store; reading it twice changes nothing.

    Raises:
        ValueError: naming file and line, if a line is not of the service's form.
    """
    report = BatchReport()
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = read_json(line)
                key, response, error = str(entry["custom_id"]), entry.get("response"), entry.get("error")
                if "response" not in entry and "body" in entry:
                    raise ValueError("it is a line of a request file")
            except (ValueError, TypeError, KeyError, AttributeError) as fault:
                raise ValueError(f"{path}, line {number}: not a line of a batch result file ({fault})") from fault
            _take(key, response, error, store, endpoint, report)
    return report


def _take(key: str, response: object, error: object, store: Store, endpoint: str, report: BatchReport) -> None:
    told = response if isinstance(response, dict) else {}
    body = told.get("body")
    if error or told.get("status_code") != 200 or not isinstance(body, dict):
        report.failed.append((key, f"status {told.get('status_code')}, {error or body}"[:300]))
        return
    try:
        read_reply(body)
    except MalformedReplyError as fault:
        report.failed.append((key, str(fault)))
        return
    taken = store.take_pending(key, json.dumps(body), endpoint)
    if taken is None:
        report.unknown.append(key)
    else:
        report.stored += taken
