"""Jester cut into training data and a fully observed world, and the identities of the reliability study on it."""

from __future__ import annotations

import numpy as np
import pytest

from realdata import folder_of
from truerank.reliability import LabelledDataset
from truerank_research.papers.reliability.data import SEED, jester_data

pytestmark = pytest.mark.realdata
MODELS = ("random", "popularity", "item-knn")


def test_the_cut_is_a_fully_observed_world() -> None:
    data = jester_data(folder_of("jester"))
    world, train = data.world, data.train
    assert (len(world.users), len(world.items), len(world)) == (
        3136,
        80,
        250_880,
    )  # 464 of 3,600 like nothing of the 20
    assert LabelledDataset.from_log(world).observed is None
    assert world.label.sum() == 76_050
    assert (len(train.users), len(train.items), len(train)) == (6736, 100, 116_188)
    assert (train.label == 1).all()
    # nothing of the world is trained on, and the users of the world are known by the other 20 jokes
    users, items = world.users.locate(train.users)[train.user] >= 0, world.items.locate(train.items)[train.item] >= 0
    assert not (users & items).any()
    assert np.unique(train.item[users]).size == 20
    assert np.unique(train.item[~users]).size == 100
    # each of them by a joke at least that they like
    known = np.bincount(train.user, minlength=len(train.users)) > 0
    assert known[train.users.locate(world.users)].all()
    again = jester_data(folder_of("jester"), seed=SEED + 1).world
    assert len(again.items) == len(world.items)
    assert again.users != world.users
