"""What a log holds, and whether it was shown at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truerank.core.calls import ANYTHING, checked_arguments
from truerank.core.ids import IdColumn, Ids
from truerank.core.log import Log
from truerank.core.options import Drawn
from truerank.exposure.randomness.tests import Randomness, randomness
from truerank.io.batches import LazyTable
from truerank.io.columns import RULE, VALUE_NAMES, PositiveRule
from truerank.io.describe import summary
from truerank.io.read import read


@dataclass(frozen=True, slots=True)
class Description:
    """Counts and spreads of a log, and the test of random exposure; None for a log without rows."""

    summary: dict[str, Any]
    randomness: Randomness | None


@checked_arguments(train=ANYTHING, positive=RULE)
def describe(
    source: Any,
    *,
    train: Any = None,
    columns: Mapping[str, str] | None = None,
    positive: str | PositiveRule | None = None,
    users: Ids | IdColumn | None = None,
    items: Ids | IdColumn | None = None,
    drawn: Drawn | str | None = None,
    seed: int = 0,
) -> Description:
    """Describe a log, a file or a frame; the options are those of `read` and `randomness`.

    >>> import polars as pl
    >>> found = describe(pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2]}))
    >>> found.summary["rows"], found.randomness.random
    (4, None)
    """
    log = source
    if not isinstance(source, Log):
        log = read(source, columns=columns, positive=positive, users=users, items=items)
    known = read_train(train, columns, positive)
    return Description(summary(log), randomness(log, train=known, drawn=drawn, seed=seed) if len(log) else None)


def read_train(train: Any, columns: Mapping[str, str] | None, positive: str | PositiveRule | None) -> Log | None:
    """Training pairs, with labels where there is a value column."""
    if train is None or isinstance(train, Log):
        return train
    table = LazyTable.of(train, columns=columns)
    valued = any((columns or {}).get(name, name) in table.columns for name in VALUE_NAMES)
    return read(table, columns=columns, positive=positive if valued else None, values=valued)
