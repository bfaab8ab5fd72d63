"""Intervals where the position model is fitted to the same log: it is fitted anew without each part of the log."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from truerank.arrays import Bools, Floats
from truerank.chance import cell_uniforms
from truerank.data.impressions import Impressions
from truerank.estimators.ranked.weights import Weighing
from truerank.uncertainty.intervals import Spread, normal
from truerank.uncertainty.ranked import Curve

PARTS = 40


@dataclass(frozen=True, slots=True)
class Refit:
    """A log, and the weighings of all targets with the position model fitted to the kept units alone."""

    log: Impressions
    weighings: Callable[[Bools], Mapping[str, Weighing]]


def refitted(curve: Curve, estimator: Any, refit: Refit, *, reward: str, level: float, seed: int) -> Curve:
    """The same values with standard errors that include the fit: the delete-a-group jackknife.

    Clusters are dealt into G = 40 groups (fewer where there are fewer clusters); V_(g) is the value with the position
    model fitted, and the estimate made, without group g; Var = (G - 1) / G Σ (V_(g) - V̄)², Student's t with G - 1
    degrees of freedom.
    """
    group = _groups(refit.log, seed=seed)
    n = int(group.max(initial=-1)) + 1
    if n < 2:
        return curve
    names = list(curve.values)
    values = {name: np.full((n, len(curve.clips)), math.nan) for name in names}
    for g in range(n):
        kept = group[refit.log.cluster] != g
        weighings = refit.weighings(kept)
        for name in names:
            for k, clip in enumerate(curve.clips.tolist()):
                terms = estimator.terms(weighings[name], reward=reward, clip=clip).restrict(kept)
                values[name][g, k] = terms.value()
    return replace(
        curve,
        values={name: _spreads(points, values[name], level=level) for name, points in curve.values.items()},
        differences={
            (model, other): _spreads(points, values[model] - values[other], level=level)
            for (model, other), points in curve.differences.items()
        },
    )


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
