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

FOUND_AT = "50cc53b"  # the commit whose results are stored

Options = dict[str, Any]
# how far a resampled standard error may lie from the golden: with 200 replicates its own error is 5 %
LOOSE = 0.25
# the same of a jackknife of 40 groups, where it is 11 %: three times that, twice, and tails
LOOSE_GROUPS = 0.8
EXACT = 1e-12
# a fit that ends when its steps are small
ITERATED = 1e-6


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `exact` is how closely values must agree, relative.

    `resampled`: its intervals are drawn or fitted again, so standard errors may differ by the share `loose`.
    `folds`: its values rest on drawn folds, and are compared within 3 standard errors.
    """

    id: str
    group: str
    kind: str
    data: str
    options: Mapping[str, Any]
    resampled: bool = False
    folds: bool = False
    loose: float = LOOSE
    exact: float = EXACT
