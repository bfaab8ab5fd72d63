"""What predictions did for the values that they assist, and how far a judge alone is off."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from truerank.core.estimator import Learned
from truerank.core.messages import Message, caution, note, warning
from truerank.core.terms import Smooth
from truerank.estimators.assistance import AssistedMean, AssistedShare, Help, NotAssisted
from truerank.estimators.judge_alone import JudgeAlone
from truerank.estimators.prediction_balance import FAR, PredictionBalance
from truerank.estimators.predictions import Assistance, Helped, used_by
from truerank.estimators.refusals import is_recall
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Cell, Question
from truerank.uncertainty.intervals import Population
from truerank.uncertainty.spreads import Spread, influences

COSTLY = 1.05  # times the variance of a difference without predictions, from which on it is said
WHY_NOT = {
    NotAssisted.FEW_ROWS: "fewer than assisted(fewest=...), 30 by default, or for recall as few beside the lists",
    NotAssisted.ALIKE: "the predictions of these rows are all alike, or nothing else is predicted",
    NotAssisted.NO_SLOPE: "their labels do not go with the predictions beyond sampling error",
}
WHO = {Assistance.JUDGE: "the judge", Assistance.SCORES: "the scores that assist", Assistance.LOG: "the log"}


def about_assistance(question: Question, measured: Measured, given: Collection[Assistance]) -> tuple[Message, ...]:
    """For each assisted metric how much of lists predictions cover, for which models they do nothing, and where they
    make a difference of models less sure."""
    messages: list[Message] = []
    for number, (estimator, asked) in enumerate(question.asked):
        if not isinstance(estimator, Helped):
            continue
        found: dict[str, Help] = {}
        wholes: dict[str, Smooth] = {}
        for model in question.models:
            terms = measured.terms.get((model, number))
            whole = None if terms is None else terms.whole
            if whole is not None and isinstance(whole.form, AssistedMean | AssistedShare):
                found[model] = whole.form.help(whole.totals())
                wholes[model] = whole
        by = used_by(estimator.by, given)
        plain = "post-stratified" if is_recall(asked.metric) else "hajek"
        messages += _helped(str(asked.metric), WHO[by], found, plain=plain)
        balances = {model: measured.tallies.get((model, "predictions", by, asked.metric)) for model in found}
        messages += _balanced(str(asked.metric), WHO[by], {model: each for model, each in balances.items() if each})
        messages += _costly(str(asked.metric), _costs(question, wholes), plain=plain)
    return tuple(messages)


def _costs(question: Question, wholes: Mapping[str, Smooth]) -> dict[str, float]:
    """Of differences that are known worse than without predictions: how many times their variance it is."""
    pairs = question.pairs(list(wholes))
    # a bootstrap finds what linearisation does, for a thousand times the work
    interval = question.interval if question.interval.needs_rows else Population()
    plain = {model: _plain(whole) for model, whole in wholes.items()}
    with_them, without = (interval.spreads(each, pairs, level=question.level)[1] for each in (wholes, plain))
    found = {
        f"{one} - {other}": (with_them[one, other].stderr / without[one, other].stderr) ** 2
        for one, other in pairs
        if without[one, other].stderr > 0
    }
    return {pair: share for pair, share in found.items() if share > COSTLY}


def _plain(terms: Smooth) -> Smooth:
    assert isinstance(terms.form, AssistedMean | AssistedShare)
    return replace(terms, form=replace(terms.form, fewest=math.inf))


def _costly(metric: str, costs: dict[str, float], *, plain: str) -> list[Message]:
    """Slopes are those of each whole list: where two lists share most places, the others may go by another one."""
    if not costs:
        return []
    shares = ", ".join(f"{share:.2f} times for {pair}" for pair, share in costs.items())
    return [
        caution(
            "assistance-costs",
            f"{metric}: differences are known worse with assisted than with {plain}, whose variance it has {shares}: "
            f"predictions do not fit the places in which these lists differ. Compare them by {plain}.",
            numbers=costs,
            about=(metric,),
        )
    ]


def _helped(metric: str, who: str, found: dict[str, Help], *, plain: str) -> list[Message]:
    if not found:
        return []
    unknown = [model for model, each in found.items() if each.covered == 0]
    alone = {model: each for model, each in found.items() if each.why_not is not None and model not in unknown}
    part = {model: each.covered for model, each in found.items() if 0 < each.covered < 1}
    messages = []
    if unknown:
        messages.append(
            warning(
                "nothing-foreseen",
                f"{metric}: {who} says nothing of any place in the lists of {', '.join(unknown)}, so that assisted is "
                f"{plain} there: check the ids of users and items.",
                about=(metric,),
            )
        )
    if part:
        shares = ", ".join(f"{share:.1%} for {model}" for model, share in part.items())
        messages.append(
            note(
                "partly-foreseen",
                f"{metric}: {who} says something of a part of the places of lists: {shares}; the others are taken to "
                "be like these.",
                numbers=part,
                about=(metric,),
            )
        )
    for why, reason in WHY_NOT.items():
        models = {model: float(each.rows) for model, each in alone.items() if each.why_not is why}
        if models:
            rows = ", ".join(f"{model} ({count:,.0f} labelled rows in lists)" for model, count in models.items())
            sentence = f"{metric}: assisted takes nothing from {who} and equals {plain} for {rows}: {reason}."
            messages.append(note("not-assisted", sentence, numbers=models, about=(metric, why.value)))
    return messages


def _balanced(metric: str, who: str, balances: Mapping[str, PredictionBalance]) -> list[Message]:
    """How far the predictions of labelled rows are from those of the lists."""
    z = {model: balance.worst.z for model, balance in balances.items() if math.isfinite(balance.worst.z)}
    if not z:
        return []
    parts = ", ".join(f"{each:.1f} for {model}" for model, each in z.items())
    sentence = f"{metric}: labelled pairs against the lists, by what {who} predicts: z = {parts}."
    return [note("prediction-balance", sentence, numbers=z, about=(metric,))]


def _predictions_behind(
    cell: Cell, question: Question, measured: Measured, learned: Learned
) -> PredictionBalance | None:
    """Whether labelled rows have the predictions of the lists behind an estimate; None where it is not assisted."""
    model, number = cell
    estimator, asked = question.asked[number]
    if not isinstance(estimator, Helped):
        return None
    by = used_by(estimator.by, learned.facts.get("predictions", ()))
    balance: PredictionBalance | None = measured.tallies.get((model, "predictions", by, asked.metric))
    return balance


def unbalanced_predictions(cell: Cell, question: Question, measured: Measured, learned: Learned) -> tuple[Message, ...]:
    """What takes verdicts away: labelled rows with other predictions than the lists that they represent."""
    model, balance = cell[0], _predictions_behind(cell, question, measured, learned)
    if balance is None or not balance.failed:
        return ()
    worst = balance.worst
    numbers = {"z": worst.z, "labelled": worst.sampled_mean, "lists": worst.mean}
    return (
        warning(
            "predictions-unbalanced",
            f"{WHO[balance.kind]} predicts {worst.sampled_mean:.3g} on average for labelled pairs of {model}, and "
            f"{worst.mean:.3g} for all pairs that these represent (z {worst.z:.1f}, above {FAR:g}): the predictions "
            "contain the labels or were fitted on them, or labelled pairs were not sampled as stated. Use predictions "
            "that were made without the labels",
            numbers=numbers,
            about=(model,),
        ),
    )


def repeated_labels(cell: Cell, question: Question, measured: Measured, learned: Learned) -> tuple[Message, ...]:
    """That a judge agrees with every label: a perfect one, or one that contains the labels."""
    balance = _predictions_behind(cell, question, measured, learned)
    if balance is None or not balance.repeats_labels:
        return ()
    n_rows = int(balance.labelled[0] + balance.labelled[1])
    sentence = (
        f"{WHO[balance.kind]} agrees with all {n_rows:,} labels: check that it does not contain them. If it does, its "
        "errors elsewhere are not corrected, and the interval is too narrow"
    )
    return (caution("predictions-repeat-labels", sentence, numbers={"rows": n_rows}),)


def about_judge_users(n_added: int, n_users: int) -> list[Message]:
    """Users who count although only the judge has labelled something of theirs."""
    if not n_added:
        return []
    return [
        caution(
            "judge-only-users",
            f"{n_added:,} of {n_users:,} users have labels of the judge only. assisted and judge-alone include them: "
            "assisted assumes that the judge is as right for them as for the others.",
            numbers={"users": n_added},
        )
    ]


def about_judge(question: Question, measured: Measured) -> tuple[Message, ...]:
    """For each metric, by how much the judge alone differs from what labels make of it, and whether beyond chance."""
    alone = {asked.metric: number for number, (each, asked) in enumerate(question.asked) if each == JudgeAlone()}
    messages: list[Message] = []
    for number, (estimator, asked) in enumerate(question.asked):
        helped = isinstance(estimator, Helped) and estimator.by in (None, Assistance.JUDGE)
        if not helped or asked.metric not in alone:
            continue
        cells = {model: ((model, alone[asked.metric]), (model, number)) for model in question.models}
        apart = {
            model: _apart(measured, *both, level=question.level)
            for model, both in cells.items()
            if both[0] in measured.terms and both[1] in measured.terms
        }
        messages += _said(str(asked.metric), apart, level=question.level)
    return tuple(messages)


def _apart(measured: Measured, alone: tuple[str, int], assisted: tuple[str, int], *, level: float) -> Spread:
    """The judge alone minus what labels make of it, over the same users."""
    judge, corrected = (influences(measured.terms[cell]) for cell in (alone, assisted))
    if math.isnan(judge.value) or math.isnan(corrected.value):
        return Spread.unknown(math.nan)
    return judge.minus(corrected, informative=corrected.informative).spread(level=level, difference=True)


def _said(metric: str, apart: dict[str, Spread], *, level: float) -> list[Message]:
    known = {model: spread for model, spread in apart.items() if not math.isnan(spread.stderr)}
    if not known:
        return []
    parts = [
        f"{model} by {spread.value:+.4f} ({spread.low:+.4f} to {spread.high:+.4f})" for model, spread in known.items()
    ]
    off = [model for model, spread in known.items() if spread.low > 0 or spread.high < 0]
    numbers = {model: spread.value for model, spread in known.items()}
    sentence = f"{metric}: the judge alone is off from assisted, for {', '.join(parts)}, {level:.0%} intervals; "
    if off:
        return [
            caution(
                "judge-off",
                f"{sentence}beyond chance for {', '.join(off)}: do not rely on judge-alone.",
                numbers=numbers,
                about=(metric,),
            )
        ]
    return [note("judge-off", f"{sentence}no more than labels leave to chance.", numbers=numbers, about=(metric,))]
