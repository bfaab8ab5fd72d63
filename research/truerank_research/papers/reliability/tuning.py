"""Settings drawn at random and evaluated by cross-validation, as the paper describes its search."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import optuna
import polars as pl

from truerank import models
from truerank.core.chance import cell_keys, library_seed
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.evaluation.labels import evaluate
from truerank.exposure.kinds import FullExposure, Unlisted
from truerank.models import Side
from truerank.models.settings import LogUniform, WholeNumbers, space
from truerank_research.papers.reliability.data import SETTINGS, StudiedModel, StudiedSetting
from truerank_research.runner import Run, Source


@dataclasses.dataclass(frozen=True, slots=True)
class SearchSize:
    """Trials for each model, folds of the training pairs, and the share of training users who are learnt from."""

    trials: int
    folds: int
    users: float


FULL, QUICK = SearchSize(12, 5, 0.1), SearchSize(2, 2, 1.0)


def run_trial(
    source: Source, dataset: str, entry: StudiedModel, trial: int, search: SearchSize, seed: int
) -> pl.DataFrame:
    """One trial: settings of a model drawn at random by Optuna, and the mean of the metric over the folds."""
    setting = SETTINGS[dataset]
    data = setting.data(source)
    drawn = _draw_settings(entry, library_seed(seed, f"{dataset}, {entry.title}, trial {trial}"))
    model = dataclasses.replace(models.make(entry.name, dict(entry.settings)), **drawn)  # type: ignore[type-var]
    log = _some_users(data.train, search.users, seed=seed)
    fold = cell_keys(seed, "folds", log.users.keys()[log.user], log.items.keys()[log.item]) % np.uint64(search.folds)
    values = []
    for at in range(search.folds):
        train, held_out = log.select(fold != at), log.select(fold == at)
        try:
            scores = model.fit(train, seed=seed, side=data.side if entry.features else Side())
        except InputError:  # settings that cannot be fitted have no value
            values.append(math.nan)
            continue
        results = evaluate(
            {"model": scores}, held_out, exposure=FullExposure(Unlisted.NEGATIVE), exclude=train,
            metrics=[setting.metrics[0]],
        )  # fmt: skip
        values.append(results.estimates[0].value)
    settings = msgspec.json.encode({name: str(value) for name, value in drawn.items()}).decode()
    return pl.DataFrame({"trial": [trial], "settings": [settings], "value": [float(np.mean(values))]})


def _draw_settings(entry: StudiedModel, seed: int) -> dict[str, Any]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        spaces = {name: _distribution(each) for name, each in searched_settings(entry).items()}
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
        return dict(study.ask(spaces).params)
    finally:
        optuna.logging.set_verbosity(before)


def _distribution(search: Any) -> Any:
    """A search space as Optuna has it; evenly spaced numbers as a range."""
    if isinstance(search, WholeNumbers):
        return optuna.distributions.IntDistribution(search.low, search.high)
    if isinstance(search, LogUniform):
        return optuna.distributions.FloatDistribution(search.low, search.high, log=True)
    values: list[Any] = [str(value) if isinstance(value, str) else value for value in search.values]
    if len(values) >= 3 and all(isinstance(value, int | float) for value in values):
        steps = {after - before for before, after in itertools.pairwise(values)}
        if len(steps) == 1 and min(steps) > 0:
            kinds = optuna.distributions
            kind = kinds.IntDistribution if isinstance(values[0], int) else kinds.FloatDistribution
            return kind(values[0], values[-1], step=steps.pop())
    return optuna.distributions.CategoricalDistribution(values)


def searched_settings(entry: StudiedModel) -> Mapping[str, Any]:
    """The settings of a model that are searched: those that it is not studied for."""
    fixed = dict(entry.settings)
    return {name: each for name, each in space(type(models.make(entry.name, fixed))).items() if name not in fixed}


def search_settings(
    run: Run, setting: StudiedSetting
) -> tuple[dict[str, StudiedModel], dict[str, StudiedModel], pl.DataFrame]:
    """The models with the best settings, with those of the first trial (chance alone), and all trials."""
    search = FULL if run.full else QUICK
    entries = [entry for entry in setting.entries if searched_settings(entry) and not entry.settings]
    cases = [(entry, trial) for entry in entries for trial in range(search.trials)]
    arguments = [(run.source, setting.name, entry, trial, search, run.seed) for entry, trial in cases]
    tables = run.pieces(run_trial, arguments, about=f"tuning models on {setting.title}")
    trials = pl.concat(
        [table.with_columns(model=pl.lit(entry.title)) for (entry, _), table in zip(cases, tables, strict=True)]
    )
    best, first = {}, {}
    for entry in entries:
        rows = trials.filter(model=entry.title).fill_nan(None)
        order = rows.sort("value", "trial", descending=[True, False], nulls_last=True)
        best[entry.title] = _with(entry, order["settings"][0])
        first[entry.title] = _with(entry, rows.sort("trial")["settings"][0])
    return best, first, trials


def _with(entry: StudiedModel, settings: str) -> StudiedModel:
    chosen = msgspec.json.decode(settings, type=dict[str, str])
    return dataclasses.replace(entry, settings=(*entry.settings, *chosen.items()))


def _some_users(log: Log, share: float, *, seed: int) -> Log:
    """The rows of a share of users, drawn by their ids."""
    if share >= 1:
        return log
    key = cell_keys(seed, "users of the search", log.users.keys(), np.zeros(len(log.users), dtype=np.uint64))
    return log.select((key < np.quantile(key, share))[log.user])
