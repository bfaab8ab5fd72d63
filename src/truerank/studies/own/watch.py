"""Does an interval that holds at every look keep its word? Streams of users whose truth is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from scipy.stats import norm

from truerank.core.arrays import Floats
from truerank.core.chance import generator
from truerank.core.progress import Progress
from truerank.studies.own.study import StudyTables
from truerank.studies.work import Keep, StudySize, StudySource
from truerank.uncertainty.sequences import FIRST, ConfidenceSequence, RunningMean

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


@dataclass(frozen=True, slots=True)
class StreamRuns:
    """Some runs of a stream (a `WorkPiece`): when its interval first excludes the truth, and 0, if ever."""

    stream: UserStream
    users: int
    seed: int
    first: int

    @property
    def name(self) -> str:
        return f"{self.stream.name} {self.first}"

    def table(self) -> pl.DataFrame:
        """A row for each run; `peeked` is whether an ordinary interval is wrong at any look, `stopped` 0 for never."""
        stream = self.stream
        rng = generator(self.seed, f"watch {stream.name} {self.first}")
        found = RunningMean.of(stream.draw(rng, (AT_ONCE, self.users)))
        planned = self.users if math.isinf(stream.fixed) else max(round(stream.fixed), 1)
        low, high = found.interval(ConfidenceSequence(planned, ALPHA))
        usual = np.where(found.informative >= FIRST, norm.ppf(1 - ALPHA / 2) * found.stderr, np.nan)
        wrong = (low > stream.mean) | (high < stream.mean)
        peeked = np.abs(found.mean - stream.mean) > usual
        shown = (low > 0) | (high < 0)
        return pl.DataFrame(
            {
                "wrong": wrong.any(axis=1),
                "peeked": peeked.any(axis=1),
                "stopped": np.where(shown.any(axis=1), shown.argmax(axis=1) + 1, 0),
            }
        )


@dataclass(frozen=True, slots=True)
class WatchStudy:
    """An ordinary interval and that of `truerank watch`, both looked at after every user."""

    name: ClassVar[str] = "watch"
    about: ClassVar[str] = "Does an interval that holds at every look keep its word, and what does it cost?"
    data: ClassVar[tuple[str, ...]] = ()
    minutes: ClassVar[float] = 1.0

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> StudyTables:
        del source, progress
        users, runs = (12_000, 2000) if size is StudySize.FULL else (1500, AT_ONCE)
        pieces = [StreamRuns(each, users, seed, first) for each in STREAMS for first in range(0, runs, AT_ONCE)]
        tables = keep(pieces, about="drawing streams")
        drawn = {each: [table for piece, table in zip(pieces, tables, strict=True) if piece.stream == each]
                 for each in STREAMS}  # fmt: skip
        rows = [_row(stream, pl.concat(parts), users) for stream, parts in drawn.items()]
        return StudyTables({"streams": rows}, {"runs": runs, "users": users, "first look": FIRST})


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
