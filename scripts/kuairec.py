"""The fully observed block of KuaiRec with two scorers, for studies that need a truth."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse.linalg import svds

from truerank.core.log import Log
from truerank.core.ranking import Candidates
from truerank.data.read import read
from truerank.models.baselines import Popularity
from truerank.models.matrix import positives
from truerank.ranks.kernel.rank import rank
from truerank.ranks.scores.scores import Factors, factors
from truerank.studies.coverage import ObservedWorld

COLUMNS = {"user": "user_id", "item": "video_id"}


def data_folder() -> Path:
    """Where real data is: TRUERANK_DATA, or beside the project."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("TRUERANK_DATA", default))


def truth() -> ObservedWorld:
    """Every cell of the 1,411 x 3,327 block, ranked by popularity and by a truncated SVD of the big matrix.

    The big matrix has no cell of the block, so what is personal comes from what the users liked outside it.
    """
    folder = data_folder() / "kuairec"
    labels = read(folder / "small_matrix_binary_grid.parquet", columns=COLUMNS)
    liked = pl.read_parquet(folder / "big_matrix_positives.parquet").select("user_id", "video_id", label=pl.lit(1))
    train = read(liked, columns=COLUMNS)
    whole = Candidates(len(labels.users), float(len(labels.items)))
    models = {"popularity": Popularity().fit(train, seed=0), "svd": svd(train)}
    ranks = {
        name: rank(scores, labels, pools=[whole], threads=os.cpu_count() or 1, name=name)[0]
        for name, scores in models.items()
    }
    return ObservedWorld(labels, ranks)


def svd(train: Log, *, dimensions: int = 32) -> Factors:
    matrix = positives(train)
    start = np.ones(min(matrix.shape))
    left, strength, right = svds(matrix, k=dimensions, v0=start)
    return factors(left * strength, right.T, users=train.users, items=train.items)


def check(found: ObservedWorld) -> None:
    """The counts that the published block has."""
    expected, counted = (1411, 3327, 217175), (found.n_users, found.n_items, int(np.sum(found.labels.label)))
    if counted != expected:
        raise SystemExit(f"KuaiRec block has (users, items, positives) {counted}, expected {expected}")
