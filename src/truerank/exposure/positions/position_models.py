"""Position models: how likely what stands at a rank is viewed; and which holds for which surface and user group.

A two-level feed is scrolled in two ways (paper 3, section 6). A new model is one new class here; `catalogue` and the
command line find it by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats
from truerank.core.errors import InputError, RefusedError, some
from truerank.core.record import record
from truerank.core.values import Between0And1, Count, Positive, Value

NEAR = (
    1024  # up to here the product of `YuleSimon` is multiplied out; beyond, Stirling's series is exact to the last bits
)


class PositionModel(Value):
    """A frozen value: the probability P(V = 1 | R = r) that what stands at rank r is viewed (paper 3, assumption 2).

    It is 1 at rank 1, never rises, and is 0 beyond a cut-off, so no DCG@n is needed (paper 3, after eq. 6); its text
    form parses back. Ranks are whole numbers.
    """

    __slots__ = ()
    _word: ClassVar[str] = "position model"
    cutoff: int | None

    def view(self, position: Floats) -> Floats:
        position = np.asarray(position, dtype=np.float64)
        probability = np.asarray(self.formula(position), dtype=np.float64)
        return probability if self.cutoff is None else np.where(position <= self.cutoff, probability, 0.0)

    def formula(self, position: Floats) -> Floats:
        """The probability of a view at each rank, without a cut-off."""
        raise NotImplementedError


@record
class Exponential(PositionModel):
    """γ^(r - 1): after each item the user goes on with probability γ (rank-biased precision, Moffat and Zobel 2008).

    >>> Exponential(0.5).view(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 0.5, 0.25]
    >>> str(Exponential(0.9, cutoff=50))
    'exp:0.9@50'
    """

    gamma: Between0And1
    cutoff: Count | None = None
    name: ClassVar[str] = "exp"
    positional: ClassVar[tuple[str, ...]] = ("gamma",)

    def formula(self, position: Floats) -> Floats:
        return np.asarray(self.gamma ** (position - 1.0))


@record
class GeneralisedLog(PositionModel):
    """1 / ln(e + α (r - 1)): 1 at rank 1, then the steeper the larger α (C-3PO, figure 1; α = 100 there).

    It falls so slowly that a scroll depth with this survival has no finite mean: real feeds end, so its depths are
    always censored.

    >>> GeneralisedLog(100.0).view(np.array([1.0, 2.0])).round(6).tolist()
    [1.0, 0.21589]
    >>> str(GeneralisedLog(100.0, cutoff=20))
    'log:100@20'
    """

    alpha: Positive
    cutoff: Count | None = None
    name: ClassVar[str] = "generalised-log"
    aliases: ClassVar[tuple[str, ...]] = ("log:",)
    positional: ClassVar[tuple[str, ...]] = ("alpha",)

    def formula(self, position: Floats) -> Floats:
        return np.asarray(1.0 / np.log(math.e + self.alpha * (position - 1.0)))


@record
class Logarithmic(PositionModel):
    """1 / log2(r + 1), the discount of classical DCG: a convention, fitted to nobody.

    >>> Logarithmic().view(np.array([1.0, 3.0])).tolist()
    [1.0, 0.5]
    >>> str(Logarithmic(cutoff=10))
    'log@10'
    """

    cutoff: Count | None = None
    name: ClassVar[str] = "log"

    def formula(self, position: Floats) -> Floats:
        return np.asarray(1.0 / np.log2(position + 1.0))


@record
class Table(PositionModel):
    """The probability that each rank is viewed, as listed; beyond the list nothing is viewed.

    >>> Table((1.0, 0.6, 0.3)).view(np.array([2.0, 4.0])).tolist()
    [0.6, 0.0]
    >>> str(Table((1.0, 0.6, 0.3), cutoff=2))
    'table:1:0.6:0.3@2'
    """

    probability: tuple[float, ...]
    cutoff: Count | None = None
    name: ClassVar[str] = "table"
    positional: ClassVar[tuple[str, ...]] = ("probability",)

    def __post_init__(self) -> None:
        Value.__post_init__(self)
        if not self.probability:
            raise InputError("a position table without a row; expected the probability of every rank from 1.")
        for rank, value in enumerate(self.probability, 1):
            if not (math.isfinite(value) and 0 <= value <= 1):
                raise InputError(f"position table: probability {value:g} at rank {rank}; expected one in [0, 1].")
        if self.probability[0] != 1:
            raise InputError(
                f"position table: probability {self.probability[0]:g} at rank 1; expected 1. Divide all of them by it: "
                "exposures are relative to the first rank."
            )
        rising = (np.flatnonzero(np.diff(self.probability) > 0) + 2).tolist()
        if rising:
            raise InputError(
                f"position table: rank {rising[0]} is viewed more often than rank {rising[0] - 1}; expected "
                "probabilities that never rise. Table.of_frequencies makes noisy frequencies monotone."
            )

    def formula(self, position: Floats) -> Floats:
        listed = np.array([*self.probability, 0.0])
        return listed[np.minimum(position, len(listed)).astype(np.int64) - 1]

    @classmethod
    def of_frequencies(cls, viewed: Sequence[float] | Floats, shown: Sequence[float] | Floats) -> Table:
        """From how often each rank was shown and viewed: monotone by isotonic regression, then relative to rank 1.

        Frequencies are weighted by how often a rank was shown (pool adjacent violators).

        >>> Table.of_frequencies([80, 30, 50], [100, 100, 100]).probability
        (1.0, 0.5, 0.5)
        """
        from scipy.optimize import isotonic_regression

        seen, all_of = np.asarray(viewed, dtype=np.float64), np.asarray(shown, dtype=np.float64)
        if seen.shape != all_of.shape or seen.ndim != 1 or not len(seen):
            raise InputError(
                f"views of {len(seen)} ranks but showings of {len(all_of)}; expected both for every rank from 1."
            )
        empty = np.flatnonzero(~(all_of > 0))
        if len(empty):
            raise RefusedError(
                f"rank {empty[0] + 1} was never shown, so how often it is viewed is unknown. "
                "Leave out the ranks from there on."
            )
        if (seen < 0).any() or (seen > all_of).any():
            raise InputError("more views than showings, or negative ones; expected counts of views and of showings.")
        smooth = isotonic_regression(seen / all_of, weights=all_of, increasing=False).x
        if smooth[0] <= 0:
            raise RefusedError(
                "nothing was ever viewed: no rank can be compared with the first. Check the view column."
            )
        return cls(tuple(np.minimum(smooth / smooth[0], 1.0).tolist()))


@record
class YuleSimon(PositionModel):
    """P(D >= r) of a Yule-Simon scroll depth D: Π_{k=1}^{r-1} k / (k + ρ) = ρ B(r, ρ) (C-3PO; paper 3, [45]).

    The chance to stop after item k is ρ / (k + ρ): the deeper a user has scrolled, the likelier the next item.

    >>> YuleSimon(1.5).view(np.array([1.0, 2.0, 3.0])).round(6).tolist()
    [1.0, 0.4, 0.228571]
    >>> str(YuleSimon(1.5))
    'yule:1.5'
    """

    rho: Positive
    cutoff: Count | None = None
    name: ClassVar[str] = "yule"
    positional: ClassVar[tuple[str, ...]] = ("rho",)

    def formula(self, position: Floats) -> Floats:
        near = np.minimum(position, NEAR)
        last = int(near.max(initial=1.0))
        product = np.concatenate([[0.0], -np.cumsum(np.log1p(self.rho / np.arange(1, last)))])
        log_view = product[near.astype(np.int64) - 1]
        far = position > NEAR
        if far.any():
            # ln Γ(r + ρ) - ln Γ(r) from rank NEAR on, without the difference of two large numbers
            log_view = log_view - np.where(far, _log_rising(position, self.rho) - _log_rising(NEAR, self.rho), 0.0)
        return np.asarray(np.exp(log_view))


def _log_rising(start: Floats | float, by: float) -> Floats:
    """ln Γ(start + by) - ln Γ(start) by Stirling's series."""
    end = np.asarray(start, dtype=np.float64) + by
    tail = (1 / end - 1 / start) / 12 - (1 / end**3 - 1 / start**3) / 360 + (1 / end**5 - 1 / start**5) / 1260
    return np.asarray((start - 0.5) * np.log1p(by / start) + by * np.log(end) - by + tail)


ANY = "*"


@record
class FitRequest(Value):
    """A model that is to be fitted to the log: `fit:yule`, `fit:exp@20`, `fit:clicks`, `fit:harvest`.

    Where the log has a column `surface`, each surface gets its own fit; `fit:yule(per_surface=false)` fits one model to
    all of them. `fit:yule(per_group=true)` gives each user group (column `group`) a parameter of its own, drawn towards
    everyone's the more, the fewer sessions the group has and the less groups differ.
    """

    family: Literal["exp", "yule", "log", "generalised-log", "table", "clicks", "harvest"]
    cutoff: Count | None = None
    per_group: bool = False
    per_surface: bool = True
    name: ClassVar[str] = "fit"
    positional: ClassVar[tuple[str, ...]] = ("family",)


@record
class Place:
    """Where a model holds: a surface, a user group, both, or everywhere (None)."""

    surface: str | None = None
    group: str | None = None

    def __str__(self) -> str:
        return (self.surface or ANY) if self.group is None else f"{self.surface or ANY}/{self.group}"

    @property
    def rank(self) -> int:
        """How special it is: everywhere < group < surface < surface and group."""
        return 2 * (self.surface is not None) + (self.group is not None)


@record
class Positions:
    """A position model for each place; where several fit, the most special one holds, a surface before a group.

    >>> feed = Positions(((Place("first"), YuleSimon(1.5)), (Place("second"), Exponential(0.5))))
    >>> feed.view_by(feed.at(2, surface=np.array(["first", "second"])), np.array([2.0, 2.0])).round(12).tolist()
    [0.4, 0.5]
    >>> str(feed)
    'first=yule:1.5,second=exp:0.5'
    """

    rules: tuple[tuple[Place, PositionModel | FitRequest], ...]

    def __post_init__(self) -> None:
        places = [str(place) for place, _ in self.rules]
        repeated = sorted({name for name in places if places.count(name) > 1})
        if repeated or not places:
            problem = f"several position models for {some(repeated)}" if repeated else "no position model"
            raise InputError(f"{problem}; expected one for each surface or group.")

    def __str__(self) -> str:
        if len(self.rules) == 1 and self.rules[0][0] == Place():
            return str(self.rules[0][1])
        return ",".join(f"{place}={model}" for place, model in self.rules)

    @classmethod
    def everywhere(cls, model: PositionModel | FitRequest | Positions) -> Positions:
        """One model for every place; several stay what they are."""
        return model if isinstance(model, Positions) else cls(((Place(), model),))

    @property
    def requests(self) -> tuple[tuple[Place, FitRequest], ...]:
        """The places whose model is still to be fitted."""
        return tuple((place, model) for place, model in self.rules if isinstance(model, FitRequest))

    @property
    def by_surface(self) -> bool:
        return any(place.surface is not None for place, _ in self.rules)

    @property
    def by_group(self) -> bool:
        return any(place.group is not None for place, _ in self.rules)

    @property
    def differ(self) -> bool:
        """Whether models differ within a log."""
        return self.by_surface or self.by_group

    def view_by(self, rule: npt.NDArray[np.int64], position: Floats) -> Floats:
        """The probability of a view for each row, by the model of the rule of that number."""
        result = np.zeros(len(position))
        for number, (place, model) in enumerate(self.rules):
            if isinstance(model, FitRequest):
                raise InputError(f"the position model of {place} is still to be fitted ({model}). Fit it first.")
            rows = rule == number
            result[rows] = model.view(position[rows])
        return result

    def at(
        self, n: int, *, surface: npt.NDArray[Any] | None = None, group: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[np.int64]:
        """Which rule holds for each of n rows."""
        columns = []
        for what, values, needed in (("surface", surface, self.by_surface), ("group", group, self.by_group)):
            if values is None and needed:
                raise InputError(
                    f"position models differ by {what}, but the log has no column {what}. Name it with columns."
                )
            columns.append(np.full(n, "", dtype=str) if values is None else np.asarray(values).astype(str))
        surfaces, groups = columns
        rule = np.full(n, -1, dtype=np.int64)
        for number, (place, _) in sorted(enumerate(self.rules), key=lambda entry: entry[1][0].rank):
            rows = np.ones(n, dtype=bool)
            if place.surface is not None:
                rows &= surfaces == place.surface
            if place.group is not None:
                rows &= groups == place.group
            rule[rows] = number
        if (rule < 0).any():
            row = int(np.argmax(rule < 0))
            place = Place(surfaces[row] or None, groups[row] or None)
            raise InputError(
                f"row {row + 1}: no position model for {place}; there are models for "
                f"{some([str(place) for place, _ in self.rules])}. Add one, or one for {ANY}."
            )
        return rule
