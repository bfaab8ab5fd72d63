"""Candidate samplers: weights by hand in both variants, laws of all of them, and evaluation end to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from logs import candidates_of, cells, full_world, log_of
from outcomes import alone, outcomes
from refusals import refused
from tasteful import TastefulSampler

import truerank as tr
from truerank.core.arrays import Floats
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.values import options_of
from truerank.exposure.expose import WorldHoldOut, expose
from truerank.exposure.logging_policies import PopularityLogger
from truerank.ranking import samplers
from truerank.ranking.kernel.rank import rank
from truerank.ranking.samplers.draw import CandidatePool, SampledNegatives, Sampler, sample_candidates
from truerank.ranking.samplers.draw import draw as draw_from
from truerank.ranking.samplers.weighted import (
    FullSampler,
    PopularitySampler,
    PositivitySampler,
    RandomSampler,
    SkewSampler,
    WTDHSampler,
    WTDSampler,
)
from truerank.sampling.designs import SamplingDesign, WeightedDesign
from truerank.sampling.pools import Members

SIZES = (1, 2, 5, 10, 20, 50)
SIZED = [cls for cls in samplers.catalogue().values() if "n" in options_of(cls)]
PUBLISHED: list[Callable[[int], Sampler]] = [*SIZED]
BY_SIZE = [*PUBLISHED, *(cls.released for cls in SIZED if cls.as_released)]


def name_of(case: object) -> str:
    return str(case(9)) if callable(case) else str(case)


@pytest.fixture(scope="module")
def world() -> Log:
    """30 users and 40 items; user 0 likes nothing, item 0 is liked by nobody."""
    appeal = np.random.default_rng(3).random((30, 40)) * np.linspace(0.2, 1, 40)
    label = (appeal > 0.6).astype(int)
    label[0] = 0
    return full_world(label.tolist())


@pytest.fixture(scope="module")
def train() -> Log:
    cell = np.random.default_rng(5).choice(30 * 40, 300, replace=False)
    return log_of([(c // 40, c % 40, 1) for c in cell.tolist()], n_users=30, n_items=40, source="train")


@pytest.fixture(scope="module")
def logged(world: Log, train: Log) -> CandidatePool:
    rest, random = WorldHoldOut.published().split(world, policy=PopularityLogger(), seed=1)
    log = expose(rest, PopularityLogger(), sparsity=0.7, train=train, seed=1)
    return CandidatePool.of(log, train=train, random=random)


def draw(logged: CandidatePool, sampler: Sampler, *, seed: int = 1) -> SampledNegatives:
    return draw_from(logged, sampler, seed=seed)


def sets(sampled: SampledNegatives) -> list[set[int]]:
    return [set(sampled.item[a:b].tolist()) for a, b in zip(sampled.start[:-1], sampled.start[1:], strict=True)]


# -------------------------------------------------------------------------------------------------------------- weights


def test_weights_by_hand() -> None:
    # items 0 ... 4: 4, 2, 2, 1 and 0 rows; 1, 2, 0, 1 positives; item 4 is not in the log
    rows = [(0, 0, 1), (1, 0, 0), (2, 0, 0), (3, 0, 0), (0, 1, 1), (1, 1, 1), (2, 2, 0), (3, 2, 0), (0, 3, 1)]
    log = log_of(rows, n_users=4, n_items=5)
    shares = log_of([(0, 0, 0), (0, 1, 0), (1, 1, 0), (2, 4, 0)], n_users=4, n_items=5)
    counts = CandidatePool.of(log, train=shares, random=shares).counts
    assert (counts.rows.tolist(), counts.positives.tolist()) == ([4, 2, 2, 1], [1, 2, 0, 1])
    shared = np.array([0.25, 0.5, 1e-4, 1e-4])  # of 4 rows in random data, one of an item outside the pool
    biased = np.array([4, 2, 2, 1]) / 9
    by_hand: dict[Sampler, Floats] = {
        PopularitySampler(1): np.array([1.0, 2, 2, 4]) ** -0.5,
        PopularitySampler.released(1): np.array([2.0, 3, 3, 5]) ** -0.5,
        PositivitySampler(1): np.array([2.0, 1, 4, 2]) ** -0.5,
        PositivitySampler.released(1): np.array([1.0, 2, 0, 1]),
        SkewSampler(1): np.array([1 / 4, 1 / 2, 1 / 2, 1]),
        SkewSampler.released(1): np.array([4.0, 2, 2, 1]),
        WTDSampler(1): (shared / biased) ** 2,
        WTDSampler.released(1): shared / biased,
        WTDSampler(1, mnar_source="train"): np.ones(4),  # type: ignore[arg-type]
        WTDHSampler(1): (0.25 / biased) ** 2,
        WTDHSampler.released(1): 0.25 / biased,
        WTDHSampler(1, power=1, mnar_source="train"): 0.25 / shared,  # type: ignore[arg-type]
        RandomSampler(1): np.ones(4),
    }
    for sampler, expected in by_hand.items():
        assert sampler.weights(counts) == pytest.approx(expected), str(sampler)
    fixed = CandidatePool.of(log, pool=Ids.of(np.arange(6)))
    assert SkewSampler(1).weights(fixed.counts).tolist() == [1 / 4, 1 / 2, 1 / 2, 1, 1, 1]
    assert len(CandidatePool.of(log).items) == 4


# ----------------------------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("make", PUBLISHED, ids=name_of)
@pytest.mark.parametrize("n", SIZES)
def test_published_sets(logged: CandidatePool, make: Callable[[int], Sampler], n: int) -> None:
    sampled = draw(logged, make(n))
    everything = draw(logged, FullSampler())
    for user, (some, every) in enumerate(zip(sets(sampled), sets(everything), strict=True)):
        positive = set(logged.positive.of_unit(user).tolist())
        assert some <= every
        assert not some & positive
        assert every | positive == set(range(len(logged.items)))
        assert len(some) == sampled.count[user] == min(n, len(every))
    labels = sampled.labels()
    assert len(cells(labels)) == len(labels) == len(logged.positive.item) + len(sampled.item)
    assert cells(labels.select(labels.label == 1)) == cells_of_positives(logged)
    assert not sampled.repeated.any()


def cells_of_positives(logged: CandidatePool) -> set[tuple[int, int]]:
    return {(u, i) for u in range(len(logged.users)) for i in logged.positive.of_unit(u).tolist()}


@pytest.mark.parametrize("make", BY_SIZE, ids=name_of)
def test_sets_are_nested_in_n(logged: CandidatePool, make: Callable[[int], Sampler]) -> None:
    together = [draw(logged, make(n)) for n in SIZES]
    for small, large in combinations(together, 2):
        assert all(a <= b for a, b in zip(sets(small), sets(large), strict=True))
    assert sets(draw(logged, make(5), seed=2)) != sets(draw(logged, make(5), seed=1))


def test_positives_are_drawn_in_released_and_keep_both_labels(logged: CandidatePool) -> None:
    sampled = draw(logged, SkewSampler.released(30))
    assert sampled.repeated.any()
    labels, candidates = sampled.labels(), candidates_of(sampled)
    assert len(cells(labels)) == len(labels) == len(logged.positive.item) + int((~sampled.repeated).sum())
    assert candidates.only is not None
    assert int(candidates.only.count.sum()) == len(logged.positive.item) + len(sampled.item)
    # a positive that is also a negative is tied with itself: its expected rank is half a place lower
    scores = tr.scores.dense(
        np.random.default_rng(1).random((30, len(logged.items))), users=logged.users, items=logged.items
    )
    positives = labels.select(labels.label == 1)
    found = rank(scores, positives, pools=[candidates])[0]
    repeated = {*zip(sampled.user[sampled.repeated].tolist(), sampled.item[sampled.repeated].tolist(), strict=True)}
    pairs = zip(positives.user.tolist(), positives.item.tolist(), strict=True)
    assert found.tied.tolist() == [float(pair in repeated) for pair in pairs]


# ---------------------------------------------------------------------------------------------- inclusion probabilities


@pytest.mark.parametrize("make", BY_SIZE, ids=name_of)
def test_inclusion_probabilities_sum_over_every_set(make: Callable[[int], Sampler]) -> None:
    """One user likes items 0 and 4 of six; the draws of 20,000 such users have the frequencies of the design."""
    n_users, sampler = 20_000, make(2)
    others = [(n_users + u, i, int(u == i)) for u in range(6) for i in range(u + 1)]
    rows = [(u, i, 1) for u in range(n_users) for i in (0, 4)]
    log = log_of([*rows, *others], n_users=n_users + 6, n_items=6)
    logged = CandidatePool.of(log, random=log_of([(0, i, 0) for i in range(6)], n_users=1, n_items=6))
    weight = sampler.weights(logged.counts)
    if sampler.positives.value == "excluded":
        weight = np.where(np.isin(np.arange(6), [0, 4]), 0, weight)
    design: SamplingDesign = WeightedDesign(2)
    exact = np.zeros(6)
    for items, chance in outcomes(design, alone(6, weight=weight)):
        exact[list(items)] += chance
    sampled = draw(logged, sampler)
    own = sampled.user < n_users
    found = sampled.inclusion()
    assert found.value[own] == pytest.approx(exact[sampled.item[own]], abs=1e-10)
    assert not found.approximate.any()
    drawn = np.bincount(sampled.item[own], minlength=6) / n_users
    assert np.abs(drawn - exact).max() < 4.5 * 0.5 / np.sqrt(n_users)
    listed = sampled.labels(inclusion=True)
    assert listed.propensity is not None
    assert (listed.propensity[listed.label == 1] == 1).all()


@pytest.mark.parametrize("make", [*BY_SIZE, TastefulSampler], ids=name_of)
@pytest.mark.parametrize("n", [1, 7, 50])
def test_blocks_draw_what_the_design_draws(logged: CandidatePool, make: Callable[[int], Sampler], n: int) -> None:
    """Every item that a user can get as a member of the user's pool: the same draw, and the same probabilities."""
    sampler, n_items = make(n), len(logged.items)
    weight = np.broadcast_to(sampler.weights(replace(logged.counts, users=logged.users)), (30, n_items)).copy()
    for unit in range(30 if sampler.positives.value == "excluded" else 0):
        weight[unit, logged.positive.of_unit(unit)] = 0
    user, item = np.nonzero(weight > 0)
    keys = logged.users.keys()[user], logged.items.keys()[item]
    members, design = Members(*keys, weight[user, item]), WeightedDesign(n)
    rows = design.draw(members, seed=1, purpose="candidates")
    sampled = draw(logged, sampler)
    assert set(zip(sampled.user.tolist(), sampled.item.tolist(), strict=True)) == set(
        zip(user[rows].tolist(), item[rows].tolist(), strict=True)
    )
    chance = np.zeros(weight.shape)
    chance[user, item] = design.inclusion(members)
    assert sampled.inclusion().value == pytest.approx(chance[sampled.user, sampled.item], rel=1e-12)


def test_weights_of_another_shape_are_refused(logged: CandidatePool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RandomSampler, "weights", lambda self, counts: np.ones(3))
    with refused(r"Random@5: weights of shape \(3,\); expected one for each of 40 items"):
        draw(logged, RandomSampler(5))


# ---------------------------------------------------------------------------------------------------------------- edges


def test_bad_input_is_explained(world: Log) -> None:
    nothing, twice = log_of([], n_users=1, n_items=1), log_of([(0, 0, 1), (0, 0, 1)], n_users=1, n_items=1)
    text = replace(world, items=Ids.of([f"i{i:02}" for i in range(40)]))
    calls: dict[str, Callable[[], object]] = {
        "needs random data": lambda: sample_candidates(world, WTDSampler(5), seed=0),
        "needs the training data": lambda: sample_candidates(
            world, samplers.parse("WTDH@5(mnar_source=train)"), seed=0
        ),
        "no rows; expected rows to count": lambda: sample_candidates(world, WTDSampler(5), random=nothing, seed=0),
        "text never matches numbers": lambda: sample_candidates(world, WTDSampler(5), random=text, seed=0),
        "20 items are not in the pool": lambda: CandidatePool.of(world, pool=Ids.of(np.arange(20))),
        "more than once": lambda: CandidatePool.of(twice),
        "Skew: n=0; expected a whole number from 1": lambda: SkewSampler(0),
        "unknown sampler 'Skw@1'.*Did you mean Skew": lambda: samplers.parse("Skw@1"),
    }
    for message, wrong in calls.items():
        with refused(message):
            wrong()
