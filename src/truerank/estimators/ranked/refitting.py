"""Sums under position models that were fitted without each group of clusters, for the delete-a-group jackknife.

A row's weight depends on the model only through the places where the target and the log put its item. So rewards are
counted once by (group, target's place, logged place), and the sums under every model and clip follow from the counts.
Where a policy is given by exposures, or mixes several loggers, terms are made anew under every model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, exact_sum
from truerank.core.refits import Refitted
from truerank.core.terms import Smooth, Terms
from truerank.estimators.ranked.clips import Limited
from truerank.estimators.ranked.exposures import Exposures, Refits, blocks
from truerank.exposure.policies.policies import Policy, tables_of
from truerank.exposure.positions.position_models import Positions

MOST_CELLS = 2**22  # counts that are looked up, not sorted

Totals = tuple[Floats, Floats]  # [groups x columns], and what rounding left of them


def refitted(
    view: Exposures,
    make: Callable[[Exposures], Sequence[Smooth]],
    count: Callable[[Exposures, Refits, Bools], Sequence[Totals]] | None = None,
) -> list[Terms]:
    """The terms that `make` gives, with their totals under the model without each group where the view has refits.

    `count` gives the same totals of the given units from counts, where both policies put items at ranks.
    """
    whole = list(make(view))
    refits = view.refits
    if refits is None:
        return list(whole)
    if count is not None and by_places(view):
        without = _counted(view, refits, count, n_terms=len(whole))
    else:
        without = _made_again(view, refits, make, whole)
    return [Refitted(terms, refits.pattern, totals) for terms, totals in zip(whole, without, strict=True)]


def _patterns(view: Exposures, refits: Refits) -> list[tuple[int, Bools]]:
    """The units of each pattern that the target defines."""
    defined = view.target.defined()
    pattern = refits.pattern[defined]
    codes = pattern[:1] if (pattern == pattern[:1]).all() else np.unique(pattern)
    return [(int(code), defined & (refits.pattern == code)) for code in codes]


def _counted(
    view: Exposures,
    refits: Refits,
    count: Callable[[Exposures, Refits, Bools], Sequence[Totals]],
    *,
    n_terms: int,
) -> list[dict[int, Totals]]:
    by_pattern = {code: count(view, refits, units) for code, units in _patterns(view, refits)}
    return [{code: found[at] for code, found in by_pattern.items()} for at in range(n_terms)]


def _made_again(
    view: Exposures, refits: Refits, make: Callable[[Exposures], Sequence[Smooth]], whole: Sequence[Smooth]
) -> list[dict[int, Totals]]:
    patterns = _patterns(view, refits)
    n_groups = len(refits.positions)
    both = [{code: np.full((2, n_groups, terms.sums.shape[1]), np.nan) for code, _ in patterns} for terms in whole]
    for group, positions in enumerate(refits.positions):
        if positions is None:
            continue
        outside = refits.group != group
        for totals, terms in zip(both, make(view.under(positions)), strict=True):
            for code, units in patterns:
                totals[code][:, group] = _exact(terms.sums[units & outside])
    return [{code: (total[0], total[1]) for code, total in totals.items()} for totals in both]


def _exact(sums: Floats) -> tuple[Floats, Floats]:
    """The total of each column as it is rounded, and what rounding left."""
    columns = [np.ascontiguousarray(column) for column in sums.T]
    totals = [exact_sum(column) for column in columns]
    rest = [exact_sum(np.append(column, -total)) for column, total in zip(columns, totals, strict=True)]
    return np.array(totals), np.array(rest)


# ------------------------------------------------------------------------------------------------------------ by places


def by_places(view: Exposures) -> bool:
    """Whether both policies put items at ranks that a position model views."""
    return all(
        policy.rank is not None and policy.positions is not None and policy.values is None
        for policy in (view.target, view.logging)
    )


@dataclass(frozen=True, slots=True, eq=False)
class PlaceCounts:
    """Σ of a value, and how many rows, by group and by (target's place, logged place): [groups x cells].

    A place is the number of a position model and a rank. `low` is what rounding lost in `high`.
    """

    target: Ints
    logged: Ints
    high: Floats
    low: Floats
    count: Floats
    shape: tuple[int, int]  # ranks of target and log

    def totals(self, refits: Refits, clips: Floats, of: Limited) -> tuple[Floats, Floats]:
        """Σ value · w over rows outside each group, under its model: [groups x clips]; and the rest."""
        wide = (self.high.astype(np.longdouble) + self.low).sum(axis=0)
        n = self.count.sum(axis=0)
        found = np.full((2, len(refits.positions), len(clips)), np.nan)
        for group, positions in enumerate(refits.positions):
            if positions is None:
                continue
            left = n - self.count[group] > 0
            value = (wide - self.high[group] - self.low[group])[left]
            target = tables_of(positions, self.shape[0]).ravel()[self.target[left]]
            logged = tables_of(positions, self.shape[1]).ravel()[self.logged[left]]
            inverse = np.divide(1.0, logged, out=np.zeros(len(logged)), where=logged > 0)
            weight = of.weights(target, inverse, clips[:, None])
            total = (weight * value).sum(axis=1)
            found[0, group] = total
            found[1, group] = total - found[0, group].astype(np.longdouble)
        return found[0], found[1]


def place_counts(view: Exposures, refits: Refits, rows: Ints | None, value: Floats | None, units: Bools) -> PlaceCounts:
    """Counts of the given rows of these units; a value of None counts each row once."""
    log = view.log
    if not units.all():
        every = np.arange(len(log)) if rows is None else rows
        rows = every[units[log.unit[every]]]
    (target, t_ranks, t_width), (logged, l_ranks, l_width) = _places(view.target), _places(view.logging)
    n_groups, n_pairs = len(refits.positions), t_width * l_width
    pairs: Ints | None = None
    if n_pairs * n_groups > MOST_CELLS:
        code = _code(target, view.target, t_ranks, rows) * l_width + _code(logged, view.logging, l_ranks, rows)
        pairs, place = np.unique(code, return_inverse=True)
        n_pairs = len(pairs)
    sums = np.zeros((3, n_groups * n_pairs))
    add = adder()
    start = 0
    for block in blocks(len(log), rows):
        unit = log.unit[block]
        if pairs is None:
            cell = _code(target, view.target, t_ranks, block) * l_width + _code(logged, view.logging, l_ranks, block)
        else:
            cell = place[start : start + len(unit)]
        start += len(unit)
        each = np.ones(len(unit)) if value is None else value[block].astype(np.float64)
        add(refits.group[unit] * n_pairs + cell, each, sums[0], sums[1], sums[2])
    at = np.arange(n_pairs) if pairs is None else pairs
    high, low, count = (part.reshape(n_groups, n_pairs) for part in sums)
    met = np.flatnonzero(count.any(axis=0))
    return PlaceCounts(
        at[met] // l_width, at[met] % l_width, high[:, met], low[:, met], count[:, met], (t_ranks, l_ranks)
    )


def _places(policy: Policy) -> tuple[np.ndarray, int, int]:
    """Ranks, the last of them, and the number of places."""
    if policy.rank is None or policy.positions is None:
        raise TypeError("asked before")
    last = int(policy.rank.max(initial=0))
    return policy.rank, last, (last + 1) * len(policy.positions.rules)


def _code(rank: np.ndarray, policy: Policy, last: int, rows: Ints | slice | None) -> Ints:
    at = rank if rows is None else rank[rows]
    if policy.rule is None:
        return at.astype(np.int64)
    return np.asarray((policy.rule if rows is None else policy.rule[rows]) * (last + 1) + at)


def adder() -> Callable[[Ints, Floats, Floats, Floats, Floats], None]:
    """What adds values to cells: compiled where that can be."""
    if find_spec("numba") is None:
        return add_cells_plainly
    from truerank.estimators.ranked.fast import add_cells

    return add_cells


def add_cells_plainly(cell: Ints, value: Floats, high: Floats, low: Floats, count: Floats) -> None:
    """What `fast.add_cells` adds, in numpy, without what rounding loses."""
    high += np.bincount(cell, value, minlength=len(high))
    count += np.bincount(cell, minlength=len(count))


def units_outside(refits: Refits, units: Bools, value: Floats | None = None) -> Floats:
    """How many of these units are outside each group, or the sum of a value of them."""
    n_groups = len(refits.positions)
    each = units.astype(np.float64) if value is None else np.where(units, value, 0.0)
    of_group = np.bincount(refits.group, each, minlength=n_groups)
    return np.asarray(of_group.sum() - of_group)


def lists_outside(view: Exposures, refits: Refits, units: Bools) -> tuple[Floats, Floats]:
    """Σ over these units outside each group of Σ_a ε(x, a), under the group's model; and what rounding left."""
    target, whole = view.target, view.target.whole
    if target.viewed is not None:
        total = units_outside(refits, units, target.viewed)
        return total, np.zeros_like(total)
    if whole is not None:
        if whole.rank is None or target.positions is None:
            total = units_outside(refits, units, target.total())
            return total, np.zeros_like(total)
        last = int(whole.rank.max(initial=0))
        place = whole.rank if whole.rule is None else whole.rule * (last + 1) + whole.rank
        used = units[whole.unit]
        return _looked_up(
            refits, place[used], refits.group[whole.unit[used]], lambda positions: tables_of(positions, last).ravel()
        )
    places = np.zeros(0, dtype=np.int64) if target.places is None else target.places
    last = int(places.max(initial=0))
    return _looked_up(
        refits, places[units], refits.group[units], lambda positions: np.cumsum(tables_of(positions, last)[0])
    )


def _looked_up(refits: Refits, code: Ints, group: Ints, table: Callable[[Positions], Floats]) -> tuple[Floats, Floats]:
    """Σ table[code] over what is outside each group, by the table of its model; and what rounding left."""
    n_groups, width = len(refits.positions), int(code.max(initial=-1)) + 1
    if width * n_groups <= MOST_CELLS:
        count = np.bincount(group * width + code, minlength=n_groups * width).reshape(n_groups, width)
        met = np.flatnonzero(count.any(axis=0))
        count = count[:, met]
    else:
        met, at = np.unique(code, return_inverse=True)
        cell = group * len(met) + at.reshape(-1)
        count = np.bincount(cell, minlength=n_groups * len(met)).reshape(n_groups, len(met))
    found = np.full((2, n_groups), np.nan)
    for number, positions in enumerate(refits.positions):
        if positions is not None:
            outside = (count.sum(axis=0) - count[number]).astype(np.longdouble)
            total = (outside * table(positions)[met]).sum()
            found[0, number] = total
            found[1, number] = total - np.longdouble(found[0, number])
    return found[0], found[1]
