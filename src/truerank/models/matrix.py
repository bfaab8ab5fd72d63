"""A log as sparse matrices, and the checks of a training log that models share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.sizes import check_size


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and LAPACK on one thread inside, as before outside."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def positive_rows(log: Log) -> Bools:
    """Which rows are positive; in a log without a value column all are. Refused where none is."""
    check_rows(log)
    result = log.label == 1 if log.rewards else np.ones(len(log), dtype=bool)
    if not result.any():
        raise InputError(f"{log.source}: none of {len(log):,} rows is positive; expected some to learn from.")
    return result


def check_rows(log: Log) -> None:
    """Refuse a log without rows."""
    if len(log) == 0:
        raise InputError(f"{log.source}: no rows; expected pairs of users and items to learn from.")


def check_factors(name: str, log: Log, n: int, *, bytes_each: float = 4.0) -> None:
    """Refuse factors of users and items, and products of them, that cannot be held."""
    check_size(
        f"{name} with {n:,} factors for {len(log.users):,} users and {len(log.items):,} items",
        memory=bytes_each * n * (len(log.users) + len(log.items)),
        instead="Take fewer factors.",
    )


def values(log: Log) -> Floats:
    """The raw value of each row, such as its rating; its label where the log has no other."""
    check_rows(log)
    if not log.rewards:
        raise InputError(f"{log.source}: no value column; expected values to learn from, as rating or label.")
    return log.rewards[raw_name(log) or "label"]


def raw_name(log: Log) -> str | None:
    """The name of the values beside the label, None where there are none."""
    raw = [name for name in log.rewards if name != "label"]
    if len(raw) > 1:
        raise InputError(f"{log.source}: several value columns ({', '.join(raw)}); expected one to learn from.")
    return raw[0] if raw else None


def positives(log: Log) -> Any:
    """Users x items, 1 where a pair is positive."""
    matrix = counts(log)
    matrix.data[:] = 1.0
    return matrix


def counts(log: Log) -> Any:
    """Users x items, the number of positive rows of each pair that has one."""
    rows = np.flatnonzero(positive_rows(log))
    return _matrix(log, rows, np.ones(len(rows)))


def valued(log: Log) -> Any:
    """Users x items, the raw values summed over the rows of a pair; every row is stored, zeros too."""
    return _matrix(log, np.arange(len(log)), values(log))


def listed(log: Log) -> Any:
    """Users x items, 1 where a pair has a row, of whatever value."""
    check_rows(log)
    matrix = _matrix(log, np.arange(len(log)), np.ones(len(log)))
    matrix.data[:] = 1.0
    return matrix


def _matrix(log: Log, rows: Any, value: Floats) -> Any:
    shape = (len(log.users), len(log.items))
    matrix = csr_array((value, (log.user[rows], log.item[rows])), shape=shape)
    matrix.sum_duplicates()
    return matrix
