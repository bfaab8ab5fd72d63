"""Position bias from clicks: found where it is identified, refused where it is not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from refusals import refused

from truerank.core.errors import RefusedError
from truerank.exposure.positions.fits import ClickCells, fit_clicks, fit_harvest
from truerank.exposure.positions.position_models import Table

THETA, QUALITY = np.array([1.0, 0.5, 0.2]), np.array([0.9, 0.6, 0.3])


def impressions(rows: list[tuple[int, int, float, float]]) -> ClickCells:
    """Of item, rank, clicks and impressions without one."""
    table = pl.DataFrame(rows, schema=["item", "rank", "clicks", "others"], orient="row")
    return ClickCells.from_table(table.with_columns(pl.col("rank") - 1, pl.col("clicks", "others").cast(float)))


def exact_rows(displayed: dict[tuple[int, int], int]) -> ClickCells:
    """Impressions of (item, rank) whose click rates are exactly θ q."""
    hits = {(item, rank): round(n * THETA[rank - 1] * QUALITY[item]) for (item, rank), n in displayed.items()}
    return impressions([(*cell, hits[cell], n - hits[cell]) for cell, n in displayed.items()])


@pytest.mark.parametrize("fit", [fit_clicks, fit_harvest])
def test_exact_rates_give_exact_bias(fit: object) -> None:
    rows = exact_rows({(0, 1): 100, (0, 2): 100, (1, 2): 100, (1, 3): 200, (2, 1): 100, (2, 3): 1000})
    found = fit(rows)  # type: ignore[operator]
    np.testing.assert_allclose([parameter.value for parameter in found.parameters], THETA, atol=1e-5)
    assert isinstance(found.model, Table)
    assert found.goodness.statistic == pytest.approx(0, abs=1e-4)
    assert len(found.goodness.buckets) == 3


@pytest.mark.parametrize("fit", [fit_clicks, fit_harvest])
def test_ranks_that_no_item_connects_are_refused(fit: object) -> None:
    rows = exact_rows({(0, 1): 100, (0, 2): 100, (1, 3): 200})
    with refused("rank 3 shares no clicked item with rank 1", RefusedError):
        fit(rows)  # type: ignore[operator]


def test_clicks_that_tell_nothing_are_refused() -> None:
    with refused("no click", RefusedError):
        fit_clicks(impressions([(1, 1, 0, 1)]))
    with refused("nothing was displayed at rank 2", RefusedError):
        fit_clicks(impressions([(1, 1, 1, 0), (1, 3, 1, 0)]))


def test_few_impressions_are_told() -> None:
    rows = exact_rows({(0, 1): 100, (0, 2): 100, (1, 2): 10, (1, 1): 5})
    assert "1 items have fewer" in fit_clicks(rows).notes[0]
