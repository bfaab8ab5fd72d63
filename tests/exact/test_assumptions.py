"""What docs/assumptions.md says of Recall, HitRate, RR and ERR, by enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from truerank.exposure.positions.yule_simon import YuleSimon

HALF = Fraction(1, 2)


def test_recall_inverts_reward_and_pooled_recall_does_not() -> None:
    relevant = (1, 4)
    found = {"A": (1, 0), "B": (0, 2)}
    reward = {name: Fraction(sum(hits), 2) for name, hits in found.items()}
    mean = {name: sum(Fraction(h, n) for h, n in zip(hits, relevant, strict=True)) / 2 for name, hits in found.items()}
    pooled = {name: Fraction(sum(hits), sum(relevant)) for name, hits in found.items()}
    assert reward == {"A": HALF, "B": 1}
    assert mean == {"A": HALF, "B": Fraction(1, 4)}
    assert pooled == {"A": Fraction(1, 5), "B": Fraction(2, 5)}


def test_exposure_does_not_determine_hit_rate() -> None:
    policies = {"A": ["ab", "cd"], "B": ["ad", "cb"]}
    liked = {"a", "b"}
    marginals, reward, hits = {}, {}, {}
    for name, lists in policies.items():
        marginals[name] = {(item, rank): HALF for each in lists for rank, item in enumerate(each)}
        reward[name] = sum(HALF * sum(item in liked for item in each) for each in lists)
        hits[name] = sum(HALF * any(item in liked for item in each) for each in lists)
    assert marginals["A"] == marginals["B"]
    assert reward == {"A": 1, "B": 1}
    assert hits == {"A": HALF, "B": 1}


def satisfied(chance: list[float]) -> float:
    """The probability that a cascade user is satisfied: every outcome of liking and of going on, enumerated."""
    n, total = len(chance), 0.0
    for likes in product((False, True), repeat=n):
        for goes in product((False, True), repeat=n - 1):
            p = float(np.prod([s if like else 1 - s for s, like in zip(chance, likes, strict=True)]))
            p *= float(np.prod([k / (k + 1) if go else 1 / (k + 1) for k, go in enumerate(goes, 1)]))
            for rank in range(n):
                if likes[rank]:
                    total += p
                    break
                if rank < n - 1 and not goes[rank]:
                    break
    return total


@pytest.mark.parametrize("chance", [[0.3, 0.9, 0.0, 0.5], [0.0, 0.0, 1.0, 1.0], [0.5, 0.25, 0.125]])
def test_err_and_rr_are_rewards_of_a_cascade_user(chance: list[float]) -> None:
    passed = np.cumprod([1.0, *(1 - s for s in chance[:-1])])
    err = float(np.sum(np.array(chance) * passed / np.arange(1, len(chance) + 1)))
    assert satisfied(chance) == pytest.approx(err, abs=1e-12)
    if set(chance) <= {0.0, 1.0}:
        assert err == pytest.approx(1 / (chance.index(1.0) + 1))


def test_the_discount_of_rr_is_yule_1() -> None:
    rank = np.arange(1.0, 50.0)
    np.testing.assert_allclose(YuleSimon(1.0).view(rank), 1 / rank, rtol=1e-13)
