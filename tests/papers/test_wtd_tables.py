"""The rank correlations of the WTD paper (tables 3 and 4) follow from its values (table 2), by the study's own τ-b.

The ground truth takes the place of the full candidates, the test sets those of the samplers.
"""

from __future__ import annotations

import numpy as np
import pytest

from truerank.studies.reliability.order_of_means import GroupSums, OrderOfMeans, Resampling

SETS = ("FULL", "REG", "SKEW", "WTD", "WTD_H")
# recommender: 1000 times the recall on the ground truth, then percentage difference of each test set from it
COAT = {
    "PosPop": (66, 133, 124, 13, 1, -43),
    "AvgRating": (68, 61, 53, 31, 6, 24),
    "UB_KNN": (67, 229, 225, 112, 90, 34),
    "IB_KNN": (73, 236, 227, 105, 82, 26),
    "MF": (63, 180, 176, 179, 123, 102),
}
WEBSCOPE = {
    "PosPop": (56, 280, 272, -14, -68, -79),
    "AvgRating": (16, -77, -77, -50, -51, -49),
    "UB_KNN": (73, 273, 265, 35, -9, -24),
    "IB_KNN": (71, 313, 306, 45, -2, -17),
    "MF": (77, 258, 252, 90, 66, 52),
}
ALL, WITHOUT_MF = tuple(COAT), tuple(name for name in COAT if name != "MF")
UNIT = 1000  # sums are whole numbers, and what differs by no more than their rounding counts as equal


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("table", "models", "printed"),
    [
        (COAT, ALL, (0.2, 0.2, 0, 0, 0)),
        (WEBSCOPE, ALL, (0.6, 0.6, 0.8, 0.8, 0.8)),
        (COAT, WITHOUT_MF, (1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3)),
        (WEBSCOPE, WITHOUT_MF, (2 / 3,) * 5),  # printed as 0.68, which no order of four gives
    ],
    ids=["Coat", "Webscope", "Coat without MF", "Webscope without MF"],
)
def test_printed_correlations(
    table: dict[str, tuple[int, ...]],
    models: tuple[str, ...],
    printed: tuple[float, ...],
    fast: bool,
) -> None:
    truth = np.array([table[name][0] for name in models])
    difference = np.array([table[name][1:] for name in models]).T
    values = UNIT * np.vstack([100 * truth, truth * (100 + difference)])  # [truth and sets x models]
    sums = GroupSums(values[None, None], users=np.ones(1, dtype=np.int64))
    order = OrderOfMeans((sums,), Resampling(2), scale=1e5 * UNIT, fast=fast)
    of_truth, *of_sets = order.columns("fidelity")["tau_of_means"]
    assert of_truth == 1
    assert dict(zip(SETS, of_sets, strict=True)) == pytest.approx(dict(zip(SETS, printed, strict=True)), abs=1e-12)
