"""Values in one walk are the values one by one, to the last bit, for every metric of the catalogue."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import labelled
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st

from truerank import metrics
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.options import Denominator, Ideal
from truerank.core.ranking import Ranks
from truerank.metrics.average_precision import AveragePrecision
from truerank.metrics.discounts import unit_values
from truerank.metrics.ndcg import NDCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.metrics.tables import unit_values_of

FORMS = ("", "@1", "@3", "@20", "@0.7")


def every_metric() -> list[Metric]:
    found: list[Metric] = []
    for name in labelled():
        for form in FORMS:
            try:
                found.append(metrics.parse(name + form))
            except InputError:
                continue
    found += [AveragePrecision(5, Denominator.POSITIVES), AveragePrecision(5, Denominator.CUTOFF)]
    found += [NDCG(5, ideal=Ideal.CUTOFF), Recall(5, Denominator.SMALLER), Precision(5, Denominator.LIST)]
    return found


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Log, Ranks]:
    """Units with none or many relevant items, some tied, some never recommended, some sharing a rank.

    Ranks fill one word of bits, or several.
    """
    n_units, n_items = draw(st.integers(1, 6)), draw(st.integers(1, 30) | st.integers(60, 200))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    above = np.argsort(rng.random((n_units, n_items)), axis=1).astype(float)
    tied = np.zeros_like(above)
    kind = draw(st.sampled_from(["distinct", "tied", "shared"]))
    if kind != "distinct":
        group = above // 3 * 3
        size = np.minimum(n_items - group, 3)
        some = rng.random((n_units, 1)) < 0.5
        above = np.where(some, group if kind == "tied" else group + size - 1, above)
        tied = np.where(some & (kind == "tied"), size - 1, 0)
    never = rng.random(above.shape) < draw(st.sampled_from([0, 0.2]))
    above, tied = np.where(never, np.inf, above), np.where(never, 0, tied)
    label = (rng.random(above.shape) < draw(st.sampled_from([0, 0.2, 1]))).astype(float)
    user, item = (axis.ravel() for axis in np.indices(above.shape))
    log = Log(
        Ids.of(np.arange(n_units)), Ids.of(np.arange(n_items)), user, item, {"label": label.ravel()}, complete=True
    )
    size = np.full(n_units, float(n_items))
    return log, Ranks(above.ravel(), tied.ravel().astype(float), size, size, size > 0)


@given(worlds())
@examples(150)
def test_one_walk_gives_every_value(case: tuple[Log, Ranks]) -> None:
    log, ranks = case
    asked = every_metric()
    found = unit_values_of(asked, log, ranks, fast=True)
    for metric in asked:
        alone: Any = unit_values(metric, log, ranks)
        assert np.array_equal(found[metric], alone, equal_nan=True), metric


def test_most_metrics_are_walked() -> None:
    """A control: the walk is not by-passed."""
    from truerank.metrics.tables import Walked

    assert sum(isinstance(each, Walked) for each in every_metric()) >= 12
