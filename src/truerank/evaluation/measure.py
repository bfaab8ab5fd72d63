"""measure(Plan, chunk of whole units) -> Measured: pure; what was measured of other units adds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, exact_sum
from truerank.core.clusters import Clusters
from truerank.core.ids import Keys
from truerank.core.once import Once
from truerank.core.refits import Refitted
from truerank.core.terms import Smooth, Terms
from truerank.evaluation.question import Cell, Plan, Sight, Tallies


@dataclass(frozen=True, slots=True, eq=False)
class ByPlace:
    """A number for each unit that has another one than 0, by its place in the population; those of other units add."""

    place: Ints
    value: Floats

    def __add__(self, other: ByPlace) -> ByPlace:
        return ByPlace(np.concatenate([self.place, other.place]), np.concatenate([self.value, other.value]))

    def at(self, place: Ints) -> ByPlace:
        """Of these units, in this order."""
        order = np.argsort(self.place, kind="stable")
        known, value = self.place[order], self.value[order]
        at = np.minimum(np.searchsorted(known, place), max(len(known) - 1, 0))
        here = np.isin(place, known)
        return ByPlace(place, np.where(here, value[at], 0.0) if len(known) else np.zeros(len(place)))

    def sum(self) -> float:
        return exact_sum(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The terms of every model and question, with counts for messages; `+` joins those of other units.

    A row is a cluster, or those of its units that the same questions define. `place` is the place of each row of the
    terms in the population: rows of one chunk or of many come into one order. `size` is how many units a row has.
    """

    place: Ints
    size: Ints
    terms: Mapping[Cell, Terms]
    tallies: Tallies
    n_rows: int
    kept: bool = True  # terms stay in memory
    single: Measured | None = None  # the same of every unit, where a row is a cluster of several and units are kept

    def __add__(self, other: Measured) -> Measured:
        return join([self, other])

    def select(self, kept: Bools) -> Measured:
        """Of these rows alone; what was counted by unit is of theirs, what was counted at once of all."""
        rows = np.flatnonzero(kept)
        some = next(iter(self.terms.values()), None)
        clusters = Clusters.numbered(0) if some is None else some.clusters.take(rows)
        terms = _of_each(self.terms, lambda part, once: part.take(rows, clusters, once))
        place = self.place[rows]
        tallies = {key: each.at(place) if isinstance(each, ByPlace) else each for key, each in self.tallies.items()}
        return replace(self, place=place, size=self.size[rows], terms=terms, tallies=tallies, single=None)


def join(parts: Sequence[Measured]) -> Measured:
    """All parts as one, in the order of the population, so that neither chunks nor their order change a bit."""
    if len(parts) == 1 and (np.diff(parts[0].place) >= 0).all():
        return parts[0]
    # chunks are mostly runs of the population: in their order nothing has to be sorted
    parts = sorted(parts, key=lambda part: int(part.place[0]) if len(part.place) else -1)
    place, size = (np.concatenate([getattr(part, name) for part in parts]) for name in ("place", "size"))
    terms = _joined([part.terms for part in parts])
    if not (np.diff(place) >= 0).all():
        order = np.argsort(place, kind="stable")
        clusters = next(iter(terms.values())).clusters.take(order) if terms else None
        terms = _of_each(terms, lambda each, once: each.take(order, clusters, once)) if clusters is not None else terms
        place, size = place[order], size[order]
    tallies = added(part.tallies for part in parts)
    single = [part.single for part in parts if part.single is not None]
    return Measured(
        place,
        size,
        terms,
        tallies,
        sum(part.n_rows for part in parts),
        single=join(single) if len(single) == len(parts) else None,
    )


def _joined(parts: Sequence[Mapping[Cell, Terms]]) -> dict[Cell, Terms]:
    """The terms of all parts; what questions share in every part they share again."""
    once = Once()

    def made(of_parts: Sequence[Terms]) -> Terms:
        return once.of(of_parts, lambda: of_parts[0].join(of_parts[1:], once))

    return {cell: made([part[cell] for part in parts]) for cell in parts[0]}


def _of_each(terms: Mapping[Cell, Terms], make: Callable[[Terms, Once], Terms]) -> dict[Cell, Terms]:
    """What is made of each of the terms; what questions share they share again."""
    once = Once()

    def made(part: Terms) -> Terms:
        return once.of([part], lambda: make(part, once))

    return {cell: made(part) for cell, part in terms.items()}


def added(parts: Iterable[Tallies]) -> Tallies:
    """The counts of all parts.

    >>> added([{("a",): 1}, {("b",): 2}, {("a",): 3}])
    {('a',): 4, ('b',): 2}
    """
    total: dict[tuple[Any, ...], Any] = {}
    for part in parts:
        for key, count in part.items():
            total[key] = total[key] + count if key in total else count
    return total


def measure(plan: Plan, chunk: Any) -> Measured:
    """The terms of all questions about the units of a chunk."""
    question = plan.question
    sights = {model: plan.look(chunk, model) for model in question.models}
    terms: dict[Cell, Terms] = {}
    for model, sight in sights.items():
        terms |= _terms(plan, chunk, model, sight)
    if plan.learned.refits:
        terms |= _refitted(plan, chunk, sights, terms)
    tallies: Tallies = added([plan.counted(chunk), *(sight.tallies() for sight in sights.values())])
    place = plan.places(chunk)
    measured = Measured(place, np.ones(len(place), dtype=np.int64), terms, tallies, plan.n_rows(chunk))
    rows = by_cluster(measured)
    return rows if rows is measured or not plan.keeps_units else replace(rows, single=measured)


def by_cluster(measured: Measured) -> Measured:
    """Units of one cluster as one row, where all questions define them alike.

    Always, whether or not single units are kept: so neither that nor the chunks change a bit of a value.
    """
    clusters = next(iter(measured.terms.values())).clusters if measured.terms else None
    if clusters is None or len(clusters) == len(clusters.of_row):
        return measured
    pattern = _alike(list({id(part.defined): part.defined for part in measured.terms.values()}.values()))
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
    terms = _of_each(measured.terms, lambda part, once: part.reduce(group, rows, once))
    return Measured(place, size, terms, measured.tallies, measured.n_rows)


def _alike(defined: Sequence[Bools]) -> Keys | None:
    """A number for each row that tells which questions define it; None where all rows are alike."""
    if all(bool(each.all()) for each in defined):
        return None
    code = np.zeros(len(defined[0]), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for at, each in enumerate(defined):
            code += each.astype(np.uint64) * _odd(at)
    return code


def _terms(plan: Plan, chunk: Any, model: str, sight: Sight, *, without: int | None = None) -> dict[Cell, Terms]:
    """What one model's units contribute to each question; with models that were learned without a group of clusters."""
    learned = plan.learned if without is None else plan.learned.without(without)
    terms: dict[Cell, Terms] = {}
    for estimator, numbers in plan.question.by_estimator(plan.answers(model)):
        if without is not None and not plan.learns(estimator):
            continue
        asked = {number: plan.question.asked[number][1] for number in numbers}
        for segment in dict.fromkeys(question.segment for question in asked.values()):
            own = {number: question for number, question in asked.items() if question.segment == segment}
            parts = estimator.terms(
                plan.earning(chunk, segment),
                sight.view(estimator, learned),
                asked=list(own.values()),
                learned=learned,
                keep_rows=plan.keeps_rows and without is None,
            )
            terms |= {(model, number): part for number, part in zip(own, parts, strict=True)}
    return terms


# -------------------------------------------------------------------------------------------------------------- refits


def _refitted(plan: Plan, chunk: Any, sights: Mapping[str, Sight], terms: Mapping[Cell, Terms]) -> dict[Cell, Terms]:
    """The same terms with totals under every model that was learned without a group of clusters."""
    groups = plan.learned.groups
    learning = {number for number, (estimator, _) in enumerate(plan.question.asked) if plan.learns(estimator)}
    if groups is None or not learning:
        return {}
    clusters = next(iter(terms.values())).clusters
    group = groups.at(clusters.key)[clusters.of_row]
    pattern = _patterns({cell: part for cell, part in terms.items() if cell[1] in learning})
    codes = {number: np.unique(code) for number, code in pattern.items()}
    totals: dict[Cell, dict[int, Floats]] = {}
    for without in range(len(groups)):
        for model, sight in sights.items():
            for cell, part in _terms(plan, chunk, model, sight, without=without).items():
                if not isinstance(part, Smooth):
                    continue
                kept = group != without
                for code in codes[cell[1]].tolist():
                    rows = kept & (pattern[cell[1]] == code)
                    into = totals.setdefault(cell, {}).setdefault(code, np.zeros((len(groups), len(part.form.columns))))
                    into[without] = [exact_sum(np.ascontiguousarray(column[rows])) for column in part.sums.T]
    found: dict[Cell, Terms] = {}
    for cell, by_code in totals.items():
        whole = terms[cell]
        if isinstance(whole, Smooth):
            without_each = {code: (sums, np.zeros_like(sums)) for code, sums in by_code.items()}
            found[cell] = Refitted(whole, pattern[cell[1]], without_each)
    return found


def _patterns(terms: Mapping[Cell, Terms]) -> dict[int, Keys]:
    """For each question, a number of each row that tells which models define it."""
    models = {model: place for place, model in enumerate(dict.fromkeys(model for model, _ in terms))}
    found: dict[int, Keys] = {}
    with np.errstate(over="ignore"):
        for (model, number), part in terms.items():
            bit = part.defined.astype(np.uint64) * _odd(models[model])
            found[number] = found[number] + bit if number in found else bit
    return found


def _odd(place: int) -> np.uint64:
    """A power of two for the first models; beyond, numbers whose sums do not meet by chance."""
    if place < 60:
        return np.uint64(1 << place)
    return np.uint64((0x9E3779B97F4A7C15 * (2 * place + 1)) % 2**64)
