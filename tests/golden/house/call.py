"""What a call is: text and numbers alone, so that it holds for any interface.

`evaluate` options: labels, models, exclude, candidates, random and features name parts of a data set (`data.py`);
exposure is full, full-negative, random, random:RATE or biased; an estimator is a name, or its name and options.
`offpolicy` options: log and columns (`new=old` renames one), targets and loggers as rank:COLUMN, exposure:COLUMN,
table:FRAME or log; clips as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Options = dict[str, Any]
EXACT = 1e-12
# a fit that ends when its steps are small
ITERATED = 1e-6


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `exact` is how closely values must agree, relative."""

    id: str
    group: str
    kind: str
    data: str
    options: Mapping[str, Any]
    exact: float = EXACT
