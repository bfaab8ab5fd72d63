"""The plan of an evaluation on judged rows: how each model looks at labels, what is counted, what is said."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints
from truerank.core.estimator import Asked, Estimator, Exposed, Learned
from truerank.core.ids import Ids
from truerank.core.messages import Message, note
from truerank.core.metric import Metric
from truerank.core.provenance import Provenance
from truerank.core.ranking import JudgedChunk, Pool, RankView, Ties
from truerank.core.results import Estimate, Evidence
from truerank.core.terms import Terms
from truerank.estimators.biased.weighing import propensity_of
from truerank.evaluation.judged_notes import (
    about_counts,
    about_exclusions,
    about_overlap,
    about_population,
    about_propensities,
    about_ranks,
    differing_orders,
)
from truerank.evaluation.measure import ByPlace, Measured
from truerank.evaluation.question import Cell, Points, Question, Remarks, Tallies
from truerank.metrics.worth import bounds_of, relevant
from truerank.ranks.kernel.rank import Aligned, rank
from truerank.uncertainty.evidence import Listed, equally_weighted, judged_spread, warnings_of, whole
from truerank.uncertainty.spreads import Bounds, Spread
from truerank.uncertainty.verdicts import Unseen

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class JudgedContext:
    """What an estimator may want to learn with: the propensities of rows, and what it is asked."""

    propensity: Any
    asked: tuple[Asked, ...]
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class JudgedSight:
    """The ranks of a chunk's labels for one model, within every pool that an estimator asks for."""

    model: str
    chunk: JudgedChunk
    views: Mapping[Pool, RankView]
    cutoffs: frozenset[tuple[Pool, int]]

    def view(self, estimator: Estimator, learned: Learned) -> RankView:
        return self.views[estimator.about.pool]

    def tallies(self) -> Tallies:
        first, labels = next(iter(self.views.values())).ranks, self.chunk.labels
        positive = relevant(labels) & first.scored[labels.user]
        counted: dict[tuple[Any, ...], Any] = {
            (self.model, "positive"): int(np.count_nonzero(positive)),
            (self.model, "never"): int(np.count_nonzero(positive & np.isinf(first.above))),
            (self.model, "tied"): int(np.count_nonzero(first.tied[positive] > 0)),
            (self.model, "unscored"): self._users(~first.scored),
        }
        for pool, cutoff in self.cutoffs:
            ranks = self.views[pool].ranks
            # the number of candidates may be unknown
            short = ranks.scored & (ranks.n_recommended < cutoff) & ~(ranks.n_recommended >= ranks.n_candidates)
            counted[self.model, "short", pool, cutoff] = self._users(short)
        return counted

    def _users(self, flag: Bools) -> ByPlace:
        """One for each of these users."""
        return ByPlace(self.chunk.unit[flag], np.ones(np.count_nonzero(flag)))


@dataclass(frozen=True, slots=True, eq=False)
class JudgedPlan:
    """A question about judged rows with all that had to be learned from the whole of them."""

    question: Question
    learned: Learned
    exposed: Exposed
    models: Mapping[str, Aligned]
    users: Ids
    n_items: float
    n_judged: int
    excluded: tuple[str, int] | None  # where exclusions come from, and how many rows they have
    ties: Ties
    record: Provenance
    said: tuple[Message, ...]  # before the counts
    scored: tuple[Message, ...]  # and after them
    segments: Mapping[str, Bools] = field(default_factory=dict)  # the items of each, of the catalogue
    description: str | None = None  # of the propensities
    threads: int = 1  # within a chunk
    block_users: int | None = None
    progress: Report | None = field(default=None, repr=False)
    unit: str = "user"
    cluster: str = "user"
    keeps_units: bool = True  # users are clusters, too

    # ---- for measure

    def answers(self, model: str) -> Sequence[int]:
        return range(len(self.question.asked))

    def learns(self, estimator: Estimator) -> bool:
        return estimator.about.weighs

    def places(self, chunk: JudgedChunk) -> Ints:
        return chunk.unit

    def n_rows(self, chunk: JudgedChunk) -> int:
        return len(chunk.labels) + chunk.dropped

    def earning(self, chunk: JudgedChunk, segment: str | None) -> JudgedChunk:
        if segment is None:
            return chunk
        labels = chunk.labels
        own = (self.segments[segment][labels.item]).astype(np.float64)
        rewards = {name: values * own for name, values in labels.rewards.items()}
        return replace(chunk, labels=replace(labels, rewards=rewards))

    def look(self, chunk: JudgedChunk, model: str) -> JudgedSight:
        pools = sorted({estimator.about.pool for estimator, _ in self.question.asked})
        aligned, report = self.models[model].of_units(chunk.unit), self.progress
        ranks = rank(
            aligned.scores,
            chunk.labels,
            pools=[chunk.pools[pool] for pool in pools],
            ties=self.ties,
            seed=self.question.seed,
            threads=self.threads,
            block_users=self.block_users,
            name=model,
            progress=None if report is None else lambda done, total: report(f"ranking {model}", done, total),
            aligned=aligned,
        )
        views = {
            pool: RankView(each, aligned.scores, model, ties=self.ties, seed=self.question.seed)
            for pool, each in zip(pools, ranks, strict=True)
        }
        return JudgedSight(model, chunk, views, self._cutoffs())

    def _cutoffs(self) -> frozenset[tuple[Pool, int]]:
        return frozenset(
            (estimator.about.pool, asked.metric.cutoff)
            for estimator, asked in self.question.asked
            if asked.metric.cutoff is not None
        )

    def counted(self, chunk: JudgedChunk) -> Tallies:
        pool = chunk.pools[Pool.CATALOGUE]
        active = pool.exclude if self.excluded is not None else chunk.pools[Pool.JUDGED].only
        counted: dict[tuple[Any, ...], Any] = {
            ("relevant",): int(np.count_nonzero(relevant(chunk.labels))),
            ("dropped",): chunk.dropped,
            ("empty",): int(np.count_nonzero(chunk.pools[Pool.JUDGED].count == 0)),
            ("excluded",): 0 if pool.exclude is None else len(pool.exclude.item),
            ("active",): ByPlace(
                chunk.unit, np.zeros(len(chunk.unit)) if active is None else active.count.astype(np.float64)
            ),
        }
        if self.exposed is not Exposed.BIASED:
            return counted
        propensity = propensity_of(chunk.labels, self.learned)
        weight = 1 / propensity
        return counted | {
            ("propensity", "weight"): float(weight.sum()),
            ("propensity", "noise"): float(((1 - propensity) * weight**2).sum()),
            ("propensity", "pairs"): float(pool.count.sum()),
        }

    # ---- for conclude

    def named(self, estimator: Estimator, asked: Asked) -> tuple[str, int | None]:
        return str(asked.metric), asked.metric.cutoff

    def assumptions(self, estimator: Estimator) -> tuple[str, ...]:
        fitted = [self.description] if self.description is not None and estimator.about.weighs else []
        return (*estimator.about.assumptions, *fitted)

    def bounds(self, estimator: Estimator, asked: Asked) -> Bounds | None:
        return bounds_of(asked.metric, n_items=math.inf if math.isnan(self.n_items) else self.n_items)

    def known(self, number: int, spread: Spread, terms: Sequence[Terms]) -> Spread:
        return judged_spread(spread, terms)

    def equal_clusters(self, cell: Cell, terms: Terms, measured: Measured) -> float:
        return equally_weighted(whole(terms))

    def evidence(self, cell: Cell, spread: Spread, measured: Measured) -> Evidence:
        return Evidence(informative=spread.informative, df=spread.df, largest=spread.largest)

    def doubts(self, cell: Cell, measured: Measured) -> tuple[Message, ...]:
        return ()

    def unseen(self, cell: Cell, measured: Measured) -> Unseen:
        return Unseen()

    def family(self, number: int) -> int:
        return number

    def effective(self, cell: Cell, terms: Terms, measured: Measured) -> float | None:
        weighting = whole(terms).weighting
        return None if weighting is None else weighting.effective

    def warnings(self, cell: Cell, terms: Terms, measured: Measured) -> tuple[Message, ...]:
        model, number = cell
        estimator, asked = self.question.asked[number]
        metric: Metric = asked.metric
        short = measured.tallies.get((model, "short", estimator.about.pool, metric.cutoff))
        listed = Listed(int(measured.tallies[model, "unscored"].sum()), 0 if short is None else int(short.sum()))
        exactly_these = self.question.interval.needs_rows
        return warnings_of(estimator, metric, terms, listed, exactly_these=exactly_these)

    def ids(self, measured: Measured) -> tuple[Any, Any]:
        users = self.users.values[measured.place]
        return users, users

    def activity(self, measured: Measured) -> Floats:
        active: ByPlace = measured.tallies["active",]
        return active.at(measured.place).value

    def order(self, number: int) -> tuple[int, ...]:
        return (number,)

    def remarks(self, measured: Measured, points: Points) -> Remarks:
        return Remarks()

    def messages(self, measured: Measured, estimates: Sequence[Estimate]) -> Sequence[Message]:
        pairs = float(measured.tallies.get(("propensity", "pairs"), math.nan))
        tallies = measured.tallies
        dropped, positives = int(tallies["dropped",]), int(tallies["relevant",])
        return [
            *about_overlap(dropped),
            *self.said,
            *([] if self.excluded is None else about_exclusions(int(tallies["excluded",]), *self.excluded)),
            *about_counts(self.users, n_items=self.n_items, judged=self.n_judged - dropped, positives=positives),
            *about_population(len(self.users), int(tallies["empty",])),
            *self.scored,
            *about_propensities(self.description, measured.tallies, pairs=pairs),
            *(
                note("refit-failed", f"no interval: without {parts:,} parts of the users {reason}")
                for reason, parts in self.learned.failures.items()
            ),
            *(message for model in self.question.models for message in about_ranks(model, measured.tallies)),
            *differing_orders(estimates),
        ]

    def provenance(self, measured: Measured, remarks: Remarks) -> Provenance:
        counts = {
            "users": len(self.users),
            "items": None if math.isnan(self.n_items) else int(self.n_items),
            "judged": self.n_judged - int(measured.tallies["dropped",]),
            "relevant": int(measured.tallies["relevant",]),
        }
        return replace(self.record, counts=counts)


def settings_of(question: Question, *, exposure: object, ties: Ties) -> dict[str, Any]:
    """The settings of an evaluation, in words that parse back."""
    return {
        "models": list(question.models),
        "exposure": str(exposure),
        "ties": ties.value,
        "interval": str(question.interval),
        "level": question.level,
        "baseline": question.baseline,
        "seed": question.seed,
    }
