"""Run a make target's command with what followed the target on make's command line.

    forward.py MAKE_PID "KIND..." COMMAND...

KIND says what the target takes: OVERRIDES (of Hydra), or one of make's SETTINGS, as ARGS or TEXT.
The Makefile has already refused what no target takes.

make turns each `key=value` word into a variable and lists them all in MAKEOVERRIDES: the newest
first, `$` doubled, a backslash before blanks and backslashes. So the values are exact, but the
operator is lost: `x+=1`, `x?=1` and `x!=1` all read `x=1` there. Only make's own command line still
shows them, and they are refused.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

# The settings that stand for a key, and which.
KEYS = {
    "BASE": "base",
    "CKPT": "ckpt",
    "FILE": "input",
    "OUT": "output",
    "RUN": "run",
    "RUNS": "runs",
    "SORT": "sort",
    "WHERE": "where",
}
SETTINGS = {*KEYS, "ARGS", "DRY", "PYTHON", "TARGET", "TEXT", "VENV"}
# make's variables describe the make that runs this, not one that the command may start.
MAKE_STATE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "ZHEN_MAKEOVERRIDES")


def fail(message: str) -> NoReturn:
    sys.exit(f"error: {message}")


def parse_makeoverrides(text: str) -> dict[str, str]:
    """The variables of make's command line, in the order in which they were first given."""
    words = re.findall(r"(?:\\.|[^\\ ])+", text, re.DOTALL)
    plain = [re.sub(r"\\(.)|\$(\$)", r"\1\2", word) for word in reversed(words)]
    return {name: value for name, _, value in (word.partition("=") for word in plain)}


def command_line(pid: str) -> tuple[list[str], bool]:
    """The words of a process's command line, and whether they are exact.

    Without /proc (macOS), ps joins the words with spaces, so that one with a space looks like two.
    """
    try:
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0"), True
    except OSError:
        shown = subprocess.run(["ps", "-ww", "-o", "args=", "-p", pid], capture_output=True)
        return os.fsdecode(shown.stdout).split(), False


def refuse_inexact(words: list[str], exact: bool, variables: dict[str, str]) -> None:
    """Stop at a word whose meaning make has already changed."""
    for word in words[1:]:
        assignment = re.match(r"\s*(?P<name>[^=]*?)\s*(?P<op>[+?!]|:{1,3})=", word)
        if assignment and (exact or assignment["name"] in variables):
            name, operator = assignment.group("name", "op")
            fail(
                f"make reads the `{name}{operator}=` of `{word}` as an assignment of its own; "
                f"write {name}=value, or pass the word as ARGS={shlex.quote(word)}"
            )
        if exact and "$" in word.partition("=")[0] and "=" in word:
            fail(f"make expands the $ in `{word}`; pass it as ARGS={shlex.quote(word)}")
        if exact and word == "-m":
            fail("make ignores -m; several trainings are started by `make sweep`")


def keep_leading_blanks(words: list[str], variables: dict[str, str]) -> None:
    """Put back the white space after `=`, which make drops."""
    for word in words:
        name, _, value = word.partition("=")
        if value != variables.get(name) == value.lstrip(" \t\n\v\f\r"):
            variables[name] = value


def hydra_quote(text: str) -> str:
    """A text as a quoted string of Hydra's override grammar, `${` standing for itself."""
    literal = re.sub(r"(\\*)\$\{", r"\1\1\\${", text)
    # Backslashes are plain, save in front of a quote, the closing one included.
    escaped = re.sub(r"(\\*)('|\Z)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), literal)
    return f"'{escaped}'"


def main() -> None:
    make_pid, kinds, *command = sys.argv[1:]
    variables = parse_makeoverrides(os.environ.get("ZHEN_MAKEOVERRIDES", ""))
    words, exact = command_line(make_pid)
    refuse_inexact(words, exact, variables)
    if exact:
        keep_leading_blanks(words, variables)

    taken = kinds.split()
    settings = {name: variables[name] for name in taken if name in variables}
    if "OVERRIDES" in taken:
        command += [f"{name}={value}" for name, value in variables.items() if name not in SETTINGS]
    for name, key in KEYS.items():
        if name in settings:
            if not settings[name]:
                fail(f"{name}= is empty: give a value, or leave {name} out")
            command.append(f"{key}={hydra_quote(settings[name])}")
    if "TEXT" in settings and "FILE" not in taken:  # one sentence, not lines to read
        command.append(f"text={hydra_quote(settings.pop('TEXT'))}")
    if "TARGET" in settings:
        command.append(f"target={hydra_quote(settings['TARGET'])}")
    if "DRY" in settings:
        if settings["DRY"] != "1":
            fail(f"DRY={settings['DRY']}: write DRY=1, or leave it out")
        command.append("dry=true")
    if "ARGS" in settings:
        try:
            command += shlex.split(settings["ARGS"])
        except ValueError as error:
            fail(f"ARGS={settings['ARGS']}: {str(error).lower()}")
    if "TEXT" in settings:
        if "FILE" in settings:
            fail("TEXT and FILE are both given: which one is to be translated?")
        text = settings["TEXT"]
        # A file, not a pipe: it takes any length before the command begins to read.
        with tempfile.TemporaryFile() as stdin:
            stdin.write(os.fsencode(text if text.endswith("\n") else text + "\n"))
            stdin.seek(0)
            os.dup2(stdin.fileno(), 0)

    for name in MAKE_STATE:
        os.environ.pop(name, None)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
