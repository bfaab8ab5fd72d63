"""When users arrived, by the times of their rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from truerank.core.arrays import Ints
from truerank.core.log import Log
from truerank.core.messages import Message, message
from truerank.core.rng import cell_keys
from truerank.datasets.split import restrict
from truerank.io.times import about_missing_times, time_ranks, with_times


def with_arrival_times(log: Log) -> tuple[Log, list[Message]]:
    """The rows that have a time, without the users of whom no row is left; and how many were dropped."""
    timed, timed_rows = with_times(log, drop_missing=True)
    had, has = (np.bincount(log.user[rows], minlength=log.n_units) > 0 for rows in (slice(None), timed_rows))
    messages = [
        message(
            "missing-times",
            sentence=sentence,
            numbers={"rows": int(np.count_nonzero(~timed_rows)), "users": int(np.count_nonzero(had & ~has))},
        )
        for sentence in about_missing_times(timed_rows, log.source)
    ]
    users = replace(log.users, values=log.users.values.filter(pl.Series(has | ~had)))
    return restrict(timed, users=users, items=log.items), messages


def arrivals(log: Log, *, seed: int) -> Ints:
    """The place of each user in the order of their first rows; at one time in an order of their own."""
    first = np.full(log.n_units, np.iinfo(np.int64).max)  # those without a row come last
    np.minimum.at(first, log.user, time_ranks(log))
    keys = log.users.keys()
    tie = cell_keys(seed, "arrival", keys, np.zeros(len(keys), dtype=np.uint64))
    order = np.lexsort((tie, first))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place
