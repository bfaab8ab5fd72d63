"""Intervals drawn as text: on one axis, inside the terminal, and never at the cost of a cell."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import truerank as tr
from truerank.report import text
from truerank.report.drawn import NARROW, WIDE, Ruler

NUMBERS = st.floats(-1e300, 1e300)


@settings(deadline=None)
@example([[0.0, 0.0, 5e-324]], 40, False)  # whose half is 0
@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS).map(sorted), min_size=1), st.integers(0, 60), st.booleans())
def test_lines_keep_the_order_of_their_numbers(rows: list[list[float]], width: int, zero: bool) -> None:
    ruler = Ruler.of([end for row in rows for end in row], width, zero=zero)
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
    assert Ruler.of([math.nan, math.inf], 40) is None


@pytest.fixture(scope="module")
def results() -> tr.Results:
    rng = np.random.default_rng(1)
    truth = rng.random((80, 20)) < 0.2
    user, item = np.nonzero(truth)
    scores = {"good": truth + rng.normal(0, 0.5, truth.shape), "bad": rng.normal(size=truth.shape)}
    return tr.evaluate(scores, pl.DataFrame({"user": user, "item": item}), exposure="holdout", metrics=["Recall@5"])


def test_the_ends_of_the_axis_are_those_of_the_intervals(results: tr.Results) -> None:
    lines = str(results).splitlines()
    low, high = min(each.low for each in results.estimates), max(each.high for each in results.estimates)
    assert lines[1].split()[-2:] == [f"{low:.4f}", f"{high:.4f}"]
    ends = lines[1].rindex(f"{low:.4f}"), len(lines[1].rstrip()) - 1
    assert {line.index("├") for line in lines[2:4]} >= {ends[0]}
    assert {line.index("┤") for line in lines[2:4]} >= {ends[1]}
    # differences have an axis of their own, with 0 on it
    head, difference = lines[4:6]
    assert head.endswith(" 0")
    assert difference[len(head) - 1] == "│"


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120])
def test_a_terminal_of_any_width_shows_every_number(results: tr.Results, width: int) -> None:
    shown = text.render(results, width=width)
    assert all(len(line) <= width for line in shown.splitlines())
    cells = [f"{value:.4f}" for each in results.estimates for value in (each.value, each.low, each.high)]
    joined = "".join(shown.split())
    assert width < 60 or all(cell in joined for cell in cells)
    assert ("●" in shown) == (width >= 80)


@pytest.mark.parametrize("name", ["good", "日本 é", "a\nb\tc", "<b> [bold]x[/]"])
def test_uncut_text_is_what_a_wide_terminal_shows(results: tr.Results, name: str) -> None:
    odd = replace(results, estimates=tuple(replace(each, model=each.model + name) for each in results.estimates))
    uncut, wide = text.render(odd, groups={"g": odd}), text.render(odd, groups={"g": odd}, width=1000)
    assert [line.rstrip() for line in uncut.splitlines()] == [line.rstrip() for line in wide.splitlines()]


def test_piped_text_is_as_wide_as_it_needs(results: tr.Results) -> None:
    long = replace(results, estimates=tuple(replace(each, model=each.model * 60) for each in results.estimates))
    shown = text.render(long)
    assert "good" * 60 in shown
    assert "●" in shown
