"""Loggers and samplers on KuaiRec's fully observed block: published sizes, nesting, and the quirks of the code."""

from __future__ import annotations

import numpy as np
import pytest

from realdata import folder_of
from truerank.core.log import Log
from truerank.datasets.feeds import KuaiRec
from truerank.exposure.expose import WorldHoldOut
from truerank.exposure.logging_policies import PopularityLogger, UniformLogger

pytestmark = pytest.mark.realdata
N_USERS, N_ITEMS = 1_411, 3_327


@pytest.fixture(scope="module")
def block() -> dict[str, Log]:
    return KuaiRec().load(folder_of("kuairec"), parts=["full", "train"])


def test_hold_outs_have_the_published_sizes(block: dict[str, Log]) -> None:
    world = block["full"]
    rest, held = WorldHoldOut.published().split(world, policy=UniformLogger(), seed=1)
    assert held is not None
    assert (np.bincount(held.user) == 332).all()
    rest, held = WorldHoldOut.released().split(world, policy=PopularityLogger(), seed=1)
    assert held is not None
    assert len(np.unique(held.item)) == 332
    assert len(np.unique(rest.item)) == N_ITEMS - 332
