"""docs/data.md says what is so: its commands run as printed, its tables are complete and right."""

import csv
import gzip
import json
import re
import shlex
from dataclasses import asdict
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.checkout import ROOT, commands, copy_checkout, run

from zhen.compose import compose
from zhen.config import build, check
from zhen.data.cleaning import rules
from zhen.data.corpus import Corpus

PAGE = "docs/data.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
GIVEN = ["data=files", "data.train=a.tsv", "data.val=b.tsv", "data.test=c.tsv"]


def pairs() -> list[tuple[str, str]]:
    """Pairs of the embedded corpus, one of them with all that formats must escape."""
    lines = (ROOT / "data/phrasebook/train.tsv").read_text(encoding="utf-8").splitlines()[:399]
    made = [(zh, en) for zh, en in (line.split("\t") for line in lines)]
    return [*made, ("他说：“茶，还是水？”", 'He said, "tea & water" or <b>.')]


def write_files(folder: Path) -> None:
    """The same pairs in every format that the page names."""
    mine = folder / "mine"
    mine.mkdir()
    made = pairs()
    lines = [f"{zh}\t{en}\n" for zh, en in made]
    units = "".join(
        f'<tu><tuv xml:lang="zh"><seg>{escape(zh)}</seg></tuv>'
        f'<tuv xml:lang="en"><seg>{escape(en)}</seg></tuv></tu>\n'
        for zh, en in made
    )
    texts = {
        "pairs.tsv": "".join(lines),
        "pairs.data": "".join(lines),
        "part-1.tsv": "".join(lines[:100]),
        "part-2.tsv": "".join(lines[100:]),
        "named.tsv": "english\tchinese\n" + "".join(f"{en}\t{zh}\n" for zh, en in made),
        "wide.tsv": "".join(f"{i}\t{en}\t{zh}\tCC0\n" for i, (zh, en) in enumerate(made)),
        "pairs.zh": "".join(f"{zh}\n" for zh, _ in made),
        "pairs.en": "".join(f"{en}\n" for _, en in made),
        "pairs.jsonl": "".join(json.dumps({"zh": zh, "en": en}) + "\n" for zh, en in made),
        "pairs.tmx": f'<tmx version="1.4"><header/><body>\n{units}</body></tmx>\n',
    }
    for name, text in texts.items():
        (mine / name).write_bytes(text.encode())
    (mine / "pairs.tsv.gz").write_bytes(gzip.compress(texts["pairs.tsv"].encode()))
    with (mine / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("zh", "en"), *made])
    with (mine / "bare.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(made)
    columns = dict(zip(("zh", "en"), map(list, zip(*made, strict=True)), strict=True))
    pq.write_table(pa.table(columns), mine / "pairs.parquet")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = copy_checkout(tmp_path_factory.mktemp("clone"))
    write_files(copy)
    return copy


def table(section: str) -> list[list[str]]:
    """The cells of the first table of a section, without its head."""
    text = TEXT.partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    head = next(i for i, line in enumerate(lines) if line.startswith("|---"))
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[head + 1 :]]


FILES = [(what, code.strip("`")) for what, code in table("Files")]


@pytest.mark.slow
def test_every_command_runs_as_printed(checkout: Path) -> None:
    for command in commands(PAGE):
        done = run(command, checkout)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr, command
    assert (checkout / "runs/data-check/report.html").is_file()
    (trained,) = (checkout / "runs/mine").iterdir()
    assert (trained / "results.json").is_file()


@pytest.fixture(scope="module")
def plain(checkout: Path) -> Corpus:
    return read("data.train=mine/pairs.tsv", checkout)


def read(overrides: str, folder: Path) -> Corpus:
    """The training pairs that a row of the table names, read in `folder`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        cfg = compose(
            "data_check", [*GIVEN, *shlex.split(overrides), f"paths.cache={folder}/cache"]
        )
        check(cfg)
        data = build(cfg.data, "data", tokenizer=build(cfg.tokenizer, "tokenizer"), seed=0)
        return data.read("train")


@pytest.mark.parametrize(("what", "code"), FILES, ids=[what for what, _ in FILES])
def test_files_of_every_form_give_the_same_pairs(
    checkout: Path, plain: Corpus, what: str, code: str
) -> None:
    found = read(code, checkout)
    assert list(zip(plain.sources, plain.targets, strict=True)) == pairs()
    if what == "several files":
        assert found.sources == plain.sources * 2 and found.targets == plain.targets * 2
    else:
        assert found.fingerprint == plain.fingerprint


def test_nested_columns_are_read_as_the_page_says(tmp_path: Path, plain: Corpus) -> None:
    records = [{"translation": {"zh": zh, "en": en}} for zh, en in pairs()]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "pairs.parquet")
    for name in ("pairs.jsonl", "pairs.parquet"):
        assert read(f"data.train={name}", tmp_path).fingerprint == plain.fingerprint


SETTINGS = sorted(
    code
    for code in set(re.findall(r"`([^`\n]*=[^`\n]*)`", TEXT))
    if re.match(r"'?(data|odd|tokenizer|vocabulary)\b[^ ]*=.*[^=]$", code)
    and not code.startswith("data=")
)


@pytest.mark.parametrize("code", SETTINGS)
def test_every_setting_is_one(code: str) -> None:
    check(compose("data_check", [*GIVEN, *shlex.split(code)]))


def test_settings_were_found() -> None:
    assert len(SETTINGS) >= 20


def test_every_kind_of_finding_is_explained() -> None:
    section = TEXT.split("\n## What data-check finds\n")[1].split("\n## ")[0]
    explained = set(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section, flags=re.MULTILINE))
    explained = {kind for kinds in explained for kind in re.findall(r"\w+", kinds)}
    source = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "src/zhen/data").rglob("*.py")
    )
    by_readers = set(re.findall(r'Fault\(\s*"(\w+)"', source))
    assert {"encoding", "columns", "lines", "bom", "crlf"} <= by_readers
    by_us = {"duplicates", "shared_pairs", "shared_sides", "writing"}
    assert by_us | by_readers | set(usual()) <= explained


def usual() -> dict[str, object]:
    """The options of data/clean=usual."""
    cfg = compose("data_check", [*GIVEN, "data/clean=usual"])
    options = build(cfg.data.clean, "data.clean")
    assert "max_ratio" in rules(options)
    return asdict(options)


def test_the_table_of_rules_is_complete_in_order_and_right() -> None:
    rows = {rule.strip("`"): value for rule, _, value in table("Cleaning")}
    written = {True: "true", None: "null"}
    assert list(rows.items()) == [
        (rule, written.get(value, f"{value:g}" if value is not None else ""))
        for rule, value in usual().items()
    ]
