"""Loggers: how much more often one item is shown than another. `exposure.expose` turns a world into a log with one.

A new logger is one new module here; `catalogue` and the law tests find it by themselves.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from truerank.core.language import find, members
from truerank.exposure.loggers.expose import Logger


@cache
def catalogue() -> dict[str, type[Any]]:
    """Every logger class by name."""
    return members(__name__, Logger)


def named(name: str) -> type[Any]:
    """The logger class of a name such as popularity; `named("popularity").released()` is one of its variants.

    >>> str(named("popularity").released())
    'popularity'
    """
    return find(catalogue(), name, what="logger")
