"""What TensorBoard reads of a run."""

import struct
from pathlib import Path
from typing import Any


def events(run_dir: Path) -> list[Any]:
    """File by file: records with their length and two checksums."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in sorted((run_dir / "tensorboard").iterdir()):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack("<Q", data[at : at + 8])
            found.append(Event.FromString(data[at + 12 : at + 12 + size]))
            at += 16 + size
    return found
