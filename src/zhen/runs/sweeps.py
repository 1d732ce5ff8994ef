"""A sweep: many runs from one command line.

    runs/<name>/<sweep id>/             sweep.yaml: what was asked, and the words of each job
    runs/<name>/<sweep id>-<number>/    a job's run, numbered from 1
"""

import itertools
from collections.abc import Sequence

from hydra.core.override_parser.types import Glob

from zhen.compose import choices, groups, read_word
from zhen.errors import UserError


def grid(words: Sequence[str]) -> list[list[str]]:
    """The words of each job: every combination of the values that `words` list.

    `model=tiny,small seed=range(0,2)` is four jobs; the last word changes fastest.

    Args:
        words: of a command line, in the grammar of Hydra's overrides.

    Raises:
        UserError: a word cannot be read, or names no values that can be listed.
    """
    return [list(job) for job in itertools.product(*map(_listed, words))]


def _listed(word: str) -> list[str]:
    override = read_word(word)
    key, value = override.get_key_element(), override.value()
    if override.is_interval_sweep():
        raise UserError(
            f"`{word}` is an interval, which only sweep=optuna can search; a grid takes values, as"
            f" {key}=1,2 or {key}=range(1,4)"
        )
    if isinstance(value, Glob):
        found = [f"{key}={option}" for option in value.filter(groups("train").get(key, []))]
    else:
        found = choices(override, word)
    if not found:
        raise UserError(f"`{word}` matches no value: there would be no job")
    return found
