"""The plan of an evaluation on judged rows: how each model looks at labels, what is counted, what is said."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, equal_parts
from truerank.core.estimator import Asked, Clipping, Estimator, Exposed, Learned
from truerank.core.ids import Ids
from truerank.core.messages import Message
from truerank.core.metric import Additive, OfCounts, is_directed
from truerank.core.progress import Progress
from truerank.core.provenance import Provenance
from truerank.core.ranking import JudgedChunk, Pool, RankView, Returned, Ties
from truerank.core.results import Estimate, Evidence
from truerank.core.terms import Terms
from truerank.estimators.refusals import is_recall
from truerank.estimators.rows import DESIGNED, UNIFORM, propensity_of
from truerank.evaluation.estimate_checks import (
    ESTIMATE_CHECKS,
    VERDICT_CHECKS,
    LabelEstimate,
    hit_pairs,
    rests_on_all_pairs,
)
from truerank.evaluation.label_checks import EVALUATION_CHECKS, check_orders, expansions, missing_share, seen_items
from truerank.evaluation.label_source import EVERY_LABEL
from truerank.evaluation.label_views import BalanceOf, JudgedSight
from truerank.evaluation.measure import ByPlace, Measured
from truerank.evaluation.prediction_checks import check_assistance, check_judge
from truerank.evaluation.question import Cell, Points, Question, Remarks, Tallies, run_checks
from truerank.exposure.randomness.labelled import JudgedItems, UserCounts
from truerank.inference.balance import Balance, designed_balance, uniform_balance, weighted_balance
from truerank.inference.linearization import Bounds, Spread, equally_weighted, spread_from_labels
from truerank.inference.verdicts import UnseenExposure
from truerank.metrics.worth import bounds_of, relevant
from truerank.ranking.kernel.rank import Aligned, rank

MOST_ROWS = 5_000_000  # judged rows of all models and questions, of which what they add is kept


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
    input_messages: tuple[Message, ...]
    segments: Mapping[str, Bools] = field(default_factory=dict)  # the items of each, of the catalogue
    judge_users: int = 0  # who have labels of the judge alone
    description: str | None = None  # of the propensities
    threads: int = 1  # within a chunk
    block_users: int | None = None
    progress: Progress | None = field(default=None, repr=False)
    unit: str = "user"
    cluster: str = "user"
    keeps_units: bool = True  # users are clusters, too

    @property
    def keeps_rows(self) -> bool:
        """Of uniform draws also for what more of them would show, as long as they are few."""
        n = self.n_judged * len(self.models) * len(self.question.asked)
        return self.question.interval.needs_rows or (self.exposed is Exposed.RANDOM and n <= MOST_ROWS)

    # ---- for measure

    def answers(self, model: str) -> Sequence[int]:
        return range(len(self.question.asked))

    def learns(self, estimator: Estimator) -> bool:
        return estimator.about.weighs

    def places(self, chunk: JudgedChunk) -> Ints:
        return chunk.unit

    def n_rows(self, chunk: JudgedChunk) -> int:
        return len(chunk.labels) + chunk.dropped + (0 if chunk.returned is None else chunk.returned.unasked)

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
            n_models=len(self.models),
        )
        views = {
            pool: RankView(each, aligned.scores, model, ties=self.ties, seed=self.question.seed)
            for pool, each in zip(pools, ranks, strict=True)
        }
        return JudgedSight(model, chunk, views, self._cutoffs(), self._checked(), self._balance(chunk))

    def _checked(self) -> tuple[tuple[Pool, Additive], ...]:
        """The lists that rows must stand for; of shared ranks (the strict rule) the worth of a list is not known."""
        if self.exposed in EVERY_LABEL or self.ties is Ties.STRICT:
            return ()
        found = {
            (estimator.about.pool, asked.metric): None
            for estimator, asked in self.question.asked
            if estimator.about.stands and isinstance(asked.metric, Additive)
        }
        return tuple(found)

    def _balance(self, chunk: JudgedChunk) -> BalanceOf | None:
        """How rows were drawn, and so what each stands for."""
        if not self._checked():
            return None
        if self.exposed is Exposed.RANDOM:
            return partial(uniform_balance, rate=self.learned.facts.get("rate"))
        if self.exposed is Exposed.DESIGNED:
            return designed_balance
        learner = self.learned.facts.get("propensity")
        propensity = propensity_of(chunk.labels, self.learned)
        return partial(weighted_balance, propensity=propensity, relative=learner is not None and learner.refitted)

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
            **seen_items(self.models, chunk),
            ("active",): ByPlace(
                chunk.unit, np.zeros(len(chunk.unit)) if active is None else active.count.astype(np.float64)
            ),
        }
        if self.exposed is Exposed.RANDOM:
            judged = np.bincount(chunk.labels.unit, minlength=chunk.labels.n_units)
            return counted | {
                ("items",): JudgedItems.of(chunk),
                ("users",): UserCounts.of_chunk(chunk, relevant(chunk.labels)),
                ("expansion",): expansions(judged, pool.count),
            }
        if self.exposed in EVERY_LABEL:
            return counted
        answered = np.ones(chunk.labels.n_units, dtype=bool)
        if self.exposed is Exposed.DESIGNED:
            answered = np.bincount(chunk.labels.unit, minlength=len(answered)) > 0
            counted |= {} if chunk.returned is None else {("returned",): chunk.returned}
        propensity = self._propensity(chunk)
        weight = 1 / propensity
        return counted | {
            ("propensity", "weight"): float(weight.sum()),
            ("propensity", "noise"): float((np.maximum(1 - propensity, 0.0) * weight**2).sum()),
            ("propensity", "pairs"): float(pool.count[answered].sum()),
        }

    def _propensity(self, chunk: JudgedChunk) -> Floats:
        """The chance of each row: of a design what its rows carry by now, otherwise given or fitted."""
        known = chunk.labels.propensity if self.exposed is Exposed.DESIGNED else None
        return propensity_of(chunk.labels, self.learned) if known is None else known

    # ---- for conclude

    def named(self, estimator: Estimator, asked: Asked) -> tuple[str, int | None]:
        return str(asked.metric), asked.metric.cutoff

    def directed(self, estimator: Estimator, asked: Asked) -> bool:
        return is_directed(asked.metric)

    def assumptions(self, estimator: Estimator) -> tuple[str, ...]:
        if self.exposed is Exposed.DESIGNED:
            return tuple(DESIGNED if each == UNIFORM else each for each in estimator.about.assumptions)
        fitted = [self.description] if self.description is not None and estimator.about.weighs else []
        return (*estimator.about.assumptions, *fitted)

    def bounds(self, estimator: Estimator, asked: Asked) -> Bounds:
        return bounds_of(asked.metric, n_items=math.inf if math.isnan(self.n_items) else self.n_items)

    def known(self, number: int, spread: Spread, terms: Sequence[Terms]) -> Spread:
        blind = any(hit_pairs(part) == 0 for part in terms)
        return spread.without_interval() if blind else spread_from_labels(spread, terms)

    def equal_clusters(self, cell: Cell, terms: Terms, measured: Measured) -> float:
        """By what the denominator holds, or for means by the judged part of each user's list (Hájek's denominator)."""
        if isinstance(self.question.asked[cell[1]][1].metric, OfCounts) or hit_pairs(terms) == 0:
            return 0.0  # no mean of clusters
        if terms.whole.exact:  # every label is known: all of each list was judged
            return float(terms.n_independent())
        parts = self.list_weights(cell, measured)
        return equally_weighted(terms.whole) or (0.0 if parts is None else equal_parts(parts.value))

    def evidence(self, cell: Cell, spread: Spread, measured: Measured) -> Evidence:
        balance: Balance | None = self.of_list("balance", cell, measured)
        checked = balance is not None and balance.checkable
        return Evidence(
            informative=spread.informative,
            df=spread.df,
            largest=spread.largest,
            balance=balance.share if balance is not None and checked else None,
            balance_z=balance.z if balance is not None and checked else None,
            lost=self._lost(cell, measured),
        )

    def doubts(self, cell: Cell, measured: Measured) -> tuple[Message, ...]:
        if self.question.asked[cell[1]][0].about.of_lists:
            return ()  # whatever the judged rows are
        return run_checks(VERDICT_CHECKS, LabelEstimate(self, cell, measured))

    def unseen(self, cell: Cell, terms: Terms, measured: Measured) -> UnseenExposure:
        """Weight that a clip took away, and what heavy rows that were not drawn would have stood for."""
        estimator, asked = self.question.asked[cell[1]]
        missing = missing_share(measured.tallies) if rests_on_all_pairs(estimator, asked.metric) else 0.0
        share = min(missing + (self._lost(cell, measured) or 0.0), 1.0)
        if share == 0:
            return UnseenExposure()
        highest = self.bounds(estimator, asked)[1]
        # a sum of weighted labels can only grow with more weight, what corrects a model goes either way
        if estimator.about.clipping is Clipping.CHOSEN and not is_recall(asked.metric):
            return UnseenExposure(share, share * highest, fall=share * highest if estimator.about.predicts else 0.0)
        # of a ratio that share of its denominator is unseen: all of it hits, or misses
        value = measured.terms[cell].value()
        return UnseenExposure(share, share * (highest - value), fall=share * value)

    def list_weights(self, cell: Cell, measured: Measured) -> ByPlace | None:
        """Σ w / π of the labelled rows in each user's list, whatever their label; None where every label is known."""
        weights: ByPlace | None = self.of_list("stand-for", cell, measured)
        return weights

    def of_list(self, what: str, cell: Cell, measured: Measured) -> Any:
        """What was tallied of the lists behind an estimate, None where it does not rest on them."""
        model, number = cell
        estimator, asked = self.question.asked[number]
        about = estimator.about
        return measured.tallies.get((model, what, about.pool, asked.metric)) if about.stands else None

    def expands(self, estimator: Estimator) -> bool:
        """Whether a judged item stands for as many more as its user has candidates for each judged one."""
        population = not self.question.interval.needs_rows
        return population and estimator.about.needs_size and self.learned.facts.get("rate") is None

    def _lost(self, cell: Cell, measured: Measured) -> float | None:
        """The share of weight that a clip took away, None without one."""
        estimator, asked = self.question.asked[cell[1]]
        if estimator.about.clipping is Clipping.NONE or math.isinf(asked.clip):
            return None
        weighting = measured.terms[cell].whole.weighting
        return None if weighting is None or math.isnan(weighting.lost) else weighting.lost

    def family(self, number: int) -> int:
        return number

    def effective(self, cell: Cell, terms: Terms, measured: Measured) -> float | None:
        weighting = terms.whole.weighting
        return None if weighting is None else weighting.effective

    def warnings(self, cell: Cell, terms: Terms, measured: Measured) -> tuple[Message, ...]:
        return run_checks(ESTIMATE_CHECKS, LabelEstimate(self, cell, measured))

    def ids(self, measured: Measured) -> tuple[Any, Any]:
        users = self.users.values[measured.place]
        return users, users

    def activity(self, measured: Measured) -> Floats:
        active: ByPlace = measured.tallies["active",]
        return active.at(measured.place).value

    def order(self, number: int) -> tuple[int, ...]:
        return (number,)

    def remarks(self, measured: Measured, points: Points) -> Remarks:
        assisted = check_assistance(self.question, measured, self.learned.facts.get("predictions", ()))
        return Remarks(messages=(*assisted, *check_judge(self.question, measured)))

    def messages(self, measured: Measured, estimates: Sequence[Estimate]) -> Sequence[Message]:
        return (*self.input_messages, *run_checks(EVALUATION_CHECKS, self, measured), *check_orders(estimates))

    def used_rows(self, measured: Measured) -> int:
        """How many labelled rows are used: not those that are excluded, nor those outside the design."""
        returned: Returned | None = measured.tallies.get(("returned",))
        return self.n_judged - int(measured.tallies["dropped",]) - (0 if returned is None else returned.unasked)

    def provenance(self, measured: Measured, remarks: Remarks) -> Provenance:
        counts = {
            "users": len(self.users),
            "items": None if math.isnan(self.n_items) else int(self.n_items),
            "judged": self.used_rows(measured),
            "relevant": int(measured.tallies["relevant",]),
        }
        return replace(self.record, counts=counts)
