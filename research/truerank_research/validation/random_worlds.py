"""Random simulated environments with known truth: every setting is drawn from a wide range by a fixed seed.

An environment is a law of units: a finite population of users (or users with sessions) with weights. Each draw takes
new users from it, independently and with replacement, so the true values are exact sums over the population. Models
have exactly equal true values where every user has copies with the models exchanged ("rotated": all models, "partly":
the first two), or where the weights of users are tilted until the first two are equal ("tilted": their difference is
then skewed). So every environment has a pair of equal models; models beyond those differ.

    environment = random_environment(17)
    environment.parameters, environment.truth
    results = environment.evaluate(draw_rng(environment.key, 0))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import truerank as tr

SEED = 20260917  # chosen before the first run; never changed
N_WORLDS = 300

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


def random_environment(index: int) -> Environment:
    """The environment with this number."""
    parameters = draw_parameters(index)
    make = ranked_environment if parameters["exposure"] == "off-policy" else labelled_environment
    return make(f"world {index}", (index,), parameters)


# --------------------------------------------------------------------------------------------------------- parameters


def draw_parameters(index: int) -> Parameters:
    """All settings of an environment, drawn by its number.

    In a fifth of the environments the data may be as sparse as it comes; the others have at least 10 expected hits (or
    30 rewards), because in data without hits nothing but insufficient evidence can be measured.
    """
    rng = np.random.default_rng([SEED, index, 0])
    may_be_sparse = rng.random() < 0.2
    kinds = {"random": 0.36, "designed": 0.14, "biased": 0.16, "full": 0.08, "holdout": 0.06, "off-policy": 0.2}
    exposure = _choose(rng, kinds)
    judge = _choose(rng, {"none": 0.68, "useless": 0.07, "good": 0.13, "biased": 0.08, "scores": 0.04})
    judge = judge if exposure in ("random", "designed", "biased") else "none"
    while True:
        p = _draw_parameters(rng, exposure, judge)
        if may_be_sparse or p["expected_hits"] >= (30 if p["exposure"] == "off-policy" else 10):
            return p


def _draw_parameters(rng: np.random.Generator, exposure: str, judge: str) -> Parameters:
    models = _choose(rng, {"rotated": 0.32, "tilted": 0.33, "partly": 0.35})
    n_models = int(_choose(rng, {2: 0.55, 3: 0.24, 4: 0.11, 5: 0.05, 6: 0.05})) + (models == "partly")
    common: Parameters = {
        "exposure": exposure,
        "judge": judge,
        "n_models": min(n_models, 6),
        "models": models,
        "equal_are_best": bool(rng.random() < 0.5),
        "quality": float(rng.uniform(0, 2.5)),
        "gap": _log_uniform(rng, 0.05, 2.0),
        "shared_noise": float(rng.choice([0.0, rng.uniform(0, 0.97)])),
        "minority": float(rng.choice([0.0, rng.uniform(0.02, 0.3)])),
        "activity": float(rng.uniform(0, 1.4)),
        "no_positives": float(rng.choice([0.0, rng.uniform(0, 0.6)])),
        "positives": _log_uniform(rng, 0.005, 0.4),
        "popularity": float(rng.uniform(0, 1.3)),
        "taste": float(rng.uniform(0.2, 1.5)),
        "baseline": bool(rng.random() < 0.5),
    }
    settings = _ranked_parameters if exposure == "off-policy" else _labelled_parameters
    return common | settings(rng, common)


def _labelled_parameters(rng: np.random.Generator, common: Parameters) -> Parameters:
    exposure, judge = common["exposure"], common["judge"]
    most = (
        800 if judge != "none" else {"full": 500, "holdout": 1000}.get(exposure, min(3000, 7000 / common["n_models"]))
    )
    n_users = round(_mostly_small(rng, 20, most))
    pairs = 20_000 if judge != "none" or exposure == "full" else 120_000
    n_items = round(_log_uniform(rng, 30, max(40, min(600, pairs / n_users))))
    k = int(rng.choice([k for k in (1, 3, 5, 10, 20, 50) if k <= n_items / 3]))
    share = max(common["positives"], 0.5 / n_items)
    ties = bool(rng.random() < 0.2)
    metrics = _metrics(rng, exposure, judge, k, ties=ties)
    rows = round(_log_uniform(rng, 2, min(80, 0.7 * n_items)))
    places = max(1 / (1 - float(metric[4:])) if "RBP" in metric else k for metric in metrics)
    labelled = n_items if exposure in ("full", "holdout") else rows
    expected_hits = n_users * labelled * places / n_items * share * (1 - common["no_positives"])
    return {
        "n_users": n_users, "n_items": n_items, "metrics": metrics, "positives": share, "expected_hits": expected_hits, "ties": ties,
        "rows": rows if exposure == "random" else max(rows, 4),
        "unequal_rows": _choose(rng, {"equal": 0.4, "unequal": 0.25, "with activity": 0.2, "rate": 0.15}),
        "rows_spread": float(rng.uniform(0.2, 1.2)), "rows_activity": float(rng.uniform(-1, 1)),
        "excluded": float(rng.choice([0.0, 0.0, 0.0, rng.uniform(0.05, 0.3)])),
        "draws_are": _choose(rng, {"poisson": 0.5, "systematic": 0.5}),
        "uniform_share": float(rng.uniform(0.25, 0.6)), "designed_models": int(rng.integers(1, common["n_models"] + 1)),
        "floor": _log_uniform(rng, 0.01, 0.1), "exposure_popularity": float(rng.uniform(0, 1.5)),
        "exposure_taste": float(rng.uniform(0, 1.0)),
        "sensitivity": float(rng.uniform(0.6, 0.97)), "specificity": float(rng.uniform(0.8, 0.995)),
        "estimators": _estimators(rng, exposure, judge, metrics),
    }  # fmt: skip


def _metrics(rng: np.random.Generator, exposure: str, judge: str, k: int, *, ties: bool) -> list[str]:
    """One or two metrics that the exposure can estimate."""
    choices = [f"Precision@{k}", f"Recall@{k}", f"DCG@{k}"]
    if judge == "none":
        choices.append(f"RBP@{rng.choice([0.5, 0.8, 0.9])}")
    if exposure in ("full", "holdout") and not ties:
        choices += [f"nDCG@{k}", f"AP@{k}", f"RR@{k}"]
    if exposure == "random" and judge == "none" and not ties and k >= 3 and rng.random() < 0.12:
        return [f"AP@{k}(denominator=cutoff)"]
    return [str(name) for name in rng.choice(choices, 1 + int(rng.random() < 0.3), replace=False)]


def _estimators(rng: np.random.Generator, exposure: str, judge: str, metrics: Sequence[str]) -> list[str] | None:
    """Named estimators in a quarter of the environments, the default in the others."""
    if judge != "none" or exposure in ("full", "holdout") or metrics[0].startswith("AP@") or rng.random() > 0.25:
        return None
    named = {
        "random": (["horvitz-thompson", "pooled"], ["hajek", "post-stratified"], ["assisted"]),
        "designed": (["horvitz-thompson", "pooled"], ["hajek", "post-stratified"]),
        "biased": (["ips"], ["ips", "snips"], ["doubly-robust"]),
    }[exposure]
    return named[int(rng.integers(len(named)))]


def _ranked_parameters(rng: np.random.Generator, common: Parameters) -> Parameters:
    length = round(_log_uniform(rng, 3, 20))
    fitted = bool(rng.random() < 0.25)
    n_users = round(_mostly_small(rng, 20, 500 if fitted else 2000))
    sessions = _choose(rng, {"one": 0.35, "few": 0.35, "pareto": 0.3})
    mean_sessions = 1.0 if sessions == "one" else min(_log_uniform(rng, 1.5, 8), max(1.5, 4000 / n_users))
    family = _choose(
        rng, {"log": 0.0 if fitted else 0.4, "exp": 0.5 if fitted else 0.3, "yule": 0.5 if fitted else 0.3}
    )
    steepness = {"log": 0.0, "exp": float(rng.uniform(0.75, 0.97)), "yule": float(rng.uniform(0.2, 1.3))}[family]
    return {
        "n_users": n_users, "length": length, "sessions": sessions, "mean_sessions": mean_sessions,
        "pareto": float(rng.uniform(1.1, 2.5)), "family": family, "steepness": steepness, "fitted": fitted,
        "views": "depth" if fitted else _choose(rng, {"depth": 0.6, "independent": 0.4}),
        "positives": float(np.clip(common["positives"], 0.02, 0.4)), "no_positives": common["no_positives"] / 2,
        "reward": _choose(rng, {"click": 0.7, "lognormal": 0.3}), "reward_spread": float(rng.uniform(0.3, 1.3)),
        "logging_quality": float(rng.uniform(0, 2)), "logging_orders": int(rng.choice([1, 2, 4])),
        "expected_hits": n_users * mean_sessions * length / 2 * max(common["positives"], 0.02),
        "with_log": bool(rng.random() < 0.3), "estimators": None,
    }  # fmt: skip


def _choose(rng: np.random.Generator, weights: Mapping[Any, float]) -> Any:
    return list(weights)[int(rng.choice(len(weights), p=list(weights.values())))]


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _mostly_small(rng: np.random.Generator, low: float, high: float) -> float:
    """Between two sizes, somewhat more often small than log-uniform."""
    return float(low * (high / low) ** (rng.random() ** 1.25))


# ----------------------------------------------------------------------------------------------- tastes, models, weights


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


# ------------------------------------------------------------------------------------------------------- true values


def discounts(metric: str, n_ranks: int) -> Array:
    """What a relevant item earns at each rank, for additive metrics and Recall (1 in the top K)."""
    name, _, text = metric.partition("@")
    rank = np.arange(1, n_ranks + 1)
    if name == "RBP":
        return np.asarray((1 - float(text)) * float(text) ** (rank - 1))
    top = rank <= int(text)
    return np.asarray(top * {"Precision": 1 / int(text), "Recall": 1.0, "DCG": 1 / np.log2(rank + 1)}[name])


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
            truth |= _named(p, metric, "pooled", population.mean(by_user, n_relevant))
        over_relevant = is_recall or (is_complete and metric.startswith(("nDCG", "AP", "RR")))
        sizes = has_relevant if over_relevant or p["exposure"] == "holdout" else None
        divisor = np.maximum(n_relevant, 1) if is_recall else 1
        truth |= _named(p, metric, "users", population.mean(by_user / divisor, sizes))
    return truth


def _named(p: Parameters, metric: str, kind: str, values: Array) -> Truth:
    return {(name, metric, kind): float(value) for name, value in zip(model_names(p), values, strict=True)}


def model_names(p: Parameters) -> list[str]:
    return [f"m{model}" for model in range(p["n_models"])]


# ----------------------------------------------------------------------------------------------------- labelled pairs


@dataclass(frozen=True, slots=True, eq=False)
class LabelledWorld:
    """Base users with complete labels, scores, and how labelled pairs are sampled; arrays are [base users, items].

    `n_rows` is the number of uniform draws of each user, `propensity` P(labelled) of each pair; None where it does not
    apply. `judge` predicts labels; `is_listed` are pairs in the top K of a model.
    """

    labels: Array
    scores: Array
    is_candidate: Array
    n_rows: Array | None
    propensity: Array | None
    judge: Array | None
    is_listed: Array | None


def labelled_environment(name: str, key: tuple[int, ...], p: Parameters) -> Environment:
    """An environment of labelled pairs, evaluated by `tr.evaluate`."""
    world, population, truth = make_labelled_world(key, p)

    def evaluate(rng: np.random.Generator) -> Any:
        return evaluate_labelled(world, population, p, rng)

    return Environment(name, key, p, truth, evaluate)


def make_labelled_world(key: tuple[int, ...], p: Parameters) -> tuple[LabelledWorld, Population, Truth]:
    """Base users with labels and scores, the law by which they are drawn, and the true values under it."""
    rng = np.random.default_rng([SEED, *key, 2])
    n_base = int(np.clip(1_000_000 // p["n_items"], 1500, 6000)) // len(exchanged_models(p))
    tastes = draw_tastes(rng, n_base, p["n_items"], p)
    labels = rng.random(tastes.probability.shape) < tastes.probability
    scores = draw_scores(rng, tastes, p)
    if p["ties"]:
        scores = np.round(scores)
    is_candidate = np.ones(labels.shape, dtype=bool)
    if p["excluded"]:
        is_candidate = rng.random(labels.shape) >= p["excluded"] * rng.uniform(0, 2, size=(n_base, 1))
        labels = labels & is_candidate
        scores = np.where(is_candidate, scores, -np.inf)
    values = {metric: np.array([user_values(metric, table, labels) for table in scores]) for metric in p["metrics"]}
    totals = values[p["metrics"][0]]
    if p["exposure"] in ("full", "holdout"):
        is_recall = p["metrics"][0].startswith("Recall")
        totals = totals * labels.any(axis=1) / (np.maximum(labels.sum(axis=1), 1) if is_recall else 1)
    population = make_population(rng, tastes, p, totals)
    n_rows = _row_counts(rng, tastes, is_candidate, p)
    propensity = _propensities(tastes, scores, is_candidate, p)
    judge = _judge(rng, labels, scores, tastes, p)
    world = LabelledWorld(labels, scores, is_candidate, n_rows, propensity, judge, _listed_pairs(scores, p))
    return world, population, true_values(population, p, values, labels.sum(axis=1))


def _row_counts(rng: np.random.Generator, tastes: Tastes, is_candidate: Array, p: Parameters) -> Array | None:
    """The number of labelled items of each user under random exposure, whatever their labels."""
    if p["exposure"] != "random" or p["unequal_rows"] == "rate":
        return None
    n_rows = np.full(len(is_candidate), float(p["rows"]))
    if p["unequal_rows"] != "equal":
        n_rows *= rng.lognormal(0, p["rows_spread"], len(n_rows))
    if p["unequal_rows"] == "with activity":
        n_rows *= tastes.activity ** p["rows_activity"]
    return np.clip(np.round(n_rows), 1, is_candidate.sum(axis=1)).astype(np.int64)


def _propensities(tastes: Tastes, scores: Array, is_candidate: Array, p: Parameters) -> Array | None:
    """P(labelled) of each pair: a rate, a design for some of the models, or a log that follows popularity and taste."""
    n_items = p["n_items"]
    if p["exposure"] == "random" and p["unequal_rows"] == "rate":
        return np.where(is_candidate, min(max(p["rows"], 4) / n_items, 0.9), 0.0)
    if p["exposure"] == "designed":
        by_rank = 1 / np.arange(1, n_items + 1) ** 0.5 * (np.arange(n_items) < max(_cutoff(p), 5))
        wanted = np.sqrt(sum(expected_discounts(each, by_rank) ** 2 for each in scores[: p["designed_models"]]))
        wanted = np.where(is_candidate, wanted, 0.0)
        targeted = (1 - p["uniform_share"]) * p["rows"] * wanted / wanted.sum(axis=1, keepdims=True)
        return np.where(is_candidate, np.minimum(p["uniform_share"] * p["rows"] / n_items + targeted, 1.0), 0.0)
    if p["exposure"] == "biased":
        popular = tastes.affinity.mean(axis=0)
        leaning = p["exposure_popularity"] * popular + p["exposure_taste"] * (tastes.affinity - popular)
        odds = np.exp(leaning) / np.exp(leaning).mean() * p["rows"] / n_items
        return np.where(is_candidate, np.clip(odds, p["floor"], 0.95), 0.0)
    return None


def _cutoff(p: Parameters) -> int:
    cutoffs = [int(metric.partition("@")[2].partition("(")[0]) for metric in p["metrics"] if "RBP" not in metric]
    return max(cutoffs, default=10)


def _judge(rng: np.random.Generator, labels: Array, scores: Array, tastes: Tastes, p: Parameters) -> Array | None:
    """Predicted labels of all pairs: useless, good, or biased towards the list of the first model."""
    if p["judge"] == "none":
        return None
    if p["judge"] == "scores":  # of any scale, with heavy tails
        return np.exp(1.5 * (tastes.affinity + rng.normal(size=labels.shape)))
    chance = np.where(labels, p["sensitivity"], 1 - p["specificity"])
    if p["judge"] in ("useless", "contains labels"):
        chance = np.full(labels.shape, 0.3)
    if p["judge"] == "biased":
        favoured = expected_discounts(scores[0], discounts(f"Recall@{_cutoff(p)}", p["n_items"]))
        chance = np.clip(chance + 0.4 * favoured, 0, 1)
    return (rng.random(labels.shape) < chance).astype(float)


def _listed_pairs(scores: Array, p: Parameters) -> Array | None:
    """Pairs in the top K of any model, where the judge predicts labels."""
    if p["judge"] in ("none", "scores"):
        return None
    top = discounts(f"Recall@{_cutoff(p)}", p["n_items"])
    return np.any([expected_discounts(each, top) > 0 for each in scores], axis=0)


def labelled_pairs(world: LabelledWorld, p: Parameters, base: Array, rng: np.random.Generator) -> Array:
    """Which pairs [users, items] of these users are labelled."""
    is_candidate = world.is_candidate[base]
    if p["exposure"] == "full":
        return is_candidate
    if p["exposure"] == "holdout":
        return world.labels[base]
    if world.n_rows is not None:
        keys = np.where(is_candidate, rng.random(is_candidate.shape, dtype=np.float32), 2.0)
        n_rows = world.n_rows[base]
        limit = np.sort(keys, axis=1)[np.arange(len(base)), n_rows - 1]
        return np.asarray(keys <= limit[:, None])
    assert world.propensity is not None
    chance = world.propensity[base]
    if p["exposure"] == "designed" and p["draws_are"] == "systematic":
        order = np.argsort(rng.random(chance.shape), axis=1)
        steps = np.floor(np.cumsum(np.take_along_axis(chance, order, axis=1), axis=1) + rng.random((len(base), 1)))
        taken = np.diff(steps, axis=1, prepend=0.0) > 0
        result = np.zeros(chance.shape, dtype=bool)
        np.put_along_axis(result, order, taken, axis=1)
        return result
    return np.asarray(rng.random(chance.shape) < chance)


def label_columns(world: LabelledWorld, p: Parameters, base: Array, sampled: Array) -> dict[str, Array]:
    """The labelled pairs as columns, with propensities where the exposure has them."""
    user, item = np.nonzero(sampled)
    columns = {"user": user, "item": item, "label": world.labels[base[user], item].astype(float)}
    if world.propensity is not None and p["exposure"] != "random":
        columns["propensity"] = world.propensity[base[user], item]
    return columns


def model_scores(
    world: LabelledWorld, population: Population, p: Parameters, base: Array, copies: Array
) -> dict[str, Any]:
    """The scores of each model for the users of a draw."""
    users, items = np.arange(len(base)), np.arange(p["n_items"])
    return {
        name: tr.scores.dense(world.scores[population.exchange[copies, model], base], users=users, items=items)
        for model, name in enumerate(model_names(p))
    }


def evaluate_labelled(world: LabelledWorld, population: Population, p: Parameters, rng: np.random.Generator) -> Any:
    """One draw of users and labels, evaluated."""
    base, copies = population.sample(rng, p["n_users"])
    sampled = labelled_pairs(world, p, base, rng)
    if p.get("kept_for_positives", False):
        sampled &= (sampled & world.labels[base]).any(axis=1, keepdims=True)
    users, items = np.arange(p["n_users"]), np.arange(p["n_items"])
    columns = label_columns(world, p, base, sampled)
    if p.get("last_row_dropped", False):
        columns = {name: values[:-1] for name, values in columns.items()}
    rows: Any = pl.DataFrame(columns)
    exposure: Any = p["exposure"]
    if world.propensity is not None:
        rows = tr.read(rows, users=users)  # a user without a labelled pair counts too
        if p["exposure"] == "random":
            exposure = tr.exposure.RandomExposure(float(world.propensity.max()))
    judged: dict[str, Any] = {}
    if p["judge"] == "scores":
        judged["assist"] = tr.scores.dense(world.judge[base], users=users, items=items)
    elif world.judge is not None and world.is_listed is not None:
        is_recall = any(metric.startswith("Recall") for metric in p["metrics"])
        needed = world.is_candidate[base] if is_recall else sampled | world.is_listed[base]
        user, item = np.nonzero(needed)
        predicted = world.judge[base[user], item]
        if p["judge"] == "contains labels":
            predicted = np.where(sampled[user, item], world.labels[base[user], item], predicted)
        judged["judge"] = pl.DataFrame({"user": user, "item": item, "probability": predicted})
    if p["excluded"]:
        user, item = np.nonzero(~world.is_candidate[base])
        judged["exclude"] = pl.DataFrame({"user": user, "item": item})
    return tr.evaluate(
        model_scores(world, population, p, base, copies), rows, exposure=exposure, metrics=p["metrics"], estimators=p["estimators"],
        baseline="m0" if p["baseline"] else None, threads=1, **judged,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------- ranked impressions


def view_probabilities(family: str, steepness: float, length: int) -> Array:
    """P(viewed) of each position, as the position models of the same names have it."""
    rank = np.arange(1, length + 1)
    if family == "log":
        return np.asarray(1 / np.log2(rank + 1))
    if family == "exp":
        return np.asarray(steepness ** (rank - 1))
    return np.concatenate([[1.0], np.cumprod(rank[:-1] / (rank[:-1] + steepness))])


def ranked_environment(name: str, key: tuple[int, ...], p: Parameters) -> Environment:
    """An environment of ranked impressions, evaluated by `tr.off_policy`: the value is the mean reward per session."""
    rng = np.random.default_rng([SEED, *key, 2])
    n_base = 4000 // len(exchanged_models(p))
    tastes = draw_tastes(rng, n_base, p["length"], p)
    scores = draw_scores(rng, tastes, p)
    ranks = (-scores).argsort(axis=2).argsort(axis=2) + 1
    logging = p["logging_quality"] * tastes.affinity + rng.normal(size=(p["logging_orders"], *tastes.affinity.shape))
    orders = (-logging).argsort(axis=2).argsort(axis=2) + 1
    n_sessions = np.ones(n_base, dtype=np.int64)
    if p["sessions"] == "few":
        n_sessions += rng.poisson(p["mean_sessions"] - 1, n_base)
    elif p["sessions"] == "pareto":
        tail = rng.pareto(p["pareto"], n_base)
        n_sessions += np.minimum(np.floor((p["mean_sessions"] - 1) * tail / tail.mean()), 200).astype(np.int64)
    views = np.array([view_probabilities(*curve, p["length"]) for curve in p.get("surfaces", [])] or [
        view_probabilities(p["family"], p["steepness"], p["length"])
    ])  # fmt: skip
    view = views.mean(axis=0)  # surfaces are equally frequent, and unrelated to users
    by_user = (tastes.probability * view[ranks - 1]).sum(axis=2) * n_sessions
    population = make_population(rng, tastes, p, by_user)
    truth = _named(p, "reward", "users", population.mean(by_user, n_sessions))
    by_log = (tastes.probability * view[orders - 1].mean(axis=0)).sum(axis=1) * n_sessions
    as_models = np.repeat(by_log[None], p["n_models"], axis=0)
    truth["log", "reward", "users"] = float(population.mean(as_models, n_sessions)[0])

    def evaluate(rng: np.random.Generator) -> Any:
        base, copies = population.sample(rng, p["n_users"])
        owner = np.repeat(np.arange(p["n_users"]), n_sessions[base])
        unit = base[owner]
        position = orders[rng.integers(p["logging_orders"], size=len(unit)), unit]
        target_ranks = {
            model_name: ranks[population.exchange[copies[owner], model], unit]
            for model, model_name in enumerate(model_names(p))
        }
        return evaluate_ranked(p, owner, position, tastes.probability[unit], target_ranks, views, rng)

    return Environment(name, key, p, truth, evaluate)


def evaluate_ranked(  # noqa: PLR0917
    p: Parameters,
    owner: Array,
    position: Array,
    liking: Array,
    ranks: Mapping[str, Array],
    views: Array,
    rng: np.random.Generator,
) -> Any:
    """One log of sessions [sessions, items], evaluated for each target."""
    surface = rng.integers(len(views), size=len(owner)) if len(views) > 1 else np.zeros(len(owner), dtype=np.int64)
    chance = views[surface[:, None], position - 1]
    # users view every position down to where they stop, or each position independently
    viewed = rng.random((len(owner), 1) if p["views"] == "depth" else position.shape) < chance
    reward = (viewed & (rng.random(position.shape) < liking)).astype(float)
    if p["reward"] == "lognormal":
        reward *= rng.lognormal(-(p["reward_spread"] ** 2) / 2, p["reward_spread"], position.shape)
    session, item = np.nonzero(viewed)
    columns = {
        "session": session, "item": item, "position": position[session, item], "reward": reward[session, item],
        **{f"rank_{name}": rank[session, item] for name, rank in ranks.items()},
    }  # fmt: skip
    if p.get("with_candidates", True):
        columns["candidates"] = np.full(len(session), p["length"])
    if p.get("with_surface", False):
        columns["surface"] = surface[session]
    if p["sessions"] != "one":
        columns["user"] = owner[session]
    targets = {name: tr.exposure.RankColumn(f"rank_{name}") for name in ranks}
    if p["with_log"]:
        targets["log"] = tr.exposure.RankColumn("position")
    family = p["family"]
    position_model = f"fit:{family}" if p["fitted"] else family if family == "log" else f"{family}:{p['steepness']!r}"
    return tr.off_policy(
        pl.DataFrame(columns), targets, position=position_model, rewards=["reward"], estimators=p["estimators"],
        baseline="m0" if p["baseline"] else None, threads=1,
    )  # fmt: skip
