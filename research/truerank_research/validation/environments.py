"""A simulated environment with exact true values: users, models and their scores, from which each draw takes users."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SEED = 20260917  # chosen before the first run; never changed

Array = np.ndarray[Any, Any]
Parameters = dict[str, Any]
Truth = dict[tuple[str, str, str], float]  # model, metric, kind of mean ("users" or "pooled")


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """A law of units, what is evaluated in each draw from it, and the true values.

    `truth` has the value of each model, by metric and by kind of mean: over users ("users") or over relevant pairs
    ("pooled", for Recall only); an off-policy environment has one metric, "reward".
    """

    name: str
    key: tuple[int, ...]
    parameters: Parameters
    truth: Truth
    evaluate: Callable[[np.random.Generator], Any]

    def true_value(self, model: str, metric: str, estimator: str) -> float | None:
        """The estimand of an estimate; None where the environment does not define it."""
        if self.parameters["exposure"] == "off-policy":
            return self.truth.get((model, "reward", "users"))
        is_pooled = metric.startswith("Recall") and estimator not in ("full", "holdout", "corrected")
        return self.truth.get((model, metric, "pooled" if is_pooled else "users"))


def draw_rng(key: Sequence[int], draw: int) -> np.random.Generator:
    """The random generator of one draw: keyed by seed, environment and draw."""
    return np.random.default_rng([SEED, *key, 1, draw])


def model_names(p: Parameters) -> list[str]:
    return [f"m{model}" for model in range(p["n_models"])]


def named_values(p: Parameters, metric: str, kind: str, values: Array) -> Truth:
    return {(name, metric, kind): float(value) for name, value in zip(model_names(p), values, strict=True)}


# ---------------------------------------------------------------------------------------------------- users and models


@dataclass(frozen=True, slots=True, eq=False)
class Tastes:
    """Of each user: activity, affinity to each item, P(relevant) of each item, whether the user is of the minority."""

    activity: Array
    affinity: Array
    probability: Array
    is_minority: Array


def draw_tastes(rng: np.random.Generator, n_users: int, n_items: int, p: Parameters) -> Tastes:
    """Users of unequal activity, popular items, clustered tastes; some users have no relevant item."""
    n_clusters = int(rng.integers(3, 12))
    cluster = rng.integers(n_clusters, size=n_items)
    interests = p["taste"] * rng.normal(size=(n_users, n_clusters))
    affinity = p["popularity"] * rng.normal(size=n_items) + interests[:, cluster]
    activity = rng.lognormal(-(p["activity"] ** 2) / 2, p["activity"], n_users)
    liking = np.exp(affinity)
    liking /= liking.mean(axis=1, keepdims=True)
    probability = np.clip(p["positives"] * activity[:, None] * liking, 0, 0.9)
    probability[rng.random(n_users) < p["no_positives"]] = 0
    return Tastes(activity, affinity, probability, rng.random(n_users) < p["minority"])


def draw_scores(rng: np.random.Generator, tastes: Tastes, p: Parameters) -> Array:
    """Scores [models, users, items]: quality times affinity, plus noise, a part of which all models share.

    The minority of users is served best by the models that are worst for the others.
    """
    n_models = p["n_models"]
    steps = np.zeros(n_models)
    if p["models"] == "tilted":
        steps = np.linspace(0, 1, n_models)
    elif p["models"] == "partly":  # the first two are equally good
        steps[1:] = np.linspace(0, 1, n_models - 1)
    steps = steps.max() - steps if p["equal_are_best"] else steps
    common = rng.normal(size=tastes.affinity.shape)
    scores = []
    for step in steps:
        quality = p["quality"] + p["gap"] * np.where(tastes.is_minority, 4 * (steps.max() - step), step)
        noise = np.sqrt(p["shared_noise"]) * common
        noise += np.sqrt(1 - p["shared_noise"]) * rng.normal(size=tastes.affinity.shape)
        scores.append(quality[:, None] * tastes.affinity + noise)
    return np.array(scores)


def exchanged_models(p: Parameters) -> Array:
    """[copies, models]: whose scores each model has in each copy of a user; equal models take turns."""
    n_models = p["n_models"]
    models = np.arange(n_models)
    if p["models"] == "rotated":
        return np.array([np.roll(models, shift) for shift in range(n_models)])
    if p["models"] == "partly":
        return np.array([models, [1, 0, *models[2:]]])
    return models[None]


def tilted_weights(difference: Array, direction: Array) -> Array | None:
    """Weights of users, exponential in `direction`, under which the difference has mean 0; None where none is mild.

    >>> weights = tilted_weights(np.array([1.0, 1.0, -1.0]), np.array([0.0, 0.0, 1.0]))
    >>> weights.round(3)
    array([0.25, 0.25, 0.5 ])
    """

    def weights(slope: float) -> Array:
        power = slope * direction
        unscaled = np.exp(power - power.max())
        return np.asarray(unscaled / unscaled.sum())

    low, high = -4.0, 4.0
    if weights(low) @ difference > 0:
        low, high = high, low
    if weights(low) @ difference > 0 or weights(high) @ difference < 0:
        return None
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if weights(middle) @ difference < 0 else (low, middle)
    tilted = weights((low + high) / 2)
    return tilted if 1 / np.sum(tilted**2) >= len(tilted) / 8 else None


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """The users that a draw takes: copies of the first users in which models take turns, and their weights."""

    n_base: int
    exchange: Array
    weights: Array

    def sample(self, rng: np.random.Generator, n_users: int) -> tuple[Array, Array]:
        """Base users and copies of a draw with replacement."""
        members = rng.choice(len(self.weights), n_users, p=self.weights)
        return members % self.n_base, members // self.n_base

    def mean(self, values: Array, sizes: Array | None = None) -> Array:
        """Of each model, the mean of `values` [models, base users] over the law; a ratio of means with `sizes`."""
        weights = self.weights.reshape(len(self.exchange), self.n_base)
        totals = sum(values[models] @ weight for models, weight in zip(self.exchange, weights, strict=True))
        return np.asarray(totals / (1.0 if sizes is None else float(weights.sum(axis=0) @ sizes)))


def make_population(rng: np.random.Generator, tastes: Tastes, p: Parameters, totals: Array) -> Population:
    """The population in which models are equal or different as the parameters say.

    `totals` [models, base users] are what a user adds to the true value of each model. Weights are tilted by activity,
    minority or the difference itself, whichever of them, in random order, makes the first two models equal.
    """
    exchange, n_base = exchanged_models(p), totals.shape[1]
    uniform = np.full(len(exchange) * n_base, 1 / (len(exchange) * n_base))
    if p["models"] == "tilted":
        difference = totals[1] - totals[0]
        directions = [np.log(tastes.activity), tastes.is_minority.astype(float)]
        rng.shuffle(directions)
        for direction in (*directions, difference):
            spread = direction.std()
            weights = tilted_weights(difference, (direction - direction.mean()) / spread) if spread > 0 else None
            if weights is not None:
                return Population(n_base, exchange, weights)
    return Population(n_base, exchange, uniform)


# --------------------------------------------------------------------------------------------------------- true values


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
