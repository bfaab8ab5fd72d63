"""What nearest-neighbour models share."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from truerank.core.log import Log
from truerank.models import Progress
from truerank.models.matrix import positives, valued
from truerank.models.settings import OneOf

GRID = OneOf(tuple(range(10, 101, 10)))


class Preference(StrEnum):
    """What a nearest-neighbour model takes for the preference r of a user for an item.

    POSITIVES  1 for each positive pair
    VALUES     the raw values of all rows, such as ratings
    """

    POSITIVES = "positives"
    VALUES = "values"


def saying(progress: Progress | None, what: str) -> Callable[[int, int], None] | None:
    """Progress of one step, under its name."""
    return None if progress is None else lambda done, total: progress(what, done, total)


def matrix_of(log: Log, rows: Preference) -> Any:
    """Users x items, the preferences r."""
    return positives(log) if rows is Preference.POSITIVES else valued(log)
