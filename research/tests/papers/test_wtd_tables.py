"""The rank correlations of the WTD paper (tables 3 and 4) follow from its values (table 2), by two kernels.

Once as the experiment E-W2 has them, once by the study's own τ-b: the truth takes the place of the full candidates,
the test sets those of the samplers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from truerank.reliability.tables import GroupSums, Resampling
from truerank_research.papers.wtd import COAT, SETS, WEBSCOPE
from truerank_research.papers.wtd.correlations import correlations

ALL, WITHOUT_MF = tuple(COAT), tuple(name for name in COAT if name != "MF")
UNIT = 1000  # sums are whole numbers, and what differs by no more than their rounding counts as equal


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
    table: Mapping[str, tuple[float, ...]],
    models: tuple[str, ...],
    printed: tuple[float, ...],
) -> None:
    exact = pytest.approx(dict(zip(SETS, printed, strict=True)), abs=1e-12)
    assert correlations(table, without=tuple(set(ALL) - set(models))) == exact
    truth = np.array([round(1000 * table[name][0]) for name in models])
    difference = np.array([table[name][1:] for name in models]).T
    values = UNIT * np.vstack([100 * truth, truth * (100 + difference)])  # [truth and sets x models]
    sums = GroupSums(values[None, None, None].astype(np.int64), users=np.ones((1, 1), dtype=np.int64))
    of_truth, *of_sets = sums.tau(Resampling(2))["fidelity"]["tau_of_means"]
    assert of_truth == 1
    assert dict(zip(SETS, of_sets, strict=True)) == exact
