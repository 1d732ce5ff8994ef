"""What is prepared once and kept: whole, checked, and made by one process at a time.

An entry is a folder `cache_dir/KIND/KEY`, whose key is a hash of all that decides what is in it. It
is written aside, as `.KEY.` and a random ending, and sealed: `entry.json`, written last, has the
size and the xxh3 checksum of each file. Then it is renamed. Whatever does not fit its seal is made
again, and what killed processes left aside is never read and goes with the next entry that is made.
"""

import contextlib
import json
import logging
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import xxhash
from filelock import FileLock, Timeout

from zhen.data.progress import counted
from zhen.errors import UserError, one_line
from zhen.files import make_directory

log = logging.getLogger(__name__)

SEAL = "entry.json"
_BLOCK = 1 << 20  # bytes


def key_of(*parts: Any) -> str:
    """A name for what follows from `parts`: plain values and dataclasses of such.

    The same in every process and on every machine; `("ab", "c")` and `("a", "bc")` differ.
    """
    text = json.dumps([_plain(part) for part in parts], sort_keys=True, ensure_ascii=True)
    return sha256(text.encode()).hexdigest()[:32]


def entry(kind: Path, key: str, make: Callable[[Path], None], *, what: str) -> Path:
    """The folder `kind/key`, made if it is not there or damaged.

    Args:
        kind: the folder of all entries of this kind.
        key: from `key_of`.
        make: writes the files of the entry into the folder that it is given.
        what: the step, for messages; several processes may get here at once, and one does it.

    Raises:
        UserError: the disk is full, or the folder cannot be written to; nothing is left behind.
    """
    path = kind / key
    if path.exists() and fault(path) is None:  # needs no lock, so the cache may be read-only
        return path
    make_directory(kind, key="paths.cache")
    try:
        with _lock(kind, key, what):
            if path.exists():
                why = fault(path)
                if why is None:  # made by another process, while this one waited
                    return path
                log.warning("%s is damaged (%s): made anew", path, why)
            _sweep(kind, key)
            aside = kind / f".{key}.{uuid.uuid4().hex[:8]}"
            try:
                aside.mkdir()
                make(aside)
                _seal(aside, key)
                remove(path)
                aside.rename(path)
            finally:
                remove(aside)
    except OSError as error:
        reason = error.strerror or one_line(error)
        raise UserError(
            f"paths.cache: cannot write {path}: {reason}; make room, or choose another place with"
            " paths.cache=DIR"
        ) from error
    return path


def fault(path: Path) -> str | None:
    """Why the entry at `path` cannot be believed; None where it can."""
    try:
        seal = json.loads((path / SEAL).read_text(encoding="utf-8"))
        if seal["key"] != path.name:
            return "it belongs to another entry"
        for name, (size, checksum) in seal["files"].items():
            found = (path / name).stat().st_size
            if found != size:
                return f"{name} has {found:,} bytes instead of {size:,}"
            if _checksum(path / name) != checksum:
                return f"{name} has changed"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return one_line(error)
    return None


def remove(path: Path) -> None:
    """Take away a file, or a folder with all that is in it; not there is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _seal(folder: Path, key: str) -> None:
    files = {file.name: (file.stat().st_size, _checksum(file)) for file in sorted(folder.iterdir())}
    # No fsync: what a power cut swallows does not fit its checksum.
    (folder / SEAL).write_text(json.dumps({"key": key, "files": files}), encoding="utf-8")


def _checksum(file: Path) -> str:
    checksum, block = xxhash.xxh3_128(), bytearray(_BLOCK)
    with file.open("rb", buffering=0) as stream:
        sizes = iter(lambda: stream.readinto(block), 0)
        total = file.stat().st_size
        for size in counted(sizes, f"checking {file}: bytes", total, size=int):
            checksum.update(memoryview(block)[:size])
    return checksum.hexdigest()


@contextlib.contextmanager
def _lock(kind: Path, key: str, what: str) -> Iterator[None]:
    """Inside, no other process makes this entry; the lock of a process that dies is free again."""
    lock = FileLock(_lock_file(kind, key))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        log.info("%s: another process is at it; waiting", what)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _lock_file(kind: Path, key: str) -> Path:
    return kind / f".{key}.lock"


def _sweep(kind: Path, key: str) -> None:
    """Remove what killed processes left aside; `key` is locked by this one."""
    for aside in kind.glob(".*.*"):
        owner = aside.name.split(".")[1]
        if aside == _lock_file(kind, owner):
            continue
        if owner == key:
            remove(aside)
        else:
            lock = FileLock(_lock_file(kind, owner))
            with contextlib.suppress(Timeout), lock.acquire(blocking=False):
                remove(aside)


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
