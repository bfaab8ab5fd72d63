"""Do offline estimates agree with what was measured online? (paper 3, section 6 and appendix A)"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import InputError
from truerank.core.record import record
from truerank.core.sizes import check_size
from truerank.core.special import ndtr, ndtri, stdtr
from truerank.core.validation import FLAG, NUMBER, TEXTS, checked_arguments, shown
from truerank.io.columns import finite_numbers, table_columns

MOST_EXACT = 50  # values up to which the p of rank correlation counts all orders
VALUE = "_value"  # the column of values as numbers
# columns of results about a value: none of them tells rows apart
ABOUT_VALUES = frozenset(
    (VALUE, "value", "difference", "stderr", "low", "high", "p", "p_adjusted", "n", "units", "left_out", "verdict",
     "evidence", "warnings", "estimand")
)  # fmt: skip


@record
class Correlation:
    """Pearson's r or Kendall's τ-b of n pairs with two-sided p and an interval; NaN where a series does not vary."""

    coefficient: float
    p: float
    n: int
    low: float = math.nan
    high: float = math.nan


@checked_arguments()
def correlation(offline: npt.ArrayLike, online: npt.ArrayLike, *, level: float = 0.95) -> Correlation:
    """Pearson's correlation of daily estimates with daily online reward (paper 3, table 2).

    p is that of t = r √((n - 2) / (1 - r²)) with n - 2 degrees of freedom. The interval is Fisher's,
    tanh(artanh r ± z / √(n - 3)), of pairs that were drawn independently; below 4 pairs, and where r is 1 or -1, there
    is none.

    >>> found = correlation([1, 2, 3, 4], [2, 4, 6, 8.5])
    >>> found.coefficient > 0.99, found.low < found.coefficient < found.high
    (True, True)
    """
    x, y = _pairs(offline, online)
    z, n = _quantile(level), len(x)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(math.nan, math.nan, n)
    r = float(np.clip(np.corrcoef(x, y)[0, 1], -1.0, 1.0))
    if n < 3 or abs(r) >= 1:
        return Correlation(r, math.nan if n < 3 else 0.0, n)
    p = float(2 * stdtr(n - 2, -abs(r) * math.sqrt((n - 2) / (1 - r * r))))
    if n < 4:
        return Correlation(r, p, n)
    middle, reach = math.atanh(r), z / math.sqrt(n - 3)
    return Correlation(r, p, n, math.tanh(middle - reach), math.tanh(middle + reach))


@checked_arguments()
def rank_correlation(x: npt.ArrayLike, y: npt.ArrayLike, *, level: float = 0.95) -> Correlation:
    """Kendall's τ-b: (concordant - discordant pairs) / √(pairs that differ in x · pairs that differ in y).

    p is exact up to 50 values without ties (all orders are equally likely), else normal with the variance that ties
    leave (Kendall 1970). The interval is on the scale of artanh τ and takes the larger of two errors: that of Samara
    and Randles (1988), from how far single values disagree with the others, and √(.437 / (n - 4)) (Fieller, Hartley and
    Pearson 1957), which is wide where few values happen to agree; below 5 values there is none.

    >>> found = rank_correlation([1, 2, 3, 4, 5], [1, 2, 3, 5, 4])
    >>> found.coefficient, round(found.p, 4)  # 5 orders of 120 are as near to sorted
    (0.8, 0.0833)
    """
    from scipy.stats import kendalltau

    a, b = _pairs(x, y)
    z, n = _quantile(level), len(a)
    check_size(
        f"Kendall's tau of {n:,} values, with a number for each pair,",
        memory=24.0 * n * n,
        instead="Give fewer values, or means of groups of them.",
    )
    first, second = (np.sign(values[:, None] - values[None, :]) for values in (a, b))
    pairs, differing = n * (n - 1) / 2, [np.count_nonzero(sign) / 2 for sign in (first, second)]
    if min(differing) == 0:
        return Correlation(math.nan, math.nan, n)
    exact = n <= MOST_EXACT and min(differing) == pairs
    p = float(kendalltau(a, b, method="exact" if exact else "asymptotic").pvalue)
    by_value = (first * second).sum(axis=1)
    scale = pairs / math.sqrt(differing[0] * differing[1])  # from tau-a to tau-b
    tau = min(max(float(by_value.sum()) / 2 / pairs * scale, -1.0), 1.0)
    if n < 5:
        return Correlation(tau, p, n)
    inner = math.copysign(min(abs(tau), 1 - 2 / pairs), tau)  # as if one pair were the other way round
    spread = 2 * (n - 2) / (n * (n - 1) ** 2) * float(((by_value - by_value.mean()) ** 2).sum())
    variance = 2 / (n * (n - 1)) * (spread + max(1 - (tau / scale) ** 2, 0.0)) * scale**2
    error = max(math.sqrt(variance) / (1 - inner**2), math.sqrt(0.437 / (n - 4)))
    low, high = (math.tanh(math.atanh(inner) + sign * z * error) for sign in (-1, 1))
    return Correlation(tau, p, n, min(low, tau), max(high, tau))


def _quantile(level: float) -> float:
    """How many standard errors reach to either side."""
    return float(ndtri(0.5 + level / 2))


def sign_agreement(offline: npt.ArrayLike, online: npt.ArrayLike) -> float:
    """The share of online differences whose offline estimate has the same sign.

    Online differences of 0 have no sign and are excluded; an offline difference of 0 agrees with nothing. NaN where
    nothing is left.

    >>> sign_agreement([0.1, -0.2, 0.0, 0.3], [1, 1, 1, 0])
    0.3333333333333333
    """
    x, y = _pairs(offline, online)
    return _share(np.sign(x) == np.sign(y), y != 0)


@record
class Sensitivity:
    """How well one estimator (at one clip) sees true improvements: paper 3, figure 1."""

    clip: float
    true_positive_rate: float
    mean_p: float
    sign_agreement: float
    n: int


@checked_arguments(clip=NUMBER)
def sensitivity(
    difference: npt.ArrayLike, stderr: npt.ArrayLike, *, clip: float = math.inf, level: float = 0.99
) -> Sensitivity:
    """True-positive rate, mean p and sign agreement over cells (days x rewards) that are known to be improvements.

    A cell is positive where its normal interval of that level is strictly above 0; p is one-sided, for a difference of
    at most 0. A cell without spread has p 0 where its difference is positive, else 1.

    >>> sensitivity([0.3, 0.1], [0.1, 0.1]).true_positive_rate
    0.5
    """
    value, error = _pairs(difference, stderr)
    if (error < 0).any():
        raise InputError("a negative standard error; expected one from 0 for every difference.")
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(error > 0, value / error, np.where(value > 0, np.inf, -np.inf))
    positive = float((z > _quantile(level)).mean())
    return Sensitivity(clip, positive, float(ndtr(-z).mean()), float((value > 0).mean()), len(value))


def disagreement(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """The probability that two metrics order a pair of models differently (paper 3, appendix A).

    A pair agrees if x1 < x2 and y1 <= y2, or x1 > x2 and y1 >= y2; pairs that are equal in both are excluded; all
    others disagree. Without ties it is (1 - Kendall's τ) / 2. NaN where no pair is left.

    >>> disagreement([1, 2, 3], [1, 3, 2])
    0.3333333333333333
    """
    a, b = _pairs(x, y)
    first, second = np.triu_indices(len(a), 1)
    by_x, by_y = np.sign(a[second] - a[first]), np.sign(b[second] - b[first])
    return _share((by_x == 0) | (by_x * by_y < 0), (by_x != 0) | (by_y != 0))


def _share(mask: Bools, among: Bools) -> float:
    """The share of those in the mask; NaN of none."""
    return float(mask[among].mean()) if among.any() else math.nan


@record
class Agreement:
    """How far the offline values of one group (`of`: an estimator, say) agree with what was measured online.

    `left_out` counts values that only one of both has. Signs are of differences, and `found` is of differences that
    have a standard error where the online one is above 0; NaN and None elsewhere.
    """

    of: tuple[tuple[str, str], ...]
    n: int
    left_out: int
    pearson: Correlation
    kendall: Correlation
    disagreement: float
    sign_agreement: float = math.nan
    found: Sensitivity | None = None


@checked_arguments(on=TEXTS, of=TEXTS, differences=FLAG)
def agree(
    offline: Any,
    online: Any,
    *,
    on: Sequence[str] | None = None,
    of: Sequence[str] | None = None,
    differences: bool = False,
    level: float = 0.95,
) -> tuple[Agreement, ...]:
    """Compare offline values with online ones: correlation, order and, of differences, signs.

    Both are tables (frames or paths) with a column `value`, or with `differences` a column `difference` (or value) and,
    offline, perhaps `stderr`. Rows are matched by the columns `on` (default: all that both have, as day and reward);
    each group of the columns `of` (default: those of texts that offline alone has, as estimator) is compared by itself.

    >>> import polars as pl
    >>> online = pl.DataFrame({"day": [1, 2, 3], "value": [0.1, 0.2, 0.3]})
    >>> offline = pl.DataFrame({"day": [1, 2, 3] * 2, "estimator": ["ips"] * 3 + ["ndcg"] * 3,
    ...                         "value": [1.0, 2.0, 3.0, 9.0, 8.0, 7.0]})
    >>> [(dict(group.of)["estimator"], round(group.pearson.coefficient, 6), group.disagreement)
    ...  for group in agree(offline, online)]
    [('ips', 1.0, 0.0), ('ndcg', -1.0, 1.0)]
    """
    (left, first), (right, second) = (_table(source, differences=differences) for source in (offline, online))
    shared = [name for name in left.columns if name in right.columns and name not in ABOUT_VALUES]
    keys = shared if on is None else list(on)
    if not keys:
        raise InputError(f"{first} and {second} have no column in common to match rows by; name some: on=.")
    groups = list(of) if of is not None else [
        name for name, kind in left.schema.items()
        if kind == pl.String and name not in right.columns and name not in ABOUT_VALUES
    ]  # fmt: skip
    for table, where, names in ((left, first, [*keys, *groups]), (right, second, keys)):
        missing = [name for name in names if name not in table.columns]
        if missing:
            columns = ", ".join(table.columns[:-1])
            raise InputError(f"{where}: no column {missing[0]!r}; it has {columns}.")
    texts = [pl.col(name).cast(pl.String) for name in keys]
    measured = right.select(*texts, pl.col(VALUE).alias("_online"))
    _check_once(measured, keys, second)
    errors = finite_numbers(left["stderr"], where=f"{first}, column 'stderr'") if "stderr" in left.columns else math.nan
    estimated = left.select(*texts, *(pl.col(name).cast(pl.String).alias(f"_by {name}") for name in groups), VALUE)
    estimated = estimated.with_columns(pl.lit(errors).alias("_stderr"))
    parts = estimated.partition_by([f"_by {name}" for name in groups], maintain_order=True) if groups else [estimated]

    def agreement(part: pl.DataFrame) -> Agreement:
        group = tuple((name, str(part[f"_by {name}"][0])) for name in groups)
        where = f"{first} ({', '.join(text for _, text in group)})" if group else first
        _check_once(part, keys, where)
        both = part.join(measured, on=keys, how="inner", nulls_equal=True, maintain_order="left")
        if not len(both):
            raise InputError(
                f"{where}: no row has the {', '.join(keys)} of a row of {second}; expected the same names."
            )
        x, y, error = (both[name].to_numpy() for name in (VALUE, "_online", "_stderr"))
        true = (y > 0) & np.isfinite(error)
        return Agreement(
            of=group,
            n=len(both),
            left_out=len(part) + len(measured) - 2 * len(both),
            pearson=correlation(x, y, level=level),
            kendall=rank_correlation(x, y, level=level),
            disagreement=disagreement(x, y),
            sign_agreement=sign_agreement(x, y) if differences else math.nan,
            found=sensitivity(x[true], error[true]) if differences and true.any() else None,
        )

    return tuple(map(agreement, parts))


def _table(source: Any, *, differences: bool) -> tuple[pl.DataFrame, str]:
    """A table with its values as numbers in one column more, the last, and its name."""
    rows = table_columns(source)
    table, where = rows.table, rows.where
    if not len(table):
        raise InputError(f"{where}: no rows; expected values to compare.")
    wanted = ["difference", "value"] if differences else ["value"]
    column = next((name for name in wanted if name in table.columns), None)
    if column is None:
        raise InputError(f"{where}: no column {' or '.join(wanted)}; it has {', '.join(table.columns)}.")
    return table.with_columns(rows.finite(table[column]).alias(VALUE)), where


def _check_once(table: pl.DataFrame, keys: list[str], where: str) -> None:
    twice = table.filter(pl.struct(keys).is_duplicated())
    if len(twice):
        row = ", ".join(f"{name} {twice[name][0]}" for name in keys)
        raise InputError(f"{where}: {row} has more than one row; expected one. Name what else tells rows apart: of=.")


def _pairs(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    try:
        a, b = (np.asarray(values, dtype=np.float64) for values in (x, y))
    except (TypeError, ValueError):
        raise InputError(f"{shown(x)} against {shown(y)}; expected two series of numbers.") from None
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise InputError(f"{a.shape} values against {b.shape}; expected two series of the same length, not empty.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError("a value that is no finite number; expected finite values in both series.")
    return a, b
