"""How often items occur in logs, and weights by their rank."""

from __future__ import annotations

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log

ZIPF = 0.5  # the exponent of the KuaiRec authors' demonstration, which papers on loggers and samplers follow


def rows_of_items(log: Log, items: Ids, *, positive: bool = False) -> Ints:
    """How many rows, or positive rows, each of `items` has in a log; in a complete one every pair is a row.

    >>> import polars as pl
    >>> from truerank.data.read import read
    >>> log = read(pl.DataFrame({"user": [1, 1, 2], "item": [5, 7, 7], "label": [0, 1, 0]}))
    >>> rows_of_items(log, Ids.of([5, 6, 7])).tolist(), rows_of_items(log, Ids.of([5, 6, 7]), positive=True).tolist()
    ([1, 0, 2], [0, 0, 1])
    """
    place = items.locate(log.items, where=f"{log.source}, column 'item'")
    if log.complete and not positive:
        known = np.bincount(place[place >= 0], minlength=len(items))
        return np.asarray(known * len(log.users), dtype=np.int64)
    here = place[log.item[log.label == 1] if positive else log.item]
    return np.bincount(here[here >= 0], minlength=len(items)).astype(np.int64)


def zipf(count: Ints | Floats, *, shift: int = 0, exponent: float = ZIPF) -> Floats:
    """(rank + shift)^-exponent, rank 1 for the largest count; equal counts share the smallest of their ranks.

    >>> zipf(np.array([10, 30, 10])).round(4).tolist()
    [0.7071, 1.0, 0.7071]
    """
    if not (exponent >= 0 and np.isfinite(exponent)):
        raise InputError(f"a Zipf exponent of {exponent:g}; expected a finite number from 0.")
    rank = 1 + len(count) - np.searchsorted(np.sort(count), count, side="right")
    return np.asarray((rank + shift).astype(np.float64) ** -exponent)
