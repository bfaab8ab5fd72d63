"""The two fully observed worlds of the reliability study, KuaiRec and Jester, and the models that are ordered on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

import kuairec
from truerank.core.chance import cell_keys
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.data.datasets.kuairec import KuaiRec
from truerank.data.read import read
from truerank.metrics.dcg import DCG
from truerank.metrics.ndcg import NDCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.models import Side
from truerank.studies.reliability.grid import METRICS, SIZES

SEED = 20261117  # chosen before any figure was seen
HISTORY = 20  # jokes whose ratings are what is known of the users of the world
RULE = ">5"


@dataclass(frozen=True, slots=True)
class Data:
    """A fully observed `world`, and `train`: positives of all its users and items, and of others."""

    world: Log
    train: Log
    side: Side = field(default_factory=Side)


@dataclass(frozen=True, slots=True)
class Entry:
    """A model with its settings; `features` adds what is known of items."""

    title: str
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    features: bool = False


@dataclass(frozen=True, slots=True)
class Study:
    """What is run on a world: models, sizes and metrics."""

    name: str
    entries: tuple[Entry, ...]
    sizes: tuple[int, ...]
    metrics: tuple[Metric, ...]

    def data(self) -> Data:
        folder = kuairec.data_folder() / self.name
        return kuairec_data(folder) if self.name == "kuairec" else jester_data(folder)


SEVEN = (
    Entry("random", "random"),
    Entry("popularity", "popularity"),
    Entry("SAR cosine", "sar"),
    Entry("SAR jaccard", "sar", {"similarity": "jaccard"}),
    Entry("ALS", "als"),
    Entry("BPR", "bpr"),
    Entry("LightFM", "lightfm"),
)
JESTER_METRICS: tuple[Metric, ...] = tuple(make(k) for make in (Precision, Recall, NDCG, DCG) for k in (5, 10, 20))
STUDIES = {
    "kuairec": Study("kuairec", (*SEVEN, Entry("LightFM-F", "lightfm", features=True)), SIZES, METRICS),
    "jester": Study("jester", (*SEVEN, Entry("EASE", "ease")), (1, 2, 5, 10, 15, 25, 35, 50), JESTER_METRICS),
}


def kuairec_data(folder: Path) -> Data:
    """Every cell of the small matrix; the positive pairs of the big one, each once, which has no cell of the small.

    One user and one video of the block have no positive in the big matrix: they are declared, and known by nothing.
    """
    dataset = KuaiRec()
    parts = dataset.load(folder, parts=["full", "train"])
    world, train = parts["full"], parts["train"]
    pairs = pl.DataFrame(
        {"user": train.users.values.gather(train.user), "item": train.items.values.gather(train.item)}
    ).with_columns(label=pl.lit(1))
    users = Ids.union({"world, users": world.users, "train, users": train.users})
    items = Ids.union({"world, items": world.items, "train, items": train.items})
    known = read(pairs, users=users, items=items, name="big matrix, positives")
    return Data(world, known, Side(item_features=dataset.features(folder)["items"]))


def jester_data(folder: Path, *, seed: int = SEED) -> Data:
    """Half of the users give all their ratings for training; of the others the ratings of 20 jokes are history.

    The world is who of the other half likes a joke of the history x the other 80 jokes, every cell of it rated and none
    of it trained on. Of users who like none nothing is known, several models score all jokes alike for them, and so
    they are left out of everything. A joke is liked with a rating above 5, the top quarter of the scale.
    """
    columns = {"user_id": "user", "item_id": "item"}
    table = pl.read_parquet(folder / "ratings_fully_observed.parquet").rename(columns)
    everyone, items = Ids.of(table["user"]), Ids.of(table["item"])
    learned = _drawn(everyone, len(everyone) // 2, seed=seed, purpose="jester, users for training")
    history = _drawn(items, HISTORY, seed=seed, purpose="jester, jokes of the history")
    unseen = ~pl.col("user").is_in(learned.implode()) & ~pl.col("item").is_in(history.implode())
    liked = pl.col("rating") > float(RULE.removeprefix(">"))
    rest = table.filter(~unseen & liked).select("user", "item", label=pl.lit(1))
    known = Ids.union({"training": Ids.of(learned), "who likes a joke that was shown": Ids.of(rest["user"])})
    return Data(
        read(table.filter(unseen & pl.col("user").is_in(known.values.implode())), positive=RULE, name="jester, world"),
        read(rest, users=known, items=items, name="jester, positives outside the world"),
    )


def _drawn(ids: Ids, n: int, *, seed: int, purpose: str) -> pl.Series:
    key = cell_keys(seed, purpose, ids.keys(), np.zeros(len(ids), dtype=np.uint64))
    return ids.values.gather(np.sort(np.argsort(key, kind="stable")[:n]))
