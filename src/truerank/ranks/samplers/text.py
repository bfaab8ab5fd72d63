"""The fields of samplers: checked when one is made, and printed as `Skew@100(favours=popular)`."""

from __future__ import annotations

import dataclasses
import typing
from enum import StrEnum
from typing import Any

import numpy as np

from truerank.core.arrays import Ints
from truerank.core.errors import InputError


def check(sampler: Any) -> None:
    """Refuse a number or an option that the sampler has no meaning for; a name stands for its value."""
    types = typing.get_type_hints(type(sampler))
    for field in dataclasses.fields(sampler):
        value = getattr(sampler, field.name)
        if isinstance(types[field.name], type) and issubclass(types[field.name], StrEnum):
            allowed = list(types[field.name])
            if value not in allowed:
                raise InputError(f"{sampler.name}: {field.name}={value}; expected {' or '.join(allowed)}.")
            object.__setattr__(sampler, field.name, types[field.name](value))
        elif not isinstance(value, int | np.integer) or isinstance(value, bool) or value < (field.name == "n"):
            least = "1" if field.name == "n" else "0"
            raise InputError(f"{sampler.name}: {field.name}={value}; expected a whole number from {least}.")


def text_form(sampler: Any) -> str:
    """The form that `samplers.parse` reads; options that have their default are left out."""
    fields = dataclasses.fields(sampler)
    number = [f"@{sampler.n}" for field in fields if field.name == "n"]
    chosen = [
        f"{field.name}={getattr(sampler, field.name)}"
        for field in fields
        if field.name != "n" and getattr(sampler, field.name) != field.default
    ]
    return "".join([sampler.name, *number, f"({','.join(chosen)})" if chosen else ""])


def same_for_all(n: int, exposed: Ints) -> Ints:
    """n negatives for every user."""
    return np.full(len(exposed), n, dtype=np.int64)
