"""Likelihoods of scroll depths, each on a scale without bounds on which it is close to a parabola.

A session of depth D viewed ranks 1 ... D, so P(V = 1 | R = r) = P(D >= r). Every function gives its value and its first
two derivatives along the scale u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Protocol

import numpy as np

from truerank.core.arrays import Floats
from truerank.exposure.positions.position_models import Exponential, GeneralisedLog, PositionModel, YuleSimon

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
    from truerank.core.special import chdtrc

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


Derivatives = tuple[Floats, Floats, Floats]


class DepthFamily(Protocol):
    """A distribution of scroll depths with one parameter."""

    parameter: ClassVar[str]
    scale: ClassVar[str]

    def model(self, u: float, *, cutoff: int | None) -> PositionModel: ...
    def value(self, u: Floats) -> Floats: ...
    def slope(self, u: Floats) -> Floats:
        """How fast the parameter changes along u."""
        ...

    def reached(self, u: Floats, depth: Floats) -> Derivatives:
        """ln P(D >= depth): what a session whose feed ended there contributes."""
        ...

    def stopped(self, u: Floats, depth: Floats) -> Derivatives:
        """ln P(D = depth): what a session contributes that could have gone on."""
        ...


class Geometric:
    """P(D >= d) = γ^(d - 1); u = ln(γ / (1 - γ))."""

    parameter: ClassVar[str] = "gamma"
    scale: ClassVar[str] = "logit"

    def model(self, u: float, *, cutoff: int | None) -> PositionModel:
        return Exponential(1.0 / (1.0 + math.exp(-u)), cutoff=cutoff)

    def value(self, u: Floats) -> Floats:
        return np.asarray(1.0 / (1.0 + np.exp(-u)))

    def slope(self, u: Floats) -> Floats:
        return self.value(u) * self.value(-u)

    def reached(self, u: Floats, depth: Floats) -> Derivatives:
        on, off, n = self.value(u), self.value(-u), depth - 1.0
        return -n * np.log1p(np.exp(-u)), n * off, -n * on * off

    def stopped(self, u: Floats, depth: Floats) -> Derivatives:
        on, off = self.value(u), self.value(-u)
        value, first, second = self.reached(u, depth)
        return value - np.log1p(np.exp(u)), first - on, second - on * off


class Yule:
    """P(D >= d) = Γ(ρ + 1) Γ(d) / Γ(d + ρ), P(D = d) = P(D >= d) ρ / (d + ρ); u = ln ρ."""

    parameter: ClassVar[str] = "rho"
    scale: ClassVar[str] = "log"

    def model(self, u: float, *, cutoff: int | None) -> PositionModel:
        return YuleSimon(math.exp(u), cutoff=cutoff)

    def value(self, u: Floats) -> Floats:
        return np.exp(u)

    def slope(self, u: Floats) -> Floats:
        return np.exp(u)

    def reached(self, u: Floats, depth: Floats) -> Derivatives:
        from truerank.core.special import betaln, digamma, zeta

        rho = np.exp(u)
        first = rho * (digamma(rho + 1.0) - digamma(depth + rho))
        curve = zeta(2.0, rho + 1.0) - zeta(2.0, depth + rho)  # the trigamma function is ζ(2, ·)
        return u + betaln(depth, rho), first, rho**2 * curve + first

    def stopped(self, u: Floats, depth: Floats) -> Derivatives:
        value, first, second = self.reached(u, depth)
        stop = depth / (depth + np.exp(u))
        return value - np.log1p(depth * np.exp(-u)), first + stop, second - stop * (1.0 - stop)


class Logarithm:
    """P(D >= d) = 1 / g(d), g(d) = ln(e + α (d - 1)), P(D = d) = 1 / g(d) - 1 / g(d + 1); u = ln α."""

    parameter: ClassVar[str] = "alpha"
    scale: ClassVar[str] = "log"

    def model(self, u: float, *, cutoff: int | None) -> PositionModel:
        return GeneralisedLog(math.exp(u), cutoff=cutoff)

    def value(self, u: Floats) -> Floats:
        return np.exp(u)

    def slope(self, u: Floats) -> Floats:
        return np.exp(u)

    def reached(self, u: Floats, depth: Floats) -> Derivatives:
        g, first, second = self._growth(u, depth)
        return -np.log(g), -first / g, -second / g + (first / g) ** 2

    def stopped(self, u: Floats, depth: Floats) -> Derivatives:
        (_, first, second), (_, next_first, next_second) = self._growth(u, depth), self._growth(u, depth + 1.0)
        step = np.log1p(np.exp(u) / (math.e + np.exp(u) * (depth - 1.0)))  # g(d + 1) - g(d), without cancellation
        rise, bend = (next_first - first) / step, (next_second - second) / step
        here, there = self.reached(u, depth), self.reached(u, depth + 1.0)
        return np.log(step) + here[0] + there[0], rise + here[1] + there[1], bend - rise**2 + here[2] + there[2]

    def _growth(self, u: Floats, depth: Floats) -> Derivatives:
        whole = math.e + np.exp(u) * (depth - 1.0)
        share = 1.0 - math.e / whole
        return np.log(whole), share, share * (1.0 - share)


FAMILIES: dict[str, DepthFamily] = {
    "exp": Geometric(),
    "yule": Yule(),
    "log": Logarithm(),
    "generalised-log": Logarithm(),
}
