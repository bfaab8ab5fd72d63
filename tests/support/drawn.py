"""How many examples a law draws."""

from __future__ import annotations

import math
import os

from hypothesis import settings

SHARE = 1.0 if os.environ.get("TRUERANK_EXAMPLES") == "all" else 0.3  # conftest.py sets it where slow tests run too


def examples(count: int) -> settings:
    """That many examples, or a share of them in the fast tests."""
    return settings(max_examples=math.ceil(SHARE * count))
