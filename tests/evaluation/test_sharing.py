"""What questions share they share again, whatever is done with their terms: it is worked on, sent and kept once."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from truerank.core.arrays import Floats
from truerank.core.clusters import Clusters
from truerank.core.terms import Refitted, ratio
from truerank.evaluation.counts import MeasuredCounts
from truerank.evaluation.measure import Measured, by_cluster, join

UNITS = 6


def part(first: int) -> Measured:
    """Six units of three users; two clips that no weight reaches, and one that some do."""
    clusters = Clusters(np.arange(UNITS) // 2, np.arange(first, first + 3, dtype=np.uint64))
    num: Floats = np.arange(UNITS, dtype=np.float64) + first + 0.1
    third: Floats = num / 3
    defined = np.ones(UNITS, dtype=bool)
    whole, clipped = (ratio(each, np.ones(UNITS), defined=defined, clusters=clusters) for each in (num, third))
    pattern = np.ones(UNITS, dtype=np.uint64)
    totals = [np.array([[number, 2.0], [number, 4.0]]) for number in range(3)]
    terms = {
        ("new", number): Refitted(sums, pattern, {1: (totals[number], np.zeros((2, 2)))})
        for number, sums in enumerate([whole, whole, clipped])
    }
    place = np.arange(first * UNITS, (first + 1) * UNITS)
    return Measured(place, np.ones(UNITS, dtype=np.int64), terms, MeasuredCounts({}), UNITS)


STEPS: dict[str, Callable[[], Measured]] = {
    "as it is": lambda: part(0),
    "users": lambda: by_cluster(part(0)),
    "sent": lambda: pickle.loads(pickle.dumps(by_cluster(part(0)))),
    "joined": lambda: join([part(0), part(3)]),
    "joined in another order": lambda: join([_turned(part(0)), part(3)]),
    "users joined": lambda: join([by_cluster(part(0)), by_cluster(part(3))]),
    "some": lambda: part(0).select(np.arange(4)),
}


def _turned(measured: Measured) -> Measured:
    return replace(measured, place=measured.place[::-1] + 1)


@pytest.mark.parametrize("step", STEPS)
def test_what_questions_share_is_shared_again(step: str) -> None:
    first, second, third = STEPS[step]().terms.values()
    assert isinstance(first, Refitted)
    assert isinstance(second, Refitted)
    assert isinstance(third, Refitted)
    assert first.whole is second.whole
    assert first.pattern is second.pattern is third.pattern
    assert first.whole.defined is third.whole.defined
    assert first.clusters is third.clusters
    assert third.whole is not first.whole
    assert third.value() == pytest.approx(first.value() / 3)
    if step != "some":  # of some units no interval is known
        refits = [each.values_without().tolist() for each in (first, second, third)]
        assert refits == [[0.0, 0.0], [0.5, 0.25], [1.0, 0.5]]  # each question has its own
