"""Users, models and their scores: the law from which each draw takes users, with equal and with different models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank_research.validation.environments import Array, Parameters


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
