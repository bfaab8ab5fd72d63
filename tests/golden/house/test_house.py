"""Every stored call gives what it gave at commit 50cc53b: values to 1e-12."""

from __future__ import annotations

import pytest

from tests.golden.house.calls import CALLS, GROUPS
from tests.golden.house.compare import close, compare_group

SHOWN = 30


@pytest.mark.parametrize("group", GROUPS)
def test_every_number_is_what_it_was(group: str) -> None:
    wrong = compare_group(group).wrong
    assert not wrong, "\n".join([f"{len(wrong)} differ", *wrong[:SHOWN]])


def test_there_are_enough_calls_and_each_has_a_name_of_its_own() -> None:
    assert len({call.id for call in CALLS}) == len(CALLS) >= 180


def test_a_difference_in_the_eleventh_digit_is_seen() -> None:
    assert close(0.5, 0.5 + 1e-13)
    assert not close(0.5, 0.5 + 1e-11)
    assert not close(float("nan"), 0.5)
    assert close(1e-9, 1e-9 + 1e-14, scale=0.5)
