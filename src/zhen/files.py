"""Files that appear complete or not at all, and errors that say which key named them."""

import contextlib
import csv
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal

from zhen.errors import UserError

# A name that may become a file or a directory anywhere.
SAFE_NAME = re.compile(r"\w[\w.-]*")


def make_directory(path: str | Path, key: str) -> Path:
    """Make a directory and those above it, where they are missing.

    Args:
        key: the configuration key that chose the place, for the message.

    Raises:
        UserError: it cannot be made.
    """
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{key}: cannot make {path}: {error.strerror}; choose another place with {key}=DIR"
        ) from error
    return path


def check_writable(path: str | Path, key: str) -> None:
    """Find out before the work, not after it, whether a file can be written at `path`.

    Raises:
        UserError: it is a directory, or none can be made there.
    """
    path = Path(path)
    if path.is_dir():
        raise UserError(f"{key}: {path} is a directory; give a file")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise UserError(f"{key}: cannot write {path}: {error.strerror}") from error


@contextlib.contextmanager
def whole_file(path: str | Path, key: str, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """A file to write to, aside; at the end of the block it goes to disk and gets its name.

    Args:
        path: its name; what was there before stays until then, and for good if the block fails.
        key: the configuration key that chose the place, for the message.
        mode: "w" for text, in UTF-8 with `\\n`, or "wb".

    Raises:
        UserError: the file cannot be written.
    """
    path = Path(path)
    aside = None
    try:
        descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        encoding, newline = ("utf-8", "\n") if mode == "w" else (None, None)
        with open(descriptor, mode, encoding=encoding, newline=newline) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(aside, 0o666 & ~_umask())  # mkstemp's own mode hides the file from colleagues
        os.replace(aside, path)
    except BaseException as error:
        if aside is not None:
            with contextlib.suppress(OSError):
                os.unlink(aside)
        if isinstance(error, OSError):
            raise UserError(f"{key}: cannot write {path}: {error.strerror}") from error
        raise


def second_name(file: Path, name: Path, key: str) -> None:
    """Let `name` be the same file, whole at any moment; that costs neither time nor space.

    Args:
        key: the configuration key that chose the place, for the message.

    Raises:
        UserError: the file system has no such links, and a copy cannot be written.
    """
    if name.exists() and name.samefile(file):
        return
    aside = name.with_name(f".{name.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    try:
        os.link(file, aside)
        os.replace(aside, name)
    except OSError:  # a file system without such links
        with file.open("rb") as source, whole_file(name, key, "wb") as target:
            shutil.copyfileobj(source, target)


def remove_asides(path: Path) -> None:
    """Remove what a process that was killed while it wrote `path` has left beside it."""
    for aside in path.parent.glob(f".{path.name}.*"):
        aside.unlink(missing_ok=True)


def write_atomic(path: str | Path, content: str | bytes, key: str = "paths.runs") -> None:
    """Writes a whole file: aside, to disk, then renamed; text in UTF-8 with `\\n`.

    Raises:
        UserError: the file cannot be written; what was there before is untouched.
    """
    with whole_file(path, key, "wb") as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """`write_atomic` of JSON, indented, Chinese as it is."""
    write_atomic(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def read_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """The columns and the rows of a CSV of numbers, without one that is still being written.

    Raises:
        OSError: it cannot be read.
    """
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]  # a killed process may have left half a row
    columns, *rows = [*csv.reader(whole.splitlines())] or [[]]
    return columns, [row for row in rows if len(row) == len(columns)]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
