"""Results that remember: what every unit contributed, and the same question within groups of units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Bools
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids
from truerank.core.results import Results
from truerank.core.units import KeptUnits, UnitTerms
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Plan
from truerank.uncertainty.evidence import whole

MOST_GROUPS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class UnitsOf:
    """What every unit contributed to each estimate, as a table that is made when it is asked for."""

    plan: Plan
    measured: Measured

    def frame(self) -> pl.DataFrame:
        plan, measured = self.plan, self.measured
        unit, cluster = plan.ids(measured)
        parts = []
        for (model, number), terms in measured.terms.items():
            estimator, asked = plan.question.asked[number]
            sums = whole(terms)
            parts.append(
                UnitTerms(
                    model=model,
                    metric=plan.named(estimator, asked)[0],
                    estimator=estimator.about.name,
                    reward=asked.reward,
                    clip=asked.clip,
                    unit=unit,
                    cluster=cluster,
                    numerator=sums.sums[:, 0],
                    denominator=sums.sums[:, 1],
                    defined=sums.defined,
                    total=sums.column("total"),
                    value=np.where(sums.defined, sums.form.values(sums.sums), np.nan),
                )
            )
        return KeptUnits(parts).frame()


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The same question within groups of units: groups given for each unit, or as many quantiles of activity."""

    plan: Plan
    measured: Measured

    def __call__(self, segment: Any) -> Mapping[str, Results]:
        from truerank.evaluation.conclude import conclude

        rows = {name: self._rows(kept) for name, kept in self._groups(segment).items()}
        return {name: conclude(self.plan, self.measured.select(kept)) for name, kept in rows.items()}

    def _rows(self, kept: Bools) -> Bools:
        if not kept.any():
            raise InputError("a group without a unit of this evaluation. Check the ids of the groups.")
        return kept

    def _groups(self, segment: Any) -> dict[str, Bools]:
        if isinstance(segment, int) and not isinstance(segment, bool):
            return self._quantiles(segment)
        named = _named(segment)
        ids, _ = self.plan.ids(self.measured)
        place = Ids(pl.Series(named["id"])).locate(ids) if named["id"].is_sorted() else None
        if place is None:
            order = named["id"].arg_sort()
            named = named[order]
            place = Ids(named["id"]).locate(ids, where="groups, column of ids")
        groups = named["group"].cast(pl.String)
        names = sorted(groups.unique().to_list())
        if len(names) > MOST_GROUPS:
            raise InputError(f"{len(names):,} groups ({some(names)}); expected at most {MOST_GROUPS:,}.")
        of_unit = np.where(place >= 0, groups.to_numpy()[np.maximum(place, 0)], "")
        return {name: kept for name in names if (kept := of_unit == name).any()}

    def _quantiles(self, n: int) -> dict[str, Bools]:
        """Units in n groups of about equal size, by how active they are; equal units share a group."""
        if n < 2:
            raise InputError(f"{n} quantiles of activity; expected at least 2.")
        activity = self.plan.activity(self.measured)
        cuts = np.quantile(activity, np.arange(1, n) / n)
        group = np.searchsorted(cuts, activity, side="left")
        return {
            f"activity {activity[group == at].min():g} to {activity[group == at].max():g}": group == at
            for at in range(n)
            if (group == at).any()
        }


def items_by_group(groups: Any, items: Ids) -> dict[str, Bools]:
    """Which items of a catalogue each group has; an item without a group earns in none of them.

    >>> {name: own.tolist() for name, own in items_by_group({1: "head", 3: "tail"}, Ids.of([1, 2, 3])).items()}
    {'head': [True, False, False], 'tail': [False, False, True]}
    """
    if groups is None:
        return {}
    named = _named(groups)
    place = items.locate(named["id"], where="item groups, column of ids")
    names = named["group"].cast(pl.String)
    found: dict[str, Bools] = {}
    for name in sorted(names.drop_nulls().unique().to_list()):
        own = np.zeros(len(items), dtype=bool)
        own[place[(names == name).fill_null(value=False).to_numpy() & (place >= 0)]] = True
        if own.any():
            found[name] = own
    if not found:
        raise InputError("item groups: no item of the catalogue has a group. Check the ids of the groups.")
    return found


def _named(segment: Any) -> pl.DataFrame:
    """Groups as a table id, group: from a mapping, or a frame of two columns."""
    if isinstance(segment, Mapping):
        return pl.DataFrame({"id": list(segment), "group": [str(name) for name in segment.values()]})
    table = segment if isinstance(segment, pl.DataFrame) else pl.DataFrame(segment)
    if table.width != 2:
        raise InputError(f"groups with {table.width} columns ({some(table.columns)}); expected two: the id, the group.")
    return table.rename(dict(zip(table.columns, ("id", "group"), strict=True))).unique("id").sort("id")
