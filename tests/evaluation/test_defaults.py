"""The default estimators: by metric and by how labels were collected, and reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from refusals import refused

import truerank as tr
from truerank.core.errors import RefusedError
from truerank.core.messages import RULE
from truerank.core.results import Results
from truerank.inference.intervals import Design

N_ITEMS = 40


def shown(users: int, judged: int, *, seed: int = 0, like: float = 0.3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    item = np.concatenate([rng.choice(N_ITEMS, judged, replace=False) for _ in range(users)])
    label = (rng.random(users * judged) < like).astype(int)
    return pl.DataFrame({"user": np.repeat(np.arange(users), judged), "item": item, "label": label})


def asked(labels: pl.DataFrame, **more: Any) -> Results:
    rng = np.random.default_rng(1)
    n = int(labels["user"].max()) + 1  # type: ignore[arg-type]
    scores = {name: rng.normal(size=(n, N_ITEMS)) for name in ("a", "b")}
    given: dict[str, Any] = {"exposure": "random", "metrics": ["Recall@4", "Precision@4", "DCG@4"], **more}
    return tr.evaluate(scores, labels, **given)


def taken(results: Results) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for estimate in results.estimates:
        found.setdefault(estimate.metric, set()).add(estimate.estimator)
    return found


STEADY = {"Recall@4": {"post-stratified"}, "Precision@4": {"hajek"}, "DCG@4": {"hajek"}}


def test_pairs_are_usual_where_sums_cannot_give_it() -> None:
    """AP over K or over all relevant items, and AUC, have unbiased sums; AP over the smaller of both has none."""
    metrics = ["AP@4(denominator=cutoff)", "AP@4(denominator=positives)", "AUC"]
    results = asked(shown(60, 10), metrics=metrics)
    assert taken(results) == {metric: {"pairs"} for metric in metrics}
    (said,) = [message for message in results.messages if message.code == RULE]
    assert f"pairs ({', '.join(metrics)})" in str(said)
    with refused(r"AP@4: .* pairs estimates it", RefusedError):
        asked(shown(60, 10), metrics=["AP@4"])


def test_who_cannot_give_it_is_passed_over() -> None:
    """With strict ties the places of a list are not known."""
    strict = asked(shown(60, 10), ties="strict", metrics=["Recall@4"])
    assert taken(strict) == {"Recall@4": {"pooled"}}
    assert taken(asked(shown(60, 10), interval=Design())) == STEADY
