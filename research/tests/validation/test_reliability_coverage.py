"""Intervals of a reliability study of some users, held against the study of everybody."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from truerank_research.runner import committed
from truerank_research.validation.reliability_coverage import COLUMNS, KEY, figures, measured

COMMITTED = committed("reliability-coverage")


def test_the_committed_results_are_what_the_guide_says() -> None:
    """One repetition: most intervals do what they say. Four: they are wider than they need to be."""
    rows = COMMITTED.rows("figures")
    by_users = [row for row in rows if row["kind"] != "of means"]
    assert len(by_users) == 20
    assert all(0.93 <= row["median"] <= 0.97 for row in by_users if row["repetitions"] == 1)
    assert all(row["median"] > 0.955 for row in by_users if row["repetitions"] == 4)
    assert all(row["median"] > 0.99 for row in rows if row["kind"] == "of means")


def test_coverage_by_hand() -> None:
    """Three studies of two scenarios: one varies around .5 and is held twice; one is always 1, and nothing to cover."""
    scenario = {"logger": "uniform", "sparsity": 0.5, "sampler": "Random", "size": 5, "question": "fidelity"}
    truth = pl.DataFrame(
        [{**scenario, "value": 0.5}, {**scenario, "sampler": "Full", "size": None, "value": 1.0}]
    ).with_columns(value_undefined_as_0=pl.lit(math.nan), tau_of_means=pl.lit(math.nan))
    assert set(KEY) < set(truth.columns)
    runs = np.full((3, 2, len(COLUMNS)), math.nan)
    runs[:, 0, :3] = [(0.4, 0.3, 0.5), (0.5, 0.4, 0.6), (0.7, 0.6, 0.8)]
    runs[:, 1, :3] = 1.0
    found = measured(truth, runs, 1)
    (row,) = found.to_dicts()
    assert (row["sampler"], row["kind"]) == ("Random", "mean over users")
    assert row["covered"] == pytest.approx(2 / 3)
    assert row["mean"] == pytest.approx(1.6 / 3)
    assert row["sd"] == pytest.approx(np.std([0.4, 0.5, 0.7], ddof=1))
    (figure,) = figures(found)
    assert (figure["rows"], figure["least"]) == (1, pytest.approx(2 / 3))
    assert figure["bias"] == pytest.approx((1.6 / 3 - 0.5) / row["sd"])
