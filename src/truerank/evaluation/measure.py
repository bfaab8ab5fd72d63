"""measure(Plan, chunk of whole units) -> Measured: pure; what was measured of other units adds."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Ints, exact_sum
from truerank.core.clusters import Clusters, Once
from truerank.core.estimator import Clipping, Estimator, EstimatorInfo, Request
from truerank.core.ids import Keys
from truerank.core.progress import Progress
from truerank.core.record import record
from truerank.core.results import Estimate
from truerank.core.terms import Refitted, Smooth, Terms, Totals
from truerank.engines.engine import Chunked, Workers, map_chunks
from truerank.estimators.impressions import limited_by
from truerank.evaluation.counts import ListCounts, ModelCounts, diagnostics_of
from truerank.evaluation.question import Cell, Pair, Plan, PlannedEstimate
from truerank.inference.linearization import Spread
from truerank.inference.weights import WeightDiagnostics


@record(eq=False)
class Measured:
    """The terms of every model and estimate, with counts for messages; `+` joins those of other units.

    A row is a cluster, or those of its units that the same estimates define. `place` is the place of each row of the
    terms in the population: rows of one chunk or of many come into one order. `size` is how many units a row has.
    """

    place: Ints
    size: Ints
    terms: Mapping[Cell, Terms]
    counts: Any
    n_rows: int
    kept: bool = True  # terms stay in memory
    single: Measured | None = None  # the same of every unit, where a row is a cluster of several and units are kept

    def __add__(self, more: Measured) -> Measured:
        return join([self, more])

    def select(self, rows: Ints) -> Measured:
        """Of these rows alone; what was counted by unit is of theirs, what was counted at once of all."""
        place = self.place[rows]
        terms, counts = _taken(self.terms, rows), self.counts.at(place)
        return replace(self, place=place, size=self.size[rows], terms=terms, counts=counts, single=None)


def join(parts: Sequence[Measured]) -> Measured:
    """All parts as one, in the order of the population, so that neither chunks nor their order change a bit."""
    if len(parts) == 1 and (np.diff(parts[0].place) >= 0).all():
        return parts[0]
    # chunks are mostly runs of the population: in their order nothing has to be sorted
    parts = sorted(parts, key=lambda part: int(part.place[0]) if len(part.place) else -1)
    place, size = (np.concatenate([getattr(part, name) for part in parts]) for name in ("place", "size"))
    once = Once()
    by_cell = {cell: [part.terms[cell] for part in parts] for cell in parts[0].terms}
    terms = {cell: once.of(of_cell, partial(of_cell[0].join, of_cell[1:], once)) for cell, of_cell in by_cell.items()}
    if not (np.diff(place) >= 0).all():
        order = np.argsort(place, kind="stable")
        terms, place, size = _taken(terms, order), place[order], size[order]
    counts = reduce(operator.add, (part.counts for part in parts))
    single = [part.single for part in parts if part.single is not None]
    return Measured(
        place,
        size,
        terms,
        counts,
        sum(part.n_rows for part in parts),
        single=join(single) if len(single) == len(parts) else None,
    )


def _taken(terms: Mapping[Cell, Terms], rows: Ints) -> dict[Cell, Terms]:
    """The terms of these rows, in this order."""
    clusters = next((part.clusters.take(rows) for part in terms.values()), Clusters.numbered(0))
    return _mapped(terms, lambda part, once: part.take(rows, clusters, once))


def _mapped(terms: Mapping[Cell, Terms], make: Callable[[Terms, Once], Terms]) -> dict[Cell, Terms]:
    """What a function makes of each of the terms; what estimates share they share again."""
    once = Once()
    return {cell: once.of([part], partial(make, part, once)) for cell, part in terms.items()}


def measure(plan: Plan[Any], chunk: Any) -> Measured:
    """The terms of all estimates from the units of a chunk."""
    views = plan.rows.views(plan, chunk)
    terms: dict[Cell, Terms] = {}
    for model, view in views.items():
        terms |= _terms(plan, chunk, model, view)
    if plan.learned.refits:
        terms |= _refitted(plan, chunk, views, terms)
    place = chunk.places()
    size = np.ones(len(place), dtype=np.int64)
    models = {model: plan.rows.count_model(plan, chunk, model, view) for model, view in views.items()}
    counts = replace(plan.rows.count(plan, chunk), models=models)
    measured = Measured(place, size, terms, counts, chunk.n_rows)
    rows = by_cluster(measured)
    return rows if rows is measured or not plan.keeps_units else replace(rows, single=measured)


def measured_by(
    workers: Workers, plan: Plan[Any], chunks: Chunked[Any], *, progress: Progress | None, what: str = "measuring"
) -> Iterator[Measured]:
    """What is measured of every chunk, as it is done; ids of units do not travel."""
    sent = plan if workers.here else replace(plan, ids=None)
    return map_chunks(workers, partial(measure, sent), chunks, progress=progress, what=what)


def by_cluster(measured: Measured) -> Measured:
    """Units of one cluster as one row, where all estimates define them alike.

    Always, whether or not single units are kept: so neither that nor the chunks change a bit of a value.
    """
    clusters = next(iter(measured.terms.values())).clusters if measured.terms else None
    if clusters is None or len(clusters) == len(clusters.of_row):
        return measured
    defined = list({id(part.defined): part.defined for part in measured.terms.values()}.values())
    pattern = None if all(bool(flags.all()) for flags in defined) else _pattern(defined)
    if pattern is None:
        group, n = clusters.of_row, len(clusters)
        rows = Clusters(np.arange(n), clusters.key, clusters.stratum)
    else:
        both = np.stack([clusters.of_row.astype(np.uint64), pattern], axis=1)
        distinct, group = np.unique(both, axis=0, return_inverse=True)
        group, n = group.reshape(-1), len(distinct)
        rows = Clusters(distinct[:, 0].astype(np.int64), clusters.key, clusters.stratum)
    place = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(place, group, measured.place)
    size = np.bincount(group, weights=measured.size, minlength=n).astype(np.int64)
    terms = _mapped(measured.terms, lambda part, once: part.reduce(group, rows, once))
    return Measured(place, size, terms, measured.counts, measured.n_rows)


def _terms(plan: Plan[Any], chunk: Any, model: str, view: Mapping[Any, Any]) -> dict[Cell, Terms]:
    """What one model's units contribute to each estimate."""
    terms: dict[Cell, Terms] = {}
    for (estimator, segment), numbers in _together(plan, model).items():
        parts = estimator.terms(
            chunk if segment is None else plan.rows.within(chunk, segment),
            view[estimator.info.pool],
            requests=[plan.estimates[number].request for number in numbers],
            learned=plan.learned,
            keep_rows=plan.keeps_rows,
        )
        terms |= {(model, number): part for number, part in zip(numbers, parts, strict=True)}
    return terms


def _together(plan: Plan[Any], model: str) -> dict[tuple[Estimator, str | None], list[int]]:
    """The estimates of a model that one estimator makes at once."""
    together: dict[tuple[Estimator, str | None], list[int]] = {}
    for number, planned in enumerate(plan.estimates):
        if model in planned.models:
            together.setdefault((planned.estimator, planned.request.segment), []).append(number)
    return together


# -------------------------------------------------------------------------------------------------------------- refits


def _refitted(
    plan: Plan[Any], chunk: Any, views: Mapping[str, Mapping[Any, Any]], terms: Mapping[Cell, Terms]
) -> dict[Cell, Terms]:
    """The same terms with totals under every model that was learned without a group of clusters."""
    groups, once = plan.learned.groups, Once()
    if groups is None or not any(planned.refitted for planned in plan.estimates):
        return {}
    clusters = next(iter(terms.values())).clusters
    group = groups.at(clusters.key)[clusters.of_row]
    refitted: dict[Cell, Terms] = {}
    for model, view in views.items():
        for (estimator, segment), numbers in _together(plan, model).items():
            if not plan.estimates[numbers[0]].refitted:
                continue
            seen = view[estimator.info.pool]
            rows = chunk if segment is None else plan.rows.within(chunk, segment)
            requests = [plan.estimates[number].request for number in numbers]
            whole = [terms[model, number].whole for number in numbers]
            patterns = []
            for number in numbers:
                defined = [terms[name, number].defined for name in plan.models if (name, number) in terms]
                patterns.append(once.of(defined, partial(_pattern, defined)))
            totals = estimator.totals_without(seen, requests, patterns[0])
            if totals is None:
                remade = (
                    (number, estimator.terms(rows, other, requests=requests, learned=plan.learned.without(number)))
                    for number in range(len(groups))
                    if (other := seen.without(number)) is not None
                )
                totals = _totals_without(whole, patterns, group, len(groups), remade)
            parts = map(Refitted, whole, patterns, totals)
            refitted |= {(model, number): part for number, part in zip(numbers, parts, strict=True)}
    return refitted


def _totals_without(
    whole: Sequence[Smooth],
    patterns: Sequence[Keys],
    group: Ints,
    n_groups: int,
    remade: Iterable[tuple[int, Sequence[Terms]]],
) -> list[dict[int, Totals]]:
    """Totals of rows that are not in each group, as terms are `remade` under the model that was fitted without it."""
    both = [
        {
            code: np.full((2, n_groups, terms.sums.shape[1]), np.nan)
            for code in np.unique(pattern[terms.defined]).tolist()
        }
        for terms, pattern in zip(whole, patterns, strict=True)
    ]
    for left_out, parts in remade:
        for totals, pattern, terms in zip(both, patterns, parts, strict=True):
            for code, total in totals.items():
                for number, column in enumerate(terms.whole.sums[(pattern == code) & (group != left_out)].T):
                    rounded = exact_sum(np.ascontiguousarray(column))
                    total[:, left_out, number] = rounded, exact_sum(np.append(column, -rounded))
    return [{code: (total[0], total[1]) for code, total in totals.items()} for totals in both]


def _pattern(defined: Iterable[Bools]) -> Keys:
    """A number of each row that tells which of these define it.

    Powers of two for the first; beyond, numbers whose sums do not meet by chance.
    """
    code: Keys = np.zeros(1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for place, flags in enumerate(defined):
            factor = 1 << place if place < 60 else (0x9E3779B97F4A7C15 * (2 * place + 1)) % 2**64
            code = code + flags.astype(np.uint64) * np.uint64(factor)
    return code


@record(eq=False)
class MeasuredEstimate:
    """One model and one estimate of a plan, with what was measured of it: what checks look at."""

    plan: Plan[Any]
    cell: Cell
    measured: Measured
    terms: Terms

    @property
    def model(self) -> str:
        return self.cell[0]

    @property
    def planned(self) -> PlannedEstimate:
        return self.plan.estimates[self.cell[1]]

    @property
    def estimator(self) -> Estimator:
        return self.planned.estimator

    @property
    def info(self) -> EstimatorInfo:
        return self.planned.estimator.info

    @property
    def request(self) -> Request:
        return self.planned.request

    @property
    def counts(self) -> ModelCounts:
        """What was counted of the model."""
        counts: ModelCounts = self.measured.counts.models[self.model]
        return counts

    @property
    def lists(self) -> ListCounts:
        """What was counted of the lists that the estimate rests on."""
        lists = self.counts.lists.get((self.info.pool, self.request.metric), ListCounts())
        return lists if self.info.stands else replace(lists, balance=None, weights=None)

    @property
    def weights(self) -> WeightDiagnostics:
        """The weights of impressions where they are cut."""
        clip = math.inf if self.info.clipping is Clipping.NONE else self.request.clip
        return diagnostics_of(self.counts, clip, limited_by(self.estimator))

    @property
    def of_impressions(self) -> bool:
        """Whether views of impressions were weighted."""
        return self.counts.support is not None

    @property
    def sums(self) -> Smooth:
        return self.terms.whole

    @property
    def n_units(self) -> int:
        return int(self.measured.size.sum())

    @property
    def n_defined(self) -> int:
        """How many units have a value."""
        return int(self.measured.size[self.terms.defined].sum())


@record(eq=False)
class Evaluation:
    """All that was measured, with the spread of every value and difference, and the clips that were chosen."""

    plan: Plan[Any]
    measured: Measured
    values: Mapping[Cell, Spread] = field(default_factory=dict)
    differences: Mapping[tuple[Pair, int], Spread] = field(default_factory=dict)
    estimates: Sequence[Estimate] = ()
    choices: Sequence[Mapping[str, Any]] = ()
