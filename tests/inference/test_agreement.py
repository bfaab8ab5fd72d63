"""Agreement of offline and online: the published p-values, ties, zeros, and the definition by pairs."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from refusals import refused

from truerank.inference.agreement import (
    correlation,
    disagreement,
    rank_correlation,
    sensitivity,
)


def test_correlation_agrees_with_scipy() -> None:
    from scipy.stats import pearsonr

    rng = np.random.default_rng(0)
    for n in (3, 6, 40):
        x = rng.normal(size=n)
        y = x + rng.normal(size=n)
        found, other = correlation(x, y), pearsonr(x, y)
        assert (found.coefficient, found.p) == pytest.approx((other.statistic, other.pvalue), abs=1e-12)


def test_rank_correlation_agrees_with_scipy_and_with_pairs() -> None:
    from scipy.stats import kendalltau

    rng = np.random.default_rng(1)
    for n in (2, 3, 6, 20, 33, 80):
        for tied in (False, True):
            x = rng.normal(size=n) if not tied else rng.integers(0, max(2, n // 3), n).astype(float)
            y = x + rng.normal(size=n) if not tied else np.round(x + rng.normal(size=n))
            if np.ptp(x) == 0 or np.ptp(y) == 0:
                continue
            found, other = rank_correlation(x, y), kendalltau(x, y)
            assert found.coefficient == pytest.approx(other.statistic, abs=1e-12)
            plain = len(set(x)) == len(set(y)) == n
            ours = kendalltau(x, y, method="exact" if plain and n <= 50 else "asymptotic")
            assert found.p == pytest.approx(ours.pvalue, abs=1e-9)
            if plain:
                assert disagreement(x, y) == pytest.approx((1 - found.coefficient) / 2, abs=1e-12)


def test_borders_of_rank_correlation() -> None:
    assert math.isnan(rank_correlation([1, 1, 1], [1, 2, 3]).coefficient)
    assert math.isnan(rank_correlation([1, 2, 3, 4], [1, 2, 3, 4]).low)
    assert rank_correlation(range(5), range(5)).low < 1
    perfect = rank_correlation(range(6), range(6))
    assert (perfect.coefficient, perfect.high) == (1, 1)
    assert perfect.low < 0.6  # six in order are no proof of a perfect order
    assert correlation(range(3), range(3)).p == 0
    with refused("level is 1"):
        rank_correlation([1, 2], [1, 2], level=1.0)
    with refused("memory"):
        rank_correlation(np.arange(10**6), np.arange(10**6))


@pytest.mark.parametrize(("n", "rho"), [(6, 0.5), (8, 0.98), (12, 0.9), (20, 0.0), (60, 0.9)])
def test_intervals_of_rank_correlation_hold_the_truth(n: int, rho: float) -> None:
    """Of bivariate normal pairs tau is 2/π arcsin ρ; intervals may be wide, not short (600 draws: ± 2.6 points)."""
    rng, held = np.random.default_rng(3), 0
    truth = 2 / math.pi * math.asin(rho)
    for _ in range(600):
        x = rng.normal(size=n)
        found = rank_correlation(x, rho * x + math.sqrt(1 - rho**2) * rng.normal(size=n))
        held += found.low <= truth <= found.high
    assert held / 600 >= 0.925


def test_sensitivity_is_the_99_percent_interval_and_a_one_sided_p() -> None:
    z = 2.5758293035489004
    found = sensitivity([z * 1.001, z * 0.999, -1.0, 0.0], [1, 1, 1, 1])
    assert found.true_positive_rate == 0.25
    assert found.sign_agreement == 0.5
    assert found.mean_p == pytest.approx((0.005 + 0.005 + 0.841345 + 0.5) / 4, abs=2e-4)
    assert sensitivity([1.0, -1.0], [0, 0]).mean_p == 0.5
    with refused("negative standard error"):
        sensitivity([1], [-1])


def test_disagreement_by_its_definition() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, y = rng.integers(0, 4, 7).tolist(), rng.integers(0, 4, 7).tolist()
        agree = disagree = 0
        for (x1, y1), (x2, y2) in combinations(zip(x, y, strict=True), 2):
            if x1 == x2 and y1 == y2:
                continue
            if (x1 < x2 and y1 <= y2) or (x1 > x2 and y1 >= y2):
                agree += 1
            else:
                disagree += 1
        assert disagreement(x, y) == pytest.approx(disagree / (agree + disagree))
    assert math.isnan(disagreement([1, 1], [2, 2]))
