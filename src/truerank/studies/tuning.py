"""Search for good settings of a model with Optuna, kept in a folder so that it can go on where it stopped."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from truerank.core.chance import library_seed
from truerank.core.errors import InputError, extra
from truerank.core.log import Log
from truerank.core.progress import Progress, Watching, watching
from truerank.core.sizes import check_size
from truerank.core.wording import worded
from truerank.data.cells import safe_cells
from truerank.data.files import write_table
from truerank.data.folders import seal, unseal
from truerank.data.growing import keep_question, working
from truerank.data.whole import whole_file
from truerank.models import NOTHING_BESIDE, Model, Side
from truerank.models.settings import LogUniform, OneOf, Search, WholeNumbers, load, space
from truerank.studies.objectives import Task, TuningObjective
from truerank.studies.trials import KEPT, Trial, TrialFile

QUESTION, TRIALS, BEST, TABLE = "question.json", "trials.log", "best.json", "trials.csv"
KIND = "tuning"
TRIAL_SECONDS = 5e-3  # that a trial takes at least
STARTUP = 10  # trials at random before the search learns from them


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best model, its value, and all trials in order; `resumed` of them were there before.

    `notes` says what had to be mended to go on.
    """

    model: Model
    value: float
    trials: tuple[Trial, ...]
    resumed: int
    notes: tuple[str, ...] = ()


def tune(
    model: Model,
    log: Log,
    *,
    objective: TuningObjective,
    trials: int,
    folder: Path,
    seed: int,
    side: Side = NOTHING_BESIDE,
    fixed: Collection[str] = (),
    progress: Watching = None,
) -> Tuned:
    """Try settings of a model, best first as far as Optuna can tell, until `trials` have been tried.

    Settings that are `fixed` or have no search space stay as `model` has them. If the whole grid is no larger than
    `trials`, each combination is tried once and stands in the order of the grid, whatever was tried before. The n-th
    trial depends on the seed and on the trials before it alone, so an interrupted search that is resumed from its
    `folder` ends like one that was not. Settings that cannot be fitted are kept with the reason; if there are no
    others, that is an InputError and nothing is kept. The folder of another question is refused.
    """
    if trials < 1:
        raise InputError(f"{trials} trials; expected a whole number from 1.")
    check_size(f"a search of {trials:,} trials", seconds=TRIAL_SECONDS * trials, instead="Ask for fewer.")
    searched = {name: each for name, each in space(type(model)).items() if name not in fixed}
    if not searched:
        raise InputError(f"{model.name}: nothing to search; every setting is fixed or has no search space.")
    task = objective.task(log, side, labels=model.labels, seed=seed)
    optuna = load("optuna", install=extra("tune"), who="tuning")
    # last of all checks: a refused call must not leave its question in the way of the corrected one
    question = _question(model, log, side, searched, str(objective), seed=seed)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with watching(progress) as say, working(folder):
            asked = keep_question(folder / QUESTION, question, what="search", advice=KEPT)
            file = TrialFile(folder / TRIALS, asked)
            tried, notes = file.read()
            work = _Work(optuna, file, task, model, searched, seed, tried)
            found, resumed = _searched(work, _grid(searched, at_most=trials), trials, say)
            if all(each.value is None for each in found):
                _forget(folder)
                raise InputError(
                    f"{model.name}: none of {len(found)} trials could be fitted, so none is kept; the last: "
                    f"{found[-1].reason}"
                )
            tuned = _tuned(model, found, resumed=resumed, notes=notes)
            _keep(tuned, folder, objective=str(objective))
            return tuned
    finally:
        optuna.logging.set_verbosity(before)


def _searched(
    work: _Work, grid: list[dict[str, Any]] | None, trials: int, progress: Progress | None
) -> tuple[list[Trial], int]:
    """All trials, and how many of them were there before."""
    tried = [each.settings for each in _in_order(work.tried, grid)]
    resumed = len(tried)
    left = [None] * (trials - resumed) if grid is None else [each for each in grid if each not in tried]
    if left:
        unseal(work.file.path.parent)
    for at, settings in enumerate(left):
        if progress is not None:
            progress(f"tuning {work.model.name}", resumed + at, resumed + len(left))
        work.step(settings)
    return _in_order(work.tried, grid), resumed


@dataclass(frozen=True, slots=True)
class _Work:
    """What all trials of a search share."""

    optuna: Any
    file: TrialFile
    task: Task
    model: Any
    searched: Mapping[str, Search]
    seed: int
    tried: list[Trial]  # so far, as they are in the file

    def step(self, settings: Mapping[str, Any] | None) -> None:
        """Fit and judge these settings, or those that Optuna wants to see next, and keep what was found."""
        wanted = self._wanted() if settings is None else dict(settings)
        start = time.monotonic()
        known = next((each for each in self.tried if each.settings == wanted), None)
        value, reason = (known.value, known.reason) if known is not None else self._judged(wanted)
        trial = Trial(wanted, value, reason, time.monotonic() - start)
        self.file.add(trial)
        self.tried.append(trial)

    def _wanted(self) -> dict[str, Any]:
        """What to try next; the study is made anew, so that it depends on what was tried alone."""
        space = {name: distribution(self.optuna, each) for name, each in self.searched.items()}
        # a sampler of its own for each trial: the stream does not depend on when the search was interrupted
        sampler = self.optuna.samplers.TPESampler(
            n_startup_trials=STARTUP,
            constant_liar=False,
            seed=library_seed(self.seed, f"tuning trial {len(self.tried)}"),
        )
        study = self.optuna.create_study(direction="maximize", sampler=sampler)
        states = self.optuna.trial.TrialState
        study.add_trials(
            self.optuna.trial.create_trial(
                params=dict(each.settings),
                distributions=space,
                value=each.value,
                state=states.FAIL if each.value is None else states.COMPLETE,
            )
            for each in self.tried
        )
        return dict(study.ask(space).params)

    def _judged(self, settings: Mapping[str, Any]) -> tuple[float | None, str | None]:
        try:
            model = dataclasses.replace(self.model, **settings)
            return self.task.judge(model.fit(self.task.log, seed=self.seed, side=self.task.side)), None
        except InputError as error:
            return None, error.text


def _in_order(trials: list[Trial], grid: list[dict[str, Any]] | None) -> list[Trial]:
    """Trials of a whole grid, each once and in its order, also where a smaller search has sampled from it before."""
    if grid is None:
        return trials
    first = (next((each for each in trials if each.settings == settings), None) for settings in grid)
    return [each for each in first if each is not None]


def _tuned(model: Model, trials: list[Trial], *, resumed: int, notes: tuple[str, ...]) -> Tuned:
    fitted = [each for each in trials if each.value is not None]
    best = max(fitted, key=lambda each: each.value or 0.0)  # the first of equal ones
    value = best.value if best.value is not None else 0.0
    winner: Any = dataclasses.replace(model, **best.settings)  # type: ignore[type-var]
    return Tuned(winner, value, tuple(trials), resumed, notes)


def _forget(folder: Path) -> None:
    """Nothing could be fitted: the input may be wrong or a library missing, so the corrected call starts anew."""
    for name in (TRIALS, QUESTION):
        (folder / name).unlink(missing_ok=True)


def distribution(optuna: Any, search: Search) -> Any:
    """A search space as Optuna has it."""
    kinds = optuna.distributions
    if isinstance(search, WholeNumbers):
        return kinds.IntDistribution(search.low, search.high)
    if isinstance(search, LogUniform):
        return kinds.FloatDistribution(search.low, search.high, log=True)
    values = _plain(search)
    step = _step_of(values)
    if step is not None:
        kind = kinds.IntDistribution if isinstance(values[0], int) else kinds.FloatDistribution
        return kind(values[0], values[-1], step=step)
    return kinds.CategoricalDistribution(values)


def _plain(search: OneOf) -> list[Any]:
    """Values as Optuna stores them: options by their names."""
    return [str(value) if isinstance(value, str) else value for value in search.values]


def _step_of(values: list[Any]) -> Any:
    """The distance of evenly spaced numbers, None where they are none."""
    if len(values) < 3 or not all(isinstance(value, int | float) for value in values):
        return None
    steps = {after - before for before, after in itertools.pairwise(values)}
    return steps.pop() if len(steps) == 1 and min(steps) > 0 else None


def _grid(searched: Mapping[str, Search], *, at_most: int) -> list[dict[str, Any]] | None:
    """All combinations, where they are finitely many and no more than the trials asked for."""
    axes = []
    for each in searched.values():
        if isinstance(each, LogUniform):
            return None
        axes.append(_plain(each) if isinstance(each, OneOf) else list(range(each.low, each.high + 1)))
    if np.prod([float(len(axis)) for axis in axes]) > at_most:
        return None
    return [dict(zip(searched, values, strict=True)) for values in itertools.product(*axes)]


def _question(
    model: Model, log: Log, side: Side, searched: Mapping[str, Search], objective: str, *, seed: int
) -> dict[str, Any]:
    """All that a value depends on, so that trials of different questions never mix."""
    settings = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}  # type: ignore[arg-type]
    return {
        "model": model.name,
        "settings": {name: str(value) for name, value in settings.items() if name not in searched},
        "searched": {name: str(each) for name, each in searched.items()},
        "objective": objective,
        "seed": seed,
        "log": _digest(_parts(log)),
        "random slice": None if side.random is None else _digest(_parts(side.random)),
        "features": [
            None if each is None else hashlib.blake2b(each.write_csv().encode(), digest_size=8).hexdigest()
            if all(not kind.is_nested() for kind in each.dtypes)
            else hashlib.blake2b(each.write_json().encode(), digest_size=8).hexdigest()
            for each in (side.user_features, side.item_features)
        ],
    }  # fmt: skip


def _parts(log: Log) -> Iterable[Any]:
    yield from (log.users.keys(), log.items.keys(), log.user, log.item)
    for name, column in sorted(log.rewards.items()):
        yield from (np.frombuffer(name.encode(), dtype=np.uint8), column)
    if log.propensity is not None:
        yield log.propensity


def _digest(arrays: Iterable[Any]) -> str:
    found = hashlib.blake2b(digest_size=8)
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _keep(tuned: Tuned, folder: Path, *, objective: str) -> None:
    """The best settings and the table of all trials; with the marker the search is finished."""
    unseal(folder)
    best = {"model": tuned.model.name, "settings": settings_of(tuned.model), "value": tuned.value}
    with whole_file(folder / BEST, advice=KEPT) as temporary:
        content = msgspec.json.encode({**best, "objective": objective})
        temporary.write_bytes(msgspec.json.format(content, indent=2) + b"\n")
    rows = [
        {
            "trial": at,
            **trial.settings,
            "value": trial.value,
            "seconds": trial.seconds,
            "reason": worded(trial.reason or "", for_cli=False) or None,
        }
        for at, trial in enumerate(tuned.trials)
    ]
    write_table(safe_cells(pl.DataFrame(rows, infer_schema_length=None)), folder / TABLE, advice=KEPT)
    seal(folder, kind=KIND, names=(QUESTION, TRIALS, BEST, TABLE), advice=KEPT)


def settings_of(model: Any) -> dict[str, Any]:
    """The settings of a model by name."""
    return {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
