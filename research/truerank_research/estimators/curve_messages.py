"""What is said of a value that rests on a model of users, and what it would be if users were otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from truerank.core.messages import Message, MessageTable, Severity

if TYPE_CHECKING:
    from truerank_research.estimators.curved_recall import CurvedRecall

FEWEST_WITH_RELEVANT = 0.4  # share of users with a judged relevant item, below which intervals were measured to fail
HALF_WITH_RELEVANT = 0.55  # below which intervals at middle depths of a list were measured to be a little short
BELOW_CHANCE = -2.0  # standard errors
FALLS = 0.05  # of the value, by which chance alone seldom corrects downwards
LARGE_CORRECTION = 0.07  # of the value, above which intervals were measured to be short in some lists
MATTERS = 0.02  # of the value

CAUTIONS = {
    "like-nothing": (
        "rests on the share of users who like nothing at all, taken as {assumed:.0%}: {least:.0%} to {most:.0%} can "
        "be, with values of {at_least:.4f} to {at_most:.4f}; if it is known, say corrected(like_nothing=...)"
    ),
    "large-correction": (
        "{share:.0%} of the value is the correction of the published mean: where it is more than {large:.0%}, "
        "intervals were measured to cover the truth in 82 to 100% of draws on KuaiRec, the lowest at K = 50"
    ),
    "half-without-relevant": (
        "{without:.0%} of the users have no labelled relevant item, and are model: intervals were measured to cover "
        "the truth in 80 to 91% of draws at K = 50 there, and values to be about a tenth too low"
    ),
}
WARNINGS = {
    "experimental-estimator": (
        "the estimator is experimental and gives no verdict: the difference rests on a model of users without a "
        "labelled relevant item, which the data cannot check; use post-stratified"
    ),
    "few-with-relevant": (
        "only {share:.0%} of the users have a labelled relevant item (below {fewest:.0%}): what the others like is "
        "nearly all model, and its value was measured to be up to a fifth too low there; label more items per user, or "
        "use pooled"
    ),
    "below-chance": (
        "its lists contain relevant items less often than the rest does: the rank curve takes relevance to fall along "
        "a list, and was measured to be too low by up to two fifths there; use pooled"
    ),
    "recall-rises": (
        "users who like much have the higher recall, so the mean over users is corrected down, by {down:.4f}: such "
        "corrections were measured to be too small, and intervals to cover the truth in 41 to 86% of draws; use pooled"
    ),
    "not-converged": "the rank curve could not be fitted to the end",
}
message = MessageTable({Severity.CAUTION: CAUTIONS, Severity.WARNING: WARNINGS})


def no_verdict() -> Message:
    """Why a model-based value carries no verdict.

    Differences rest on users of whom no relevant item was labelled, and the data cannot show whether the model is
    right about them: their intervals covered the truth in 30 to 40 % of draws where it was not, mostly unwarned.
    """
    return message("experimental-estimator")


def check_fit(terms: CurvedRecall) -> Iterator[Message]:
    """Where values were measured to be far off."""
    fit, share = terms.fit(), terms.share_with_relevant()
    if terms.exact or fit is None:
        return
    if share < FEWEST_WITH_RELEVANT:
        yield message("few-with-relevant", share=share, fewest=FEWEST_WITH_RELEVANT)
    if terms.above_chance() < BELOW_CHANCE:
        yield message("below-chance", numbers={"z": terms.above_chance()})
    correction = terms.correction()
    if correction < -FALLS * abs(terms.value()):
        yield message("recall-rises", down=-correction, numbers={"correction": correction})
    if not fit.converged:
        yield message("not-converged")


def check_curve(terms: CurvedRecall) -> Iterator[Message]:
    """That half of the users are model, and how the value goes with the share of users who like nothing."""
    if terms.exact or terms.fit() is None:
        return
    value, share, correction = terms.value(), terms.share_with_relevant(), terms.correction()
    if FEWEST_WITH_RELEVANT <= share < HALF_WITH_RELEVANT:
        yield message("half-without-relevant", without=1 - share, numbers={"share": share})
    if correction > LARGE_CORRECTION * abs(value):
        numbers = {"correction": correction}
        yield message("large-correction", share=correction / value, large=LARGE_CORRECTION, numbers=numbers)
    means = {share: mean for share, mean in terms.plausible().items() if not math.isnan(mean)}
    reach = max((abs(mean - value) for mean in means.values()), default=0.0)
    if reach > MATTERS * abs(value):
        least, most = min(means), max(means)
        yield message(
            "like-nothing",
            assumed=terms.like_nothing,
            least=least,
            most=most,
            at_least=means[least],
            at_most=means[most],
        )
