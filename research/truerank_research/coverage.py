"""Coverage of intervals: draw random exposures of a fully observed dataset many times and count.

Design: the users stay, their judged items are redrawn. Population: users are redrawn with replacement from the fully
observed ones, each copy with its own judged items; the truth is over all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import generator
from truerank.core.estimator import Estimator
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Ranks
from truerank.core.terms import Smooth
from truerank.estimators import terms_of
from truerank.uncertainty.intervals import Interval, Population
from truerank_research.runner import Run

Asked = tuple[Metric, Estimator]
BLOCK = 50  # draws that are kept together


@dataclass(frozen=True, slots=True)
class ObservedWorld:
    """A fully observed world: the labels of every cell, and every cell's rank for each model."""

    labels: Log
    ranks: Mapping[str, Ranks]

    @property
    def n_users(self) -> int:
        return len(self.labels.users)

    @property
    def n_items(self) -> int:
        return len(self.labels.items)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often intervals held what they estimate, over all runs."""

    what: str
    metric: str
    estimator: str
    kind: str
    truth: float
    mean: float
    noise: float  # Monte-Carlo standard error of the mean
    covered: float
    width: float
    runs: int

    @property
    def bias(self) -> float:
        return self.mean - self.truth

    @property
    def unbiased(self) -> bool:
        """Within 3 Monte-Carlo standard errors, or 0.5 % of the truth."""
        return abs(self.bias) <= max(3 * self.noise, 0.005 * abs(self.truth))


class Drawing(Protocol):
    """A way to expose some of a world's cells for the given users (with repeats), each copy independently."""

    def __call__(
        self, truth: ObservedWorld, *, units: Ints, rng: np.random.Generator
    ) -> tuple[Log, dict[str, Ranks]]: ...


@dataclass(frozen=True, slots=True)
class Uniformly:
    """n judged items for each user, all sets equally likely."""

    n: int

    def __call__(self, truth: ObservedWorld, *, units: Ints, rng: np.random.Generator) -> tuple[Log, dict[str, Ranks]]:
        keys = rng.random((len(units), truth.n_items), dtype=np.float32)
        item = np.sort(np.argpartition(keys, self.n, axis=1)[:, : self.n], axis=1)
        return shown(truth, units, np.repeat(np.arange(len(units)), self.n), item.ravel())


@dataclass(frozen=True, slots=True)
class ByPropensity:
    """Each cell by itself with its `propensity` [users x items]; the log says `claimed`, which may be wrong."""

    propensity: Floats
    claimed: Floats | None = None

    def __call__(self, truth: ObservedWorld, *, units: Ints, rng: np.random.Generator) -> tuple[Log, dict[str, Ranks]]:
        unit, item = np.nonzero(rng.random((len(units), truth.n_items)) < self.propensity[units])
        log, ranks = shown(truth, units, unit, item)
        said = self.propensity if self.claimed is None else self.claimed
        return replace(log, propensity=said[units[unit], item]), ranks


def shown(truth: ObservedWorld, units: Ints, unit: Ints, item: Ints) -> tuple[Log, dict[str, Ranks]]:
    """The log that shows these cells, and their ranks; row j is an item of users[units[unit[j]]]."""
    row = units[unit] * truth.n_items + item
    labels = truth.labels
    log = Log(
        users=Ids.of(np.arange(len(units))),
        items=labels.items,
        user=unit,
        item=item,
        rewards={"label": labels.label[row]},
    )
    ranks = {
        name: replace(
            each,
            above=each.above[row],
            tied=each.tied[row],
            n_candidates=each.n_candidates[units],
            n_recommended=each.n_recommended[units],
            scored=each.scored[units],
        )
        for name, each in truth.ranks.items()
    }
    return log, ranks


def run_once(
    truth: ObservedWorld, asked: Sequence[Asked], *, drawing: Drawing, interval: Interval, seed: int, run: int
) -> Floats:
    """[question x (value, low, high)] of one draw: every model with every asked pair, then every difference."""
    rng = generator(seed, f"coverage {interval.name} {run}")
    everyone = np.arange(truth.n_users)
    units = everyone if interval.needs_rows else rng.integers(0, truth.n_users, truth.n_users)
    log, ranks = drawing(truth, units=units, rng=rng)
    rows = []
    for metric, estimator in asked:
        terms = _terms(log, ranks, metric, estimator, keep_rows=interval.needs_rows)
        pairs = [(b, a) for a, b in combinations(terms, 2)]
        values, differences = interval.spreads(terms, pairs, level=0.95)
        rows += [(spread.value, spread.low, spread.high) for spread in (*values.values(), *differences.values())]
    return np.array(rows)


def measure(
    truth: ObservedWorld,
    asked: Sequence[Asked],
    *,
    drawing: Drawing,
    runs: int,
    interval: Interval | None = None,
    seed: int,
) -> list[Coverage]:
    """Coverage of 95 % intervals of every model and every difference of two models."""
    interval = Population() if interval is None else interval
    work = _Run(truth, tuple(asked), drawing, interval, seed)
    found = np.array([work(run) for run in range(runs)])
    return _summed(truth, asked, found, interval)


class CoverageCase(Protocol):
    """What is drawn many times: a frozen value that is sent to processes, where it makes or reads its world once."""

    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def asked(self) -> tuple[Asked, ...]: ...
    @property
    def interval(self) -> Interval: ...
    def world(self) -> ObservedWorld: ...
    def drawing(self) -> Drawing: ...


def draw_case(case: CoverageCase, first: int, last: int) -> pl.DataFrame:
    """Some draws of a case: a row for each draw and question."""
    work = _Run(case.world(), case.asked, case.drawing(), case.interval, case.seed)
    with np.errstate(all="raise", under="ignore"):  # nothing undefined is counted in silence
        rows = np.concatenate([work(number) for number in range(first, last)])
    return pl.DataFrame(rows, schema=["value", "low", "high"], orient="row")


def measure_case(case: CoverageCase, *, draws: int, run: Run) -> list[Coverage]:
    """The same as `measure`, in stored pieces."""
    arguments = [(case, first, min(first + BLOCK, draws)) for first in range(0, draws, BLOCK)]
    tables = run.pieces(draw_case, arguments, about=f"drawing {case.name}")
    rows = np.concatenate([table.to_numpy() for table in tables])
    return _summed(case.world(), case.asked, rows.reshape(draws, -1, 3), case.interval)


def _summed(truth: ObservedWorld, asked: Sequence[Asked], found: Floats, interval: Interval) -> list[Coverage]:
    """What [run x question x (value, low, high)] say."""
    runs = len(found)
    questions = _questions(truth, asked)
    return [
        Coverage(
            what=what,
            metric=metric,
            estimator=estimator,
            kind=interval.name,
            truth=value,
            mean=float(found[:, at, 0].mean()),
            noise=float(found[:, at, 0].std(ddof=1) / np.sqrt(runs)),
            covered=float(((found[:, at, 1] <= value) & (value <= found[:, at, 2])).mean()),
            width=float((found[:, at, 2] - found[:, at, 1]).mean()),
            runs=runs,
        )
        for at, (what, metric, estimator, value) in enumerate(questions)
    ]


@dataclass(frozen=True, slots=True)
class _Run:
    """`run_once` with all but the run filled in, so that it can be sent to another process."""

    truth: ObservedWorld
    asked: tuple[Asked, ...]
    drawing: Drawing
    interval: Interval
    seed: int

    def __call__(self, run: int) -> Floats:
        return run_once(self.truth, self.asked, drawing=self.drawing, interval=self.interval, seed=self.seed, run=run)


def _questions(truth: ObservedWorld, asked: Sequence[Asked]) -> list[tuple[str, str, str, float]]:
    """What each row of a run estimates; on full labels, surely shown, every estimator gives its own estimand."""
    full = replace(truth.labels, propensity=np.ones(len(truth.labels)))
    found = []
    for metric, estimator in asked:
        terms = _terms(full, dict(truth.ranks), metric, estimator, keep_rows=False)
        values = {name: each.value() for name, each in terms.items()}
        pairs = [(f"{b} - {a}", values[b] - values[a]) for a, b in combinations(values, 2)]
        found += [(what, str(metric), estimator.about.name, value) for what, value in (*values.items(), *pairs)]
    return found


def _terms(
    log: Log, ranks: Mapping[str, Ranks], metric: Metric, estimator: Estimator, *, keep_rows: bool
) -> dict[str, Smooth]:
    return {
        name: terms_of(estimator, log, each, metrics=[metric], keep_rows=keep_rows)[0] for name, each in ranks.items()
    }
