"""Propensities that the log brings along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.estimator import Counts, Groups, Learned
from truerank.core.log import Log
from truerank.core.ranking import JudgedChunk
from truerank.core.values import text_of
from truerank.core.wording import columns_option
from truerank.exposure.propensities import Fitted, PropensityLearner, check_propensity


@dataclass(frozen=True, slots=True)
class GivenPropensity:
    """The propensities in a column of the log: whoever made the log knows them, so nothing is estimated.

    >>> str(GivenPropensity())
    'column'
    """

    column: str = "propensity"

    name: ClassVar[str] = "column"
    positional: ClassVar[tuple[str, ...]] = ("column",)
    uses: ClassVar[frozenset[str]] = frozenset()
    fitted: ClassVar[bool] = False
    scaled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.column:
            raise InputError("propensity column: has no name; expected column:NAME.")

    __str__ = text_of

    def tally(self, chunk: JudgedChunk, *, given: PropensityLearner, groups: Groups, learned: Learned) -> Counts:
        return Counts({})

    def fit(self, tally: Counts, *, given: PropensityLearner) -> Fitted:
        return GivenValues(self.column)


@dataclass(frozen=True, slots=True)
class GivenValues:
    """A column of propensities, taken as it is."""

    column: str = "propensity"
    fitted: bool = False

    @property
    def description(self) -> str:
        return f"propensities are given by the log (column {self.column}) and taken as exact"

    def at(self, cells: Log) -> Floats:
        return column_of(cells, self.column)


def column_of(log: Log, name: str) -> Floats:
    """The column `propensity` of a log, or one of its value columns."""
    found = log.propensity if name == "propensity" else log.rewards.get(name)
    if found is None:
        raise InputError(
            f"{log.source}: no propensities in a column {name!r}. Name the one that holds them: "
            f"{columns_option('propensity')}, or fit them: power:0.5, naive-bayes, logistic."
        )
    return check_propensity(found, log, what=f"column {name!r}", advice="Correct the column.")
