"""The parameters of metrics: checked when a metric is made, printed and read as `nDCG@10(gain=linear,ideal=cutoff)`.

The first field of a metric is its number (a cut-off `k`, or a persistence `p`); the others are options, whose types
list what they can be. All that is said here is read from the fields, so a metric adds nothing to it.
"""

from __future__ import annotations

import dataclasses
import typing
from enum import StrEnum
from typing import Any, Literal

import numpy as np

from truerank.core.errors import InputError


def check(metric: Any) -> None:
    """Refuse a number or an option that the metric has no meaning for."""
    for field in dataclasses.fields(metric)[:1]:
        _check_number(metric, getattr(metric, field.name), whole=field.name == "k", needed=field.default is not None)
    for field in dataclasses.fields(metric)[1:]:
        value, allowed = getattr(metric, field.name), choices(type(metric), field.name)
        if value in allowed and isinstance(value, str):
            value = next(each for each in allowed if each == value)  # a name stands for its value
            object.__setattr__(metric, field.name, value)
        if allowed and not any(value is each for each in allowed):
            raise InputError(f"{metric.name}: {field.name}={value}; expected {' or '.join(allowed)}.")
        if not allowed and value is not None and not (_is_whole(value) and value >= 1):
            raise InputError(f"{metric.name}: {field.name}={value}; expected a whole number from 1.")


def _check_number(metric: Any, value: Any, *, whole: bool, needed: bool) -> None:
    if value is None and not needed:
        return
    if whole and not (_is_whole(value) and value >= 1):
        raise InputError(f"{metric.name}@{value}: the cut-off is {value}; expected a whole number from 1.")
    if not whole and not (isinstance(value, float) and 0 < value < 1):
        raise InputError(f"{metric.name}@{value}: the persistence is {value}; expected a number between 0 and 1.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def cutoff(metric: Any) -> int | None:
    """The deepest rank that counts, for metrics that have a cut-off `k`."""
    k: int | None = metric.k
    return k


def text_form(metric: Any) -> str:
    """The form that `metrics.parse` reads, such as Recall@50; options that have their default are left out."""
    fields = dataclasses.fields(metric)
    values = {field.name: getattr(metric, field.name) for field in fields}
    number = next(iter(values.values()), None)
    chosen = [f"{field.name}={values[field.name]}" for field in fields[1:] if values[field.name] != field.default]
    head = f"{metric.name}" if number is None else f"{metric.name}@{number}"
    return f"{head}({','.join(chosen)})" if chosen else head


def form(cls: type[Any]) -> str:
    """What to write for a metric, for messages and help: `Recall@K`."""
    fields = dataclasses.fields(cls)
    if not fields:
        return str(cls.name)
    return f"{cls.name}@{fields[0].name.upper()}" + (f" or {cls.name}" if fields[0].default is None else "")


def choices(cls: type[Any], option: str) -> tuple[StrEnum, ...]:
    """The values an option can have; none where it is a number."""
    hint = typing.get_type_hints(cls)[option]
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    return tuple(hint) if isinstance(hint, type) and issubclass(hint, StrEnum) else ()


def number_of(cls: type[Any], text: str) -> int | float:
    """The number after `@`; ValueError where it is none."""
    return float(text) if dataclasses.fields(cls)[0].name == "p" else int(text)


def options_of(cls: type[Any], text: str, *, where: str) -> dict[str, Any]:
    """The options of `gain=linear,ideal=cutoff`."""
    known = [field.name for field in dataclasses.fields(cls)[1:]]
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = (each.strip() for each in part.partition("="))
        if name not in known or name in found:
            expected = f"one of {', '.join(known)}, each once" if known else f"none: {cls.name} has no options"
            raise InputError(f"metric {where!r}: option {part.strip()!r} is not understood; expected {expected}.")
        found[name] = _option(cls, name, value, where=where)
    return found


def _option(cls: type[Any], name: str, value: str, *, where: str) -> Any:
    allowed = {str(each): each for each in choices(cls, name)}
    if value in allowed:
        return allowed[value]
    try:
        if not allowed:
            return int(value)
    except ValueError:
        pass
    expected = " or ".join(f"{name}={each}" for each in allowed) or f"{name}=N, a whole number from 1"
    raise InputError(f"metric {where!r}: {name}={value} is not understood; expected {expected}.")
