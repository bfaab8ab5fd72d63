"""Splits of logs, and those of the papers. Chance is keyed by cell, so the order of rows is irrelevant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, frozen, sums_by
from truerank.core.chance import cell_uniforms
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.data.times import time_ranks
from truerank.sampling.designs import BernoulliDesign, UniformDesign
from truerank.sampling.pools import Members, PoolOrder, Share, row_keys

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


def split_random(log: Log, fraction: float, *, seed: int) -> tuple[Log, Log]:
    """Each row goes to the first part with probability 1 - `fraction`, to the second with `fraction`."""
    return _parts(log, split_rows(log, "random", fraction, seed=seed))


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


URE_TRAIN_SHARE = 1_934_404 / 4_676_570  # published sizes of the biased training set and of the block


# ----------------------------------------------------------------------------------------------------------------- URE


def ure_kuairec(
    full: Log,
    weight: Floats,
    *,
    seed: int,
    shown: int = 80,
    uniform: float = 0.0,
    reuse: bool = False,
    share: float = URE_TRAIN_SHARE,
) -> dict[str, Log]:
    """KuaiRec as the URE paper splits it: biased `train`, `full` = the rest, `random` = `shown` of the rest per user.

    Training items of a user are drawn without replacement with probabilities proportional to exp(`weight`) of the item
    (`short_first`, or `popular_first` where there are no durations): round(share n) of a user's n cells. The paper does
    not say how many per user; this share reproduces its total within half a row per user. `uniform` draws that part
    of shown x users cells as `uniform` for debiasing, apart from `random`; `reuse` leaves them in `full` too, which
    are the published sizes.
    """
    _check_shown(shown)
    if weight.shape != (len(full.items),):
        raise InputError(f"weights of shape {weight.shape} for {len(full.items):,} items; expected one for each.")
    # the n largest of log weight + Gumbel noise are a weighted sample without replacement
    noise = -np.log(-np.log(np.maximum(cell_uniforms(seed, "ure train", *row_keys(full)), 2.0**-54)))
    order = PoolOrder.by(full.user, -(weight[full.item] + noise))
    chosen = order.first(np.floor(share * order.count + 0.5).astype(np.int64))
    rest = full.select(~chosen)
    random = PoolOrder.drawn(Members.of(rest), seed=seed, purpose="ure random").first(shown)
    parts = {"train": full.select(chosen), "full": rest, "random": rest.select(random)}
    if uniform > 0:
        spare = rest.select(~random)
        size = math.floor(uniform * shown * len(full.users) + 1e-9)
        parts["uniform"], _ = _by_size(spare, [size], seed=seed, purpose="ure uniform")
        if not reuse:
            parts["full"] = _without(rest, parts["uniform"])
    return parts


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


def popular_first(log: Log, *, scale: float = 1000.0) -> Floats:
    """Log weights -k / scale of items, k = 1 for the item with most positives.

    >>> import polars as pl
    >>> from truerank.data.read import read
    >>> popular_first(read(pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 2], "label": [0, 1, 1]})), scale=2).tolist()
    [-1.0, -0.5]
    """
    return first_by(-sums_by(log.item, log.label, n=len(log.items)), scale=scale)


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


def ure_yahoo(random: Log, *, seed: int) -> dict[str, Log]:
    """Yahoo! R3's random part as the URE paper splits it: 5 % `uniform`, 5 % `validation`, 90 % `random`, over rows.

    The paper says 10 % for debiasing; the code it builds on halves that between the propensities and early stopping.
    """
    sizes = [math.floor(0.05 * len(random) + 1e-9)] * 2
    uniform, validation, rest = _by_size(random, sizes, seed=seed, purpose="ure yahoo")
    return {"uniform": uniform, "validation": validation, "random": rest}


# ----------------------------------------------------------------------------------------------------------------- WTD


def wtd(train: Log, random: Log, *, seed: int, released: bool = False) -> dict[str, Log]:
    """Coat and Yahoo! R3 as the WTD paper splits them, over users and items that are in both parts.

    Of the biased rows 60 % are `train` and 40 % `heldout`; of the random rows 15 % are `weights`, 15 % `validation` and
    70 % `truth`. Sizes are rounded down, what is left goes to the last. `released` is what the paper's code did
    instead: `truth` is the 85 % left after `weights`, and `validation` is 15 % of that, inside it.
    """
    users, items = _common(train.users, random.users), _common(train.items, random.items)
    biased, shown = (restrict(log, users=users, items=items) for log in (train, random))
    fit, heldout = _by_size(biased, [_part(0.6, biased)], seed=seed, purpose="wtd biased")
    if released:
        weights, truth = _by_size(shown, [_part(0.15, shown)], seed=seed, purpose="wtd random")
        validation, _ = _by_size(truth, [_part(0.15, truth)], seed=seed, purpose="wtd validation")
    else:
        sizes = [_part(0.15, shown)] * 2
        weights, validation, truth = _by_size(shown, sizes, seed=seed, purpose="wtd random")
    return {"train": fit, "heldout": heldout, "weights": weights, "validation": validation, "truth": truth}


# ----------------------------------------------------------------------------------------------------------------- DCG


def dcg_movielens(log: Log, *, seed: int = 0, least: int = 5) -> dict[str, Log]:
    """MovieLens-1M as the DCG paper splits it: positives only, of items that at least 5 users like.

    Of a user's n items ceil(n / 2), drawn at random, go to `train` and the rest to `test`.
    """
    liked = log.select(log.label == 1)
    popular = np.bincount(liked.item, minlength=len(log.items)) >= least
    kept = restrict(liked, users=liked.users, items=Ids.of(log.items.values.filter(popular)))
    kept = restrict(kept, users=Ids.of(kept.users.values[np.unique(kept.user)]), items=kept.items)
    train, test = split_per_user(kept, 0.5, seed=seed)
    return {"train": train, "test": test}


# ------------------------------------------------------------------------------------------------------------- helpers


def restrict(log: Log, *, users: Ids, items: Ids) -> Log:
    """The rows of these users and items, who are the populations from now on."""
    user, item = users.locate(log.users)[log.user], items.locate(log.items)[log.item]
    kept = (user >= 0) & (item >= 0)
    return replace(log.select(kept), users=users, items=items, user=frozen(user[kept]), item=frozen(item[kept]))


def _common(first: Ids, second: Ids) -> Ids:
    return Ids(first.values.filter(second.locate(first) >= 0))


def _part(fraction: float, log: Log) -> int:
    return math.floor(fraction * len(log) + 1e-9)


def _by_size(log: Log, sizes: Sequence[int], *, seed: int, purpose: str) -> list[Log]:
    """Uniformly random parts of exactly these sizes, and the rest as the last one."""
    place = PoolOrder.drawn(Members.of(log, one_pool=True), seed=seed, purpose=purpose).place
    part = np.searchsorted(np.cumsum(sizes), place, side="right")
    return [log.select(part == number) for number in range(len(sizes) + 1)]


def _without(log: Log, gone: Log) -> Log:
    width = len(log.items)
    return log.select(~np.isin(log.user * width + log.item, gone.user * width + gone.item))


def _check_shown(shown: int) -> None:
    if shown < 1:
        raise InputError(f"{shown} items shown per user; expected a whole number from 1.")
