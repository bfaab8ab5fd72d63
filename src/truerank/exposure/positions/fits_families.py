"""Likelihoods of scroll depths, each on a scale without bounds on which it is close to a parabola.

A session of depth D viewed ranks 1 ... D, so P(V = 1 | R = r) = P(D >= r). Every function gives its value and its first
two derivatives along the scale u.
"""

from __future__ import annotations

import math
from typing import ClassVar, Protocol

import numpy as np

from truerank.core.arrays import Floats
from truerank.exposure.positions.exponential import Exponential
from truerank.exposure.positions.generalised_log import GeneralisedLog
from truerank.exposure.positions.model import PositionModel
from truerank.exposure.positions.yule_simon import YuleSimon

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
        from scipy.special import betaln, digamma, zeta

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
