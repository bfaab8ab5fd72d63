"""The data of the experiments: Coat, or a simulated dataset of its shape with every rating; splits and grids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import truerank as tr
from truerank.core.log import Log
from truerank.datasets.ratings import Coat, YahooR3
from truerank.exposure.interventions import (
    FullIntervention,
    RegularIntervention,
    SkewIntervention,
    Strategy,
    WTDHIntervention,
    WTDIntervention,
)
from truerank.models import Model
from truerank.models.baselines import AvgRating, PosPop
from truerank.models.least_squares import IALS
from truerank.models.neighbours import ItemKNN, Preference, UserKNN
from truerank.simulation.dataset import DatasetSettings, simulate_dataset
from truerank_research.papers.splits import split_random, wtd
from truerank_research.runner import Setting

STRATEGIES: Mapping[str, Strategy] = {
    "FULL": FullIntervention(),
    "REG": RegularIntervention.published(),
    "SKEW": SkewIntervention.published(),
    "WTD": WTDIntervention.published(),
    "WTD_H": WTDHIntervention.published(),
    "WTD, item power 1": WTDIntervention.released(),
    "WTD_H, item power 1": WTDHIntervention.released(),
}
ASIDE = 0.25  # share of the held-out rows from which an intervened validation part is drawn
TUNED = ("UB_KNN", "IB_KNN", "MF")
RAW = Preference.VALUES  # ratings as they are, as in RankSys


@dataclass(frozen=True, slots=True)
class Shape:
    """Number of runs, grids of settings, and the simulated dataset: Coat's size, density and rows per user."""

    runs: int
    neighbours: tuple[int, ...]
    factors: tuple[int, ...]
    regularisation: tuple[float, ...]
    world: DatasetSettings

    def settings(self) -> dict[str, object]:
        return {
            "runs": self.runs, "neighbours": list(self.neighbours), "factors": list(self.factors),
            "regularisation": list(self.regularisation),
        }  # fmt: skip

    def grid(self, recommender: str) -> list[Model]:
        """The models among which validation chooses; one where there is no setting."""
        if recommender in ("UB_KNN", "IB_KNN"):
            make = UserKNN if recommender == "UB_KNN" else ItemKNN
            return [make(n, RAW) for n in self.neighbours]
        if recommender == "MF":
            both = product(self.factors, self.regularisation)
            return [IALS(factors=n, regularisation=value, rows=RAW) for n, value in both]
        return [PosPop() if recommender == "PosPop" else AvgRating()]


FULL_SHAPE = Shape(
    10, tuple(range(10, 101, 10)), tuple(range(20, 201, 20)), (0.001, 0.006, 0.01, 0.06, 0.1, 0.6),
    DatasetSettings(users=290, items=300, clusters=8, density=0.185, disliking=0.0, shown=24, judged=16),
)  # fmt: skip
QUICK_SHAPE = Shape(
    2, (10, 30), (4, 8), (0.1,),
    DatasetSettings(users=60, items=40, clusters=3, density=0.2, disliking=0.0, shown=12, judged=8),
)  # fmt: skip


def shape_of(setting: Setting) -> Shape:
    return FULL_SHAPE if setting.full else QUICK_SHAPE


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of one run; `every` has all pairs with their labels, in a simulated dataset."""

    train: Log
    heldout: Log
    weights: Log
    validation: Log
    truth: Log
    every: Log | None

    def draw(self, strategy: Strategy, log: Log, *, seed: int) -> Log:
        """An intervened set of half the size of a log."""
        intervened: Log = tr.intervene(log, strategy, train=self.train, random=self.weights, seed=seed)
        return intervened

    def in_practice(self, *, seed: int) -> tuple[Log, Log]:
        """Test and validation parts without random data: the validation part is a WTD_H sample of held-out rows."""
        rest, aside = split_random(self.heldout, ASIDE, seed=seed)
        return rest, self.draw(STRATEGIES["WTD_H"], aside, seed=seed)


def parts_of(setting: Setting, dataset: str = Coat.name) -> tuple[dict[str, Log], Log | None]:
    """The biased part (`train`) and the random one, and all pairs of a simulated dataset."""
    if not setting.source.is_synthetic:
        loader = Coat() if dataset == Coat.name else YahooR3()
        return loader.load(setting.source.path(dataset), parts=("train", "random")), None
    world = simulate_dataset(shape_of(setting).world, seed=setting.seed)
    return {"train": world.train, "random": world.random}, world.truth


def split_of(setting: Setting, number: int, dataset: str = Coat.name) -> Split:
    """One of the runs: the same data, another split."""
    parts, every = parts_of(setting, dataset)
    return Split(**wtd(parts["train"], parts["random"], seed=setting.seed + number), every=every)
