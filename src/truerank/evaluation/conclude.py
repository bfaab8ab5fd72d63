"""conclude(Plan, Measured) -> Results: intervals, comparisons, messages, provenance, written once for every data.

What was measured of all chunks is brought together in memory up to a budget, beyond it in temporary files: what is kept
of units too many to hold is one row of sums per cluster, and the rows of one question are needed at a time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from truerank.core.arrays import Ints
from truerank.core.clusters import Clusters
from truerank.core.errors import InputError, RefusedError, TruerankError
from truerank.core.messages import message
from truerank.core.results import Estimate, Evidence, Results
from truerank.core.terms import Terms
from truerank.core.threads import without_collecting
from truerank.evaluation.compare import (
    Difference,
    PairedTerms,
    adjusted_families,
    chosen_clips,
    clip_of,
    compare,
    in_order,
)
from truerank.evaluation.estimate_checks import ESTIMATE_CHECKS, VERDICT_CHECKS, hit_pairs
from truerank.evaluation.evaluation_checks import EVALUATION_CHECKS, used_counts
from truerank.evaluation.measure import Evaluation, Measured, MeasuredEstimate, join
from truerank.evaluation.power import check_detectable
from truerank.evaluation.question import Cell, Examined, Plan, PlannedEstimate, run_checks
from truerank.evaluation.units import Segments, UnitsOf
from truerank.inference.linearization import Spread, at_a_bound, spread_from_labels, within_bounds
from truerank.io.spill import scratch

BUDGET = 2**28  # bytes of sums that are held in memory
NO_CLUSTERS = Clusters.numbered(0)
# each of these says why there is no interval
WITHOUT_INTERVAL = frozenset(
    {"single-user", "same-value", "no-spread", "no-hit", "no-hit-pairs", "interval-outside", "no-interval"}
)


@without_collecting()
def conclude(plan: Plan[Any], measured: Measured, *, complete: bool = False) -> Results:
    """What was measured, with how sure it is; where it is `complete`, all rows and units must have been measured.

    Estimate by estimate, so that the terms of no more than one need to be in memory.
    """
    counted = {"rows": (plan.n_rows, measured.n_rows), f"{plan.unit}s": (plan.n_units, int(measured.size.sum()))}
    for what, (expected, n) in counted.items():
        if complete and n != expected:
            raise TruerankError(f"{expected:,} {what} went in, and {n:,} were measured.")  # never in silence
    for name, where in plan.rows.tables.items():
        if not measured.counts.models[name].ranked:
            log = plan.record.inputs[0].source
            raise InputError(f"{where}: no session in common with {log}. Check the session ids.")
    question = plan.question
    estimates: dict[Cell, Estimate] = {}
    examined: dict[Cell, Examined] = {}
    values: dict[Cell, Spread] = {}
    differences: dict[Difference, Spread] = {}
    for number in range(len(plan.estimates)):
        models = [model for model in plan.models if (model, number) in measured.terms]
        terms = {model: measured.terms[model, number] for model in models}
        pairs = question.pairs(models)
        alone, paired = question.interval.spreads(terms, pairs, level=question.level)
        for model, spread in alone.items():
            cell = (model, number)
            estimate = MeasuredEstimate(plan, cell, measured, terms[model])
            shown = _shown(plan, number, spread, [terms[model]])
            values[cell] = _bounded(estimate, shown)
            examined[cell] = _examined(estimate, values[cell], shown)
            estimates[cell] = _estimate(estimate, values[cell], examined[cell])
        between = PairedTerms(terms if pairs else {})
        for pair, spread in paired.items():
            differences[pair, number] = _shown(plan, number, spread, between.both(pair))
    ordered = [estimates[cell] for cell in in_order(plan, estimates)]
    choices, untested = chosen_clips(plan, measured, values, differences)
    evaluation = Evaluation(plan, measured, values, differences, ordered, choices)
    families = adjusted_families(plan, measured, differences, untested=untested)
    compared = compare(plan, measured, examined, families, untested=untested)
    cells = in_order(plan, compared)
    comparisons = tuple(compared[cell] for cell in cells)
    remembers = plan.keeps_units and measured.kept
    detectable = check_detectable(plan, measured, comparisons, [number for _, number in cells])
    return Results(
        estimates=tuple(ordered),
        comparisons=comparisons,
        messages=(*plan.messages, *run_checks(EVALUATION_CHECKS, evaluation), *detectable),
        provenance=dataclasses.replace(
            plan.record,
            counts={**plan.record.counts, **used_counts(plan, measured.counts)},
            details=plan.rows.details(evaluation),
        ),
        unit_table=UnitsOf(plan, measured) if remembers else None,
        segments=Segments(plan, measured) if remembers else None,
    )


def _shown(plan: Plan[Any], number: int, spread: Spread, terms: Sequence[Terms]) -> Spread:
    """The spread of a value, or of a difference of two, without interval where rows show none, or a fit fails."""
    unfitted = plan.estimates[number].refitted and bool(plan.learned.failures)
    blind = unfitted or any(hit_pairs(part) == 0 for part in terms)
    return spread.without_interval() if blind else spread_from_labels(spread, terms)


def _examined(estimate: MeasuredEstimate, spread: Spread, shown: Spread) -> Examined:
    """What an estimate rests on; `spread` is what is shown, within the bounds of its metric."""
    rows, balance = estimate.plan.rows, estimate.lists.balance
    basis = rows.basis(estimate)
    checkable = balance is not None and balance.checkable
    warnings = run_checks(ESTIMATE_CHECKS, estimate)
    if math.isnan(spread.stderr) and not math.isnan(shown.stderr):
        warnings = (*warnings, message("interval-outside", low=shown.low, high=shown.high))
    return Examined(
        evidence=Evidence(
            informative=spread.informative,
            df=spread.df,
            largest=spread.largest,
            balance=balance.share if balance is not None and checkable else None,
            balance_z=balance.z if balance is not None and checkable else None,
            lost=basis.lost,
            unsupported=basis.unsupported,
        ),
        basis=basis,
        warnings=warnings,
        reasons=() if estimate.info.of_lists else run_checks(VERDICT_CHECKS, estimate),
    )


def _bounded(estimate: MeasuredEstimate, spread: Spread) -> Spread:
    """The spread of a value inside the bounds of its metric; one-sided where all clusters lie at a bound."""
    question, bounds = estimate.plan.question, estimate.planned.bounds
    if bounds is None or question.interval.needs_rows or not math.isnan(spread.stderr) or spread.value not in bounds:
        return within_bounds(spread, bounds)
    n = estimate.plan.rows.equal_clusters(estimate)
    if not n:
        return within_bounds(spread, bounds)
    at_bound = at_a_bound(spread.value, bounds, n, level=question.level)
    return spread if at_bound is None else dataclasses.replace(at_bound, informative=spread.informative)


def _estimate(measured: MeasuredEstimate, spread: Spread, examined: Examined) -> Estimate:
    planned, question, terms = measured.planned, measured.plan.question, measured.terms
    estimator, request = planned.estimator, planned.request
    if math.isinf(spread.value) or math.isinf(spread.stderr):
        raise RefusedError(
            f"{measured.model}, {planned.name}, {estimator.info.name}: values or weights are so large that their sum "
            "is no number. Use another unit for rewards, or limit the weights (clip)."
        )
    warnings = (*examined.warnings, *examined.reasons)
    unknown = math.isnan(spread.low) and not math.isnan(spread.value)
    if unknown and not any(warning.code in WITHOUT_INTERVAL for warning in warnings):
        warnings = (*warnings, message("no-interval"))
    estimand = estimator.estimand(request, measured.plan.unit)
    return Estimate(
        model=measured.model,
        metric=planned.name,
        k=planned.cutoff,
        estimator=estimator.info.name,
        settings=_settings(planned),
        estimand=estimand if request.segment is None else f"{estimand}; only items of {request.segment} earn",
        value=spread.value,
        stderr=spread.stderr,
        low=spread.low,
        high=spread.high,
        level=question.level,
        interval=question.interval.name,
        units=measured.n_defined,
        undefined=measured.n_units - measured.n_defined,
        clusters=int(np.count_nonzero(terms.clusters.has(terms.defined))),
        evidence=examined.evidence,
        ess=examined.basis.effective,
        reward=request.reward,
        clip=clip_of(planned),
        segment=request.segment,
        directed=planned.directed,
        assumptions=planned.assumptions,
        warnings=warnings,
    )


def _settings(planned: PlannedEstimate) -> dict[str, Any]:
    """The options of an estimator that are not the default."""
    estimator: Any = planned.estimator
    return {
        field.name: str(getattr(estimator, field.name))
        for field in (dataclasses.fields(estimator) if dataclasses.is_dataclass(estimator) else ())
        if field.compare and field.name != "clip" and getattr(estimator, field.name) != field.default
    }


# ---------------------------------------------------------------------------------------------------- all parts


def concluded(plan: Plan[Any], parts: Iterable[Measured]) -> Results:
    """The results of all parts, which must have every row and unit of the plan."""
    with gathered(parts) as measured:
        return conclude(plan, measured, complete=True)


@contextmanager
def gathered(parts: Iterable[Measured], *, budget: int | None = None) -> Iterator[Measured]:
    """All parts as one; what is kept on disk is gone with the context."""
    held: list[Measured] = []
    size = 0
    waiting = iter(parts)
    for part in waiting:
        held.append(part)
        size += _bytes(part)
        if size > (BUDGET if budget is None else budget) and not any(terms.has_rows() for terms in part.terms.values()):
            break
    else:
        if not held:
            raise InputError("no rows; expected rows of users and items.")
        yield join(held)
        return
    with scratch() as aside:
        store = StoredTerms(aside.make("sums") / "columns")
        while held:
            store.add(held.pop(0))
        for part in waiting:
            store.add(part)
        yield store.measured()


def _bytes(part: Measured) -> int:
    """Bytes of what is kept of rows, counted once where several questions share it."""
    columns = {id(values): values for terms in part.terms.values() for values in terms.columns().values()}
    return sum(values.nbytes for values in columns.values())


@dataclass(slots=True)
class StoredTerms(Mapping[Cell, Terms]):
    """The terms of each question, whose columns are in a file, once where questions share them, and read when needed.

    `kinds` are the terms without rows; `places` say where the columns of each chunk begin, and how long they are.
    `clusters` are those of chunks, and then of the rows of all in their `order`.
    """

    path: Path
    parts: list[Measured] = field(default_factory=list)
    kinds: dict[Cell, Terms] = field(default_factory=dict)
    places: dict[tuple[Cell, str], list[tuple[int, int]]] = field(default_factory=dict)
    clusters: list[Clusters] = field(default_factory=list)
    order: Ints | None = None

    def add(self, part: Measured) -> None:
        if not part.terms:
            return
        self.clusters.append(next(iter(part.terms.values())).clusters)
        self.parts.append(dataclasses.replace(part, terms={}, single=None))
        written: dict[int, int] = {}
        try:
            with self.path.open("ab") as file:
                for cell, terms in part.terms.items():
                    for name, values in terms.columns().items():
                        if id(values) not in written:
                            written[id(values)] = file.tell()
                            np.ascontiguousarray(values.T).tofile(file)
                        self.places.setdefault((cell, name), []).append((written[id(values)], values.size))
                    kind = terms.from_columns(
                        {name: values[:0] for name, values in terms.columns().items()}, NO_CLUSTERS
                    )
                    self.kinds[cell] = self.kinds[cell].merge([kind]) if cell in self.kinds else kind
        except OSError as error:
            raise InputError(
                f"{self.path.parent}: cannot be written ({error.strerror}); what is measured is kept there until the "
                "end. Make room, or name another place with TMPDIR."
            ) from None

    def measured(self) -> Measured:
        place, clusters = np.concatenate([part.place for part in self.parts]), Clusters.join(self.clusters)
        self.order = None if (np.diff(place) >= 0).all() else np.argsort(place, kind="stable")
        self.clusters = [clusters if self.order is None else clusters.take(self.order)]
        return dataclasses.replace(join(self.parts), terms=self, kept=False)

    def __getitem__(self, cell: Cell) -> Terms:
        columns = {}
        for name, empty in self.kinds[cell].columns().items():
            parts = [
                np.fromfile(self.path, empty.dtype, n, offset=begin).reshape(*empty.shape[:0:-1], -1)
                for begin, n in self.places[cell, name]
            ]
            values = np.concatenate(parts, axis=-1)
            columns[name] = (values if self.order is None else values.take(self.order, axis=-1)).T
        return self.kinds[cell].from_columns(columns, self.clusters[0])

    def __contains__(self, cell: object) -> bool:
        return cell in self.kinds

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.kinds)

    def __len__(self) -> int:
        return len(self.kinds)
