"""The hit rate has no estimate and no bounds from partial labels: it is refused, with what to use (finding A4)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.errors import RefusedError


def partial_labels() -> tuple[dict[str, np.ndarray], pl.DataFrame]:
    rng = np.random.default_rng(0)
    n_users, n_items = 60, 40
    scores = {name: rng.normal(size=(n_users, n_items)) for name in ("a", "b")}
    items = np.argsort(rng.random((n_users, n_items)), axis=1)[:, :10].ravel()
    labels = pl.DataFrame({"user": np.repeat(np.arange(n_users), 10), "item": items, "propensity": 0.25})
    return scores, labels.with_columns(label=pl.Series((rng.random(len(items)) < 0.3).astype(int)))


@pytest.mark.parametrize("exposure", ["random", "designed", "biased"])
def test_hit_rate_from_partial_labels_names_what_to_use(exposure: str) -> None:
    scores, labels = partial_labels()
    given = labels.drop("propensity") if exposure == "random" else labels
    with pytest.raises(RefusedError) as refused:
        tr.evaluate(scores, given, exposure=exposure, metrics=["HitRate@5"])
    assert "Recall" in str(refused.value)
    assert "Precision" in str(refused.value)
    assert "bound" not in str(refused.value)


def test_all_labels_give_it() -> None:
    scores, _ = partial_labels()
    user, item = np.divmod(np.arange(60 * 40), 40)
    every = pl.DataFrame({"user": user, "item": item, "label": (item % 7 == 0).astype(int)})
    assert 0 < tr.evaluate(scores, every, metrics=["HitRate@5"]).estimates[0].value <= 1
