"""Splits of logs: an ordinary hold-out by time, by last item, at random or by user; item weights; some users and items.

Randomness is keyed by user and item, so the order of rows is irrelevant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats, Ints, frozen, places
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.language import as_value
from truerank.core.log import Log
from truerank.core.plugins import INSTALL, RESEARCH, plugins
from truerank.core.validation import checked_arguments
from truerank.core.wording import option
from truerank.io.atomic_write import FolderKind
from truerank.io.read import LOG
from truerank.io.times import about_missing_times, time_ranks, with_times
from truerank.sampling.designs import BernoulliDesign, UniformDesign
from truerank.sampling.pools import Members, PoolOrder, Share

PER_USER = "split per user"  # the purpose that its random numbers are keyed by
PAIR = ("train.csv", "train.parquet", "test.csv", "test.parquet")
FOLDER = FolderKind("split", (*PAIR, *(f"fold-*/{name}" for name in PAIR), "*.parquet"))  # the last: of a protocol


class SplitBy(StrEnum):
    """How rows are held out.

    TIME    the latest share of all rows; rows of the same time stay together
    LAST    the latest row of each user who has several (leave one out)
    RANDOM  a share of all rows
    USER    a share of each user's rows, rounded down
    """

    TIME = "time"
    LAST = "last"
    RANDOM = "random"
    USER = "user"


ORDERED = (SplitBy.TIME, SplitBy.LAST)


class SplitParts(NamedTuple):
    """What models learn from, and what they are evaluated on."""

    train: Log
    test: Log


@overload
def split(
    log: Any,
    by: SplitBy | str = ...,
    test: float = ...,
    *,
    folds: None = None,
    drop_missing_times: bool = ...,
    seed: int = ...,
) -> SplitParts: ...
@overload
def split(
    log: Any, by: SplitBy | str = ..., test: float = ..., *, folds: int, drop_missing_times: bool = ..., seed: int = ...
) -> tuple[SplitParts, ...]: ...
@checked_arguments(log=LOG)
def split(
    log: Any,
    by: SplitBy | str = SplitBy.TIME,
    test: float = 0.2,
    *,
    folds: int | None = None,
    drop_missing_times: bool = False,
    seed: int = 0,
) -> SplitParts | tuple[SplitParts, ...]:
    """Split a log into training and test parts.

    Users and items of the log stay the population of both parts. Randomness is keyed by user and item, so the order of
    rows does not matter.

    Parameters
    ----------
    log
        A Log, or anything that `read` takes.
    by
        "time": the latest rows; "last": the last row of each user; "random": a random share of rows; "user": a random
        share of each user's rows.
    test
        Share of rows to hold out.
    folds
        Number of pairs of parts in which each row is tested once.
    drop_missing_times
        Drop rows without a time and count them in `notes`; by default they are refused. Times are numbers, dates,
        datetimes or padded ISO 8601 text.
    seed
        The same seed gives the same results.

    Returns
    -------
    SplitParts or tuple
        `train` and `test`; with `folds` a tuple of such parts.

    Examples
    --------
    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 1, 1, 2], "item": [1, 2, 3, 1], "time": [3, 1, 2, 9]}))
    >>> train, test = split(log, "last")
    >>> len(train), test.items.texts(test.item), [len(part.test) for part in split(log, "random", folds=2)]
    (3, ['1'], [2, 2])
    """
    way = as_value(by, SplitBy)
    check_ordered(way, drop_missing_times=drop_missing_times)
    timed = log
    if way in ORDERED:
        timed, kept = with_times(log, drop_missing=drop_missing_times)
        log = replace(log.select(kept), notes=(*log.notes, *about_missing_times(kept, log.source)))
    if folds is not None:
        return tuple(_parts(log, held) for held in folds_of(log, way, folds, seed=seed))
    return _parts(log, held_out(timed, way, test, seed=seed))


def split_by_protocol(name: str, folder: Path, *, seed: int) -> Mapping[str, Log]:
    """The parts of a dataset as a paper splits it: protocols are functions (folder, seed=...) that packages add."""
    offered = plugins("truerank.protocols")
    if name not in offered:
        there = f"expected one of {', '.join(offered)}" if offered else f"{RESEARCH} has some: pip install {INSTALL}"
        raise InputError(f"unknown protocol {name!r}; {there}.")
    parts: Mapping[str, Log] = offered[name](folder, seed=seed)
    return parts


def _parts(log: Log, held: Bools) -> SplitParts:
    return SplitParts(log.select(~held), log.select(held))


def held_out(log: Log, by: SplitBy, test: float, *, seed: int) -> Bools:
    """Which rows go to the test part."""
    held = np.zeros(len(log), dtype=bool)
    held[_last(log) if by is SplitBy.LAST else split_rows(log, by, test, seed=seed)] = True
    return held


def split_per_user(log: Log, fraction: float, *, seed: int) -> SplitParts:
    """Of each user's n rows, floor(fraction n) drawn uniformly go to the second part.

    >>> import polars as pl, truerank as tr
    >>> log = tr.read(pl.DataFrame({"user": [1, 1, 1, 2], "item": [1, 2, 3, 1], "label": [1, 0, 1, 1]}))
    >>> [len(part) for part in split_per_user(log, 0.4, seed=0)]
    [3, 1]
    """
    return _parts(log, held_out(log, SplitBy.USER, fraction, seed=seed))


def check_ordered(by: SplitBy, *, drop_missing_times: bool) -> None:
    """Missing times matter only where rows are ordered by time."""
    if drop_missing_times and by not in ORDERED:
        raise InputError(
            f"{option('drop_missing_times', 'drop_missing_times=True')} goes with by time or last, "
            f"not {by.value}, which needs no times. Leave it out."
        )


def split_rows(log: Log, by: SplitBy | str, fraction: float, *, seed: int) -> Ints:
    """The rows of the second part: by `time` the latest share of all, at `random` each with that chance, by `user` a
    share of each user's rows.
    """
    if not 0 < fraction < 1:
        raise InputError(f"fraction {fraction:g} of a split; expected a number between 0 and 1.")
    if by == "random":
        return BernoulliDesign(fraction).draw(Members.of(log), seed=seed, purpose="split random")
    if by == "user":
        return UniformDesign(Share(fraction)).draw(Members.of(log), seed=seed, purpose=PER_USER)
    rank = time_ranks(log)
    n_late = int(np.floor(fraction * len(log) + 1e-9))
    if n_late == 0:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(rank >= np.sort(rank)[len(log) - n_late])


def _last(log: Log) -> Ints:
    """The latest row of each user who has more than one; of equal times the later item."""
    place, count = places(log.user, (log.item, time_ranks(log))), np.bincount(log.user, minlength=log.n_units)[log.user]
    return np.flatnonzero((place == count - 1) & (count > 1))


def folds_of(log: Log, by: SplitBy, folds: int, *, seed: int) -> list[Bools]:
    """For each fold, which rows are tested: rows in a random order, dealt in turn, of all or of each user."""
    if by not in (SplitBy.RANDOM, SplitBy.USER):
        raise InputError(f"{folds} folds are dealt at random; they go with by random or user, not {by.value}.")
    if not 2 <= folds <= max(len(log), 2):
        raise InputError(f"{folds} folds of {len(log):,} rows; expected 2 or more, and no more than rows.")
    drawn = PoolOrder.drawn(Members.of(log, one_pool=True), seed=seed, purpose="folds").place
    place = drawn if by is SplitBy.RANDOM else places(log.user, (drawn,))
    return [place % folds == fold for fold in range(folds)]


def about_split(parts: SplitParts) -> list[str]:
    """What became of rows, users and items, in words."""
    users, items = (
        [np.bincount(getattr(part, kind), minlength=len(getattr(part, f"{kind}s"))) > 0 for part in parts]
        for kind in ("user", "item")
    )
    sizes = [
        f"{name}: {len(part):,} rows, {np.count_nonzero(of_users):,} users, {np.count_nonzero(of_items):,} items"
        for name, part, of_users, of_items in zip(("train", "test"), parts, users, items, strict=True)
    ]
    new_users, new_items = (int(np.count_nonzero(test & ~train)) for train, test in (users, items))
    without = int(np.count_nonzero(users[0] & ~users[1]))
    return [
        f"{'; '.join(sizes)}.",
        f"{without:,} users have no test rows; {new_users:,} users and {new_items:,} items of the test part have no "
        "training rows, so no model can learn them.",
    ]


def short_first(log: Log, *, scale: float = 1000.0) -> Floats:
    """Log weights -k / scale of items, k = 1 for the shortest: short videos are shown more often.

    The paper prints exp(k / scale) for the k-th shortest, which would favour long ones, against its own words. The
    scale is not given; 1000 is ours, and infinity means no bias. A video's duration is the median over its rows.
    """
    if "video_duration" not in log.rewards:
        raise InputError(
            f"{log.source}: no column video_duration (it is in the original KuaiRec files); give durations: "
            "DurationLogger(duration=...), one for each item."
        )
    rows = pl.DataFrame({"item": log.item, "duration": log.rewards["video_duration"]})
    items = pl.DataFrame({"item": np.arange(len(log.items))})
    medians = items.join(rows.group_by("item").median(), on="item", how="left", maintain_order="left")
    return first_by(medians["duration"].fill_null(np.nan).to_numpy(), scale=scale)


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
    user, item = log.places_in(users, items)
    mask = (user >= 0) & (item >= 0)
    return replace(log.select(mask), users=users, items=items, unit=frozen(user[mask]), item=frozen(item[mask]))
