"""All pairs of many models: fast enough to be waited for, all of them in the results, few of them in a table."""

from __future__ import annotations

import gc

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.results import Results
from truerank.report import frames


def _compared(n_models: int, n_users: int = 1000, n_items: int = 20) -> Results:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(n_users, n_items))
    scores = {f"m{at:04d}": truth * (at / n_models) + rng.normal(size=truth.shape) for at in range(n_models)}
    user, item = np.divmod(np.arange(truth.size), n_items)
    labels = {"user": user, "item": item, "label": (truth.ravel() > 1).astype(int)}
    return tr.evaluate(scores, pl.DataFrame(labels), metrics=["Recall@10"])


def test_a_table_shows_the_highest_and_says_where_the_rest_is() -> None:
    results = _compared(40, n_users=30)
    assert len(results.comparisons) == 780
    text, html = str(results), results._repr_html_()
    said = "The highest 20 of 40 models; the others are in JSON and CSV."
    assert said in text
    assert said in html
    best = max(results.estimates, key=lambda each: each.value)
    assert best.model in text
    assert results.comparisons_table().height == 780
    assert frames.csv(results).count(b"comparison") == 780


def test_a_table_that_can_be_read_is_whole() -> None:
    results = _compared(20, n_users=30)
    assert "The highest" not in str(results)


@pytest.mark.slow
def test_half_a_million_pairs() -> None:
    """How long that takes is measured by `python -m benchmarks pairs`."""
    results = _compared(1000)
    assert len(results.comparisons) == 499_500
    assert len(str(results)) < 50_000


def test_garbage_is_collected_again_afterwards() -> None:
    assert gc.isenabled()
    _compared(2, n_users=5)
    assert gc.isenabled()
