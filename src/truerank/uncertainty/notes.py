"""What is said once about a whole evaluation: what matched, what was tied, where orders differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Candidates, Pool, Ranks, Scores
from truerank.core.results import Estimate
from truerank.exposure.propensities import Fitted
from truerank.metrics.gains import relevant
from truerank.ranks.candidates import Setting
from truerank.ranks.scores.scores import Lists


def matching(models: Mapping[str, Scores], labels: Log, *, n_items: float) -> list[str]:
    """How many users, items and positives matched: the first thing to look at when a number surprises."""
    positives = int(relevant(labels).sum())
    found = [
        f"{len(labels.users):,} users, {'unknown' if math.isnan(n_items) else f'{int(n_items):,}'} items, "
        f"{len(labels):,} judged pairs, "
        f"{positives:,} of them relevant."
    ]
    for name, each in models.items():
        known = int(np.count_nonzero(each.users.locate(labels.users) >= 0))
        without = len(each.users) - known
        extra = f"; {without:,} users with scores have no labels and are not evaluated" if without else ""
        unknown = int(np.count_nonzero(each.items.locate(labels.items) < 0)) if each.depth is None else 0
        unscored = f"; {unknown:,} items of the catalogue have no score and are never recommended" if unknown else ""
        found.append(f"{name}: scores for {known:,} of {len(labels.users):,} users{extra}{unscored}.")
    if positives == 0:
        found.append("no judged pair is relevant: Recall is undefined, Precision and DCG are 0.")
    return found


def about_ranks(name: str, labels: Log, ranks: Mapping[Pool, Ranks]) -> list[str]:
    found = next(iter(ranks.values()))
    positive = relevant(labels) & found.scored[labels.user]
    never = int(np.count_nonzero(positive & np.isinf(found.above)))
    notes = (
        [f"{name}: {never:,} of {int(positive.sum()):,} relevant judged items are never recommended."] if never else []
    )
    tied = float(np.mean(found.tied[positive] > 0)) if positive.any() else 0.0
    if tied > 0.1:
        notes.append(
            f"{name}: {tied:.0%} of the relevant judged items share their score with another candidate; "
            "values are expected over tie orders."
        )
    return notes


def differing_orders(estimates: Sequence[Estimate]) -> list[str]:
    """Recall pooled over pairs and recall averaged over users are different questions; say where answers differ."""
    groups: dict[str, dict[str, list[Estimate]]] = {}
    for each in estimates:
        known = groups.setdefault(each.metric, {}).setdefault(each.estimator, [])
        # one name with several settings estimates one thing: the first stands for all
        if each.model not in {other.model for other in known}:
            known.append(each)
    return [
        f"{metric}: {first} orders the models {_order(a)}, {second} orders them {_order(b)}: "
        "they estimate different things."
        for metric, by_estimator in groups.items()
        for (first, a), (second, b) in combinations(by_estimator.items(), 2)
        if a[0].estimand != b[0].estimand and _ordered(a) and _ordered(b) and _order(a) != _order(b)
    ]


def _ordered(estimates: Sequence[Estimate]) -> bool:
    return not any(math.isnan(each.value) for each in estimates)


def _order(estimates: Sequence[Estimate]) -> str:
    return " > ".join(each.model for each in sorted(estimates, key=lambda each: -each.value))


def about_exclusions(setting: Setting, exclude: Log | None) -> list[str]:
    """How much of the exclusions has a user and an item of this evaluation."""
    if exclude is None:
        return []
    pairs = setting.pools[Pool.CATALOGUE].exclude
    matched = 0 if pairs is None else len(pairs.item)
    found = [f"{matched:,} of {len(exclude):,} excluded pairs concern users and items of this evaluation."]
    return (
        found if matched or not len(exclude) else [*found, f"nothing is excluded: check the ids of {exclude.source}."]
    )


def about_catalogue(models: Mapping[str, Scores], items: Ids) -> list[str]:
    """Items that are scored but do not compete, and tables that were taken as the whole catalogue."""
    found = []
    for name, each in models.items():
        ignored = len(each.items) - int(np.count_nonzero(each.items.locate(items) >= 0))
        if ignored and each.depth is None:
            found.append(f"{name}: {ignored:,} scored items are not in the catalogue and do not compete.")
        if isinstance(each, Lists) and each.depth is None:
            found.append(
                f"{name}: every user lists all {len(each.items):,} items, taken as the whole catalogue; "
                "if there are more, give --items or --n-items."
            )
    return found


def about_propensities(fitted: Fitted | None, labels: Log, candidates: Candidates) -> list[str]:
    """What was assumed of exposure, and whether it fits: each row stands for 1 / π, so Σ 1 / π is about all pairs."""
    if fitted is None:
        return []
    notes = [f"{fitted.description}."]
    pairs, weight = float(candidates.count.sum()), 1 / fitted.value
    noise = math.sqrt(float(((1 - fitted.value) * weight**2).sum()))
    if abs(float(weight.sum()) - pairs) > 6 * noise + 1:
        notes.append(
            f"the rows stand for {weight.sum():,.0f} pairs (Σ 1 / propensity), but there are {pairs:,.0f}: the "
            "propensities have another scale, or users to whom nothing was shown are missing (--population). ips and "
            "doubly-robust are off by that much; snips, and Recall by ips, are not."
        )
    return notes
