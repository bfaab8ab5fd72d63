"""Position bias from clicks, where all displayed items are logged: expectation-maximisation, intervention harvesting.

P(click | item, rank) = θ_rank q_item. Only products are seen, so θ is known up to its value at rank 1, which is set to
1, and only between ranks that some item connects. Coverage is not claimed for these fits: bootstrap over sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats, Ints, sums_by
from truerank.core.chance import generator
from truerank.core.errors import InputError, RefusedError, some
from truerank.exposure.positions.fits import Parameter, PositionFit
from truerank.exposure.positions.fits_families import Bucket, Goodness, chi_square
from truerank.exposure.positions.position_models import Table
from truerank.io.impressions import Logged

ROUNDS = 5_000
CLOSE = 1e-9
LEAST = 1e-9
FEW = 20  # impressions of an item below which its quality is so noisy that it bends θ
THIRDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Clicks:
    """One row per displayed item: its item (or context-item pair), its rank, whether it was clicked, its session."""

    item: Ints
    position: Ints
    click: Floats
    session: Ints

    @classmethod
    def of(
        cls,
        item: npt.ArrayLike,
        position: npt.ArrayLike,
        click: npt.ArrayLike,
        *,
        logged: Logged,
        session: npt.ArrayLike | None = None,
    ) -> Clicks:
        """Checked rows. Logs of viewed items alone are refused: given a view, clicks carry no signal of the rank."""
        if Logged(logged) is Logged.VIEWED:
            raise RefusedError(
                "only viewed items are logged, and given a view a click says nothing of the rank (assumption 4). Fit "
                "the scroll depths instead (fit:yule, fit:exp), or log every displayed item."
            )
        items = np.unique(np.asarray(item), return_inverse=True)[1].reshape(-1)
        rank, clicked = np.asarray(position), np.asarray(click, dtype=np.float64)
        of = np.arange(len(items)) if session is None else np.unique(np.asarray(session), return_inverse=True)[1]
        if not len(items) == len(rank) == len(clicked) == len(of) or not len(items):
            raise InputError(f"{len(items)} items, {len(rank)} positions and {len(clicked)} clicks; expected as many.")
        if not ((clicked == 0) | (clicked == 1)).all():
            raise InputError(
                "a click that is neither 0 nor 1; expected binary clicks. Make other rewards binary first."
            )
        if not ((rank >= 1) & (rank == np.floor(rank))).all():
            raise InputError("a position below 1 or between ranks; expected whole numbers from 1.")
        return cls(items, rank.astype(np.int64), clicked, of.reshape(-1))


@dataclass(frozen=True, slots=True, eq=False)
class ClickCells:
    """Clicks and other impressions of each item at each rank, which is all that the fits use."""

    item: Ints
    rank: Ints  # from 0
    clicks: Floats
    others: Floats

    @classmethod
    def of(cls, rows: Clicks, weight: Floats | None = None) -> ClickCells:
        """From rows, each as often as its weight says."""
        each = np.ones(len(rows.item)) if weight is None else weight
        width = int(rows.position.max())
        key, row = np.unique(rows.item * width + rows.position - 1, return_inverse=True)
        clicks = sums_by(row, each * rows.click, n=len(key))
        others = sums_by(row, each * (1 - rows.click), n=len(key))
        return cls(key // width, key % width, clicks, others)

    @property
    def n_items(self) -> int:
        return int(self.item.max(initial=-1)) + 1

    @property
    def n_ranks(self) -> int:
        return int(self.rank.max(initial=-1)) + 1

    @property
    def shown(self) -> Floats:
        """Impressions of each cell."""
        return self.clicks + self.others


# ----------------------------------------------------------------------------------------------------------------- fits


def fit_clicks(rows: Clicks, *, replicates: int = 0, level: float = 0.95, seed: int = 0) -> PositionFit:
    """Maximum likelihood of θ_r and q_i together, by expectation-maximisation (Wang et al. 2018, without features).

    E: an item that was not clicked was viewed with probability θ(1 - q) / (1 - θq) and liked with q(1 - θ) / (1 - θq).
    M: θ_r and q_i are the means. Items with few impressions bias θ, because their q is fitted to their own noise.

    >>> item, rank = [0] * 20 + [1] * 20, ([1] * 10 + [2] * 10) * 2
    >>> clicks = ([1] * 8 + [0] * 2 + [1] * 4 + [0] * 6) + ([1] * 4 + [0] * 6 + [1] * 2 + [0] * 8)
    >>> fit = fit_clicks(Clicks.of(item, rank, clicks, logged=Logged.DISPLAYED))
    >>> [round(value, 4) for value in fit.model.probability]
    [1.0, 0.5]
    """
    fit = fit_click_cells(ClickCells.of(rows))
    if not replicates:
        return fit
    theta, n_ranks = _theta(fit), len(fit.parameters)
    quality = _maximise(ClickCells.of(rows), n_ranks)[1]

    def again(weight: Floats) -> Floats:
        return _maximise(ClickCells.of(rows, weight), n_ranks, start=(theta, quality))[0]

    return _with_bootstrap(fit, rows, again, replicates=replicates, level=level, seed=seed)


def fit_click_cells(cells: ClickCells) -> PositionFit:
    """The same from cells, without intervals."""
    n_ranks = _connected(cells)
    theta, quality, log_likelihood = _maximise(cells, n_ranks)
    few = int((sums_by(cells.item, cells.shown, n=cells.n_items) < FEW).sum())
    notes = (f"{few:,} items have fewer than {FEW} impressions; their noise biases the fit",) if few else ()
    return _described(cells, theta, quality, log_likelihood=log_likelihood, notes=notes)


def fit_harvest(rows: Clicks, *, replicates: int = 0, level: float = 0.95, seed: int = 0) -> PositionFit:
    """Intervention harvesting (Agarwal et al. 2019, all pairs): items seen at two ranks compare these two ranks.

    For each pair of ranks the click rates of the items shown at both are added up, each item once, so that no item's
    quality is estimated; θ and one quality per pair then maximise Σ ĉ ln(θq) + (1 - ĉ) ln(1 - θq). Needs that what
    moves an item between ranks does not depend on how good it is in that session.

    >>> item, rank = [0] * 20 + [1] * 20, ([1] * 10 + [2] * 10) * 2
    >>> clicks = ([1] * 8 + [0] * 2 + [1] * 4 + [0] * 6) + ([1] * 4 + [0] * 6 + [1] * 2 + [0] * 8)
    >>> fit = fit_harvest(Clicks.of(item, rank, clicks, logged=Logged.DISPLAYED))
    >>> [round(value, 4) for value in fit.model.probability]
    [1.0, 0.5]
    """
    fit = fit_harvest_cells(ClickCells.of(rows))
    if not replicates:
        return fit
    theta, n_ranks = _theta(fit), len(fit.parameters)

    def again(weight: Floats) -> Floats:
        return _harvested(ClickCells.of(rows, weight), n_ranks, start=theta)

    return _with_bootstrap(fit, rows, again, replicates=replicates, level=level, seed=seed)


def fit_harvest_cells(cells: ClickCells) -> PositionFit:
    """The same from cells, without intervals."""
    theta = _harvested(cells, _connected(cells))
    quality, log_likelihood = _qualities(cells, theta)
    return _described(cells, theta, quality, log_likelihood=log_likelihood, notes=())


def _theta(fit: PositionFit) -> Floats:
    return np.array([each.value for each in fit.parameters])


def _connected(cells: ClickCells) -> int:
    """The number of ranks; refused unless items that were ever clicked connect every rank with rank 1."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not cells.clicks.any():
        raise RefusedError(
            "no click in the log, so nothing tells ranks apart. Collect clicks, or name a position model."
        )
    useful = sums_by(cells.item, cells.clicks, n=cells.n_items)[cells.item] > 0
    n_items, n_ranks = cells.n_items, cells.n_ranks
    missing = sorted(set(range(1, n_ranks + 1)) - set((np.unique(cells.rank) + 1).tolist()))
    if missing:
        raise RefusedError(
            f"nothing was displayed at rank {some([str(r) for r in missing])}; expected every rank from 1."
        )
    edges = (np.ones(int(useful.sum())), (cells.item[useful], n_items + cells.rank[useful]))
    size = n_items + n_ranks
    part = connected_components(coo_array(edges, shape=(size, size)), directed=False)[1][n_items:]
    apart = np.flatnonzero(part != part[0]) + 1
    if len(apart):
        raise RefusedError(
            f"rank {some([str(r) for r in apart])} shares no clicked item with rank 1, not even through other ranks: "
            "clicks there may come from good items or from many views. Randomise some rankings, or fit scroll depths."
        )
    return n_ranks


def _maximise(
    cells: ClickCells, n_ranks: int, *, start: tuple[Floats, Floats] | None = None
) -> tuple[Floats, Floats, float]:
    """θ with θ_1 = 1 and q by expectation-maximisation, sped up by squared extrapolation (Varadhan and Roland 2008).

    An extrapolated point is kept only if the likelihood rises there, so that every round rises it.
    """
    if start is None:
        rate = np.clip(2 * cells.clicks.sum() / max(float(cells.shown.sum()), 1e-300), 0.01, 0.9)
        now = np.concatenate([np.arange(1.0, n_ranks + 1.0) ** -0.5, np.full(cells.n_items, rate)])
    else:
        now = np.concatenate([start[0], np.clip(start[1], 1e-6, 1 - 1e-6)])
    step = _Round(cells, n_ranks)
    value = step.log_likelihood(now)
    for _ in range(ROUNDS):
        one = step(now)
        two = step(one)
        move, bend = one - now, (two - one) - (one - now)
        if np.abs(two - one).max() < CLOSE:
            now = two
            break
        length = min(-1.0, -float(np.linalg.norm(move)) / max(float(np.linalg.norm(bend)), 1e-300))
        far = step(np.clip(now - 2 * length * move + length**2 * bend, LEAST, 1.0))
        reached, plain = step.log_likelihood(far), step.log_likelihood(two)
        now, value = (far, reached) if reached >= plain else (two, plain)
    return now[:n_ranks], now[n_ranks:], value


@dataclass(frozen=True, slots=True, eq=False)
class _Round:
    """One round of expectation-maximisation on (θ, q) in one vector."""

    cells: ClickCells
    n_ranks: int

    def __call__(self, now: Floats) -> Floats:
        cells, n_ranks = self.cells, self.n_ranks
        t, q = now[:n_ranks][cells.rank], now[n_ranks:][cells.item]
        shown = cells.shown
        missed = np.maximum(1.0 - t * q, 1e-300)
        viewed, liked = t * (1 - q) / missed, q * (1 - t) / missed
        total = np.concatenate([sums_by(cells.rank, shown, n=n_ranks), sums_by(cells.item, shown, n=cells.n_items)])
        new = np.concatenate(
            [
                sums_by(cells.rank, cells.clicks + cells.others * viewed, n=n_ranks),
                sums_by(cells.item, cells.clicks + cells.others * liked, n=cells.n_items),
            ]
        )
        # a rank or an item that a bootstrap sample lacks keeps its value
        new = np.where(total > 0, new / np.maximum(total, 1e-300), now)
        new[0] = 1.0
        return np.asarray(new)

    def log_likelihood(self, now: Floats) -> float:
        return _log_likelihood(self.cells, now[: self.n_ranks], now[self.n_ranks :])


def _log_likelihood(cells: ClickCells, theta: Floats, quality: Floats) -> float:
    p = theta[cells.rank] * quality[cells.item]
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(cells.clicks > 0, cells.clicks * np.log(p), 0.0)
        miss = np.where(cells.others > 0, cells.others * np.log1p(-p), 0.0)
    return float((hit + miss).sum())


def _harvested(cells: ClickCells, n_ranks: int, *, start: Floats | None = None) -> Floats:
    shown = cells.shown
    rate = np.zeros((cells.n_items, n_ranks))
    there = np.zeros((cells.n_items, n_ranks))
    kept = shown > 0
    rate[cells.item[kept], cells.rank[kept]] = cells.clicks[kept] / shown[kept]
    there[cells.item[kept], cells.rank[kept]] = 1.0
    both = there.T @ there  # items shown at both ranks
    clicked = rate.T @ there  # at [r, s]: rates at r of items that were shown at s too
    first, second = np.nonzero(np.triu(both, 1) > 0)
    pair = np.arange(len(first))
    pairs = ClickCells(
        item=np.concatenate([pair, pair]),
        rank=np.concatenate([first, second]),
        clicks=np.concatenate([clicked[first, second], clicked[second, first]]),
        others=np.concatenate(
            [both[first, second] - clicked[first, second], both[first, second] - clicked[second, first]]
        ).clip(0.0),
    )
    near = None
    if start is not None:
        shown = sums_by(pairs.item, pairs.shown, n=len(pair))
        near = start, sums_by(pairs.item, pairs.clicks, n=len(pair)) / shown / start.mean()
    return _maximise(pairs, n_ranks, start=near)[0]


def _qualities(cells: ClickCells, theta: Floats) -> tuple[Floats, float]:
    """Each item's quality given θ: clicks over expected views."""
    clicks = sums_by(cells.item, cells.clicks, n=cells.n_items)
    views = sums_by(cells.item, cells.shown * theta[cells.rank], n=cells.n_items)
    quality = np.minimum(clicks / np.maximum(views, 1e-300), 1.0)
    return quality, _log_likelihood(cells, theta, quality)


def _described(
    cells: ClickCells, theta: Floats, quality: Floats, *, log_likelihood: float, notes: tuple[str, ...]
) -> PositionFit:
    if (np.diff(theta) > 0).any():
        notes = (*notes, "some rank was fitted above the one before it; the model is the nearest one that never rises")
    shown = sums_by(cells.rank, cells.shown, n=len(theta))
    parameters = tuple(
        Parameter(f"P(V|{rank})", float(value), *([float("nan")] * 3)) for rank, value in enumerate(theta, 1)
    )
    return PositionFit(
        model=Table.of_frequencies(theta * shown, shown),
        parameters=parameters,
        scale="",
        log_likelihood=log_likelihood,
        n=round(float(cells.shown.sum())),
        n_censored=0,
        goodness=_goodness(cells, theta, quality),
        notes=notes,
    )


def _goodness(cells: ClickCells, theta: Floats, quality: Floats) -> Goodness:
    """Clicks at each rank for the worst, middle and best third of items against Σ n θ q: does rank act on all alike?"""
    shown = cells.shown
    third = np.argsort(np.argsort(quality, kind="stable"), kind="stable") * THIRDS // len(quality)
    n_ranks = len(theta)
    part = cells.rank * THIRDS + third[cells.item]
    p = theta[cells.rank] * quality[cells.item]
    sums = [sums_by(part, each, n=n_ranks * THIRDS) for each in (shown, cells.clicks, shown * p, shown * p * (1 - p))]
    used = sums[3] > 0
    statistic, degrees, value = chi_square(
        sums[1][used], sums[2][used], sums[3][used], parameters=int(used.sum()) - max((n_ranks - 1) * (THIRDS - 1), 0)
    )
    totals = [each.reshape(n_ranks, THIRDS).sum(axis=1) for each in sums]
    with np.errstate(invalid="ignore", divide="ignore"):
        observed_view = totals[1] / totals[2] * theta
    buckets = tuple(
        Bucket(
            first=r + 1,
            last=r + 1,
            at_risk=float(totals[0][r]),
            observed=float(totals[1][r]),
            expected=float(totals[2][r]),
            observed_view=float(observed_view[r]),
            expected_view=float(theta[r]),
        )
        for r in range(n_ranks)
    )
    return Goodness(buckets, statistic, degrees, value)


def _with_bootstrap(
    found: PositionFit, rows: Clicks, again: Callable[[Floats], Floats], *, replicates: int, level: float, seed: int
) -> PositionFit:
    """Standard errors and percentile intervals from sessions drawn with replacement."""
    rng, n = generator(seed, "position bootstrap"), int(rows.session.max()) + 1
    drawn = np.empty((replicates, len(found.parameters)))
    for at in range(replicates):
        weight = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
        drawn[at] = again(weight[rows.session])
    low, high = np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    stderr = drawn.std(axis=0, ddof=1)
    parameters = tuple(
        replace(each, stderr=float(stderr[at]), low=float(low[at]), high=float(high[at]))
        for at, each in enumerate(found.parameters)
    )
    return replace(found, parameters=parameters, scale="bootstrap over sessions")
