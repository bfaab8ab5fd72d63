"""A power of popularity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, frozen
from truerank.core.errors import InputError
from truerank.core.estimator import Groups, Learned
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import JudgedChunk
from truerank.core.values import NotNegative, Probability
from truerank.exposure.propensities import Fitted, PropensityLearner, PropensityModel


@dataclass(frozen=True, slots=True)
class PopularityPower(PropensityModel):
    """p_i = (c_i / max c)^power, at least `clip`; c_i counts the positives of item i in the log.

    The rule of the sampler study's code (0.5, clip 0.01) and of much of the literature on implicit feedback. It is
    known only up to a factor: the most popular item gets 1. So it serves self-normalised estimators; sums that are
    not normalised come out too small by that factor. It assumes that popularity alone decides what is shown, and that
    positives would be spread evenly if all were shown: where items are popular because they are good, it
    over-corrects. Without labels, rows are counted. An item without a positive has c = 0 and gets `clip`.

    >>> str(PopularityPower(0.5)), str(PopularityPower(0.3))
    ('power', 'power:0.3')
    """

    power: NotNegative = 0.5
    clip: Probability = 0.01

    name: ClassVar[str] = "power"
    positional: ClassVar[tuple[str, ...]] = ("power",)
    scaled: ClassVar[bool] = False

    def tally(
        self, chunk: JudgedChunk, *, learner: PropensityLearner, groups: Groups, learned: Learned
    ) -> PopularityCounts:
        log = chunk.labels
        labelled = "label" in log.rewards
        counted = log.label > 0 if labelled else np.ones(len(log), dtype=bool)
        group, n_items = groups.at(log.users.keys())[log.unit[counted]], len(log.items)
        cell = np.bincount(group * n_items + log.item[counted], minlength=len(groups) * n_items)
        count = cell.reshape(len(groups), n_items).astype(np.float64)
        return PopularityCounts(count, "positives" if labelled else "rows", log.items, log.source)

    def fit(self, tally: PopularityCounts, *, learner: PropensityLearner) -> Fitted:
        count = tally.count.sum(axis=0)
        most = count.max(initial=0.0)
        if most == 0:
            raise InputError(f"{tally.source}: no {tally.what}, so no popularity to take propensities from.")
        of_item = np.asarray(np.maximum((count / most) ** self.power, self.clip), dtype=np.float64)
        return PowerFit(self, frozen(of_item), tally.what, tally.items)


@dataclass(frozen=True, slots=True, eq=False)
class PopularityCounts:
    """How often each item of the catalogue was counted, [groups x items]."""

    count: Floats
    what: str
    items: Ids
    source: str

    def __add__(self, other: PopularityCounts) -> PopularityCounts:
        return replace(self, count=self.count + other.count)

    def without(self, group: int | None) -> PopularityCounts:
        total = self.count.sum(axis=0, keepdims=True)
        return replace(self, count=total if group is None else total - self.count[group][None])


@dataclass(frozen=True, slots=True, eq=False)
class PowerFit:
    """The propensity of every item of the catalogue."""

    model: PopularityPower
    of_item: Floats
    what: str
    items: Ids
    fitted: bool = True

    @property
    def description(self) -> str:
        return (
            f"propensities are (c / max c)^{self.model.power:g}, at least {self.model.clip:g}, with c the {self.what} "
            "of the item in the log: popularity alone decides exposure, and its scale is not known"
        )

    def at(self, cells: Log) -> Floats:
        """Items that the log does not know have no positives there."""
        if cells.items is self.items:
            return self.of_item[cells.item]
        place = self.items.locate(cells.items, where=f"{cells.source}, items")[cells.item]
        return np.where(place >= 0, self.of_item[place], self.model.clip)
