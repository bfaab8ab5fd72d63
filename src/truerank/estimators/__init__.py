"""Layer 5: (Log, Ranks, Metric) -> Terms.

A new estimator is one new module here; `catalogue`, the command line and the law tests find it by themselves.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from truerank.core.estimator import Estimator, Exposed
from truerank.core.language import classes, find


@cache
def catalogue() -> dict[str, type[Any]]:
    """Every estimator class for judged rows by name."""
    found = classes(__name__, Estimator, deep=True)
    return {cls.about.name: cls for cls in found if Exposed.RANKED not in cls.about.exposures}


def named(name: str) -> type[Any]:
    """The estimator class of a name such as horvitz-thompson."""
    return find(catalogue(), name, what="estimator")
