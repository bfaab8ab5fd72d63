"""Numbers as people read them, the same in every form of results."""

from __future__ import annotations

import math


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


def p_value(value: float) -> str:
    if math.isnan(value):
        return "none"
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def clip_text(clip: float | None) -> str:
    return "none" if clip is None else format(clip, "g")
