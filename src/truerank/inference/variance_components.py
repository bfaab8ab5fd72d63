"""What a difference varies by, between users and within them, from terms of data at hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats, sums_by
from truerank.core.rows import SampledRows
from truerank.core.terms import Smooth, Terms
from truerank.inference.intervals import design_moments, residuals
from truerank.inference.linearization import difference_of
from truerank.inference.moments import Moments
from truerank.inference.power import Components


def components_of(first: Terms, second: Terms, *, users: int, design: bool = False) -> Components | None:
    """Of the difference of two values over the same `users` clusters; None where it has no spread.

    The parts within users are known where single labelled rows were kept and some user has two of them. With `design`,
    for exactly these users, the rows are what is drawn.
    """
    both = first.whole, second.whole
    within = _within_users(*both, users)
    if design:
        moments = None if within is None else design_moments(both[0], residuals(both[0]) - residuals(both[1]))
        if within is None or moments is None or moments.n < 2 or not moments.squares > 0:
            return None
        telling = min(first.n_informative(second) / users, 1.0)
        shape = _shape(moments, moments.n)
        return replace(within[0], **shape, telling=telling, by_rows=True, row_third=0.0, row_fourth=0.0, row_uneven=0.0)
    influences = difference_of(first, second)
    moments = influences.moments()
    if moments is None or users < 2:
        return None
    # groups of clusters, each left out in turn, where models were refitted
    refitted = len(influences.effect) < users
    shape = _shape(moments, len(influences.effect) if refitted else users)
    whole: dict[str, Any] = {
        **shape,
        "kurtosis": 3.0 if refitted else shape["kurtosis"],
        "telling": min(influences.informative / users, 1.0),
        "uneven": 1.0 if refitted else max(users * float(moments.leverages), 1.0),
        "most_df": float(moments.df) if refitted else math.inf,
    }
    between = users * float(moments.stderr) ** 2
    if within is None:  # as if all of the variance were between clusters
        return Components(between=between, **whole)
    return replace(within[0], between=max(between - within[1], 0.0), **whole)


def _shape(moments: Moments, n: int) -> dict[str, Any]:
    return {
        "skewness": float(moments.skewness) * math.sqrt(n),
        "kurtosis": max(n * float(moments.fourths) / float(moments.squares) ** 2, 1.0),
    }


def _within_users(first: Smooth, second: Smooth, users: int) -> tuple[Components, float] | None:
    """What labelled rows within users add, z_A - z_B each, scaled so that contributions of users are those to a mean.

    And the variance that they add with the rows at hand.
    """
    rows = first.rows
    if rows is None or second.rows is None or math.isnan(first.value() - second.value()):
        return None
    if first.exact and second.exact:
        return None
    defined = first.defined & second.defined
    square, third, fourth, several = _cumulants(rows, (residuals(first) - residuals(second)) * users, defined)
    if not several.any():
        return None
    size = rows.n_candidates[several]
    share = np.full(len(size), rows.rate) if rows.rate is not None else rows.n_judged[several] / size
    below = max(first.totals()[1] / users, 1e-300)
    uneven = _cumulants(rows, rows.den / below, defined)[0]
    scale = np.count_nonzero(defined) / users

    def mean(power: int, cumulant: Floats) -> float:
        return float((size**power * cumulant[several]).mean()) * scale

    components = Components(
        between=0.0,
        within=mean(2, square),
        finite=mean(1, square),
        row_third=mean(3, third),
        row_fourth=mean(4, fourth),
        row_uneven=mean(2, uneven),
        rows=round(float(1.0 / (1.0 / (share * size)).mean()), 6),
        most_rows=float(size.mean()),
    )
    return components, float((size * (1.0 / share - 1.0) * square[several]).mean()) * scale


def _cumulants(rows: SampledRows, z: Floats, defined: Bools) -> tuple[Floats, Floats, Floats, Bools]:
    """Second to fourth cumulants of the rows of each user (k-statistics), and who has the two rows that these need.

    Rows that are not kept are 0. Under independent draws moments are around 0. Where a user has less than four rows,
    the fourth, and with less than three the third, are taken as 0.
    """
    used = defined[rows.unit]
    unit, value, n_units = rows.unit[used], z[used], len(defined)
    present = np.bincount(unit, minlength=n_units).astype(np.float64)
    n = rows.n_judged if rows.rate is None else np.maximum(rows.rate * rows.n_candidates, present)
    several = defined & (n > 1)
    count = np.where(several, n, 2.0)
    around = sums_by(unit, value, n=n_units) / count if rows.rate is None else np.zeros(n_units)
    apart, missing = value - around[unit], np.maximum(count - present, 0.0)
    second, third, fourth = (
        (sums_by(unit, apart**power, n=n_units) + missing * (-around) ** power) / count for power in (2, 3, 4)
    )
    if rows.rate is not None:
        return second, third, fourth, several
    one, two, three = count - 1.0, np.maximum(count - 2.0, 1.0), np.maximum(count - 3.0, 1.0)
    return (
        second * count / one,
        np.where(count > 2, third * count**2 / (one * two), 0.0),
        np.where(count > 3, count**2 * ((count + 1) * fourth - 3 * one * second**2) / (one * two * three), 0.0),
        several,
    )


def components_of_sessions(first: Smooth, second: Smooth, whole: Components, *, users: int) -> Components:
    """The parts between and within users of a difference whose units are sessions of users; `whole` is of users.

    Analysis of variance: with e what a session adds to the error, in units of a mean over sessions, within is
    Σ (e - mean of its user)² / (sessions - users), and between what is left of the whole.
    """
    used = first.defined & second.defined
    n = int(np.count_nonzero(used))
    if n <= users:
        return replace(whole, rows=1.0)
    effects = [part.form.influence(part.sums, part.totals()) for part in (first, second)]
    e, owner = (effects[0] - effects[1])[used] * n, first.clusters.of_row[used]
    count = np.bincount(owner, minlength=len(first.clusters))
    deviation = e - (sums_by(owner, e, n=len(count)) / np.maximum(count, 1))[owner]
    within, rows = float((deviation**2).sum()) / (n - users), n / users
    return replace(
        whole,
        between=max(whole.between - within / rows, 0.0),
        within=min(within, whole.between * rows),
        rows=rows,
        row_third=float((deviation**3).mean()),
        row_fourth=float((deviation**4).mean()) - 3.0 * within**2,
    )
