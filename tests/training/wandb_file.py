"""What an offline run of Weights & Biases holds: what `wandb sync` would send."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import wandb


class Stored:
    """The records of one .wandb file."""

    def __init__(self, path: Path) -> None:
        found = list(records(path))
        kinds = [each.WhichOneof("record_type") for each in found]
        (start,) = (each.run for each in found if each.WhichOneof("record_type") == "run")
        self.run = start
        # Before anything is logged: an offline run keeps no later change.
        assert kinds.index("run") < [*kinds, "history"].index("history")
        self.config = {each.key: json.loads(each.value_json) for each in start.config.update}
        self.config.pop("_wandb")
        self.rows = [
            {".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in each}
            for each in (one.history.item for one in found if one.HasField("history"))
        ]
        exits = [each.exit.exit_code for each in found if each.HasField("exit")]
        self.status = exits[0] if exits else None  # None: it was killed

    def column(self, name: str) -> dict[int, Any]:
        """Values by step."""
        return {row["_step"]: row[name] for row in self.rows if name in row}


def parts(run_dir: Path) -> list[Stored]:
    """Of a run, in the order in which they were begun."""
    wandb.teardown()  # where its process served this one, it may yet write what `finish` left
    files = (run_dir / "wandb").glob("offline-run-*/run-*.wandb")
    return [Stored(path) for path in sorted(files, key=lambda path: path.stat().st_ctime_ns)]


def records(path: Path) -> Iterator[Any]:
    """Protobuf records in LevelDB's log format."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, whole = path.read_bytes(), 7, b""  # after the file's own header
    while at + 7 <= len(data):
        room = 32768 - at % 32768  # no chunk crosses a block
        if room < 7:
            at += room
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + 7])
        whole += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # a whole record, or the last chunk of one
            yield Record.FromString(whole)
            whole = b""
