"""Checks of a whole evaluation: each looks at what was measured, and reports nothing of what was not counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from truerank.core.estimator import Exposed
from truerank.core.messages import Message, message
from truerank.core.results import Estimate
from truerank.core.terms import Smooth, Terms
from truerank.estimators.assistance import AssistedMean, AssistedShare, NotAssisted
from truerank.estimators.assisted import JudgeAlone
from truerank.estimators.predictions import Assistance, Helped, used_by
from truerank.estimators.refusals import is_recall
from truerank.evaluation.counts import MeasuredCounts
from truerank.evaluation.measure import Evaluation, MeasuredEstimate
from truerank.evaluation.question import Plan, Question
from truerank.exposure.randomness.labelled import LARGE
from truerank.inference.balance import FAR, MUCH
from truerank.inference.intervals import Population, common
from truerank.inference.linearization import influences

EVEN = 0.5  # effective number of users by how many items each labelled one represents, as a share of all
MANY_TIED = 0.1
MUCH_MISSING = 0.2  # of the rows of a design, from which missing labels are more than a caution
COSTLY = 1.05  # times the variance of a difference without predictions, from which on it is reported


def check_exclusions(evaluation: Evaluation) -> Iterator[Message]:
    """Labelled rows that are excluded items, and how many exclusions have a user and an item of this evaluation."""
    counts, excluded = evaluation.measured.counts, evaluation.plan.rows.excluded
    if counts.dropped:
        yield message("overlap-dropped", rows=counts.dropped)
    if excluded is None:
        return
    source, rows = excluded
    yield message("excluded", matched=counts.excluded, rows=rows)
    if rows and not counts.excluded:
        yield message("nothing-excluded", source=source)


def check_counts(evaluation: Evaluation) -> Iterator[Message]:
    """How many users, items and positives there are, and how many users have no labelled pair."""
    counts, rows = evaluation.measured.counts, evaluation.plan.rows
    if counts.relevant is None:
        return
    n_users, without_rows = evaluation.plan.n_units, counts.without_rows - rows.judge_users
    items = "an unknown number of" if math.isnan(rows.n_items) else f"{int(rows.n_items):,}"
    yield message("matched", users=n_users, items=items, **used_counts(evaluation.plan, counts))
    if not counts.relevant:
        yield message("no-positive")
    if without_rows:
        yield message("users-without-rows", users=without_rows, of=n_users)


def check_randomness(evaluation: Evaluation) -> Iterator[Message]:
    """Whether the labelled rows look like the uniform sample that they are taken for."""
    items = evaluation.measured.counts.items
    if items is None:
        return
    test = items.finding
    if test is None:
        yield message("randomness.untestable")
        return
    key = "not-random.tested" if test.not_random else "randomness.uneven" if test.rejected else "randomness"
    yield message(key, statistic=test.statistic, df=test.df, p=test.p, effect=test.effect, large=LARGE)


def check_selected_users(evaluation: Evaluation | MeasuredEstimate) -> Iterator[Message]:
    """Users who are in the data because they have a positive label."""
    users = evaluation.measured.counts.users
    test = None if users is None else users.test()
    if test is not None and test.too_few:
        yield message("users-selected-by-label", users=test.users, expected=test.expected, p=test.p)


def check_returned(evaluation: Evaluation) -> Iterator[Message]:
    """How many pairs of a design have a label, and how the others are represented."""
    returned = evaluation.measured.counts.returned
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


def check_propensities(evaluation: Evaluation) -> Iterator[Message]:
    """What exposure is assumed, and whether it fits: Σ 1 / π over labelled rows estimates the number of pairs."""
    rows = evaluation.plan.rows
    if rows.description is not None:
        yield message("propensities", description=rows.description)
    total, pairs, z = _represented_pairs(evaluation.measured.counts)
    if abs(z) > FAR and abs(total / pairs - 1) > MUCH:
        designed = rows.exposed is Exposed.DESIGNED
        yield message(
            "propensity-scale.small" if total < pairs else "propensity-scale.large",
            stand_for=total,
            pairs=pairs,
            biased="horvitz-thompson is" if designed else "ips and doubly-robust are",
            unbiased="hajek" if designed else "snips",
            numbers={"z": z},
        )


def check_refits(evaluation: Evaluation) -> Iterator[Message]:
    """Why intervals that include the fit of a model cannot be had, and without how many groups."""
    plan, measured = evaluation.plan, evaluation.measured
    failures = {f"{plan.rows.fitted} cannot be fitted: {reason}": n for reason, n in plan.learned.failures.items()}
    for model, counts in measured.counts.models.items():
        for reason, groups in counts.unusable.items():
            failures[f"{model} cannot be weighed: {reason}"] = int(np.count_nonzero(groups))
    if not failures and plan.learned.refits:
        lost: list[tuple[str, Sequence[Terms]]] = []
        for (model, number), spread in evaluation.values.items():
            if math.isnan(spread.stderr):
                lost.append((f"{model} has no value.", [measured.terms[model, number]]))
        for ((first, second), number), spread in evaluation.differences.items():
            if math.isnan(spread.stderr):
                reason = f"{first} - {second} has no value: no {plan.unit} is left that both rank."
                lost.append((reason, common(measured.terms[first, number], measured.terms[second, number])))
        for reason, terms in lost:
            failures[reason] = max(failures.get(reason, 0), *map(_undefined, terms))
    for reason, parts in failures.items():
        if parts:
            yield message("refit-failed", parts=parts, reason=reason)


def _undefined(terms: Terms) -> int:
    """Without how many groups these have no value, although they have one with all of them."""
    if terms.n_independent() < 2 or math.isnan(terms.value()):
        return 0
    return int(np.count_nonzero(np.isnan(terms.values_without())))


def check_models(evaluation: Evaluation) -> Iterator[Message]:
    """Units that a model does not rank; rows that it never recommends or exposes, or whose score others share; lists
    with training items."""
    plan, models = evaluation.plan, evaluation.measured.counts.models
    for model, counts in models.items():
        subject: dict[str, Any] = {"model": model, "subjects": (model,)}
        unranked = 0 if counts.ranked is None else plan.n_units - counts.ranked
        unlogged = counts.unlogged + plan.rows.absent.get(model, 0)
        if unranked:
            yield message("no-ranking", **subject, units=unranked, n_units=plan.n_units, unit=plan.unit)
        if unlogged:
            yield message("unlogged-sessions", **subject, sessions=unlogged)
        if counts.unexposed:
            yield message("never-shown", **subject, rows=counts.unexposed, n_rows=plan.n_rows)
        if counts.never:
            yield message("never-recommended", **subject, never=counts.never, relevant=counts.positive)
        if counts.positive and counts.tied / counts.positive > MANY_TIED:
            numbers = {"tied": counts.tied, "relevant": counts.positive}
            yield message("tied-scores", **subject, share=counts.tied / counts.positive, numbers=numbers)
        if counts.listed_excluded:
            numbers = {"seen": counts.listed_excluded, "listed": counts.listed}
            yield message("seen-in-lists", **subject, share=counts.listed_excluded / counts.listed, numbers=numbers)


def check_clips(evaluation: Evaluation) -> Iterator[Message]:
    """Which clips were chosen, and how far that moves values."""
    for choice in evaluation.choices:
        if choice["by_rule"]:
            clip, equal = ("inf" if choice[key] is None else f"{choice[key]:g}" for key in ("clip", "smallest_equal"))
            yield message(
                "clip-chosen",
                clip=clip,
                subject=choice["of"],
                reward=choice["reward"],
                estimator=choice["estimator"],
                equal="" if equal == clip else f", but for those from {equal} on that give the same,",
                change=choice["against_largest_clip"],
            )
    for name in dict.fromkeys(choice["estimator"] for choice in evaluation.choices if not choice["by_rule"]):
        yield message("no-clip-chosen", estimator=name)


def check_orders(evaluation: Evaluation) -> Iterator[Message]:
    """Where two estimators of a metric order the models otherwise, because they have different estimands."""
    groups: dict[str, dict[str, dict[str, Estimate]]] = {}
    of_labels = evaluation.plan.rows.exposed is not Exposed.RANKED  # a reward per session is not one per view
    for estimate in evaluation.estimates if of_labels else ():
        if estimate.segment is None:
            # one name with several settings has one estimand: the first represents all
            by_model = groups.setdefault(estimate.metric, {}).setdefault(estimate.estimator, {})
            by_model.setdefault(estimate.model, estimate)
    for metric, by_estimator in groups.items():
        if len(by_estimator) == 1:
            continue
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


# --------------------------------------------------------------------------------------------------------- predictions


def check_assistance(evaluation: Evaluation) -> Iterator[Message]:
    """For each assisted metric how much of lists predictions cover, for which models they do nothing, and where they
    make a difference of models less precise."""
    plan, measured = evaluation.plan, evaluation.measured
    for number, planned in enumerate(plan.estimates):
        estimator, request = planned.estimator, planned.request
        if not isinstance(estimator, Helped):
            continue
        terms = {model: measured.terms.get((model, number)) for model in plan.models}
        assisted = {model: part.whole for model, part in terms.items() if part is not None}
        assisted = {model: part for model, part in assisted.items() if _form(part) is not None}
        kind, metric = used_by(estimator.by, plan.learned.facts.get("predictions", ())), str(request.metric)
        plain = "post-stratified" if is_recall(request.metric) else "hajek"
        words: dict[str, Any] = {"metric": metric, "predictor": kind.predictor}
        yield from _check_coverage(assisted, words, plain)
        key, models = (kind, request.metric), measured.counts.models
        balances = {model: models[model].predictions.get(key) for model in assisted}
        z = {model: balance.worst.z for model, balance in balances.items() if balance is not None}
        z = {model: value for model, value in z.items() if math.isfinite(value)}
        if z:
            by_model = _listed(z, "{:.1f} for {}")
            yield message("prediction-balance", **words, by_model=by_model, numbers=z, subjects=(metric,))
        costs = _costs(plan.question, assisted)
        if costs:
            shares = _listed(costs, "{:.2f} times for {}")
            yield message(
                "assistance-costs", metric=metric, plain=plain, shares=shares, numbers=costs, subjects=(metric,)
            )


def _form(terms: Smooth) -> AssistedMean | AssistedShare | None:
    return terms.form if isinstance(terms.form, AssistedMean | AssistedShare) else None


def _listed(values: Mapping[str, float], form: str) -> str:
    """
    >>> _listed({"a": 0.5, "b": 2.0}, "{:.1f} for {}")
    '0.5 for a, 2.0 for b'
    """
    return ", ".join(form.format(value, name) for name, value in values.items())


def _check_coverage(assisted: Mapping[str, Smooth], words: Mapping[str, Any], plain: str) -> Iterator[Message]:
    """Models of whose lists nothing, or a part, is predicted, and those that predictions do not help."""
    forms = {model: (_form(part), part.totals()) for model, part in assisted.items()}
    helps = {model: form.help(totals) for model, (form, totals) in forms.items() if form is not None}
    metric = words["metric"]
    without = [model for model, help_ in helps.items() if help_.covered == 0]
    part = {model: help_.covered for model, help_ in helps.items() if 0 < help_.covered < 1}
    if without:
        yield message("nothing-foreseen", **words, models=", ".join(without), plain=plain, subjects=(metric,))
    if part:
        shares = _listed(part, "{:.1%} for {}")
        yield message("partly-foreseen", **words, shares=shares, numbers=part, subjects=(metric,))
    for reason in NotAssisted:
        rows = {
            model: float(help_.rows)
            for model, help_ in helps.items()
            if help_.why_not is reason and model not in without
        }
        if rows:
            models = ", ".join(f"{model} ({count:,.0f} labelled pairs in lists)" for model, count in rows.items())
            subjects = (metric, reason.value)
            key = f"not-assisted.{reason.value}"
            yield message(key, **words, plain=plain, models=models, numbers=rows, subjects=subjects)


def _costs(question: Question, assisted: Mapping[str, Smooth]) -> dict[str, float]:
    """Of differences that are less precise than without predictions: how many times their variance it is.

    Slopes are those of each whole list: where two lists share most rank positions, the others may need another one.
    """
    pairs = question.pairs(list(assisted))
    # a bootstrap finds what linearisation does, for a thousand times the work
    interval = question.interval if question.interval.needs_rows else Population()
    plain: dict[str, Smooth] = {}
    for model, part in assisted.items():
        form = _form(part)
        plain |= {} if form is None else {model: replace(part, form=replace(form, fewest=math.inf))}
    with_them, without = (interval.spreads(terms, pairs, level=question.level)[1] for terms in (assisted, plain))
    shares = {
        " - ".join(pair): (with_them[pair].stderr / without[pair].stderr) ** 2
        for pair in pairs
        if without[pair].stderr > 0
    }
    return {pair: share for pair, share in shares.items() if share > COSTLY}


def check_judge(evaluation: Evaluation) -> Iterator[Message]:
    """For each metric by how much the judge alone differs from the assisted value, and whether significantly."""
    plan, terms = evaluation.plan, evaluation.measured.terms
    requests = [(number, (planned.estimator, planned.request)) for number, planned in enumerate(plan.estimates)]
    alone = {request.metric: number for number, (estimator, request) in requests if estimator == JudgeAlone()}
    for number, (estimator, request) in requests:
        assisted = isinstance(estimator, Helped) and estimator.by in (None, Assistance.JUDGE)
        if not assisted or request.metric not in alone:
            continue
        spreads = {}
        for model in plan.models:
            cells = (model, alone[request.metric]), (model, number)
            if all(cell in terms for cell in cells):
                judge, corrected = (influences(terms[cell]) for cell in cells)
                difference = judge.minus(corrected, informative=corrected.informative)
                spreads[model] = difference.spread(level=plan.question.level, difference=True)
        spreads = {model: spread for model, spread in spreads.items() if not math.isnan(spread.stderr)}
        off = [model for model, spread in spreads.items() if spread.low > 0 or spread.high < 0]
        if spreads:
            yield message(
                "judge-off.significant" if off else "judge-off",
                metric=str(request.metric),
                differences=", ".join(
                    f"{spread.value:+.4f} ({spread.low:+.4f}, {spread.high:+.4f}) for {model}"
                    for model, spread in spreads.items()
                ),
                models=", ".join(off),
                numbers={model: spread.value for model, spread in spreads.items()},
                level=plan.question.level,
                subjects=(str(request.metric),),
            )


EVALUATION_CHECKS: tuple[Callable[[Evaluation], Iterator[Message]], ...] = (
    check_exclusions,
    check_counts,
    check_randomness,
    check_selected_users,
    check_returned,
    check_propensities,
    check_models,
    check_refits,
    check_clips,
    check_orders,
    check_assistance,
    check_judge,
)


# -------------------------------------------------------------------------------------------- what the labels represent


def _represented_pairs(counts: MeasuredCounts) -> tuple[float, float, float]:
    """Σ 1 / π over rows, the number of pairs it estimates, and by how many standard errors the two differ."""
    total, noise, pairs = (0.0, 0.0, 0.0) if counts.represented is None else counts.represented.tolist()
    apart = total - pairs
    if math.isnan(pairs) or abs(apart) <= 1e-9 * pairs:
        return total, pairs, 0.0
    return total, pairs, apart / math.sqrt(noise) if noise > 0 else math.copysign(math.inf, apart)


def used_counts(plan: Plan[Any], counts: MeasuredCounts) -> dict[str, Any]:
    """How many labelled rows are used (not those that are excluded, nor those outside the design), and are relevant."""
    if counts.relevant is None:
        return {}
    unasked = 0 if counts.returned is None else counts.returned.unasked
    return {"judged": plan.n_rows - counts.dropped - unasked, "relevant": counts.relevant}


def missing_share(counts: MeasuredCounts) -> float:
    """The share of all pairs that the rows do not represent, where that is beyond sampling error; otherwise 0."""
    total, pairs, z = _represented_pairs(counts)
    return 1 - total / pairs if z < -FAR and total / pairs < 1 - MUCH else 0.0


def effective_users(counts: MeasuredCounts) -> tuple[float, float]:
    """How many users have labels, and their effective number by how many items each labelled one represents."""
    n, total, squares = (0.0, 0.0, 0.0) if counts.expansion is None else counts.expansion.tolist()
    return n, total**2 / squares if squares > 0 else 0.0


def unequal_labelling(counts: MeasuredCounts) -> bool:
    """Whether few users with few labelled items outweigh the others, whether or not they have a hit.

    By the design alone: where users with one labelled item among many had no hit by chance, the spread does not show
    how much one would have changed.
    """
    n, effective = effective_users(counts)
    return 0 < effective < EVEN * n
