"""Samplers of negatives as values: SkewSampler(100) == SkewSampler(100), and `Skew@100` parses back; `draw` draws.

A new sampler is one new module here; `catalogue` and the law tests find it by themselves. Its first field is the number
of negatives `n`, where it has one; other fields are options whose types list what is allowed.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import typing
from enum import StrEnum
from functools import cache
from typing import Any

from truerank.core.errors import InputError
from truerank.core.language import members
from truerank.ranks.samplers.draw import Sampler


@cache
def catalogue() -> dict[str, type[Any]]:
    """Every sampler class by name."""
    return members(__name__, Sampler)


def parse(text: str) -> Sampler:
    """The sampler of a text form: a name, the number of negatives, options where they are not the default.

    >>> from truerank.ranks.samplers.skew import SkewSampler
    >>> parse("Skew@100") == SkewSampler(100), str(SkewSampler.released(5))
    (True, 'Skew@5(favours=popular,positives=drawn)')
    >>> parse("Skew@5(favours=popular,positives=drawn)") == SkewSampler.released(5)
    True
    """
    found = _TEXT.fullmatch(text)
    known = {key.lower(): cls for key, cls in catalogue().items()}
    name = "" if found is None else found["name"].lower()
    if found is None or name not in known:
        close = difflib.get_close_matches(name or text.lower(), known, n=1)
        hint = f" Did you mean {known[close[0]].name}?" if close else ""
        raise InputError(f"unknown sampler {text!r}; expected one of {', '.join(forms())}.{hint}")
    cls, number = known[name], found["number"]
    if (number is not None) != _sized(cls):
        raise InputError(f"sampler {text!r} is not understood; expected {form(cls)}.")
    numbers = [] if number is None else [int(number) if number.isdecimal() else number]
    given = {} if found["options"] is None else _options(cls, found["options"], where=text)
    return cls(*numbers, **given)  # type: ignore[no-any-return]


_TEXT = re.compile(r"\s*(?P<name>[^@()]*?)\s*(?:@(?P<number>[^()]*?))?\s*(?:\((?P<options>[^()]*)\))?\s*")


def form(cls: type[Any]) -> str:
    """What to write for a sampler: `Skew@N`."""
    return f"{cls.name}@N" if _sized(cls) else str(cls.name)


def forms() -> list[str]:
    """The text form of every sampler, for messages and help."""
    return [form(cls) for cls in catalogue().values()]


def _sized(cls: type[Any]) -> bool:
    return any(field.name == "n" for field in dataclasses.fields(cls))


def _options(cls: type[Any], text: str, *, where: str) -> dict[str, Any]:
    types = {name: kind for name, kind in typing.get_type_hints(cls).items() if name in _names(cls)}
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = (each.strip() for each in part.partition("="))
        if name not in types or name in found:
            expected = f"one of {', '.join(types)}, each once" if types else f"none: {cls.name} has no options"
            raise InputError(f"sampler {where!r}: option {part.strip()!r} is not understood; expected {expected}.")
        if isinstance(types[name], type) and issubclass(types[name], StrEnum):
            allowed = [str(each) for each in types[name]]
            if value not in allowed:
                raise InputError(f"sampler {where!r}: {name}={value}; expected {name}={' or '.join(allowed)}.")
            found[name] = types[name](value)
        elif value.isdecimal():
            found[name] = int(value)
        else:
            raise InputError(f"sampler {where!r}: {name}={value}; expected {name}=N, a whole number from 0.")
    return found


def _names(cls: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(cls) if field.name != "n"]
