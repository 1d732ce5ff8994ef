"""From files to encoded pairs: interrupted, on a full disk, twice at once, and its memory."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import Maker

from zhen.data import TranslationData
from zhen.data import cache as cache_module
from zhen.data.cache import fault
from zhen.errors import UserError

KINDS = {"corpora", "cleaned", "tokenizers", "pairs"}


@pytest.fixture
def prepare(make_data: Maker, tsv: dict[str, Path], tmp_path: Path) -> Callable[[Path], None]:
    """Prepares every split in a cache."""
    many = tmp_path / "many.tsv"
    lines = tsv["train"].read_text(encoding="utf-8").splitlines()
    numbered = (
        f"{i}{source}\t{target} {i}\n"
        for i in range(100)
        for source, target in (line.split("\t") for line in lines)
    )
    many.write_text("".join(numbered), encoding="utf-8")

    def run(cache: Path) -> None:
        data: TranslationData = make_data(
            train=str(many), val=None, val_size=0.1, cache_dir=str(cache)
        )
        for name in ("train", "val", "test"):
            data.split(name)

    return run


def content(cache: Path) -> dict[str, bytes]:
    """Every file of the cache but locks, by its path."""
    files = (path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(cache)): path.read_bytes() for path in files}


def entries(cache: Path) -> Iterator[Path]:
    return (path for path in cache.glob("*/*") if not path.name.startswith("."))


def forked(work: Callable[[], None]) -> int:
    """Starts another process, which spares it the imports."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return pid


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_killed_at_any_moment(prepare: Callable[[Path], None], tmp_path: Path) -> None:
    wanted, cache = tmp_path / "wanted", tmp_path / "cache"
    prepare(tmp_path / "warm")  # imports
    started = time.monotonic()
    prepare(wanted)
    whole = time.monotonic() - started
    assert {path.parent.name for path in entries(wanted)} == KINDS
    moments, killed, aside = random.Random(0), 0, 0
    while killed < 10 or aside < 1:
        pid = forked(lambda: prepare(cache))
        time.sleep(moments.uniform(0, whole))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        killed += os.WIFSIGNALED(status)
        aside += any(not path.is_file() for path in cache.glob("*/.*"))
        for path in entries(cache):
            assert fault(path) is None
            assert content(path) == content(wanted / path.relative_to(cache))
        if content(cache).keys() >= content(wanted).keys():  # all is there: begin again
            for path in sorted(cache.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
    prepare(cache)
    assert content(cache) == content(wanted)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_twice_at_once(
    prepare: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, cache, made = tmp_path / "wanted", tmp_path / "cache", tmp_path / "made.txt"
    prepare(wanted)
    seal = cache_module._seal

    def noted(folder: Path, key: str) -> None:
        with made.open("a") as file:
            print(key, file=file)
        seal(folder, key)

    monkeypatch.setattr(cache_module, "_seal", noted)
    for pid in [forked(lambda: prepare(cache)) for _ in range(3)]:
        assert os.waitpid(pid, 0)[1] == 0
    assert content(cache) == content(wanted)
    keys = made.read_text().split()
    assert len(keys) == len(set(keys)) >= len(KINDS)  # each by one process


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_on_a_full_disk(prepare: Callable[[Path], None], tmp_path: Path, share: float) -> None:
    wanted, cache = tmp_path / "wanted", tmp_path / "cache"
    prepare(wanted)
    largest = max(len(each) for each in content(wanted).values())
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(share * largest), limit[1]))
    try:
        with pytest.raises(UserError) as refused:
            prepare(cache)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert str(refused.value).startswith(f"paths.cache: cannot write {cache}/")
    assert str(refused.value).endswith("make room, or choose another place with paths.cache=DIR")
    whole = content(wanted)
    assert all(whole[name] == each for name, each in content(cache).items())
    assert not [path for path in cache.glob("*/.*") if path.suffix != ".lock"]
    prepare(cache)
    assert content(cache) == whole


MEMORY = """
import resource, sys
from pathlib import Path
from zhen.data import BatchOptions, Tokenizer, TranslationData

path, cache, tokenizer = sys.argv[1:]
data = TranslationData(
    train=path, val=path, test=path, languages=["zh", "en"], source_lang="zh",
    batch=BatchOptions(), cache_dir=cache, tokenizer=Tokenizer.load(Path(tokenizer)),
)
data.split("train")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
def test_memory_grows_by_a_few_bytes_a_pair(make_data: Maker, tmp_path: Path) -> None:
    """The whole of a pair, its text and its pieces, would be some 400 bytes."""
    tokenizer, peaks, counts = tmp_path / "tokenizer.json", [], (40_000, 200_000)
    tokenizer.write_text(make_data().tokenizer.to_json(), encoding="utf-8")
    for count in counts:
        path = tmp_path / f"{count}.tsv"
        with path.open("w", encoding="utf-8") as file:
            for i in range(count):
                file.write(
                    f"我喜欢黑猫，他看见花。第{i}本书！\tI like black cats, he sees {i} flowers.\n"
                )
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, str(path), str(tmp_path / str(count)), str(tokenizer)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks.append(int(done.stdout))
    assert peaks[1] - peaks[0] < 60 * (counts[1] - counts[0])
