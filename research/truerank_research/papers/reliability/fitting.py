"""Models fitted and logs studied, in pieces: what the four questions of the study are read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from truerank import models
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.data.spill import scratch
from truerank.models import Side
from truerank.ranking.kernel.rank import Aligned
from truerank.ranking.scores.scores import dense
from truerank.reliability import Grid, Preset, study
from truerank.reliability.grid import LOGGERS, SAMPLERS
from truerank_research.papers.reliability.data import SETTINGS, StudiedModel, StudiedSetting, settings_of
from truerank_research.papers.reliability.figures import ResultReading, StudyFigures
from truerank_research.runner import Run, Setting, Source


def fit_scores(source: Source, dataset: str, entry: StudiedModel, seed: int) -> pl.DataFrame:
    """The scores of one model for every pair of a dataset, row by row."""
    data = SETTINGS[dataset].data(source)
    model = models.make(entry.name, dict(entry.settings))
    scores = model.fit(data.train, seed=seed, side=data.side if entry.features else Side())
    world = data.world
    aligned = Aligned.of(scores, users=world.users, items=world.items, name=entry.title)
    return pl.DataFrame({"score": aligned.block(np.arange(len(world.users))).ravel()})


def study_logs(
    run: Setting,
    setting: StudiedSetting,
    preset: Preset,
    logger: str,
    samplers: tuple[str, ...] = SAMPLERS,
    variant: str = "",
    n_missing: int = 0,
    *,
    scores: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """The results of the study of one logging policy, at every sparsity; `variant` names what else was changed.

    `n_missing` pairs have no label, drawn among those that are not liked.
    """
    data = setting.data(run.source)
    grid = Grid.of(
        preset=preset, loggers=(logger,), sparsities=setting.sparsities, samplers=samplers, sizes=setting.sizes,
        metrics=setting.metrics, repetitions=setting.repetitions,
    )  # fmt: skip
    world = _without(data.world, n_missing, seed=run.seed)
    with scratch() as space:
        return study(
            scores_of(scores, data.world), world, space.make("study"), grid=grid, train=data.train, seed=run.seed,
            resamples=1000 if run.full else 50, threads=1,
        ).results  # fmt: skip


def scores_of(tables: Mapping[str, pl.DataFrame], world: Log) -> dict[str, Scores]:
    """Stored tables of scores as scores."""
    shape = len(world.users), len(world.items)
    return {
        title: dense(table["score"].to_numpy().reshape(shape), users=world.users.values, items=world.items.values)
        for title, table in tables.items()
    }


def _without(world: Log, n: int, *, seed: int) -> Log:
    """The dataset without the labels of n pairs that are not liked, drawn uniformly."""
    others = np.flatnonzero(world.label == 0)
    removed = np.random.default_rng(seed).permutation(others)[: min(n, len(others))]
    return world if n == 0 else world.select(np.setdiff1d(np.arange(len(world)), removed))


def fitted(run: Run, setting: StudiedSetting, *, seed: int) -> dict[str, pl.DataFrame]:
    """The scores of every model of a dataset."""
    arguments = [(run.source, setting.name, entry, seed) for entry in setting.entries]
    tables = run.pieces(fit_scores, arguments, about=f"fitting models on {setting.title}")
    return {entry.title: table for entry, table in zip(setting.entries, tables, strict=True)}


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One dataset in one preset, as it was studied."""

    setting: StudiedSetting
    preset: Preset
    results: pl.DataFrame

    @property
    def title(self) -> str:
        return f"{self.setting.title}, {self.preset.value}"

    def figures(self, reading: ResultReading = ResultReading.USERS) -> StudyFigures:
        return StudyFigures.read(self.results, scale=self.setting.scale, reading=reading)


def studied(run: Run) -> list[StudyRun]:
    """Every dataset with both presets, the paper's own (released) first."""
    runs = []
    for setting in settings_of(run):
        scores = fitted(run, setting, seed=run.seed)
        for preset in (Preset.RELEASED, Preset.PUBLISHED):
            arguments = [(run.setting, setting, preset, logger) for logger in LOGGERS]
            about = f"studying logs of {setting.title}, {preset.value}"
            runs.append(
                StudyRun(setting, preset, pl.concat(run.pieces(study_logs, arguments, about=about, scores=scores)))
            )
    return runs
