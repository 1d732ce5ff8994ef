"""How a sweep chooses its jobs: all of a grid, or a search by Optuna."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hydra.core.override_parser.types import IntervalSweep, RangeSweep

from zhen.compose import read_word
from zhen.errors import UserError, one_line
from zhen.files import write_json
from zhen.runs.jobs import Jobs, Outcome
from zhen.runs.sweeps import Goal, Sweep, grid, values

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import Trial


class Method(Protocol):
    """What `sweep=` chooses.

    Attributes:
        searches: whether it needs the jobs' scores.
    """

    searches: bool

    def samples(self, words: Sequence[str]) -> list[list[str]]:
        """Jobs to check before the first one begins; if they are right, all are."""

    def run(self, sweep: Sweep, jobs: Jobs, goal: Goal | None) -> None:
        """Run what is left of a sweep, until it ends or a signal stops it."""


class Grid:
    """Every combination of the values given."""

    searches = False

    def samples(self, words: Sequence[str]) -> list[list[str]]:
        return grid(words)

    def run(self, sweep: Sweep, jobs: Jobs, goal: Goal | None) -> None:
        sweep.jobs = grid(sweep.words)
        sweep.write()
        for number in range(1, len(sweep.jobs) + 1):
            jobs.run(number)


class Search:
    """Optuna proposes values by the scores so far, and stops jobs that fall behind.

    Values come from a tree-structured Parzen estimator (Bergstra et al. 2011). A job is pruned when
    its best validation is worse than the median of the others after as many validations. What is
    proposed for a job follows from the seed and the jobs before it, also in a sweep that goes on.

    Args:
        space: words with several values, searched beside those of the command line, which replace
            the ones of the same key.
        n_trials: jobs in all.
        n_startup_trials: jobs whose values are drawn at random, and before whose end none is
            pruned.
        n_warmup_steps: validations of a job that never prune it.
        seed: of what is proposed.

    Raises:
        ValueError: a number is out of its range.
    """

    searches = True

    def __init__(
        self,
        *,
        space: list[str],
        n_trials: int,
        n_startup_trials: int,
        n_warmup_steps: int,
        seed: int,
    ) -> None:
        for name, value, least in (
            ("n_trials", n_trials, 1),
            ("n_startup_trials", n_startup_trials, 1),
            ("n_warmup_steps", n_warmup_steps, 0),
            ("seed", seed, 0),
        ):
            if value < least:
                raise ValueError(f"`{name}` must be at least {least}, but is {value}")
        self._space, self._n_trials, self._seed = space, n_trials, seed
        self._n_startup, self._n_warmup = n_startup_trials, n_warmup_steps

    def samples(self, words: Sequence[str]) -> list[list[str]]:
        """Each value once, and both ends of what is continuous."""
        words = self._all(words)
        self._distributions(words)
        ends = [_ends(word) for word in words]
        first = [each[0] for each in ends]
        found = [
            [*first[:at], value, *first[at + 1 :]] for at, each in enumerate(ends) for value in each
        ]
        return [list(each) for each in dict.fromkeys(map(tuple, found))]

    def run(self, sweep: Sweep, jobs: Jobs, goal: Goal | None) -> None:
        from optuna.trial import TrialState

        assert goal is not None
        words = self._all(sweep.words)
        study = self._study(sweep, goal)
        sweep.write()
        while not jobs.stopped and (trial := self._next(study, words)) is not None:
            if trial.number == len(sweep.jobs):
                sweep.jobs.append([_with(word, trial.params) for word in words])
                sweep.write()
            outcome, best = self._run(trial, sweep, jobs, goal)
            if outcome == "pruned":
                study.tell(trial, state=TrialState.PRUNED)
            elif outcome == "finished" and best is not None:
                study.tell(trial, best)
            elif outcome != "stopped":  # whose trial stays as it is, and goes on with the sweep
                study.tell(trial, state=TrialState.FAIL)
        if not jobs.stopped:
            write_json(sweep.path / "importances.json", importances(study))

    def _study(self, sweep: Sweep, goal: Goal) -> "Study":
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        return optuna.create_study(
            storage=f"sqlite:///{sweep.path / 'study.db'}",
            study_name=sweep.id,
            load_if_exists=True,
            direction="maximize" if goal.mode == "max" else "minimize",
            pruner=optuna.pruners.MedianPruner(self._n_startup, self._n_warmup),
        )

    def _next(self, study: "Study", words: Sequence[str]) -> "Trial | None":
        """The trial that was begun and not ended, else a new one; None when there are enough."""
        from optuna.samplers import TPESampler
        from optuna.trial import Trial, TrialState

        trials = study.get_trials(deepcopy=False)
        begun = next((each for each in trials if each.state == TrialState.RUNNING), None)
        if begun is None and len(trials) >= self._n_trials:
            return None
        # Random numbers that go on from the last process: the same seed would repeat its proposals.
        seed = self._seed + (begun.number if begun is not None else len(trials))
        study.sampler = TPESampler(n_startup_trials=self._n_startup, seed=seed % 2**32)
        trial = Trial(study, begun._trial_id) if begun is not None else study.ask()
        try:
            for key, choices in self._distributions(words).items():
                trial._suggest(key, choices)  # what a trial has, it keeps
        except ValueError as error:  # the study was begun with other choices
            raise UserError(f"sweep.space: {one_line(error)}; begin a new sweep") from error
        return trial

    def _run(
        self, trial: "Trial", sweep: Sweep, jobs: Jobs, goal: Goal
    ) -> tuple[Outcome, float | None]:
        """Runs a job, telling Optuna of its validations; how it ended, and its best score."""
        number = trial.number + 1
        run = sweep.run(number)
        reported = len(trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values)

        def should_be_pruned() -> bool:
            nonlocal reported
            new = goal.scores(run)[reported:]
            for score in new:
                # Counted, not by updates: jobs with other batches are validated at other updates.
                trial.report(score, step=reported)
                reported += 1
            return bool(new) and trial.should_prune()

        outcome = jobs.run(number, watch=should_be_pruned)
        if outcome != "stopped":
            should_be_pruned()  # for the last scores to be told
        return outcome, goal.best(run)

    def _all(self, words: Sequence[str]) -> list[str]:
        given = {read_word(word).key_or_group for word in words}
        space = [word for word in self._space if read_word(word).key_or_group not in given]
        return [*space, *words]

    def _distributions(self, words: Sequence[str]) -> "dict[str, BaseDistribution]":
        found = {read_word(word).get_key_element(): _distribution(word) for word in words}
        space = {key: each for key, each in found.items() if each is not None}
        if not space:
            raise UserError("sweep=optuna: no word has several values, so nothing is searched")
        return space


def importances(study: "Study") -> dict[str, float]:
    """The share of each parameter in what makes jobs good (PED-ANOVA, Watanabe et al. 2023).

    Shares add up to 1; empty where fewer than two jobs are finished.
    """
    from optuna.importance import get_param_importances
    from optuna.trial import TrialState

    finished = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(finished) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few jobs tell little: docs/experiments.md
        return get_param_importances(study)


def _ends(word: str) -> list[str]:
    """The word with each of its values, or with both ends of an interval."""
    override = read_word(word)
    value = override.value()
    if isinstance(value, IntervalSweep):
        return [f"{override.get_key_element()}={each}" for each in (value.start, value.end)]
    return values(word)


def _with(word: str, chosen: Mapping[str, Any]) -> str:
    """The word with the value that was chosen for its key, or as it is."""
    key = read_word(word).get_key_element()
    return f"{key}={chosen[key]}" if key in chosen else word


def _distribution(word: str) -> "BaseDistribution | None":
    """What Optuna may choose from, in the grammar of Hydra; None for a word with one value.

    `a,b` and `choice(a,b)` have no order; `range(1,8)` and `int(interval(1,8))` are whole numbers;
    `interval(0,1)` is any number, and of `tag(log,interval(1e-4,1e-2))` the logarithm is uniform.

    Raises:
        UserError: there is nothing to choose from.
    """
    from optuna import distributions as d

    override = read_word(word)
    if not override.is_sweep_override():
        return None
    value = override.value()
    try:
        if isinstance(value, IntervalSweep):
            whole = isinstance(value.start, int)
            kind: Any = d.IntDistribution if whole else d.FloatDistribution
            return kind(value.start, value.end, log="log" in value.tags)
        if isinstance(value, RangeSweep) and isinstance(numbers := value.range(), range):
            return d.IntDistribution(min(numbers), max(numbers), step=abs(numbers.step))
    except ValueError as error:
        raise UserError(f"`{word}`: {one_line(error)}") from error
    return d.CategoricalDistribution([each.partition("=")[2] for each in values(word)])
