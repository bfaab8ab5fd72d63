"""LightFM as the paper's released code scores with it: items are looked up in LightFM's map of user features.

The code takes `dataset.mapping()[1]`, which holds the ids of users; items are in `[2]`. An item whose id is no user's
is unknown and scores 0. Any other gets the score of the item that has the number of the user with that id. Noise
seeded by user and item is added to all: unknown items are in an order that is the same for every model. Users and items
without a positive are not fitted.

Two things are not known. Items are numbered by ascending id here. In the authors' notebook unknown items are above all
others (its printed AUCs are possible only so); with the settings here a tenth of the others would be above 0, so all
of them are lowered below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.datasets.split import restrict
from truerank.models import Model, Side


def seeded_noise(user: Any, items: Iterable[Any]) -> Floats:
    """
    >>> bool((seeded_noise(14, [148]) == np.random.default_rng(14148).uniform(0, 1e-10)).all())
    True
    """
    return np.array([np.random.default_rng(int(f"{user}{item}")).uniform(0, 1e-10) for item in items])


def known_ids(train: Log) -> tuple[Ids, Ids]:
    """The users and items with a positive."""
    liked = train.select(train.label == 1)
    users, items = (np.unique(place) for place in (liked.user, liked.item))
    return Ids.of(liked.users.values.gather(users)), Ids.of(liked.items.values.gather(items))


def released_scores(model: Model, world: Log, train: Log, side: Side, *, seed: int) -> Floats:
    """The scores of every pair of the world, in the order that the code's scaling keeps."""
    users, items = known_ids(train)
    fitted = model.fit(restrict(train, users=users, items=items), seed=seed, side=side)
    row, number = users.locate(world.users), users.locate(world.items)
    raw = np.asarray(fitted.block(row[row >= 0]), dtype=np.float64)[:, number[number >= 0]]
    scores = np.stack([seeded_noise(user, world.items.values) for user in world.users.values])
    scores[np.ix_(row >= 0, number >= 0)] += raw - raw.max(axis=1, keepdims=True) - 1.0
    return scores
