"""A stand-in for the Hugging Face hub: as much of its interface as loading a data set needs."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


@contextmanager
def serve(name: str, commits: Mapping[str, Path], refs: Mapping[str, str]) -> Iterator[str]:
    """Serve one data set while the context lasts; yields the address of the hub.

    Args:
        name: OWNER/NAME.
        commits: the files of each commit, by its hash.
        refs: the commit of each branch and tag.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            kind, _, rest = urlsplit(self.path).path.partition(f"datasets/{name}/")
            what, revision, *path = [*map(unquote, rest.split("/")), ""]
            commit = refs.get(revision, revision)
            place = commits.get(commit, Path()).joinpath(*path)
            if not rest:
                self.answer(404, error="RepoNotFound")
            elif commit not in commits:
                self.answer(404, error="RevisionNotFound")
            elif kind == "/api/" and what == "revision":
                about = {"id": name, "sha": commit, "siblings": [], "tags": [], "private": False}
                self.answer(200, json.dumps(about).encode())
            elif kind == "/api/" and what == "tree" and place.is_dir():
                self.answer(
                    200, json.dumps([self.entry(each) for each in place.iterdir()]).encode()
                )
            elif what == "resolve" and place.is_file():
                self.answer(200, place.read_bytes(), commit)
            else:
                self.answer(404, error="EntryNotFound")

        do_HEAD = do_GET

        def entry(self, place: Path) -> dict[str, object]:
            path = place.relative_to(next(p for p in commits.values() if p in place.parents))
            if place.is_dir():
                return {"type": "directory", "path": str(path), "oid": "0" * 40}
            size, oid = place.stat().st_size, hashlib.sha1(place.read_bytes()).hexdigest()
            return {"type": "file", "path": str(path), "oid": oid, "size": size}

        def answer(self, status: int, body: bytes = b"", commit: str = "", error: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Repo-Commit", commit)
            self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
            if error:
                self.send_header("X-Error-Code", error)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
