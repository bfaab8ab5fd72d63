"""The adjustment of several comparisons against the studentised range, which is exact for all pairs of equal groups."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from truerank.inference.multiplicity import ComparisonFamily

# P(studentised range of k normal means >= z(p) √2), by scipy.stats.studentized_range.sf with infinite df
EXACT = [(3, 0.05, 0.12227), (3, 0.01, 0.02702), (6, 0.01, 0.10319), (10, 0.001, 0.03374), (20, 0.0001, 0.01474)]


@pytest.mark.parametrize(("k", "p", "exact"), EXACT)
def test_all_pairs_of_independent_groups_are_tukeys_test(k: int, p: float, exact: float) -> None:
    contrasts = np.zeros((k * (k - 1) // 2, k))
    for row, (first, second) in enumerate(combinations(range(k), 2)):
        contrasts[row, [first, second]] = 1.0, -1.0
    family = ComparisonFamily.correlated(contrasts @ contrasts.T / 2)
    assert family.adjust(np.array([p]))[0] == pytest.approx(exact, abs=1e-3)
    alone = family.level_alone(0.95)
    assert family.adjust(np.array([1 - alone]))[0] == pytest.approx(0.05, abs=1e-9)
