"""Position models by surface and user group: a two-level feed is scrolled in two ways (paper 3, section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Floats
from truerank.core.errors import InputError, some
from truerank.core.values import Count, check, text_of


@runtime_checkable
class PositionModel(Protocol):
    """A frozen value: the probability P(V = 1 | R = r) that what stands at rank r is viewed (paper 3, assumption 2).

    It is 1 at rank 1, never rises, and is 0 beyond a cut-off; its text form parses back. Ranks are whole numbers.
    """

    name: ClassVar[str]

    def view(self, position: Floats) -> Floats: ...


def cut(probability: Floats, position: Floats, *, cutoff: int | None) -> Floats:
    """The same probabilities, 0 beyond the cut-off: no separate DCG@n is needed (paper 3, after eq. 6)."""
    if cutoff is None:
        return np.asarray(probability, dtype=np.float64)
    return np.asarray(np.where(position <= cutoff, probability, 0.0), dtype=np.float64)


ANY = "*"


@dataclass(frozen=True, slots=True)
class FitRequest:
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

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Positions:
    """A position model for each place; where several fit, the most special one holds, a surface before a group.

    >>> from truerank.exposure.positions.exponential import Exponential
    >>> from truerank.exposure.positions.yule_simon import YuleSimon
    >>> feed = Positions(((Place("first"), YuleSimon(1.5)), (Place("second"), Exponential(0.5))))
    >>> feed.view(np.array([2.0, 2.0]), surface=np.array(["first", "second"])).round(12).tolist()
    [0.4, 0.5]
    >>> str(feed)
    'first=yule:1.5,second=exp:0.5'
    """

    rules: tuple[tuple[Place, PositionModel | FitRequest], ...]

    def __post_init__(self) -> None:
        places = [str(place) for place, _ in self.rules]
        repeated = sorted({name for name in places if places.count(name) > 1})
        if repeated or not places:
            found = f"several position models for {some(repeated)}" if repeated else "no position model"
            raise InputError(f"{found}; expected one for each surface or group.")

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

    def view(
        self, position: Floats, *, surface: npt.NDArray[Any] | None = None, group: npt.NDArray[Any] | None = None
    ) -> Floats:
        """The probability of a view for each row, by the model of the row's surface and group."""
        position = np.asarray(position, dtype=np.float64)
        return self.view_by(self.at(len(position), surface=surface, group=group), position)

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
        surfaces = _column(surface, n, needed=self.by_surface, what="surface")
        groups = _column(group, n, needed=self.by_group, what="group")
        at = np.full(n, -1, dtype=np.int64)
        for number, (place, _) in sorted(enumerate(self.rules), key=lambda rule: rule[1][0].rank):
            rows = np.ones(n, dtype=bool)
            if place.surface is not None:
                rows &= surfaces == place.surface
            if place.group is not None:
                rows &= groups == place.group
            at[rows] = number
        lost = np.flatnonzero(at < 0)
        if len(lost):
            row = lost[0]
            place = Place(surfaces[row] or None, groups[row] or None)
            raise InputError(
                f"row {row + 1}: no position model for {place}; there are models for "
                f"{some([str(place) for place, _ in self.rules])}. Add one, or one for {ANY}."
            )
        return at


def _column(values: npt.NDArray[Any] | None, n: int, *, needed: bool, what: str) -> npt.NDArray[Any]:
    if values is None:
        if needed:
            raise InputError(
                f"position models differ by {what}, but the log has no column {what}. Name it with columns."
            )
        return np.full(n, "", dtype=str)
    return np.asarray(values).astype(str)
