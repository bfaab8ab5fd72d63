"""Search for good settings of a model with Optuna, kept in a folder so that it can go on where it stopped."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from truerank.core.chance import library_seed
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.sizes import check_size
from truerank.data.files import whole_file
from truerank.models import NOTHING_BESIDE, Model, Progress, Side
from truerank.models.settings import LogUniform, OneOf, Search, WholeNumbers, load, space
from truerank.studies.objectives import Task, TuningObjective

QUESTION, TRIALS = "question.json", "trials.log"
TRIAL_SECONDS = 5e-3  # that a trial takes at least
STARTUP = 10  # trials at random before the search learns from them


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings that were tried, with their value; None and the reason where they could not be fitted."""

    settings: Mapping[str, Any]
    value: float | None
    reason: str | None
    seconds: float


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
    progress: Progress | None = None,
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
    optuna = load("optuna", install='"truerank[tune]"', who="tuning")
    load("optuna.storages.journal", install='"truerank[tune]"', who="tuning")
    # last of all checks: a refused call must not leave its question in the way of the corrected one
    _check_question(folder, _question(model, log, side, searched, str(objective), seed=seed))
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        notes = _mended(folder / TRIALS)
        work = _Work(optuna, _study(optuna, folder), task, model, searched, seed)
        grid = _grid(searched, at_most=trials)
        tried = [each.settings for each in _in_order(_finished(work.study), grid)]
        resumed = len(tried)
        left = [None] * (trials - resumed) if grid is None else [each for each in grid if each not in tried]
        for at, settings in enumerate(left):
            if progress is not None:
                progress(f"tuning {model.name}", resumed + at, resumed + len(left))
            work.step(settings)
        found = _in_order(_finished(work.study), grid)
        if all(each.value is None for each in found):
            _forget(folder)
            raise InputError(
                f"{model.name}: none of {len(found)} trials could be fitted, so none is kept; the last: "
                f"{found[-1].reason}"
            )
        return _tuned(model, found, resumed=resumed, notes=notes)
    finally:
        optuna.logging.set_verbosity(before)


@dataclass(frozen=True, slots=True)
class _Work:
    """What all trials of a search share."""

    optuna: Any
    study: Any
    task: Task
    model: Any
    searched: Mapping[str, Search]
    seed: int

    def step(self, settings: Mapping[str, Any] | None) -> None:
        """Fit and judge these settings, or those that Optuna wants to see next, and keep what was found."""
        finished = _finished(self.study)
        # a sampler of its own for each trial: the stream does not depend on when the search was interrupted
        self.study.sampler = self.optuna.samplers.TPESampler(
            n_startup_trials=STARTUP,
            constant_liar=False,
            seed=library_seed(self.seed, f"tuning trial {len(finished)}"),
        )
        if settings is not None:
            self.study.enqueue_trial(dict(settings))
        trial = self.study.ask({name: _distribution(self.optuna, each) for name, each in self.searched.items()})
        start = time.monotonic()
        known = next((each for each in finished if each.settings == trial.params), None)
        value, reason = (known.value, known.reason) if known is not None else self._judged(trial.params)
        trial.set_user_attr("seconds", time.monotonic() - start)
        if value is None:
            trial.set_user_attr("reason", reason)
            self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, value)

    def _judged(self, settings: Mapping[str, Any]) -> tuple[float | None, str | None]:
        try:
            model = dataclasses.replace(self.model, **settings)
            return self.task.judge(model.fit(self.task.log, seed=self.seed, side=self.task.side)), None
        except InputError as error:
            return None, str(error)


def _mended(path: Path) -> tuple[str, ...]:
    """Drop a last line that was not written to its end; what was going on then is asked for again."""
    try:
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Choose another folder.") from None
    damaged = [at for at, line in enumerate(lines) if not _is_entry(line)]
    if not damaged:
        return ()
    if damaged != [len(lines) - 1]:
        raise InputError(
            f"{path}: line {damaged[0] + 1} of {len(lines)} is damaged. Restore the file, or choose another folder."
        )
    with whole_file(path) as temporary:
        temporary.write_bytes(b"".join(lines[:-1]))
    return (f"{path}: the last line was incomplete and has been dropped; its trial is done again.",)


def _is_entry(line: bytes) -> bool:
    try:
        return line.endswith(b"\n") and "op_code" in dict(json.loads(line))
    except (ValueError, TypeError):
        return False


def _study(optuna: Any, folder: Path) -> Any:
    backend = optuna.storages.journal.JournalFileBackend(str(folder / TRIALS))
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(backend), study_name="tuning", direction="maximize", load_if_exists=True
    )
    states = optuna.trial.TrialState
    for _ in study.get_trials(deepcopy=False, states=(states.WAITING,)):
        study.ask()  # planned and not begun: taken from the queue, so that it does not come before what is planned now
    for left in study.get_trials(deepcopy=False, states=(states.RUNNING,)):
        study.tell(left.number, state=states.FAIL)  # interrupted; asked for again
    return study


def _finished(study: Any) -> list[Trial]:
    """Trials with a value or a reason why they have none, in the order in which they were asked for."""
    return [
        Trial(
            dict(each.params),
            each.value if each.state.name == "COMPLETE" else None,
            each.user_attrs.get("reason"),
            float(each.user_attrs.get("seconds", 0.0)),
        )
        for each in study.get_trials(deepcopy=False)
        if each.state.name == "COMPLETE" or "reason" in each.user_attrs
    ]


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


def _distribution(optuna: Any, search: Search) -> Any:
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


def _check_question(folder: Path, question: dict[str, Any]) -> None:
    """Keep the question in a new folder; refuse a folder that holds another."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}). Choose another place.") from None
    path = folder / QUESTION
    if not path.exists():
        if any(folder.iterdir()):
            raise InputError(f"{folder}: holds other files; expected a new folder, or one of a search to go on with.")
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps(question, indent=1))
        return
    try:
        found = json.loads(path.read_text())
        other = [name for name in question if found.get(name) != question[name]]
    except (ValueError, AttributeError, OSError):
        raise InputError(f"{path}: cannot be read. Choose another folder.") from None
    if other:
        raise InputError(f"{folder}: holds a search with another {' and '.join(other)}. Choose another folder.")
