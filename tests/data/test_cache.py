"""The cache: what is kept, what is believed, and what remains after the worst moments."""

import json
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from zhen.data import cache
from zhen.data.cache import SEAL, entry, fault, key_of
from zhen.errors import UserError

CONTENT = b"0123456789" * 1000


class Maker:
    """Writes an entry of two files, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, folder: Path) -> None:
        self.times += 1
        (folder / "a").write_bytes(CONTENT)
        (folder / "b").write_bytes(b"")


def visible(kind: Path) -> list[str]:
    """What lies there, but for locks, which are empty and free."""
    found = [path for path in kind.iterdir() if path.suffix != ".lock"]
    return sorted(path.name for path in found)


@dataclass(frozen=True)
class Options:
    one: int = 1
    two: str = "x"


def test_an_entry_is_made_once(tmp_path: Path) -> None:
    make = Maker()
    kind = tmp_path / "deep" / "kind"
    for _ in range(2):
        path = entry(kind, "key", make, what="test")
        assert (path / "a").read_bytes() == CONTENT and path == kind / "key"
    assert make.times == 1 and visible(kind) == ["key"]
    entry(kind, "other", make, what="test")
    assert make.times == 2


def test_a_key_follows_from_every_part(tmp_path: Path) -> None:
    parts = [1, "ab", "c", None, [1, 2], {"a": 1}, Options(), 0.5]
    others = [2, "a", "bc", "None", [1, "2"], {"a": 2}, Options(two="y"), 1]
    keys = {key_of(*parts)}
    for i, other in enumerate(others):
        keys.add(key_of(*parts[:i], other, *parts[i + 1 :]))
    keys |= {key_of("ab", "c"), key_of("a", "bc"), key_of("abc"), key_of("abc", None), key_of()}
    assert len(keys) == len(others) + 6
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})


def test_a_key_is_the_same_in_every_process() -> None:
    # By its path: importing the whole package would take seconds.
    program = (
        "import runpy, sys; key_of = runpy.run_path(sys.argv[1])['key_of'];"
        "print(key_of('茶', {'b': 1, 'a': [2.5]}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program, cache.__file__],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True, capture_output=True, text=True,
        ).stdout.strip()
        for seed in (1, 2)
    }  # fmt: skip
    assert found == {key_of("茶", {"a": [2.5], "b": 1})}


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def swap(file: Path) -> None:
    """Another entry's file, of the same form and size."""
    file.write_bytes(bytes(reversed(file.read_bytes())))


DAMAGE: dict[str, Callable[[Path], None]] = {
    "cut": cut,
    "flipped": flip,
    "swapped": swap,
    "emptied": lambda file: file.write_bytes(b""),
    "deleted": lambda file: file.unlink(),
}


@pytest.mark.parametrize("name", ["a", SEAL])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_made_anew(
    tmp_path: Path, name: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    make = Maker()
    path = entry(tmp_path, "key", make, what="test")
    DAMAGE[damage](path / name)
    assert fault(path) is not None
    entry(tmp_path, "key", make, what="test")
    assert make.times == 2 and (path / "a").read_bytes() == CONTENT and fault(path) is None
    (message,) = caplog.messages
    assert message.startswith(f"{path} is damaged (") and message.endswith("): made anew")
    assert visible(tmp_path) == ["key"]


def test_the_message_says_what_is_wrong(tmp_path: Path) -> None:
    path = entry(tmp_path, "key", Maker(), what="test")
    flip(path / "a")
    assert fault(path) == "a has changed"
    cut(path / "a")
    assert fault(path) == "a has 9,999 bytes instead of 10,000"
    (path / SEAL).write_text("[]")
    assert fault(path) == "list indices must be integers or slices, not str"


@pytest.mark.parametrize("foreign", ["file", "empty folder", "folder of another key", "link"])
def test_what_is_no_entry_gives_way(tmp_path: Path, foreign: str) -> None:
    make, path = Maker(), tmp_path / "key"
    if foreign == "file":
        path.write_text("mine")
    elif foreign == "empty folder":
        path.mkdir()
    elif foreign == "link":
        path.symlink_to(tmp_path)
    else:
        entry(tmp_path, "other", make, what="test").rename(path)
    entry(tmp_path, "key", make, what="test")
    assert make.times == (2 if foreign == "folder of another key" else 1)
    assert fault(path) is None and not path.is_symlink() and tmp_path.is_dir()


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    def refuse(folder: Path) -> None:
        (folder / "a").write_bytes(CONTENT)
        raise UserError("no")

    def interrupt(folder: Path) -> None:
        (folder / "a").write_bytes(CONTENT)
        raise KeyboardInterrupt

    for make, error in ((refuse, UserError), (interrupt, KeyboardInterrupt)):
        with pytest.raises(error):
            entry(tmp_path, "key", make, what="test")
        assert visible(tmp_path) == []


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limit[1]))
    try:
        with pytest.raises(UserError) as refused:
            entry(tmp_path, "key", Maker(), what="test")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert str(refused.value) == (
        f"paths.cache: cannot write {tmp_path / 'key'}: File too large; make room, or choose"
        " another place with paths.cache=DIR"
    )
    assert visible(tmp_path) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"^paths.cache: cannot make .*; choose another place with"):
        entry(tmp_path / "file" / "kind", "key", Maker(), what="test")


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs Linux")
def test_a_folder_that_cannot_be_written() -> None:
    with pytest.raises(UserError) as refused:  # even root cannot
        entry(Path("/sys/kernel"), "key", Maker(), what="test")
    assert str(refused.value) == (
        "paths.cache: cannot write /sys/kernel/key: Permission denied; make room, or choose another"
        " place with paths.cache=DIR"
    )


def test_a_whole_entry_is_read_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = entry(tmp_path, "key", Maker(), what="test")
    monkeypatch.delattr("zhen.data.cache.FileLock")
    assert entry(tmp_path, "key", Maker(), what="test") == path


# --- several processes

FORK = multiprocessing.get_context("fork")  # spares the other processes the imports

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def work(kind: Path, key: str, log: Path, pace: float) -> None:
    """Wants an entry that takes 60 x `pace` seconds to make."""

    def make(folder: Path) -> None:
        with log.open("a") as file:
            file.write("made\n")
        for name in "abcdef":
            with (folder / name).open("wb") as file:
                for _ in range(10):
                    file.write(bytes(1000))
                    file.flush()
                    time.sleep(pace)

    path = entry(kind, key, make, what="test")
    assert all((path / name).stat().st_size == 10_000 for name in "abcdef")


def start(*arguments: Any) -> "multiprocessing.process.BaseProcess":
    process = FORK.Process(target=work, args=arguments)
    process.start()
    return process


def test_several_processes_at_once_do_the_work_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    processes = [start(tmp_path / "kind", "key", log, 0.01) for _ in range(3)]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert log.read_text() == "made\n"
    assert visible(tmp_path / "kind") == ["key"]


def test_a_process_killed_at_any_moment_leaves_nothing_that_is_believed(tmp_path: Path) -> None:
    kind, log = tmp_path / "kind", tmp_path / "log"
    moments, left, whole = random.Random(4), 0, 0
    while left < 5 or whole < 1:
        process = start(kind, "key", log, 0.001)
        time.sleep(moments.uniform(0, 0.12))
        process.kill()
        process.join(60)
        found = visible(kind) if kind.exists() else []
        left += any(name.startswith(".") for name in found)
        if "key" in found:  # whole, or not there
            whole += 1
            assert fault(kind / "key") is None
            shutil.rmtree(kind / "key")
    # The next one that is made, whichever it is, takes the rest away.
    entry(kind, "other", Maker(), what="test")
    assert visible(kind) == ["other"]


def test_what_a_living_process_writes_is_left_alone(tmp_path: Path) -> None:
    process = start(tmp_path, "slow", tmp_path / "log", 0.02)
    while not any(name.startswith(".slow.") for name in visible(tmp_path)):
        time.sleep(0.01)
    entry(tmp_path, "key", Maker(), what="test")
    assert any(name.startswith(".slow.") for name in visible(tmp_path))
    process.join(60)
    assert process.exitcode == 0 and visible(tmp_path) == ["key", "log", "slow"]


def test_the_seal_is_written_last(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        Maker()(folder)
        assert not (folder / SEAL).exists() and folder != tmp_path / "key"

    path = entry(tmp_path, "key", make, what="test")
    seal = json.loads((path / SEAL).read_text())
    assert seal["key"] == "key" and set(seal["files"]) == {"a", "b"}
    assert seal["files"]["a"][0] == len(CONTENT)
