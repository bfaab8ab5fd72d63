"""The data of an experiment: Coat, or a world of its shape in which every rating is known; and its splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from truerank.core.log import Log
from truerank.data.datasets.coat import Coat
from truerank.data.split import split_random, wtd
from truerank.exposure.interventions import intervene
from truerank.exposure.interventions.design import FullIntervention, RegularIntervention, Strategy
from truerank.exposure.interventions.skew import SkewIntervention
from truerank.exposure.interventions.weighted import WTDHIntervention, WTDIntervention
from truerank.models import Model
from truerank.models.baselines import AvgRating, PosPop
from truerank.models.ials import IALS
from truerank.models.neighbours import ItemKNN, Preference, UserKNN
from truerank.studies.work import StudySize, StudySource
from truerank.studies.world import WorldSettings, make_world

STRATEGIES: Mapping[str, Strategy] = {
    "FULL": FullIntervention(),
    "REG": RegularIntervention.published(),
    "SKEW": SkewIntervention.published(),
    "WTD": WTDIntervention.published(),
    "WTD_H": WTDHIntervention.published(),
    "WTD, item power 1": WTDIntervention.released(),
    "WTD_H, item power 1": WTDHIntervention.released(),
}
ASIDE = 0.25  # of the held-out rows, from which an intervened validation part is drawn
TUNED = ("UB_KNN", "IB_KNN", "MF")
RAW = Preference.VALUES  # ratings as they are, as in RankSys


@dataclass(frozen=True, slots=True)
class WtdShape:
    """How large an experiment is: runs, grids of settings, and the world where data are synthetic.

    The world has Coat's size, its share of positives among random pairs, and as many rows for each user.
    """

    runs: int
    neighbours: tuple[int, ...]
    factors: tuple[int, ...]
    regularisation: tuple[float, ...]
    world: WorldSettings

    def settings(self) -> dict[str, object]:
        return {
            "runs": self.runs, "neighbours": list(self.neighbours), "factors": list(self.factors),
            "regularisation": list(self.regularisation),
        }  # fmt: skip

    def grid(self, recommender: str) -> list[Model]:
        """The models among which one is chosen; one where there is nothing to choose."""
        if recommender in ("UB_KNN", "IB_KNN"):
            make = UserKNN if recommender == "UB_KNN" else ItemKNN
            return [make(n, RAW) for n in self.neighbours]
        if recommender == "MF":
            both = product(self.factors, self.regularisation)
            return [IALS(factors=n, regularisation=value, rows=RAW) for n, value in both]
        return [PosPop() if recommender == "PosPop" else AvgRating()]


TEN = tuple(range(10, 101, 10))
FULL_SHAPE = WtdShape(
    10, TEN, tuple(range(20, 201, 20)), (0.001, 0.006, 0.01, 0.06, 0.1, 0.6),
    WorldSettings(users=290, items=300, clusters=8, density=0.185, disliking=0.0, shown=24, judged=16),
)  # fmt: skip
QUICK_SHAPE = WtdShape(
    2, (10, 30), (4, 8), (0.1,),
    WorldSettings(users=60, items=40, clusters=3, density=0.2, disliking=0.0, shown=12, judged=8),
)  # fmt: skip


def shape_of(size: StudySize) -> WtdShape:
    return FULL_SHAPE if size is StudySize.FULL else QUICK_SHAPE


@dataclass(frozen=True, slots=True)
class WtdSplit:
    """The parts of one run. `every` has all pairs with their labels, where they are known."""

    train: Log
    heldout: Log
    weights: Log
    validation: Log
    truth: Log
    every: Log | None

    def drawn(self, strategy: Strategy, log: Log, *, seed: int) -> Log:
        """An intervened set of half the size of a log."""
        return intervene(log, strategy, train=self.train, random=self.weights, seed=seed)

    def in_practice(self, *, seed: int) -> tuple[Log, Log]:
        """What is tested on, and what settings are chosen on without a random part: WTD_H of some held-out rows."""
        rest, aside = split_random(self.heldout, ASIDE, seed=seed)
        return rest, self.drawn(STRATEGIES["WTD_H"], aside, seed=seed)


def parts_of(source: StudySource, shape: WtdShape, *, seed: int) -> tuple[dict[str, Log], Log | None]:
    """The biased part (`train`) and the random one, and all pairs where the world is synthetic."""
    if not source.is_synthetic:
        return Coat().load(source.place("coat"), parts=("train", "random")), None
    world = make_world(shape.world, seed=seed)
    return {"train": world.train, "random": world.random}, world.truth


def split_of(source: StudySource, shape: WtdShape, *, seed: int, run: int) -> WtdSplit:
    """One of the runs: the data are the same, the split is another."""
    parts, every = parts_of(source, shape, seed=seed)
    split = wtd(parts["train"], parts["random"], seed=seed + run)
    return WtdSplit(**split, every=every)
