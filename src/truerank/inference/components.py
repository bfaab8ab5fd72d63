"""What a difference varies by, between users and within them, from terms of data at hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.rows import SampledRows
from truerank.core.terms import Smooth, Terms
from truerank.inference.intervals import design_moments, difference_of, residuals
from truerank.inference.moments import Moments
from truerank.inference.planning import Components
from truerank.inference.spreads import Influences


def components_of(first: Terms, second: Terms, *, users: int, design: bool = False) -> Components | None:
    """Of the difference of two values over the same `users` clusters; None where it has no spread.

    The parts within users are known where single judged rows were kept and some user has two of them.
    """
    influences = difference_of(first, second)
    moments = influences.moments()
    within = _within(first, second, users) if isinstance(first, Smooth) and isinstance(second, Smooth) else None
    if design:
        return None if within is None else _of_rows(first, second, within, users)
    if moments is None or users < 2:
        return None
    whole = of_moments(moments, influences, users=users)
    return whole if within is None else within.into(whole)


def of_moments(moments: Moments, influences: Influences, *, users: int) -> Components:
    """What is known from clusters alone: all of the variance as if it were between them."""
    refitted = len(influences.effect) < users  # groups of clusters, each left out in turn
    n = len(influences.effect) if refitted else users
    return Components(
        between=users * moments.stderr**2,
        skewness=moments.skewness * math.sqrt(n),
        kurtosis=3.0 if refitted else max(users * moments.fourths / moments.squares**2, 1.0),
        telling=min(influences.informative / users, 1.0),
        uneven=1.0 if refitted else max(users * moments.leverages, 1.0),
        most_df=moments.df if refitted else math.inf,
    )


@dataclass(frozen=True, slots=True)
class RowVariance:
    """What rows within users add: means over users of N² S² and N S², at the design at hand, and their cumulants."""

    within: float
    finite: float
    at_hand: float
    third: float
    fourth: float
    uneven: float
    rows: float
    most: float

    def into(self, whole: Components) -> Components:
        return replace(
            whole,
            between=max(whole.between - self.at_hand, 0.0),
            within=self.within,
            finite=self.finite,
            row_third=self.third,
            row_fourth=self.fourth,
            row_uneven=self.uneven,
            rows=self.rows,
            most_rows=self.most,
        )


def _within(first: Smooth, second: Smooth, users: int) -> RowVariance | None:
    """Of judged rows, z_A - z_B each, scaled so that contributions of users are those to a mean."""
    rows = first.rows
    if rows is None or second.rows is None or math.isnan(first.value()) or math.isnan(second.value()):
        return None
    if first.exact and second.exact:
        return None
    z = (residuals(first) - residuals(second)) * users
    defined = first.defined & second.defined
    square, third, fourth, known = _cumulants(rows, z, defined)
    if not known.any():
        return None
    size, judged = rows.n_candidates[known], rows.n_judged[known]
    share = np.full(len(size), rows.rate) if rows.rate is not None else judged / size
    s2 = square[known]
    scale = np.count_nonzero(defined) / users
    below = max(first.totals()[1] / users, 1e-300)
    den = _cumulants(rows, rows.den / below, defined)[0][known]
    return RowVariance(
        within=float((size**2 * s2).mean()) * scale,
        finite=float((size * s2).mean()) * scale,
        at_hand=float((size * (1.0 / share - 1.0) * s2).mean()) * scale,
        third=float((size**3 * third[known]).mean()) * scale,
        fourth=float((size**4 * fourth[known]).mean()) * scale,
        uneven=float((size**2 * den).mean()) * scale,
        rows=round(float(1.0 / (1.0 / (share * size)).mean()), 6),
        most=float(size.mean()),
    )


def _cumulants(rows: SampledRows, z: Floats, defined: Bools) -> tuple[Floats, Floats, Floats, Bools]:
    """Second to fourth cumulants of the rows of each user (k-statistics), and who has the two rows that these need.

    Rows that are not kept are 0. Under independent draws moments are around 0. Where a user has less than four rows,
    the fourth, and with less than three the third, are taken as 0.
    """
    used = defined[rows.unit]
    unit: Ints = rows.unit[used]
    value, n_units = z[used], len(defined)
    kept = np.bincount(unit, minlength=n_units).astype(np.float64)
    n = rows.n_judged if rows.rate is None else np.maximum(rows.rate * rows.n_candidates, kept)
    known = defined & (n > 1)
    count = np.where(known, n, 2.0)
    around = sums_by(unit, value, n=n_units) / count if rows.rate is None else np.zeros(n_units)
    apart, missing = value - around[unit], np.maximum(count - kept, 0.0)
    second, third, fourth = (
        (sums_by(unit, apart**power, n=n_units) + missing * (-around) ** power) / count for power in (2, 3, 4)
    )
    if rows.rate is not None:
        return second, third, fourth, known
    one, two, three = count - 1.0, np.maximum(count - 2.0, 1.0), np.maximum(count - 3.0, 1.0)
    return (
        second * count / one,
        np.where(count > 2, third * count**2 / (one * two), 0.0),
        np.where(count > 3, count**2 * ((count + 1) * fourth - 3 * one * second**2) / (one * two * three), 0.0),
        known,
    )


def _of_rows(first: Terms, second: Terms, within: RowVariance, users: int) -> Components | None:
    """For exactly these users: the rows are what is drawn."""
    if not (isinstance(first, Smooth) and isinstance(second, Smooth)):
        return None
    moments = design_moments(first, residuals(first) - residuals(second))
    if moments.n < 2 or not moments.squares > 0:
        return None
    return Components(
        between=0.0,
        within=within.within,
        finite=within.finite,
        rows=within.rows,
        skewness=moments.skewness * math.sqrt(moments.n),
        kurtosis=max(moments.n * moments.fourths / moments.squares**2, 1.0),
        telling=min(first.n_informative(second) / users, 1.0),
        most_rows=within.most,
        by_rows=True,
    )


def components_of_sessions(first: Smooth, second: Smooth, whole: Components, *, users: int) -> Components:
    """The parts between and within users of a difference whose units are sessions of users; `whole` is of users.

    Analysis of variance: with e what a session adds to the error, in units of a mean over sessions, within is
    Σ (e - mean of its user)² / (sessions - users), and between what is left of the whole.
    """
    totals = first.totals(), second.totals()
    used = first.defined & second.defined
    n = int(np.count_nonzero(used))
    apart = first.form.influence(first.sums, totals[0]) - second.form.influence(second.sums, totals[1])
    owner = first.clusters.of_row[used]
    e, count = apart[used] * n, np.bincount(owner, minlength=len(first.clusters)).astype(np.float64)
    if n <= users:
        return replace(whole, rows=1.0)
    mean = np.divide(sums_by(owner, e, n=len(count)), count, out=np.zeros(len(count)), where=count > 0)
    deviation = e - mean[owner]
    within = float((deviation**2).sum()) / (n - users)
    rows = n / users
    return replace(
        whole,
        between=max(whole.between - within / rows, 0.0),
        within=min(within, whole.between * rows),
        rows=rows,
        row_third=float((deviation**3).mean()),
        row_fourth=float((deviation**4).mean()) - 3.0 * within**2,
    )
