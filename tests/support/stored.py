"""Small labels, scores and a log of impressions for tests of object stores."""

from __future__ import annotations

import numpy as np
import polars as pl

RNG = np.random.default_rng(2)
CELLS = RNG.choice(60 * 20, 500, replace=False)
LABELS = pl.DataFrame({"user": CELLS // 20, "item": CELLS % 20, "label": RNG.integers(0, 2, 500)})
SCORES = pl.DataFrame(
    {"user": np.repeat(np.arange(60), 20), "item": np.tile(np.arange(20), 60), "score": RNG.normal(size=1200)}
)
LOG = pl.DataFrame(
    {
        "session": np.repeat(np.arange(100), 3), "item": np.tile(np.arange(3), 100),
        "position": np.tile([1, 2, 3], 100), "reward": RNG.integers(0, 2, 300), "new": np.tile([3, 1, 2], 100),
    }
)  # fmt: skip
