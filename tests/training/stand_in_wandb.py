"""A server that takes what wandb sends, on this machine, and keeps it as the real one does.

It knows the few requests that a run makes; see wandb's `core/api/graphql/`.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Run:
    """What the server knows of one run."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}  # as last asked for: config, tags, notes and so on
        self.history: dict[int, dict[str, Any]] = {}  # rows by their place in the file
        self.status: int | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [self.history[line] for line in sorted(self.history)]

    @property
    def config(self) -> dict[str, Any]:
        found = json.loads(self.about["config"])
        return {name: item["value"] for name, item in found.items() if name != "_wandb"}

    def bucket(self, name: str) -> dict[str, Any]:
        """Its description, in the words of GraphQL."""
        rows = self.rows
        return {
            "id": name,
            "name": name,
            "displayName": self.about.get("displayName"),
            "description": None,
            "config": self.about.get("config", "{}"),
            "summaryMetrics": "{}",
            "sweepName": None,
            "tags": self.about.get("tags") or [],
            "wandbConfig": '{"t": 1}' if rows else None,
            "historyLineCount": len(rows),
            "eventsLineCount": 0,
            "logLineCount": 0,
            "historyTail": json.dumps([json.dumps(row) for row in rows[-1:]]),
            "eventsTail": "[]",
            "project": {
                "id": "p",
                "name": "zhen",
                "entity": {"id": "e", "name": "somebody"},
            },
        }


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.runs: dict[str, Run] = {}
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/graphql"):
            return self._answer({"data": self._graphql(body["query"], body.get("variables") or {})})
        name = self.path.split("/")[-2]
        run = self.server.runs.setdefault(name, Run())
        part = body.get("files", {}).get("wandb-history.jsonl", {"offset": 0, "content": []})
        for line, row in enumerate(part["content"], start=part["offset"]):
            run.history[line] = json.loads(row)
        if body.get("complete"):
            run.status = body.get("exitcode")
        self._answer({})

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer({})

    def _graphql(self, query: str, given: dict[str, Any]) -> dict[str, Any]:
        found = re.search(r"(?:query|mutation)\s+(\w+)", query)
        name = found[1] if found else ""
        self.server.asked.append(name)
        if name == "UpsertBucket":
            run = self.server.runs.get(given["name"])
            if run is None or run.status is not None:  # one that has ended is written over
                run = self.server.runs[given["name"]] = Run()
            run.about |= {key: value for key, value in given.items() if value is not None}
            return {"upsertBucket": {"bucket": run.bucket(given["name"]), "inserted": True}}
        if name == "RunResumeStatus":
            known = self.server.runs.get(given["name"])
            if known:  # it is to go on, and is not written over
                known.status = None
            bucket = known.bucket(given["name"]) if known else None
            entity = {"id": "e", "name": "somebody"}
            return {"model": {"id": "p", "name": "zhen", "entity": entity, "bucket": bucket}}
        if name == "CreateRunFiles":
            files = [
                {"name": each, "uploadUrl": f"{self.server.url}/{each}"} for each in given["files"]
            ]
            return {"createRunFiles": {"runID": "r", "uploadHeaders": [], "files": files}}
        return {}

    def _answer(self, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments: Any) -> None:
        pass


@contextmanager
def wandb_server() -> Iterator[Server]:
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
