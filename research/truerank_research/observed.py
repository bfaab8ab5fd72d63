"""Datasets with complete labels, and random samples of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from truerank.core.log import Log
from truerank.core.ranking import Ranks


@dataclass(frozen=True, slots=True)
class ObservedWorld:
    """The labels of every pair of a user and an item, row by row of users, and their ranks for each model."""

    labels: Log
    ranks: Mapping[str, Ranks]

    @property
    def n_users(self) -> int:
        return len(self.labels.users)

    @property
    def n_items(self) -> int:
        return len(self.labels.items)


def draw_labels(world: ObservedWorld, n: int, rng: np.random.Generator) -> tuple[Log, dict[str, Ranks]]:
    """n random items of each user, all sets equally likely, and their ranks."""
    keys = rng.random((world.n_users, world.n_items), dtype=np.float32)
    item = np.sort(np.argpartition(keys, n, axis=1)[:, :n], axis=1)
    row = (np.arange(world.n_users)[:, None] * world.n_items + item).ravel()
    ranks = {name: replace(whole, above=whole.above[row], tied=whole.tied[row]) for name, whole in world.ranks.items()}
    return world.labels.select(row), ranks
