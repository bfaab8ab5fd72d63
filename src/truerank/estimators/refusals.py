"""Which metrics an estimator can estimate from partial labels; a refusal says why not, and what to use instead."""

from __future__ import annotations

from truerank.core.errors import RefusedError
from truerank.core.estimator import Exposed
from truerank.core.metric import Additive, Metric, OfLists
from truerank.core.options import Denominator
from truerank.core.ranking import Ties

IMPRESSIONS = frozenset({Exposed.RANKED})
LOGS = frozenset({Exposed.BIASED, Exposed.RANKED})
LABELS = frozenset(set(Exposed) - {Exposed.RANKED})
# where a relevant item ranks must not depend on labels that nobody knows
LABEL_FREE = frozenset({Ties.EXPECTED, Ties.RANDOM, Ties.STRICT})
# the total discount of a list is known only if each rank is taken once
DISTINCT_RANKS = LABEL_FREE - {Ties.STRICT}


def additive(metric: Metric) -> Additive:
    if not isinstance(metric, Additive):
        raise RefusedError(f"{metric} is not additive over relevant items.")
    return metric


def is_recall(metric: Metric) -> bool:
    """Whether it divides by the number of a user's relevant items."""
    return isinstance(metric, Additive) and metric.denominator is Denominator.POSITIVES


def estimand(metric: Metric) -> str:
    """Recall is pooled, as the mean over users is not identified from few labels; sums are means over users."""
    if is_recall(metric):
        return f"{metric} pooled over all relevant user-item pairs, so users with many relevant items count more"
    return f"mean {metric} over {metric.on_full_labels}"


def only_labelled(metric: Metric) -> str | None:
    """Why a metric that does not look at labels is not for an estimator that does."""
    return "it describes lists, whatever is relevant in them; use lists." if isinstance(metric, OfLists) else None


def not_additive(metric: Metric) -> str:
    return (
        only_labelled(metric)
        or f"partial labels cannot give {metric}: {getattr(metric, 'partial', 'it is not additive')}."
    )


def only_sums_or_recall(metric: Metric) -> str | None:
    if not isinstance(metric, Additive):
        return not_additive(metric)
    if metric.denominator is Denominator.SMALLER:
        return (
            "it divides by the smaller of K and the number of all relevant items of a user, which is not known, and no "
            f"unbiased form exists; use {metric.name} divided by all relevant items, its default."
        )
    return None


def only_recall(metric: Metric, reason: str) -> str | None:
    """Why a metric that does not divide by a user's relevant items cannot be estimated, None for those that do."""
    if not isinstance(metric, Additive) or metric.denominator.needs_every_label:
        return only_sums_or_recall(metric)
    return f"{reason}; for {metric} use horvitz-thompson or hajek."


def only_sums(metric: Metric) -> str | None:
    """Why a metric that divides by a user's relevant items cannot be estimated, None for sums."""
    if is_recall(metric):
        return "it divides by the unknown number of all relevant items of a user; use pooled."
    return only_sums_or_recall(metric)
