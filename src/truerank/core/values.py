"""The fields of values: what each can be is said once, by its type, and checked when a value is made.

A value is a frozen dataclass with a `name`. A field whose type can be written as text is an option of it; fields that
are not compared, or that hold data, are none. Bounds stand with the type: `k: Count`, `rate: Probability | None`; so
does a phrase on what it is, for lists of options: `factors: Annotated[Count, "numbers that describe an item"]`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import types
import typing
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import MISSING
from enum import EnumType
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np

from truerank.core.errors import InputError
from truerank.core.record import record

AT = ("k", "n", "p", "cutoff")  # what stands after @
SIGNS = re.compile(r'[\s"(){},:=@]')
LARGEST = 2**63  # whole numbers below it fit the arrays of every library


@record
class Range:
    """Which numbers are allowed: finite ones within bounds.

    >>> str(Range(least=1)), str(Range(above=0, below=1)), str(Range(above=0, most=1))
    ('from 1', 'between 0 and 1', 'above 0 up to 1')
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def allows(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        if self.above is not None and self.below is not None:
            return f"between {self.above:g} and {self.below:g}"
        bounds = (("from", self.least), ("above", self.above), ("up to", self.most), ("below", self.below))
        return " ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)


Count = Annotated[int, Range(least=1)]
CountFrom2 = Annotated[int, Range(least=2)]
CountFrom0 = Annotated[int, Range(least=0)]
Positive = Annotated[float, Range(above=0)]
NotNegative = Annotated[float, Range(least=0)]
Probability = Annotated[float, Range(above=0, most=1)]
Between0And1 = Annotated[float, Range(above=0, below=1)]


@record
class Alternative:
    """One type that a field can have, with its bounds."""

    type: Any
    range: Range | None = None

    @property
    def choices(self) -> tuple[Any, ...]:
        """What it can be, where that is a list of names."""
        if typing.get_origin(self.type) is Literal:
            return typing.get_args(self.type)
        return tuple(self.type) if isinstance(self.type, EnumType) else ()

    @property
    def member(self) -> Alternative | None:
        """What a tuple of any length is made of; None where it is no tuple."""
        inner = typing.get_args(self.type)
        if typing.get_origin(self.type) is not tuple or len(inner) != 2 or inner[1] is not Ellipsis:
            return None
        return alternative(inner[0])

    @property
    def plain(self) -> bool:
        """Whether it is a number, a name or a text."""
        return self.type in (bool, int, float, str) or bool(self.choices)

    def fit(self, value: Any) -> Any:
        """The value as this type; ValueError where it does not fit."""
        member = self.member
        if isinstance(value, str) and value in self.choices:
            return self.choices[self.choices.index(value)]
        if member is not None and isinstance(value, Iterable) and not isinstance(value, str):
            return tuple(map(member.fit, value))
        if self.type in (int, float):
            return _number(self, value)
        fits = isinstance(value, self.type) if self.type in (bool, str) else is_nested(self.type)
        if self.choices or member is not None or not fits:
            raise ValueError
        return value

    def read(self, text: str) -> Any:
        """The value that a text says; ValueError where it says none."""
        names = {"true": True, "false": False} if self.type is bool else {str(name): name for name in self.choices}
        if names:
            if text.lower() not in names:
                raise ValueError
            return names[text.lower()]
        if self.member is not None:
            if not (text[:1] == "(" and text[-1:] == ")"):
                raise ValueError
            return tuple(self.member.read(part) for part in pieces(text[1:-1], ",") if text != "()")
        if self.type is str:
            return json.loads(text) if text[:1] == '"' else text
        return self.fit(self.type(text))

    def __str__(self) -> str:
        """What it can be, in words."""
        if self.choices:
            return " or ".join(map(str, self.choices))
        if self.member is not None:
            return f"{self.member} for each place, as (1,0.5)"
        words = {bool: "true or false", str: "text", int: "a whole number", float: "a number"}
        word = words.get(self.type) or f"a {words_of(self.type)}"
        return f"{word} {self.range}" if self.range is not None and str(self.range) else word


@record
class Option:
    """A field that text can say."""

    name: str
    alternatives: tuple[Alternative, ...]
    optional: bool  # None is allowed
    field: dataclasses.Field[Any]
    summary: str = ""  # what it is: a text beside its type

    @property
    def needed(self) -> bool:
        return self.field.default is MISSING and self.field.default_factory is MISSING

    @property
    def default(self) -> Any:
        factory = self.field.default_factory
        return self.field.default if factory is MISSING else factory()

    def __str__(self) -> str:
        """What the field can be, in words."""
        words = " or ".join(map(str, self.alternatives))
        return f"{words}, or none" if self.optional else words


def options_of(cls: type[Any]) -> dict[str, Option]:
    """The options of a class of values by name, read from its fields."""
    return _options(cls)  # type: ignore[arg-type]


@cache
def _options(cls: Any) -> dict[str, Option]:
    hints = typing.get_type_hints(cls, include_extras=True)
    options = {}
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        summary = next((note for note in getattr(hint, "__metadata__", ()) if isinstance(note, str)), "")
        union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
        members = typing.get_args(hint) if union else (hint,)
        kinds = [alternative(member) for member in members if member is not type(None)]
        readable = [kind for kind in kinds if kind.plain or kind.member is not None or is_nested(kind.type)]
        if any(kind.type is not str for kind in readable):  # a text that stands for something else is read as that
            readable = [kind for kind in readable if kind.type is not str]
        if field.compare and field.init and readable:
            options[field.name] = Option(field.name, tuple(readable), type(None) in members, field, summary)
    return options


def is_nested(kind: Any) -> bool:
    """Whether a field of this type holds a value of its own: a class that has a name, or a kind with a catalogue."""
    if not isinstance(kind, type):
        return False
    required = (name for base in kind.__mro__ for name in vars(base).get("__annotations__", {}))
    return isinstance(vars(kind).get("name"), str) or "name" in required


def words_of(cls: type[Any]) -> str:
    """The name of a class as words: a reward model, not a RewardModel."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cls.__name__).lower()


def check(value: Any, *, where: str | None = None) -> None:
    """Refuse what a field cannot be; a name stands for the choice it names. For `__post_init__`."""
    for option in options_of(type(value)).values():
        content = getattr(value, option.name)
        if content is None and option.optional:
            continue
        fitting = first_that_fits(option, Alternative.fit, content, where=where or name_of(value))
        if fitting is not content:
            object.__setattr__(value, option.name, fitting)


def first_that_fits(
    option: Option, fit: Callable[[Alternative, Any], Any], value: Any, *, where: str, shown: str | None = None
) -> Any:
    """The value as the first type of its field that it fits; if none, an InputError with the value as `shown`."""
    for kind in option.alternatives:
        with suppress(ValueError):
            return fit(kind, value)
    raise InputError(f"{where}: {option.name}={shown or _shown(value)}; expected {option}.")


def choices(cls: type[Any], name: str) -> tuple[Any, ...]:
    """The names that an option can have; none where it is a number or a text."""
    return tuple(choice for kind in options_of(cls)[name].alternatives for choice in kind.choices)


def alternative(hint: Any) -> Alternative:
    """A type without its annotations, and its bounds."""
    if typing.get_origin(hint) is not Annotated:
        return Alternative(hint)
    inner, *notes = typing.get_args(hint)
    return Alternative(inner, next((note for note in notes if isinstance(note, Range)), None))


def _number(kind: Alternative, value: Any) -> int | float:
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        raise ValueError
    try:
        number: int | float = kind.type(value)
        lost = kind.type is int and number != value
        wild = not -LARGEST < number < LARGEST if kind.type is int else math.isnan(number)
        unbounded = kind.type is float and kind.range is not None and math.isinf(number)
    except OverflowError:
        raise ValueError from None
    if lost or wild or unbounded or not (kind.range is None or kind.range.allows(number)):
        raise ValueError
    return number


def _shown(value: Any) -> str:
    """The value in a message; a text that looks like a number in quotes, as that is what is wrong with it.

    A whole number beyond 64 bits is named by its size: Python may refuse to write it out.
    """
    if isinstance(value, str) and value.strip().lstrip("+-").replace(".", "", 1).isdecimal():
        return repr(value)
    huge = isinstance(value, int) and abs(value) >= LARGEST
    return f"a whole number of {value.bit_length()} bits, which is too large" if huge else str(value).removesuffix(".0")


def pieces(text: str, separators: str) -> list[str]:
    """Split outside brackets and quotes; ValueError where these do not match.

    >>> pieces('a(b,c),"d,e"', ",")
    ['a(b,c)', '"d,e"']
    """
    parts, start, depth, quote, escaped = [], 0, 0, False, False
    for place, sign in enumerate(text):
        if quote:
            quote, escaped = escaped or sign != '"', sign == "\\" and not escaped
        elif sign == '"':
            quote = True
        elif not depth and sign in separators:
            parts.append(text[start:place].strip())
            start = place + 1
        else:
            depth += (sign in "({") - (sign in ")}")
        if depth < 0:
            raise ValueError
    if depth or quote:
        raise ValueError
    return [*parts, text[start:].strip()]


# ------------------------------------------------------------------------------------------------------------- printing


def text_of(value: Any) -> str:
    """The shortest text that parses back to an equal value: what has its default is left out. For `__str__`."""
    cls = type(value)
    sign, positional = at_of(cls), positional_of(cls)
    contents = {name: getattr(value, name) for name in options_of(cls)}
    changed = [name for name, option in options_of(cls).items() if option.needed or contents[name] != option.default]
    last = max((place for place, name in enumerate(positional, 1) if name in changed), default=0)
    columns = [contents[name] for name in positional[:last]]  # a tuple stands after several colons
    parts = [_written(part) for column in columns for part in (column if isinstance(column, tuple) else [column])]
    head = ":".join([_head(cls, colon=bool(parts)), *parts])
    number = f"@{_written(contents[sign])}" if sign is not None and sign in changed else ""
    named = [f"{name}={_written(contents[name])}" for name in changed if name not in (sign, *positional[:last])]
    return f"{head}{number}({','.join(named)})" if named else f"{head}{number}"


def form_of(cls: type[Any]) -> str:
    """What to write for a class: `Recall@K`, `RR[@K]`, `exp:GAMMA[@N]`."""
    field, options = at_of(cls), options_of(cls)
    parts = [name.upper() for name in positional_of(cls) if options[name].needed]
    head = ":".join([_head(cls, colon=bool(parts)), *parts])
    if field is None:
        return head
    sign = f"@{field.upper() if len(field) == 1 else 'N'}"
    return f"{head}{sign}" if options[field].needed else f"{head}[{sign}]"


def quoted(text: str) -> str:
    """A text as it is, or in quotes where it holds a sign of the language."""
    return text if text and not SIGNS.search(text) and text.lower() != "none" else json.dumps(text, ensure_ascii=False)


def _written(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, str):
        return quoted(str(value))
    if isinstance(value, tuple):
        return f"({','.join(_written(part) for part in value)})"
    return text_of(value) if dataclasses.is_dataclass(value) else str(value)


def at_of(cls: type[Any]) -> str | None:
    """The field that stands after @."""
    return next((name for name in AT if name in options_of(cls)), None)


def positional_of(cls: type[Any]) -> tuple[str, ...]:
    """The fields that stand after colons."""
    names: tuple[str, ...] = getattr(cls, "positional", ())
    return names


def _head(cls: type[Any], *, colon: bool) -> str:
    short = [alias[:-1] for alias in getattr(cls, "aliases", ()) if alias.endswith(":")]
    return str(short[0] if colon and short else name_of(cls))


def name_of(value: Any) -> str:
    """The name of a value or of its class: its own, or the one it is described by."""
    info = getattr(value, "info", None)
    name: str = value.name if info is None or isinstance(info, str) else info.name
    return name


class Value:
    """Base class of values: fields are checked when a value is made, and its text form parses back.

    `_word` stands before the name in messages.
    """

    __slots__ = ()

    name: ClassVar[str]
    _word: ClassVar[str] = ""

    __str__ = text_of

    def __post_init__(self) -> None:
        check(self, where=f"{self._word} {self.name}".strip())


class PaperValue(Value):
    """A value that the text of a paper and its code may set differently; by default both have the defaults."""

    __slots__ = ()

    @classmethod
    def published(cls) -> Self:
        return cls()

    @classmethod
    def released(cls) -> Self:
        return cls()
