"""A power of popularity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats, Ints, frozen
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.ranking import Candidates
from truerank.core.values import NotNegative, Probability, check, text_of
from truerank.data.features import Features
from truerank.exposure.propensities import Fitted


@dataclass(frozen=True, slots=True)
class PopularityPower:
    """p_i = (c_i / max c)^power, at least `clip`; c_i counts the positives of item i in the log.

    The rule of the sampler study's code (0.5, clip 0.01) and of much of the literature on implicit feedback. It is
    known only up to a factor: the most popular item gets 1. So it serves self-normalised estimators; sums that are
    not normalised come out too small by that factor. It assumes that popularity alone decides what is shown, and that
    positives would be spread evenly if all were shown: where items are popular because they are good, it
    over-corrects. Without labels, rows are counted. An item without a positive has c = 0 and gets `clip`.

    >>> from truerank.data.read import read
    >>> import polars as pl
    >>> log = read(pl.DataFrame({"user": [1, 2, 3, 4, 5], "item": [7, 7, 7, 7, 8], "label": [1, 1, 1, 1, 1]}))
    >>> PopularityPower(0.5).fit(log).value.tolist()
    [1.0, 1.0, 1.0, 1.0, 0.5]
    """

    power: NotNegative = 0.5
    clip: Probability = 0.01

    name: ClassVar[str] = "power"
    positional: ClassVar[tuple[str, ...]] = ("power",)
    uses: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check(self, where="propensity power")

    __str__ = text_of

    def fit(
        self,
        log: Log,
        *,
        random: Log | None = None,
        user_features: Features | None = None,
        item_features: Features | None = None,
        candidates: Candidates | None = None,
        seed: int = 0,
    ) -> Fitted:
        what = "positives" if "label" in log.rewards else "rows"
        counted = log.label > 0 if what == "positives" else np.ones(len(log), dtype=bool)
        if not counted.any():
            raise InputError(f"{log.source}: no {what}, so no popularity to take propensities from.")
        return PowerFit(self, log, frozen(np.flatnonzero(counted)), what)


@dataclass(frozen=True, slots=True)
class PowerFit:
    """The counted rows of the log, from which popularity follows under any weights of users."""

    model: PopularityPower
    log: Log
    counted: Ints
    what: str
    fitted: bool = True

    @property
    def description(self) -> str:
        return (
            f"propensities are (c / max c)^{self.model.power:g}, at least {self.model.clip:g}, with c the {self.what} "
            "of the item in the log: popularity alone decides exposure, and its scale is not known"
        )

    @property
    def value(self) -> Floats:
        return self.under(np.ones(self.log.n_units))

    def under(self, weight: Floats) -> Floats:
        return self._of_items(weight)[self.log.item]

    def at(self, cells: Log) -> Floats:
        """Items that the log does not know have no positives there."""
        known = self.log.items.locate(cells.items, where=f"{cells.source}, items")[cells.item]
        of_item = self._of_items(np.ones(self.log.n_units))
        return np.where(known >= 0, of_item[known], self.model.clip)

    def _of_items(self, weight: Floats) -> Floats:
        count = np.bincount(
            self.log.item[self.counted],
            weights=weight[self.log.unit[self.counted]],
            minlength=len(self.log.items),
        )
        # a replicate that drew no user with a positive knows no popularity: all items are alike
        share = count / count.max() if count.max() > 0 else np.ones(len(count))
        return np.asarray(np.maximum(share**self.model.power, self.model.clip), dtype=np.float64)
