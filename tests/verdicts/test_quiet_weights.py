"""The warning of heavy rows that happen not to be relevant fires where coverage suffers, and not elsewhere (A11)."""

from __future__ import annotations

import numpy as np
import polars as pl

import truerank as tr

N_USERS, N_ITEMS, K = 150, 60, 10
CODE = "quiet-weights"


def estimates(seed: int, exposure: str) -> list[tuple[bool, bool]]:
    """Whether an interval covers the truth, and whether the estimate carries the warning, of two models."""
    rng = np.random.default_rng((17, seed))
    taste = rng.normal(size=(N_USERS, N_ITEMS))
    probability = 0.9 / (1 + np.exp(2.0 - 2.0 * taste))
    relevant = rng.random(probability.shape) < probability
    propensity = {
        "taste": np.clip(0.01 + 1.6 * probability, 0.01, 0.9),  # what users like is shown to them
        "rare": np.broadcast_to(np.where(rng.random(N_ITEMS) < 0.15, 0.005, 0.3), probability.shape),
    }[exposure]
    user, item = np.nonzero(rng.random(probability.shape) < propensity)
    labels = pl.DataFrame({
        "user": user, "item": item, "label": relevant[user, item].astype(int), "propensity": propensity[user, item],
    })  # fmt: skip
    scores = {"good": taste + rng.normal(size=taste.shape), "random": rng.normal(size=taste.shape)}
    results = tr.evaluate(
        {
            name: tr.scores.dense(each, users=range(N_USERS), items=range(N_ITEMS)) for name, each in scores.items()
        },
        tr.read(labels, users=range(N_USERS)),
        exposure="biased",
        metrics=[f"Precision@{K}"],
        estimators=["ips", "snips"],
        threads=1,
    )  # fmt: skip
    found = []
    for estimate in results.estimates:
        listed = (-scores[estimate.model]).argsort(axis=1).argsort(axis=1) < K
        truth = (relevant & listed).sum() / (K * N_USERS)
        found.append((estimate.low <= truth <= estimate.high, CODE in {each.code for each in estimate.warnings}))
    return found


def test_heavy_rows_that_are_seldom_relevant_raise_no_alarm() -> None:
    """Exposure that follows taste: heavy rows are those that users do not like, and intervals cover the truth."""
    found = np.array([each for seed in range(25) for each in estimates(seed, "taste")])
    covered, warned = found.mean(axis=0)
    assert covered >= 0.93
    assert warned <= 0.05


def test_it_fires_where_intervals_miss() -> None:
    """A seventh of the items is shown once in 200 times: most intervals that miss carry a warning that covers them."""
    found = np.array([each for seed in range(25) for each in estimates(seed, "rare")])
    covered, warned = found[:, 0], found[:, 1]
    assert warned.mean() >= 0.1
    assert covered[warned].mean() < covered[~warned].mean() - 0.1
