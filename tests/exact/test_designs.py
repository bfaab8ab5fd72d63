"""Sampling designs: all outcomes sum to 1 and give the stated inclusion probabilities; draws follow them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from outcomes import alone, assert_follows, outcomes
from refusals import refused

from truerank.core.arrays import Floats, Ints
from truerank.sampling.designs import BernoulliDesign, SamplingDesign, UniformDesign, WeightedDesign
from truerank.sampling.pools import Members, PoolOrder, Share
from truerank.sampling.unequal import DrawBy, allocate

WEIGHT = np.array([0.1, 3.0, 0.7, 1.0, 0.7])
SOME_ZERO = np.array([0.0, 3.0, 0.0, 1.0, 0.5])
PLAIN, UNEQUAL, ZEROS = (alone(5, weight=weight) for weight in (None, WEIGHT, SOME_ZERO))
CHANCES = [
    alone(len(chance), weight=np.array(chance))
    for chance in (
        [0.2, 0.8, 0.45, 0.35, 0.2], [0.05, 0.9, 0.9, 0.95, 0.2], [1.0, 0.5, 0.25, 0.25], [0.4, 0.0, 0.6],
        [0.5, 0.5, 0.5, 0.5], [1.0, 1.0], [0.05, 0.8, 0.05, 0.05, 0.05],
    )
]  # fmt: skip

SEVERAL: list[SamplingDesign] = [
    BernoulliDesign(0.3),
    *(WeightedDesign(n) for n in range(7)),
    WeightedDesign(Share(0.5)),
]
CASES: list[tuple[SamplingDesign, Members]] = [
    *(
        (design, PLAIN)
        for design in (
            UniformDesign(0),
            UniformDesign(1),
            UniformDesign(2),
            UniformDesign(9),
            UniformDesign(Share(0.6)),
        )
    ),
    *((design, PLAIN) for design in (BernoulliDesign(0.3), BernoulliDesign(1.0), WeightedDesign(2))),
    *((design, UNEQUAL) for design in SEVERAL),
    *((WeightedDesign(n, fill=fill), ZEROS) for n in (1, 2, 3, 4, 5) for fill in (False, True)),
]
FIXED_SIZE = [(way, members) for way in DrawBy for members in CHANCES]


def name_of(case: object) -> str:
    return str(case) if not isinstance(case, Members) else f"weights {case.weights.tolist()}"


@pytest.mark.parametrize(("design", "pool"), [*CASES, *FIXED_SIZE], ids=name_of)
def test_outcomes_have_the_stated_probabilities(design: SamplingDesign | DrawBy, pool: Members) -> None:
    inclusion, total = np.zeros(len(pool)), 0.0
    seen: dict[tuple[int, ...], float] = defaultdict(float)
    for rows, chance in outcomes(design, pool):
        assert rows == tuple(sorted(set(rows)))
        seen[rows] += chance
        total += chance
        inclusion[list(rows)] += chance
    assert total == pytest.approx(1, abs=1e-12)
    stated = pool.weights if isinstance(design, DrawBy) else design.inclusion(pool)
    assert inclusion == pytest.approx(stated, abs=1e-12)


@pytest.mark.parametrize(
    ("design", "pool"),
    [*CASES, *(case for case in FIXED_SIZE if any(case[1] is each for each in CHANCES[:2]))],
    ids=name_of,
)
def test_draws_follow_the_outcomes(design: SamplingDesign | DrawBy, pool: Members) -> None:
    """20,000 users' samples; of designs that go pool by pool 3,000."""
    n, size = 3_000 if isinstance(design, DrawBy) else 20_000, len(pool)
    many = Members(
        np.repeat(np.arange(n, dtype=np.uint64), size),
        np.tile(np.arange(size, dtype=np.uint64), n),
        None if pool.weight is None else np.tile(pool.weight, n),
    )
    drawn = _picked(design, pool, n) if isinstance(design, DrawBy) else design.draw(many, seed=5, purpose="test")
    shown = np.zeros((n, size), dtype=bool)
    shown.ravel()[drawn] = True
    assert_follows(shown, outcomes(design, pool))


def _picked(way: DrawBy, pool: Members, n: int) -> Ints:
    """Rows of n pools, each picked in a random order of its members."""
    rng, size, rows = np.random.default_rng(5), len(pool), []
    for at in range(n):
        order = rng.permutation(size)
        rows.append(at * size + order[way.pick(pool.weights[order], rng)])
    return np.concatenate(rows)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        (UniformDesign(3), UniformDesign(7)),
        (WeightedDesign(3), WeightedDesign(7)),
        (WeightedDesign(3, fill=True), WeightedDesign(19, fill=True)),
        (BernoulliDesign(0.1), BernoulliDesign(0.2)),
    ],
    ids=str,
)
def test_draws_are_nested_and_independent_of_order(smaller: SamplingDesign, larger: SamplingDesign) -> None:
    rng = np.random.default_rng(0)
    members = Members(
        np.repeat(np.arange(50, dtype=np.uint64), 20),
        np.tile(np.arange(20, dtype=np.uint64), 50),
        np.round(rng.random(1000), 1),
    )
    small, large = (set(design.draw(members, seed=1, purpose="test").tolist()) for design in (smaller, larger))
    assert small < large
    shuffled = rng.permutation(len(members))
    rows = Members(members.user[shuffled], members.item[shuffled], members.weights[shuffled])
    again = shuffled[smaller.draw(rows, seed=1, purpose="test")]
    assert set(again.tolist()) == small
    other = set(smaller.draw(members, seed=1, purpose="another").tolist())
    assert other != small


@pytest.mark.parametrize("weight", [None, np.round(np.random.default_rng(3).random(300), 1)], ids=["equal", "unequal"])
def test_what_is_known_of_pools_changes_no_draw(weight: Floats | None) -> None:
    """Numbers of pools, empty ones among them, and rows in order of their ids: the same rows, at every size."""
    pool = np.repeat(np.array([0, 2, 3]), [100, 150, 50])
    members = Members(pool.astype(np.uint64), np.arange(300, dtype=np.uint64), weight)
    known = replace(members, pool=pool, n_pools=5, in_order=True)
    for n in (0, 1, 7, 60, 200, Share(0.3)):
        for design in (UniformDesign(n), WeightedDesign(n), WeightedDesign(n, fill=True)):
            drawn, again = (design.draw(each, seed=2, purpose="test").tolist() for each in (members, known))
            assert drawn == again
            assert design.inclusion(members).tolist() == design.inclusion(known).tolist()
    order = PoolOrder.drawn(known, seed=2, purpose="test")
    assert order.count.tolist() == [100, 0, 150, 50, 0]
    forced = np.isin(np.arange(300), [99, 100, 101, 299])  # one, two and one row of the pools
    plain, shown = (order.first(np.array([3, 0, 0, 50, 0]), one_of=each) for each in (None, forced))
    assert np.bincount(pool[plain], minlength=5).tolist() == [3, 0, 0, 50, 0]
    assert set(np.flatnonzero(shown & ~plain).tolist()) <= {99, 100, 101}
    assert [int((shown & forced)[pool == each].sum()) for each in (0, 2, 3)] == [1, 1, 1]
    assert order.earliest(forced)[[1, 4]].tolist() == [0, 0]


def test_a_share_is_rounded_down_in_decimals() -> None:
    assert [Share(1 - 0.9).of(n) for n in (10, 19, 20)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: alone(2, weight=np.array([1.0, -1.0])), "weight -1 of row 1"),
        (lambda: alone(2, weight=np.array([1.0, np.nan])), "weight nan of row 1"),
        (lambda: BernoulliDesign(0.5).inclusion(alone(1, weight=np.array([3.0]))), "Lower the rate"),
        (lambda: Share(1.5), "a share of 1.5"),
        (lambda: UniformDesign(-1).inclusion(PLAIN), "a sample of -1"),
    ],
)
def test_bad_designs_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with refused(message):
        make()


def test_pools_of_several_users_are_drawn_from_one_by_one() -> None:
    members = Members(
        np.array([1, 1, 1, 2, 2], dtype=np.uint64), np.arange(5, dtype=np.uint64), np.array([1.0, 1, 2, 1, 3])
    )
    assert WeightedDesign(1).inclusion(members) == pytest.approx([0.25, 0.25, 0.5, 0.25, 0.75])
    assert UniformDesign(2).inclusion(replace(members, weight=None)) == pytest.approx([2 / 3, 2 / 3, 2 / 3, 1, 1])


# ------------------------------------------------------------------------------------------ fixed size, unequal chances


def test_the_worked_example_of_conditional_poisson_sampling() -> None:
    """Odds 1 to 4, n = 2: π = (9, 16, 21, 24) / 35; z = (3, 1, 0, 2) has variance 20.632."""
    members = alone(4, weight=np.array([9.0, 16.0, 21.0, 24.0]) / 35)
    z, chance, variance = np.array([3.0, 1.0, 0.0, 2.0]), members.weights, 0.0
    for rows, probability in outcomes(DrawBy.CONDITIONAL_POISSON, members):
        variance += probability * (sum(z[row] / chance[row] for row in rows) - z.sum()) ** 2
    assert variance == pytest.approx(20.632, abs=5e-4)


@pytest.mark.parametrize("way", DrawBy)
def test_chances_that_are_none_are_refused(way: DrawBy) -> None:
    for weight, words in (([0.5, 0.6], "whole number"), ([0.5, 1.5], "between 0 and 1")):
        with refused(words):
            way.pick(np.array(weight), np.random.default_rng(1))


@pytest.mark.parametrize("way", DrawBy)
def test_a_large_pool_is_drawn_with_its_chances(way: DrawBy) -> None:
    """400 members of which a few are wanted: how often each is drawn in many samples, as a chi-square."""
    n, size = (2000, 400) if way is not DrawBy.CONDITIONAL_POISSON else (400, 60)
    chance = allocate(np.full(size, 2.5 / size), np.where(np.arange(size) < 20, 1.0 + np.arange(size) % 4, 0.0), 10)
    rng = np.random.default_rng(3)
    order = rng.permutation(size)
    counted = np.zeros(size)
    for _ in range(n):
        counted[order[way.pick(chance[order], rng)]] += 1
    z = (counted - n * chance) / np.sqrt(n * chance * (1 - chance))
    assert np.abs(z[:20]).max() < 4.5
    assert (z**2).sum() < size + 5 * np.sqrt(2 * size)


@pytest.mark.parametrize("n", [1, 2, 5, 9, 20])
def test_allocated_chances_are_those_of_the_formula(n: int) -> None:
    """min(1, base + c wish), one c for all; base grows in proportion only where every wish is sure."""
    rng = np.random.default_rng(n)
    for _ in range(50):
        base = 0.5 * n * rng.dirichlet(np.full(30, 0.3))
        wish = np.where(rng.random(30) < 0.4, rng.random(30), 0.0)
        chance = allocate(base, wish, n)
        assert abs(chance.sum() - n) < 1e-9
        assert ((chance > 0) | (base == 0)).all()
        assert (chance <= 1).all()
        assert (chance >= np.minimum(base, 1) - 1e-12).all()
        free = (chance < 1) & (wish > 0)
        if free.any():
            c = (chance[free] - base[free]) / wish[free]
            assert np.ptp(c) < 1e-9
            assert np.allclose(chance[wish == 0], np.minimum(base, 1)[wish == 0])
