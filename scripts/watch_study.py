"""Does an interval that holds at every look keep its word? Streams of users with known truth: writes docs/results/watch.md.

python scripts/watch_study.py [FOLDER] [RUNS]
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import norm

from truerank.core.arrays import Floats
from truerank.core.chance import generator
from truerank.uncertainty.sequences import FIRST, ConfidenceSequence, RunningMean

OUT = Path("docs/results/watch.md")
USERS, RUNS, SEED, AT_ONCE = 12_000, 2000, 9, 50
ALPHA, POWER = 0.05, 0.8


@dataclass(frozen=True, slots=True)
class Stream:
    """Users whose paired difference is 0 but for a share of them; `losses` of those lose `times` as much as others win.

    Equal models have `better` .5 (or as many losses as even out); else that share of informative users prefer the first.
    """

    name: str
    informative: float
    better: float = 0.5
    times: float = 1.0
    tail: float = 0.0  # of a lognormal size of each difference

    def draw(self, rng: np.random.Generator, runs: int) -> Floats:
        shape = (runs, USERS)
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
    Stream("equal, 50 % tell them apart", 0.5),
    Stream("equal, 10 %", 0.1),
    Stream("equal, 2 %", 0.02),
    Stream("equal, 20 %, sizes lognormal 1", 0.2, tail=1.0),
    Stream("equal, 20 %: 4 win 1, 1 loses 4", 0.2, better=0.8, times=4.0),
    Stream("equal, 2 %: 9 win 1, 1 loses 9", 0.02, better=0.9, times=9.0),
    Stream("better, 20 %: .57 prefer it", 0.2, better=0.5 + 0.5 * 0.1281),
    Stream("better, 20 %: .60", 0.2, better=0.6),
    Stream("better, 50 %: .55", 0.5, better=0.55),
    Stream("better, 20 %, sizes lognormal .5: .62", 0.2, better=0.62, tail=0.5),
)


def block(stream: Stream, first: int, runs: int) -> pl.DataFrame:
    """When the interval first excludes the truth, and 0; and when ordinary intervals at every look would."""
    rng = generator(SEED, f"watch {stream.name} {first}")
    found = RunningMean.of(stream.draw(rng, runs))
    planned = USERS if math.isinf(stream.fixed) else max(round(stream.fixed), 1)
    low, high = found.interval(ConfidenceSequence(planned, ALPHA))
    t = np.arange(1.0, USERS + 1)
    usual = np.where(found.informative >= FIRST, norm.ppf(1 - ALPHA / 2) * found.sd / np.sqrt(t), np.nan)
    wrong = (low > stream.mean) | (high < stream.mean)
    peeked = np.abs(found.mean - stream.mean) > usual
    shown = (low > 0) | (high < 0)
    right = np.where(shown.any(axis=1), found.mean[np.arange(runs), shown.argmax(axis=1)] * stream.mean > 0, False)
    return pl.DataFrame(
        {
            "run": np.arange(first, first + runs),
            "wrong": wrong.any(axis=1),
            "peeked": peeked.any(axis=1),
            "stopped": np.where(shown.any(axis=1), shown.argmax(axis=1) + 1, 0),
            "right": right,
        }
    )


def study(folder: Path, runs: int) -> pl.DataFrame:
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, stream in enumerate(STREAMS):
        parts = []
        for first in range(0, runs, AT_ONCE):
            path = folder / f"{number}.{first}.parquet"
            if not path.exists():
                block(stream, first, AT_ONCE).write_parquet(path)
            parts.append(pl.read_parquet(path))
        drawn = pl.concat(parts)
        stopped = drawn.filter(pl.col("stopped") > 0)
        median = drawn.with_columns(at=pl.when(pl.col("stopped") > 0).then("stopped").otherwise(USERS + 1))[
            "at"
        ].median()
        rows.append(
            {"stream": stream.name, "runs": len(drawn), "wrong": drawn["wrong"].mean(), "peeked": drawn["peeked"].mean(),
             "shown": len(stopped) / len(drawn), "fixed": stream.fixed, "median": median}
        )  # fmt: skip
        print(rows[-1], flush=True)
    return pl.DataFrame(rows)


def page(found: pl.DataFrame) -> str:
    rows = found.to_dicts()
    equal, better = ([row for row in rows if math.isinf(row["fixed"]) == flag] for flag in (True, False))
    usual, ratio = [row["peeked"] for row in rows], [row["median"] / row["fixed"] for row in better]
    common = max(row["wrong"] for row in rows if "loses 9" not in row["stream"])
    runs = min(row["runs"] for row in rows)
    lines = [
        "# Does an interval that holds at every look keep its word?",
        "",
        "![Ever wrong: an ordinary interval looked at after every user, and the interval of truerank watch](watch.svg)",
        "",
        f"Looking at an ordinary 95 % interval after every user is wrong at some look in {min(usual):.0%} to {max(usual):.0%} of all runs. The interval of `truerank watch` is ever wrong in at most {common:.1%} of them (the bar is 7 %), but for one stream that no method can know. A difference that is there is shown after about as many users as a single "
        f"test needs that looks once: the median stop is at {min(ratio):.2f} to {max(ratio):.2f} of its size (the bar is 1.2).",
        "",
        f"{runs:,} runs of {USERS:,} users each, looked at after every user from the {FIRST}th on who tells the models apart; planned for the size of the single test (80 % power), for equal models for {USERS:,}. Written by `make watch-study`.",
        "",
        "| two equal models | ever wrong | ordinary interval ever wrong |",
        "|---|---|---|",
        *(f"| {row['stream']} | {row['wrong']:.1%} | {row['peeked']:.0%} |" for row in equal),
        "",
        "The last stream has losses nine times as large as wins, of one user in five hundred: before the first of them has come, nothing in the data tells of them.",
        "",
        "| one is better | ever wrong | shown within 12,000 | users that a single test needs | median stop | ratio |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row['stream']} | {row['wrong']:.1%} | {row['shown']:.1%} | {row['fixed']:,.0f} | {row['median']:,.0f} | {row['median'] / row['fixed']:.2f} |"
            for row in better
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "watch-runs")
    found = study(folder, int(sys.argv[2]) if len(sys.argv) > 2 else RUNS)
    OUT.write_text(page(found))
    from targeted_pictures import ever_wrong_picture

    OUT.with_suffix(".svg").write_bytes(ever_wrong_picture(found))


if __name__ == "__main__":
    main()
