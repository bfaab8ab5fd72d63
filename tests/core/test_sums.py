"""Sums of many numbers: correctly rounded, and the moments of clusters, compiled, as numpy has them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from truerank.core.arrays import Floats, exact_sum
from truerank.core.clusters import Clusters
from truerank.core.terms import Smooth, ratio
from truerank.inference.intervals import Population, around
from truerank.inference.moments import WORTH_COMPILING

N = WORTH_COMPILING + 77


def columns() -> dict[str, Floats]:
    """Numbers of one size, of many, of both signs, and some whose sum hangs on their last bits."""
    rng = np.random.default_rng(5)
    halves = rng.integers(-(2**52), 2**52, N).astype(np.float64)
    tiny = np.full(N, 2.0**-60)
    tiny[0] = 1.0
    cancelled = rng.normal(size=N)
    cancelled[N // 2 : 2 * (N // 2)] = -cancelled[: N // 2]
    return {
        "rewards": np.where(rng.random(N) < 0.3, rng.exponential(size=N), 0.0),
        "signs": rng.normal(size=N),
        "sizes": 10.0 ** rng.uniform(-30, 30, N) * rng.choice([-1.0, 1.0], N),
        "whole": halves,
        "large": rng.random(N) * 2.0**900,
        "small": rng.random(N) * 2.0**-700,
        "tiny": tiny,
        "cancelled": cancelled,
        "a half more": np.concatenate([[2.0**53, 1.0], np.full(N - 2, 2.0**-70)]),
        "same": np.full(N, 0.1),
        "zeros": np.concatenate([[-0.0], np.zeros(N - 1)]),
        "subnormal": np.concatenate([[1.0], np.full(N - 1, 5e-324)]),
    }


@pytest.mark.parametrize("name", list(columns()))
def test_sums_are_correctly_rounded(name: str) -> None:
    values = columns()[name]
    wanted = float(sum((Fraction(number) for number in values.tolist()), Fraction(0)))
    assert exact_sum(values) == wanted == math.fsum(values.tolist())


def test_one_cluster_that_is_all_has_no_interval() -> None:
    """Among many that have nothing: its part is 1, and what is divided by 1 - h is no error."""
    below = np.zeros(N)
    below[5] = 2.0
    terms: Smooth = ratio(np.where(below > 0, 1.0, 0.0), below, clusters=Clusters.numbered(N))
    assert math.isnan(around(Population(), terms, level=0.95).stderr)
