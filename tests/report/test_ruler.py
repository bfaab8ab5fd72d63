"""Intervals drawn as text: on one axis, and never at the cost of a cell."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from truerank.report.text import NARROW, WIDE, Ruler

NUMBERS = st.floats(-1e300, 1e300)


@example([[0.0, 0.0, 5e-324]], 40, False)  # whose half is 0
@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS).map(sorted), min_size=1), st.integers(0, 60), st.booleans())
def test_lines_keep_the_order_of_their_numbers(rows: list[list[float]], width: int, zero: bool) -> None:
    ruler = Ruler.fitting([end for row in rows for end in row], width, zero=zero)
    if ruler is None:
        held = [end for row in rows for end in row] + [0.0] * zero
        assert width < NARROW or max(held) / 2 == min(held) / 2
        return
    lines = [ruler.line(*row) for row in rows]
    assert {len(line) for line in lines} == {ruler.width} == {min(width, WIDE)}
    for line in lines:
        assert line.count("●") == 1
        drawn = line.strip(" │")
        assert " " not in drawn
    # a higher value never stands further left
    by_value = sorted(zip(rows, lines, strict=True), key=lambda each: each[0][1])
    places = [line.index("●") for _, line in by_value]
    assert places == sorted(places)


def test_what_has_no_interval_is_a_point_and_what_has_no_value_is_nothing() -> None:
    ruler = Ruler(0.0, 1.0, 21)
    assert ruler.line(math.nan, 0.5, math.nan).strip() == "●"
    assert ruler.line(math.nan, math.nan, math.nan).strip() == ""
    assert ruler.line(0.0, math.nan, 1.0) == "├" + "─" * 19 + "┤"
    assert Ruler.fitting([math.nan, math.inf], 40) is None
