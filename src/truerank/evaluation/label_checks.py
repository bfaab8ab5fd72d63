"""Checks of a whole evaluation of labelled pairs: small functions of what was measured, in the order of messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.estimator import Exposed
from truerank.core.messages import Message, message
from truerank.core.ranking import Returned
from truerank.core.results import Estimate
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Tallies
from truerank.exposure.randomness.labelled import LARGE, JudgedItems, UserCounts
from truerank.inference.balance import FAR, MUCH

if TYPE_CHECKING:
    from truerank.evaluation.label_rows import JudgedPlan

EVEN = 0.5  # effective number of users by how many items each labelled one represents, as a share of all
MANY_TIED = 0.1
MUCH_MISSING = 0.2  # of the rows of a design, from which missing labels are more than a caution


def check_overlap(plan: JudgedPlan, measured: Measured) -> Iterator[Message]:
    """Labelled rows that are excluded items."""
    rows = int(measured.tallies["dropped",])
    if rows:
        yield message("overlap-dropped", rows=rows)


def check_exclusions(plan: JudgedPlan, measured: Measured) -> Iterator[Message]:
    """How many exclusions have a user and an item of this evaluation."""
    if plan.excluded is None:
        return
    source, rows = plan.excluded
    matched = int(measured.tallies["excluded",])
    yield message("excluded", matched=matched, rows=rows)
    if rows and not matched:
        yield message("nothing-excluded", source=source)


def check_counts(plan: JudgedPlan, measured: Measured) -> Iterator[Message]:
    """How many users, items and positives there are, and how many users have no labelled pair."""
    tallies, n_users = measured.tallies, len(plan.users)
    relevant, without_rows = int(tallies["relevant",]), int(tallies["empty",]) - plan.judge_users
    items = "an unknown number of" if math.isnan(plan.n_items) else f"{int(plan.n_items):,}"
    yield message("matched", users=n_users, items=items, judged=plan.used_rows(measured), relevant=relevant)
    if not relevant:
        yield message("no-positive")
    if without_rows:
        yield message("users-without-rows", users=without_rows, of=n_users)


def check_randomness(plan: JudgedPlan, measured: Measured) -> Iterator[Message]:
    """Whether the labelled rows look like the uniform sample that they are taken for."""
    items: JudgedItems | None = measured.tallies.get(("items",))
    if items is None:
        return
    test = items.finding
    if test is None:
        yield message("randomness.untestable")
        return
    key = "not-random.tested" if test.not_random else "randomness.uneven" if test.rejected else "randomness"
    yield message(key, statistic=test.statistic, df=test.df, p=test.p, effect=test.effect, large=LARGE)


def check_selected_users(plan: JudgedPlan, measured: Measured) -> Iterator[Message]:
    """Users who are in the data because they have a positive label."""
    counts: UserCounts | None = measured.tallies.get(("users",))
    test = None if counts is None else counts.test()
    if test is not None and test.too_few:
        yield message("users-selected-by-label", users=test.users, expected=test.expected, p=test.p)


def check_returned(plan: JudgedPlan, measured: Measured) -> Iterator[Message]:
    """How many pairs of a design have a label, and how the others are represented."""
    returned: Returned | None = measured.tallies.get(("returned",))
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


def check_propensities(plan: JudgedPlan, measured: Measured) -> Iterator[Message]:
    """What exposure is assumed, and whether it fits: Σ 1 / π over labelled rows estimates the number of pairs."""
    if plan.description is None:
        return
    yield message("propensities", description=plan.description)
    total, pairs, z = _represented_pairs(measured.tallies)
    if abs(z) > FAR and abs(total / pairs - 1) > MUCH:
        designed = plan.exposed is Exposed.DESIGNED
        yield message(
            "propensity-scale.small" if total < pairs else "propensity-scale.large",
            stand_for=total,
            pairs=pairs,
            biased="horvitz-thompson is" if designed else "ips and doubly-robust are",
            unbiased="hajek" if designed else "snips",
            numbers={"z": z},
        )


def check_refits(plan: JudgedPlan, measured: Measured) -> Iterator[Message]:
    """Why fitted models have no interval: without some parts of the users they cannot be fitted."""
    for reason, parts in plan.learned.failures.items():
        yield message("refit-failed", parts=parts, reason=reason)


def check_ranks(plan: JudgedPlan, measured: Measured) -> Iterator[Message]:
    """Relevant items that a model never recommends, or whose score others share; lists with training items."""
    tallies, models = measured.tallies, plan.question.models
    for model in models:
        relevant, never, tied = (int(tallies.get((model, what), 0)) for what in ("positive", "never", "tied"))
        if never:
            yield message("never-recommended", model=model, never=never, relevant=relevant, about=(model,))
        if relevant and tied / relevant > MANY_TIED:
            share = tied / relevant
            numbers = {"tied": tied, "relevant": relevant}
            yield message("tied-scores", model=model, share=share, numbers=numbers, about=(model,))
    for model in models:
        listed, seen = (int(tallies.get((model, what), 0)) for what in ("listed", "seen"))
        if seen:
            numbers = {"seen": seen, "listed": listed}
            yield message("seen-in-lists", model=model, share=seen / listed, numbers=numbers, about=(model,))


EVALUATION_CHECKS: tuple[Callable[[JudgedPlan, Measured], Iterator[Message]], ...] = (
    check_overlap,
    check_exclusions,
    check_counts,
    check_randomness,
    check_selected_users,
    check_returned,
    check_propensities,
    check_refits,
    check_ranks,
)


def check_orders(estimates: Sequence[Estimate]) -> Iterator[Message]:
    """Where two estimators of a metric order the models otherwise, because they have different estimands."""
    groups: dict[str, dict[str, dict[str, Estimate]]] = {}
    for estimate in estimates:
        if estimate.segment is None:
            # one name with several settings has one estimand: the first represents all
            groups.setdefault(estimate.metric, {}).setdefault(estimate.estimator, {}).setdefault(
                estimate.model, estimate
            )
    for metric, by_estimator in groups.items():
        orders = {
            name: " > ".join(sorted(models, key=lambda model: -models[model].value))
            for name, models in by_estimator.items()
            if not any(math.isnan(estimate.value) for estimate in models.values())
        }
        estimands = {name: next(iter(models.values())).estimand for name, models in by_estimator.items()}
        for first, second in combinations(orders, 2):
            if estimands[first] != estimands[second] and orders[first] != orders[second]:
                yield message(
                    "orders-differ",
                    metric=metric,
                    first=first,
                    first_order=orders[first],
                    second=second,
                    second_order=orders[second],
                    about=(metric, first, second),
                )


def _represented_pairs(tallies: Tallies) -> tuple[float, float, float]:
    """Σ 1 / π over rows, the number of pairs it estimates, and by how many standard errors the two differ."""
    total, noise, pairs = (float(tallies.get(("propensity", what), 0.0)) for what in ("weight", "noise", "pairs"))
    apart = total - pairs
    if math.isnan(pairs) or abs(apart) <= 1e-9 * pairs:
        return total, pairs, 0.0
    return total, pairs, apart / math.sqrt(noise) if noise > 0 else math.copysign(math.inf, apart)


def missing_share(tallies: Tallies) -> float:
    """The share of all pairs that the rows do not represent, where that is beyond sampling error; otherwise 0."""
    total, pairs, z = _represented_pairs(tallies)
    return 1 - total / pairs if z < -FAR and total / pairs < 1 - MUCH else 0.0


def expansions(judged: Ints, candidates: Floats) -> Floats:
    """How many users have a labelled item, Σ N / N-bar and Σ (N / N-bar)² over them; those of other users add.

    >>> expansions(np.array([10, 5, 0]), np.array([20.0, 20.0, 20.0])).tolist()
    [2.0, 6.0, 20.0]
    """
    used = judged > 0
    weights = candidates[used] / judged[used]
    return np.array([float(np.count_nonzero(used)), weights.sum(), (weights**2).sum()])


def effective_users(tallies: Tallies) -> tuple[float, float]:
    """How many users have labels, and their effective number by how many items each labelled one represents."""
    n, total, squares = tallies.get(("expansion",), np.zeros(3)).tolist()
    return n, total**2 / squares if squares > 0 else 0.0


def unequal_labelling(tallies: Tallies) -> bool:
    """Whether few users with few labelled items outweigh the others, whether or not they have a hit.

    By the design alone: where users with one labelled item among many had no hit by chance, the spread does not show
    how much one would have changed.
    """
    n, effective = effective_users(tallies)
    return 0 < effective < EVEN * n
