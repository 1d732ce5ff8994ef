"""What docs/design.md says of the rooms holds of the imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "zhen"
# From the bottom up: a module may import its own room and the rooms before it.
ROOMS = (
    {"errors"},
    {"files"},
    {"model"},
    {"decoding"},
    {"data"},
    {"translator"},
    {"training", "viewer"},
    {"runs", "compose", "schema", "config"},  # these know each other
    {"train", "sweep", "submit", "evaluate", "translate", "attention", "data_check"},
)
LEVEL = {name: level for level, names in enumerate(ROOMS) for name in names}


def room(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    modules += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    return {module.split(".")[1] for module in modules if module.startswith("zhen.")}


@pytest.mark.parametrize(
    "path",
    sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem in LEVEL),
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_imports_run_one_way(path: Path) -> None:
    here = room(path)
    for other in imported_rooms(path):
        assert LEVEL[other] <= LEVEL[here], f"{path} imports zhen.{other}"
        assert other in ROOMS[-2] or other == here or LEVEL[other] < LEVEL[here]


def test_every_module_has_a_room() -> None:
    there = {room(path) for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert there == set(LEVEL)


def test_the_model_can_be_lifted_out(tmp_path: Path) -> None:
    copy = tmp_path / "their_project" / "transformer"
    copy.mkdir(parents=True)
    for file in (SOURCE / "model").glob("*.py"):
        (copy / file.name).write_bytes(file.read_bytes())
    program = (
        "import sys, torch; from their_project.transformer import Transformer;"
        "m = Transformer(vocab_size=9, d_model=8, num_heads=2, d_ff=8);"
        "assert m(torch.ones(1, 2).long(), torch.ones(1, 3).long()).shape == (1, 3, 9);"
        "assert 'zhen' not in sys.modules and 'lightning' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
