"""Position bias from clicks: found where it is identified, refused where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.core.errors import InputError, RefusedError
from truerank.exposure.positions.fits_clicks import Clicks, fit_clicks, fit_harvest
from truerank.exposure.positions.position_models import Table
from truerank.io.impressions import Logged

THETA, QUALITY = np.array([1.0, 0.5, 0.2]), np.array([0.9, 0.6, 0.3])


def exact_rows(shown: dict[tuple[int, int], int]) -> Clicks:
    """Impressions of (item, rank) whose click rates are exactly θ q."""
    item, rank, click = [], [], []
    for (i, r), n in shown.items():
        hits = round(n * THETA[r - 1] * QUALITY[i])
        item += [i] * n
        rank += [r] * n
        click += [1] * hits + [0] * (n - hits)
    return Clicks.of(item, rank, click, logged=Logged.DISPLAYED)


@pytest.mark.parametrize("fit", [fit_clicks, fit_harvest])
def test_exact_rates_give_exact_bias(fit: object) -> None:
    rows = exact_rows({(0, 1): 100, (0, 2): 100, (1, 2): 100, (1, 3): 200, (2, 1): 100, (2, 3): 1000})
    found = fit(rows)  # type: ignore[operator]
    np.testing.assert_allclose([each.value for each in found.parameters], THETA, atol=1e-5)
    assert isinstance(found.model, Table)
    assert found.goodness.statistic == pytest.approx(0, abs=1e-4)
    assert len(found.goodness.buckets) == 3


@pytest.mark.parametrize("fit", [fit_clicks, fit_harvest])
def test_ranks_that_no_item_connects_are_refused(fit: object) -> None:
    rows = exact_rows({(0, 1): 100, (0, 2): 100, (1, 3): 200})
    with pytest.raises(RefusedError, match="rank 3 shares no clicked item with rank 1"):
        fit(rows)  # type: ignore[operator]


def test_an_item_without_clicks_connects_nothing() -> None:
    rows = Clicks.of([0, 0, 1, 1, 2], [1, 1, 1, 2, 2], [1, 0, 0, 0, 1], logged=Logged.DISPLAYED)
    with pytest.raises(RefusedError, match="rank 2 shares no clicked item"):
        fit_clicks(rows)


def test_logs_of_viewed_items_are_refused() -> None:
    with pytest.raises(RefusedError, match="only viewed items"):
        Clicks.of([1], [1], [1], logged=Logged.VIEWED)


def test_wrong_rows_are_refused() -> None:
    with pytest.raises(InputError, match="neither 0 nor 1"):
        Clicks.of([1], [1], [0.5], logged=Logged.DISPLAYED)
    with pytest.raises(InputError, match="position below 1"):
        Clicks.of([1], [0], [1], logged=Logged.DISPLAYED)
    with pytest.raises(InputError, match="expected as many"):
        Clicks.of([1, 2], [1], [1], logged=Logged.DISPLAYED)
    with pytest.raises(RefusedError, match="no click"):
        fit_clicks(Clicks.of([1], [1], [0], logged=Logged.DISPLAYED))
    with pytest.raises(RefusedError, match="nothing was displayed at rank 2"):
        fit_clicks(Clicks.of([1, 1], [1, 3], [1, 1], logged=Logged.DISPLAYED))


def test_few_impressions_are_told() -> None:
    rows = exact_rows({(0, 1): 100, (0, 2): 100, (1, 2): 10, (1, 1): 5})
    assert "1 items have fewer" in fit_clicks(rows).notes[0]
