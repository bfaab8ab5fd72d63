"""The variance that comes from the choice of judged items alone, for units that stay (finite populations)."""

from __future__ import annotations

import math

import numpy as np

from truerank.core.arrays import Floats, exact_sum, sums_by
from truerank.core.errors import RefusedError
from truerank.core.rows import SampledRows
from truerank.core.terms import Smooth


def residuals(terms: Smooth) -> Floats:
    """What each judged row adds to the error of the value, before expansion."""
    rows, totals = _rows(terms), terms.totals()
    if totals[1] == 0:
        return np.full(len(rows.num), math.nan)
    # a row has its part of numerator and denominator; a known total is known for the whole unit, not by row
    sums = np.zeros((len(rows.num), len(terms.form.columns)))
    sums[:, 0], sums[:, 1] = rows.num, rows.den
    return terms.form.influence(sums, totals)


def design_error(terms: Smooth, residual: Floats) -> float:
    """√ Σ_u N² (1 - N-bar / N) s² / N-bar, s² the variance of the residuals over the judged rows of a unit."""
    rows = _rows(terms)
    n_units = len(terms.defined)
    used = terms.defined[rows.unit]
    unit, z = rows.unit[used], residual[used]
    square = sums_by(unit, z**2, n=n_units)
    if rows.rate is not None:
        return math.sqrt(exact_sum(square) * (1 - rows.rate)) / rows.rate
    total = sums_by(unit, z, n=n_units)
    n, size = rows.n_judged, rows.n_candidates
    several = terms.defined & (n > 1)
    variance = np.zeros(n_units)
    variance[several] = np.maximum(square[several] - total[several] ** 2 / n[several], 0) / (n[several] - 1)
    alone = np.flatnonzero(terms.defined & (n == 1) & (size > 1))
    if len(alone) == 1:
        raise RefusedError(
            "one user has a single judged item, which tells nothing about chance within that user. "
            "Use --interval population, or leave that user out."
        )
    used_units = terms.defined & (n > 0)
    share = np.divide(n, size, out=np.ones(n_units), where=used_units)
    spread = np.divide(size**2 * (1 - share) * variance, n, out=np.zeros(n_units), where=used_units)
    if len(alone):
        # collapsed strata on expanded totals: never too small on average, whatever the sizes of the pools
        expanded = size[alone] * total[alone]
        spread[alone] = exact_sum((expanded - exact_sum(expanded) / len(alone)) ** 2) / (len(alone) - 1)
    return math.sqrt(exact_sum(spread))


def _rows(terms: Smooth) -> SampledRows:
    if terms.rows is None:
        raise RefusedError(
            "an interval for exactly these users needs the single judged rows, which this estimator does not give. "
            "Use --interval population, or another estimator."
        )
    return terms.rows
