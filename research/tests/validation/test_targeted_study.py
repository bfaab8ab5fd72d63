"""What targeted exposure saves: the committed results hold their bars, and a draw is what it is by hand."""

from __future__ import annotations

import numpy as np

from truerank_research.runner import committed
from truerank_research.validation.targeted_exposure import (
    BARS,
)

COMMITTED = committed("targeted-exposure")


def test_the_committed_results_hold_their_bars() -> None:
    """Known models a tenth of the variance of uniform exposure, others seven tenths, a random list twice."""
    result = COMMITTED
    kinds = {row["kind"]: row for row in result.rows("kinds")}
    assert {kind: row["bar"] for kind, row in kinds.items()} == BARS
    assert all(row["share"] <= row["bar"] for row in kinds.values())
    assert all(row["covered"] >= 0.93 for kind, row in kinds.items() if kind != "random list")
    biases = [abs(row["bias"]) for row in result.rows("questions")]
    assert np.mean(biases) < 1.5  # in standard errors: 0.8 where there is none
    assert max(biases) < 5
    # like with like: what Hájek itself gains by the design is less than what it gains on Horvitz-Thompson
    hajek = [row for row in result.rows("questions") if row["estimator"] == "hajek"]
    assert all(row["like"] >= row["share"] for row in hajek)
    assert kinds["known"]["like"] <= 0.1
