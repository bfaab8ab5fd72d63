"""The rank correlations of the WTD paper (tables 3 and 4) follow from its values (table 2): tau-b of the means."""

from __future__ import annotations

import pytest
from scipy.stats import kendalltau

SETS = ("FULL", "REG", "SKEW", "WTD", "WTD_H")
# recommender: recall on the ground truth, then percentage difference of each test set from it
COAT = {
    "PosPop": (0.066, 133, 124, 13, 1, -43),
    "AvgRating": (0.068, 61, 53, 31, 6, 24),
    "UB_KNN": (0.067, 229, 225, 112, 90, 34),
    "IB_KNN": (0.073, 236, 227, 105, 82, 26),
    "MF": (0.063, 180, 176, 179, 123, 102),
}
WEBSCOPE = {
    "PosPop": (0.056, 280, 272, -14, -68, -79),
    "AvgRating": (0.016, -77, -77, -50, -51, -49),
    "UB_KNN": (0.073, 273, 265, 35, -9, -24),
    "IB_KNN": (0.071, 313, 306, 45, -2, -17),
    "MF": (0.077, 258, 252, 90, 66, 52),
}
ALL, WITHOUT_MF = tuple(COAT), tuple(name for name in COAT if name != "MF")


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
    table: dict[str, tuple[float, ...]], models: tuple[str, ...], printed: tuple[float, ...]
) -> None:
    truth = [table[name][0] for name in models]
    for at, (name, expected) in enumerate(zip(SETS, printed, strict=True), start=1):
        value = [table[model][0] * (1 + table[model][at] / 100) for model in models]
        assert kendalltau(value, truth).statistic == pytest.approx(expected, abs=1e-12), name
