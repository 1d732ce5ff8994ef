"""pyproject.toml, requirements.lock and environment.yml describe one and the same environment."""

import re
import stat
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DIRECT = [
    Requirement(line)
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
]
LOCK = [
    Requirement(line)
    for line in (ROOT / "requirements.lock").read_text().splitlines()
    if not line.startswith("#")
]
CONDA: dict[str, Any] = yaml.safe_load((ROOT / "environment.yml").read_text())
PYTHONS = ["3.10.13", "3.11.7", "3.12.1", "3.13.0"]
MACHINES = [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")]
ONLY_WITH_CUDA = re.compile(r"nvidia-|cuda-|triton$")


def locked(python: str, platform: str = "linux", machine: str = "x86_64") -> dict[str, Version]:
    """What the lock installs there; a package that it names twice there is an error."""
    found: dict[str, Version] = {}
    short = python.rpartition(".")[0]
    environment = {"python_version": short, "python_full_version": python}
    environment |= {"sys_platform": platform, "platform_machine": machine}
    for requirement in LOCK:
        if requirement.marker is None or requirement.marker.evaluate(environment):
            name = canonicalize_name(requirement.name)
            assert name not in found, name
            found[name] = exact_version(requirement)
    return found


def exact_version(requirement: Requirement) -> Version:
    (specifier,) = requirement.specifier
    assert specifier.operator == "==" and "*" not in specifier.version, requirement
    return Version(specifier.version)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(("platform", "machine"), MACHINES)
def test_the_lock_has_every_direct_dependency_within_its_range(
    python: str, platform: str, machine: str
) -> None:
    found = locked(python, platform, machine)
    for requirement in DIRECT:
        version = found[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, f"{requirement} is locked at {version}"


@pytest.mark.parametrize("python", PYTHONS)
def test_the_versions_that_were_asked_for(python: str) -> None:
    found = {name: str(version) for name, version in locked(python).items()}
    asked = {"torch": "2.13.0", "hydra-core": "1.3.8", "torchmetrics": "1.9.0"}
    asked |= {"datasets": "5.2.0", "wandb": "0.31.0"}
    assert {name: found[name] for name in asked} == asked
    assert Version(found["lightning"]) >= Version("2.6.6")
    assert found["lightning"] == found["pytorch-lightning"]


@pytest.mark.parametrize("withdrawn", ["2.6.2", "2.6.3"])
def test_the_withdrawn_releases_of_lightning_are_out_of_reach(withdrawn: str) -> None:
    for requirement in [*DIRECT, *LOCK]:
        if canonicalize_name(requirement.name) in ("lightning", "pytorch-lightning"):
            assert withdrawn not in requirement.specifier


def test_the_lock_is_closed() -> None:
    """What a locked package needs is locked too, in a version that will do."""
    found = locked(sys.version.split()[0], sys.platform)
    for name in found:
        for line in metadata.requires(name) or []:
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                needed = canonicalize_name(need.name)
                if not ONLY_WITH_CUDA.match(needed):
                    assert needed in found, f"{name} needs {line}"
                    assert need.specifier.contains(found[needed], prereleases=True), (name, line)


def test_this_environment_is_the_lock() -> None:
    for name, version in locked(sys.version.split()[0], sys.platform).items():
        # The CPU build of torch calls itself 2.13.0+cpu.
        assert Version(metadata.version(name)).public == version.public, name


def test_the_package_is_installed_from_this_checkout() -> None:
    assert metadata.version("zhen") == PROJECT["version"]


def test_the_package_data_is_all_that_is_no_code() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = {
        f"src/{package.replace('.', '/')}/{name}"
        for package, names in project["tool"]["setuptools"]["package-data"].items()
        for name in names
    }
    files = (path for path in (ROOT / "src" / "zhen").rglob("*.*") if path.is_file())
    there = {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}
    assert listed == {name for name in there if not name.endswith(".py")}


def test_conda_takes_the_same_python_and_the_same_lock() -> None:
    *plain, pip = CONDA["dependencies"]
    (python,) = [entry for entry in plain if entry.startswith("python")]
    assert SpecifierSet(python.removeprefix("python")) == SpecifierSet(PROJECT["requires-python"])
    assert {"make", "pip"} <= set(plain) and CONDA["name"] == PROJECT["name"]
    assert pip == {"pip": ["-r requirements.lock", "-e ."]}
    assert all(version in SpecifierSet(PROJECT["requires-python"]) for version in PYTHONS)


@pytest.mark.slow
def test_the_pip_part_of_the_conda_environment_installs() -> None:
    """Without the index: all that it asks for is here already."""
    lines = CONDA["dependencies"][-1]["pip"]
    words = [word for line in lines for word in line.split()]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--quiet"]
    done = subprocess.run(
        [*command, "--no-build-isolation", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_no_file_names_a_package_index() -> None:
    for name in ["requirements.lock", "environment.yml", "pyproject.toml", "Makefile", ".ci/run"]:
        assert "://" not in (ROOT / name).read_text(), name
    assert "index" not in (ROOT / "scripts/setup.sh").read_text()


def test_the_hooks_run_the_tools_of_the_lock() -> None:
    """So they work without a network, and agree with `make lint`."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    names = {canonicalize_name(requirement.name) for requirement in DIRECT}
    for hook in config["repos"][0]["hooks"]:
        python, option, module = hook["entry"].split()[:3]
        assert (python, option) == (".venv/bin/python", "-m") and hook["language"] == "system"
        assert canonicalize_name(module.partition(".")[0]) in names


def test_ci_runs_lint_and_tests() -> None:
    script = ROOT / ".ci/run"
    assert script.stat().st_mode & stat.S_IXUSR
    lines = script.read_text().splitlines()
    assert "set -euo pipefail" in lines and {"make lint", "make test"} <= set(lines)
