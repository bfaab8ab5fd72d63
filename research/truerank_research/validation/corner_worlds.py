"""Named corner cases: environments in which an earlier version of truerank was wrong, or an assumption is violated.

Most are settings of the random environments, which no draw would hit often enough; three need a call of their own.
"""

from __future__ import annotations

import copy
import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank_research.validation.environments import SEED, Array, Environment, Parameters, Truth
from truerank_research.validation.labelled_worlds import (
    label_columns,
    labelled_environment,
    labelled_pairs,
    make_labelled_world,
    model_scores,
    ranked_environment,
)

N_LOOKS = 8
K = 10
DECIDED = {"SHOWN": "better", "OPPOSITE": "worse"}
UNDECIDED = ("CLOSE", "GOING_ON", "EARLY", "REFUSED")


def watched_population(name: str, key: tuple[int, ...], p: Parameters) -> Environment:
    """Users of a population who arrive in random order; rows of returning users arrive at any time from then on."""
    world, population, truth = make_labelled_world(key, p)

    def draw(rng: np.random.Generator) -> tuple[dict[str, Array], dict[str, Any]]:
        base, copies = population.sample(rng, p["n_users"])
        columns = label_columns(world, p, base, labelled_pairs(world, p, base, rng))
        arrival = (np.arange(p["n_users"]) + 0.5) / p["n_users"]
        time = arrival[columns["user"]]
        if p.get("returning", False):
            time = time + (1 - time) * rng.random(len(time))
            first = np.full(p["n_users"], 2.0)
            np.minimum.at(first, columns["user"], time)
            time = np.where(time == first[columns["user"]], arrival[columns["user"]], time)
        return columns | {"time": time}, model_scores(world, population, p, base, copies)

    return _interim_analyses(name, key, p, truth, draw)


def watched_lists(name: str, key: tuple[int, ...], p: Parameters) -> Environment:
    """Two lists of other items, the same for all users, with equal precision over `kinds` of users.

    A kind has its share of users and P(relevant) of an item of each list; `propensities` are those of each list.
    """
    shares = np.array([share for share, *_ in p["kinds"]])
    relevance = np.array([lists for _, *lists in p["kinds"]]).repeat(K, axis=1)
    propensity = np.array(p["propensities"]).repeat(K)
    metric = f"Precision@{K}"
    truth = {(f"m{model}", metric, "users"): float(shares @ relevance[:, model * K]) for model in range(2)}
    users, items = np.arange(p["n_users"]), np.arange(2 * K)
    scores = {
        f"m{model}": tr.scores.dense(np.tile(np.where(items // K == model, 1.0, 0.0) - items / 1e3, (len(users), 1)),
                                     users=users, items=items)
        for model in range(2)
    }  # fmt: skip

    def draw(rng: np.random.Generator) -> tuple[dict[str, Array], dict[str, Any]]:
        probability = relevance[rng.choice(len(shares), len(users), p=shares)]
        labels = rng.random(probability.shape) < probability
        user, item = np.nonzero(rng.random(labels.shape) < propensity)
        columns = {"user": user, "item": item, "label": labels[user, item].astype(float)}
        if p["exposure"] != "full":
            columns["propensity"] = propensity[item]
        return columns | {"time": (user + 0.5) / len(users)}, scores

    return _interim_analyses(name, key, p | {"metrics": [metric]}, truth, draw)


def _interim_analyses(
    name: str,
    key: tuple[int, ...],
    p: Parameters,
    truth: Truth,
    draw: Callable[[np.random.Generator], tuple[dict[str, Array], dict[str, Any]]],
) -> Environment:
    """Rows with times in (0, 1], looked at several times: the verdict is the first decision of any look."""

    def evaluate(rng: np.random.Generator) -> Any:
        columns, scores = draw(rng)
        rows = pl.DataFrame(columns)
        verdict = "not shown"
        for look in range(1, N_LOOKS + 1):
            so_far = rows.filter(pl.col("time") <= look / N_LOOKS)
            watched = tr.watch(
                scores, so_far, require=f"m0 > m1: {p['metrics'][0]}", exposure=p["exposure"], metrics=p["metrics"],
                estimators=p["estimators"], planned=p["n_users"], threads=1,
            )  # fmt: skip
            state = watched.pairs[0].state.name
            if state not in (*DECIDED, *UNDECIDED):
                raise ValueError(f"unknown state {state} of watch")
            if state in DECIDED:
                verdict = DECIDED[state]
                break
        pair = watched.pairs[0]
        comparison = SimpleNamespace(
            model="m0", baseline="m1", metric=pair.metric, estimator=pair.estimator,
            low=math.nan, high=math.nan, verdict=verdict,
        )  # fmt: skip
        return SimpleNamespace(estimates=[], comparisons=[comparison])

    return Environment(name, key, p, truth, evaluate)


COMMON: Parameters = {
    "n_models": 2, "models": "rotated", "equal_are_best": False, "quality": 0.8, "gap": 0.5, "shared_noise": 0.0,
    "minority": 0.0, "activity": 0.5, "no_positives": 0.0, "positives": 0.1, "popularity": 0.7, "taste": 0.8,
    "baseline": False, "judge": "none", "estimators": None,
}  # fmt: skip
LABELLED = COMMON | {
    "exposure": "random", "n_users": 300, "n_items": 200, "metrics": ["Precision@10"], "ties": False, "rows": 20,
    "unequal_rows": "equal", "rows_spread": 0.5, "rows_activity": 0.0, "excluded": 0.0, "draws_are": "poisson",
    "uniform_share": 0.3, "designed_models": 2, "floor": 0.02, "exposure_popularity": 1.0, "exposure_taste": 0.3,
    "sensitivity": 0.9, "specificity": 0.9,
}  # fmt: skip
RANKED = COMMON | {
    "exposure": "off-policy", "models": "tilted", "gap": 1.5, "n_users": 1500, "length": 10, "sessions": "one",
    "mean_sessions": 1.0, "pareto": 1.5, "family": "yule", "steepness": 1.0, "fitted": True, "views": "depth",
    "positives": 0.2, "reward": "click", "reward_spread": 0.0, "logging_quality": 1.5, "logging_orders": 4,
    "with_log": True,
}  # fmt: skip
SURFACES = [("yule", 0.4), ("exp", 0.6)]
BIASED = LABELLED | {
    "exposure": "biased", "models": "partly", "n_models": 3, "floor": 0.05, "n_users": 400,
    "metrics": ["Precision@10", "DCG@10"],
}  # fmt: skip
ALIKE = {"popularity": 0.0, "taste": 0.0, "activity": 0.0, "quality": 0.0}  # every list is a random list

SETTINGS: dict[str, Parameters] = {
    "A1 position models: right family": RANKED,
    "A1 position models: two surfaces": RANKED | {"n_users": 6000, "surfaces": SURFACES},
    "A1 position models: two surfaces, with a column": RANKED | {
        "n_users": 6000, "surfaces": SURFACES, "with_surface": True,
    },
    "A1 position models: lists that end at 10": RANKED | {"family": "exp", "steepness": 0.95, "with_candidates": False},
    "A2 assisted: lists without hits": LABELLED | ALIKE | {
        "n_users": 100, "n_items": 500, "positives": 0.05, "judge": "good", "sensitivity": 0.97, "specificity": 0.995,
        "estimators": ["assisted"],
    },
    "A2 assisted: lists with few hits, DCG": LABELLED | ALIKE | {
        "n_users": 150, "n_items": 500, "positives": 0.07, "judge": "good", "sensitivity": 0.97, "specificity": 0.995,
        "metrics": ["DCG@10"], "estimators": ["assisted"], "shared_noise": 0.5,
    },
    "A4 hit rate bounds": LABELLED | {"n_users": 100, "metrics": ["HitRate@10"], "estimators": ["at-least", "at-most"]},
    "A6 users kept for their labels": LABELLED | {
        "n_users": 1500, "rows": 15, "positives": 0.07, "no_positives": 0.1, "activity": 0.8,
        "metrics": ["Precision@10", "Recall@10"], "kept_for_positives": True,
    },
    "A6 all users": LABELLED | {
        "n_users": 1500, "rows": 15, "positives": 0.07, "no_positives": 0.1, "activity": 0.8,
        "metrics": ["Precision@10", "Recall@10"],
    },
    "A7 AP without labelled pairs of hits": LABELLED | {
        "n_users": 1000, "rows": 5, "positives": 0.06, "metrics": ["AP@10(denominator=cutoff)"],
    },
    "A7 AP with few labelled pairs of hits": LABELLED | {
        "n_users": 1000, "rows": 12, "positives": 0.06, "metrics": ["AP@10(denominator=cutoff)"],
    },
    "A8 corrected": LABELLED | {
        "no_positives": 0.3, "activity": 1.2, "metrics": ["Recall@10"], "estimators": ["corrected"], "models": "partly",
        "n_models": 3,
    },
    "A9 six models": LABELLED | {"models": "partly", "n_models": 6, "n_users": 600, "gap": 0.4},
    "A11 labelled items go with taste": LABELLED | {
        "models": "partly", "n_models": 3, "activity": 1.2, "unequal_rows": "with activity", "rows_activity": 1.0,
        "metrics": ["Recall@10"], "estimators": ["pooled", "post-stratified"],
    },
    "A11 heavy-tailed predictions": LABELLED | {
        "models": "partly", "n_models": 3, "taste": 1.5, "judge": "scores", "estimators": ["assisted", "hajek"],
    },
    "A11 judge contains the labels": LABELLED | {
        "models": "partly", "n_models": 3, "judge": "contains labels", "metrics": ["Precision@10", "Recall@10"],
        "estimators": ["assisted", "hajek", "post-stratified"],
    },
    "A11 mild propensities": BIASED,
    "wrong propensities: means of items": BIASED | {"exposure_taste": 1.0, "stated": "means of items"},
    "wrong propensities: square roots": BIASED | {"exposure_taste": 1.0, "stated": "square roots"},
    "wrong propensities: all equal": BIASED | {"exposure_taste": 1.0, "estimators": ["naive"]},
}  # fmt: skip


def corner_environment(name: str) -> Environment:
    """The corner case with this name."""
    key = (1_000_000, zlib.crc32(name.encode()))  # of the name alone: a new corner case changes no other
    return CORNERS[name](name, key)


def _from_settings(name: str, key: tuple[int, ...]) -> Environment:
    p = SETTINGS[name]
    make = ranked_environment if p["exposure"] == "off-policy" else labelled_environment
    return make(name, key, p)


# -------------------------------------------------------------------------------------------------- search with a judge


def search_with_judge(name: str, key: tuple[int, ...]) -> Environment:
    """A3: 200 of all pairs in the top 10 of two runs have a human label, all of them one of a judge."""
    n_queries, n_population, n_documents, n_labels, k = 100, 1000, 1000, 200, 10
    rng = np.random.default_rng([SEED, *key, 2])
    relevant = rng.random((n_population, n_documents)) < rng.beta(1, 30, size=(n_population, 1))
    scores = {
        model: (signal * relevant + rng.normal(size=relevant.shape)).astype(np.float32)
        for model, signal in (("m0", 2.2), ("m1", 2.6))
    }
    tops = {model: np.argpartition(-table, k, axis=1)[:, :k] for model, table in scores.items()}
    is_listed = np.zeros(relevant.shape, dtype=bool)
    for top in tops.values():
        np.put_along_axis(is_listed, top, values=True, axis=1)
    judge = rng.random(relevant.shape) < np.where(relevant, 0.9, 0.3)
    metric = f"Precision@{k}"
    truth = {
        (model, metric, "users"): float(np.take_along_axis(relevant, top, axis=1).mean()) for model, top in tops.items()
    }
    documents, queries = np.arange(n_documents), np.arange(n_queries)

    def evaluate(rng: np.random.Generator) -> Any:
        query = rng.integers(n_population, size=n_queries)
        user, item = np.nonzero(is_listed[query])
        labelled = np.sort(rng.choice(len(user), n_labels, replace=False))
        rows = pl.DataFrame({
            "user": user[labelled], "item": item[labelled],
            "label": relevant[query[user[labelled]], item[labelled]].astype(float),
            "propensity": np.full(n_labels, n_labels / len(user)),
        })  # fmt: skip
        judged = pl.DataFrame({"user": user, "item": item, "label": judge[query[user], item].astype(float)})
        runs = {model: tr.scores.dense(table[query], users=queries, items=documents) for model, table in scores.items()}
        return tr.evaluate(runs, rows, exposure="designed", metrics=[metric], judge=judged, threads=1)

    p = COMMON | {
        "exposure": "designed",
        "models": "different",
        "n_users": n_queries,
        "metrics": [metric],
        "judge": "good",
    }
    return Environment(name, key, p, truth, evaluate)


# ------------------------------------------------------------------------------------------------- the default switch


def default_switch(name: str, key: tuple[int, ...]) -> Environment:
    """A10: the same labels with and without their last row, about where an earlier default changed the estimator."""
    p = LABELLED | {"n_users": 30, "n_items": 200, "rows": 20, "positives": 0.2, "models": "partly", "n_models": 3}
    whole = labelled_environment(name, key, p)
    shorter = labelled_environment(name, key, p | {"last_row_dropped": True})

    def evaluate(rng: np.random.Generator) -> Any:
        same_rng = copy.deepcopy(rng)
        parts = (
            _with_estimator(whole.evaluate(rng), "default"),
            _with_estimator(shorter.evaluate(same_rng), "default, one row less"),
        )
        return SimpleNamespace(
            estimates=[estimate for part in parts for estimate in part.estimates],
            comparisons=[pair for part in parts for pair in part.comparisons],
        )

    return Environment(name, key, p, whole.truth, evaluate)


def _with_estimator(results: Any, name: str) -> Any:
    """Results under another name of the estimator, so that those of two calls can stand side by side."""
    return SimpleNamespace(
        estimates=[replace(estimate, estimator=name) for estimate in results.estimates],
        comparisons=[replace(pair, estimator=name) for pair in results.comparisons],
    )


# ------------------------------------------------------------------------------------------------ interim analyses

STREAMS: dict[str, Parameters] = {
    "A5 watch: equal users": LABELLED | {"n_users": 800, "estimators": ["horvitz-thompson"]},
    "A5 watch: returning users": LABELLED | {
        "n_users": 500, "rows": 30, "n_items": 60, "unequal_rows": "with activity", "rows_activity": 1.0,
        "activity": 1.0, "models": "tilted", "gap": 1.0, "returning": True, "estimators": ["horvitz-thompson"],
    },
    "A5 watch: popular and niche list": COMMON | {
        "exposure": "biased", "n_users": 1000, "kinds": [(1.0, 0.15, 0.15)], "propensities": (0.3, 0.02),
        "estimators": ["ips"],
    },
    "A5 watch: few users lose much": COMMON | {
        "exposure": "full", "n_users": 1000, "kinds": [(0.9, 0.1, 0.0), (0.1, 0.0, 0.9)], "propensities": (1.0, 1.0),
    },
}  # fmt: skip


def _watched(name: str, key: tuple[int, ...]) -> Environment:
    make = watched_lists if "kinds" in STREAMS[name] else watched_population
    return make(name, key, STREAMS[name])


CORNERS: dict[str, Callable[[str, tuple[int, ...]], Environment]] = {
    **dict.fromkeys(SETTINGS, _from_settings),
    "A3 search with a judge": search_with_judge,
    **dict.fromkeys(STREAMS, _watched),
    "A10 default switch": default_switch,
}
