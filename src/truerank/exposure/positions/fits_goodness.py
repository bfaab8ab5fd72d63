"""Does a fitted model describe the data? Observed against expected counts in buckets, with a chi-square."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from truerank.core.arrays import Floats
from truerank.exposure.positions.model import PositionModel

LEAST_EXPECTED = 5.0  # expected events in a bucket, the usual rule for a chi-square
GROWTH = 1.4  # each bucket reaches about so many times deeper than the one before
DEEPEST = 10_000


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Goodness:
    """χ² = Σ (observed - expected)² / variance over buckets; a small p says that the model does not describe the data.

    With very many sessions every model fails: look at the buckets before the p-value.
    """

    buckets: tuple[Bucket, ...]
    statistic: float
    degrees: int
    p: float


def chi_square(observed: Floats, expected: Floats, variance: Floats, *, parameters: int) -> tuple[float, int, float]:
    """Statistic, degrees of freedom and p; nan where there are no degrees left.

    >>> chi_square(np.array([12.0]), np.array([10.0]), np.array([4.0]), parameters=0)[:2]
    (1.0, 1)
    """
    from scipy.special import chdtrc

    degrees = len(observed) - parameters
    if degrees < 1:
        return float("nan"), 0, float("nan")
    statistic = float(np.sum((observed - expected) ** 2 / variance))
    return statistic, degrees, float(chdtrc(degrees, statistic))


def at_risk(depth: Floats, stopped: Floats, censored: Floats, *, last: int) -> tuple[Floats, Floats]:
    """Sessions that could stop at each depth 1 ... last, and those that did.

    A session whose feed ended at L could have stopped at every depth before L, not at L itself.
    """
    kept = depth <= last
    at = depth[kept].astype(np.int64)
    stops = np.bincount(at, weights=stopped[kept], minlength=last + 2)[1 : last + 1]
    ends = np.bincount(at, weights=censored[kept], minlength=last + 2)[1 : last + 1]
    gone = np.cumsum(stops + ends)
    whole = float((stopped + censored).sum())
    return np.asarray(whole - gone + stops, dtype=np.float64), np.asarray(stops, dtype=np.float64)


def goodness_of_depths(
    model: PositionModel, depth: Floats, stopped: Floats, censored: Floats, *, parameters: int
) -> Goodness:
    """Stops in buckets of depth against those the model expects from the sessions that came there.

    A bucket's expected count is Σ_k n_k h_k, its variance Σ_k n_k h_k (1 - h_k), n_k the sessions that could stop at k
    and h_k = 1 - P(V | k + 1) / P(V | k): right under censoring too, because stops given who came there are
    independent.
    """
    last = int(min(depth.max(), DEEPEST))
    n, stops = at_risk(depth, stopped, censored, last=last)
    view = model.view(np.arange(1.0, last + 2.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        hazard = np.where(view[:-1] > 0, 1.0 - view[1:] / view[:-1], 0.0)
        survival = np.cumprod(np.concatenate([[1.0], np.where(n > 0, 1.0 - stops / n, 1.0)]))
    return bucketed(
        n=n,
        stops=stops,
        expected=n * hazard,
        variance=n * hazard * (1.0 - hazard),
        observed_view=survival[:-1],
        expected_view=view[:-1],
        parameters=parameters,
    )


def bucketed(
    *,
    n: Floats,
    stops: Floats,
    expected: Floats,
    variance: Floats,
    observed_view: Floats,
    expected_view: Floats,
    parameters: int,
) -> Goodness:
    """Depths 1, 2, ... gathered into buckets that widen with depth and hold enough expected stops."""
    edges = _edges(expected)
    parts = [slice(a, b) for a, b in pairwise(edges)]
    buckets = tuple(
        Bucket(
            first=part.start + 1,
            last=part.stop,
            at_risk=float(n[part.start]),
            observed=float(stops[part].sum()),
            expected=float(expected[part].sum()),
            observed_view=float(observed_view[part.start]),
            expected_view=float(expected_view[part.start]),
        )
        for part in parts
    )
    sums = np.array([variance[part].sum() for part in parts])
    usable = [at for at, value in enumerate(sums) if value > 0]
    statistic, degrees, p = chi_square(
        np.array([buckets[at].observed for at in usable]),
        np.array([buckets[at].expected for at in usable]),
        sums[usable],
        parameters=parameters,
    )
    return Goodness(buckets, statistic, degrees, p)


def _edges(expected: Floats) -> list[int]:
    edges, last, whole = [0], len(expected), np.cumsum(expected)
    while edges[-1] < last:
        start = edges[-1]
        before = whole[start - 1] if start else 0.0
        enough = int(np.searchsorted(whole, before + LEAST_EXPECTED)) + 1
        edges.append(min(max(enough, int(start * GROWTH)), last))
    # what is left at the end joins the bucket before it
    if len(edges) > 2 and expected[edges[-2] : edges[-1]].sum() < LEAST_EXPECTED:
        edges.pop(-2)
    return edges
