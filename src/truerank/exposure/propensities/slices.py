"""Pairs that were shown at random, laid over the log that they are to correct."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Ints, frozen
from truerank.core.errors import InputError, some
from truerank.core.log import Log, Pairs
from truerank.core.ranking import Candidates
from truerank.exposure.randomness.draws import owners


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows of a random slice that are candidates; `left_out` rows are not.

    `unit` and `item` are positions in the log. Users whom the log does not know, `n_strangers` of them, follow after
    its units; an item that is not known by name is -1.
    """

    rows: Log
    unit: Ints
    item: Ints
    n_strangers: int
    left_out: int

    @property
    def said(self) -> str:
        """How large it is, and what was left out."""
        return size_of_slice(len(self.rows), len(np.unique(self.unit)), left_out=self.left_out)


def size_of_slice(n_rows: int, n_users: int, *, left_out: int) -> str:
    """How large a slice is, in words.

    >>> size_of_slice(8, 2, left_out=1)
    '8 rows of 2 users; of 9 rows, 1 are no candidates and were left out'
    """
    size = f"{n_rows:,} rows of {n_users:,} users"
    if left_out == 0:
        return size
    return f"{size}; of {n_rows + left_out:,} rows, {left_out:,} are no candidates and were left out"


def candidate_rows(random: Log, log: Log, candidates: Candidates | None) -> Slice:
    """A row is a candidate if its item is one for its user in the log, or of the catalogue if the user is a stranger.

    >>> from truerank.core.ids import Ids
    >>> log = Log(Ids.of([1, 2]), Ids.of([5, 6]), np.array([0]), np.array([0]), {})
    >>> random = Log(Ids.of([2, 9]), Ids.of([5, 7]), np.array([0, 0, 1]), np.array([0, 1, 0]), {})
    >>> found = candidate_rows(random, log, None)
    >>> found.unit.tolist(), found.item.tolist(), found.left_out
    ([1, 2], [0, 0], 1)
    """
    check_no_repeats(random)
    unit, item, kept = able_rows(random, log, candidates)
    if not kept.any():
        raise no_candidate(random, log.source)
    rows, unit, item = random.select(kept), unit[kept].copy(), item[kept]
    strangers, at = np.unique(rows.user[unit < 0], return_inverse=True)
    unit[unit < 0] = log.n_units + at
    return Slice(rows, frozen(unit), frozen(item), len(strangers), int(np.count_nonzero(~kept)))


def able_rows(random: Log, log: Log, candidates: Candidates | None) -> tuple[Ints, Ints, Bools]:
    """The user and the item of each row of a slice as positions in a log (-1 for none), and whether it is a candidate.

    Of a user whom the log does not have, every item of the catalogue is a candidate.
    """
    if len(random) == 0:
        raise InputError(f"{random.source}: the random slice has no rows; expected pairs that were shown at random.")
    unit = log.users.locate(random.users, where=f"{random.source}, column 'user'")[random.user]
    item = log.items.locate(random.items, where=f"{random.source}, column 'item'")[random.item]
    if (item < 0).all():
        raise InputError(
            f"{random.source} and {log.source} have no item in common: items such as {some(random.items.texts()[:3])} "
            f"and {some(log.items.texts()[:3])}. Check the id columns."
        )
    return unit, item, _able(unit, item, candidates, n_items=len(log.items))


def no_candidate(random: Log, source: str) -> InputError:
    """What to say of a slice of which nothing is left."""
    return InputError(
        f"{random.source}: none of {len(random):,} rows is a candidate in {source}; expected pairs that could "
        "have been in the log. Check the exclusions and the candidates."
    )


def check_no_repeats(log: Log) -> None:
    """Refuse a log in which a pair occurs more than once."""
    twice = len(log) - int(Pairs.of(log.user, log.item, n_units=log.n_units).count.sum())
    if twice:
        raise InputError(
            f"{log.source}: {twice:,} pairs occur more than once; expected one row per pair. Keep one row of each."
        )


def _able(unit: Ints, item: Ints, candidates: Candidates | None, *, n_items: int) -> Bools:
    if candidates is None:
        return item >= 0
    # where the catalogue is larger than what is known by name, a strange item is one of the others
    able = (item >= 0) | (candidates.n_items > n_items)
    known = (unit >= 0) & (item >= 0)
    if candidates.only is not None:
        able &= (unit < 0) | (known & _among(unit, item, candidates.only))
    if candidates.exclude is not None:
        able &= ~(known & _among(unit, item, candidates.exclude))
    return able


def _among(unit: Ints, item: Ints, pairs: Pairs) -> Bools:
    width = max(int(pairs.item.max(initial=0)), int(item.max(initial=0))) + 1
    return np.isin(unit * width + item, owners(pairs) * width + pairs.item)
