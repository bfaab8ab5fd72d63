"""Does an interval that holds at every look keep its word? Streams of users whose truth is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import norm

from truerank.core.arrays import Floats
from truerank.core.rng import generator
from truerank.inference.sequences import FIRST, ConfidenceSequence
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

ALPHA, POWER = 0.05, 0.8
AT_ONCE = 50  # runs that are drawn and kept together


@dataclass(frozen=True, slots=True)
class UserStream:
    """Users whose paired difference is 0 but for the informative: `better` of these win 1, the others lose `times`."""

    name: str
    informative: float
    better: float = 0.5
    times: float = 1.0
    tail: float = 0.0  # of a lognormal size of each difference

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Differences [runs x users]."""
        tells = rng.random(shape) < self.informative
        sign = np.where(rng.random(shape) < self.better, 1.0, -self.times)
        size = np.exp(self.tail * rng.normal(size=shape)) if self.tail else 1.0
        return np.asarray(tells * sign * size)

    @property
    def mean(self) -> float:
        size = math.exp(self.tail**2 / 2)
        return round(self.informative * (self.better - (1 - self.better) * self.times) * size, 12)

    @property
    def sd(self) -> float:
        square = self.informative * (self.better + (1 - self.better) * self.times**2) * math.exp(2 * self.tail**2)
        return math.sqrt(square - self.mean**2)

    @property
    def fixed(self) -> float:
        """Users that a single test at a fixed number needs for 80 % power."""
        z = float(norm.ppf(1 - ALPHA / 2) + norm.ppf(POWER))
        return math.inf if self.mean == 0 else (z * self.sd / self.mean) ** 2


STREAMS = (
    UserStream("equal, 50 % tell them apart", 0.5),
    UserStream("equal, 10 %", 0.1),
    UserStream("equal, 2 %", 0.02),
    UserStream("equal, 20 %, sizes lognormal 1", 0.2, tail=1.0),
    UserStream("equal, 20 %: 4 win 1, 1 loses 4", 0.2, better=0.8, times=4.0),
    UserStream("equal, 2 %: 9 win 1, 1 loses 9", 0.02, better=0.9, times=9.0),
    UserStream("better, 20 %: .56 prefer it", 0.2, better=0.5 + 0.5 * 0.1281),
    UserStream("better, 20 %: .60", 0.2, better=0.6),
    UserStream("better, 50 %: .55", 0.5, better=0.55),
    UserStream("better, 20 %, sizes lognormal .5: .62", 0.2, better=0.62, tail=0.5),
)


@dataclass(frozen=True, slots=True, eq=False)
class RunningMean:
    """The mean of the first t of numbers that arrive in order, its standard error, and how many are not 0.

    >>> found = RunningMean.of(np.array([1.0, 0.0, 2.0]))
    >>> found.mean.tolist(), found.informative.tolist()
    ([1.0, 0.5, 1.0], [1, 1, 2])
    """

    mean: Floats
    stderr: Floats
    df: Floats
    skewness: Floats
    informative: np.ndarray

    @classmethod
    def of(cls, values: Floats) -> RunningMean:
        """Along the last axis: one run, or several at once."""
        t = np.arange(1.0, values.shape[-1] + 1)
        centre = values.mean(axis=-1, keepdims=True)  # sums of powers around it lose no digits
        total, squares, cubes, fourths = (np.cumsum((values - centre) ** power, axis=-1) for power in (1, 2, 3, 4))
        m = total / t
        second = np.maximum(squares - t * m**2, 0.0)
        third = cubes - 3 * m * squares + 2 * t * m**3
        fourth = fourths - 4 * m * cubes + 6 * m**2 * squares - 3 * t * m**4
        some = second > 1e-12 * np.maximum(squares, 1e-300)
        spread = np.where(some, second, 1.0)
        excess = np.where(some, t * fourth / spread**2 - 1, 0.0)
        df = np.divide(2 * t, excess, out=t.copy() + np.zeros_like(m), where=excess > 1e-12) - 1
        return cls(
            centre + m,
            np.where(some, np.sqrt(spread / (np.maximum(t - 1, 1) * t)), 0.0),
            np.clip(df, 1.0, np.maximum(t - 1, 1.0)),
            np.where(some, third / spread**1.5, 0.0),
            np.cumsum(values != 0, axis=-1),
        )

    def interval(self, sequence: ConfidenceSequence) -> tuple[Floats, Floats]:
        """Low and high at every t; NaN before enough users tell the models apart."""
        t = np.arange(1.0, self.mean.shape[-1] + 1)
        able = (self.informative >= FIRST) & (self.stderr > 0)
        low, high = sequence.interval(self.mean, self.stderr, self.df, self.skewness, t)
        return np.where(able, low, math.nan), np.where(able, high, math.nan)


def watch_stream(stream: UserStream, users: int, seed: int, first: int) -> pl.DataFrame:
    """A row for each run; `peeked` is whether an ordinary interval is wrong at any look, `stopped` 0 for never."""
    rng = generator(seed, f"watch {stream.name} {first}")
    running = RunningMean.of(stream.draw(rng, (AT_ONCE, users)))
    planned = users if math.isinf(stream.fixed) else max(round(stream.fixed), 1)
    low, high = running.interval(ConfidenceSequence(planned, ALPHA))
    usual = np.where(running.informative >= FIRST, norm.ppf(1 - ALPHA / 2) * running.stderr, np.nan)
    wrong = (low > stream.mean) | (high < stream.mean)
    peeked = np.abs(running.mean - stream.mean) > usual
    significant = (low > 0) | (high < 0)
    stopped = np.where(significant.any(axis=1), significant.argmax(axis=1) + 1, 0)
    return pl.DataFrame({"wrong": wrong.any(axis=1), "peeked": peeked.any(axis=1), "stopped": stopped})


def measure(run: Run) -> Measured:
    """An ordinary interval and that of `truerank watch`, both looked at after every user."""
    users, runs = (12_000, 2000) if run.full else (1500, AT_ONCE)
    starts = range(0, runs, AT_ONCE)
    arguments = [(stream, users, run.seed, first) for stream in STREAMS for first in starts]
    tables = run.pieces(watch_stream, arguments, about="drawing streams")
    n = len(starts)
    rows = [_row(stream, pl.concat(tables[at * n : (at + 1) * n]), users) for at, stream in enumerate(STREAMS)]
    return Measured({"streams": rows}, {"runs": runs, "users": users})


def _row(stream: UserStream, drawn: pl.DataFrame, users: int) -> dict[str, Any]:
    """Shares of runs; the median stop of a stream that was not shown counts as one user more than there are."""
    stopped = drawn["stopped"].to_numpy()
    return {
        "stream": stream.name,
        "loses": stream.times,
        "wrong": float(drawn["wrong"].to_numpy().mean()),
        "peeked": float(drawn["peeked"].to_numpy().mean()),
        "shown": float((stopped > 0).mean()),
        "fixed": stream.fixed,
        "median": float(np.median(np.where(stopped > 0, stopped, users + 1))),
    }


STUDIES = (
    Study(
        "watch", "How often is an anytime-valid interval ever wrong, and how many users does it need?",
        measure, minutes=1,
    ),
)  # fmt: skip
