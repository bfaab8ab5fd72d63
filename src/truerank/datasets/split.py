"""Splits of logs. Randomness is keyed by cell, so the order of rows is irrelevant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.io.times import time_ranks
from truerank.sampling.designs import BernoulliDesign, UniformDesign
from truerank.sampling.pools import Members, Share

PER_USER = "split per user"  # the purpose that its chance is keyed by


def split_rows(log: Log, by: str, fraction: float, *, seed: int) -> Ints:
    """The rows of the second part: by `time` the latest share of all, at `random` each with that chance, by `user` a
    share of each user's rows.
    """
    _check(fraction)
    if by == "random":
        return BernoulliDesign(fraction).draw(Members.of(log), seed=seed, purpose="split random")
    if by == "user":
        return UniformDesign(Share(fraction)).draw(Members.of(log), seed=seed, purpose=PER_USER)
    rank = time_ranks(log)
    n_late = int(np.floor(fraction * len(log) + 1e-9))
    if n_late == 0:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(rank >= np.sort(rank)[len(log) - n_late])


def split_per_user(log: Log, fraction: float, *, seed: int) -> tuple[Log, Log]:
    """Of each user's n rows, floor(fraction n) drawn uniformly go to the second part.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 1, 1, 2], "item": [1, 2, 3, 1], "label": [1, 0, 1, 1]}))
    >>> [len(part) for part in split_per_user(log, 0.4, seed=0)]
    [3, 1]
    """
    return _parts(log, split_rows(log, "user", fraction, seed=seed))


def _parts(log: Log, rows: Ints) -> tuple[Log, Log]:
    """The other rows, and these."""
    second: Bools = np.zeros(len(log), dtype=bool)
    second[rows] = True
    return log.select(~second), log.select(second)


def _check(fraction: float) -> None:
    if not 0 < fraction < 1:
        raise InputError(f"fraction {fraction:g} of a split; expected a number between 0 and 1.")


def short_first(log: Log, *, scale: float = 1000.0) -> Floats:
    """Log weights -k / scale of items, k = 1 for the shortest: short videos are shown more often.

    The paper prints exp(k / scale) for the k-th shortest, which would favour long ones, against its own words. The
    scale is not given; 1000 is ours, and infinity means no bias. A video's duration is the median over its rows.
    """
    if "video_duration" not in log.rewards:
        raise InputError(f"{log.source}: no video_duration; it is in the original KuaiRec files. Use popular_first.")
    order = np.lexsort((log.rewards["video_duration"], log.item))
    start = np.searchsorted(log.item[order], np.arange(len(log.items)))
    count = np.bincount(log.item, minlength=len(log.items))
    sorted_durations = np.append(log.rewards["video_duration"][order], np.nan)
    low, high = (np.where(count > 0, start + part, len(log)) for part in ((count - 1) // 2, count // 2))
    return first_by((sorted_durations[low] + sorted_durations[high]) / 2, scale=scale)


def first_by(value: Floats, *, scale: float) -> Floats:
    """Log weights -k / scale of items, k = 1 for the smallest value; equal values in the order of ids.

    >>> first_by(np.array([30.0, 10.0, 30.0]), scale=2).tolist()
    [-1.0, -0.5, -1.5]
    """
    if not scale > 0:
        raise InputError(f"scale {scale:g}; expected a positive number, infinity for no bias.")
    rank = np.empty(len(value))
    rank[np.argsort(value, kind="stable")] = np.arange(1, len(value) + 1)
    return np.asarray(-rank / scale)


def restrict(log: Log, *, users: Ids, items: Ids) -> Log:
    """The rows of these users and items, who are the populations from now on."""
    user, item = users.locate(log.users)[log.user], items.locate(log.items)[log.item]
    mask = (user >= 0) & (item >= 0)
    return replace(log.select(mask), users=users, items=items, unit=frozen(user[mask]), item=frozen(item[mask]))
