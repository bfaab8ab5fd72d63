"""Loaders of public datasets: files as they are published -> logs. The data itself is never part of the library.

A new dataset is one new module here; `catalogue` and `truerank data list` find it by themselves.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from truerank.core.language import find, members
from truerank.data.dataset import Dataset


@cache
def catalogue() -> dict[str, type[Any]]:
    """Every dataset class by name."""
    return members(__name__, Dataset)


def named(name: str) -> type[Any]:
    """The dataset class of a name such as kuairec."""
    return find(catalogue(), name, what="dataset")
