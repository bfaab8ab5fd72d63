"""Results and pages to look at: small ones of every kind, with names that mean harm, and very large ones."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from small_study import small_grid, small_scores, small_train, small_world

import truerank as tr
from truerank.core.results import BETTER, NOT_SHOWN, Comparison, Estimate, Evidence, Results
from truerank.metrics.additive import Recall
from truerank.metrics.listwise import NDCG
from truerank.reliability import study
from truerank.simulation.feed import FeedSettings, make_feed
from truerank.simulation.feed_truth import draw_log, log_table, target_table

SIZED = ("Random", "Popularity", "Positivity", "WTD", "WTDH", "Skew")
SIZELESS = ("Full", "Exposed", "Random@e")
HOSTILE = (
    "<script>window.harmed = 1</script>",
    "</script><img src=x onerror='window.harmed = 2'>",
    "{{7*7}} ${7*7} \"quoted\" 'single' `back` \\",
    "שלום עולם",
    '🦊 =HYPERLINK("http://x.test")',
)


@cache
def judged(names: tuple[str, ...] = ("als", "ease", "pop"), *, n_users: int = 120, n_items: int = 40) -> Results:
    """An evaluation from randomly exposed items: models that differ, several cut-offs, units and groups held."""
    rng = np.random.default_rng(3)
    truth = rng.random((n_users, n_items)) < rng.random(n_items) * 0.5
    shown = [np.sort(rng.permutation(n_items)[: 6 + user % 9]) for user in range(n_users)]
    labels = pl.DataFrame(
        [(f"u{user}", f"i{item}", int(truth[user, item])) for user, items in enumerate(shown) for item in items],
        schema=["user", "item", "label"],
        orient="row",
    )
    users, items = [f"u{at}" for at in range(n_users)], [f"i{at}" for at in range(n_items)]
    models = {
        name: tr.scores.dense(truth + rng.normal(size=truth.shape) * (0.6 + at), users=users, items=items)
        for at, name in enumerate(names)
    }
    metrics = ["Recall@1", "Recall@5", "Recall@10", "Precision@5"]
    return tr.evaluate(models, labels, exposure="random", metrics=metrics)


@cache
def ranked() -> Results:
    """An off-policy evaluation of a small feed: a fitted position model, several clips, weights and support."""
    feed = make_feed(FeedSettings(sessions=300), seed=1)
    log = draw_log(feed, seed=2)
    targets = {name: target_table(feed, log, name) for name in ("better", "worse", "logging")}
    return tr.off_policy(
        log_table(feed, log), targets, position="fit:yule", clips=[1.0, 4.0, math.inf], baseline="logging"
    )


def studied(folder: Path) -> Path:
    """A finished reliability study of a tiny world."""
    out, world = folder / "study", small_world()
    grid = replace(small_grid(), metrics=(NDCG(100), Recall(3)))
    study(small_scores(world), world, out, grid=grid, train=small_train(), resamples=20)
    return out


def large(n_models: int, n_metrics: int) -> Results:
    """So many models compared with one baseline at so many metrics, as an evaluation would give them."""
    rng = np.random.default_rng(0)
    value = rng.random((n_models, n_metrics))
    names = [f"model-{at:04}" for at in range(n_models)]
    estimates = tuple(
        Estimate(
            model=name, metric=f"Recall@{k + 1}", k=k + 1, estimator="full", estimand=f"mean Recall@{k + 1} over users",
            value=float(value[at, k]), stderr=0.01, low=float(value[at, k]) - 0.02, high=float(value[at, k]) + 0.02,
            level=0.95, interval="population", units=1000, undefined=0, clusters=1000,
            evidence=Evidence(informative=900, df=500.0, largest=0.01), ess=None, reward="label", clip=None,
            assumptions=("every candidate is labelled",), warnings=(),
        )
        for k in range(n_metrics) for at, name in enumerate(names)
    )  # fmt: skip
    differences = value[1:] - value[0]
    comparisons = tuple(
        Comparison(
            model=name, baseline=names[0], metric=f"Recall@{k + 1}", estimator="full",
            difference=float(differences[at, k]), stderr=0.01, low=float(differences[at, k]) - 0.02,
            high=float(differences[at, k]) + 0.02, level=0.95, p=float(rng.random()), p_adjusted=math.nan,
            family=n_models - 1, units=1000, clusters=1000, evidence=Evidence(informative=400, df=300.0, largest=0.02),
            reward="label", clip=None, verdict=BETTER if differences[at, k] > 0.02 else NOT_SHOWN,
        )
        for k in range(n_metrics) for at, name in enumerate(names[1:])
    )  # fmt: skip
    return Results(estimates, comparisons)
