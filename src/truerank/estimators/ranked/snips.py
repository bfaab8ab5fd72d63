"""Self-normalised importance weighting: steadier, because chance in the weights cancels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.terms import Terms
from truerank.estimators.ranked.normalisers import Normaliser
from truerank.estimators.ranked.weights import Weighing, clipped


@dataclass(frozen=True, slots=True)
class RankedSNIPS:
    """Σ c w / Σ w over viewed rows, times the known mean of Σ_a ε(x, a) for a value per session (Swaminathan and
    Joachims 2015; statistics of ranked logs).

    A ratio: consistent, not unbiased, and its interval lets the denominator vary, so that a reward that is the same
    everywhere has an interval of no width. Σ w runs over every viewed row; the value per session needs the target's
    whole list.
    """

    normaliser: Normaliser = Normaliser.SESSION

    name: ClassVar[str] = "snips"
    clips: ClassVar[bool] = True

    @property
    def metric(self) -> str:
        return self.normaliser.metric

    @property
    def conditions(self) -> tuple[str, ...]:
        return ()

    def estimand(self, reward: str, unit: str) -> str:
        return f"mean {reward} {self.normaliser.words(unit)} had the target been shown"

    def refusal(self, weighing: Weighing) -> str | None:
        if self.normaliser is Normaliser.MEAN_OF_MEANS:
            return "a mean of session means has no self-normalised form; use ips, or per session or viewed item."
        if not weighing.views_known:
            return "the log does not say what was viewed, and weights are summed over viewed items; use ips."
        if self.normaliser is Normaliser.SESSION and total_of(weighing) is None:
            return (
                f"a value per session needs all items that {weighing.target.name} would rank; give a table "
                "session,item,rank, or a column candidates with their number, or use --normaliser impression."
            )
        return None

    def terms(self, weighing: Weighing, *, reward: str, clip: float) -> Terms:
        rows = weighing.viewed_rows()
        target, inverse = weighing.parts(rows)
        weight = clipped(target, inverse, clip)
        gain = weighing.log.reward(reward) if rows is None else weighing.log.reward(reward)[rows]
        num, den = weighing.by_unit(gain * weight, rows), weighing.by_unit(weight, rows)
        return weighing.terms(num, den, total=total_of(weighing) if self.normaliser is Normaliser.SESSION else None)


def total_of(weighing: Weighing) -> Floats | None:
    """Σ_a ε(x, a) of each unit; a single impression with item-choice propensities has the sum 1."""
    if weighing.target.total is not None:
        return np.where(weighing.target.defined(), weighing.target.total, 0.0)
    if weighing.target.positions is None and weighing.log.sessions is None:
        return np.ones(weighing.log.n_units)
    return None
