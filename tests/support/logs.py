"""Small logs from lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Candidates
from truerank.ranking.samplers.draw import SampledNegatives


def log_of(rows: Sequence[tuple[int, int, int]], *, n_users: int, n_items: int, source: str = "log") -> Log:
    """Rows (user, item, label) over users 0 ... n_users - 1 and items 0 ... n_items - 1."""
    user, item, label = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Log(
        users=Ids.of(np.arange(n_users)),
        items=Ids.of(np.arange(n_items)),
        unit=user.copy(),
        item=item.copy(),
        rewards={"label": label.astype(np.float64)},
        source=source,
    )


def full_world(label: Sequence[Sequence[int]]) -> Log:
    """Every pair of a matrix of labels [users x items]."""
    matrix = np.array(label)
    user, item = (axis.ravel() for axis in np.indices(matrix.shape))
    rows = np.stack([user, item, matrix.ravel()], axis=1)
    return log_of([tuple(row) for row in rows.tolist()], n_users=matrix.shape[0], n_items=matrix.shape[1])


def cells(log: Log) -> set[tuple[int, int]]:
    return set(zip(log.user.tolist(), log.item.tolist(), strict=True))


def candidates_of(sampled: SampledNegatives) -> Candidates:
    """Positives and negatives in positions of the pool, a positive drawn as a negative twice."""
    positive, n_users = sampled.logged.positive, len(sampled.logged.users)
    user = np.concatenate([positive.unit, sampled.user])
    item = np.concatenate([positive.item, sampled.item])
    start = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=n_users))])
    return Candidates(n_users, float(len(sampled.logged.items)), only=Pairs(start, item[np.lexsort((item, user))]))
