"""The picture of docs/watch.md: a stream of users, and what `tr.watch` says of it at 40 looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from truerank.report.charts import composed
from truerank.report.plans import watch_panels


def made() -> dict[str, Any]:
    scores, labels = stream()
    looks = [
        tr.watch(
            scores, labels.filter(pl.col("time") < n), require="new > old", metrics=["Precision@1"], planned=1000
        )
        for n in np.geomspace(450, 3000, 40).astype(int).tolist()
    ]  # fmt: skip
    return {"figures/watch.svg": composed(watch_panels(*looks), nothing="no look")}


def stream() -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """3,000 users who come one after the other; `new` puts what they like first for a few more of them than `old`."""
    rng = np.random.default_rng(9)
    n_users, n_items = 3000, 5
    user, item = (each.ravel() for each in np.indices((n_users, n_items)))
    tells = rng.random(n_users) < 0.25
    wins = rng.random(n_users) < 0.59
    first = {"new": np.where(tells & ~wins, 1, 0), "old": np.where(tells & wins, 1, 0)}
    scores = {
        name: pl.DataFrame({"user": user, "item": item, "score": (item == at[user]) - item / 10})
        for name, at in first.items()
    }
    labels = pl.DataFrame({"user": user, "item": item, "label": (item == 0).astype(int), "time": user})
    return scores, labels
