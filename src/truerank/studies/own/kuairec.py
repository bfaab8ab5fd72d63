"""The fully observed block of KuaiRec with two scorers, for studies that need a truth; or a world of its shape."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
from scipy.sparse.linalg import svds

from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.ranking import Candidates
from truerank.data.read import read
from truerank.models.baselines import Popularity
from truerank.models.matrix import one_thread, positives
from truerank.ranks.kernel.rank import rank
from truerank.ranks.scores.scores import Factors, factors
from truerank.studies.coverage import ObservedWorld
from truerank.studies.work import StudySize, StudySource
from truerank.studies.world import WorldSettings, make_world

DATASET = "kuairec"
COLUMNS = {"user": "user_id", "item": "video_id"}
COUNTS = (1411, 3327, 217175)  # users, items and positives of the published block
SHAPE = WorldSettings(users=COUNTS[0], items=COUNTS[1], density=0.05, shown=200, judged=80)
SMALL = WorldSettings(users=150, items=200, density=0.08, shown=30, judged=20)


@cache
def observed(source: StudySource, *, size: StudySize, seed: int) -> tuple[ObservedWorld, Log]:
    """Every cell of the block, ranked by popularity and by a truncated SVD, and the log that both learnt from."""
    labels, train = block(source, size=size, seed=seed)
    return ranked(labels, train), train


def block(source: StudySource, *, size: StudySize, seed: int) -> tuple[Log, Log]:
    """Every cell of the block, and the positives outside it.

    The big matrix has no cell of the block, so what is personal comes from what the users liked outside it. The seed
    is that of a synthetic world.
    """
    if source.is_synthetic:
        made = make_world(SHAPE if size is StudySize.FULL else SMALL, seed=seed)
        return made.truth, made.train
    folder = source.place(DATASET)
    labels = read(folder / "small_matrix_binary_grid.parquet", columns=COLUMNS)
    counted = len(labels.users), len(labels.items), int(np.sum(labels.label))
    if counted != COUNTS:
        raise InputError(f"{folder}: KuaiRec's block has (users, items, positives) {counted}; expected {COUNTS}.")
    liked = pl.read_parquet(folder / "big_matrix_positives.parquet").select(*COLUMNS.values(), label=pl.lit(1))
    return labels, read(liked, columns=COLUMNS)


def ranked(labels: Log, train: Log) -> ObservedWorld:
    """Every cell with its ranks by the two scorers."""
    whole = Candidates(len(labels.users), float(len(labels.items)))
    models = {"popularity": Popularity().fit(train, seed=0), "svd": svd(train)}
    with one_thread():
        ranks = {name: rank(scores, labels, pools=[whole], name=name)[0] for name, scores in models.items()}
    return ObservedWorld(labels, ranks)


def svd(train: Log, *, dimensions: int = 32) -> Factors:
    matrix = positives(train)
    start = np.ones(min(matrix.shape))
    with one_thread():  # so that equal ranks do not depend on how many processes share the machine
        left, strength, right = svds(matrix, k=dimensions, v0=start)
    return factors(left * strength, right.T, users=train.users, items=train.items)
