"""What a position model is, and the checks that all of them share."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError


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


def check_cutoff(model: Any) -> None:
    cutoff = model.cutoff
    if cutoff is not None and not (isinstance(cutoff, int | np.integer) and cutoff >= 1):
        raise InputError(f"position model {model.name}: cut-off {cutoff}; expected a whole number from 1.")


def check_parameter(model: Any, field: str, *, low: float, high: float) -> None:
    """Refuse a parameter outside (low, high)."""
    value = getattr(model, field)
    number = isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and low < value < high):
        expected = f"between {low:g} and {high:g}" if math.isfinite(high) else f"above {low:g}"
        raise InputError(f"position model {model.name}: {field} = {value}; expected a number {expected}.")
    object.__setattr__(model, field, float(value))


def text_form(model: Any, *parameters: float) -> str:
    """`name:parameter@cutoff`, which `parse_position` reads back to the same value."""
    head = ":".join([model.name, *(f"{value!r}".removesuffix(".0") for value in parameters)])
    return head if model.cutoff is None else f"{head}@{model.cutoff}"
