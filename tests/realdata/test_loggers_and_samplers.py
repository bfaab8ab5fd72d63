"""Loggers and samplers on KuaiRec's fully observed block: published sizes, nesting, and the quirks of the code."""

from __future__ import annotations

import numpy as np
import pytest

from realdata import folder_of
from truerank.core.log import Log
from truerank.datasets.feeds import KuaiRec
from truerank.exposure.expose import Order, WorldHoldOut
from truerank.exposure.logging_policies import LoggingPolicy, PopularityLogger, PositivityLogger, UniformLogger

pytestmark = pytest.mark.realdata

SPARSITIES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.85, 0.9, 0.95)
N_USERS, N_ITEMS = 1_411, 3_327


@pytest.fixture(scope="module")
def block() -> dict[str, Log]:
    return KuaiRec().load(folder_of("kuairec"), parts=["full", "train"])


@pytest.mark.parametrize("logger", [UniformLogger(), PopularityLogger(), PositivityLogger()], ids=str)
def test_logs_of_all_sparsities_from_one_draw(block: dict[str, Log], logger: LoggingPolicy) -> None:
    world = block["full"]
    order = Order.of(world, logger.weights(world, train=block["train"]), seed=1)
    likes_any = order.first < order.count
    larger = np.ones(len(world), dtype=bool)
    for sparsity in SPARSITIES:
        size = order.sizes(sparsity=sparsity)
        assert (size == int(np.floor((1 - sparsity) * N_ITEMS + 1e-9))).all()
        shown = order.shown(size)
        count = np.bincount(world.user[shown], minlength=N_USERS)
        assert ((count == size) | (count == size + 1)).all()
        positives = np.bincount(world.user[shown & (world.label == 1)], minlength=N_USERS)
        assert ((positives > 0) == likes_any).all()
        assert not (shown & ~larger).any()
        larger = shown
    found = order.propensities(size)
    assert ((found.value > 0) == (order.weight > 0)).all()  # an item that nobody likes is not shown by positivity
    assert (found.value <= 1).all()
    # as many rows as expected: their number varies only by the positives that had to be added
    added = int(shown.sum()) - int(size.sum())
    expected = float(found.value.sum()) - int(size.sum())
    assert abs(added - expected) < 5 * np.sqrt(expected) + 1
    assert found.approximate.any() == (not isinstance(logger, UniformLogger))


def test_the_popularity_logger_of_the_text_is_degenerate(block: dict[str, Log]) -> None:
    weight = PopularityLogger.published().weights(block["full"])
    assert (weight == N_USERS).all()
    assert len(np.unique(PopularityLogger().weights(block["full"], train=block["train"]))) > 500


def test_hold_outs_have_the_published_sizes(block: dict[str, Log]) -> None:
    world = block["full"]
    rest, held = WorldHoldOut.published().split(world, policy=UniformLogger(), seed=1)
    assert held is not None
    assert (np.bincount(held.user) == 332).all()
    rest, held = WorldHoldOut.released().split(world, policy=PopularityLogger(), seed=1)
    assert held is not None
    assert len(np.unique(held.item)) == 332
    assert len(np.unique(rest.item)) == N_ITEMS - 332
