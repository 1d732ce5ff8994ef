"""What follows a make target reaches the command exactly, or is refused before any work.

Each test runs the real make, Makefile, forward.py and setup.sh, in a checkout whose path has spaces
and whose `.venv/bin/python` records what it is given instead of training.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from scripts.forward import refuse_inexact

ROOT = Path(__file__).parents[1]
FILES = [
    "Makefile",
    "requirements.lock",
    "pyproject.toml",
    "scripts/forward.py",
    "scripts/setup.sh",
]
TARGETS = (
    "help setup data-check train sweep submit evaluate translate attention compare reproduce corpus"
    " bench test test-fast soak lint format clean"
).split()
PARALLEL = (
    "--numprocesses=logical --maxprocesses=4 --dist=loadfile --no-loadscope-reorder"
).split()

RECORDER = """
import json, os, sys
with open("calls.jsonl", "a") as calls:
    data = os.fsdecode(sys.stdin.buffer.read())
    state = [name for name in os.environ if name.startswith(("MAKE", "ZHEN_MAKE"))]
    print(json.dumps({"argv": sys.argv[1:], "stdin": data, "make_state": state}), file=calls)
sys.exit(int(os.environ.get("RECORDER_STATUS", "0")))
"""


@dataclass
class Call:
    """One start of the recording interpreter."""

    argv: list[str]
    stdin: str
    make_state: list[str]


@dataclass
class Result:
    status: int
    stdout: str
    stderr: str
    calls: list[Call]


class Checkout:
    def __init__(self, folder: Path, make: str = "make") -> None:
        self.folder, self.program = folder, make
        for name in FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)

    def add_recording_venv(self) -> None:
        venv = self.folder / ".venv"
        (venv / "bin").mkdir(parents=True)
        (venv / "record.py").write_text(RECORDER)
        real, record = shlex.quote(sys.executable), shlex.quote(str(venv / "record.py"))
        python = venv / "bin/python"
        python.write_text(
            "#!/bin/sh\n"
            f'[ "$1" = scripts/forward.py ] && exec {real} "$@"\n'
            f'exec {real} {record} "$@"\n'
        )
        python.chmod(0o755)
        self.stamp.write_text(f"{self.folder.resolve()}\n")

    @property
    def stamp(self) -> Path:
        return self.folder / ".venv/.zhen-installed"

    def make(self, *words: str, stdin: str = "", env: dict[str, str] | None = None) -> Result:
        clean = {k: v for k, v in os.environ.items() if not re.match("MAKE|MFLAGS|PYTHON", k)}
        log = self.folder / "calls.jsonl"
        log.unlink(missing_ok=True)
        done = subprocess.run(
            [self.program, *words],
            cwd=self.folder,
            env=clean | (env or {}),
            input=os.fsencode(stdin),
            capture_output=True,
            timeout=120,
        )
        lines = log.read_text().splitlines() if log.exists() else []
        out, err = os.fsdecode(done.stdout), os.fsdecode(done.stderr)
        return Result(done.returncode, out, err, [Call(**json.loads(line)) for line in lines])

    def call(self, *words: str, stdin: str = "", env: dict[str, str] | None = None) -> Call:
        result = self.make(*words, stdin=stdin, env=env)
        assert result.status == 0, result.stderr
        assert len(result.calls) == 1
        return result.calls[0]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    made = Checkout(tmp_path_factory.mktemp("a check out"))
    made.add_recording_venv()
    return made


# --- overrides


VALUES = [
    "3",
    "",
    "a b  c",
    "tail ",
    " lead",
    "[1,2,3]",
    "{a: 1, b: [x, y]}",
    "it's",
    'say "hi"',
    "'both \" kinds'",
    "${model.d_model}",
    "${now:%Y-%m-%d}",
    "$x $$y $(shell touch stolen) ${error boom} $(unclosed ${unclosed",
    "`touch stolen`; touch stolen && false | cat > stolen",
    "# not a comment \\# nor this",
    "你很漂亮。",
    "a=b==c",
    "x+=1 y:=2",
    "back\\slash \\ \\\\ end\\",
    "two\nlines\n",
    "tab\there",
    "%d %",
    "*",
    "~",
    "-n",
]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_arrives_as_typed(checkout: Checkout, value: str) -> None:
    # The first key is a name that the environment could hold, the second is not.
    call = checkout.call("train", f"name={value}", f"model.norm={value}")
    assert call.argv == ["-m", "zhen.train", f"name={value}", f"model.norm={value}"]
    assert not (checkout.folder / "stolen").exists()


# Each example starts make and three interpreters.
few = settings(max_examples=40, deadline=None)
anything = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
awkward = st.text("$(){}'\"\\#=:+ \t\n,%~;|&<>*?!`@-你a1", max_size=12)


@pytest.mark.slow
@few
@given(st.lists(awkward | anything, min_size=1, max_size=12))
def test_any_values_arrive_as_typed_and_in_order(checkout: Checkout, values: list[str]) -> None:
    overrides = [f"key{i}={value}" for i, value in enumerate(values)]
    assert checkout.call("train", *overrides).argv == ["-m", "zhen.train", *overrides]


@pytest.mark.parametrize(
    "name",
    ["+new", "++new.key", "~gone", "~a.b", "group/part", "group@at", "list[0]", "中文", "-x"],
)
def test_any_key_that_make_keeps_whole_arrives(checkout: Checkout, name: str) -> None:
    assert checkout.call("train", "--", f"{name}=1").argv[2:] == [f"{name}=1"]


def test_a_key_given_twice_has_its_last_value(checkout: Checkout) -> None:
    assert checkout.call("train", "a=1", "b=2", "a=3").argv[2:] == ["a=3", "b=2"]


def test_args_follow_the_overrides_split_as_a_shell_would_but_never_expanded(
    checkout: Checkout,
) -> None:
    args = """+x=1 ~gone a.b=${c} 'p=two words' "q=it's" r=\\$HOME s=$(date) *"""
    call = checkout.call("train", f"ARGS={args}", "z=1")
    expected = ["z=1", "+x=1", "~gone", "a.b=${c}", "p=two words", "q=it's", "r=$HOME", "s=$(date)"]
    assert call.argv[2:] == [*expected, "*"]


@pytest.mark.slow
@few
@given(st.lists(awkward | anything, max_size=8))
def test_any_quoted_args_arrive_as_typed(checkout: Checkout, words: list[str]) -> None:
    assert checkout.call("train", f"ARGS={shlex.join(words)}").argv[2:] == words


@pytest.mark.parametrize("word", ["x+=1", "x?=1", "x!=echo 1", "x:=1", "x::=1", "+x+=1", "a.b :=1"])
def test_an_operator_that_make_drops_is_refused(checkout: Checkout, word: str) -> None:
    result = checkout.make("train", "model=small", word)
    assert result.status != 0 and result.calls == []
    assert f"ARGS={shlex.quote(word)}" in result.stderr


def test_where_words_are_not_exact_only_keys_that_make_has_are_suspect() -> None:
    """macOS: ps shows the command line without its quoting."""
    words = "make translate TEXT=if x+=1 then $y=2".split()
    refuse_inexact(words, exact=False, variables={"TEXT": "if x+=1 then $y=2"})
    with pytest.raises(SystemExit, match=r"`x\+=`"):
        refuse_inexact([*words, "x+=1"], exact=False, variables={"TEXT": "...", "x": "1"})


def test_an_operator_is_refused_though_the_environment_has_the_variable(checkout: Checkout) -> None:
    for word in ["seed?=1", "seed+=1"]:
        result = checkout.make("train", word, env={"seed": "7"})
        assert result.status != 0 and result.calls == []


@pytest.mark.parametrize(
    "words",
    [["foo"], ["~gone"], ["trainer.max_epochs", "5"], ["a:b=3"], ["a b=3"], ["a#b=1"], ["50%"]],
)
def test_a_word_that_is_no_override_is_refused_by_name(
    checkout: Checkout, words: list[str]
) -> None:
    result = checkout.make("train", *words)
    assert result.status != 0 and result.calls == []
    assert " ".join(words) in result.stderr and "ARGS='" in result.stderr


@pytest.mark.parametrize(
    "word", ["=3", "+=1", "$x=3", "a$x=1", "$(shell echo n)=1", "-m", "--multirun"]
)
def test_other_words_that_make_would_misread_end_in_an_error(checkout: Checkout, word: str) -> None:
    result = checkout.make("train", word)
    assert result.status != 0 and result.calls == []


def test_the_environment_is_no_command_line(checkout: Checkout) -> None:
    ours = {"ARGS": "+x=1", "TEXT": "你好", "FILE": "f", "CKPT": "c", "model": "small", "A.B": "1"}
    call = checkout.call("translate", stdin="来自管道", env=ours)
    assert call.argv == ["-m", "zhen.translate"] and call.stdin == "来自管道"


def test_a_make_above_hands_its_variables_down(checkout: Checkout) -> None:
    (checkout.folder / "Outer.mk").write_text("all:\n\t@$(MAKE) train b=2\n")
    assert sorted(checkout.call("-f", "Outer.mk", "all", "a=1 '$$x").argv[2:]) == [
        "a=1 '$$x",
        "b=2",
    ]


def test_the_command_does_not_see_makes_own_state(checkout: Checkout) -> None:
    assert checkout.call("test", "ARGS=-k 'a or b'").make_state == []


def test_the_status_of_the_command_counts(checkout: Checkout) -> None:
    assert checkout.make("train", env={"RECORDER_STATUS": "3"}).status != 0


# --- make's own settings


@pytest.mark.parametrize("text", [value for value in VALUES if not value.endswith("\n")])
def test_text_is_standard_input(checkout: Checkout, text: str) -> None:
    call = checkout.call("translate", f"TEXT={text}", stdin="not this")
    assert call.argv == ["-m", "zhen.translate"] and call.stdin == f"{text}\n"


@pytest.mark.slow
@few
@given(awkward | anything)
@example("\n先空一行")
def test_any_text_is_standard_input(checkout: Checkout, text: str) -> None:
    expected = text if text.endswith("\n") else f"{text}\n"
    assert checkout.call("translate", f"TEXT={text}").stdin == expected


@pytest.mark.parametrize("text", VALUES)
def test_attention_takes_its_sentences_as_hydra_strings(checkout: Checkout, text: str) -> None:
    call = checkout.call(
        "attention", f"TARGET={text}", f"TEXT={text}", "OUT=a b", stdin="from a pipe"
    )
    assert call.argv[:2] == ["-m", "zhen.attention"] and call.stdin == "from a pipe"
    expected = [("output", "a b"), ("text", text), ("target", text)]
    assert [hydra_value(override) for override in call.argv[2:]] == expected


paths = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=15) | st.text(
    "\\'\"${}=,:[]() #~.a/", min_size=1, max_size=10
)


def hydra_value(override: str) -> tuple[str, str]:
    """What a command would find in its configuration after this override."""
    parsed = OverridesParser.create().parse_override(override)
    return parsed.key_or_group, OmegaConf.create({"value": parsed.value()})["value"]


@pytest.mark.slow
@few
@given(ckpt=paths, file=paths, out=paths)
def test_paths_are_hydra_strings(checkout: Checkout, ckpt: str, file: str, out: str) -> None:
    given_ = [f"CKPT={ckpt}", f"FILE={file}", f"OUT={out}"]
    call = checkout.call("translate", *given_)
    expected = [("ckpt", ckpt), ("input", file), ("output", out)]
    assert [hydra_value(override) for override in call.argv[2:]] == expected


@pytest.mark.parametrize("path", ["runs/a b/best.ckpt", "null", "123", "a=b,c.ckpt", "it's.ckpt"])
def test_evaluate_takes_a_checkpoint(checkout: Checkout, path: str) -> None:
    assert hydra_value(checkout.call("evaluate", f"CKPT={path}").argv[2]) == ("ckpt", path)


def test_data_check_takes_overrides_and_a_folder(checkout: Checkout) -> None:
    call = checkout.call("data-check", "data=files", "data.train=a b.tsv", "OUT=a folder")
    assert call.argv[:2] == ["-m", "zhen.data_check"]
    assert dict(map(hydra_value, call.argv[2:])) == {
        "data": "files",
        "data.train": "a b.tsv",
        "output": "a folder",
    }


def test_compare_takes_its_settings_whatever_they_look_like(checkout: Checkout) -> None:
    given = {
        "RUNS": "phrasebook/* 'two words'/x",
        "WHERE": "model=tiny,small optimizer.lr=1e-3 seed!=0",
        "SORT": "-val/bleu",
        "BASE": "tiny/20261130-151234",
        "OUT": "a folder/compare.html",
    }
    call = checkout.call("compare", *(f"{name}={value}" for name, value in given.items()))
    assert call.argv[:2] == ["-m", "zhen.compare"]
    keys = {"RUNS": "runs", "WHERE": "where", "SORT": "sort", "BASE": "base", "OUT": "output"}
    assert dict(map(hydra_value, call.argv[2:])) == {
        keys[name]: value for name, value in given.items()
    }


def test_submit_takes_overrides_and_may_run_dry(checkout: Checkout) -> None:
    call = checkout.call("submit", "model=tiny,small", "cluster.time=1:00:00", "DRY=1")
    words = ["model=tiny,small", "cluster.time=1:00:00", "dry=true"]
    assert call.argv == ["-m", "zhen.submit", *words]


def test_sweep_takes_words_with_several_values(checkout: Checkout) -> None:
    words = ["model=tiny,small", "optimizer.lr=tag(log,interval(1e-4,1e-2))", "seed=range(0,3)"]
    call = checkout.call("sweep", *words, "ARGS=~callbacks.samples")
    assert call.argv == ["-m", "zhen.sweep", *words, "~callbacks.samples"]


def test_reproduce_takes_a_run(checkout: Checkout) -> None:
    call = checkout.call("reproduce", "RUN=runs/a b/1", "force=true")
    assert call.argv[:3] == ["-m", "zhen.reproduce", "force=true"]
    assert hydra_value(call.argv[3]) == ("run", "runs/a b/1")
    # What a user may set must not be what a recipe starts.
    assert "$(RUN)" not in (ROOT / "Makefile").read_text()


def test_bench_takes_arguments_of_its_own(checkout: Checkout) -> None:
    call = checkout.call("bench", "ARGS=decode 'runs/a b/best.ckpt' --rounds 5")
    assert call.argv == ["scripts/bench.py", "decode", "runs/a b/best.ckpt", "--rounds", "5"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["train", "TEXT=x"], "TEXT="),
        (["train", "CKPT=x"], "CKPT="),
        (["train", "RUN=x"], "RUN="),
        (["translate", "TARGET=x"], "TARGET="),
        (["attention", "FILE=x"], "FILE="),
        (["data-check", "TEXT=x"], "TEXT="),
        (["evaluate", "FILE=x"], "FILE="),
        (["evaluate", "OUT=x"], "OUT="),
        (["train", "BASE=x"], "BASE="),
        (["evaluate", "WHERE=x"], "WHERE="),
        (["compare", "RUNS="], "RUNS="),
        (["compare", "CKPT=x"], "CKPT="),
        (["lint", "ARGS=x"], "ARGS="),
        (["test", "model=small"], "model="),
        (["bench", "CKPT=x"], "CKPT="),
        (["train", "DRY=1"], "DRY="),
        (["submit", "CKPT=x"], "CKPT="),
        (["submit", "DRY=yes"], "DRY=yes: write DRY=1"),
        (["setup", "a.b=1"], "a.b="),
        (["a.b=1"], "a.b="),
        (["translate", "TEXT=x", "FILE=y"], "TEXT and FILE"),
        (["translate", "FILE="], "FILE="),
        (["train", "ARGS='open"], "no closing quotation"),
    ],
)
def test_a_setting_without_use_is_refused(checkout: Checkout, words: list[str], named: str) -> None:
    result = checkout.make(*words)
    assert result.status != 0 and result.calls == [] and named in result.stderr


def test_two_targets_share_what_either_takes(checkout: Checkout) -> None:
    calls = checkout.make("-j4", "test", "train", "evaluate", "x=1", "CKPT=c").calls
    assert [call.argv for call in calls] == [
        ["-m", "pytest", *PARALLEL],
        ["-m", "zhen.train", "x=1"],
        ["-m", "zhen.evaluate", "x=1", "ckpt='c'"],
    ]


# --- targets


def test_help_is_the_default_and_lists_every_target(checkout: Checkout) -> None:
    result = checkout.make()
    assert result.stdout == checkout.make("help").stdout and result.calls == []
    assert re.findall(r"^  make (\S+) +\S", result.stdout, re.MULTILINE) == TARGETS


@pytest.mark.parametrize(
    ("target", "argvs"),
    [
        ("corpus", [["scripts/phrasebook/build.py"]]),
        ("bench", [["scripts/bench.py"]]),
        ("test", [["-m", "pytest", *PARALLEL]]),
        ("test-fast", [["-m", "pytest", *PARALLEL, "-m", "not slow"]]),
        ("soak", [["-m", "pytest", "tests/test_soak.py", "tests/training/test_checkpoints.py"]]),
    ],
)
def test_a_target_runs_its_command(checkout: Checkout, target: str, argvs: list[list[str]]) -> None:
    assert [call.argv for call in checkout.make(target).calls] == argvs


def test_lint_checks_style_format_and_types(checkout: Checkout) -> None:
    tools = [" ".join(call.argv[:3]) for call in checkout.make("lint").calls]
    assert tools == ["-m ruff check", "-m ruff format", "-m mypy --no-error-summary"]


def test_clean_keeps_runs_data_and_the_environment(checkout: Checkout) -> None:
    kept = ["runs/a/best.ckpt", "data/train.tsv", ".venv/bin/python", "src/zhen/train.py"]
    gone = [".cache/x", ".mypy_cache/x", "src/zhen/__pycache__/x", "build/x", "tests/x"]
    for name in [*kept, *gone]:
        (checkout.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout.folder / name).touch()
    result = checkout.make("clean")
    assert result.status == 0
    told = [line.split("\t")[1] for line in result.stdout.splitlines()]
    assert told == [".cache/x", ".cache", ".mypy_cache", "build"]
    assert all((checkout.folder / name).exists() for name in [*kept, "tests/x"])
    assert not any((checkout.folder / name).exists() for name in gone[:-1])


# --- the environment (scripts/setup.sh)


def fake_python(path: Path, version: str, log: Path) -> Path:
    """An interpreter that tells a version, and makes "environments" that are copies of itself."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"""#!/bin/sh
case "$*" in
  *version_info*) echo {version} ;;
  *pip\\ install*) echo "$*" >> {shlex.quote(str(log))}; [ ! -e fail ] ;;
  *-m\\ venv*) for venv; do :; done
              rm -rf "$venv"; mkdir -p "$venv/bin"; cp "$0" "$venv/bin/python"
              touch "$venv/pyvenv.cfg"; echo venv >> {shlex.quote(str(log))} ;;
esac
""")
    path.chmod(0o755)
    return path


class Fresh(Checkout):
    """A fresh clone, with a fake python3 as the only Python on PATH."""

    def __init__(self, folder: Path, version: str = "3.11.7") -> None:
        super().__init__(folder)
        self.log = folder / "installs"
        self.python = fake_python(folder / "path/python3", version, self.log)
        for tool in ["sh", "rm", "mkdir", "cp", "touch", "cat", "sed", "ls"]:
            (folder / "path" / tool).symlink_to(shutil.which(tool))
        self.program = shutil.which("make")

    def setup(self, *words: str) -> Result:
        self.log.unlink(missing_ok=True)
        return self.make("setup", *words, env={"PATH": str(self.folder / "path"), "HOME": ""})

    def installs(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def fresh(tmp_path: Path) -> Fresh:
    (tmp_path / "a check out").mkdir()
    return Fresh(tmp_path / "a check out")


def test_setup_installs_the_lock_and_the_package_once(fresh: Fresh) -> None:
    result = fresh.setup()
    assert result.status == 0, result.stderr
    assert result.stdout == "" and len(result.stderr.splitlines()) == 2
    venv, lock, package = fresh.installs()
    assert venv == "venv" and lock.endswith("-r requirements.lock")
    assert package.endswith("--editable .")
    assert fresh.setup().stderr == "" and fresh.installs() == []


@pytest.mark.parametrize("name", ["requirements.lock", "pyproject.toml"])
def test_setup_runs_again_after_a_change(fresh: Fresh, name: str) -> None:
    fresh.setup()
    later = fresh.stamp.stat().st_mtime + 1
    os.utime(fresh.folder / name, (later, later))
    fresh.setup()
    assert len(fresh.installs()) == 2  # in place: no new environment


def test_an_interrupted_installation_starts_over(fresh: Fresh) -> None:
    (fresh.folder / "fail").touch()
    assert fresh.setup().status != 0
    (fresh.folder / "fail").unlink()
    assert fresh.setup().status == 0 and fresh.installs()[0] == "venv"


def test_a_copied_checkout_installs_itself(fresh: Fresh, tmp_path: Path) -> None:
    fresh.setup()
    fresh.folder = shutil.copytree(fresh.folder, tmp_path / "copy", symlinks=True)
    assert "Installed." in fresh.setup().stderr
    assert fresh.setup().stderr == ""


@pytest.mark.parametrize("version", ["3.9.18", "3.14.0", "2.7.18"])
def test_a_wrong_python_is_refused_in_one_line(fresh: Fresh, tmp_path: Path, version: str) -> None:
    wrong = fake_python(tmp_path / "my python/python", version, fresh.log)
    for _ in range(2):  # on a fresh clone, and with an environment in place
        result = fresh.setup(f"PYTHON={wrong}")
        errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert result.status != 0 and fresh.installs() == []
        assert len(errors) == 1 and version in errors[0] and "3.10, 3.11, 3.12 or 3.13" in errors[0]
        fresh.setup()


def test_without_a_fitting_python_one_line_says_so(tmp_path: Path) -> None:
    result = Fresh(tmp_path, version="3.14.0").setup()
    assert result.status != 0 and "error: zhen needs Python 3.10" in result.stderr


def test_another_python_is_found_when_python3_does_not_fit(tmp_path: Path) -> None:
    fresh = Fresh(tmp_path, version="3.14.0")
    fake_python(tmp_path / "path/python3.12", "3.12.1", fresh.log)
    assert "Python 3.12.1" in fresh.setup().stderr


def test_python_chooses_the_interpreter_and_remakes_the_environment(fresh: Fresh) -> None:
    fresh.setup()
    other = fake_python(fresh.folder / "other python", "3.13.0", fresh.log)
    assert "Python 3.13.0" in fresh.setup(f"PYTHON={other}").stderr
    assert fresh.setup(f"PYTHON={other}").stderr == ""
    assert fresh.setup().stderr == ""


def test_a_folder_that_is_no_environment_is_left_alone(fresh: Fresh) -> None:
    precious = fresh.folder / "precious/file"
    precious.parent.mkdir()
    precious.touch()
    result = fresh.setup("VENV=precious")
    assert result.status != 0 and "precious" in result.stderr
    assert precious.exists() and fresh.installs() == []
