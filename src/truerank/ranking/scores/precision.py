"""Which precision products of factors are computed in."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def single_keeps_bits() -> bool:
    """Whether single precision products have the same bits wherever their rows lie in a tile, on this machine.

    Some kernels of OpenBLAS (for processors with AVX2 and without AVX-512) sum in another order in every second group
    of six rows. Equal rows show it: their products must all be equal.
    """
    rng = np.random.default_rng(0)
    for dimensions in (8, 33, 64):
        user, item = rng.standard_normal((2, 16, dimensions), dtype=np.float32)
        for p, q in zip(user, item, strict=True):
            product = np.tile(p, (24, 1)) @ np.tile(q, (48, 1)).T
            if (product != product[0, 0]).any():
                return False
    return True
