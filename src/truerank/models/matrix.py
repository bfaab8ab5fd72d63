"""A log as a sparse matrix of positives."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from truerank.core import Log


def positives(log: Log) -> Any:
    """Users x items, 1 where a pair is positive."""
    rows = np.flatnonzero(log.label == 1)
    shape = (len(log.users), len(log.items))
    matrix = csr_array((np.ones(len(rows)), (log.user[rows], log.item[rows])), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix
