"""Policies that are evaluated on an impression log: how much each of them exposes the items of each session (eq. 6).

Where a policy puts the items of a log does not depend on a position model; how likely they are viewed there does. A
policy is placed once (`targets.py`) and then seen `under` as many position models as are fitted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Bools, Floats, Ints, frozen, sums_by
from truerank.core.errors import InputError
from truerank.core.log import Array, Log
from truerank.core.record import record
from truerank.core.wording import columns_option, option
from truerank.exposure.positions.position_models import Positions

Rows = Ints | slice | None  # which rows of a log, None for all
LONGEST_TABLE = 2**20  # ranks up to here are looked up

POSITION = f"{option('position MODEL')}, such as log, exp:0.9, yule:1.5, fit:yule or a file"


@record(eq=False)
class WholeList:
    """All items that a policy would rank: session, item (-1 where the log never shows it), and rank or exposure.

    `rule` is the number of the position model that holds for each row, where there are several.
    """

    unit: Ints
    item: Ints
    rank: Ints | None = None
    values: Floats | None = None
    rule: Ints | None = None
    prediction: Floats | None = None


@record(eq=False)
class Policy:
    """How a policy exposes the rows of a log: by rank and position model, or as numbers.

    `rank` is 0 where an item is never displayed; `rule` is the number of the position model that holds for each row,
    where there are several. `ranked_units` are the units whose ranking the target has, `whole` the list of each where
    it was given, `places` how many ranks each unit has where the log tells; `viewed` is how many items of each unit the
    policy exposed. `unlogged` counts the sessions that it ranks and the log does not have. A mixture has `parts` with
    their `share` [parts x units] instead of ranks.
    """

    name: str
    log: Log
    positions: Positions | None = None
    rank: Array | None = None
    rule: Ints | None = None
    values: Floats | None = None
    ranked_units: Bools | None = None
    whole: WholeList | None = None
    places: Ints | None = None
    viewed: Floats | None = None
    unlogged: int = 0
    parts: tuple[Policy, ...] = ()
    share: Floats | None = None

    def under(self, positions: Positions | None) -> Policy:
        """The same policy, viewed as other position models say."""
        if self.share is not None:
            return replace(self, parts=tuple(part.under(positions) for part in self.parts))
        return self if self.positions is None else replace(self, positions=positions)

    def exposure(self, rows: Rows = None) -> Floats:
        """ε(x, a) of the given rows, or of all."""
        if rows is None:
            rows = slice(None)
        if self.values is not None:
            return self.values[rows]
        if self.share is not None:  # Σ_j α_j ε_j
            parts = np.stack([part.exposure(rows) for part in self.parts])
            return np.asarray((parts * self.share[:, self.log.unit[rows]]).sum(axis=0))
        return self._views(
            None if self.rank is None else self.rank[rows], None if self.rule is None else self.rule[rows]
        )

    def _views(self, rank: npt.NDArray[Any] | None, rule: Ints | None) -> Floats:
        if rank is None or self.positions is None:
            raise InputError(f"{self.name}: neither ranks nor exposures are known.")
        return views(self.positions, rank, rule)

    def defined(self) -> Bools:
        """The units whose ranking the target has."""
        return np.ones(self.log.n_units, dtype=bool) if self.ranked_units is None else self.ranked_units

    @property
    def total_known(self) -> bool:
        """Whether `total` can be computed: the number of ranks gives it where one position model holds for all."""
        counted = self.places is not None and self.positions is not None and not differs(self.positions)
        return self.viewed is not None or self.whole is not None or counted

    def total(self) -> Floats:
        """Σ_a ε(x, a) over the whole list of each unit; 0 where its ranking is not given."""
        if self.viewed is not None:
            return self.viewed
        if self.whole is not None:
            return sums_by(self.whole.unit, self.listed(), n=self.log.n_units)
        if self.places is None or self.positions is None:
            raise InputError(f"{self.name}: its whole list is not known.")
        return np.asarray(np.cumsum(tables_of(self.positions, int(self.places.max(initial=0)))[0])[self.places])

    def listed(self) -> Floats:
        """ε(x, a) of each row of the whole list."""
        if self.whole is None:
            raise InputError(f"{self.name}: its whole list is not known.")
        return self._views(self.whole.rank, self.whole.rule) if self.whole.values is None else self.whole.values


def differs(positions: Positions) -> bool:
    """Whether position models differ within a log."""
    return positions.by_surface or positions.by_group


def rules_of(positions: Positions, log: Log) -> Ints | None:
    """The number of the position model that holds for each row of a log, None where one holds for all."""
    return positions.at(len(log), surface=log.surface, group=log.group) if differs(positions) else None


def views(positions: Positions, rank: npt.NDArray[Any], rule: Ints | None = None) -> Floats:
    """The probability that what stands at each rank is viewed; 0 at rank 0, which means never displayed."""
    last = int(rank.max(initial=0))
    if last * len(positions.rules) > LONGEST_TABLE:
        number = np.zeros(len(rank), dtype=np.int64) if rule is None else rule
        return np.where(rank > 0, positions.view_by(number, np.maximum(rank, 1).astype(np.float64)), 0.0)
    tables = tables_of(positions, last)
    return np.asarray(tables[0].take(rank) if rule is None else tables[rule, rank], dtype=np.float64)


def tables_of(positions: Positions, last: int) -> Floats:
    """P(V | R = r) for r = 0 ... last, where rank 0 is never displayed, of each position model: [rules x ranks].

    Blocks of rows use the same ones again and again, so a few are cached; not of a model of the user's that cannot be
    hashed.
    """
    try:
        hash(positions)
    except TypeError:
        return _tables.__wrapped__(positions, last)
    return _tables(positions, last)


@lru_cache(maxsize=8)
def _tables(positions: Positions, last: int) -> Floats:
    rank = np.arange(1.0, last + 1.0)
    rows = [positions.view_by(np.full(last, number), rank) for number in range(len(positions.rules))]
    return frozen(np.concatenate([np.zeros((len(rows), 1)), np.stack(rows)], axis=1))


def logging_policy(log: Log, positions: Positions | None) -> Policy:
    """The policy that made the log: its propensities where the log has them, else its positions."""
    if log.propensity is not None:
        return Policy("log", log, values=log.propensity)
    if positions is None:
        raise InputError(
            f"{log.source}: neither a position model nor a column propensity; expected one of them. "
            f"Say how likely each position is viewed: {POSITION}."
        )
    if log.position is None:
        raise InputError(
            f"{log.source}: a position model needs the column position. Name it: "
            f"{columns_option('position', by='truerank.read_impressions')}, "
            "or give the logging exposures in a column propensity."
        )
    return Policy("log", log, positions=positions, rank=log.position, rule=rules_of(positions, log))
