"""True values of metrics from complete labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from truerank_research.validation.environments import Array, Parameters, Truth, named_values
from truerank_research.validation.populations import Population


def discounts(metric: str, n_ranks: int) -> Array:
    """The discount of each rank, for additive metrics and Recall (1 in the top K)."""
    name, _, text = metric.partition("@")
    rank = np.arange(1, n_ranks + 1)
    if name == "RBP":
        return np.asarray((1 - float(text)) * float(text) ** (rank - 1))
    top = rank <= int(text)
    if name == "DCG":
        return np.asarray(top / np.log2(rank + 1))
    return np.asarray(top * {"Precision": 1 / int(text), "Recall": 1.0}[name])


def expected_discounts(scores: Array, by_rank: Array) -> Array:
    """The discount of each item [users, items], averaged over the orders of items with equal scores.

    >>> expected_discounts(np.array([[2.0, 1.0, 1.0]]), np.array([1.0, 0.5, 0.0]))
    array([[1.  , 0.25, 0.25]])
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=1)
    n = scores.shape[1]
    starts = np.ones(scores.shape, dtype=bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(starts, np.arange(n), 0), axis=1)
    ends = np.ones(scores.shape, dtype=bool)
    ends[:, :-1] = starts[:, 1:]
    last = np.minimum.accumulate(np.where(ends, np.arange(n), n)[:, ::-1], axis=1)[:, ::-1]
    cumulative = np.concatenate([[0.0], np.cumsum(by_rank)])
    result = np.empty(scores.shape)
    np.put_along_axis(result, order, (cumulative[last + 1] - cumulative[first]) / (last + 1 - first), axis=1)
    return result


def user_values(metric: str, scores: Array, labels: Array) -> Array:
    """The metric of each user [users] from complete labels; of Recall the number of hits."""
    name, _, text = metric.partition("@")
    if name in ("Precision", "Recall", "DCG", "RBP"):
        return np.asarray((labels * expected_discounts(scores, discounts(metric, scores.shape[1]))).sum(axis=1))
    k = int(text.partition("(")[0])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    top = np.take_along_axis(labels, order, axis=1)
    rank = np.arange(1, k + 1)
    n_relevant = labels.sum(axis=1)
    if name == "HitRate":
        return np.asarray(top.any(axis=1).astype(float))
    if name == "RR":
        return np.asarray(np.where(top.any(axis=1), 1 / (top.argmax(axis=1) + 1), 0.0))
    if name == "AP":
        divisor = k if "cutoff" in text else np.maximum(np.minimum(n_relevant, k), 1)
        return np.asarray((top * np.cumsum(top, axis=1) / rank).sum(axis=1) / divisor)
    ideal = np.concatenate([[1.0], np.cumsum(1 / np.log2(rank + 1))])[np.minimum(n_relevant, k)]
    return np.asarray((top / np.log2(rank + 1)).sum(axis=1) / ideal)  # nDCG


def true_values(population: Population, p: Parameters, values: Mapping[str, Array], n_relevant: Array) -> Truth:
    """The estimands of every model and metric, from what each base user has [models, base users]."""
    has_relevant = (n_relevant > 0).astype(float)
    is_complete = p["exposure"] in ("full", "holdout")
    truth: Truth = {}
    for metric, by_user in values.items():
        is_recall = metric.startswith("Recall")
        if is_recall:
            truth |= named_values(p, metric, "pooled", population.mean(by_user, n_relevant))
        over_relevant = is_recall or (is_complete and metric.startswith(("nDCG", "AP", "RR")))
        sizes = has_relevant if over_relevant or p["exposure"] == "holdout" else None
        divisor = np.maximum(n_relevant, 1) if is_recall else 1
        truth |= named_values(p, metric, "users", population.mean(by_user / divisor, sizes))
    return truth
