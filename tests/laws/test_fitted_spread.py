"""Standard errors under fitted propensities, against the spread between samples of users of one population."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.exposure import BiasedExposure

SAMPLES, USERS, ITEMS = 60, 300, 40


@pytest.mark.slow
@pytest.mark.parametrize("propensity", ["power:0.5", "power:1", "logistic"])
def test_reported_errors_are_the_spread_between_samples(propensity: str) -> None:
    rng = np.random.default_rng(41)
    shape = (SAMPLES * USERS, ITEMS)
    popular = (1 - np.arange(ITEMS) / ITEMS) ** 2
    label = rng.random(shape) < 0.04 + 0.4 * popular
    shown = rng.random(shape) < 0.06 + 0.5 * popular
    scores = 0.8 * label + popular + 0.7 * rng.standard_normal(shape)
    value, stderr = [], []
    features = pl.DataFrame({"item": np.arange(ITEMS), "popular": popular}) if propensity == "logistic" else None
    exposure = BiasedExposure(propensity, item_features=features)
    for part in np.split(np.arange(len(label)), SAMPLES):
        user, item = np.nonzero(shown[part])
        log = tr.read(pl.DataFrame({"user": user, "item": item, "label": label[part][user, item].astype(float)}))
        model = tr.scores.dense(scores[part], users=range(USERS), items=range(ITEMS))
        found = tr.evaluate({"m": model}, log, exposure=exposure, metrics=["Recall@10"], estimators=["snips"])
        value.append(found.estimates[0].value)
        stderr.append(found.estimates[0].stderr)
    # the spread of 60 values is known to about 9 %; a jackknife errs on the wide side
    assert 0.75 < np.sqrt(np.mean(np.square(stderr))) / np.std(value, ddof=1) < 1.4
