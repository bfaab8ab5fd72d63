"""Fits of position models to sessions that were drawn from known ones: bias, and coverage of their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.rng import generator
from truerank.exposure.positions.contextual import fit_contextual
from truerank.exposure.positions.depths import FAMILIES, Depths, fit_depths
from truerank.exposure.positions.fits import ClickCells, fit_clicks, fit_harvest
from truerank.exposure.positions.position_models import YuleSimon
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

LONG = 100_000  # a feed so long that hardly any depth is censored
N_SESSIONS = 500
CLICK_SESSIONS, CLICK_ITEMS, CLICK_RANKS = 3000, 30, 6
REPLICATES = 100
FEATURES = np.array([0.3, -0.2])
INTERCEPT = {"exp": float(np.log(4.0)), "yule": float(np.log(1.5)), "log": float(np.log(100.0))}
METHODS = {"expectation-maximisation": fit_clicks, "intervention harvesting": fit_harvest}
AT_ONCE = 100  # fits that are kept together


class PlantedFits(Protocol):
    """Numbers that are planted, and fits of sessions drawn from them; `str` is unique."""

    @property
    def planted(self) -> dict[str, float]: ...

    def fitted(self, run: int, *, seed: int) -> Floats:
        """(value, low, high) of each number in one run."""
        ...


# ------------------------------------------------------------------------------------------------- from scroll depths


def draw_depths(family: str, u: Floats, rng: np.random.Generator) -> Floats:
    """One scroll depth for each parameter on the family's scale, from the distribution itself."""
    value = FAMILIES[family].value(u)
    uniform = 1.0 - rng.random(len(u))
    if family == "exp":
        return 1.0 + np.floor(np.log(uniform) / np.log(value))
    if family == "yule":  # a geometric depth whose parameter is exp(-W), W exponential with rate ρ
        stop = np.exp(-rng.exponential(size=len(u)) / value)
        with np.errstate(divide="ignore"):
            return np.where(stop >= 1, 1.0, 1.0 + np.floor(np.log(uniform) / np.log1p(-np.minimum(stop, 1 - 1e-16))))
    return 1.0 + np.floor((np.exp(np.minimum(1.0 / uniform, 600.0)) - np.e) / value)  # the last d with 1 / g(d) > U


def cut(depth: Floats, shortest: int, longest: int, rng: np.random.Generator) -> tuple[Floats, Bools]:
    """Depths in feeds that end somewhere, and whether the feed ended first."""
    end = rng.integers(shortest, longest + 1, len(depth))
    return np.minimum(depth, end), depth >= end


@dataclass(frozen=True, slots=True)
class PlantedDepths:
    """Depths of one family with a planted parameter, in feeds that end at `shortest` to `longest`."""

    family: str
    value: float
    shortest: int
    longest: int
    n: int = N_SESSIONS

    def __str__(self) -> str:
        feed = f"{self.shortest:,}" if self.shortest == self.longest else f"{self.shortest:,} to {self.longest:,}"
        return f"{self.family}:{self.value:g}, feeds of {feed}, {self.n:,} sessions"

    @property
    def u(self) -> float:
        scale = FAMILIES[self.family].scale
        return float(np.log(self.value / (1 - self.value)) if scale == "logit" else np.log(self.value))

    @property
    def planted(self) -> dict[str, float]:
        return {FAMILIES[self.family].parameter: self.value}

    def fitted(self, run: int, *, seed: int) -> Floats:
        """(value, low, high) of the parameter."""
        rng = generator(seed, f"position {self} {run}")
        depth, censored = cut(draw_depths(self.family, np.full(self.n, self.u), rng), self.shortest, self.longest, rng)
        found = fit_depths(self.family, Depths.from_sessions(depth, censored=censored)).parameter
        return np.array([[found.value, found.low, found.high]])


DEPTHS = (
    PlantedDepths("exp", 0.8, LONG, LONG),
    PlantedDepths("exp", 0.8, 6, 6),
    PlantedDepths("exp", 0.9, 3, 40),
    PlantedDepths("exp", 0.5, LONG, LONG, n=100),
    PlantedDepths("yule", 1.5, LONG, LONG),
    PlantedDepths("yule", 1.5, 6, 6),
    PlantedDepths("yule", 0.5, 3, 40),
    PlantedDepths("yule", 2.3, LONG, LONG, n=100),
    PlantedDepths("log", 100.0, LONG, LONG),
    PlantedDepths("log", 100.0, 20, 20),
    PlantedDepths("log", 10.0, 3, 40),
)


@dataclass(frozen=True, slots=True)
class PlantedFeatures:
    """Depths whose parameter is a linear function of two features, on the family's scale."""

    family: str

    def __str__(self) -> str:
        return f"{self.family}, two features, {2 * N_SESSIONS:,} sessions, feeds of 30"

    @property
    def planted(self) -> dict[str, float]:
        return dict(zip(("intercept", "a", "b"), (INTERCEPT[self.family], *FEATURES.tolist()), strict=True))

    def fitted(self, run: int, *, seed: int) -> Floats:
        """(value, low, high) of the intercept and of each feature."""
        rng = generator(seed, f"contextual {self.family} {run}")
        features = rng.normal(size=(N_SESSIONS * 2, len(FEATURES)))
        u = INTERCEPT[self.family] + features @ FEATURES
        depth, censored = cut(draw_depths(self.family, u, rng), 30, 30, rng)
        fit = fit_contextual(self.family, depth, features=features, names=["a", "b"], censored=censored)
        return np.array([[each.value, each.low, each.high] for each in fit.parameters])


# -------------------------------------------------------------------------------------------------------- from clicks


def planted_bias() -> Floats:
    """P(V | rank) that clicks are drawn with."""
    return YuleSimon(1.0).view(np.arange(1.0, CLICK_RANKS + 1.0))


def click_rows(rng: np.random.Generator, *, sessions: int = CLICK_SESSIONS) -> tuple[Ints, Bools]:
    """Items and clicks [sessions x ranks] of a stochastic ranker that knows the items' quality, all of them logged."""
    theta = planted_bias()
    quality = rng.beta(2.0, 6.0, CLICK_ITEMS)
    key = np.log(quality) + rng.gumbel(size=(sessions, CLICK_ITEMS))
    item: Ints = np.argsort(-key, axis=1)[:, :CLICK_RANKS]
    click = rng.random(item.shape) < theta * quality[item]
    return item, click


def fit_with_bootstrap(method: str, rows: tuple[Ints, Bools], *, replicates: int, seed: int) -> Floats:
    """(value, low, high, standard error) of each rank: percentiles of fits to sessions drawn with replacement."""
    item, click = rows
    n, n_ranks = item.shape
    rng = generator(seed, "position bootstrap")
    rank = np.tile(np.arange(n_ranks), n)

    def theta(count: Floats) -> list[float]:
        of_row = np.repeat(count, n_ranks)
        clicks, others = of_row * click.ravel(), of_row * ~click.ravel()
        table = pl.DataFrame({"item": item.ravel(), "rank": rank, "clicks": clicks, "others": others})
        return [parameter.value for parameter in METHODS[method](ClickCells.from_table(table)).parameters]

    drawn = np.array([theta(np.bincount(rng.integers(0, n, n), minlength=n).astype(float)) for _ in range(replicates)])
    return np.column_stack([theta(np.ones(n)), *np.quantile(drawn, [0.025, 0.975], axis=0), drawn.std(axis=0, ddof=1)])


@dataclass(frozen=True, slots=True)
class PlantedClicks:
    """Clicks on displayed items, fitted by one of the methods."""

    method: str
    sessions: int = CLICK_SESSIONS
    replicates: int = REPLICATES

    def __str__(self) -> str:
        return self.method

    @property
    def planted(self) -> dict[str, float]:
        return {f"P(V|{at})": value for at, value in enumerate(planted_bias().tolist(), start=1) if at > 1}

    def fitted(self, run: int, *, seed: int) -> Floats:
        """(value, low, high) of each rank from the second on."""
        rows = click_rows(generator(seed, f"clicks {run}"), sessions=self.sessions)
        return fit_with_bootstrap(self.method, rows, replicates=self.replicates, seed=run)[1:, :3]


# ----------------------------------------------------------------------------------------------------------- the study


def fit_planted(fits: PlantedFits, seed: int, first: int, last: int) -> pl.DataFrame:
    """Some fits of what was planted: a row for each run and number."""
    rows = np.concatenate([fits.fitted(run, seed=seed) for run in range(first, last)])
    return pl.DataFrame(rows, schema=["a", "b", "c"], orient="row")


def fits_of(asked: Sequence[tuple[PlantedFits, int]], *, seed: int, run: Run) -> list[Floats]:
    """[runs x numbers x 3] of everything that is planted, each fitted so many times."""
    parts = [
        [(fits, seed, first, min(first + AT_ONCE, runs)) for first in range(0, runs, AT_ONCE)] for fits, runs in asked
    ]
    tables = iter(run.pieces(fit_planted, [piece for part in parts for piece in part], about="fitting position models"))
    return [
        np.concatenate([next(tables).to_numpy() for _ in part]).reshape(runs, -1, 3)
        for part, (_, runs) in zip(parts, asked, strict=True)
    ]


def recoveries(fits: PlantedFits, found: Floats) -> list[dict[str, Any]]:
    """How each planted number was found over many runs."""
    rows = []
    for at, (parameter, value) in enumerate(fits.planted.items()):
        estimate, low, high = found[:, at].T
        bias = float(estimate.mean()) - value
        rows.append(
            {
                "planted": str(fits),
                "parameter": parameter,
                "value": value,
                "mean": float(estimate.mean()),
                "bias": bias,
                "relative": bias / abs(value),
                "noise": float(estimate.std(ddof=1) / np.sqrt(len(found))),
                "coverage": float(((low <= value) & (value <= high)).mean()),
            }
        )
    return rows


def measure(run: Run) -> Measured:
    """Position models of each family and from clicks: what is found of what was planted, and how often it is held."""
    runs, few = (2000, 200) if run.full else (4, 2)
    clicks = [PlantedClicks(method) if run.full else PlantedClicks(method, 1000, 4) for method in METHODS]
    planted: dict[str, tuple[Sequence[PlantedFits], int]] = {
        "depths": (DEPTHS, runs),
        "features": ([PlantedFeatures(family) for family in INTERCEPT], runs),
        "clicks": (clicks, few),
    }
    asked = [(fits, n) for parts, n in planted.values() for fits in parts]
    found = dict(zip([fits for fits, _ in asked], fits_of(asked, seed=run.seed, run=run), strict=True))
    return Measured(
        {name: [row for fits in parts for row in recoveries(fits, found[fits])] for name, (parts, _) in planted.items()},
        {"runs": runs},
    )  # fmt: skip


STUDIES = (
    Study(
        "position-fits", "Do fits of position models recover known parameters?", measure, minutes=3,
    ),
)  # fmt: skip
