"""What has no honest answer is left out and said; only where nothing is left, the call is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.errors import RefusedError
from truerank.exposure.policies.targets import RankColumn

LABELS = pl.DataFrame({"user": [0, 0, 1, 1], "item": [0, 1, 0, 2], "label": [1, 0, 1, 0]})
SCORES = np.arange(6.0).reshape(2, 3)


def left_out(results: tr.Results) -> list[str]:
    return [str(message) for message in results.messages if message.code in ("left-out-question", "left-out")]


def test_a_metric_that_partial_labels_cannot_give() -> None:
    results = tr.evaluate({"m": SCORES}, LABELS, exposure="random", metrics=["HitRate@1", "Recall@1"])
    assert [estimate.metric for estimate in results.estimates] == ["Recall@1"]
    (said,) = left_out(results)
    assert said.startswith("excluded: HitRate@1 with horvitz-thompson")
    assert said in " ".join(str(results).split())
    with pytest.raises(RefusedError, match="HitRate@1 with horvitz-thompson"):
        tr.evaluate({"m": SCORES}, LABELS, exposure="random", metrics=["HitRate@1"])


def test_an_estimator_of_ranked_logs_beside_another() -> None:
    log = pl.DataFrame(
        {
            "session": [1, 1, 2, 2],
            "item": [1, 2, 1, 2],
            "position": [1, 2, 1, 2],
            "reward": [1, 0, 0, 1],
            "new": [2, 1, 2, 1],
        }
    )
    targets = {"new": RankColumn("new")}
    results = tr.off_policy(log, targets, position="exp:0.5", estimators=["snips", "ips"])
    assert {estimate.estimator for estimate in results.estimates} == {"ips"}
    assert left_out(results)[0].startswith("excluded: new with snips: a value per session needs all items")
    with pytest.raises(RefusedError, match="snips: a value per session needs all items"):
        tr.off_policy(log, targets, position="exp:0.5", estimators=["snips"])
