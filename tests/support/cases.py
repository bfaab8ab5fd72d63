"""Instances of every metric of the catalogue, with every option, found through their fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import product
from typing import Any

from truerank import metrics
from truerank.core.metric import Metric, OfLists
from truerank.core.values import choices

PERSISTENCE = (0.5, 0.9)
HIGHEST = (1, 3)


def labelled() -> dict[str, type[Any]]:
    """The metrics that look at labels, by name; the others describe lists."""
    return {name: cls for name, cls in metrics.catalogue().items() if cls not in of_lists().values()}


def of_lists() -> dict[str, type[Any]]:
    """The metrics that describe lists, by name."""
    every = metrics.catalogue().items()
    return {name: cls for name, cls in every if isinstance(instances(cls, (1,))[0], OfLists)}


def instances(cls: type[Any], cutoffs: Sequence[int]) -> list[Metric]:
    """A metric at a few numbers with default options, without a number where it has a form without, and with every
    combination of its options at one number. A metric that needs more must be added here."""
    fields = dataclasses.fields(cls)
    if not fields:
        return [cls()]
    numbers = PERSISTENCE if fields[0].name == "p" else cutoffs
    bare = [cls()] if fields[0].default is None else []
    plain = [cls(number) for number in numbers]
    options: dict[str, list[Any]] = {
        field.name: list(choices(cls, field.name)) or [None, *HIGHEST] for field in fields[1:]
    }
    combined = [
        cls(number, **dict(zip(options, values, strict=True)))
        for number in numbers[1:]
        for values in product(*options.values())
    ]
    return [*bare, *plain, *(each for each in combined if each not in plain)]
