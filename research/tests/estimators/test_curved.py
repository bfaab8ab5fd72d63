"""Bins of ranks: rows without ties have one bin, others are shared; equal rows are fitted once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from truerank_research.estimators.curved_recall import binned, sums_by_bin

RANKS = st.one_of(st.integers(0, 60).map(float), st.just(np.inf), st.sampled_from([3.5, 4.0, 5.0, 14.0, 2e7]))
ROWS = st.lists(st.tuples(RANKS, st.sampled_from([0.0, 0.0, 1.0, 7.0]), st.integers(0, 3)), max_size=30)


@given(rows=ROWS, k=st.sampled_from([1, 5, 7, 50]))
def test_sums_by_bin_are_those_of_shares(rows: list[tuple[float, float, int]], k: int) -> None:
    above, tied, unit = (np.array([row[at] for row in rows], dtype=np.float64) for at in range(3))
    values = np.arange(1.0, len(rows) + 1)
    share = binned(above, tied, k=k)
    wanted = np.zeros((4, share.shape[1]))
    np.add.at(wanted, unit.astype(np.int64), share * values[:, None])
    found = sums_by_bin(above, tied, values, unit=unit.astype(np.int64), n=4, k=k)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=0)
