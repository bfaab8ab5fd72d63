"""What a notebook shows of results: the answer first, and all that has to be known before it is trusted."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

import truerank as tr

HOSTILE = "<img src=x onerror=alert(1)>&\x1b[31m"


def _results() -> tr.Results:
    rng = np.random.default_rng(3)
    truth = rng.random((60, 20)) < 0.2
    user, item = (part.ravel() for part in np.indices(truth.shape))
    labels = pl.DataFrame({"user": user, "item": item, "label": truth.ravel().astype(int)})
    judged = labels.filter(pl.Series(rng.random(len(labels)) < 0.5))
    scores = {"good": truth + rng.normal(0, 0.3, truth.shape), HOSTILE: rng.normal(size=truth.shape)}
    return tr.evaluate(
        scores, judged, exposure="random", metrics=["Recall@5"], estimators=["pooled", "published"], baseline=HOSTILE
    )


def test_names_are_text_and_nothing_else_is_loaded() -> None:
    shown = _results()._repr_html_()
    assert all(each.startswith('<img alt="') for each in re.findall("<img[^>]*", shown))  # the picture alone
    assert shown.count("<img") == shown.count('src="data:image/svg+xml;base64,') <= 1
    assert "\x1b" not in shown
    assert not re.search(r"<script|https?://|javascript:", shown)
    assert (
        shown.count("<table>") == shown.count("</table>") == 5
    )  # the answer, then estimates and differences of two estimators
