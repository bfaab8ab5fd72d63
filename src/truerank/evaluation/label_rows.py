"""How labels become rows: the rank of each labelled item under each model, what is counted, what values rest on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import Bools, Floats, equal_parts
from truerank.core.estimator import Clipping, Exposed
from truerank.core.metric import Additive, Metric, OfCounts
from truerank.core.progress import Progress
from truerank.core.ranking import JudgedChunk, Pool, Ranks, RankView, Ties, TopLists
from truerank.core.record import record
from truerank.engines.engine import Chunked
from truerank.estimators.listed_predictions import PredictionBalance
from truerank.estimators.refusals import is_recall
from truerank.estimators.rows import propensity_of
from truerank.evaluation.counts import ListCounts, MeasuredCounts, ModelCounts, by_place, expansions
from truerank.evaluation.estimate_checks import hit_pairs, rests_on_all_pairs
from truerank.evaluation.evaluation_checks import missing_share
from truerank.evaluation.label_source import EVERY_LABEL
from truerank.evaluation.measure import MeasuredEstimate
from truerank.evaluation.question import Basis, Plan, RowMaker
from truerank.exposure.randomness.labelled import LabelledItems, UserCounts
from truerank.inference.balance import Balance, designed_balance, uniform_balance, weighted_balance
from truerank.inference.linearization import equally_weighted
from truerank.inference.verdicts import UnseenExposure
from truerank.metrics.discounts import bounds_of, relevant
from truerank.ranking.kernel.rank import Aligned, UnitSide, rank
from truerank.ranking.scores.scores import Lists

LOOKED_AT = 1000  # users whose lists show whether training pairs were left out of them

BalanceOf = Callable[[JudgedChunk, Ranks, Additive], tuple[Balance, Floats]]


@record(kw_only=True, eq=False)
class LabelRows(RowMaker):
    """How labels were collected, and how models rank them.

    `excluded` is where exclusions come from, and how many rows they have; `segments` are the items of each in the
    catalogue; `judge_users` have labels of the judge alone; `description` is of the propensities.
    """

    fitted: ClassVar[str] = "propensities"

    exposed: Exposed
    n_items: float
    ties: Ties
    excluded: tuple[str, int] | None = None
    segments: Mapping[str, Bools] = field(default_factory=dict)
    judge_users: int = 0
    description: str | None = None
    threads: int = 1  # within a chunk
    block_users: int | None = None
    progress: Progress | None = field(default=None, repr=False)

    # ---- for measure

    def views(self, plan: Plan[LabelRows], chunk: JudgedChunk) -> dict[str, dict[Pool, RankView]]:
        pools = sorted({planned.estimator.info.pool for planned in plan.estimates})
        options: dict[str, Any] = {"ties": self.ties, "seed": plan.question.seed}
        views = {}
        for model in plan.models:
            aligned = chunk.models[model].of_units(chunk.unit)
            ranks = rank(
                aligned,
                chunk.labels,
                pools=[chunk.pools[pool] for pool in pools],
                threads=self.threads,
                block_users=self.block_users,
                name=model,
                progress=None if self.progress is None else partial(self.progress, f"ranking {model}"),
                n_models=len(plan.models),
                **options,
            )
            views[model] = {
                pool: RankView(of_pool, aligned.scores, model, **options)
                for pool, of_pool in zip(pools, ranks, strict=True)
            }
        return views

    def within(self, chunk: JudgedChunk, segment: str) -> JudgedChunk:
        labels = chunk.labels
        members = self.segments[segment][labels.item].astype(np.float64)
        rewards = {name: values * members for name, values in labels.rewards.items()}
        return replace(chunk, labels=replace(labels, rewards=rewards))

    def count(self, plan: Plan[LabelRows], chunk: JudgedChunk) -> MeasuredCounts:
        pool, labels = chunk.pools[Pool.CATALOGUE], chunk.labels
        active = pool.exclude if self.excluded is not None else chunk.pools[Pool.JUDGED].only
        counts = MeasuredCounts(
            relevant=int(np.count_nonzero(relevant(labels))),
            dropped=chunk.dropped,
            without_rows=int(np.count_nonzero(chunk.pools[Pool.JUDGED].count == 0)),
            excluded=0 if pool.exclude is None else len(pool.exclude.item),
            active=by_place(chunk.unit, 0.0 if active is None else active.count),
        )
        labelled = np.bincount(labels.unit, minlength=labels.n_units)
        if self.exposed is Exposed.RANDOM:
            users = UserCounts.from_chunk(chunk, relevant(labels))
            return replace(
                counts, items=LabelledItems.from_chunk(chunk), users=users, expansion=expansions(labelled, pool.count)
            )
        if self.exposed in EVERY_LABEL:
            return counts
        designed = self.exposed is Exposed.DESIGNED  # rows carry their inclusion probabilities
        answered = labelled > 0 if designed else np.ones(labels.n_units, dtype=bool)
        propensity = labels.propensity if designed else None
        if propensity is None:
            propensity = propensity_of(labels, plan.learned)
        weight = 1 / propensity
        noise = np.maximum(1 - propensity, 0.0) * weight**2
        represented = np.array([weight.sum(), noise.sum(), pool.count[answered].sum()])
        return replace(counts, represented=represented, returned=chunk.returned if designed else None)

    def count_model(
        self, plan: Plan[LabelRows], chunk: JudgedChunk, model: str, views: Mapping[Pool, RankView]
    ) -> ModelCounts:
        first, labels = next(iter(views.values())).ranks, chunk.labels
        positive = relevant(labels) & first.scored[labels.user]
        listed, excluded = excluded_in_lists(chunk.models[model], chunk)
        checked = self._checked_lists(plan)
        balance = self._balance(plan, chunk) if checked else designed_balance
        lists: dict[tuple[Pool, Metric], ListCounts] = {}
        for planned in plan.estimates:
            pool, metric = key = planned.estimator.info.pool, planned.request.metric
            if key not in lists:
                lists[key] = _count_lists(chunk, views[pool], metric.cutoff)
            if key in checked and lists[key].balance is None:
                of_list, weights = balance(chunk, views[pool].ranks, metric)
                held = by_place(chunk.unit[weights > 0], weights[weights > 0])
                lists[key] = replace(lists[key], balance=of_list, weights=held)
        return ModelCounts(
            positive=int(np.count_nonzero(positive)),
            never=int(np.count_nonzero(positive & np.isinf(first.above))),
            tied=int(np.count_nonzero(first.tied[positive] > 0)),
            unscored=by_place(chunk.unit[~first.scored]),
            listed=listed,
            listed_excluded=excluded,
            lists=lists,
            predictions={
                (predicted.kind, predicted.metric): predicted
                for view in views.values()
                for predicted in view.listed.values()
                if isinstance(predicted, PredictionBalance)
            },
        )

    def _checked_lists(self, plan: Plan[LabelRows]) -> list[tuple[Pool, Additive]]:
        """The lists that rows must represent; of shared ranks (the strict rule) the discount of a list is not known."""
        if self.exposed in EVERY_LABEL or self.ties is Ties.STRICT:
            return []
        requests = ((planned.estimator.info, planned.request.metric) for planned in plan.estimates)
        return list(
            dict.fromkeys(
                (info.pool, metric) for info, metric in requests if info.stands and isinstance(metric, Additive)
            )
        )

    def _balance(self, plan: Plan[LabelRows], chunk: JudgedChunk) -> BalanceOf:
        """How rows were drawn, and so what each represents."""
        if self.exposed is Exposed.RANDOM:
            return partial(uniform_balance, rate=plan.learned.facts.get("rate"))
        if self.exposed is Exposed.DESIGNED:
            return designed_balance
        learner = plan.learned.facts.get("propensity")
        propensity = propensity_of(chunk.labels, plan.learned)
        return partial(weighted_balance, propensity=propensity, relative=learner is not None and learner.refitted)

    # ---- for conclude

    def equal_clusters(self, estimate: MeasuredEstimate) -> float:
        """By the denominator, or for means by the labelled part of each user's list (Hájek's denominator)."""
        terms = estimate.terms
        if isinstance(estimate.request.metric, OfCounts) or hit_pairs(terms) == 0:
            return 0.0  # no mean of clusters
        if terms.whole.exact:  # every label is known
            return float(terms.n_independent())
        parts = estimate.lists.weights
        return equally_weighted(terms.whole) or (0.0 if parts is None else equal_parts(parts.value))

    def basis(self, estimate: MeasuredEstimate) -> Basis:
        info, request, weights = estimate.info, estimate.request, estimate.sums.weighting
        clips = info.clipping is not Clipping.NONE and not math.isinf(request.clip)
        lost = weights.lost if clips and weights is not None and not math.isnan(weights.lost) else None
        effective = None if weights is None else weights.effective
        # weight that a clip took away, and what heavy rows that were not drawn would have represented
        missing = missing_share(estimate.measured.counts) if rests_on_all_pairs(estimate) else 0.0
        share = min(missing + (lost or 0.0), 1.0)
        if share <= 0:
            return Basis(lost, effective=effective)
        highest = bounds_of(request.metric, n_items=math.inf if math.isnan(self.n_items) else self.n_items)[1]
        # a sum of weighted labels can only grow with more weight, what corrects a model goes either way
        if info.clipping is Clipping.CHOSEN and not is_recall(request.metric):
            unseen = UnseenExposure(share, share * highest, fall=share * highest if info.predicts else 0.0)
        else:  # of a ratio that share of its denominator is unseen: all of it hits, or misses
            value = estimate.terms.value()
            unseen = UnseenExposure(share, share * (highest - value), fall=share * value)
        return Basis(lost, effective=effective, unseen=unseen)


def _count_lists(chunk: JudgedChunk, view: RankView, cutoff: int | None) -> ListCounts:
    """Users with a list that ends before the cut-off, although it could go on, or there among equal scores."""
    if cutoff is None:
        return ListCounts()
    ranks = view.ranks
    # the number of candidates may be unknown
    short = ranks.scored & (ranks.n_recommended < cutoff) & ~(ranks.n_recommended >= ranks.n_candidates)
    tops = [lists for lists in view.listed.values() if isinstance(lists, TopLists)]
    split = by_place(chunk.unit[tops[-1].top(cutoff).split]) if tops else None
    return ListCounts(by_place(chunk.unit[short]), split)


def excluded_in_lists(model: Aligned, chunk: JudgedChunk) -> tuple[int, int]:
    """How many items the first users' lists hold, and how many of these are excluded."""
    exclude, lists = chunk.pools[Pool.CATALOGUE].exclude, model.scores
    listed = excluded = 0
    if exclude is None or not isinstance(lists, Lists) or lists.depth is None or model.column is not None:
        return listed, excluded
    row = model.of_units(chunk.unit).row
    for user in np.flatnonzero((chunk.unit < LOOKED_AT) & (row >= 0)):
        items = lists.item[lists.start[row[user]] : lists.start[row[user] + 1]]
        listed += len(items)
        excluded += int(np.isin(items, exclude.item[exclude.start[user] : exclude.start[user + 1]]).sum())
    return listed, excluded


# ------------------------------------------------------------------------------------------------------ other processes


def with_scores(source: Chunked[JudgedChunk], models: Mapping[str, Aligned]) -> Chunked[JudgedChunk]:
    """Chunks of labelled rows, with the scores of their users.

    Factors and rows of scores of all users may be many times what a worker has memory for: what belongs to all users,
    such as item factors, travels once to each process; what belongs to a user travels with the chunk of the user.
    Threads of this process have all scores anyway.
    """

    def part(at: int, *, same_disk: bool) -> tuple[Any, dict[str, UnitSide]]:
        rows = source.part(at, same_disk=same_disk)
        unit = rows.unit if isinstance(rows, JudgedChunk) else rows[0][0]
        return rows, {name: model.side(unit) for name, model in models.items()}

    read = partial(_read_scored, source.read, {name: model.shared() for name, model in models.items()})
    return Chunked(source.n_rows, lambda at: replace(source.chunk(at), models=models), part, read, source.notes)


def _read_scored(
    read: Callable[[Any], JudgedChunk], models: Mapping[str, Aligned], part: tuple[Any, Mapping[str, UnitSide]]
) -> JudgedChunk:
    """A chunk, with what models say of its users put to what they say of all."""
    rows, sides = part
    return replace(read(rows), models={name: model.with_side(sides[name]) for name, model in models.items()})
