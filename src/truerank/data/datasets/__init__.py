"""Loaders of public datasets: files as they are published -> logs. The data itself is never part of the library.

A new dataset is one new module here; `catalogue` and `truerank data list` find it by themselves.
"""

from __future__ import annotations

import difflib
from functools import cache
from typing import Any

from truerank.catalogue import members
from truerank.data.dataset import Dataset
from truerank.errors import InputError


@cache
def catalogue() -> dict[str, type[Any]]:
    """Every dataset class by name."""
    return members(__name__, Dataset)


def named(name: str) -> type[Any]:
    """The dataset class of a name such as kuairec."""
    known = catalogue()
    if name not in known:
        close = difflib.get_close_matches(name.lower(), known, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise InputError(f"unknown dataset {name!r}; expected one of {', '.join(known)}.{hint}")
    return known[name]
