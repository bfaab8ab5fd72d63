"""Models fitted and logs studied, piece by piece; what a run of the study is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from truerank import models
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.data.spill import scratch
from truerank.models import Side
from truerank.ranks.kernel.rank import Aligned
from truerank.ranks.scores.scores import dense
from truerank.studies.papers.reliability.rules import ResultReading, StudyFigures
from truerank.studies.papers.reliability.worlds import SETTINGS, StudiedModel, StudiedSetting, settings_of
from truerank.studies.reliability import Grid, Preset, study
from truerank.studies.reliability.grid import LOGGERS, SAMPLERS
from truerank.studies.work import Keep, StudySize, StudySource

RESAMPLES = {StudySize.FULL: 1000, StudySize.QUICK: 50}


@dataclass(frozen=True, slots=True)
class FittedScores:
    """What one model says about every pair of a world, row by row."""

    source: StudySource
    world: str
    entry: StudiedModel
    seed: int

    @property
    def name(self) -> str:
        return f"{self.world}, {self.entry}"

    def table(self) -> pl.DataFrame:
        data = SETTINGS[self.world].data(self.source)
        model = models.make(self.entry.name, dict(self.entry.settings))
        scores = model.fit(data.train, seed=self.seed, side=data.side if self.entry.features else Side())
        world = data.world
        known = Aligned.of(scores, users=world.users, items=world.items, name=self.entry.title)
        return pl.DataFrame({"score": known.block(np.arange(len(world.users))).ravel()})


@dataclass(frozen=True, slots=True)
class StudiedLogs:
    """The logs of one logger in one preset, at every sparsity: the table of results of their study."""

    source: StudySource
    size: StudySize
    setting: StudiedSetting
    preset: Preset
    logger: str
    seed: int
    scores: tuple[tuple[str, pl.DataFrame], ...] = field(compare=False, repr=False)
    samplers: tuple[str, ...] = SAMPLERS
    without: int = 0  # pairs without a label, drawn among those that are not liked

    @property
    def name(self) -> str:
        missing = f", {self.without} pairs missing" if self.without else ""
        titles = ", ".join(title for title, _ in self.scores)
        return f"{self.setting.name}, {self.preset.value}, {self.logger}{missing}, {titles}"

    def table(self) -> pl.DataFrame:
        data = self.setting.data(self.source)
        grid = Grid.of(
            preset=self.preset, loggers=(self.logger,), sparsities=self.setting.sparsities, samplers=self.samplers,
            sizes=self.setting.sizes, metrics=self.setting.metrics, repetitions=self.setting.repetitions,
        )  # fmt: skip
        world = _without(data.world, self.without, seed=self.seed)
        with scratch() as space:
            found = study(
                scores_of(self.scores, data.world), world, space.make("study"), grid=grid, train=data.train,
                seed=self.seed, resamples=RESAMPLES[self.size],
            )  # fmt: skip
        return found.results


def scores_of(tables: Sequence[tuple[str, pl.DataFrame]], world: Log) -> dict[str, Scores]:
    """Tables of scores as they were before they were kept."""
    shape = len(world.users), len(world.items)
    return {
        title: dense(table["score"].to_numpy().reshape(shape), users=world.users.values, items=world.items.values)
        for title, table in tables
    }


def _without(world: Log, n: int, *, seed: int) -> Log:
    """The world without the labels of n pairs that are not liked, drawn uniformly."""
    others = np.flatnonzero(world.label == 0)
    gone = np.random.default_rng(seed).permutation(others)[: min(n, len(others))]
    return world if n == 0 else world.select(np.setdiff1d(np.arange(len(world)), gone))


def fitted(source: StudySource, setting: StudiedSetting, keep: Keep, *, seed: int) -> dict[str, pl.DataFrame]:
    """The scores of every model of a world."""
    pieces = [FittedScores(source, setting.name, entry, seed) for entry in setting.entries]
    tables = keep(pieces, about=f"fitting models on {setting.title}")
    return {entry.title: table for entry, table in zip(setting.entries, tables, strict=True)}


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One world in one preset, as it was studied."""

    setting: StudiedSetting
    preset: Preset
    results: pl.DataFrame

    @property
    def title(self) -> str:
        return f"{self.setting.title}, {self.preset.value}"

    def figures(self, reading: ResultReading = ResultReading.USERS) -> StudyFigures:
        return StudyFigures.read(self.results, scale=self.setting.scale, reading=reading)


def studied(source: StudySource, *, size: StudySize, seed: int, keep: Keep) -> list[StudyRun]:
    """Every world with both presets, the paper's own (released) first."""
    runs = []
    for setting in settings_of(source, size):
        scores = tuple(fitted(source, setting, keep, seed=seed).items())
        for preset in (Preset.RELEASED, Preset.PUBLISHED):
            pieces = [StudiedLogs(source, size, setting, preset, logger, seed, scores) for logger in LOGGERS]
            # each uses all cores by itself
            tables = keep(pieces, about=f"studying logs of {setting.title}, {preset.value}", apart=False)
            runs.append(StudyRun(setting, preset, pl.concat(tables)))
    return runs
