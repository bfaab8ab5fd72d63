"""What is said once about a whole evaluation: what matched, what was tied, where orders differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from truerank.core import Log, Pool, Ranks, Scores
from truerank.metrics.gains import relevant
from truerank.results import Estimate


def matching(models: Mapping[str, Scores], labels: Log) -> list[str]:
    """How many users, items and positives matched: the first thing to look at when a number surprises."""
    positives = int(relevant(labels).sum())
    found = [
        f"{len(labels.users):,} users, {len(labels.items):,} items, {len(labels):,} judged pairs, "
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
    orders: dict[str, dict[str, list[str]]] = {}
    for each in estimates:
        orders.setdefault(each.metric, {}).setdefault(each.estimator, [])
    for metric, by_estimator in orders.items():
        for name in by_estimator:
            chosen = [each for each in estimates if (each.metric, each.estimator) == (metric, name)]
            by_estimator[name] = [each.model for each in sorted(chosen, key=lambda each: -each.value)]
    return [
        f"{metric}: {first} orders the models {' > '.join(a)}, {second} orders them {' > '.join(b)}: "
        "they estimate different things."
        for metric, by_estimator in orders.items()
        for (first, a), (second, b) in combinations(by_estimator.items(), 2)
        if a != b
    ]
