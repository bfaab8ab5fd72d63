"""A small world for the reliability study: ties in scores, items never recommended, missing cells, a silent user."""

from __future__ import annotations

import numpy as np

from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.ranking.scores.scores import dense
from truerank.reliability import Grid, Preset

SPARSITIES = (0.0, 0.5, 0.8)
SIZES = (1, 3, 8)


def small_world(n_users: int = 12, n_items: int = 30, *, missing: int = 3) -> Log:
    rng = np.random.default_rng(5)
    label = (rng.random((n_users, n_items)) < rng.random(n_items) * 0.5).astype(np.float64)
    label[3] = 0.0
    user, item = np.repeat(np.arange(n_users), n_items), np.tile(np.arange(n_items), n_users)
    kept = np.delete(np.arange(n_users * n_items), 7 * np.arange(1, missing + 1))
    return Log(
        Ids.of(100 + np.arange(n_users)),
        Ids.of([f"i{at:03}" for at in range(n_items)]),
        unit=user[kept],
        item=item[kept],
        rewards={"label": label.ravel()[kept]},
        source="world",
    )


def small_train() -> Log:
    rng = np.random.default_rng(6)
    item = rng.integers(0, 25, 200)
    label = (rng.random(200) < 0.4).astype(np.float64)
    return Log(
        Ids.of(np.arange(40)),
        Ids.of([f"i{at:03}" for at in range(25)]),
        unit=np.sort(rng.integers(0, 40, 200)),
        item=item,
        rewards={"label": label},
        source="train",
    )


def small_scores(world: Log, *, n_models: int = 4, seed: int = 7) -> dict[str, Scores]:
    rng = np.random.default_rng(seed)
    n_users, n_items = len(world.users), len(world.items)
    truth = np.zeros((n_users, n_items))
    truth[world.user, world.item] = world.label
    found: dict[str, Scores] = {}
    for at in range(n_models):
        matrix = np.round(truth + rng.normal(size=truth.shape) * (0.5 + at), 1)  # rounding makes ties
        if at == 1:
            matrix[rng.random(truth.shape) < 0.2] = -np.inf
        found[f"m{at}"] = dense(matrix, users=world.users.values, items=world.items.values)
    return found


def small_grid(preset: Preset = Preset.PUBLISHED, *, repetitions: int = 2) -> Grid:
    return Grid.from_names(preset=preset, sparsities=SPARSITIES, sizes=SIZES, repetitions=repetitions)
