"""Compiled draws put those in front that sorting does."""

from __future__ import annotations

import numpy as np
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st

from truerank.reliability.kernels import put_first


@given(st.integers(1, 400), st.floats(0, 1.1), st.sampled_from([1, 4, 10_000]), st.integers(0, 2**32))
@examples(300)
def test_the_smallest_stand_in_front(size: int, share: float, different: int, seed: int) -> None:
    """Also where many keys, or all, are the same: then items decide. No member is lost or parted from its key."""
    rng = np.random.default_rng(seed)
    n = int(share * size)
    key, item = rng.integers(0, different, size).astype(np.float64), rng.permutation(size).astype(np.int32)
    keys, items = key.copy(), item.copy()
    put_first(keys, items, size, n)
    assert sorted(items[:n]) == sorted(item[np.lexsort((item, key))[:n]])
    assert sorted(zip(keys, items, strict=True)) == sorted(zip(key, item, strict=True))
