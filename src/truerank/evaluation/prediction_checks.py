"""Checks of values that predictions assist: how much these cover and change, and how far a judge alone is off."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from truerank.core.estimator import Learned
from truerank.core.messages import Message, message
from truerank.core.terms import Smooth
from truerank.estimators.assistance import AssistedMean, AssistedShare, Help, NotAssisted
from truerank.estimators.assisted import JudgeAlone
from truerank.estimators.listed_predictions import PredictionBalance
from truerank.estimators.predictions import Assistance, Helped, used_by
from truerank.estimators.refusals import is_recall
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Cell, Question
from truerank.inference.intervals import Population
from truerank.inference.linearization import Spread, influences

COSTLY = 1.05  # times the variance of a difference without predictions, from which on it is reported
PREDICTOR = {Assistance.JUDGE: "the judge", Assistance.SCORES: "the scores that assist", Assistance.LOG: "the log"}


def check_assistance(question: Question, measured: Measured, kinds: Collection[Assistance]) -> Iterator[Message]:
    """For each assisted metric how much of lists predictions cover, for which models they do nothing, and where they
    make a difference of models less precise. `kinds` are the predictions at hand."""
    for number, (estimator, request) in enumerate(question.asked):
        if not isinstance(estimator, Helped):
            continue
        wholes = {
            model: measured.terms[model, number].whole for model in question.models if (model, number) in measured.terms
        }
        wholes = {
            model: whole for model, whole in wholes.items() if isinstance(whole.form, AssistedMean | AssistedShare)
        }
        kind, metric = used_by(estimator.by, kinds), str(request.metric)
        plain = "post-stratified" if is_recall(request.metric) else "hajek"
        help_by_model = {model: _help(whole) for model, whole in wholes.items()}
        yield from _check_coverage(metric, PREDICTOR[kind], help_by_model, plain=plain)
        balances = {model: measured.tallies.get((model, "predictions", kind, request.metric)) for model in wholes}
        z = {model: balance.worst.z for model, balance in balances.items() if balance is not None}
        z = {model: value for model, value in z.items() if math.isfinite(value)}
        if z:
            yield message(
                "prediction-balance",
                metric=metric,
                predictor=PREDICTOR[kind],
                by_model=_listed(z, "{:.1f} for {}"),
                numbers=z,
                about=(metric,),
            )
        costs = _costs(question, wholes)
        if costs:
            shares = _listed(costs, "{:.2f} times for {}")
            yield message("assistance-costs", metric=metric, plain=plain, shares=shares, numbers=costs, about=(metric,))


def _help(whole: Smooth) -> Help:
    assert isinstance(whole.form, AssistedMean | AssistedShare)
    return whole.form.help(whole.totals())


def _listed(values: Mapping[str, float], form: str) -> str:
    """
    >>> _listed({"a": 0.5, "b": 2.0}, "{:.1f} for {}")
    '0.5 for a, 2.0 for b'
    """
    return ", ".join(form.format(value, name) for name, value in values.items())


def _check_coverage(metric: str, predictor: str, help_by_model: Mapping[str, Help], *, plain: str) -> Iterator[Message]:
    """Models of whose lists nothing, or a part, is predicted, and those that predictions do not help."""
    without = [model for model, assisted in help_by_model.items() if assisted.covered == 0]
    part = {model: assisted.covered for model, assisted in help_by_model.items() if 0 < assisted.covered < 1}
    if without:
        yield message(
            "nothing-foreseen",
            metric=metric,
            predictor=predictor,
            models=", ".join(without),
            plain=plain,
            about=(metric,),
        )
    if part:
        shares = _listed(part, "{:.1%} for {}")
        yield message(
            "partly-foreseen", metric=metric, predictor=predictor, shares=shares, numbers=part, about=(metric,)
        )
    for reason in NotAssisted:
        rows = {
            model: float(assisted.rows)
            for model, assisted in help_by_model.items()
            if assisted.why_not is reason and model not in without
        }
        if rows:
            yield message(
                f"not-assisted.{reason.value}",
                metric=metric,
                predictor=predictor,
                plain=plain,
                models=", ".join(f"{model} ({count:,.0f} labelled pairs in lists)" for model, count in rows.items()),
                numbers=rows,
                about=(metric, reason.value),
            )


def _costs(question: Question, wholes: Mapping[str, Smooth]) -> dict[str, float]:
    """Of differences that are less precise than without predictions: how many times their variance it is.

    Slopes are those of each whole list: where two lists share most rank positions, the others may need another one.
    """
    pairs = question.pairs(list(wholes))
    # a bootstrap finds what linearisation does, for a thousand times the work
    interval = question.interval if question.interval.needs_rows else Population()
    plain = {model: _plain(whole) for model, whole in wholes.items()}
    with_them, without = (interval.spreads(terms, pairs, level=question.level)[1] for terms in (wholes, plain))
    shares = {
        f"{model} - {baseline}": (with_them[model, baseline].stderr / without[model, baseline].stderr) ** 2
        for model, baseline in pairs
        if without[model, baseline].stderr > 0
    }
    return {pair: share for pair, share in shares.items() if share > COSTLY}


def _plain(terms: Smooth) -> Smooth:
    assert isinstance(terms.form, AssistedMean | AssistedShare)
    return replace(terms, form=replace(terms.form, fewest=math.inf))


def predictions_behind(
    cell: Cell, question: Question, measured: Measured, learned: Learned
) -> PredictionBalance | None:
    """Whether labelled rows have the predictions of the lists behind an estimate; None where it is not assisted."""
    model, number = cell
    estimator, request = question.asked[number]
    if not isinstance(estimator, Helped):
        return None
    kind = used_by(estimator.by, learned.facts.get("predictions", ()))
    balance: PredictionBalance | None = measured.tallies.get((model, "predictions", kind, request.metric))
    return balance


def check_judge(question: Question, measured: Measured) -> Iterator[Message]:
    """For each metric by how much the judge alone differs from the assisted value, and whether significantly."""
    requests = list(enumerate(question.asked))
    alone = {request.metric: number for number, (estimator, request) in requests if estimator == JudgeAlone()}
    for number, (estimator, request) in requests:
        assisted = isinstance(estimator, Helped) and estimator.by in (None, Assistance.JUDGE)
        if not assisted or request.metric not in alone:
            continue
        cells = {model: ((model, alone[request.metric]), (model, number)) for model in question.models}
        spreads = {
            model: _difference(measured, *both, level=question.level)
            for model, both in cells.items()
            if both[0] in measured.terms and both[1] in measured.terms
        }
        spreads = {model: spread for model, spread in spreads.items() if not math.isnan(spread.stderr)}
        if not spreads:
            continue
        off = [model for model, spread in spreads.items() if spread.low > 0 or spread.high < 0]
        yield message(
            "judge-off.significant" if off else "judge-off",
            metric=str(request.metric),
            differences=", ".join(
                f"{spread.value:+.4f} ({spread.low:+.4f}, {spread.high:+.4f}) for {model}"
                for model, spread in spreads.items()
            ),
            models=", ".join(off),
            numbers={model: spread.value for model, spread in spreads.items()},
            level=question.level,
            about=(str(request.metric),),
        )


def _difference(measured: Measured, alone: Cell, assisted: Cell, *, level: float) -> Spread:
    """The judge alone minus the assisted value, over the same users."""
    judge, corrected = (influences(measured.terms[cell]) for cell in (alone, assisted))
    if math.isnan(judge.value) or math.isnan(corrected.value):
        return Spread.unknown(math.nan)
    return judge.minus(corrected, informative=corrected.informative).spread(level=level, difference=True)
