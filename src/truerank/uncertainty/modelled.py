"""When a value that rests on a model of users cannot be trusted, and what it would be if users were otherwise."""

from __future__ import annotations

import math

from truerank.core.curved import CurvedRecall
from truerank.core.messages import Message, caution, warning
from truerank.core.terms import Terms

FEWEST_WITH_RELEVANT = 0.4  # share of users with a judged relevant item, below which intervals were measured to fail
HALF_WITH_RELEVANT = 0.55  # below which intervals at middle depths of a list were measured to be a little short
BELOW_CHANCE = -2.0  # standard errors
FALLS = 0.05  # of the value, by which chance alone seldom corrects downwards
LARGE_CORRECTION = 0.07  # of the value, above which intervals were measured to be short in some lists
MATTERS = 0.02  # of the value


def distrust(terms: Terms, model: str) -> tuple[Message, ...]:
    """Why a model-based value carries no verdict, and where it is known to fail; nothing where every label is known.

    Differences rest on users of whom no relevant item was labelled, and the data cannot show whether the model is
    right about them: their intervals covered the truth in 30 to 40 % of draws where it was not, mostly unwarned.
    """
    if not isinstance(terms, CurvedRecall) or terms.exact:
        return ()
    fit, share = terms.fit(), terms.share_with_relevant()
    if fit is None:
        return ()
    messages = [
        warning(
            "experimental-estimator",
            "the estimator is experimental and gives no verdict: the difference rests on a model of users without a "
            "labelled relevant item, which the data cannot check; use post-stratified",
        )
    ]
    if share < FEWEST_WITH_RELEVANT:
        messages.append(
            warning(
                "few-with-relevant",
                f"only {share:.0%} of the users have a judged relevant item (below {FEWEST_WITH_RELEVANT:.0%}): what "
                "the others like is nearly all model, and its value was measured to be up to a fifth too low there; "
                "judge more items per user, or use pooled",
                numbers={"share": share},
                about=(model,),
            )
        )
    if terms.above_chance() < BELOW_CHANCE:
        messages.append(
            warning(
                "below-chance",
                f"the lists of {model} hold relevant items less often than the rest does: the rank curve takes "
                "relevance to fall along a list, and was measured to be too low by up to two fifths there; use pooled",
                numbers={"z": terms.above_chance()},
                about=(model,),
            )
        )
    if terms.correction() < -FALLS * abs(terms.value()):
        messages.append(
            warning(
                "recall-rises",
                f"users who like much have the higher recall of {model}, so the mean over users is corrected down, by "
                f"{-terms.correction():.4f}: such corrections were measured to go too little far, and intervals to "
                "hold the truth in 41 to 86% of draws; use pooled",
                numbers={"correction": terms.correction()},
                about=(model,),
            )
        )
    if not fit.converged:
        messages.append(warning("not-converged", "the rank curve could not be fitted to the end", about=(model,)))
    return tuple(messages)


def about_curve(terms: Terms) -> tuple[Message, ...]:
    """That half of the users are model, and how the value goes with the share of users who like nothing."""
    if not isinstance(terms, CurvedRecall) or terms.exact or terms.fit() is None:
        return ()
    value, messages = terms.value(), list(_half_model(terms.share_with_relevant()))
    messages += _large(terms.correction(), value)
    found = {share: mean for share, mean in terms.plausible().items() if not math.isnan(mean)}
    reach = max((abs(mean - value) for mean in found.values()), default=0.0)
    if not reach > MATTERS * abs(value):
        return tuple(messages)
    least, most = min(found), max(found)
    messages.append(
        caution(
            "like-nothing",
            f"rests on the share of users who like nothing at all, taken as {terms.like_nothing:.0%}: {least:.0%} to "
            f"{most:.0%} can be, with values of {found[least]:.4f} to {found[most]:.4f}; if it is known, say "
            "corrected(like_nothing=...)",
            numbers={"least": least, "most": most, "at_least": found[least], "at_most": found[most]},
        )
    )
    return tuple(messages)


def _large(correction: float, value: float) -> tuple[Message, ...]:
    if not correction > LARGE_CORRECTION * abs(value):
        return ()
    return (
        caution(
            "large-correction",
            f"{correction / value:.0%} of the value is the correction of the published mean: where it is more than "
            f"{LARGE_CORRECTION:.0%}, intervals were measured to hold the truth in 82 to 100% of draws on KuaiRec, the "
            "lowest at K = 50",
            numbers={"correction": correction},
        ),
    )


def _half_model(share: float) -> tuple[Message, ...]:
    if not FEWEST_WITH_RELEVANT <= share < HALF_WITH_RELEVANT:
        return ()
    return (
        caution(
            "half-without-relevant",
            f"{1 - share:.0%} of the users have no judged relevant item, and are model: intervals were measured to "
            "hold the truth in 80 to 91% of draws at K = 50 there, and values to be about a tenth too low",
            numbers={"share": share},
        ),
    )
