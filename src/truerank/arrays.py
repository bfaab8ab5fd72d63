"""Arrays: their types, and sums that do not depend on order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, read-only."""
    array.setflags(write=False)
    return array


def exact_sum(values: Floats) -> float:
    """The correctly rounded sum, hence the same bits in any order.

    >>> exact_sum(np.array([1e16, 1.0, -1e16]))
    1.0
    """
    return math.fsum(values.tolist())


def sums_by(group: Ints, values: npt.NDArray[Any], *, n: int) -> Floats:
    """The sum of the values of each group 0 ... n - 1, added in the order of rows.

    >>> sums_by(np.array([1, 0, 1]), np.array([2.0, 5.0, 3.0]), n=3).tolist()
    [5.0, 5.0, 0.0]
    """
    return np.bincount(group, weights=values, minlength=n).astype(np.float64)
