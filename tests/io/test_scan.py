"""Chunks read with what a scan found are the rows of the whole, in the same types, with the same messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

from truerank.core.log import Log
from truerank.io.batches import LazyTable
from truerank.io.facts import Facts
from truerank.io.partition import together
from truerank.io.read import read, read_impressions, scan, scan_impressions
from truerank.io.spill import scratch

N = 600
RNG = np.random.default_rng(3)
CELL = RNG.permutation(50 * 40)[:N]
LABELS = pl.DataFrame({
    "uid": [f"u{cell // 40}" for cell in CELL], "item": CELL % 40, "rating": RNG.integers(0, 6, N),
    "propensity": RNG.uniform(0.1, 1, N), "position": RNG.integers(1, 9, N), "time": RNG.integers(0, 99, N),
})  # fmt: skip
SHOWN = pl.DataFrame({
    "session": CELL // 40, "user": (CELL // 40) % 17, "item": CELL % 40, "position": CELL % 40 + 1,
    "click": RNG.random(N) < 0.2, "seconds": np.where(RNG.random(N) < 0.9, 0.0, RNG.normal(size=N)),
    "viewed": RNG.random(N) < 2, "surface": RNG.choice(["a", "b"], N), "other": RNG.random(N),
    "candidates": [list(range(41))] * N,
})  # fmt: skip


JUDGED: tuple[Any, ...] = (LABELS, (read, scan), {"columns": {"user": "uid"}, "items": list(range(40))})
NUMBERED = SHOWN.with_columns(pl.col("viewed").cast(pl.Int64))
RANKED: tuple[Any, ...] = (
    NUMBERED, (read_impressions, scan_impressions), {"rewards": ["click"], "extra": ["other"]},
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "column", "value", "words"),
    [
        (JUDGED, "uid", None, "row 501 has no id"),
        (JUDGED, "item", 99, "row 501, id 99 is not among the given items"),
        (JUDGED, "rating", None, "row 501 is None"),
        (JUDGED, "propensity", 0.0, "row 501, propensity is 0; expected a probability"),
        (JUDGED, "position", 0, "row 501, position is 0; expected a whole number"),
        (RANKED, "click", None, "row 501 is None"),
        (RANKED, "position", 0, "row 501, position is 0; expected a whole number"),
        (RANKED, "viewed", 3, "row 501, viewed is 3; expected 0 or 1"),
        (RANKED, "surface", None, "row 501 has no surface"),
        (RANKED, "other", float("inf"), "row 501, other is infinite"),
    ],
)
def test_rows_of_the_file_are_named(
    monkeypatch: pytest.MonkeyPatch, kind: tuple[Any, ...], column: str, value: Any, words: str
) -> None:
    """In a later batch, too, with the message of reading at once."""
    rows, functions, options = kind
    bad = rows.with_columns(pl.when(pl.int_range(N) == 500).then(pl.lit(value)).otherwise(column).alias(column))
    monkeypatch.setattr(LazyTable, "batch_rows", lambda *_: 64)
    messages = set()
    for function in functions:
        with refused(words) as caught:
            function(bad, **options)
        messages.add(str(caught.value))
    assert len(messages) == 1


# ------------------------------------------------------------------------------------------------------- impressions


def rows_of_impressions(log: Log) -> list[tuple[Any, ...]]:
    if log.sessions is None or log.session_of_unit is None or log.position is None or log.surface is None:
        raise TypeError
    unit = log.sessions.texts(log.session_of_unit[log.unit])
    return sorted(zip(unit, log.items.texts(log.item), log.position, log.surface, log.columns["other"],
                      *log.rewards.values(), strict=True))  # fmt: skip


@pytest.mark.parametrize("n_chunks", [1, 7, 200])
@pytest.mark.parametrize("without", [[], ["user"]])
def test_chunks_of_impressions(tmp_path: Path, n_chunks: int, without: list[str]) -> None:
    SHOWN.drop(without).write_parquet(tmp_path / "x.parquet", row_group_size=100)
    options: dict[str, Any] = {"rewards": ["click", "seconds"], "extra": ["other"]}
    whole = read_impressions(tmp_path / "x.parquet", **options)
    schema = scan_impressions(tmp_path / "x.parquet", **options)
    assert schema.items == whole.items
    assert len(schema.items) == 41  # one only competes
    assert schema.users == whole.users
    assert schema.facts["click"].total == SHOWN["click"].sum()
    assert schema.facts["seconds"].minimum < 0
    with scratch(tmp_path) as place:
        chunks = together({"log": schema.keyed}, scratch=place, n_chunks=n_chunks)
        logs = [schema.read(chunks.chunk(at)["log"]) for at in range(n_chunks)]
    assert sorted(row for log in logs for row in rows_of_impressions(log)) == rows_of_impressions(whole)
    assert sum(log.n_units for log in logs) == whole.n_units
    assert sum(len(np.unique(log.cluster_of_unit())) for log in logs) == len(np.unique(whole.cluster_of_unit()))
    kinds = {key: values.dtype for key, values in whole.rewards.items()}
    assert all({key: values.dtype for key, values in log.rewards.items()} == kinds for log in logs)
    assert all(log.viewed is None for log in logs)
    assert all((log.length == 41).all() for log in logs if log.length is not None)


@pytest.mark.parametrize("n_chunks", [1, 7, 200])
@pytest.mark.parametrize("without", [["session"], ["session", "user"]])
def test_rows_that_are_units_have_keys_of_their_own(tmp_path: Path, n_chunks: int, without: list[str]) -> None:
    """What a row says and its number among equals: the same in any chunks and any order."""
    rows = SHOWN.drop(without).with_columns(item=pl.col("item") % 3, position=1, other=0.5, seconds=0.0)
    rows = rows.drop("candidates")
    whole = read_impressions(rows.sample(fraction=1, shuffle=True, seed=2), rewards=["click"], extra=["other"])
    schema = scan_impressions(rows, rewards=["click"], extra=["other"])
    with scratch(tmp_path) as place:
        chunks = together({"log": schema.keyed}, scratch=place, n_chunks=n_chunks)
        logs = [schema.read(chunks.chunk(at)["log"]) for at in range(n_chunks)]
    keys = [log.unit_key for log in (whole, *logs)]
    if any(key is None for key in keys):
        raise TypeError
    joined = np.concatenate([key for key in keys[1:] if key is not None])
    assert sorted(joined.tolist()) == sorted(keys[0].tolist() if keys[0] is not None else [])
    assert len(np.unique(joined)) == N or "user" not in without
    assert whole.between(0, 5).unit_key is not None


def test_what_a_session_cannot_have_is_found_in_its_chunk() -> None:
    session = [1, 1, 2, 2]
    rows = pl.DataFrame({"session": session, "item": [1, 2, 1, 1], "position": [1, 2, 1, 2], "label": [0, 1, 0, 1]})
    schema = scan_impressions(rows)
    assert len(schema.read(rows[:2])) == 2
    with refused("session 2 has item 1 twice"):
        schema.read(rows[2:])
    lists = rows.with_columns(item=pl.Series([1, 2, 1, 2]), candidates=pl.Series([2, 2, 2, 3]))
    with refused("a row of session 2, candidates differ within a session"):
        scan_impressions(lists).read(lists[2:])


# -------------------------------------------------------------------------------------------------------------- parts


def test_facts_add_up() -> None:
    values = np.concatenate([RNG.integers(-999, 999, 999).astype(float), [0.0, -0.0]])
    parts = [Facts.of(part) for part in np.array_split(values, 13)]
    total = Facts()
    for part in reversed(parts):
        total = total + part
    assert total == Facts.of(values)
    assert total.total == values.sum()
