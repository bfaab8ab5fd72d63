"""The estimators of intervened test sets, against every test set that could be drawn.

Exact: sums, and the expected numbers of hits and relevant rows of pooled recall, whatever the design; per-user recall
where rows are drawn independently. Approximate, with their size asserted: per-user recall under a fixed size, and a
ratio of expectations for the expectation of a ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from outcomes import alone, outcomes
from refusals import refused
from terms import terms_of

from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Ranks
from truerank.core.terms import Smooth
from truerank.estimators.full import MOST_NODES, Full, Intervened, IntervenedPooled, shares
from truerank.metrics.additive import DCG, RBP, MeanRR, Precision, Recall
from truerank.sampling.designs import BernoulliDesign, SamplingDesign, UniformDesign, WeightedDesign
from truerank.sampling.pools import Members

N_ITEMS = 6


@dataclass(frozen=True)
class Pool:
    """Rows (user, rank, label) of a held-out log, with weights."""

    rows: Sequence[tuple[int, int, int]]
    weight: Floats

    @property
    def members(self) -> Members:
        return alone(len(self.rows), weight=self.weight)

    def terms(
        self, estimator: Estimator, metric: Metric, *, taken: Sequence[int] | None = None, chance: Floats
    ) -> Smooth:
        """On the taken rows, all by default."""
        kept = list(range(len(self.rows)) if taken is None else taken)
        user, rank, label = (np.array([self.rows[at][part] for at in kept], dtype=np.int64) for part in range(3))
        n_users = max(row[0] for row in self.rows) + 1
        log = Log(
            users=Ids.of(np.arange(n_users)),
            items=Ids.of(np.arange(N_ITEMS)),
            unit=user,
            item=rank - 1,
            rewards={"label": label.astype(np.float64)},
            inclusion=chance[kept],
            complete=True,
        )
        size = np.full(n_users, float(N_ITEMS))
        ranks = Ranks(rank.astype(np.float64) - 1, np.zeros(len(kept)), size, size, np.ones(n_users, dtype=bool))
        return terms_of(estimator, log, ranks, metric)

    def expected(self, design: SamplingDesign, function: Callable[[tuple[int, ...]], float]) -> float:
        return math.fsum(chance * function(taken) for taken, chance in outcomes(design, self.members))


def part_of(terms: Smooth, name: str) -> Floats:
    return terms.sums[:, terms.form.columns.index(name)]


MIXED = Pool(
    rows=[(0, 1, 1), (0, 3, 1), (0, 4, 0), (1, 2, 1), (1, 1, 0), (2, 5, 1), (2, 2, 1), (2, 1, 1)],
    weight=np.array([1.0, 0.2, 3.0, 0.7, 0.5, 2.0, 0.1, 1.0]),
)
RATES = replace(MIXED, weight=MIXED.weight / 3)  # as probabilities of independent draws
CASES: list[tuple[SamplingDesign, Pool]] = [
    *((WeightedDesign(n), MIXED) for n in (1, 3, 4, 7, 8)),
    (UniformDesign(4), MIXED),
    (BernoulliDesign(), RATES),
]
every_design = pytest.mark.parametrize(
    ("design", "pool"), CASES, ids=lambda each: str(each) if hasattr(each, "draw") else ""
)


@every_design
@pytest.mark.parametrize("metric", [Precision(1), Precision(3), DCG(2), DCG(5), RBP(0.8)], ids=str)
def test_sums_are_exact(design: SamplingDesign, pool: Pool, metric: Metric) -> None:
    chance = design.inclusion(pool.members)
    found = pool.terms(Intervened(), metric, chance=chance)
    expected = pool.expected(design, lambda taken: pool.terms(Full(), metric, taken=taken, chance=chance).value())
    assert found.value() == pytest.approx(expected, abs=1e-10)
    assert found.n_defined == 3


@every_design
@pytest.mark.parametrize("metric", [Recall(1), Recall(2), MeanRR()], ids=str)
def test_both_parts_of_pooled_recall_are_exact(design: SamplingDesign, pool: Pool, metric: Metric) -> None:
    chance = design.inclusion(pool.members)
    found = pool.terms(IntervenedPooled(), metric, chance=chance)
    worth = {rank: float(metric.rank_discount(np.array([float(rank)]))[0]) for rank in range(1, N_ITEMS + 1)}  # type: ignore[attr-defined]

    def hits(taken: Sequence[int]) -> float:
        return sum(worth[rank] for _, rank, label in (pool.rows[at] for at in taken) if label)

    def relevant(taken: Sequence[int]) -> float:
        return sum(pool.rows[at][2] for at in taken)

    assert math.fsum(part_of(found, "numerator")) == pytest.approx(pool.expected(design, hits), abs=1e-10)
    assert math.fsum(part_of(found, "denominator")) == pytest.approx(pool.expected(design, relevant), abs=1e-10)


@pytest.mark.parametrize("metric", [Recall(1), Recall(2), MeanRR()], ids=str)
def test_per_user_recall_is_exact_for_independent_draws(metric: Metric) -> None:
    """Numerator and denominator of every user; the denominator is the chance to have a relevant row."""
    chance = BernoulliDesign().inclusion(RATES.members)
    found = RATES.terms(Intervened(), metric, chance=chance)
    for user in range(3):

        def part(taken: Sequence[int], name: str, user: int = user) -> float:
            return float(part_of(RATES.terms(Full(), metric, taken=taken, chance=chance), name)[user])

        for name in ("numerator", "denominator"):
            expected = RATES.expected(BernoulliDesign(), lambda taken, name=name: part(taken, name))  # type: ignore[misc]
            assert part_of(found, name)[user] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("n_users", [1, 2, 3, 4])
def test_size_of_the_error_under_a_fixed_size(n_users: int) -> None:
    """Half of the rows of users with two relevant rows each: a user has one drawn with probability
    3/4 + 1 / (4 (2 users - 1)), and independent draws say 3/4; the ratio is right all the same."""
    pool = Pool([(u, rank, 1) for u in range(n_users) for rank in (1, 2)], np.ones(2 * n_users))
    design = UniformDesign(n_users)
    chance = design.inclusion(pool.members)
    found = pool.terms(Intervened(), Recall(1), chance=chance)

    def users_with_one(taken: Sequence[int]) -> float:
        return float(pool.terms(Full(), Recall(1), taken=taken, chance=chance).sums[:, 1].sum())

    truth = pool.expected(design, users_with_one) / n_users
    assert part_of(found, "denominator") == pytest.approx(0.75, abs=1e-12)
    assert truth - 0.75 == pytest.approx(1 / (4 * (2 * n_users - 1)), abs=1e-10)
    mean = pool.expected(design, lambda taken: pool.terms(Full(), Recall(1), taken=taken, chance=chance).value())
    assert found.value() == pytest.approx(mean, abs=1e-10)


def _mean_value(pool: Pool, design: SamplingDesign, estimator: Estimator, metric: Metric, chance: Floats) -> float:
    """The mean of the values of all test sets that have one."""
    values = [
        (p, pool.terms(estimator, metric, taken=taken, chance=chance).value())
        for taken, p in outcomes(design, pool.members)
    ]
    usable = [(p, value) for p, value in values if not math.isnan(value)]
    return math.fsum(p * value for p, value in usable) / math.fsum(p for p, _ in usable)


@pytest.mark.parametrize(
    ("estimator", "reference", "sizes"),
    [
        # of one user by hand: π = 4/7, 1/7, 2/7; shares 52/98 and 10/98 give 52/62, where 4 of 5 test sets have a hit
        (Intervened(), Full(), (52 / 62 - 4 / 5, 0.025474, 0.019166, 0.012987)),
        (IntervenedPooled(), IntervenedPooled(), (0.0, -0.020967, -0.012679, -0.009572)),
    ],
    ids=["per user", "pooled"],
)
def test_the_error_of_the_value_falls_with_the_number_of_rows(
    estimator: Estimator, reference: Estimator, sizes: Sequence[float]
) -> None:
    """One user like this, then two, three, four; half of the rows drawn with unequal weights.

    What all test sets give on average is enumerated; the error of the formula is of the order of one over the rows.
    """
    for copies, expected in zip((1, 2, 3, 4), sizes, strict=True):
        rows = [(c, rank, label) for c in range(copies) for rank, label in ((1, 1), (3, 1), (4, 0))]
        pool = Pool(rows, np.tile([1.0, 0.25, 0.5], copies))
        design = WeightedDesign(3 * copies // 2)
        chance = design.inclusion(pool.members)
        found = pool.terms(estimator, Recall(1), chance=chance).value()
        truth = _mean_value(pool, design, reference, Recall(1), np.ones(len(rows)))
        assert found - truth == pytest.approx(expected, abs=5e-6)
        assert abs(found - truth) < 0.18 / len(rows)


# -------------------------------------------------------------------------------------------------------------- shares


@pytest.mark.parametrize("n", [1, 2, 3, 7, 2 * MOST_NODES, 2 * MOST_NODES + 1, 5000])
@pytest.mark.parametrize("chance", [0.0, 1e-3, 0.3, 0.999, 1.0])
def test_shares_of_equal_rows(n: int, chance: float) -> None:
    """n rows of one unit share its chance to have any, 1 - (1 - π)^n, equally."""
    found = shares(np.zeros(n, dtype=np.int64), np.full(n, chance), n_units=1)
    any_drawn = 1.0 if chance == 1 else -math.expm1(n * math.log1p(-chance))
    np.testing.assert_allclose(found, any_drawn / n, rtol=1e-12, atol=0)


@pytest.mark.parametrize("n", [2, 9, 200])
def test_shares_against_the_poisson_binomial_distribution(n: int) -> None:
    chance = np.random.default_rng(0).random(n) ** 3
    found = shares(np.zeros(n, dtype=np.int64), chance, n_units=1)
    for at in range(0, n, max(1, n // 5)):
        count = np.ones(1)
        for other in np.delete(chance, at):
            count = np.convolve(count, [1 - other, other])
        assert found[at] == pytest.approx(chance[at] * float((count / np.arange(1, n + 1)).sum()), rel=1e-11)


def test_tiny_probabilities_lose_no_digits() -> None:
    found = MIXED.terms(Intervened(), Recall(2), chance=np.full(8, 1e-14))
    assert found.value() == pytest.approx(4 / 6, rel=1e-10)  # all relevant rows count alike, four of six are hits


def test_without_inclusion_probabilities_there_is_no_answer() -> None:
    log = Log(Ids.of([1]), Ids.of([1]), np.zeros(1, np.int64), np.zeros(1, np.int64), {"label": np.ones(1)})
    ranks = Ranks(np.zeros(1), np.zeros(1), np.ones(1), np.ones(1), np.ones(1, dtype=bool))
    for estimator in (Intervened(), IntervenedPooled()):
        with refused(r"no inclusion probabilities.*truerank.with_inclusion"):
            terms_of(estimator, log, ranks, Recall(1))
