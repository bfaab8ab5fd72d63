"""Estimates, comparisons and results as values: equal if all they hold is, undefined numbers included."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

from truerank.core.messages import Message, Severity
from truerank.core.provenance import Input, Provenance, plain
from truerank.core.results import Comparison, Estimate, Evidence, Results
from truerank.inference.verdicts import verdict_of

SAID = Message("few-users", Severity.NOTE, "only 3 users")
ESTIMATE = Estimate(
    model="a", metric="Recall@5", k=5, estimator="pooled", settings={"rate": 0.5}, estimand="recall", value=0.5,
    stderr=math.nan, low=math.nan, high=math.inf, level=0.95, interval="population", units=3, undefined=1, clusters=2,
    ess=None, reward="label", clip=None, assumptions=("uniform",), warnings=(SAID,),
)  # fmt: skip
COMPARISON = Comparison(
    model="a", baseline="b", metric="Recall@5", estimator="pooled", difference=0.5, stderr=0.1, low=0.3, high=0.7,
    level=0.95, p=0.01, units=3, clusters=2, reward="label", clip=8.0,
)  # fmt: skip

# another value for every field
OTHERS: dict[str, Any] = {
    "model": "x", "baseline": "x", "metric": "x", "k": 6, "estimator": "x", "settings": {}, "estimand": "x",
    "value": 0.25, "stderr": 1.0, "low": 1.0, "high": 1.0, "level": 0.5, "interval": "x", "units": 9, "undefined": 9,
    "clusters": 9, "ess": 2.0, "reward": "x", "clip": 2.0, "assumptions": (), "warnings": (), "difference": -1.0,
    "p": 0.5, "p_adjusted": 0.5, "verdict": "better", "reasons": (SAID,), "segment": "x", "directed": False,
    "evidence": Evidence(informative=9), "family": 9, "interval_level": 0.5,
}  # fmt: skip


def again(value: Any) -> Any:
    """An equal value made of other objects: NaN is another NaN."""
    contents = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    other = {key: float(str(each)) if isinstance(each, float) else each for key, each in contents.items()}
    return type(value)(**other)


@pytest.mark.parametrize("value", [ESTIMATE, COMPARISON])
def test_undefined_equals_undefined_and_every_field_counts(value: Estimate | Comparison) -> None:
    assert value == again(value)
    assert hash(value) == hash(again(value))
    for field in dataclasses.fields(value):
        assert value != replace(value, **{field.name: OTHERS[field.name]}), field.name
    assert value != "something else"


@pytest.mark.parametrize(
    ("difference", "p", "verdict"),
    [
        (0.5, 0.04, "better"),
        (-0.5, 0.04, "worse"),
        (0.5, 0.05, "not shown"),
        (0.5, 0.051, "not shown"),
        (0.5, math.nan, "not shown"),
        (0.0, 0.0, "not shown"),
        (math.nan, math.nan, "not shown"),
    ],
)
def test_the_verdict_follows_from_the_adjusted_p(difference: float, p: float, verdict: str) -> None:
    comparison = replace(COMPARISON, difference=difference, verdict=verdict_of(difference, p, level=0.95, reasons=()))
    assert comparison.verdict == verdict
    turned = comparison.reverse()
    assert turned.verdict == {"better": "worse", "worse": "better"}.get(verdict, verdict)
    assert (turned.model, turned.baseline) == ("b", "a")
    assert turned.reverse() == comparison


class Units(NamedTuple):
    values: tuple[float, ...]

    def frame(self) -> pl.DataFrame:
        return pl.DataFrame({"value": self.values})


def test_results_are_equal_if_all_they_hold_is() -> None:
    results = Results((ESTIMATE,), (COMPARISON,), (SAID,), Provenance(), Units((1.0, math.nan)))
    assert results == Results((again(ESTIMATE),), (again(COMPARISON),), (SAID,), Provenance(),
                              Units((1.0, math.nan)))  # fmt: skip
    for other in (
        replace(results, estimates=()),
        replace(results, comparisons=()),
        replace(results, messages=()),
        replace(results, provenance=Provenance(call="x")),
        replace(results, unit_table=Units((1.0, 2.0))),
        replace(results, unit_table=None),
    ):
        assert results != other
    assert replace(results, segments=lambda _: {}) == results
    assert results != 3


# ---------------------------------------------------------------------------------------------------------- provenance


class Kind(Enum):
    ONE = 1.5


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.array([1, 2]), [1, 2]),
        (np.array([math.nan]), [None]),
        (np.bool_(True), True),
        (True, True),
        (-math.inf, "-inf"),
        (2**70, str(2**70)),
        (Kind.ONE, 1.5),
        (Path("a/b"), "a/b"),
        ({1: (2, None)}, {"1": [2, None]}),
        (Input(role="log", source="a"), plain(dataclasses.asdict(Input(role="log", source="a")))),
    ],
)
def test_plain_data(value: object, expected: object) -> None:
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)
    assert plain(found) == found


def test_provenance_is_plain_and_no_longer_the_callers() -> None:
    given: dict[str, Any] = {"clips": [1.0, math.inf]}
    provenance = Provenance(details=given, settings={"kind": Kind.ONE})
    given["clips"].append(3)
    assert provenance.details == {"clips": [1.0, "inf"]}
    assert provenance.settings == {"kind": 1.5}
