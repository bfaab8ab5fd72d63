"""Numbers as people read them, the same in every form of results."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from truerank.core.escaping import printable

MOST_DECIMALS = 7


def number(value: float) -> str:
    """Four decimals, more for small values.

    >>> number(0.25), number(0.000123), number(float("nan"))
    ('0.2500', '0.000123', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    return f"{value:.3g}" if 0 < abs(value) < 0.01 else f"{value:.4f}"


def interval(low: float, high: float) -> str:
    return "none" if math.isnan(low) or math.isnan(high) else f"{number(low)} to {number(high)}"


def decimals(value: float, *, digits: int = 3) -> int:
    """How many decimals show so many significant digits.

    >>> decimals(0.119), decimals(2.12), decimals(0.00071, digits=2)
    (3, 2, 5)
    """
    if not math.isfinite(value) or value == 0:
        return digits
    return min(max(digits - 1 - math.floor(math.log10(abs(value))), 0), MOST_DECIMALS)


def fixed(value: float, places: int) -> str:
    return "undefined" if math.isnan(value) else f"{value:.{places}f}"


def bounds(low: float, high: float, places: int) -> str:
    """The interval of a value that is shown with so many decimals.

    >>> bounds(0.21, 0.2844, 3), bounds(math.nan, math.nan, 3)
    ('(0.210, 0.284)', 'none')
    """
    return "none" if math.isnan(low) or math.isnan(high) else f"({low:.{places}f}, {high:.{places}f})"


def signed_interval(value: float, low: float, high: float, places: int) -> str:
    """A difference with its interval; as many decimals as the interval needs, at least `places`.

    >>> signed_interval(0.0283, 0.0177, 0.039, 3), signed_interval(-1e-17, math.nan, math.nan, 3)
    ('+0.028 (0.018, 0.039)', '0.000')
    """
    if math.isnan(value):
        return "undefined"
    if math.isnan(low) or math.isnan(high):
        return signed(value, places)
    places = max(places, decimals((high - low) / 2, digits=2))
    return f"{signed(value, places)} ({low:.{places}f}, {high:.{places}f})"


def signed(value: float, places: int) -> str:
    """A difference; one that is shown as 0 has no sign.

    >>> signed(0.0283, 3), signed(-0.0283, 3), signed(-0.0, 3)
    ('+0.028', '-0.028', '0.000')
    """
    return f"{value:+.{places}f}" if round(value, places) else f"{0:.{places}f}"


def p_value(value: float) -> str:
    if math.isnan(value):
        return "none"
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def clip_text(clip: float | None) -> str:
    return "none" if clip is None else format(clip, "g")


def kind_of_values(column: pl.Series) -> str:
    """How a column is written and ordered: as text, count, number or p."""
    if column.dtype == pl.String:
        return "text"
    return "count" if column.dtype.is_integer() else "p" if column.name in ("p", "p adjusted") else "number"


def cell_text(value: Any, kind: str) -> str:
    """A value as a table shows it; one that is None is not there, and NaN is undefined.

    >>> cell_text(0.25, "number"), cell_text(None, "number"), cell_text(1200, "count"), cell_text("a", "text")
    ('0.2500', '', '1,200', 'a')
    """
    if value is None:
        return ""
    if kind == "text":
        return printable(value)
    return f"{value:,}" if kind == "count" else p_value(value) if kind == "p" else number(value)
