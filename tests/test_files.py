"""A file appears complete or not at all, and an error names the key that chose the place."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from zhen.errors import UserError
from zhen.files import make_directory, remove_asides, second_name, write_atomic, write_json


def test_a_directory_where_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"paths\.cache: cannot make .*paths\.cache=DIR"):
        make_directory(tmp_path / "file" / "x", key="paths.cache")


@pytest.mark.parametrize("content", ["真\r\n文\n", b"\x00\xff\n"])
def test_a_whole_file_arrives_byte_for_byte(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "file"
    write_atomic(path, "before")
    write_atomic(path, content)
    expected = content.encode() if isinstance(content, str) else content
    assert path.read_bytes() == expected
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_can_be_read_by_whom_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "file", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomic(path, "before")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UserError, match=r"cannot write .*file: No space left on device"):
        write_atomic(path, "after")
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        write_atomic(tmp_path / "gone" / "file", "x")


def test_json_keeps_chinese(tmp_path: Path) -> None:
    write_json(tmp_path / "results.json", {"名": [1, None]})
    text = (tmp_path / "results.json").read_text(encoding="utf-8")
    assert "名" in text and text.endswith("}\n") and json.loads(text) == {"名": [1, None]}


@pytest.mark.parametrize("links", [True, False])
def test_a_second_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    last, best = tmp_path / "last", tmp_path / "best"
    if not links:

        def refuse(*_: Any) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
    for text in ("one", "two"):
        last.unlink(missing_ok=True)
        last.write_text(text)
        second_name(last, best, "x.y")
        second_name(last, best, "x.y")
        assert best.read_text() == text
    assert sorted(tmp_path.iterdir()) == [best, last]


def test_what_a_killed_process_leaves_is_removed(tmp_path: Path) -> None:
    path, other = tmp_path / "last.ckpt", tmp_path / ".best.ckpt.x1"
    for each in (path, other, tmp_path / ".last.ckpt.x1", tmp_path / ".last.ckpt.77"):
        each.touch()
    remove_asides(path)
    assert sorted(tmp_path.iterdir()) == [other, path]
