"""What a fit of a position model reports; and position bias from clicks, where all displayed items are logged.

P(click | item, rank) = θ_rank q_item, fitted by expectation-maximisation or by intervention harvesting. Only products
are observed, so θ is identified up to its value at rank 1, which is set to 1, and only between ranks that some item
connects. These fits have no intervals.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints, sums_by
from truerank.core.errors import RefusedError, some
from truerank.core.record import record
from truerank.exposure.counts import sum_cells
from truerank.exposure.positions.position_models import PositionModel, Table

LEAST_EXPECTED = 5.0  # expected events in a bucket, the usual rule for a chi-square
GROWTH = 1.4  # each bucket reaches about so many times deeper than the one before


@record
class Parameter:
    """A fitted number with its standard error and interval, as far as there are any."""

    name: str
    value: float
    stderr: float = math.nan
    low: float = math.nan
    high: float = math.nan


@record
class Bucket:
    """Depths `first` to `last`: how many sessions came there, how many stopped there, how many the model expected.

    `observed_view` and `expected_view` are the share of sessions that reach `first`, observed (Kaplan-Meier) and by the
    model. Buckets of fits from clicks count impressions and clicks at one rank instead.
    """

    first: int
    last: int
    at_risk: float
    observed: float
    expected: float
    observed_view: float
    expected_view: float


@record
class Goodness:
    """χ² = Σ (observed - expected)² / variance over buckets; a small p rejects the model.

    With very many sessions every model fails: look at the buckets before the p-value.
    """

    buckets: tuple[Bucket, ...]
    statistic: float
    p: float


@record
class PositionFit:
    """A fitted position model and how well it describes what it was fitted to.

    `list_end` is the rank at which lists were recognised to end, where no column of the log gives it. A table has no
    likelihood.
    """

    model: PositionModel
    parameters: tuple[Parameter, ...]
    n: int
    n_censored: int
    goodness: Goodness
    log_likelihood: float = math.nan
    notes: tuple[str, ...] = ()
    list_end: int | None = None

    @property
    def parameter(self) -> Parameter:
        """The one parameter of a family that has one."""
        (only,) = self.parameters
        return only


def normal_quantile(level: float) -> float:
    """z of a two-sided interval."""
    from truerank.core.special import ndtri

    return float(ndtri(0.5 + level / 2))


def chi_square(observed: Floats, expected: Floats, variance: Floats, *, parameters: int) -> tuple[float, float]:
    """Statistic and p; nan where there are no degrees of freedom left.

    >>> chi_square(np.array([12.0]), np.array([10.0]), np.array([4.0]), parameters=0)[0]
    1.0
    """
    from truerank.core.special import chdtrc

    degrees = len(observed) - parameters
    if degrees < 1:
        return math.nan, math.nan
    statistic = float(np.sum((observed - expected) ** 2 / variance))
    return statistic, float(chdtrc(degrees, statistic))


def goodness_by_depth(n: Floats, stops: Floats, *, view: Floats, parameters: int) -> Goodness:
    """Of sessions that could stop at depths 1, 2, ... and those that did, in buckets that widen with depth.

    A bucket's expected count is Σ_k n_k h_k, its variance Σ_k n_k h_k (1 - h_k), n_k the sessions that could stop at k
    and h_k = 1 - P(V | k + 1) / P(V | k): right under censoring too, because stops given who came there are
    independent. `view` has one rank more.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        hazard = np.where(view[:-1] > 0, 1.0 - view[1:] / view[:-1], 0.0)
    expected = n * hazard
    edges = _edges(expected)
    starts = edges[:-1]
    sums = (stops, expected, expected * (1.0 - hazard))
    observed, mean, spread = (np.add.reduceat(values, starts) for values in sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        survival = np.cumprod(np.concatenate([[1.0], np.where(n > 0, 1.0 - stops / n, 1.0)]))
    columns = (n[starts], observed, mean, survival[starts], view[starts])
    buckets = tuple(
        Bucket(first + 1, last, *map(float, values))
        for first, last, *values in zip(starts, edges[1:], *columns, strict=True)
    )
    tested = spread > 0
    return Goodness(buckets, *chi_square(observed[tested], mean[tested], spread[tested], parameters=parameters))


def _edges(expected: Floats) -> list[int]:
    edges, last, whole = [0], len(expected), np.cumsum(expected)
    while edges[-1] < last:
        start = edges[-1]
        before = whole[start - 1] if start else 0.0
        enough = int(np.searchsorted(whole, before + LEAST_EXPECTED)) + 1
        edges.append(min(max(enough, int(start * GROWTH)), last))
    # a bucket with too few expected stops at the end joins the one before it
    if len(edges) > 2 and expected[edges[-2] : edges[-1]].sum() < LEAST_EXPECTED:
        edges.pop(-2)
    return edges


ROUNDS = 5_000
CLOSE = 1e-9
LEAST = 1e-9
FEW = 20  # impressions of an item below which its quality is so noisy that it bends θ
THIRDS = 3


@record(eq=False)
class ClickCells:
    """Clicks and other impressions of each item (or context-item pair) at each rank, which is all that the fits use."""

    item: Ints
    rank: Ints  # from 0
    clicks: Floats
    others: Floats

    @classmethod
    def from_table(cls, impressions: pl.DataFrame) -> ClickCells:
        """From rows of item, rank (from 0), clicks and other impressions; several may be of one cell."""
        columns = sum_cells(impressions).with_columns(pl.col("item").rank("dense").cast(pl.Int64) - 1)
        return cls(*(columns[name].to_numpy() for name in ("item", "rank", "clicks", "others")))

    @property
    def n_items(self) -> int:
        return int(self.item.max(initial=-1)) + 1

    @property
    def n_ranks(self) -> int:
        return int(self.rank.max(initial=-1)) + 1

    @property
    def displayed(self) -> Floats:
        """Log of each cell."""
        return self.clicks + self.others

    def by_item(self, values: Floats) -> Floats:
        return sums_by(self.item, values, n=self.n_items)

    def by_rank(self, values: Floats) -> Floats:
        return sums_by(self.rank, values, n=self.n_ranks)

    def log_likelihood(self, theta: Floats, quality: Floats) -> float:
        from truerank.core.special import xlog1py, xlogy

        p = theta[self.rank] * quality[self.item]
        return float((xlogy(self.clicks, p) + xlog1py(self.others, -p)).sum())


def fit_clicks(cells: ClickCells) -> PositionFit:
    """Maximum likelihood of θ_r and q_i together, by expectation-maximisation (Wang et al. 2018, without features).

    E: an item that was not clicked was viewed with probability θ(1 - q) / (1 - θq) and liked with q(1 - θ) / (1 - θq).
    M: θ_r and q_i are the means. Items with few impressions bias θ, because their q is fitted to their own noise.

    >>> table = {"item": [0, 0, 1, 1], "rank": [0, 1, 0, 1], "clicks": [8.0, 4.0, 4.0, 2.0], "others": [2.0, 6, 6, 8]}
    >>> [round(value, 4) for value in fit_clicks(ClickCells.from_table(pl.DataFrame(table))).model.probability]
    [1.0, 0.5]
    """
    check_connected(cells)
    theta, quality = _maximise(cells)
    few = int((cells.by_item(cells.displayed) < FEW).sum())
    notes = (f"{few:,} items have fewer than {FEW} impressions; their noise biases the fit",) if few else ()
    return _described(cells, theta, quality, notes=notes)


def fit_harvest(cells: ClickCells) -> PositionFit:
    """Intervention harvesting (Agarwal et al. 2019, all pairs): items displayed at two ranks compare these two ranks.

    For each pair of ranks the click rates of the items displayed at both are added up, each item once, so that no
    item's quality is estimated; θ and one quality per pair then maximise Σ ĉ ln(θq) + (1 - ĉ) ln(1 - θq). Needs that
    what moves an item between ranks does not depend on how good it is in that session.

    >>> table = {"item": [0, 0, 1, 1], "rank": [0, 1, 0, 1], "clicks": [8.0, 4.0, 4.0, 2.0], "others": [2.0, 6, 6, 8]}
    >>> [round(value, 4) for value in fit_harvest(ClickCells.from_table(pl.DataFrame(table))).model.probability]
    [1.0, 0.5]
    """
    check_connected(cells)
    theta = _maximise(_pairs(cells))[0]
    # each item's quality given θ: clicks over expected views
    views = cells.by_item(cells.displayed * theta[cells.rank])
    quality = np.minimum(cells.by_item(cells.clicks) / np.maximum(views, 1e-300), 1.0)
    return _described(cells, theta, quality, notes=())


def check_connected(cells: ClickCells) -> None:
    """Refused unless items that were ever clicked connect every rank with rank 1."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not cells.clicks.any():
        raise RefusedError(
            "no click in the log, so nothing tells ranks apart. Collect clicks, or name a position model."
        )
    n_items, size = cells.n_items, cells.n_items + cells.n_ranks
    missing = np.setdiff1d(np.arange(cells.n_ranks), cells.rank) + 1
    if len(missing):
        raise RefusedError(
            f"nothing was displayed at rank {some([str(rank) for rank in missing])}; expected every rank from 1."
        )
    useful = cells.by_item(cells.clicks)[cells.item] > 0
    edges = (np.ones(int(useful.sum())), (cells.item[useful], n_items + cells.rank[useful]))
    part = connected_components(coo_array(edges, shape=(size, size)), directed=False)[1][n_items:]
    apart = np.flatnonzero(part != part[0]) + 1
    if len(apart):
        raise RefusedError(
            f"rank {some([str(rank) for rank in apart])} shares no clicked item with rank 1, not even through other "
            "ranks: clicks there may come from good items or from many views. Randomise some rankings, or fit scroll "
            "depths."
        )


def _maximise(cells: ClickCells) -> tuple[Floats, Floats]:
    """θ with θ_1 = 1 and q by expectation-maximisation, sped up by squared extrapolation (Varadhan and Roland 2008).

    An extrapolated point is taken only if the likelihood rises there, so that every round rises it.
    """
    n_ranks, n_items, displayed = cells.n_ranks, cells.n_items, cells.displayed
    total = np.concatenate([cells.by_rank(displayed), cells.by_item(displayed)])

    def improved(now: Floats) -> Floats:
        t, q = now[:n_ranks][cells.rank], now[n_ranks:][cells.item]
        missed = np.maximum(1.0 - t * q, 1e-300)
        viewed, liked = t * (1 - q) / missed, q * (1 - t) / missed
        ranks = cells.by_rank(cells.clicks + cells.others * viewed)
        new = np.concatenate([ranks, cells.by_item(cells.clicks + cells.others * liked)])
        new = np.where(total > 0, new / np.maximum(total, 1e-300), now)
        new[0] = 1.0
        return np.asarray(new)

    def log_likelihood(now: Floats) -> float:
        return cells.log_likelihood(now[:n_ranks], now[n_ranks:])

    rate = np.clip(2 * cells.clicks.sum() / max(float(displayed.sum()), 1e-300), 0.01, 0.9)
    now = np.concatenate([np.arange(1.0, n_ranks + 1.0) ** -0.5, np.full(n_items, rate)])
    for _ in range(ROUNDS):
        first = improved(now)
        second = improved(first)
        move, bend = first - now, (second - first) - (first - now)
        if np.abs(second - first).max() < CLOSE:
            now = second
            break
        length = min(-1.0, -float(np.linalg.norm(move)) / max(float(np.linalg.norm(bend)), 1e-300))
        far = improved(np.clip(now - 2 * length * move + length**2 * bend, LEAST, 1.0))
        now = far if log_likelihood(far) >= log_likelihood(second) else second
    return now[:n_ranks], now[n_ranks:]


def _pairs(cells: ClickCells) -> ClickCells:
    """A cell for each of two ranks of every pair of ranks, with the rates of the items that were displayed at both."""
    rate, there = np.zeros((2, cells.n_items, cells.n_ranks))
    rows = cells.displayed > 0
    where = cells.item[rows], cells.rank[rows]
    rate[where], there[where] = cells.clicks[rows] / cells.displayed[rows], 1.0
    both = there.T @ there  # items displayed at both ranks
    clicked = rate.T @ there  # at [r, s]: rates at r of items that were displayed at s too
    first, second = np.nonzero(np.triu(both, 1) > 0)
    ranks, partners = np.concatenate([first, second]), np.concatenate([second, first])
    clicks = clicked[ranks, partners]
    return ClickCells(np.tile(np.arange(len(first)), 2), ranks, clicks, (both[ranks, partners] - clicks).clip(0.0))


def _described(cells: ClickCells, theta: Floats, quality: Floats, *, notes: tuple[str, ...]) -> PositionFit:
    if (np.diff(theta) > 0).any():
        notes = (*notes, "some rank was fitted above the one before it; the model is the nearest one that never rises")
    displayed = cells.by_rank(cells.displayed)
    return PositionFit(
        model=Table.of_frequencies(theta * displayed, displayed),
        parameters=tuple(Parameter(f"P(V|{rank})", value) for rank, value in enumerate(theta.tolist(), 1)),
        log_likelihood=cells.log_likelihood(theta, quality),
        n=round(float(cells.displayed.sum())),
        n_censored=0,
        goodness=_goodness(cells, theta, quality),
        notes=notes,
    )


def _goodness(cells: ClickCells, theta: Floats, quality: Floats) -> Goodness:
    """Clicks at each rank for the worst, middle and best third of items against Σ n θ q: does rank act on all alike?"""
    n_ranks, n = len(theta), cells.displayed
    third = np.argsort(np.argsort(quality, kind="stable"), kind="stable") * THIRDS // len(quality)
    part = cells.rank * THIRDS + third[cells.item]
    p = theta[cells.rank] * quality[cells.item]
    sums = np.stack([sums_by(part, values, n=n_ranks * THIRDS) for values in (n, cells.clicks, n * p, n * p * (1 - p))])
    tested = sums[3] > 0
    degrees = max((n_ranks - 1) * (THIRDS - 1), 0)
    test = chi_square(*sums[1:, tested], parameters=int(tested.sum()) - degrees)
    totals = sums.reshape(4, n_ranks, THIRDS).sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        columns = (*totals[:3], totals[1] / totals[2] * theta, theta)
    buckets = [Bucket(rank, rank, *map(float, row)) for rank, row in enumerate(zip(*columns, strict=True), 1)]
    return Goodness(tuple(buckets), *test)
