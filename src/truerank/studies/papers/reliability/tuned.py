"""Settings tried at random and judged by cross-validation, as the sampler paper describes its search."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import polars as pl

from truerank import models
from truerank.core.chance import cell_keys, library_seed
from truerank.core.errors import InputError, extra
from truerank.core.log import Log
from truerank.evaluation.judged import evaluate
from truerank.exposure.kinds import FullExposure, Unlisted
from truerank.models import Side
from truerank.models.settings import load, space
from truerank.studies.papers.reliability.worlds import SETTINGS, StudiedModel, StudiedSetting
from truerank.studies.tuning import distribution
from truerank.studies.work import Keep, StudySize, StudySource


@dataclass(frozen=True, slots=True)
class SearchSize:
    """Trials for each model, folds of the training pairs, and the share of training users who are learnt from."""

    trials: int
    folds: int
    users: float


SEARCHES = {StudySize.FULL: SearchSize(12, 5, 0.1), StudySize.QUICK: SearchSize(2, 2, 1.0)}


@dataclass(frozen=True, slots=True)
class TriedSettings:
    """One trial: settings of a model drawn at random by Optuna, and the mean of the metric over the folds."""

    source: StudySource
    world: str
    entry: StudiedModel
    trial: int
    search: SearchSize
    seed: int

    @property
    def name(self) -> str:
        return f"{self.world}, {self.entry.title}, trial {self.trial}"

    def table(self) -> pl.DataFrame:
        data = SETTINGS[self.world].data(self.source)
        drawn = self._drawn()
        model = dataclasses.replace(models.make(self.entry.name, dict(self.entry.settings)), **drawn)  # type: ignore[type-var]
        log = _some_users(data.train, self.search.users, seed=self.seed)
        fold = cell_keys(self.seed, "folds", log.users.keys()[log.user], log.items.keys()[log.item])
        fold = fold % np.uint64(self.search.folds)
        side = data.side if self.entry.features else Side()
        values = []
        for at in range(self.search.folds):
            train, held = log.select(fold != at), log.select(fold == at)
            try:
                scores = model.fit(train, seed=self.seed, side=side)
            except InputError:  # settings that cannot be fitted are worth nothing
                values.append(math.nan)
                continue
            found = evaluate(
                {"model": scores}, held, exposure=FullExposure(Unlisted.NEGATIVE), exclude=train,
                metrics=[SETTINGS[self.world].metrics[0]],
            )  # fmt: skip
            values.append(found.estimates[0].value)
        settings = msgspec.json.encode({name: str(value) for name, value in drawn.items()}).decode()
        return pl.DataFrame({"trial": [self.trial], "settings": [settings], "value": [float(np.mean(values))]})

    def _drawn(self) -> dict[str, Any]:
        """The settings of this trial, which depend on its number alone."""
        optuna = load("optuna", install=extra("tune"), who="tuning")
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            sampler = optuna.samplers.RandomSampler(seed=library_seed(self.seed, self.name))
            searched = {name: distribution(optuna, each) for name, each in searched_of(self.entry).items()}
            return dict(optuna.create_study(sampler=sampler).ask(searched).params)
        finally:
            optuna.logging.set_verbosity(before)


def searched_of(entry: StudiedModel) -> Mapping[str, Any]:
    """The settings of a model that are searched: those that it is not studied for."""
    fixed = dict(entry.settings)
    whole = type(models.make(entry.name, fixed))
    return {name: each for name, each in space(whole).items() if name not in fixed}


def searched(
    source: StudySource, setting: StudiedSetting, keep: Keep, *, size: StudySize, seed: int
) -> tuple[dict[str, StudiedModel], dict[str, StudiedModel], pl.DataFrame]:
    """The models with the best settings, with those of the first trial (chance alone), and all trials."""
    search = SEARCHES[size]
    entries = [entry for entry in setting.entries if searched_of(entry) and not entry.settings]
    pieces = [
        TriedSettings(source, setting.name, entry, trial, search, seed)
        for entry in entries
        for trial in range(search.trials)
    ]
    tables = keep(pieces, about=f"tuning models on {setting.title}")
    titles = [entry.title for entry in entries for _ in range(search.trials)]
    trials = pl.concat([table.with_columns(model=pl.lit(title)) for title, table in zip(titles, tables, strict=True)])
    best, first = {}, {}
    for entry in entries:
        own = trials.filter(pl.col("model") == entry.title).fill_nan(None)
        order = own.sort("value", "trial", descending=[True, False], nulls_last=True)
        best[entry.title] = _with(entry, order["settings"][0])
        first[entry.title] = _with(entry, own.sort("trial")["settings"][0])
    return best, first, trials


def _with(entry: StudiedModel, settings: str) -> StudiedModel:
    found = msgspec.json.decode(settings, type=dict[str, str])
    return replace(entry, settings=(*entry.settings, *found.items()))


def _some_users(log: Log, share: float, *, seed: int) -> Log:
    """The rows of a share of users, drawn by their ids."""
    if share >= 1:
        return log
    key = cell_keys(seed, "users of the search", log.users.keys(), np.zeros(len(log.users), dtype=np.uint64))
    return log.select((key < np.quantile(key, share))[log.user])
