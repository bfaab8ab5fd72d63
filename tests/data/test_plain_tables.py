"""Values as plain tables: they come back bit by bit, and a table that names anything else is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest

from truerank.core.clusters import Clusters
from truerank.core.ranking import Pool
from truerank.core.terms import ratio
from truerank.data.plain_tables import SCHEMA, NotPlainError, of_table, to_table
from truerank.evaluation.measure import ByPlace
from truerank.metrics.recall import Recall

ARRAYS = [
    np.array([-0.0, math.nan, math.inf, 5e-324]),
    np.arange(6, dtype=np.uint64).reshape(2, 3) + 2**63,
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array([True, False]),
    np.zeros((0, 4), dtype=np.int16),
    np.array(7),
]


def written(value: Any, folder: Path) -> Any:
    """By way of a file."""
    to_table(value).write_parquet(folder / "value.parquet")
    return of_table(pl.read_parquet(folder / "value.parquet"))


@pytest.mark.parametrize("array", ARRAYS, ids=lambda each: f"{each.dtype}{each.shape}")
def test_arrays_come_back_bit_by_bit(tmp_path: Path, array: np.ndarray) -> None:
    found = written(array, tmp_path)
    assert (found.dtype, found.shape, found.flags.f_contiguous) == (array.dtype, array.shape, array.flags.f_contiguous)
    assert found.tobytes() == array.tobytes()
    assert found.flags.writeable


def test_all_that_values_are_made_of(tmp_path: Path) -> None:
    value = {
        ("a", Pool.JUDGED, Recall(5)): (1, None, True, [2.5, -0.0], "text"),
        "large": 2**62,
        "set": frozenset({"b", "a"}),
        "number": np.float64(0.1),
        "ids": pl.Series(["x", "y"]),
    }
    found = written(value, tmp_path)
    assert {key: each for key, each in found.items() if key != "ids"} == {
        key: each for key, each in value.items() if key != "ids"
    }
    assert found["ids"].to_list() == ["x", "y"]
    assert isinstance(found["number"], np.float64)
    assert math.copysign(1, found["a", Pool.JUDGED, Recall(5)][3][1]) == -1


def test_what_is_one_object_stays_one(tmp_path: Path) -> None:
    clusters = Clusters.numbered(2)
    one = ratio(np.array([1.0, 2.0]), np.array([2.0, 4.0]), clusters=clusters)
    first, second, other = written([one, one, ratio(np.ones(2), np.ones(2), clusters=clusters)], tmp_path)
    assert first is second
    assert first.clusters is other.clusters
    assert first.value() == 0.5


@dataclass(frozen=True)
class Foreign:
    """No part of the package."""

    x: int


@dataclass
class Open:
    """Not frozen."""


@pytest.mark.parametrize(
    "value",
    [Foreign(1), Open(), object(), {1, 2}, b"bytes", np.array(["a"]), np.array([object()]), abs, Foreign, 1j],
    ids=lambda each: type(each).__name__,
)
def test_what_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(NotPlainError):
        to_table([value])


def table(tree: Any, **row: Any) -> pl.DataFrame:
    """A table by hand, as somebody else might write it."""
    rows = [("tree", [], msgspec.json.encode(tree)), *([tuple(row.values())] if row else [])]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@pytest.mark.parametrize(
    "tree",
    [
        ["value", "os", "system", {"command": "true"}],
        ["value", "truerank.data.files", "write_table", {"table": None, "path": "x"}],  # a function
        ["value", "truerank.data.folders", "Path", {}],  # of another module
        ["value", "truerank.data.spill", "Scratch", {}],  # not frozen
        ["value", "truerank.core.clusters", "Clusters.alone", {"key": 1}],
        ["value", "truerank.nothing", "Nothing", {}],
        ["value", "truerank.core.rows", "Weighting", {"rows": 1}],  # a field is missing
        ["enum", "truerank.core.ranking", "Pool", "nowhere"],
        ["again", 3],
        ["array", 5],
        ["eval", "1"],
    ],
    ids=str,
)
def test_a_table_that_names_anything_else_is_refused(tree: Any) -> None:
    with pytest.raises(NotPlainError):
        of_table(table(tree))


@pytest.mark.parametrize(
    "row", [("|O", [1], bytes(8)), ("<f8", [3], bytes(8)), ("column", [1], b"no"), ("?!", [1], b"")]
)
def test_arrays_that_are_none_are_refused(row: tuple[str, list[int], bytes]) -> None:
    kind, shape, content = row
    with pytest.raises(NotPlainError):
        of_table(table(["array", 0], kind=kind, shape=shape, content=content))


def test_another_table_is_refused() -> None:
    with pytest.raises(NotPlainError):
        of_table(pl.DataFrame({"a": [1]}))


def test_the_check_can_fail() -> None:
    """The table by hand is one that can be read, if it names what is there."""
    place, value = np.arange(2), np.ones(2)
    by_hand = table(["value", "truerank.evaluation.measure", "ByPlace", {"place": ["tuple", []], "value": None}])
    assert isinstance(of_table(by_hand), ByPlace)
    assert of_table(to_table(ByPlace(place, value))).sum() == 2
