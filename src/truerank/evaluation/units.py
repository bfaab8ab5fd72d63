"""Results that remember: what every unit contributed, and the same question within groups of units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids, as_ids
from truerank.core.messages import message
from truerank.core.record import record
from truerank.core.results import Results
from truerank.core.terms import Smooth
from truerank.core.units import COLUMNS
from truerank.evaluation.measure import Measured, by_cluster
from truerank.evaluation.question import Plan

MOST_GROUPS = 1000


@record(eq=False)
class UnitsOf:
    """What every unit contributed to each estimate, as a table that is made when it is asked for."""

    plan: Plan[Any]
    measured: Measured

    def frame(self) -> pl.DataFrame:
        plan, measured = self.plan, self.measured.single or self.measured
        unit, cluster = ids_of(plan, measured)
        parts = []
        for (model, number), terms in measured.terms.items():
            planned, (numerator, denominator, total) = plan.estimates[number], contributions(terms.whole)
            clip = planned.request.clip
            numbers = {"numerator": numerator, "denominator": denominator, "total": total, "value": terms.unit_values()}
            columns = {"unit": unit, "cluster": cluster, "defined": terms.defined, **numbers}
            texts = {"model": model, "metric": planned.name, "estimator": planned.estimator.info.name}
            part = pl.DataFrame(columns, schema_overrides=dict.fromkeys(numbers, pl.Float64)).with_columns(
                pl.col("total", "value").fill_nan(None),
                pl.lit(None if math.isinf(clip) else clip, dtype=pl.Float64).alias("clip"),
                **{name: pl.lit(text) for name, text in (texts | {"reward": planned.request.reward}).items()},
            )
            parts.append(part.select(COLUMNS))
        return pl.concat(parts)


def contributions(terms: Smooth) -> tuple[Floats, Floats, Floats | None]:
    """Numerators, denominators and known totals of rows: the value is Σ / Σ, times the mean of the totals.

    Of a form that is no such quotient the numerator is value + rows x influence, over 1: what a row adds, to first
    order.
    """
    if terms.form.quotient:
        names = terms.form.columns
        return terms.sums[:, 0], terms.sums[:, 1], terms.sums[:, names.index("total")] if "total" in names else None
    value = terms.value()
    if math.isnan(value):
        return np.zeros(len(terms.sums)), np.zeros(len(terms.sums)), None
    effect = terms.form.influence(terms.sums, terms.totals())
    return np.where(terms.defined, value + terms.n_defined * effect, 0.0), terms.defined.astype(np.float64), None


def ids_of(plan: Plan[Any], measured: Measured) -> tuple[Any, Any]:
    """The id of each row's unit, and of its cluster."""
    if plan.ids is None:
        raise TypeError("units were not kept")
    unit, cluster = plan.ids
    return unit[measured.place], cluster[measured.place]


@record(eq=False)
class Segments:
    """The same estimates within groups of units: groups given for each unit, or as many quantiles of activity.

    A unit without a group is in none of them. Of a model that was fitted to all units, each group has the value, and no
    interval: that of the fit is known for all units alone.
    """

    plan: Plan[Any]
    measured: Measured

    def __call__(self, segment: Any) -> Mapping[str, Results]:
        quantiles = isinstance(segment, int) and not isinstance(segment, bool)
        groups = self._quantiles(segment) if quantiles else self._named(segment)
        return {name: self._within(name, members) for name, members in groups.items()}

    def _within(self, name: str, members: Bools) -> Results:
        from truerank.evaluation.conclude import conclude

        plan, units = self.plan, self.units.select(np.flatnonzero(members))
        rows = by_cluster(units)
        results = conclude(plan, rows if rows is units else replace(rows, single=units))
        n, total = len(units.place), len(self.units.place)
        group = message("group", group=name, units=n, of=total, unit=plan.unit, subjects=(name,))
        refitted = bool(plan.learned.refits) and any(planned.refitted for planned in plan.estimates)
        fitted = [message("group-interval", subjects=(name,))] if refitted else []
        details = {**results.provenance.details, "group": name}
        return replace(
            results,
            messages=(group, *fitted, *results.messages),
            provenance=replace(results.provenance, details=details),
        )

    @property
    def units(self) -> Measured:
        return self.measured.single or self.measured

    def _named(self, segment: Any) -> dict[str, Bools]:
        table = group_table(segment, what="groups")
        ids, _ = ids_of(self.plan, self.units)
        place = Ids(table["id"]).locate(ids, where="groups, column of ids")
        group = np.array([*table["group"].to_list(), None], dtype=object)[place]  # -1: not named
        names = table["group"].unique().sort().to_list()
        if len(names) > MOST_GROUPS:
            raise InputError(f"{len(names):,} groups ({some(names)}); expected at most {MOST_GROUPS:,}.")
        members = {name: flags for name in names if (flags := group == name).any()}
        if not members:
            raise InputError(
                f"groups: none of {some([str(name) for name in table['id'].head(4).to_list()], most=3)} is a "
                f"{self.plan.unit} of this evaluation, which has {some([str(name) for name in ids[:4]], most=3)}. "
                "Check the ids of the groups."
            )
        return members

    def _quantiles(self, n: int) -> dict[str, Bools]:
        """Units in n groups of about equal size, by how active they are; equal units share a group."""
        if not 2 <= n <= MOST_GROUPS:
            raise InputError(f"{n} quantiles of activity; expected at least 2, and at most {MOST_GROUPS:,}.")
        activity = self.measured.counts.active.at(self.units.place).value
        group = np.searchsorted(np.quantile(activity, np.arange(1, n) / n), activity, side="left")
        return {
            f"activity {activity[members].min():g} to {activity[members].max():g}": members
            for number in range(n)
            if (members := group == number).any()
        }


def items_by_group(groups: Any, items: Ids) -> dict[str, Bools]:
    """Which items of a catalogue each group has; an item without a group has a gain in none of them.

    >>> groups = items_by_group({1: "head", 3: "tail"}, Ids.of([1, 2, 3]))
    >>> {name: members.tolist() for name, members in groups.items()}
    {'head': [True, False, False], 'tail': [False, False, True]}
    """
    if groups is None:
        return {}
    table = group_table(groups, what="item groups")
    place, names = items.locate(table["id"], where="item groups, column of ids"), table["group"]
    members: dict[str, Bools] = {}
    for name in names.unique().sort().to_list():
        flags = np.zeros(len(items), dtype=bool)
        flags[place[(names == name).to_numpy() & (place >= 0)]] = True
        if flags.any():
            members[name] = flags
    if not members:
        raise InputError("item groups: no item of the catalogue has a group. Check the ids of the groups.")
    return members


def group_table(segment: Any, *, what: str) -> pl.DataFrame:
    """Groups as a table id, group, sorted by id: from a mapping, or from a frame of two columns.

    Ids without a group are left out; an id of two groups is refused.

    >>> group_table({2: "b", 1: "a", 3: None}, what="groups").rows()
    [(1, 'a'), (2, 'b')]
    """
    if isinstance(segment, Mapping):
        texts = [None if group is None else str(group) for group in segment.values()]
        table = pl.DataFrame({"id": list(segment), "group": texts}, strict=False)
    else:
        table = segment if isinstance(segment, pl.DataFrame) else _frame(segment, what=what)
        if table.width != 2:
            raise InputError(
                f"{what} with {table.width} columns ({some(table.columns)}); expected two: the id, the group."
            )
        table = table.rename(dict(zip(table.columns, ("id", "group"), strict=True)))
        table = table.with_columns(pl.col("group").cast(pl.String))
    table = table.with_columns(as_ids(table["id"], where=f"{what}, column of ids").alias("id"))
    table = table.drop_nulls("group").unique().sort("id", "group")
    twice = table.filter(pl.col("id").is_duplicated())
    if len(twice):
        first = twice["id"][0]
        raise InputError(
            f"{what}: {first} is in {some(twice.filter(pl.col('id') == first)['group'].to_list())}; "
            "expected one group for each id. Keep one row per id."
        )
    return table


def _frame(segment: Any, *, what: str) -> pl.DataFrame:
    problem = InputError(
        f"{what} are {segment!r:.100}; expected a mapping of ids to groups, a frame of two columns, or (of users) a "
        "number of quantiles of activity."
    )
    if isinstance(segment, str | int | float):
        raise problem
    try:
        return pl.DataFrame(segment)
    except (TypeError, ValueError, OverflowError, RecursionError, pl.exceptions.PolarsError):
        raise problem from None
