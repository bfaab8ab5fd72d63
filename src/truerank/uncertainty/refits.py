"""Intervals where the position model is fitted to the same log: it is fitted anew without each part of the log."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.chance import cell_uniforms
from truerank.core.errors import InputError
from truerank.core.terms import Terms
from truerank.data.impressions import Impressions
from truerank.estimators.ranked.weights import Weighing
from truerank.exposure.positions.places import Positions
from truerank.uncertainty.intervals import Spread, common, normal
from truerank.uncertainty.ranked import Curve

PARTS = 40


@dataclass(frozen=True, slots=True)
class Refit:
    """A log; how position models are fitted to a part of it, and how each target is weighed there by name.

    Fits are kept by seed and group, since every estimator and reward needs the same ones. A part that cannot be fitted
    or weighed leaves intervals undefined; `notes` says why.
    """

    log: Impressions
    positions: Callable[[Impressions], Positions]
    weighing: Callable[[Impressions, Positions, str], Weighing]
    fits: dict[tuple[int, int], Positions | InputError] = field(default_factory=dict, compare=False)
    failures: dict[str, set[int]] = field(default_factory=dict, compare=False)

    def terms_without(
        self, group: Ints, g: int, *, estimator: Any, names: Sequence[str], reward: str, clips: Floats, seed: int
    ) -> dict[str, list[Terms]]:
        """The terms of every target and clip without group g; none of a target that cannot be weighed without it."""
        part = self.log.restrict(group[self.log.cluster] != g)
        if (seed, g) not in self.fits:
            try:
                self.fits[seed, g] = self.positions(part)
            except InputError as error:
                self.fits[seed, g] = error
        positions = self.fits[seed, g]
        if isinstance(positions, InputError):
            self.fail(f"the position model cannot be fitted: {positions}", g)
            return {}
        found = {}
        for name in names:
            try:
                weighing = self.weighing(part, positions, name)
                found[name] = [estimator.terms(weighing, reward=reward, clip=clip) for clip in clips.tolist()]
            except InputError as error:
                self.fail(f"{name} cannot be weighed: {error}", g)
        return found

    def fail(self, reason: str, g: int) -> None:
        self.failures.setdefault(reason, set()).add(g)

    def notes(self) -> tuple[str, ...]:
        return tuple(
            f"no interval: it needs the value without each part of the log in turn, and without {len(parts):,} of them "
            f"{reason}"
            for reason, parts in self.failures.items()
        )


def refitted(curve: Curve, estimator: Any, refit: Refit, *, reward: str, level: float, seed: int) -> Curve:
    """The same values with standard errors that include the fit: the delete-a-group jackknife.

    Clusters are dealt into G = 40 groups (fewer where there are fewer clusters); V_(g) is the value with the position
    model fitted, and the estimate made, without group g; Var = (G - 1) / G Σ (V_(g) - V̄)², Student's t with G - 1
    degrees of freedom. A difference is over the units that both targets define. Where some V_(g) is undefined, so is
    the standard error.
    """
    group = _groups(refit.log, seed=seed)
    n = int(group.max(initial=-1)) + 1
    if n < 2:
        return curve
    size = n, len(curve.clips)
    values = {name: np.full(size, math.nan) for name in curve.values}
    differences = {pair: np.full(size, math.nan) for pair in curve.differences}
    for g in range(n):
        terms = refit.terms_without(
            group, g, estimator=estimator, names=list(values), reward=reward, clips=curve.clips, seed=seed
        )
        for name, each in terms.items():
            values[name][g] = [point.value() for point in each]
            _note_lost(refit, values[name][g], curve.values[name], f"{name} has no value.", g)
        for (model, other), without in differences.items():
            if model in terms and other in terms:
                pairs = [common(*both) for both in zip(terms[model], terms[other], strict=True)]
                without[g] = [a.value() - b.value() for a, b in pairs]
                what = f"{model} - {other} has no value: no {refit.log.unit_name} is left that both rank."
                _note_lost(refit, without[g], curve.differences[model, other], what, g)
    return replace(
        curve,
        values={name: _spreads(points, values[name], level=level) for name, points in curve.values.items()},
        differences={
            pair: _spreads(points, differences[pair], level=level) for pair, points in curve.differences.items()
        },
    )


def _note_lost(refit: Refit, without: Floats, points: Sequence[Spread], reason: str, g: int) -> None:
    """A value that is known from the whole log, and not from a part."""
    if any(math.isnan(each) and not math.isnan(point.stderr) for each, point in zip(without, points, strict=True)):
        refit.fail(reason, g)


def _spreads(points: Sequence[Spread], without: Floats, *, level: float) -> list[Spread]:
    n = len(without)
    error = np.sqrt((n - 1) / n * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    return [
        point if math.isnan(point.stderr) else normal(point.value, float(each), df=n - 1, level=level)
        for point, each in zip(points, error, strict=True)
    ]


def _groups(log: Impressions, *, seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A group of each cluster: equal sizes, dealt in the order of a number that the seed gives each cluster."""
    n = int(log.cluster.max(initial=-1)) + 1
    key = np.arange(n, dtype=np.uint64)
    order = np.argsort(cell_uniforms(seed, "jackknife", key, np.zeros(n, dtype=np.uint64)), kind="stable")
    group = np.empty(n, dtype=np.int64)
    group[order] = np.arange(n) % min(PARTS, n)
    return group
