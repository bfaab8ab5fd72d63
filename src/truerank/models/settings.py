"""The settings of models: said once, in the fields of a frozen dataclass, and checked when a model is made.

A field says what it is, what it can be and where to search for good values; the command line, `truerank models` and
tuning read it from there.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from truerank.core.errors import InputError

LARGEST = 2**63  # whole numbers below it fit the arrays of every library


@dataclass(frozen=True, slots=True)
class Whole:
    """Whole numbers from `low` to `high`, all equally likely."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class LogUniform:
    """Numbers from `low` to `high` whose logarithms are uniform."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these values: a grid."""

    values: tuple[Any, ...]


Search = Whole | LogUniform | OneOf


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field is, what it can be, and where tuning searches (None: it stays as it is)."""

    about: str
    least: float | None = None
    above: float | None = None
    most: float | None = None
    search: Search | None = None

    def allows(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
        )

    @property
    def bounds(self) -> str:
        parts = [
            f"from {self.least:g}" if self.least is not None else "",
            f"above {self.above:g}" if self.above is not None else "",
            f"up to {self.most:g}" if self.most is not None else "",
        ]
        return " ".join(part for part in parts if part)


def setting(
    default: Any,
    about: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    search: Search | None = None,
) -> Any:
    """A field of a model: its default, one phrase on what it is, its bounds, and where to search."""
    return dataclasses.field(default=default, metadata={"setting": Setting(about, least, above, most, search)})


def settings_of(cls: type[Any]) -> dict[str, Setting]:
    """The settings of a model class by name."""
    return {field.name: field.metadata["setting"] for field in dataclasses.fields(cls)}


def space(cls: type[Any]) -> dict[str, Search]:
    """Where tuning searches: settings that have a search space, by name."""
    return {name: each.search for name, each in settings_of(cls).items() if each.search is not None}


def check(model: Any) -> None:
    """Refuse a value that a setting cannot have; a name stands for the option it names. For __post_init__."""
    hints = typing.get_type_hints(type(model))
    for name, rule in settings_of(type(model)).items():
        value, kind = getattr(model, name), hints[name]
        if value is None and _optional(kind):
            continue
        found = _checked(_bare(kind), value, rule)
        if found is None:
            raise InputError(f"{model.name}: {name}={_shown(value)}; expected {allowed(type(model), name)}.")
        object.__setattr__(model, name, found)


def _shown(value: Any) -> str:
    """The value in a message; a whole number beyond 64 bits by its size, as Python may refuse to write it out."""
    huge = isinstance(value, int) and abs(value) >= LARGEST
    return f"a whole number of {value.bit_length()} bits, which is too large" if huge else str(value)


def _checked(kind: Any, value: Any, rule: Setting) -> Any:
    """The value as its type, None if it cannot be."""
    if kind is bool:
        return value if isinstance(value, bool) else None
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return next((each for each in kind if each == value), None)
    if kind is str:
        return value if isinstance(value, str) else None
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return kind(value) if number and _fits(kind, value) and rule.allows(value) else None


def _fits(kind: Any, value: Any) -> bool:
    """Whether a number is a whole one of 64 bits, or a finite one."""
    if kind is int:
        return bool(-LARGEST < value < LARGEST and value == int(value))
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def allowed(cls: type[Any], name: str) -> str:
    """What a setting can be, in words."""
    kind, rule = typing.get_type_hints(cls)[name], settings_of(cls)[name]
    bare = _bare(kind)
    if bare is bool:
        text = "true or false"
    elif isinstance(bare, type) and issubclass(bare, StrEnum):
        text = " or ".join(each.value for each in bare)
    elif bare is str:
        text = "text"
    else:
        text = f"{'a whole number' if bare is int else 'a number'} {rule.bounds}".strip()
    return f"{text}, or none" if _optional(kind) else text


def values_of(cls: type[Any], settings: Mapping[str, str]) -> dict[str, Any]:
    """Settings given as text, as values of their fields; unknown names and values are refused."""
    known = settings_of(cls)
    hints = typing.get_type_hints(cls)
    found = {}
    for name, text in settings.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            expected = f"one of {', '.join(known)}" if known else "none: it has no settings"
            raise InputError(f"{cls.name}: no setting {name!r}; expected {expected}.{hint}")
        try:
            found[name] = _parsed(hints[name], text.strip())
        except ValueError:
            raise InputError(f"{cls.name}: {name}={text}; expected {allowed(cls, name)}.") from None
    return found


def _parsed(kind: Any, text: str) -> Any:
    """A value of its type; ValueError where the text is none. Options and bounds are checked by the model itself."""
    bare = _bare(kind)
    if _optional(kind) and text.lower() == "none":
        return None
    if bare is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if bare is int:
        return int(text)
    if bare is float:
        return float(text)
    return text


def _optional(kind: Any) -> bool:
    return type(None) in typing.get_args(kind)


def _bare(kind: Any) -> Any:
    """The type without None."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return next(each for each in typing.get_args(kind) if each is not type(None))
    return kind
