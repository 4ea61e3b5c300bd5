"""A stand-in for the hub on this machine: dataset repositories with branches, LFS uploads and commits.

It answers what huggingface_hub 2.4 asks when a dataset is published and read, and misbehaves on demand. Xet, the hub's
other way of uploading, is not spoken: clients must have it switched off.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

TOKEN = "hf_standInForATokenThatNobodyMaySee"
USER = "me"

Answer = tuple[int, Any, dict[str, str]]


@dataclass(frozen=True)
class File:
    """A file of a commit; ``oid`` is the SHA-256 of an LFS file, the git hash of another one."""

    content: bytes
    oid: str
    lfs: bool


@dataclass(frozen=True)
class Commit:
    """A commit of a branch."""

    oid: str
    title: str
    files: dict[str, File]


@dataclass
class Repository:
    """A dataset repository: the commits of each branch, oldest first."""

    private: bool
    branches: dict[str, list[Commit]] = field(default_factory=dict)

    def commit(self, revision: str) -> Commit | None:
        """The last commit of a branch, or the one of that hash."""
        if revision in self.branches:
            return self.branches[revision][-1]
        return next((c for commits in self.branches.values() for c in commits if c.oid == revision), None)


@dataclass
class Fault:
    """What goes wrong: requests whose ``METHOD path`` matches are answered with ``status``.

    Status 0: the connection is closed before all of the request was read. Status -1: the request is carried out, and
    the connection is closed instead of an answer.
    """

    pattern: str
    status: int
    times: int
    headers: dict[str, str]


@dataclass
class Hub:
    """What the server holds and was asked."""

    url: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    # Called with the number of stored blobs after each upload.
    uploaded: Callable[[int], None] = lambda n: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fail(self, pattern: str, status: int, times: int = 1, **headers: str) -> None:
        """Let the next requests that match go wrong."""
        self.faults.append(Fault(pattern, status, times, headers))

    def count(self, pattern: str) -> int:
        """How many requests matched."""
        return sum(bool(re.search(pattern, request)) for request in self.requests)

    def files(self, repository: str, branch: str = "main") -> dict[str, bytes]:
        """The files of the last commit of a branch, without the hub's own."""
        head = self.repositories[repository].branches[branch][-1]
        return {path: file.content for path, file in head.files.items() if path != ".gitattributes"}

    def commits(self, repository: str, branch: str = "main") -> list[str]:
        """The titles of a branch's commits."""
        return [commit.title for commit in self.repositories[repository].branches[branch]]

    def fault_for(self, request: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and re.search(fault.pattern, request):
                    fault.times -= 1
                    return fault
        return None


@contextmanager
def hub_server() -> Iterator[Hub]:
    """Serve on a free port of this machine."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def git_hash(content: bytes) -> str:
    """git's hash of a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"
    # An answer's head and body leave in two writes, between which the client would wait for 40 ms.
    disable_nagle_algorithm = True

    def log_message(self, *args: Any) -> None:
        pass

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        request = f"{self.command} {path}"
        self.hub.requests.append(request)
        fault = self.hub.fault_for(request)
        length = int(self.headers.get("Content-Length", 0))
        if fault is not None and fault.status == 0:
            self.rfile.read(length // 2)
            self._hang_up()
            return
        body = self.rfile.read(length)
        if fault is not None and fault.status > 0:
            self._send((fault.status, {"error": "as the test asked"}, fault.headers))
            return
        with self.hub.lock:
            answer = self._handle(path, body)
        if fault is not None:
            self._hang_up()
            return
        self._send(answer)

    do_GET = do_POST = do_PUT = do_HEAD = _answer

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(2)

    def _send(self, answer: Answer) -> None:
        status, content, headers = answer
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _handle(self, path: str, body: bytes) -> Answer:
        authorised = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if path.startswith("/lfs/"):
            return self._store(path.removeprefix("/lfs/"), body)
        if not authorised and self.command != "HEAD" and "/resolve/" not in path:
            return 401, {"error": "Invalid username or password."}, {}
        for pattern, method in _ROUTES:
            found = re.fullmatch(pattern, f"{self.command} {path}")
            if found:
                payload = body if body.startswith(b'{"key"') else json.loads(body or b"null")
                return method(self, *found.groups(), payload) if body else method(self, *found.groups())
        return 404, {"error": f"the stand-in knows no {self.command} {path}"}, {}

    # ---- account and repositories ----------------------------------------------------------------------------

    def _whoami(self) -> Answer:
        return 200, {"type": "user", "name": USER, "orgs": [], "auth": {}}, {}

    def _create(self, asked: dict[str, Any]) -> Answer:
        assert asked["type"] == "dataset"
        name = f"{asked['organization'] or USER}/{asked['name']}"
        if not name.startswith(f"{USER}/"):
            return 403, {"error": "You don't have the rights to create a dataset under this namespace"}, {}
        if name in self.hub.repositories:
            return 409, {"error": "You already created this dataset repo"}, {}
        attributes = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"
        first = {".gitattributes": File(attributes, git_hash(attributes), False)}
        repository = Repository(asked.get("visibility") == "private")
        repository.branches["main"] = [Commit(hashlib.sha1(name.encode()).hexdigest(), "initial commit", first)]
        self.hub.repositories[name] = repository
        return 200, {"url": f"{self.hub.url}/datasets/{name}", "name": name}, {}

    def _found(self, name: str, revision: str) -> tuple[Repository, Commit] | Answer:
        repository = self.hub.repositories.get(name)
        if repository is None:
            return 404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"}
        commit = repository.commit(revision)
        if commit is None:
            return 404, {"error": "Invalid rev id"}, {"X-Error-Code": "RevisionNotFound"}
        return repository, commit

    def _info(self, name: str, revision: str | None) -> Answer:
        found = self._found(name, revision or "main")
        if len(found) == 3:
            return found
        repository, commit = found
        siblings = [{"rfilename": path} for path in commit.files]
        told = {"id": name, "sha": commit.oid, "private": repository.private, "siblings": siblings, "tags": []}
        return 200, told, {}

    def _refs(self, name: str) -> Answer:
        heads = [
            {"name": branch, "ref": f"refs/heads/{branch}", "targetCommit": commits[-1].oid}
            for branch, commits in self.hub.repositories[name].branches.items()
        ]
        return 200, {"branches": heads, "converts": [], "tags": []}, {}

    def _branch(self, name: str, branch: str, asked: dict[str, Any] | None = None) -> Answer:
        repository = self.hub.repositories[name]
        if branch in repository.branches:
            return 409, {"error": "Reference already exists"}, {}
        repository.branches[branch] = [repository.branches["main"][-1]]
        return 200, {}, {}

    def _validate(self, asked: dict[str, Any]) -> Answer:
        header = asked["content"].split("---\n")[1]
        data = yaml.safe_load(header)
        if not isinstance(data.get("license"), str):
            return 400, {"errors": [{"message": '"license" must be a string'}]}, {}
        return 200, {"errors": [], "warnings": []}, {}

    # ---- uploads ---------------------------------------------------------------------------------------------

    def _preupload(self, name: str, branch: str, asked: dict[str, Any]) -> Answer:
        found = self._found(name, branch)
        if len(found) == 3:
            return found
        there = found[1].files
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(".parquet") else "regular",
                "shouldIgnore": False,
                **({"oid": there[file["path"]].oid} if file["path"] in there else {}),
            }
            for file in asked["files"]
        ]
        return 200, {"files": files}, {}

    def _batch(self, name: str, asked: dict[str, Any]) -> Answer:
        objects = []
        for wanted in asked["objects"]:
            upload = {"upload": {"href": f"{self.hub.url}/lfs/{wanted['oid']}"}}
            missing = wanted["oid"] not in self.hub.blobs
            objects.append({**wanted, **({"actions": upload} if missing else {})})
        return 200, {"transfer": "basic", "objects": objects}, {}

    def _store(self, oid: str, body: bytes) -> Answer:
        if hashlib.sha256(body).hexdigest() != oid:
            return 400, {"error": "the content has another hash"}, {}
        self.hub.blobs[oid] = body
        self.hub.uploaded(len(self.hub.blobs))
        return 200, {}, {}

    def _commit(self, name: str, branch: str, body: bytes) -> Answer:
        found = self._found(name, branch)
        if len(found) == 3:
            return found
        repository, head = found
        header, *operations = [json.loads(line) for line in body.splitlines()]
        if header["value"].get("parentCommit") not in (None, head.oid):
            return 412, {"error": "The branch has moved"}, {}
        files = dict(head.files)
        for operation in operations:
            value = operation["value"]
            if operation["key"] == "lfsFile":
                if value["oid"] not in self.hub.blobs:
                    return 400, {"error": f"{value['path']} was not uploaded"}, {}
                files[value["path"]] = File(self.hub.blobs[value["oid"]], value["oid"], True)
            else:
                assert operation["key"] == "file", operation
                content = base64.b64decode(value["content"])
                files[value["path"]] = File(content, git_hash(content), False)
        oid = hashlib.sha1(head.oid.encode() + body).hexdigest()
        repository.branches[branch].append(Commit(oid, header["value"]["summary"], files))
        return 200, {"commitUrl": f"{self.hub.url}/datasets/{name}/commit/{oid}", "commitOid": oid}, {}

    # ---- downloads -------------------------------------------------------------------------------------------

    def _tree(self, name: str, revision: str) -> Answer:
        found = self._found(name, revision)
        if len(found) == 3:
            return found
        entries = [
            {
                "type": "file",
                "path": path,
                "size": len(file.content),
                "oid": file.oid,
                **({"lfs": {"oid": file.oid, "size": len(file.content), "pointerSize": 130}} if file.lfs else {}),
            }
            for path, file in found[1].files.items()
        ]
        return 200, entries, {}

    def _resolve(self, name: str, revision: str, path: str) -> Answer:
        found = self._found(name, revision)
        if len(found) == 3:
            return found
        file = found[1].files[path]
        return 200, file.content, {"X-Repo-Commit": found[1].oid, "ETag": f'"{file.oid}"'}


_NAME = "([^/]+/[^/]+)"
_ROUTES: tuple[tuple[str, Callable[..., Answer]], ...] = (
    ("GET /api/whoami-v2", _Handler._whoami),
    ("POST /api/repos/create", _Handler._create),
    ("POST /api/validate-yaml", _Handler._validate),
    (f"GET /api/datasets/{_NAME}(?:/revision/(.+))?", _Handler._info),
    (f"GET /api/datasets/{_NAME}/refs", _Handler._refs),
    (f"POST /api/datasets/{_NAME}/branch/(.+)", _Handler._branch),
    (f"POST /api/datasets/{_NAME}/preupload/(.+)", _Handler._preupload),
    (f"POST /datasets/{_NAME}.git/info/lfs/objects/batch", _Handler._batch),
    (f"POST /api/datasets/{_NAME}/commit/(.+)", _Handler._commit),
    (f"GET /api/datasets/{_NAME}/tree/([^/]+)", _Handler._tree),
    (f"(?:GET|HEAD) /datasets/{_NAME}/resolve/([^/]+)/(.+)", _Handler._resolve),
)
