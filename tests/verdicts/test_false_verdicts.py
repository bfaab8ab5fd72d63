"""How often equal models are called different, true differences are taken away, and losses that no sample contains.

1,000 users of whom few tell two models apart. The page on verdicts has the figures of 2,000 draws with this seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from docs.making.verdicts import judged
from truerank.core.arrays import Floats
from truerank.core.results import BETTER, INSUFFICIENT, WORSE

KINDS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "one step": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "heavy tails": lambda rng, n: rng.choice([-1.0, 1.0], n) * (1 + rng.pareto(1.5, n)),
    "rare losses": lambda rng, n: np.where(rng.random(n) < 0.1, -9.0, 1.0),
    "truly better": lambda rng, n: rng.normal(0.5, 1.0, n),
}
DRAWS = [300, pytest.param(2000, marks=pytest.mark.slow)]


def shares(kind: str, informative: float, *, draws: int) -> dict[str, float]:
    """How often each verdict is given."""
    rng = np.random.default_rng(1)
    found: Counter[str] = Counter()
    for _ in range(draws):
        told = rng.random(1000) < informative
        difference: Floats = np.zeros(1000)
        difference[told] = KINDS[kind](rng, int(told.sum()))
        found[judged(difference).verdict] += 1
    return {verdict: n / draws for verdict, n in found.items()}


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize(("kind", "informative"), [("one step", 0.01), ("one step", 0.03), ("heavy tails", 0.01),
                                                   ("heavy tails", 0.03)])  # fmt: skip
def test_equal_models_are_seldom_called_different(kind: str, informative: float, draws: int) -> None:
    found = shares(kind, informative, draws=draws)
    error = 3 * (0.05 * 0.95 / draws) ** 0.5
    assert found.get(BETTER, 0) + found.get(WORSE, 0) <= 0.05 + error


@pytest.mark.parametrize("draws", DRAWS)
def test_no_rule_takes_a_true_difference_away_where_there_is_evidence(draws: int) -> None:
    assert shares("truly better", 0.2, draws=draws) == {BETTER: 1.0}


@pytest.mark.parametrize("draws", DRAWS)
def test_losses_that_were_not_seen_are_not_known(draws: int) -> None:
    """Equal on average; most samples of ten users have no loss or one. The page says so, with this figure."""
    found = shares("rare losses", 0.01, draws=draws)
    assert found[BETTER] == pytest.approx(0.32, abs=0.1 if draws < 2000 else 0.01)
    assert found[INSUFFICIENT] > 0.1
