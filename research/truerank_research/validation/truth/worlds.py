"""The worlds of the study, drawn many times: what each draw reports, beside the truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import polars as pl
from polars.dataframe.group_by import GroupBy

from truerank.core.arrays import Ints
from truerank.core.rng import generator
from truerank.core.terms import Smooth
from truerank.inference.intervals import Population
from truerank.inference.linearization import Spread
from truerank_research.runner import Run
from truerank_research.validation.truth.contenders import CONTENDERS, Contender, ShownRows
from truerank_research.validation.truth.known import FIRST, KnownWorld, SyntheticSettings, jester, kuairec, synthetic

PUBLISHED = "published"
REFERENCES = {"Precision": ("horvitz-thompson", "hajek"), "Recall": ("pooled", PUBLISHED)}
KEY = ("what", "metric", "estimator")
HELD = (pl.col("low") <= pl.col("truth")) & (pl.col("truth") <= pl.col("high"))


def summary(drawn: pl.DataFrame) -> pl.DataFrame:
    """A row for each model or difference, metric and contender: mean, variance, coverage, share of right signs."""
    value, truth = pl.col("value"), pl.col("truth")
    has = pl.col("low").is_not_null() & pl.col("low").is_not_nan()
    return (
        drawn.filter(value.is_not_nan())
        .group_by(KEY, maintain_order=True)
        .agg(
            draws=pl.len(),
            truth=truth.first(),
            mean=value.mean(),
            variance=value.var(),
            covered=HELD.filter(has).mean(),
            intervals=has.sum(),
            right_sign=(value.sign() == truth.sign()).mean(),
            warned=pl.col("warned").mean(),
        )
        .with_columns(
            difference=pl.col("what").str.contains(" - ", literal=True),
        )
    )


RATIO = pl.col("square").mean() / pl.col("base").mean()


def _noise(ratio: pl.Expr) -> pl.Expr:
    """The Monte-Carlo error of a ratio of two estimators in the same draws.

    It is that of the slope of one square on the other, by the deviations e_i² / s² - f_i² / t² of the draws.
    """
    return ratio * (pl.col("share") - pl.col("base_share")).std() / pl.len().sqrt()


def _beside(drawn: pl.DataFrame, centre: pl.Expr, reference: str) -> GroupBy:
    """Squares about a centre beside those of a reference in the same draws, by row of `summary`."""
    squares = drawn.filter(pl.col("value").is_not_nan()).with_columns(square=(pl.col("value") - centre) ** 2)
    squares = squares.with_columns(share=pl.col("square") / pl.col("square").mean().over(KEY))
    base = squares.filter(pl.col("estimator") == reference).select(
        "run", *KEY[:2], base="square", base_share="share", base_value="value"
    )
    return squares.join(base, on=["run", *KEY[:2]]).group_by(KEY, maintain_order=True)


def ratios(drawn: pl.DataFrame) -> pl.DataFrame:
    """Of each row of `summary` the variance over that of the references of its metric, with its Monte-Carlo error."""
    mean = pl.col("value").mean().over(KEY)
    return pl.concat(
        _beside(drawn.filter(pl.col("metric").str.starts_with(metric)), mean, reference).agg(
            reference=pl.lit(reference).first(), ratio=RATIO, noise=_noise(RATIO)
        )
        for metric, references in REFERENCES.items()
        for reference in references
    )


def errors(drawn: pl.DataFrame) -> pl.DataFrame:
    """Of each estimator of mean recall the root mean squared error over that of the published mean in the same draws.

    With its Monte-Carlo error, and the bias of the published mean as a share of the truth.
    """
    error, truth = RATIO.sqrt(), pl.col("truth").first()
    found = _beside(drawn, pl.col("truth"), PUBLISHED).agg(
        error_published=error,
        noise_error=_noise(error / 2),
        published_bias=(pl.col("base_value").mean() - truth) / truth.abs(),
    )
    return found.filter(pl.col("estimator") != PUBLISHED)


BLOCK = 50  # draws of a piece
SCHEMA: dict[str, Any] = {"run": pl.Int64} | dict.fromkeys(KEY, pl.String) | {
    "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "warned": pl.Boolean,
}  # fmt: skip
Reported = tuple[str, str, str, Spread, bool]  # what, metric, estimator, value with its interval, is it warned of


class DrawnWorld(Protocol):
    """A dataset whose truth is known; its representation tells it from others."""

    def reported(self, seed: int, run: int) -> Iterable[Reported]:
        """Every value and every difference of one draw."""
        ...

    def true_values(self, seed: int) -> Mapping[tuple[str, str, str], float]:
        """What each value and difference estimates, by what, metric and estimator."""
        ...


def draw_block(world: DrawnWorld, seed: int, first: int, last: int) -> pl.DataFrame:
    """What some draws report."""
    rows = [
        (run, *key, spread.value, spread.low, spread.high, is_warned)
        for run in range(first, last)
        for *key, spread, is_warned in world.reported(seed, run)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


World = TypeVar("World", bound=DrawnWorld)


def draw_worlds(run: Run, worlds: Sequence[World], *, draws: int) -> Iterator[tuple[World, pl.DataFrame]]:
    """Each dataset with what all its draws report, and the truth."""
    starts = range(0, draws, BLOCK)
    arguments = [(world, run.seed, first, min(first + BLOCK, draws)) for world in worlds for first in starts]
    tables = iter(run.pieces(draw_block, arguments))
    for world in worlds:
        drawn = pl.concat([next(tables) for _ in starts])
        values = world.true_values(run.seed)
        truth = [values[key] for key in drawn.select(KEY).rows()]
        yield world, drawn.with_columns(pl.Series("truth", truth, dtype=pl.Float64))


MOST_USERS = 1411  # in a draw
WITH_INTERVALS = 4  # of so many draws one: they cost most of the time
CUTOFFS = (5, 10, 50, 500)
Pair = tuple[str, str]

SYNTHETIC = {
    "tastes": SyntheticSettings(),
    "30% like nothing": SyntheticSettings(disliking=0.3),
    "rising recall": SyntheticSettings(rising=True),
}
REAL = {"kuairec": kuairec, "jester": jester}


@dataclass(frozen=True, slots=True)
class TruthWorld:
    """A world in which `judged` items of each of so many users are shown at random."""

    source: str
    judged: int
    cutoffs: tuple[int, ...] = CUTOFFS
    folder: Path | None = field(default=None, repr=False)  # of real data: its place does not matter

    @property
    def name(self) -> str:
        return f"{self.source}, {self.judged} judged"

    def known(self, seed: int) -> KnownWorld:
        return _known(self.source, self.folder, seed)

    def draw(self, seed: int, run: int) -> ShownRows:
        """Users with repeats, and for each of them items at random."""
        world = self.known(seed)
        rng = generator(seed, f"truth {self.name} {run}")
        n = min(world.n_users, MOST_USERS)
        user = rng.integers(0, world.n_users, n)
        return ShownRows(world, user, _subsets(rng, n, world.n_items, self.judged), seed)

    def reported(self, seed: int, run: int) -> Iterator[Reported]:
        """Every value and every difference from the first model; in every fourth draw with its interval."""
        draw = self.draw(seed, run)
        spreads = Population().spreads if run % WITH_INTERVALS == 0 else _values_alone
        for contender, k in self.asked(draw.world):
            terms: dict[str, Smooth] = {model: contender.terms(draw, model, k) for model in draw.world.rank}
            alone, apart = spreads(terms, pairs_of(terms), level=0.95)
            for what, spread in named(alone, apart):
                yield what, f"{contender.metric}@{k}", contender.name, spread, False

    def asked(self, world: KnownWorld) -> list[tuple[Contender, int]]:
        return [(each, k) for each in CONTENDERS for k in self.cutoffs if k < world.n_items]

    def true_values(self, seed: int) -> dict[tuple[str, str, str], float]:
        world = self.known(seed)
        return {
            (what, f"{contender.metric}@{k}", contender.name): value
            for contender, k in self.asked(world)
            for what, value in contender.truths(world, k).items()
        }


def _subsets(rng: np.random.Generator, n: int, size: int, number: int) -> Ints:
    """So many different numbers below a size, n times, in order; no number is treated unlike another.

    >>> found = _subsets(generator(1, "example"), 3, 10, 4)
    >>> bool((np.diff(found, axis=1) > 0).all()), found.shape
    (True, (3, 4))
    """
    found = np.sort(rng.integers(0, size, (n, number)), axis=1)
    while (again := found[:, 1:] == found[:, :-1]).any():
        found[:, 1:][again] = rng.integers(0, size, int(again.sum()))
        found.sort(axis=1)
    return found


def pairs_of(models: Iterable[str]) -> list[Pair]:
    """Every model with the first."""
    return [(model, FIRST) for model in models if model != FIRST]


def named(alone: Mapping[str, Spread], apart: Mapping[Pair, Spread]) -> list[tuple[str, Spread]]:
    return [*alone.items(), *((f"{model} - {first}", spread) for (model, first), spread in apart.items())]


def _values_alone(
    terms: dict[str, Smooth], pairs: list[Pair], *, level: float
) -> tuple[dict[str, Spread], dict[Pair, Spread]]:
    """To the last digits: totals are plain sums."""
    del level
    values = {name: float(each.form.values(each.sums.sum(axis=0)[None])[0]) for name, each in terms.items()}
    return (
        {name: Spread.unknown(value) for name, value in values.items()},
        {(one, other): Spread.unknown(values[one] - values[other]) for one, other in pairs},
    )


@lru_cache(maxsize=8)  # worlds take turns, and each takes longer to make than its draws
def _known(source: str, folder: Path | None, seed: int) -> KnownWorld:
    if source in SYNTHETIC:
        return synthetic(SYNTHETIC[source], seed=seed)
    assert folder is not None
    return REAL[source](folder, seed=seed)


def worlds(run: Run) -> tuple[TruthWorld, ...]:
    """The simulated datasets, and the real ones where there are data."""
    chosen = [TruthWorld(source, judged) for source in SYNTHETIC for judged in (10, 20, 80)]
    if not run.source.is_synthetic:
        folder = run.source.path("kuairec")
        chosen += [TruthWorld("kuairec", judged, folder=folder) for judged in (10, 20, 80)]
        chosen += [TruthWorld("jester", judged, (5, 20), run.source.path("jester")) for judged in (10, 20, 40)]
    return tuple(chosen)
