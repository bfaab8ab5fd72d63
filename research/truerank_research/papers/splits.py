"""Splits of the papers' datasets. Randomness is keyed by cell, so the order of rows is irrelevant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats, sums_by
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.rng import cell_uniforms
from truerank.datasets.feeds import KuaiRec
from truerank.datasets.ratings import Coat, MovieLens1M
from truerank.datasets.split import first_by, restrict, short_first, split_per_user, split_rows
from truerank.io.read import read
from truerank.sampling.pools import Members, PoolOrder, row_keys

URE_TRAIN_SHARE = 1_934_404 / 4_676_570  # published sizes of the biased training set and of the block


def split_random(log: Log, fraction: float, *, seed: int) -> tuple[Log, Log]:
    """Each row goes to the second part with probability `fraction`, else to the first."""
    second: Bools = np.zeros(len(log), dtype=bool)
    second[split_rows(log, "random", fraction, seed=seed)] = True
    return log.select(~second), log.select(second)


def ure_kuairec(
    full: Log,
    weight: Floats,
    *,
    seed: int,
    shown: int = 80,
    uniform: float = 0.0,
    share: float = URE_TRAIN_SHARE,
) -> dict[str, Log]:
    """KuaiRec as the URE paper splits it: biased `train`, `full` = the rest, `random` = `shown` of the rest per user.

    Training items of a user are drawn without replacement with probabilities proportional to exp(`weight`) of the item
    (`short_first`, or `popular_first` where there are no durations): round(share n) of a user's n cells. The paper does
    not say how many per user; this share reproduces its total within half a row per user. `uniform` draws that part
    of shown x users cells as `uniform` for debiasing, apart from `random` and `full`; the published sizes leave them in
    `full` too.
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
        parts["full"] = _without(rest, parts["uniform"])
    return parts


def kuairec_parts(folder: Path, *, seed: int) -> dict[str, Log]:
    """`truerank split DIR --protocol ure-kuairec`: by durations where there are any, else by popularity."""
    full = KuaiRec().load(folder, parts=["full"])["full"]
    weigh = short_first if "video_duration" in full.rewards else popular_first
    return ure_kuairec(full, weigh(full), seed=seed)


def coat_parts(folder: Path, *, seed: int) -> dict[str, Log]:
    """`truerank split DIR --protocol wtd-coat`."""
    logs = Coat().load(folder)
    return wtd(logs["train"], logs["random"], seed=seed)


def movielens_parts(folder: Path, *, seed: int) -> dict[str, Log]:
    """`truerank split DIR --protocol dcg-movielens`."""
    return dcg_movielens(movielens_interactions(folder), seed=seed)


def movielens_interactions(folder: Path) -> Log:
    """MovieLens-1M, positive where the rating is 4 or 5; the compact files have ratings in a file of their own."""
    if (path := folder / "ratings.parquet").exists():
        return read(pl.read_parquet(path).rename({"user_id": "user", "item_id": "item"}), positive=">=4")
    return MovieLens1M().load(folder)["train"]


def popular_first(log: Log, *, scale: float = 1000.0) -> Floats:
    """Log weights -k / scale of items, k = 1 for the item with most positives.

    >>> import polars as pl
    >>> from truerank.io.read import read
    >>> popular_first(read(pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 2], "label": [0, 1, 1]})), scale=2).tolist()
    [-1.0, -0.5]
    """
    return first_by(-sums_by(log.item, log.label, n=len(log.items)), scale=scale)


def wtd(train: Log, random: Log, *, seed: int) -> dict[str, Log]:
    """Coat and Yahoo! R3 as the WTD paper splits them, over users and items that are in both parts.

    Of the biased rows 60 % are `train` and 40 % `heldout`; of the random rows 15 % are `weights`, 15 % `validation` and
    70 % `truth`. Sizes are rounded down, what is left goes to the last.
    """
    users, items = _common(train.users, random.users), _common(train.items, random.items)
    biased, shown = (restrict(log, users=users, items=items) for log in (train, random))
    fit, heldout = _by_size(biased, [_part(0.6, biased)], seed=seed, purpose="wtd biased")
    weights, validation, truth = _by_size(shown, [_part(0.15, shown)] * 2, seed=seed, purpose="wtd random")
    return {"train": fit, "heldout": heldout, "weights": weights, "validation": validation, "truth": truth}


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
