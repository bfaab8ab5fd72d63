"""Checks of values that predictions assist: how much these cover and change, and how far a judge alone is off."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from truerank.core.messages import Message, message
from truerank.core.terms import Smooth
from truerank.estimators.assistance import AssistedMean, AssistedShare, NotAssisted
from truerank.estimators.assisted import JudgeAlone
from truerank.estimators.listed_predictions import PredictionBalance
from truerank.estimators.predictions import Assistance, Helped, used_by
from truerank.estimators.refusals import is_recall
from truerank.evaluation.measure import Measured, MeasuredEstimate
from truerank.evaluation.question import Plan, Question
from truerank.inference.intervals import Population
from truerank.inference.linearization import influences

COSTLY = 1.05  # times the variance of a difference without predictions, from which on it is reported
PREDICTOR = {Assistance.JUDGE: "the judge", Assistance.SCORES: "the scores that assist", Assistance.LOG: "the log"}


def check_assistance(plan: Plan[Any], measured: Measured, kinds: Collection[Assistance]) -> Iterator[Message]:
    """For each assisted metric how much of lists predictions cover, for which models they do nothing, and where they
    make a difference of models less precise. `kinds` are the predictions at hand."""
    for number, planned in enumerate(plan.estimates):
        estimator, request = planned.estimator, planned.request
        if not isinstance(estimator, Helped):
            continue
        terms = {model: measured.terms.get((model, number)) for model in plan.models}
        assisted = {model: part.whole for model, part in terms.items() if part is not None}
        assisted = {model: part for model, part in assisted.items() if _form(part) is not None}
        kind, metric = used_by(estimator.by, kinds), str(request.metric)
        plain = "post-stratified" if is_recall(request.metric) else "hajek"
        words: dict[str, Any] = {"metric": metric, "predictor": PREDICTOR[kind]}
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


def predictions_behind(estimate: MeasuredEstimate) -> PredictionBalance | None:
    """Whether labelled rows have the predictions of the lists behind an estimate; None where it is not assisted."""
    if not isinstance(estimate.estimator, Helped):
        return None
    kind = used_by(estimate.estimator.by, estimate.plan.learned.facts.get("predictions", ()))
    balance: PredictionBalance | None = estimate.counts.predictions.get((kind, estimate.request.metric))
    return balance


def check_judge(plan: Plan[Any], measured: Measured) -> Iterator[Message]:
    """For each metric by how much the judge alone differs from the assisted value, and whether significantly."""
    requests = [(number, (planned.estimator, planned.request)) for number, planned in enumerate(plan.estimates)]
    alone = {request.metric: number for number, (estimator, request) in requests if estimator == JudgeAlone()}
    for number, (estimator, request) in requests:
        assisted = isinstance(estimator, Helped) and estimator.by in (None, Assistance.JUDGE)
        if not assisted or request.metric not in alone:
            continue
        spreads = {}
        for model in plan.models:
            cells = (model, alone[request.metric]), (model, number)
            if all(cell in measured.terms for cell in cells):
                judge, corrected = (influences(measured.terms[cell]) for cell in cells)
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
