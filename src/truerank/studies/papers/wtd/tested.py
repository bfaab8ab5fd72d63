"""Settings chosen and recommenders tested, run by run: pieces of work, and the means over runs with their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Pool, Scores
from truerank.metrics.average_precision import AveragePrecision
from truerank.metrics.ndcg import NDCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.metrics.tables import unit_values_of
from truerank.models import Model
from truerank.ranks.candidates import Catalogue, Overlap, Setting, lay_out
from truerank.ranks.kernel.rank import rank
from truerank.studies.papers.wtd.published import RECOMMENDERS
from truerank.studies.papers.wtd.shapes import STRATEGIES, TUNED, WtdShape, WtdSplit, split_of
from truerank.studies.work import StudySource
from truerank.uncertainty.resampling import weights_of

K = 10
METRICS: Mapping[str, Metric] = {
    "Recall": Recall(K), "Precision": Precision(K), "MAP": AveragePrecision(K), "nDCG": NDCG(K),
}  # fmt: skip
RANDOM, PRACTICE = "random part", "intervened part"  # what settings are chosen on
DROP, KEPT, EVERY = "truth", "truth, training rows kept", "all pairs"
RESAMPLES, LEVEL = 1000, 0.95


def laid_out(log: Log, train: Log, *, overlap: Overlap = Overlap.DROP) -> Setting:
    """Test rows over the catalogue without each user's training items; what is not listed is no positive."""
    catalogue = Catalogue(train.items, float(len(train.items)))
    return lay_out(replace(log, complete=True), catalogue, exclude=train, overlap=overlap)


def values_on(scores: Scores, setting: Setting, metrics: Sequence[Metric]) -> list[Floats]:
    """The value of each user who has a positive among the test rows, NaN for others."""
    ranks = rank(scores, setting.labels, pools=[setting.pools[Pool.CATALOGUE]])[0]
    found = unit_values_of([Recall(K), *metrics], setting.labels, ranks)
    without = np.isnan(found[Recall(K)])
    return [np.where(without, np.nan, found[metric]) for metric in metrics]


@dataclass(frozen=True, slots=True)
class TuningRun:
    """Recall at 10 of every setting of the recommenders that have some, on both kinds of validation part."""

    source: StudySource
    shape: WtdShape
    seed: int
    run: int

    @property
    def name(self) -> str:
        return f"tuning {self.run}"

    def table(self) -> pl.DataFrame:
        split = split_of(self.source, self.shape, seed=self.seed, run=self.run)
        _, aside = split.in_practice(seed=self.seed + self.run)
        parts = {RANDOM: laid_out(split.validation, split.train), PRACTICE: laid_out(aside, split.train)}
        return tuning_table(split.train, parts, self.shape, seed=self.seed)


def tuning_table(train: Log, parts: Mapping[str, Setting], shape: WtdShape, *, seed: int) -> pl.DataFrame:
    rows = []
    for recommender in TUNED:
        for at, model in enumerate(shape.grid(recommender)):
            scores = model.fit(train, seed=seed)
            for part, setting in parts.items():
                rows.append(
                    (recommender, at, str(model), part, float(np.nanmean(values_on(scores, setting, [Recall(K)]))))
                )
    return pl.DataFrame(rows, schema=["recommender", "at", "settings", "part", "recall"], orient="row")


def chosen(tuned: pl.DataFrame, part: str) -> dict[str, int]:
    """The place in its grid of the best setting of each recommender; the first of several."""
    found = dict.fromkeys(RECOMMENDERS, 0)
    best = tuned.filter(pl.col("part") == part).sort("recall", "at", descending=[True, False])
    return found | dict(best.group_by("recommender", maintain_order=True).agg(pl.col("at").first()).iter_rows())


@dataclass(frozen=True, slots=True)
class TestedRun:
    """Every user's value of every metric and recommender, with the chosen settings, on every test set of a run."""

    __test__ = False  # no test of pytest's

    source: StudySource
    shape: WtdShape
    seed: int
    run: int
    part: str
    settings: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        return f"tested {self.run}, tuned on {self.part}"

    def table(self) -> pl.DataFrame:
        split = split_of(self.source, self.shape, seed=self.seed, run=self.run)
        sets = dict(self._sets(split))
        grids = {name: self.shape.grid(name)[at] for name, at in self.settings}
        return tested_table(grids, split.train, sets, seed=self.seed)

    def _sets(self, split: WtdSplit) -> Iterator[tuple[str, Setting]]:
        seed = self.seed + self.run
        heldout = split.heldout if self.part == RANDOM else split.in_practice(seed=seed)[0]
        yield DROP, laid_out(split.truth, split.train)
        yield KEPT, laid_out(split.truth, split.train, overlap=Overlap.KEEP)
        if split.every is not None:
            yield EVERY, laid_out(split.every, split.train)
        for name, strategy in STRATEGIES.items():
            yield name, laid_out(split.drawn(strategy, heldout, seed=seed), split.train)


def tested_table(models: Mapping[str, Model], train: Log, sets: Mapping[str, Setting], *, seed: int) -> pl.DataFrame:
    """A row for each recommender, test set, metric and user."""
    parts = []
    for recommender, model in models.items():
        scores = model.fit(train, seed=seed)
        for name, setting in sets.items():
            for metric, values in zip(METRICS, values_on(scores, setting, list(METRICS.values())), strict=True):
                parts.append(
                    pl.DataFrame({"user": np.arange(len(values), dtype=np.int32), "value": values}).with_columns(
                        recommender=pl.lit(recommender), test=pl.lit(name), metric=pl.lit(metric)
                    )
                )
    return pl.concat(parts)


# ------------------------------------------------------------------------------------------------------ means over runs


@dataclass(frozen=True, slots=True)
class MeansOfRuns:
    """Means over runs of means over users, in every resample of users; the first is that of the data themselves.

    Splits of one dataset share their users, so a resample draws users once for all runs. NaN is left out.
    """

    weights: Floats
    values: Mapping[tuple[str, str, str], Floats]  # [users x runs] by recommender, test set and metric

    @classmethod
    def of(cls, tables: Sequence[pl.DataFrame], *, seed: int, resamples: int = RESAMPLES) -> MeansOfRuns:
        found: dict[tuple[str, str, str], list[Floats]] = {}
        for table in tables:
            for key, rows in table.group_by("recommender", "test", "metric", maintain_order=True):
                found.setdefault((str(key[0]), str(key[1]), str(key[2])), []).append(rows["value"].to_numpy())
        values = {key: np.stack(runs, axis=1) for key, runs in found.items()}
        n_users = len(next(iter(values.values())))
        keys = Ids.of(np.arange(n_users)).keys()
        drawn = weights_of(keys, np.arange(resamples, dtype=np.uint64), seed=seed, purpose="users of runs")
        return cls(np.concatenate([np.ones((1, n_users)), drawn]), values)

    def mean(self, recommender: str, test: str, metric: str = "Recall") -> Floats:
        value = self.values[recommender, test, metric]
        known = ~np.isnan(value)
        with np.errstate(invalid="ignore", divide="ignore"):
            of_runs = (self.weights @ np.where(known, value, 0.0)) / (self.weights @ known.astype(np.float64))
        return np.asarray(of_runs.mean(axis=1))

    def percent(self, recommender: str, test: str, *, truth: str = DROP, metric: str = "Recall") -> Floats:
        """By how many percent the mean on a test set differs from that on the truth: a ratio of means."""
        return np.asarray(100 * (self.mean(recommender, test, metric) / self.mean(recommender, truth, metric) - 1))


def interval(values: Floats) -> tuple[float, float, float]:
    """The value, and the percentiles of its resamples."""
    low, high = np.nanquantile(values[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(values[0]), float(low), float(high)
