"""What a fit of a position model reports: parameters with intervals, and its goodness of fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Floats
from truerank.exposure.positions.position_models import PositionModel

LEAST_EXPECTED = 5.0  # expected events in a bucket, the usual rule for a chi-square
GROWTH = 1.4  # each bucket reaches about so many times deeper than the one before


@dataclass(frozen=True, slots=True)
class Parameter:
    """A fitted number with its standard error and interval."""

    name: str
    value: float
    stderr: float
    low: float
    high: float


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
    """χ² = Σ (observed - expected)² / variance over buckets; a small p rejects the model.

    With very many sessions every model fails: look at the buckets before the p-value.
    """

    buckets: tuple[Bucket, ...]
    statistic: float
    degrees: int
    p: float


@dataclass(frozen=True, slots=True)
class PositionFit:
    """A fitted position model and how well it describes what it was fitted to.

    `scale` is the one on which the interval is symmetric. `list_end` is the rank at which lists were recognised to end,
    where no column of the log gives it.
    """

    model: PositionModel
    parameters: tuple[Parameter, ...]
    scale: str
    log_likelihood: float
    n: int
    n_censored: int
    goodness: Goodness
    notes: tuple[str, ...] = ()
    list_end: int | None = None

    @property
    def parameter(self) -> Parameter:
        """The one parameter of a family that has one."""
        (only,) = self.parameters
        return only


def chi_square(observed: Floats, expected: Floats, variance: Floats, *, parameters: int) -> tuple[float, int, float]:
    """Statistic, degrees of freedom and p; nan where there are no degrees left.

    >>> chi_square(np.array([12.0]), np.array([10.0]), np.array([4.0]), parameters=0)[:2]
    (1.0, 1)
    """
    from truerank.core.special import chdtrc

    degrees = len(observed) - parameters
    if degrees < 1:
        return float("nan"), 0, float("nan")
    statistic = float(np.sum((observed - expected) ** 2 / variance))
    return statistic, degrees, float(chdtrc(degrees, statistic))


def goodness_by_depth(
    n: Floats, stops: Floats, *, expected: Floats, variance: Floats, view: Floats, parameters: int
) -> Goodness:
    """Of sessions that could stop at depths 1, 2, ... and those that did, in buckets that widen with depth."""
    edges = _edges(expected)
    starts = edges[:-1]
    observed, mean, spread = (np.add.reduceat(values, starts) for values in (stops, expected, variance))
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
