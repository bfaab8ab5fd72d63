"""The fully observed datasets of the study (KuaiRec, Jester, a simulated one), models fitted on them, logs studied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from truerank import models
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Scores
from truerank.core.rng import cell_keys
from truerank.datasets.feeds import KuaiRec
from truerank.io.read import read
from truerank.io.spill import scratch
from truerank.metrics.listwise import NDCG
from truerank.models import Side
from truerank.models.libraries import LightFM
from truerank.models.neighbours import SAR
from truerank.ranking.kernel.rank import Aligned
from truerank.ranking.scores.scores import dense
from truerank.reliability import Grid, Preset, study
from truerank.reliability.grid import LOGGERS, SAMPLERS, SIZES, SPARSITIES
from truerank.simulation.dataset import DatasetSettings, simulate_dataset
from truerank_research.papers.reliability.figures import StudyFigures, WorldScale
from truerank_research.papers.reliability.released import released_scores
from truerank_research.runner import Run, Setting, Source

SEED = 20261117  # of how Jester is cut: chosen before any figure was seen
HISTORY = 20  # jokes whose ratings are what is known of the users of the world
LIKED = 5  # ratings above it are positive
DEFECTIVE = ("sar", "lightfm")  # models that the paper's code makes otherwise
AS_RELEASED, RELEASED, PUBLISHED = "as released", "right models, samplers as released", "right models and samplers"
VARIANTS = {AS_RELEASED: Preset.RELEASED, RELEASED: Preset.RELEASED, PUBLISHED: Preset.PUBLISHED}


@dataclass(frozen=True, slots=True)
class StudiedData:
    """A fully observed `world`, and `train`: positives of all its users and items, and of others."""

    world: Log
    train: Log
    side: Side = field(default_factory=Side)


@dataclass(frozen=True, slots=True)
class StudiedModel:
    """A model with its settings; `features` adds what is known of items, `released` is as in the paper's code."""

    title: str
    name: str
    settings: tuple[tuple[str, str], ...] = ()
    features: bool = False
    released: bool = False


@dataclass(frozen=True, slots=True)
class StudiedSetting:
    """What is run on a world: models, sizes, sparsities, and which figures stand for the paper's.

    With one repetition, as in the paper, everything is drawn once and intervals are those of users alone.
    """

    name: str
    title: str
    entries: tuple[StudiedModel, ...]
    sizes: tuple[int, ...]
    scale: WorldScale
    repetitions: int
    sparsities: tuple[float, ...] = SPARSITIES

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metric that is looked at, and the shorter one."""
        return tuple(NDCG(int(name.removeprefix("nDCG@"))) for name in (self.scale.metric, self.scale.shorter))

    def data(self, source: Source) -> StudiedData:
        if self.name == "kuairec":
            return kuairec_data(source.path("kuairec"))
        return jester_data(source.path("jester")) if self.name == "jester" else made_data(BLOCKS[self.name])


SEVEN = (
    StudiedModel("random", "random"),
    StudiedModel("popularity", "popularity"),
    StudiedModel("SAR cosine", "sar"),
    StudiedModel("SAR jaccard", "sar", (("similarity", "jaccard"),)),
    StudiedModel("ALS", "als"),
    StudiedModel("BPR", "bpr"),
    StudiedModel("LightFM", "lightfm"),
)
FEATURED, EASED = StudiedModel("LightFM-F", "lightfm", features=True), StudiedModel("EASE", "ease")
# 200, 500 and 1,000 of KuaiRec's 3,327 items are 6, 15 and 30 %: 5, 10 and 25 of Jester's 80, and so on
SETTINGS: Mapping[str, StudiedSetting] = {
    "kuairec": StudiedSetting(
        "kuairec", "KuaiRec", (*SEVEN, FEATURED), SIZES,
        WorldScale("nDCG@100", "nDCG@10", cutoff=100, large=1000, half=500, moderate=200), 1,
    ),
    "jester": StudiedSetting(
        "jester", "Jester", (*SEVEN, EASED), (1, 2, 5, 10, 15, 25),
        WorldScale("nDCG@10", "nDCG@5", cutoff=10, large=25, half=10, moderate=5), 1,
    ),
    "synthetic": StudiedSetting(
        "synthetic", "synthetic", (*SEVEN, EASED), (1, 2, 5, 10, 25, 50, 120, 240),
        WorldScale("nDCG@25", "nDCG@5", cutoff=25, large=240, half=120, moderate=50), 1,
    ),
    "small": StudiedSetting(
        "small", "synthetic", (*SEVEN[:4], EASED), (1, 4, 9, 18),
        WorldScale("nDCG@10", "nDCG@5", cutoff=10, large=18, half=9, moderate=4), 2, (0.0, 0.1, 0.5, 0.9, 0.95),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MadeBlock:
    """A synthetic world, of which the first users x the first items are fully observed and the rest is learnt from."""

    settings: DatasetSettings
    users: int
    items: int


BLOCKS: Mapping[str, MadeBlock] = {
    "synthetic": MadeBlock(DatasetSettings(users=1500, items=1600, density=0.06, disliking=0.0), 700, 800),
    "small": MadeBlock(DatasetSettings(users=90, items=110, clusters=4, density=0.2, disliking=0.0), 40, 60),
}


def settings_of(run: Setting) -> tuple[StudiedSetting, ...]:
    """The datasets of a run, that which replaces the paper's first."""
    if not run.source.is_synthetic:
        return SETTINGS["kuairec"], SETTINGS["jester"]
    return (SETTINGS["synthetic" if run.full else "small"],)


def made_data(block: MadeBlock, *, seed: int = SEED) -> StudiedData:
    """A synthetic world cut as KuaiRec is: a fully observed block, and the positives outside it.

    >>> made = made_data(BLOCKS["small"])
    >>> len(made.world.users), len(made.world.items), len(made.world)
    (40, 60, 2400)
    """
    truth = simulate_dataset(block.settings, seed=seed).truth
    inside = (truth.user < block.users) & (truth.item < block.items)
    rows = pl.DataFrame({"user": truth.user, "item": truth.item, "label": truth.label.astype(np.int8)})
    users, items = (Ids.of(np.arange(n)) for n in (block.settings.users, block.settings.items))
    liked = rows.filter(~pl.Series(inside) & (pl.col("label") == 1))
    return StudiedData(
        read(rows.filter(pl.Series(inside)), name="block"),
        read(liked, users=users, items=items, name="positives outside the block"),
    )


def kuairec_data(folder: Path, *, check: bool = True) -> StudiedData:
    """Every cell of the small matrix; each pair of the big one once, positive if one of its rows is.

    The compact files have the positive pairs of the big matrix alone, and none of a cell of the small one. One user and
    one video of the block are in no such pair: they are declared, and nothing is known of them.
    """
    dataset = KuaiRec()
    parts = dataset.load(folder, parts=["full", "train"], check=check)
    world, train = parts["full"], parts["train"]
    rows = pl.DataFrame(
        {
            "user": train.users.values.gather(train.user), "item": train.items.values.gather(train.item),
            "label": train.label.astype(np.int8),
        }
    )  # fmt: skip
    pairs = rows.group_by("user", "item", maintain_order=True).max()
    users = Ids.union({"world, users": world.users, "train, users": train.users})
    items = Ids.union({"world, items": world.items, "train, items": train.items})
    known = read(pairs, users=users, items=items, name="big matrix")
    return StudiedData(world, known, Side(item_features=dataset.features(folder)["items"]))


def jester_data(folder: Path, *, seed: int = SEED) -> StudiedData:
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
    liked = pl.col("rating") > LIKED
    rest = table.filter(~unseen & liked).select("user", "item", label=pl.lit(1))
    known = Ids.union({"training": Ids.of(learned), "who likes a joke that was shown": Ids.of(rest["user"])})
    return StudiedData(
        read(
            table.filter(unseen & pl.col("user").is_in(known.values.implode())),
            positive=f">{LIKED}",
            name="jester, world",
        ),
        read(rest, users=known, items=items, name="jester, positives outside the world"),
    )


def _drawn(ids: Ids, n: int, *, seed: int, purpose: str) -> pl.Series:
    key = cell_keys(seed, purpose, ids.keys(), np.zeros(len(ids), dtype=np.uint64))
    return ids.values.gather(np.sort(np.argsort(key, kind="stable")[:n]))


# -------------------------------------------------------------------------------------------------------------- pieces


def fit_scores(source: Source, dataset: str, entry: StudiedModel, seed: int) -> pl.DataFrame:
    """The scores of one model for every pair of a dataset, row by row."""
    data = SETTINGS[dataset].data(source)
    model, world = models.make(entry.name, dict(entry.settings)), data.world
    side = data.side if entry.features else Side()
    if entry.released and isinstance(model, LightFM):
        return pl.DataFrame({"score": released_scores(model, world, data.train, side, seed=seed).ravel()})
    if entry.released and isinstance(model, SAR):
        model = SAR.released(model.similarity)
    scores = model.fit(data.train, seed=seed, side=side)
    aligned = Aligned.of(scores, users=world.users, items=world.items, name=entry.title)
    return pl.DataFrame({"score": aligned.block(np.arange(len(world.users))).ravel()})


def study_logs(
    run: Setting,
    setting: StudiedSetting,
    preset: Preset,
    logger: str,
    samplers: tuple[str, ...] = SAMPLERS,
    variant: str = "",
    *,
    scores: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """The results of the study of one logging policy, at every sparsity; `variant` names what else was changed."""
    data = setting.data(run.source)
    grid = Grid.from_names(
        preset=preset, loggers=(logger,), sparsities=setting.sparsities, samplers=samplers, sizes=setting.sizes,
        metrics=setting.metrics, repetitions=setting.repetitions,
    )  # fmt: skip
    with scratch() as space:
        return study(
            scores_of(scores, data.world), data.world, space.make("study"), grid=grid, train=data.train, seed=run.seed,
            resamples=1000 if run.full else 50, threads=1,
        ).results  # fmt: skip


def scores_of(tables: Mapping[str, pl.DataFrame], world: Log) -> dict[str, Scores]:
    """Stored tables of scores as scores."""
    shape = len(world.users), len(world.items)
    return {
        title: dense(table["score"].to_numpy().reshape(shape), users=world.users.values, items=world.items.values)
        for title, table in tables.items()
    }


def fitted(run: Run, setting: StudiedSetting, *, seed: int, released: bool = False) -> dict[str, pl.DataFrame]:
    """The scores of every model of a dataset; `released`: of SAR and LightFM as the paper's code makes them."""
    entries = [replace(entry, released=released and entry.name in DEFECTIVE) for entry in setting.entries]
    arguments = [(run.source, setting.name, entry, seed) for entry in entries]
    tables = run.pieces(fit_scores, arguments, about=f"fitting models on {setting.title}")
    return {entry.title: table for entry, table in zip(entries, tables, strict=True)}


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One dataset in one variant (of VARIANTS), as it was studied."""

    setting: StudiedSetting
    variant: str
    results: pl.DataFrame

    @property
    def title(self) -> str:
        return f"{self.setting.title}, {self.variant}"

    def figures(self, *, rounded: bool = False) -> StudyFigures:
        return StudyFigures.read(self.results, scale=self.setting.scale, rounded=rounded)


def studied(run: Run) -> list[StudyRun]:
    """Every dataset in every variant; as released only the paper's own, as its ids make the defect."""
    runs = []
    for setting in settings_of(run):
        for variant, preset in VARIANTS.items():
            if variant == AS_RELEASED and setting.name != "kuairec":
                continue
            scores = fitted(run, setting, seed=run.seed, released=variant == AS_RELEASED)
            arguments = [(run.setting, setting, preset, logger, SAMPLERS, variant) for logger in LOGGERS]
            tables = run.pieces(study_logs, arguments, about=f"studying {setting.title}, {variant}", scores=scores)
            runs.append(StudyRun(setting, variant, pl.concat(tables)))
    return runs
