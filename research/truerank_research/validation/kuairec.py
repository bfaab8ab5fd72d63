"""The fully observed block of KuaiRec, for studies that need a truth, or a world of its shape; a scorer of it."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.sparse.linalg import svds

from truerank.core.log import Log
from truerank.datasets.feeds import KuaiRec
from truerank.models.matrix import one_thread, positives
from truerank.ranking.scores.scores import Factors, factors
from truerank.simulation.dataset import DatasetSettings, simulate_dataset
from truerank_research.runner import Source

DATASET = "kuairec"
SHAPE = DatasetSettings(users=1411, items=3327, density=0.05, shown=200, judged=80)
SMALL = DatasetSettings(users=150, items=200, density=0.08, shown=30, judged=20)


@cache
def block(source: Source, *, full: bool, seed: int) -> tuple[Log, Log]:
    """Every cell of the block, and the positives outside it.

    The big matrix has no cell of the block, so what is personal comes from what the users liked outside it. The seed
    is that of a synthetic world.
    """
    if source.is_synthetic:
        made = simulate_dataset(SHAPE if full else SMALL, seed=seed)
        return made.truth, made.train
    parts = KuaiRec().load(source.path(DATASET), parts=("full", "train"))
    return every_cell(parts["full"]), liked_pairs(parts["train"])


def every_cell(log: Log) -> Log:
    """The same with every pair of a user and an item; what nobody observed is not liked.

    The original files lack 17,827 cells of the block; the compact ones have them as negatives.
    """
    shape = len(log.users), len(log.items)
    if len(log) == shape[0] * shape[1]:
        return log
    label = np.zeros(shape)
    label[log.user, log.item] = log.label
    user, item = (each.ravel() for each in np.indices(shape))
    return Log(log.users, log.items, user, item, rewards={"label": label.ravel()})


def liked_pairs(log: Log) -> Log:
    """Every pair that was liked, once."""
    number = log.user * len(log.items) + log.item
    _, first = np.unique(np.where(log.label == 1, number, -1), return_index=True)
    kept = np.sort(first[log.label[first] == 1])
    user, item = log.user[kept], log.item[kept]
    return Log(log.users, log.items, user, item, rewards={"label": np.ones(len(kept))})


def svd(train: Log, *, dimensions: int) -> Factors:
    matrix = positives(train)
    start = np.ones(min(matrix.shape))
    with one_thread():  # so that equal ranks do not depend on how many processes share the machine
        left, strength, right = svds(matrix, k=dimensions, v0=start)
    return factors(left * strength, right.T, users=train.users, items=train.items)
