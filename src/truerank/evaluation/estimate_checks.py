"""Checks of one estimate: what to know of it, and what takes verdicts away from it; nothing of what was not counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from truerank.core.arrays import exact_sum
from truerank.core.estimator import Clipping, Exposed
from truerank.core.log import Logged
from truerank.core.messages import Message, message
from truerank.core.ranking import Pool
from truerank.core.terms import Terms
from truerank.estimators.listed_predictions import FAR, PredictionBalance
from truerank.estimators.predictions import Helped, used_by
from truerank.estimators.ratios import PairRatio
from truerank.estimators.refusals import is_recall
from truerank.evaluation.evaluation_checks import (
    check_selected_users,
    effective_users,
    missing_share,
    unequal_labelling,
)
from truerank.evaluation.measure import MeasuredEstimate
from truerank.exposure.randomness.labelled import LARGE
from truerank.inference.balance import FEWEST_ROWS, quiet_weights
from truerank.inference.linearization import shows_no_spread
from truerank.inference.tails import check_rewards, check_tails, check_unequal
from truerank.inference.verdicts import MUCH_LOST
from truerank.inference.weights import check_unseen
from truerank.metrics.discounts import Pairwise, bounds_of

Check = Callable[[MeasuredEstimate], Iterator[Message]]

FEW_PAIRS = 5  # users with two labelled hits in their list, below which the interval of AP is rough
FEW_UNITS = 10  # below which intervals of labelled users are rough; between 10 and 30 they covered 97 % of truths
FEW_CLUSTERS = 30  # of impressions
FEW_PAYING = 20
FEW_HITS = 10
MANY_LEFT_OUT = 0.01
FEW_EFFECTIVE = 100
LARGE_SHARE = 0.05
BEYOND = 1e-9  # rounding


def hit_pairs(terms: Terms) -> int | None:
    """How many users have two labelled hits in their list; None where that does not matter, or labels are full."""
    whole = terms.whole
    if whole.exact or not isinstance(whole.form, PairRatio):
        return None
    return whole.form.users_with_pair(whole.totals())


def predictions_behind(estimate: MeasuredEstimate) -> PredictionBalance | None:
    """Whether labelled rows have the predictions of the lists behind an estimate; None where it is not assisted."""
    if not isinstance(estimate.estimator, Helped):
        return None
    kind = used_by(estimate.estimator.by, estimate.plan.learned.facts.get("predictions", ()))
    return estimate.counts.predictions.get((kind, estimate.request.metric))


def rests_on_all_pairs(estimate: MeasuredEstimate) -> bool:
    """Whether a value is off where rows do not represent all pairs. Assisted sums are not: they have the level of the
    labelled rows of lists, and whether these represent the lists is checked."""
    helped = isinstance(estimate.estimator, Helped)
    return estimate.info.needs_scale and (is_recall(estimate.request.metric) or not helped)


# ------------------------------------------------------------------------------------------------------------- all data


def check_units(estimate: MeasuredEstimate) -> Iterator[Message]:
    """Units that are excluded from a value, and estimators that are for comparison alone."""
    info, n = estimate.info, estimate.n_units
    unscored = 0 if estimate.counts.unscored is None else int(estimate.counts.unscored.sum())
    excluded = n - unscored - estimate.n_defined
    if unscored:
        yield message("no-scores", users=unscored, of=n)
    if excluded > estimate.planned.few_left_out * n and estimate.planned.left_out:
        yield message("left-out", units=excluded, of=n, unit=estimate.plan.unit, reason=estimate.planned.left_out)
    if info.pool is Pool.JUDGED and not isinstance(estimate.request.metric, Pairwise):
        yield message("judged-only", metric=estimate.request.metric)
    elif info.pool is Pool.JUDGED and excluded > MANY_LEFT_OUT * n:
        yield message("lacking-classes", users=excluded, of=n)
    if info.caution:
        yield message("for-comparison", reason=info.caution)


def check_lists(estimate: MeasuredEstimate) -> Iterator[Message]:
    """Lists that end among equal scores, or before the cut-off."""
    info, lists, n = estimate.info, estimate.lists, estimate.n_units
    cut, short = (0 if users is None else int(users.sum()) for users in (lists.split_ties, lists.short))
    if cut and info.of_lists:
        yield message("tie-cut", users=cut, of=n)
    if short:
        key = "short-lists.whole" if info.of_lists else "short-lists"
        yield message(key, users=short, of=n, cutoff=estimate.request.metric.cutoff)


def check_lists_represented(estimate: MeasuredEstimate) -> Iterator[Message]:
    """Labelled rows that may not represent the lists, or all pairs, or weigh more than the interval shows."""
    plan, balance, counts = estimate.plan, estimate.lists.balance, estimate.measured.counts
    info, request = estimate.info, estimate.request
    if balance is not None and np.isnan(balance.total):
        yield message("balance-unchecked", numbers={"rows": balance.rows})
    yield from estimate.terms.cautions()
    weighted = {Exposed.BIASED: info.weighs, Exposed.DESIGNED: not info.of_lists}
    if balance is not None and weighted.get(plan.rows.exposed, False) and np.isinf(request.clip):
        implied, error = quiet_weights(balance, estimate.sums, recall=is_recall(request.metric))
        if implied:
            yield message("quiet-weights", implied=implied, ratio=implied / error, numbers={"error": error})
    # a labelled item represents as many more as its user has candidates for each labelled one
    population = not plan.question.interval.needs_rows
    expands = population and info.needs_size and plan.learned.facts.get("rate") is None
    if expands and unequal_labelling(counts):
        users, effective = effective_users(counts)
        yield message("unequal-judging", users=users, equal=effective)
    n_users = hit_pairs(estimate.terms)
    if n_users is not None and 0 < n_users < FEW_PAIRS:
        yield message("few-hit-pairs", users=n_users, fewest=FEW_PAIRS)
    predictions = predictions_behind(estimate)
    if predictions is not None and predictions.repeats_labels:
        rows = int(predictions.labelled[0] + predictions.labelled[1])
        yield message("predictions-repeat-labels", predictor=predictions.kind.predictor, rows=rows)
    share = missing_share(counts)
    if share and rests_on_all_pairs(estimate):
        yield message("heavy-rows-missing", share=share)


# --------------------------------------------------------------------------------------------------------------- labels


def check_row_weights(estimate: MeasuredEstimate) -> Iterator[Message]:
    """Unequal weights: a few heavy rows decide, and clipped ones bias; and a value that the metric cannot have."""
    weights, request = estimate.sums.weighting, estimate.request
    if weights is not None and weights.rows:
        if weights.effective < FEW_EFFECTIVE:
            yield message("few-effective-rows", rows=weights.rows, effective=weights.effective)
        if weights.largest > LARGE_SHARE:
            clips = estimate.info.clipping is not Clipping.NONE
            yield message("heavy-row.clip" if clips else "heavy-row", share=weights.largest)
        if weights.lost > MUCH_LOST:
            yield message("much-clipped", lost=weights.lost, clip=request.clip, much=MUCH_LOST)
        elif weights.lost > 0:
            yield message("clipped", lost=weights.lost, clip=request.clip)
    if estimate.planned.bounds is None:
        return
    value, (low, high) = estimate.sums.value(), bounds_of(request.metric)
    if value < low - BEYOND or value > high + BEYOND:
        yield message("outside-bounds", metric=request.metric, low=low, high=high, numbers={"value": value})


def check_hits(estimate: MeasuredEstimate) -> Iterator[Message]:
    """What an interval of a value from labels rests on."""
    if estimate.of_impressions:
        return
    terms, sums = estimate.terms, estimate.sums
    population = not estimate.plan.question.interval.needs_rows
    counted = bool(np.isnan(terms.unit_values()).all())  # a function of all lists: no user has a value
    if counted and population and terms.n_independent() >= 2 and not np.any(terms.influence()):
        yield message("no-single-item")
    numerator, denominator = sums.sums[:, 0], sums.sums[:, 1]
    if sums.n_defined == 0:
        yield message("nothing-defined")
    elif exact_sum(np.ascontiguousarray(denominator)) <= 0:
        yield message("nothing-to-divide-by")
    elif not np.any(numerator) and not sums.exact:
        yield message("no-hit")
    elif population and sums.n_defined == 1:
        yield message("single-user")
    elif population:
        if sums.n_defined < FEW_UNITS:
            yield message("few-users", users=sums.n_defined)
        contributing = numerator[sums.defined & (denominator != 0)]
        if shows_no_spread(sums):
            yield message("no-spread")
        elif not counted and (contributing == contributing[0]).all():
            yield message("same-value")
        hits = int(np.count_nonzero(numerator))
        if sums.n_defined >= FEW_UNITS and hits < FEW_HITS and not sums.exact:
            yield message("few-hits", users=hits)
    if population and not sums.exact:
        yield from check_unequal(sums, cluster="user")


# ---------------------------------------------------------------------------------------------------------- impressions


def check_earned(estimate: MeasuredEstimate) -> Iterator[Message]:
    """How many clusters of impressions have a reward, and whether a few of them carry the value."""
    if not estimate.of_impressions:
        return
    terms, sums, cluster = estimate.terms, estimate.sums, estimate.plan.cluster
    paying = int(np.count_nonzero(sums.clusters.sums(np.abs(sums.sums[:, 0]))))
    if not paying:
        yield message("no-reward")
    elif paying < FEW_PAYING:
        yield message("few-rewards", units=paying, cluster=cluster)
    used = terms.clusters.has(terms.defined)
    n_used, strata = int(np.count_nonzero(used)), terms.strata
    linear = estimate.plan.question.interval.refits
    if n_used == 1:
        yield message("no-interval.single", cluster=cluster)
    elif linear and strata is not None and (np.bincount(strata[used]) == 1).any():
        yield message("no-interval.stratum", cluster=cluster)
    elif 0 < n_used < FEW_CLUSTERS:
        yield message("few-units", units=n_used, cluster=cluster)
    yield from check_tails(sums, cluster=cluster)
    yield from check_rewards(estimate.measured.counts.rewards.get(estimate.request.reward))


def check_view_weights(estimate: MeasuredEstimate) -> Iterator[Message]:
    """Weights of impressions that make a value unreliable, and the bounds of what the log cannot show."""
    info, request = estimate.info, estimate.request
    if estimate.of_impressions and info.clipping is not Clipping.NONE:
        facts = estimate.plan.rows.facts
        kind = "viewed rows" if facts.logged is Logged.VIEWED else "displayed rows"
        yield from estimate.weights.check(request.clip, kind=kind, beyond=info.beyond)
        basis = estimate.plan.rows.basis(estimate)
        yield from check_unseen(estimate.terms.value(), basis.unseen, facts.between(request.reward))


ESTIMATE_CHECKS: tuple[Check, ...] = (
    check_units,
    check_row_weights,
    check_view_weights,
    check_hits,
    check_earned,
    check_lists,
    check_lists_represented,
)


# ----------------------------------------------------------------------------------------------- what forbids a verdict


def check_balance(estimate: MeasuredEstimate) -> Iterator[Message]:
    """Labelled rows that do not represent a list, or are fewer than a value can rest on.

    Under uniform draws the number is the expected one, so that the rule does not depend on where rows fell; with
    propensities it is the observed one. Where every place is labelled, nothing is estimated and there is no such rule.
    """
    balance, model = estimate.lists.balance, estimate.model
    if balance is not None and balance.failed:
        yield message("unbalanced", model=model, share=balance.share, z=balance.z, subjects=(model,))
    if balance is not None and balance.variance > 0 and balance.rows < FEWEST_ROWS:
        yield message("few-list-rows", rows=balance.rows, fewest=FEWEST_ROWS)


def check_predictions(estimate: MeasuredEstimate) -> Iterator[Message]:
    """Labelled rows with other predictions than the lists that they represent; AP without a pair of hits."""
    model, balance = estimate.model, predictions_behind(estimate)
    if balance is not None and balance.failed:
        worst = balance.worst
        yield message(
            "predictions-unbalanced",
            predictor=balance.kind.predictor,
            model=model,
            labelled=worst.sampled_mean,
            lists=worst.mean,
            z=worst.z,
            far=FAR,
            subjects=(model,),
        )
    if hit_pairs(estimate.terms) == 0:
        yield message("no-hit-pairs")


def check_sample(estimate: MeasuredEstimate) -> Iterator[Message]:
    """Labelled rows that plainly are no uniform sample, users selected by their labels, and a fitted model's doubts."""
    items = estimate.measured.counts.items
    test = None if items is None else items.finding
    if test is not None and test.not_random:
        yield message("not-random", effect=test.effect, large=LARGE, numbers={"p": test.p})
    yield from check_selected_users(estimate)
    yield from estimate.terms.reasons(estimate.model)


VERDICT_CHECKS: tuple[Check, ...] = (check_balance, check_predictions, check_sample)
