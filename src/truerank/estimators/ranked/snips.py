"""Self-normalised importance weighting: steadier, because chance in the weights cancels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from truerank.core.estimator import About, Asked, Beyond, Clipping, Exposed
from truerank.core.terms import KnownTotal, Ratio
from truerank.core.wording import option
from truerank.estimators.ranked.base import WeightedImpressions
from truerank.estimators.ranked.clips import Limited
from truerank.estimators.ranked.normalisers import Counted, Normaliser, RankedContext
from truerank.estimators.rows import Column, FormOfSums


@dataclass(frozen=True, slots=True)
class RankedSNIPS(WeightedImpressions):
    """Σ c w / Σ w over viewed rows, times the known mean of Σ_a ε(x, a) for a value per session (Swaminathan and
    Joachims 2015; statistics of ranked logs).

    A ratio: consistent, not unbiased, and its interval lets the denominator vary, so that a reward that is the same
    everywhere has an interval of no width. Σ w runs over every viewed row; the value per session needs the target's
    whole list.
    """

    normaliser: Normaliser = Normaliser.SESSION
    clip: float | None = None
    of: Limited = Limited.RATIO

    about: ClassVar[About] = About(
        name="snips",
        exposures=frozenset({Exposed.RANKED}),
        weighs=True,
        clipping=Clipping.GIVEN,
        beyond=Beyond.AVERAGE,
    )

    @property
    def metric(self) -> Counted:
        return replace(self.normaliser.counted, assumptions=())

    def refusal(self, context: RankedContext) -> str | None:
        if self.normaliser is Normaliser.MEAN_OF_MEANS:
            return "a mean of session means has no self-normalised form; use ips, or per session or viewed item."
        if not context.views_known:
            return "the log does not say what was viewed, and weights are summed over viewed items; use ips."
        if self.normaliser is Normaliser.SESSION and not context.total:
            return (
                f"a value per session needs all items that {context.target} would rank; give a table "
                f"session,item,rank, or a column candidates with their number, or use "
                f"{option('normaliser impression')}."
            )
        return None

    def estimand(self, asked: Asked, unit: str = "session") -> str:
        return f"mean {asked.reward} {self.normaliser.words(unit)} had the target been shown"

    def columns_of_form(self) -> FormOfSums:
        if self.normaliser is Normaliser.SESSION:
            return KnownTotal(), (Column.GAIN, Column.DISCOUNT, Column.TOTAL, Column.UNITS)
        return Ratio(), (Column.GAIN, Column.DISCOUNT)
