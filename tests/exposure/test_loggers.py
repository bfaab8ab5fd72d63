"""Loggers: their weights by hand in both variants, what they show, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from logs import cells, full_world, log_of
from refusals import refused

from truerank.core.arrays import frozen
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.datasets.split import split_per_user
from truerank.exposure.expose import (
    WorldHoldOut,
    expose,
    expose_independently,
)
from truerank.exposure.logging_policies import (
    LOGGERS,
    DurationLogger,
    LoggingPolicy,
    PopularityLogger,
    PositivityLogger,
    UniformLogger,
)
from truerank.sampling.designs import WeightedDesign
from truerank.sampling.pools import Members

# items 0 ... 3 have 1, 2, 0, 1 positives
WORLD = full_world([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
# items 0 ... 5 have 0, 1, 3, 1, 0, 9 rows
TRAIN = log_of(
    [(0, 1, 1), (0, 2, 0), (1, 2, 1), (2, 2, 1), (3, 3, 0), *((user, 5, 0) for user in range(9))], n_users=9, n_items=6
)


def large_world(n_users: int = 40, n_items: int = 60, *, density: float = 0.1) -> Log:
    label = np.random.default_rng(7).random((n_users, n_items)) < density
    label[0] = False
    return full_world(label.astype(int).tolist())


def test_weights_by_hand() -> None:
    assert UniformLogger().weights(WORLD).tolist() == [1, 1, 1, 1]
    assert PopularityLogger.published().weights(WORLD).tolist() == [4, 4, 4, 4]
    # rows together: 4, 5, 7, 5 and 9 for item 5, which is the best of all; 0 for item 4, 4 for item 0
    assert PopularityLogger.released().weights(WORLD, train=TRAIN) == pytest.approx(np.array([6.0, 4, 3, 4]) ** -0.5)
    assert PositivityLogger.published().weights(WORLD).tolist() == [1, 2, 0, 1]
    assert PositivityLogger.released().weights(WORLD, train=TRAIN).tolist() == [1, 3, 2, 1]
    durations = replace(WORLD, rewards={**WORLD.rewards, "video_duration": frozen(np.tile([9.0, 3.0, 5.0, 3.0], 4))})
    by_hand = np.exp(-np.array([4.0, 1, 3, 2]) / 10)
    assert DurationLogger(scale=10).weights(durations) == pytest.approx(by_hand)
    assert DurationLogger(scale=10, duration=(9, 3, 5, 3)).weights(WORLD) == pytest.approx(by_hand)
    assert DurationLogger(scale=float("inf"), duration=(9, 3, 5, 3)).weights(WORLD).tolist() == [1, 1, 1, 1]


BESIDE = {"duration": {"duration": tuple(range(60))}}  # what policies need beside the pairs of a dataset
POLICIES = [*(cls(**BESIDE.get(name, {})) for name, cls in LOGGERS.catalogue().items()), UniformLogger.released()]


@pytest.mark.parametrize("logger", POLICIES, ids=lambda policy: str(policy)[:30])
def test_logs_have_their_sizes_are_nested_and_keep_a_positive(logger: LoggingPolicy) -> None:
    world = large_world()
    smaller = set[tuple[int, int]]()
    for sparsity in (1, 0.9, 0.5, 0):
        log = expose(world, logger, sparsity=sparsity, train=TRAIN, seed=2)
        count = np.bincount(log.user, minlength=40)
        size = int(np.floor((1 - sparsity) * 60 + 1e-9))
        plain = expose(world, logger, sparsity=sparsity, train=TRAIN, keep_positive=False, propensities=False, seed=2)
        assert (np.bincount(plain.user, minlength=40) == size).all()
        assert cells(plain) <= cells(log)
        assert count[0] == size  # a user without positives gets nothing added
        assert set(count.tolist()) <= {size, size + 1}
        assert (np.bincount(log.user[log.label == 1], minlength=40)[1:] >= 1).all()
        assert log.propensity is not None
        assert ((log.propensity > 0) & (log.propensity <= 1)).all()
        assert smaller <= cells(log)
        smaller = cells(log)
    assert smaller == cells(world)
    assert np.all(log.propensity == 1)


def test_draws_are_those_of_the_design_whatever_the_order_of_rows() -> None:
    world = large_world()
    weight = np.round(np.random.default_rng(1).random(60), 1)
    log = expose(world, weight, size=50, keep_positive=False, seed=9)
    members = Members.of(world, weight=weight[world.item])
    drawn = WeightedDesign(50, fill=True).draw(members, seed=9, purpose="exposure")
    assert cells(log) == cells(world.select(drawn))
    shuffled = world.select(np.random.default_rng(3).permutation(len(world)))
    first, again = (expose(each, PositivityLogger(), size=7, seed=9) for each in (world, shuffled))
    assert cells(first) == cells(again)
    assert first.propensity is not None
    assert again.propensity is not None
    assert first.propensity.tolist() == again.propensity.tolist()
    few = world.select(world.user < 5)
    all_cells, few_cells = (cells(expose(each, UniformLogger(), size=7, seed=9)) for each in (world, few))
    assert few_cells == {cell for cell in all_cells if cell[0] < 5}


def test_independent_exposure() -> None:
    given = np.full(16, 0.5)
    assert len(expose_independently(WORLD, given, seed=1)) == len(expose_independently(WORLD, given, seed=1))
    given[0] = 0.25  # the caller's array stays the caller's


def test_hold_outs() -> None:
    world = large_world()
    kept, held = WorldHoldOut.published().split(world, policy=UniformLogger(), seed=1)
    assert held is not None
    assert (np.bincount(held.user) == 6).all()
    assert cells(kept) | cells(held) == cells(world)
    assert not cells(kept) & cells(held)
    assert cells(held) == cells(split_per_user(world, 0.1, seed=1)[1])
    kept, held = WorldHoldOut.released().split(world, policy=PopularityLogger(), seed=1)
    assert held is not None
    assert len(set(held.item.tolist())) == 6
    assert len(held) == 6 * 40
    assert not set(held.item.tolist()) & set(kept.item.tolist())
    kept, held = WorldHoldOut.released().split(world, policy=UniformLogger.released(), seed=1)
    assert kept is world
    assert held is None


def test_bad_input_is_explained() -> None:
    twice = log_of([(0, 1, 1), (0, 1, 0), (0, 0, 0)], n_users=1, n_items=2)
    text = replace(TRAIN, items=Ids.of(list("abcdef")))
    released = PositivityLogger.released()
    calls: dict[str, Callable[[], object]] = {
        "one of the two": lambda: expose(WORLD, "uniform", seed=0),
        "sparsity or a size": lambda: expose(WORLD, "uniform", sparsity=0.5, size=3, seed=0),
        "sparsity 1.5": lambda: expose(WORLD, "uniform", sparsity=1.5, seed=0),
        "size is -1": lambda: expose(WORLD, "uniform", size=-1, seed=0),
        "more than once, such as user 0, item 1": lambda: expose(twice, "uniform", size=1, seed=0),
        "positivity logger .* give train=": lambda: expose(WORLD, released, size=1, seed=0),
        "text never matches numbers": lambda: expose(WORLD, released, size=1, train=text, seed=0),
        "no column video_duration": lambda: expose(WORLD, "duration", size=1, seed=0),
        "2 durations for 4 items": lambda: DurationLogger(duration=(1, 2)).weights(WORLD),
        "scale of at least": lambda: DurationLogger(scale=0.001).weights(WORLD),
        "Did you mean popularity": lambda: expose(WORLD, "popular", size=1, seed=0),
        "weights of shape": lambda: expose(WORLD, np.ones(3), size=1, seed=0),
        "weight -1": lambda: expose(WORLD, -np.ones(4), size=1, seed=0),
        "for 16 rows": lambda: expose_independently(WORLD, np.ones(3), seed=0),
        "row 0 is 2": lambda: expose_independently(WORLD, np.full(16, 2.0), seed=0),
        "hold-out: fraction=1; expected a number between 0 and 1": lambda: WorldHoldOut(1.0),
    }
    for message, wrong in calls.items():
        with refused(message):
            wrong()
