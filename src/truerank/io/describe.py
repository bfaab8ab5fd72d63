"""What a log holds, in numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.log import Log, Pairs


def summary(log: Log) -> dict[str, Any]:
    """Counts and spreads of a log."""
    per_user = np.bincount(log.user, minlength=len(log.users))
    per_item = np.bincount(log.item, minlength=len(log.items))
    pairs = len(Pairs.of(log.user, log.item, n_units=len(log.users)).item)
    cells = len(log.users) * len(log.items)
    counts: dict[str, Any] = {
        "rows": len(log),
        "users": len(log.users),
        "items": len(log.items),
        "density": pairs / cells if cells else 0.0,
        "repeated pairs": len(log) - pairs,
        "rows per user (min, median, max)": _spread(per_user),
        "rows per item (min, median, max)": _spread(per_item),
        "Gini of rows per item": gini(per_item.astype(np.float64)),
    }
    for name, values in log.rewards.items():
        if name != "label" and len(values):
            counts[f"{name} (min, mean, max)"] = [float(values.min()), float(values.mean()), float(values.max())]
    if "label" in log.rewards:
        positives = np.bincount(log.user, weights=log.label, minlength=len(log.users))
        counts["positives"] = int(log.label.sum())
        counts["share positive"] = float(log.label.mean()) if len(log) else 0.0
        counts["users without a positive"] = int(np.count_nonzero(positives == 0))
    return counts


def gini(counts: Floats) -> float:
    """How unequal counts are: 0 all equal, near 1 all in one place.

    G = Σ (2i - n - 1) x_(i) / (n Σ x), x sorted ascending.

    >>> gini(np.array([1.0, 1.0])), gini(np.array([0.0, 4.0]))
    (0.0, 0.5)
    """
    total, n = counts.sum(), len(counts)
    if total == 0:
        return 0.0
    place = 2 * np.arange(1, n + 1) - n - 1
    return float((place * np.sort(counts)).sum() / (n * total))


def _spread(counts: Any) -> list[float]:
    if len(counts) == 0:
        return [0, 0, 0]
    return [float(counts.min()), float(np.median(counts)), float(counts.max())]
