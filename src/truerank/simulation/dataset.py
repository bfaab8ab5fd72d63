"""A synthetic dataset whose truth is known: every user's rating of every item, and what logs would show of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.record import record
from truerank.core.rng import cell_uniforms, generator
from truerank.core.sizes import check_size
from truerank.core.values import Count, Range, check
from truerank.io.atomic_write import FolderKind, whole_folder
from truerank.io.files import write_table
from truerank.io.read import read
from truerank.sampling.designs import UniformDesign
from truerank.sampling.pools import Members, PoolOrder

TABLES = ("truth.parquet", "train.parquet", "random.parquet", "items.parquet")
FOLDER = FolderKind("world", TABLES)
POSITIVE = ">3"
Share = Annotated[float, Range(least=0, below=1)]
CELL_BYTES = 80.0  # that the arrays of one pair of user and item take while a dataset is drawn


@record
class DatasetSettings:
    """How large and how skewed a dataset is.

    Appeal of item i to user u: popularity of i (heavy tail) + activity of u + `taste` · match of their taste clusters
    + noise. Ratings 1 to 5 cut the appeal at fixed quantiles, so that about `density` of the pairs are positive (4 or
    5). `disliking` of the users like nothing. The training log shows about `shown` items per user, more often popular
    and liked ones; `judged` uniformly random unseen items per user make the random test set.
    """

    users: Count = 2000
    items: Count = 1000
    clusters: Count = 8
    density: Share = 0.05
    taste: float = 2.5
    disliking: Share = 0.05
    shown: Count = 80
    judged: Count = 20

    def __post_init__(self) -> None:
        check(self, where="simulated dataset")
        if self.shown + self.judged > self.items:
            raise InputError(
                f"a dataset that shows {self.shown} and judges {self.judged} of {self.items} items per user; "
                "expected no more than there are items."
            )


@record
class SimulatedDataset:
    """Ratings [users x items] of everything, and two logs of it."""

    rating: npt.NDArray[np.int8]
    users: Ids
    items: Ids
    train: Log
    random: Log

    @property
    def truth(self) -> Log:
        """Every pair with its label."""
        user, item = (axis.ravel() for axis in np.indices(self.rating.shape))
        return _log(self.rating, user, item, users=self.users, items=self.items, name="truth")

    def judge(self, n: int, *, seed: int) -> Log:
        """A new random test set: n unseen items per user, uniformly."""
        return _judge(self.rating, self.train, n, seed=seed)


def simulate_dataset(settings: DatasetSettings | None = None, *, seed: int) -> SimulatedDataset:
    """Draw a dataset.

    >>> dataset = simulate_dataset(DatasetSettings(users=50, items=40, shown=10, judged=5), seed=1)
    >>> dataset.rating.shape, len(dataset.random), bool((dataset.rating.max(axis=1) <= 3).any())
    ((50, 40), 250, True)
    """
    settings = DatasetSettings() if settings is None else settings
    check_size(
        f"a dataset of {settings.users:,} users x {settings.items:,} items",
        memory=CELL_BYTES * settings.users * settings.items
        + 8.0 * settings.clusters * (settings.users + settings.items),
        instead="Ask for fewer users, items or clusters.",
    )
    rng = generator(seed, "world")
    users, items = Ids.of(np.arange(settings.users)), Ids.of(np.arange(settings.items))
    appeal, popularity = _appeal(settings, rng)
    likes = rng.random(settings.users) >= settings.disliking
    cuts = np.quantile(appeal[likes], [0.35, 0.65, 1 - settings.density, 1 - settings.density / 3])
    rating = (1 + np.searchsorted(cuts, appeal)).astype(np.int8)
    rating[~likes] = np.minimum(rating[~likes], 3)
    user, item = _shown(settings, appeal, popularity, rng, users=users, items=items, seed=seed)
    train = _log(rating, user, item, users=users, items=items, name="train")
    return SimulatedDataset(rating, users, items, train, _judge(rating, train, settings.judged, seed=seed))


def write_dataset(
    dataset: SimulatedDataset, folder: Path, *, force: bool = False, say: Callable[[str, int, int], None] | None = None
) -> dict[str, Path]:
    """Write a folder of truth, train, random and items as Parquet; the paths by name. `force` replaces another one."""
    with whole_folder(folder, kind=FOLDER, force=force) as part:
        paths = write_tables(dataset, part, say=say)
    return {name: folder / path.name for name, path in paths.items()}


def write_tables(
    dataset: SimulatedDataset, folder: Path, *, say: Callable[[str, int, int], None] | None = None
) -> dict[str, Path]:
    """The tables of a dataset as files in a folder that is there; the paths by name."""
    tables: dict[str, Callable[[], pl.DataFrame]] = {
        "truth": lambda: _ratings(dataset.truth),
        "train": lambda: _ratings(dataset.train),
        "random": lambda: _ratings(dataset.random),
        "items": lambda: pl.DataFrame({"item": dataset.items.values}),
    }
    paths = {name: folder / f"{name}.parquet" for name in tables}
    for index, (name, table) in enumerate(tables.items()):
        if say is not None:
            say(f"writing {name}", index, len(tables))
        write_table(table(), paths[name])
    return paths


def _appeal(settings: DatasetSettings, rng: np.random.Generator) -> tuple[Floats, Floats]:
    shape = (settings.users, settings.items)
    popularity = rng.exponential(0.4, settings.items)
    activity = rng.normal(0.0, 0.6, settings.users)
    # a user has one or two favourite clusters, an item belongs mostly to one; clusters differ in size
    size = 1.0 / np.arange(1, settings.clusters + 1) ** 0.7
    user_taste = rng.dirichlet(0.2 * size / size.mean(), settings.users)
    item_taste = rng.dirichlet(0.2 * size / size.mean(), settings.items)
    match = np.sqrt(user_taste) @ np.sqrt(item_taste).T
    noise = rng.normal(0.0, 0.35, shape)
    return popularity + activity[:, None] + settings.taste * match + noise, popularity


def _shown(
    settings: DatasetSettings,
    appeal: Floats,
    popularity: Floats,
    rng: np.random.Generator,
    *,
    users: Ids,
    items: Ids,
    seed: int,
) -> tuple[Ints, Ints]:
    """What the deployed system showed: popular and liked items more often, active users more items."""
    n = np.round(settings.shown * rng.lognormal(-0.18, 0.6, settings.users)).astype(np.int64)
    n = np.clip(n, 1, settings.items - settings.judged)
    user, item = (axis.ravel() for axis in np.indices(appeal.shape))
    uniform = cell_uniforms(seed, "shown", users.keys()[user], items.keys()[item]).reshape(appeal.shape)
    # successive draws without replacement, by Gumbel keys
    key = 1.5 * popularity + 0.5 * appeal - np.log(-np.log(np.maximum(uniform, 1e-300)))
    shown = PoolOrder.by(user, -key.ravel()).first(n)
    return user[shown], item[shown]


def _judge(rating: npt.NDArray[np.int8], train: Log, n: int, *, seed: int) -> Log:
    unseen = np.ones(rating.shape, dtype=bool)
    unseen[train.user, train.item] = False
    user, item = np.nonzero(unseen)
    drawn = UniformDesign(n).draw(
        Members(train.users.keys()[user], train.items.keys()[item]), seed=seed, purpose="uniform"
    )
    return _log(rating, user[drawn], item[drawn], users=train.users, items=train.items, name="random")


def _log(rating: npt.NDArray[np.int8], user: Ints, item: Ints, *, users: Ids, items: Ids, name: str) -> Log:
    frame = pl.DataFrame({"user": users.values[user], "item": items.values[item], "rating": rating[user, item]})
    return read(frame, positive=POSITIVE, users=users, items=items, name=name)


def _ratings(log: Log) -> pl.DataFrame:
    rating = log.rewards["rating"].astype(np.int8)
    return pl.DataFrame({"user": log.users.values[log.user], "item": log.items.values[log.item], "rating": rating})
