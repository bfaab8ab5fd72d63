"""Fits of position models recover known parameters."""

from __future__ import annotations

import numpy as np
import pytest

from truerank_research.runner import Run, committed
from truerank_research.validation.position_fits import (
    DEPTHS,
    METHODS,
    PlantedDepths,
    click_rows,
    fit_with_bootstrap,
    fits_of,
    planted_bias,
)


@pytest.mark.parametrize("case", DEPTHS, ids=str)
def test_planted_parameters_are_recovered(case: PlantedDepths) -> None:
    """A quick look; the slow test counts 2,000 fits."""
    found = fits_of([(case, 25)], seed=20261116, run=Run())[0][:, 0]
    held = (found[:, 1] <= case.value) & (case.value <= found[:, 2])
    assert held.mean() >= 0.8
    assert abs(np.median(np.log(found[:, 0] / case.value))) < 0.25


def test_committed_intervals_of_depth_fits_cover() -> None:
    """93 to 97 % of 2,000 fits of every family, with and without censoring, with and without features."""
    result = committed("position-fits")
    rows = [*result.rows("depths"), *result.rows("features")]
    assert len(rows) == len(DEPTHS) + 9
    assert all(0.93 <= row["coverage"] <= 0.97 for row in rows)


@pytest.mark.parametrize("method", METHODS)
def test_planted_bias_is_recovered_with_a_bootstrap(method: str) -> None:
    theta, rows = planted_bias()[1:], click_rows(np.random.default_rng(2))
    value, _, _, stderr = fit_with_bootstrap(method, rows, replicates=20, seed=1)[1:].T
    assert (np.abs(value - theta) < 4 * stderr).all()
    assert (np.abs(value / theta - 1) < 0.2).all()
