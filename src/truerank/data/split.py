"""Split a log in two: at random, per user, or by time. Chance is keyed by cell, so the order of rows is irrelevant."""

from __future__ import annotations

import numpy as np

from truerank.core.arrays import Bools, Ints
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.sampling.designs import BernoulliDesign, UniformDesign
from truerank.sampling.pools import Members, Share

PER_USER = "split per user"  # the purpose that its chance is keyed by


def split_random(log: Log, fraction: float, *, seed: int) -> tuple[Log, Log]:
    """Each row goes to the first part with probability 1 - `fraction`, to the second with `fraction`."""
    _check(fraction)
    return _parts(log, BernoulliDesign(fraction).draw(Members.of(log), seed=seed, purpose="split random"))


def split_per_user(log: Log, fraction: float, *, seed: int) -> tuple[Log, Log]:
    """Of each user's n rows, floor(fraction n) drawn uniformly go to the second part.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 1, 1, 2], "item": [1, 2, 3, 1], "label": [1, 0, 1, 1]}))
    >>> [len(part) for part in split_per_user(log, 0.4, seed=0)]
    [3, 1]
    """
    _check(fraction)
    return _parts(log, UniformDesign(Share(fraction)).draw(Members.of(log), seed=seed, purpose=PER_USER))


def split_by_time(log: Log, fraction: float) -> tuple[Log, Log]:
    """The latest `fraction` of rows go to the second part; rows of the same time stay together, in the second."""
    _check(fraction)
    if log.time is None:
        raise InputError(f"{log.source}: a split by time needs a time column. Name it with --columns time=NAME.")
    n_late = int(np.floor(fraction * len(log) + 1e-9))
    if n_late == 0:
        return _parts(log, np.zeros(0, dtype=np.int64))
    return _parts(log, np.flatnonzero(log.time >= np.sort(log.time)[len(log) - n_late]))


def _parts(log: Log, rows: Ints) -> tuple[Log, Log]:
    """The other rows, and these."""
    second: Bools = np.zeros(len(log), dtype=bool)
    second[rows] = True
    return log.select(~second), log.select(second)


def _check(fraction: float) -> None:
    if not 0 < fraction < 1:
        raise InputError(f"fraction {fraction:g} of a split; expected a number between 0 and 1.")
