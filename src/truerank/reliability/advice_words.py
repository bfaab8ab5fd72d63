"""Advice in words: one sentence that says what to do, and what to keep in mind."""

from __future__ import annotations

import math
from collections.abc import Iterator

from truerank.core.errors import some
from truerank.exposure.logging_policies import UniformLogger
from truerank.ranking import samplers
from truerank.reliability.advice import FAR, GOOD, TWICE, Advice, is_alike, recommend
from truerank.reliability.choices import Choice, candidates_text
from truerank.reliability.studied import FULL, LogProfile, PositivesProfile

NEAR = 0.05  # a distance below which two logging policies expose alike
WORSE = 0.05  # a loss of expected τ that another metric is mentioned for
FEW_USERS, FEW_REPETITIONS = 200, 3
INPUTS = {
    "random": "randomly exposed data",
    "train": "training data",
    "rows": "how often each item was exposed",
}


def verdict(advice: Advice) -> str:
    """What to do, in a few sentences that say no more than the study measured.

    What lies outside of it comes first, and the number of pairs of models whose order is known stands beside tau. Then,
    or where the order of most pairs is not known, there is no advice to use something, only what would be the choice.
    """
    chosen, best = advice.recommended, advice.best
    what = f"y {advice.metric} over {advice.users:,} users"
    outside = f"Outside of what was measured: {'; '.join(advice.outside)}. For the nearest that was, "
    what = f"{outside}b{what}" if advice.outside else f"B{what}"
    agrees = (
        f"the order of models is expected to agree with the true one with Kendall's tau {tau_text(chosen.tau)} "
        f"(95 % interval {tau_text(chosen.low)} to {chosen.high:.2f}) {_over_pairs(advice)}"
    )
    if best.tau < GOOD:
        return (
            f"{what}, nothing in the study keeps the true order well: of the best, {chosen.name}, {agrees}. "
            f"{_more_users(advice)} Do not decide by it alone."
        )
    full, more = chosen.sampler == FULL, ""
    doing = "rank all items (Full)" if full else f"use {chosen.name}"
    if advice.outside or 2 * advice.pairs < advice.all_pairs:
        doing = f"the choice would be {'all items (Full)' if full else chosen.name}"
    if full and all(choice.tau < chosen.tau for choice in advice.choices if choice != chosen):
        doing += ", no sample keeps the order as well"
    elif best.negatives > chosen.negatives:
        times, gain = best.negatives / max(chosen.negatives, 1.0), best.tau - chosen.tau
        better = f"is better by {gain:.3f}" if gain >= 0.0005 else "is no better"
        more = f" {best.name} {better}, with {times:.1f} times as many negatives."
    elif best.closer < chosen.closer:
        more = f" {best.name} is as good here, but not for models that are closer to each other."
    return f"{what}, {doing}: {agrees}.{more}"


def _over_pairs(advice: Advice) -> str:
    """Over how many pairs of models tau is, and what it can be over all where the order of some is not known."""
    unknown, (low, high) = len(advice.undecided), advice.tau_of_all
    models = f"{advice.all_pairs} pair{'' if advice.all_pairs == 1 else 's'} of models"
    if not unknown:
        return f"over {'all ' if advice.pairs > 1 else ''}{models}"
    return (
        f"over {advice.pairs} of {models}; the study does not know the true order of the other"
        f"{'' if unknown == 1 else f' {unknown}'}, so over all it can be anything from {low:.2f} to {high:.2f}"
    )


def _more_users(advice: Advice) -> str:
    """Whether more users help; pairs stay wrong by bias, if the study tells all their signs from 0."""
    chosen = advice.recommended
    if chosen.limit - chosen.tau > 2 * WORSE:
        return f"With endlessly many users it would be {chosen.limit:.2f}: more users help."
    biased = 1 - 2 * len(advice.wrong) / advice.pairs <= chosen.limit + 1e-9
    cause = "bias" if biased else "bias, or pairs that come too close for the study"
    return f"More users do not help ({chosen.limit:.2f} with endlessly many): it is {cause}."


def tau_text(tau: float) -> str:
    """Two digits that do not round up to certainty: 1.00 is said of 1 alone.

    >>> tau_text(0.982), tau_text(0.9998), tau_text(1.0)
    ('0.98', 'over 0.99', '1.00')
    """
    return "over 0.99" if 0.995 <= tau < 1 - 1e-9 else f"{tau:.2f}"


def warnings(advice: Advice) -> tuple[str, ...]:
    """What the figures leave out, the most harmful first."""
    return (*_of_log(advice), *_of_choice(advice), *_of_study(advice))


def _of_log(advice: Advice) -> Iterator[str]:
    match, profile = advice.logger, advice.log
    if profile is None:
        return
    if isinstance(profile, LogProfile):
        yield from _of_exposure(advice, profile)
    else:
        yield (
            "Your log holds positives alone: Exposed and Random@e, which need the exposed negatives of each user, are "
            "excluded, and how it was exposed is as you stated."
        )
    if not is_alike(profile.positives_per_user, match.positives_per_user):
        better = "optimistic" if profile.positives_per_user < match.positives_per_user else "pessimistic"
        yield f"With as many positives as your users have, the study's figures are probably {better}."
    if not is_alike(profile.items, match.items):
        yield "Sizes are numbers of negatives, not shares, and mean something else in a catalogue of another size."


def _of_exposure(advice: Advice, profile: LogProfile) -> Iterator[str]:
    match = advice.logger
    nearly = [
        logger.logger
        for logger in advice.loggers
        if logger.logger != match.logger
        and math.hypot(logger.spread - match.spread, logger.lift - match.lift) > NEAR
        and logger.distance < 2 * match.distance
    ]
    if nearly and match.distance > NEAR and match == advice.loggers[0]:
        yield f"{nearly[0]} is nearly as near as {match.logger}; ask about it as the logger too."
    if match.logger == str(UniformLogger()) and match.distance <= FAR:
        yield (
            "Your log looks randomly exposed. `tr.randomness` tests that; if so, an "
            "evaluation with random exposure estimates what all labels would say, and no candidates need to be sampled."
        )
    if profile.rows < profile.items:
        yield f"Items have {profile.rows / profile.items:.1f} rows on average: spread and lift are noisy."


def _lacking(choice: Choice, advice: Advice) -> str:
    """What a choice needs that the log does not have, in words; empty where it has all."""
    if choice.size is None:
        return ""
    bare, bracket, options = choice.sampler.partition("(")
    needs = samplers.parse(f"{bare}@1{bracket}{options}").needs
    has_rows = not isinstance(advice.log, PositivesProfile)
    return " and ".join(words for need, words in INPUTS.items() if need in needs and (need != "rows" or not has_rows))


def _of_choice(advice: Advice) -> Iterator[str]:
    lacking = _lacking(advice.recommended, advice)
    if lacking:
        others = [choice for choice in advice.choices if not _lacking(choice, advice)]
        instead = f" Without it use {recommend(others).name} ({recommend(others).tau:.2f})." if others else ""
        yield f"{advice.recommended.sampler} needs {lacking}, beside the log.{instead}"
    if advice.wrong:
        pairs = some([f"{pair.worse} above {pair.better}" for pair in advice.wrong], most=3)
        yield f"However many users there are, {advice.recommended.name} puts {pairs}."
    worse = [metric for metric in advice.other_metrics if metric.loss > WORSE]
    if worse:
        first = max(worse, key=lambda metric: metric.loss)
        yield (
            f"{len(worse)} of {len(advice.other_metrics)} other metrics would choose otherwise; {first.metric} most: "
            f"{candidates_text(*first.choice)} has {first.tau:.2f} there, what is recommended here "
            f"{first.recommended:.2f}."
        )
    if advice.undecided:
        pairs = some([" and ".join(pair) for pair in advice.undecided], most=3)
        yield f"The study does not know the true order of {pairs}: these pairs are left out of tau."


def _of_study(advice: Advice) -> Iterator[str]:
    if advice.pairs < 3:
        yield f"The figures rest on {advice.pairs} pair{'s' if advice.pairs > 1 else ''} of models: study more models."
    if advice.study_users < FEW_USERS or advice.study_repetitions < FEW_REPETITIONS:
        yield (
            f"The study has {advice.study_users:,} users and {advice.study_repetitions} "
            f"repetition{'s' if advice.study_repetitions > 1 else ''}: its figures are rough."
        )
    if advice.users > TWICE * advice.study_users:
        yield (
            f"Your log has more users than the study ({advice.users:,} against {advice.study_users:,}): how close "
            "pairs of models come out is known only as well as the study knows it."
        )
    yield (
        "The dataset of the study is not yours: other users, items and models, and loggers that favour items, not what "
        "a user likes."
    )
