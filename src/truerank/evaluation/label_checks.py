"""Checks of a whole evaluation of labelled pairs: of its input, and of what was measured, in the order of messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.estimator import Exposed
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.messages import Message, message
from truerank.core.ranking import JudgedChunk, Pool, Returned, Scores
from truerank.core.results import Estimate
from truerank.evaluation.counts import LabelCounts, ListCounts
from truerank.evaluation.measure import Measured, MeasuredEstimate
from truerank.evaluation.question import Plan
from truerank.exposure.randomness.labelled import LARGE, UserCounts
from truerank.inference.balance import FAR, MUCH
from truerank.ranking.kernel.rank import Aligned
from truerank.ranking.scores.scores import Lists

if TYPE_CHECKING:
    from truerank.evaluation.label_rows import LabelRows

LOOKED_AT = 1000  # users whose lists show whether training pairs were left out of them
FEW = 0.5  # of the users, below which ids may be those of other data
EVEN = 0.5  # effective number of users by how many items each labelled one represents, as a share of all
MANY_TIED = 0.1
MUCH_MISSING = 0.2  # of the rows of a design, from which missing labels are more than a caution


# --------------------------------------------------------------------------------------------------------------- input


def check_holdout(source: str, rows: Log) -> Iterator[Message]:
    """What a hold-out takes as relevant, and that the rest is taken as irrelevant."""
    if not rows.rewards:
        yield message("relevant-rows", source=source)
    yield message("holdout")


def check_without_exclusions(models: Mapping[str, Scores], exposed: Exposed) -> Iterator[Message]:
    """That training pairs are candidates, where none are excluded."""
    if exposed is not Exposed.FULL:
        lists = all(isinstance(scores, Lists) and scores.depth is not None for scores in models.values())
        yield message("no-exclusions.lists" if lists else "no-exclusions")


def check_scores(models: Mapping[str, Scores], users: Ids, items: Ids) -> Iterator[Message]:
    """How many users and items of the evaluation each model has scores for."""
    for name, scores in models.items():
        scored = int(np.count_nonzero(scores.users.locate(users) >= 0))
        without = int(np.count_nonzero(scores.items.locate(items) < 0)) if scores.depth is None else 0
        without_labels = len(scores.users) - scored
        yield message(
            "scored.partly" if without_labels or without else "scored",
            model=name,
            users=scored,
            of=len(users),
            without_labels=without_labels,
            items_without_score=without,
            subjects=(name,),
        )


def check_ids(models: Mapping[str, Scores], users: Ids, judged_items: Ids, *, source: str) -> Iterator[Message]:
    """Ids that hardly match: those of other data, or places in a matrix taken for ids."""
    for name, scores in models.items():
        missing = np.flatnonzero(scores.users.locate(users) < 0)
        if len(missing) > FEW * len(users):
            yield message(
                "few-users-in-common",
                model=name,
                source=source,
                users=len(users),
                missing=len(missing),
                examples=", ".join(users.texts(missing[:3])),
                model_examples=_first(scores.users),
                subjects=(name,),
            )
        if (scores.items.locate(judged_items) < 0).all():
            yield message(
                "no-item-in-common",
                model=name,
                source=source,
                examples=_first(judged_items),
                model_examples=_first(scores.items),
                subjects=(name,),
            )


def check_catalogue(models: Mapping[str, Scores], items: Ids) -> Iterator[Message]:
    """Items that are scored but no candidates, and tables that are taken as the whole catalogue."""
    for name, scores in models.items():
        outside = len(scores.items) - int(np.count_nonzero(scores.items.locate(items) >= 0))
        if outside and scores.depth is None:
            yield message("scored-outside", model=name, items=outside, subjects=(name,))
        if isinstance(scores, Lists) and scores.depth is None and scores.every_pair:
            yield message("taken-as-catalogue", model=name, n_items=len(scores.items), subjects=(name,))


def _first(ids: Ids) -> str:
    return ", ".join(ids.texts(np.arange(min(3, len(ids)))))


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


# ------------------------------------------------------------------------------------------------- what was measured


def check_exclusions(plan: Plan[LabelRows], measured: Measured) -> Iterator[Message]:
    """Labelled rows that are excluded items, and how many exclusions have a user and an item of this evaluation."""
    dropped = measured.counts.dropped
    if dropped:
        yield message("overlap-dropped", rows=dropped)
    if plan.rows.excluded is None:
        return
    source, rows = plan.rows.excluded
    matched = measured.counts.excluded
    yield message("excluded", matched=matched, rows=rows)
    if rows and not matched:
        yield message("nothing-excluded", source=source)


def check_counts(plan: Plan[LabelRows], measured: Measured) -> Iterator[Message]:
    """How many users, items and positives there are, and how many users have no labelled pair."""
    counts, n_users = measured.counts, len(plan.rows.users)
    relevant, without_rows = counts.relevant, counts.without_rows - plan.rows.judge_users
    items = "an unknown number of" if math.isnan(plan.rows.n_items) else f"{int(plan.rows.n_items):,}"
    yield message("matched", users=n_users, items=items, judged=used_rows(plan, measured), relevant=relevant)
    if not relevant:
        yield message("no-positive")
    if without_rows:
        yield message("users-without-rows", users=without_rows, of=n_users)


def check_randomness(plan: Plan[LabelRows], measured: Measured) -> Iterator[Message]:
    """Whether the labelled rows look like the uniform sample that they are taken for."""
    if measured.counts.items is None:
        return
    test = measured.counts.items.finding
    if test is None:
        yield message("randomness.untestable")
        return
    key = "not-random.tested" if test.not_random else "randomness.uneven" if test.rejected else "randomness"
    yield message(key, statistic=test.statistic, df=test.df, p=test.p, effect=test.effect, large=LARGE)


def check_selected_users(plan: Plan[LabelRows], measured: Measured) -> Iterator[Message]:
    """Users who are in the data because they have a positive label."""
    users: UserCounts | None = measured.counts.users
    test = None if users is None else users.test()
    if test is not None and test.too_few:
        yield message("users-selected-by-label", users=test.users, expected=test.expected, p=test.p)


def check_returned(plan: Plan[LabelRows], measured: Measured) -> Iterator[Message]:
    """How many pairs of a design have a label, and how the others are represented."""
    returned: Returned | None = measured.counts.returned
    if returned is None:
        return
    drawn, back = returned.drawn, returned.back
    if not back:
        yield message("nothing-returned", rows=returned.unasked, numbers={"drawn": drawn})
        return
    yield message("returned", drawn=drawn, back=back)
    if returned.unasked:
        yield message("unasked", rows=returned.unasked)
    if back < drawn:
        share = 1 - back / drawn
        key = "not-returned.much" if share > MUCH_MISSING else "not-returned"
        yield message(key, rows=drawn - back, share=share, users=returned.partial, silent=returned.silent)


def check_propensities(plan: Plan[LabelRows], measured: Measured) -> Iterator[Message]:
    """What exposure is assumed, and whether it fits: Σ 1 / π over labelled rows estimates the number of pairs."""
    if plan.rows.description is None:
        return
    yield message("propensities", description=plan.rows.description)
    total, pairs, z = _represented_pairs(measured.counts)
    if abs(z) > FAR and abs(total / pairs - 1) > MUCH:
        designed = plan.rows.exposed is Exposed.DESIGNED
        yield message(
            "propensity-scale.small" if total < pairs else "propensity-scale.large",
            stand_for=total,
            pairs=pairs,
            biased="horvitz-thompson is" if designed else "ips and doubly-robust are",
            unbiased="hajek" if designed else "snips",
            numbers={"z": z},
        )


def check_ranks(plan: Plan[LabelRows], measured: Measured) -> Iterator[Message]:
    """Why fitted models have no interval (without some parts of the users they cannot be fitted); relevant items that a
    model never recommends, or whose score others share; lists with training items."""
    for reason, parts in plan.learned.failures.items():
        yield message("refit-failed", parts=parts, reason=reason)
    for model, counts in measured.counts.models.items():
        relevant, never, tied = counts.positive, counts.never, counts.tied
        if never:
            yield message("never-recommended", model=model, never=never, relevant=relevant, subjects=(model,))
        if relevant and tied / relevant > MANY_TIED:
            numbers = {"tied": tied, "relevant": relevant}
            yield message("tied-scores", model=model, share=tied / relevant, numbers=numbers, subjects=(model,))
    for model, counts in measured.counts.models.items():
        listed, seen = counts.listed, counts.listed_excluded
        if seen:
            numbers = {"seen": seen, "listed": listed}
            yield message("seen-in-lists", model=model, share=seen / listed, numbers=numbers, subjects=(model,))


EVALUATION_CHECKS: tuple[Callable[[Plan[LabelRows], Measured], Iterator[Message]], ...] = (
    check_exclusions,
    check_counts,
    check_randomness,
    check_selected_users,
    check_returned,
    check_propensities,
    check_ranks,
)


def check_orders(estimates: Sequence[Estimate]) -> Iterator[Message]:
    """Where two estimators of a metric order the models otherwise, because they have different estimands."""
    groups: dict[str, dict[str, dict[str, Estimate]]] = {}
    for estimate in estimates:
        if estimate.segment is None:
            # one name with several settings has one estimand: the first represents all
            by_model = groups.setdefault(estimate.metric, {}).setdefault(estimate.estimator, {})
            by_model.setdefault(estimate.model, estimate)
    for metric, by_estimator in groups.items():
        orders = {
            name: (" > ".join(sorted(models, key=lambda model: -models[model].value)), next(iter(models.values())))
            for name, models in by_estimator.items()
            if not any(math.isnan(estimate.value) for estimate in models.values())
        }
        for (first, (first_order, left)), (second, (second_order, right)) in combinations(orders.items(), 2):
            if left.estimand != right.estimand and first_order != second_order:
                order: dict[str, Any] = {"first_order": first_order, "second_order": second_order}
                subjects = (metric, first, second)
                yield message("orders-differ", metric=metric, first=first, second=second, subjects=subjects, **order)


def _represented_pairs(counts: LabelCounts) -> tuple[float, float, float]:
    """Σ 1 / π over rows, the number of pairs it estimates, and by how many standard errors the two differ."""
    total, noise, pairs = (0.0, 0.0, 0.0) if counts.represented is None else counts.represented.tolist()
    apart = total - pairs
    if math.isnan(pairs) or abs(apart) <= 1e-9 * pairs:
        return total, pairs, 0.0
    return total, pairs, apart / math.sqrt(noise) if noise > 0 else math.copysign(math.inf, apart)


def list_counts(estimate: MeasuredEstimate) -> ListCounts:
    """What was counted of the lists that an estimate rests on."""
    lists: ListCounts = estimate.counts.lists[estimate.info.pool, estimate.request.metric]
    return lists if estimate.info.stands else replace(lists, balance=None, weights=None)


def used_rows(plan: Plan[LabelRows], measured: Measured) -> int:
    """How many labelled rows are used: not those that are excluded, nor those outside the design."""
    counts: LabelCounts = measured.counts
    returned = counts.returned
    return plan.n_rows - counts.dropped - (0 if returned is None else returned.unasked)


def missing_share(counts: LabelCounts) -> float:
    """The share of all pairs that the rows do not represent, where that is beyond sampling error; otherwise 0."""
    total, pairs, z = _represented_pairs(counts)
    return 1 - total / pairs if z < -FAR and total / pairs < 1 - MUCH else 0.0


def expansions(judged: Ints, candidates: Floats) -> Floats:
    """How many users have a labelled item, Σ N / N-bar and Σ (N / N-bar)² over them; those of other users add.

    >>> expansions(np.array([10, 5, 0]), np.array([20.0, 20.0, 20.0])).tolist()
    [2.0, 6.0, 20.0]
    """
    used = judged > 0
    weights = candidates[used] / judged[used]
    return np.array([float(np.count_nonzero(used)), weights.sum(), (weights**2).sum()])


def effective_users(counts: LabelCounts) -> tuple[float, float]:
    """How many users have labels, and their effective number by how many items each labelled one represents."""
    n, total, squares = (0.0, 0.0, 0.0) if counts.expansion is None else counts.expansion.tolist()
    return n, total**2 / squares if squares > 0 else 0.0


def unequal_labelling(counts: LabelCounts) -> bool:
    """Whether few users with few labelled items outweigh the others, whether or not they have a hit.

    By the design alone: where users with one labelled item among many had no hit by chance, the spread does not show
    how much one would have changed.
    """
    n, effective = effective_users(counts)
    return 0 < effective < EVEN * n
