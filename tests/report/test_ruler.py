"""Intervals drawn as text: on one axis, and never at the cost of a cell."""

from __future__ import annotations

import math

from truerank.report.text import Ruler


def test_what_has_no_interval_is_a_point_and_what_has_no_value_is_nothing() -> None:
    ruler = Ruler(0.0, 1.0, 21)
    assert ruler.line(math.nan, 0.5, math.nan).strip() == "●"
    assert ruler.line(math.nan, math.nan, math.nan).strip() == ""
    assert ruler.line(0.0, math.nan, 1.0) == "├" + "─" * 19 + "┤"
    assert Ruler.fitting([math.nan, math.inf], 40) is None
