"""Every stored call gives the numbers, verdicts and codes that are stored."""

from __future__ import annotations

import pytest

from tests.golden.house.calls import CALLS, GROUPS
from tests.golden.house.compare import close, compare_group

MOST_LINES = 30


@pytest.mark.parametrize("group", GROUPS)
def test_results_are_those_stored(group: str) -> None:
    lines = compare_group(group)
    assert not lines, "\n".join([f"{len(lines)} differ", *lines[:MOST_LINES]])


def test_there_are_enough_calls_and_no_id_repeats() -> None:
    assert len({call.id for call in CALLS}) == len(CALLS) >= 180


def test_a_difference_in_the_eleventh_digit_is_noticed() -> None:
    assert close(0.5, 0.5 + 1e-13)
    assert not close(0.5, 0.5 + 1e-11)
    assert not close(float("nan"), 0.5)
    assert close(1e-9, 1e-9 + 1e-14, scale=0.5)
