"""docs/attention.md tells the truth in both languages: examples, links, formulas and tables."""

import ast
import doctest
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import zhen.model

ROOT = Path(__file__).parents[1]
PAGES = ("docs/attention.md", "docs/attention.zh-CN.md")
BOTH = pytest.mark.parametrize("page", PAGES)
TEXT = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(r"^\$\$\n(.*?)^\$\$$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"\[`(\w+)`\]\(\.\./(src/zhen/model/\w+\.py)\)")


def prose(page: str) -> str:
    """The page without its code."""
    return re.sub(r"^```.*?^```$", "", TEXT[page], flags=re.DOTALL | re.MULTILINE)


def run_examples(page: str) -> dict[str, Any]:
    """Run the page from top to bottom, as a reader would type it; gives what it has defined."""
    names: dict[str, Any] = {}
    report: list[str] = []
    for block in CODE.finditer(TEXT[page]):
        code, line = block[1], TEXT[page].count("\n", 0, block.start(1))
        if ">>>" not in code:
            exec(compile(code, page, "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(code, {}, page, page, line)
        test.globs = names
        doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)
    return names


@pytest.fixture(scope="module")
def defined() -> dict[str, Any]:
    return run_examples(PAGES[0])


def test_every_example_gives_what_the_page_shows(defined: dict[str, Any]) -> None:
    assert {"SelfAttention", "written_into_ours"} <= defined.keys()


@given(
    sizes=st.tuples(*(st.integers(1, most) for most in (3, 6, 6, 4, 6))),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=40, deadline=None)
@torch.no_grad()
def test_our_layer_with_the_tutorial_s_weights_gives_its_outputs(
    defined: dict[str, Any], sizes: tuple[int, ...], seed: int
) -> None:
    batch, queries, length, heads, head_dim = sizes
    torch.manual_seed(seed)
    theirs = defined["SelfAttention"](heads * head_dim, heads).double()
    for parameter in theirs.parameters():
        parameter.add_(torch.randn_like(parameter))
    ours = defined["written_into_ours"](theirs)
    query, keys, values = (
        torch.randn(batch, n, heads * head_dim, dtype=torch.float64)
        for n in (queries, length, length)
    )
    close = {"rtol": 0, "atol": 1e-10}
    torch.testing.assert_close(ours(query, keys), theirs(keys, keys, query), **close)
    # Keys and values from different places.
    apart = ours.attend(query, ours.keys_values(keys)[0], ours.keys_values(values)[1])
    torch.testing.assert_close(apart, theirs(values, keys, query), **close)


def test_both_languages_show_the_same_code_formulas_and_tables() -> None:
    def shown(page: str) -> list[object]:
        text = TEXT[page]
        # The words of a table differ; its code, formulas and numbers do not.
        cells = [
            cell.strip() for row in re.findall(r"^\|(.+)\|$", text, re.M) for cell in row.split("|")
        ]
        return [
            re.findall(r"^```.*?^```$", text, flags=re.DOTALL | re.MULTILINE),
            FORMULA.findall(text),
            sorted(set(re.findall(r"(?<!\$)\$([^$\n]+)\$(?!\$)", text))),
            sorted(re.findall(r"\]\(([^)#]+)\)", text.split("\n## ", 1)[1])),
            [cell for cell in cells if re.search(r"\d", cell)],
            re.findall(r"^#+ (\d+)", text, flags=re.MULTILINE),
        ]

    assert shown(PAGES[0]) == shown(PAGES[1])


def test_both_languages_tell_the_same_numbers() -> None:
    def numbers(page: str) -> list[list[str]]:
        return [
            sorted(re.findall(r"\d[\d.,]*\d|\d", section)) for section in prose(page).split("\n## ")
        ]

    for one, other in zip(*map(numbers, PAGES), strict=True):
        assert one == other


@BOTH
def test_every_linked_name_exists_where_the_link_leads(page: str) -> None:
    links = NAME.findall(TEXT[page])
    for name, path in links:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        defined = [
            node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
        ]
        assert name in defined, f"{page}: {path} has no {name}"
    missing = set(zhen.model.__all__) - {name for name, _ in links}
    assert not missing, f"{page} never shows {missing}"
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT[page]):
        if "://" not in target:
            assert (ROOT / "docs" / target).exists(), f"{page}: {target} does not exist"


@BOTH
def test_each_formula_stands_beside_its_function_and_its_source(page: str) -> None:
    formulas = list(FORMULA.finditer(TEXT[page]))
    assert len(formulas) == 5
    for formula in formulas:
        beside = TEXT[page][formula.end() :].lstrip("\n").split("\n", 1)[0]
        assert NAME.search(beside), f"no function beside {formula[1]}"
        assert re.search(r"(section|第) ?\d\.\d", beside), f"no source beside {formula[1]}"


@BOTH
def test_formulas_stand_free_as_github_needs_it(page: str) -> None:
    """GitHub takes a dollar for mathematics only beside a space or ASCII punctuation, and Markdown
    takes the backslash away from before punctuation."""
    assert not re.search(r"\\[^a-zA-Z]", prose(page))
    for line in prose(page).splitlines():
        parts = line.split("$")
        assert len(parts) % 2 == 1, line
        for before, after in zip(parts[:-1:2], parts[2::2], strict=True):
            if line != "$$":
                assert re.search(r"(^|[ (])$", before), line
                assert re.search(r"^($|[ ).,:;])", after), line


@BOTH
def test_every_make_command_is_one_of_the_readme_whose_test_runs_it(page: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^make .*$", TEXT[page], flags=re.MULTILINE)
    assert found and all(f"\n{command}\n" in readme for command in found)


@pytest.mark.slow
def test_the_tables_are_what_the_script_prints() -> None:
    (command,) = re.findall(r"^```bash\npython (.*)\n```$", TEXT[PAGES[0]], flags=re.MULTILINE)
    done = subprocess.run(
        [sys.executable, *command.split()], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.strip().split("\n\n")
    shown = re.findall(r"(?:^\|.*\|\n)+", TEXT[PAGES[0]], flags=re.MULTILINE)
    assert len(printed) == len(shown) == 3
    assert shown[0].strip() == printed[0]
    assert shown[2].strip() == printed[2]
    for row, again in zip(shown[1].splitlines(), printed[1].splitlines(), strict=True):
        # Times differ from run to run and from machine to machine.
        assert re.sub(r"[\d.]+", "0", row) == re.sub(r"[\d.]+", "0", again)
        assert row.split("|")[1] == again.split("|")[1]
    for row in printed[0].splitlines()[2:]:
        by_formula, counted = row.split("|")[3:5]
        assert by_formula == counted
