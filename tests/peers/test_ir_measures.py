"""On full labels every metric that ir-measures has agrees with theirs, or differs in a stated way."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import cache
from typing import Any

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, ERR, RR, Accuracy, P, R, Rprec, Success, nDCG
from peer_world import N_ITEMS, N_USERS, per_user, world

import truerank as tr
from truerank.core.arrays import Floats
from truerank.core.metric import Metric
from truerank.core.options import Denominator, Gain
from truerank.metrics.additive import Precision, Recall
from truerank.metrics.listwise import NDCG, HitRate, ReciprocalRank, RPrecision
from truerank.metrics.pairwise import AUC, AveragePrecision

CUTOFFS = (1, 5, 10, 60)
ITEMS = [f"i{item:02d}" for item in range(N_ITEMS)]
USERS = [str(user + 1) for user in range(N_USERS)]  # the script behind ERR wants numbers


@cache
def files(*, short: bool) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Relevance grades of all pairs, and the scores of those that are recommended."""
    given = world(0)
    scores = given.short if short else given.free
    grades = {user: dict(zip(ITEMS, map(int, row), strict=True)) for user, row in zip(USERS, given.grades, strict=True)}
    run = {
        user: {item: float(score) for item, score in zip(ITEMS, row, strict=True) if np.isfinite(score)}
        for user, row in zip(USERS, scores, strict=True)
    }
    return grades, run


# -------------------------------------------------------------------------------------------------------- ir-measures

EXACT: dict[Any, Metric] = {
    **{P @ k: Precision(k) for k in CUTOFFS},
    **{R @ k: Recall(k) for k in CUTOFFS},
    **{Success @ k: HitRate(k) for k in CUTOFFS},
    **{AP @ k: AveragePrecision(k, Denominator.POSITIVES) for k in CUTOFFS},
    **{RR @ k: ReciprocalRank(k) for k in CUTOFFS},
    **{nDCG @ k: NDCG(k, Gain.LINEAR) for k in CUTOFFS},
    AP: AveragePrecision(N_ITEMS),
    RR: ReciprocalRank(),
    Rprec: RPrecision(),
    Accuracy: AUC(),
}
# the Perl script behind these prints five decimals
ROUNDED: dict[Any, Metric] = {
    **{ERR @ k: tr.metrics.ERR(k, highest=4) for k in CUTOFFS},
    **{nDCG(dcg="exp-log2") @ k: NDCG(k, Gain.EXPONENTIAL) for k in (1, 5, 10)},
}


MEASURES = [*EXACT, *(ROUNDED if shutil.which("perl") else {})]


@cache
def theirs(*, short: bool) -> Mapping[str, Floats]:
    """Every measure for each user; 0 for a user it leaves out."""
    found = {str(measure): np.zeros(N_USERS) for measure in MEASURES}
    place = {user: at for at, user in enumerate(USERS)}
    for each in ir_measures.iter_calc(MEASURES, *files(short=short)):
        found[str(each.measure)][place[each.query_id]] = each.value
    return found


CASES = [(each, short) for each in MEASURES for short in (False, True) if not (each is Accuracy and short)]


@pytest.mark.parametrize(("measure", "short"), CASES, ids=str)
def test_equals_ir_measures_for_each_user(measure: Any, short: bool) -> None:
    given = world(0)
    metric = EXACT[measure] if measure in EXACT else ROUNDED[measure]
    found = per_user(metric, given, given.short if short else given.free)
    kept = ~given.empty
    tolerance = 1e-9 if measure in EXACT else 5.1e-6
    np.testing.assert_allclose(found[kept], theirs(short=short)[str(measure)][kept], rtol=0, atol=tolerance)


def test_accuracy_of_ir_measures_leaves_out_what_was_not_retrieved() -> None:
    # here an item that is never recommended is tied at the bottom, and the pairs it is in count
    given = world(0)
    ours, measured = per_user(AUC(), given, given.short), theirs(short=True)[str(Accuracy)]
    whole = np.isfinite(given.short).all(axis=1) & ~given.empty
    assert np.abs(ours - measured)[~given.empty & ~whole].max() > 0.1
    np.testing.assert_allclose(ours[whole], measured[whole], rtol=0, atol=1e-9)
