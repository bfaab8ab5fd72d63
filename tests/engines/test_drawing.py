"""`intervene` draws the same rows whoever draws them, however they are cut, and in whatever form they come."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from engine_cases import in_files
from polars.testing import assert_frame_equal
from refusals import refused

import truerank as tr
from truerank.core.arrays import Ints
from truerank.engines.named import frame_of
from truerank.evaluation import intervening
from truerank.exposure.interventions import STRATEGIES
from truerank.io import partition
from truerank.sampling import pools
from truerank.sampling.pools import DrawKeys, LastCells, Members, PoolOrder

NAMES = sorted(STRATEGIES.catalogue())
OPTIONS: dict[str, Any] = {"fraction": 0.4, "seed": 3}


@cache
def logs() -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """A log in no order, of which one user has a tenth, with ids that are text; training data; a random slice."""
    rng = np.random.default_rng(6)
    n_users, n_items = 90, 40
    popular = rng.choice(n_items, 4000, p=1 / np.arange(1, n_items + 1) / (1 / np.arange(1, n_items + 1)).sum())
    pairs = pl.DataFrame({"user": rng.integers(0, n_users, 4000), "item": popular}).unique(maintain_order=True)
    heavy = pl.DataFrame({"user": [0] * n_items, "item": np.arange(n_items)})
    pairs = pl.concat([heavy, pairs]).unique(maintain_order=True, subset=["user", "item"])
    pairs = pairs.sample(fraction=1.0, shuffle=True, seed=1).with_columns(
        user=pl.format("u{}", "user"), label=pl.Series(rng.integers(0, 2, len(pairs)))
    )
    n = len(pairs) // 2
    return pairs[:n].with_row_index("note"), pairs[n:], pairs[n::7]


def wanted(strategy: str) -> pl.DataFrame:
    """What the plain way draws, which puts all rows in order."""
    frame, train, random = logs()
    log = tr.read(frame)
    kept = tr.intervene(log, strategy, train=tr.read(train), random=tr.read(random), **OPTIONS)
    pairs = pl.DataFrame({"user": kept.users.values[kept.user], "item": kept.items.values[kept.item]})
    return frame.join(pairs, on=["user", "item"], how="semi", maintain_order="left")


def drawn(source: Any, strategy: str, engine: Any = None, **options: Any) -> Any:
    _, train, random = logs()
    return tr.intervene(source, strategy, train=train, random=random, engine=engine, **OPTIONS, **options)


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if memory held a hundred rows, and few keys could be looked at."""
    for module in (intervening, partition):
        monkeypatch.setattr(module, "MEMORY_ROWS", 100)
    monkeypatch.setattr(partition, "CHUNK_ROWS", 80)
    monkeypatch.setattr(pools, "CELLS", 2**pools.FEWEST_BITS)


@pytest.mark.parametrize("strategy", NAMES)
def test_all_strategies_on_frames_and_files(tmp_path: Path, strategy: str, request: pytest.FixtureRequest) -> None:
    expected = wanted(strategy)
    assert 0 < len(expected) <= len(logs()[0])
    assert_frame_equal(drawn(logs()[0], strategy), expected)
    request.getfixturevalue("streamed")
    folder = in_files(logs()[0], tmp_path / "log")
    found = drawn(folder, strategy)
    assert_frame_equal(found.sort("note"), expected.sort("note"))
    rows = [pl.read_parquet(path) for path in sorted(folder.iterdir())]
    assert_frame_equal(found, pl.concat(rows).join(expected, on="note", how="semi", maintain_order="left"))


@pytest.mark.parametrize("name", [intervening.ROW, "__row__"])
def test_a_column_may_have_the_name_of_row_numbers(tmp_path: Path, name: str, streamed: None) -> None:
    named = logs()[0].rename({"note": name})
    expected = wanted("skew").rename({"note": name})
    assert_frame_equal(drawn(in_files(named, tmp_path / "log"), "skew").sort(name), expected.sort(name))
    users = drawn(named.rename({name: "note", "user": name}), "skew", columns={"user": name})
    assert users[name].to_list() == wanted("skew")["user"].to_list()


@pytest.mark.parametrize("strategy", NAMES)
def test_all_strategies_on_engines(tmp_path: Path, strategy: str, engine: Any) -> None:
    path = tmp_path / "log.parquet"
    logs()[0].write_parquet(path)
    assert_frame_equal(drawn(path, strategy, engine), wanted(strategy))


def here(frame: Any) -> pl.DataFrame:
    """The rows of a Spark or Dask frame."""
    return pl.DataFrame(frame.toArrow() if hasattr(frame, "toArrow") else frame.compute())


def test_frames_of_an_engine_come_back_as_such(engine: Any) -> None:
    frame = logs()[0].with_columns(pl.col("note").cast(pl.Int64))
    there = frame_of(engine, frame)
    found = drawn(there, "skew", engine)
    assert type(found) is type(there)
    assert_frame_equal(here(found), wanted("skew"), check_dtypes=False)


def test_units_as_frames_of_an_engine(engine: Any) -> None:
    labels = pl.DataFrame({"user": [0, 0, 1, 1], "item": [0, 1, 0, 1], "label": [1, 0, 0, 1]})
    results = tr.evaluate({"a": np.eye(2)}, labels, metrics=["Recall@1"])
    found = results.units(engine=engine)
    assert_frame_equal(here(found), results.units(), check_dtypes=False)
    with refused("expected a SparkSession or a Dask Client"):
        results.units(engine="dask")


@pytest.mark.parametrize("n", [0, 1, 7, 300, 301, 999])
@pytest.mark.parametrize("weighs", [False, True])
def test_thresholds_are_the_draw(monkeypatch: pytest.MonkeyPatch, n: int, weighs: bool) -> None:
    """Of pools of several sizes, one of them empty, with equal weights and weights of 0, cut into chunks."""
    monkeypatch.setattr(pools, "CELLS", 16)
    rng = np.random.default_rng(n)
    pool = rng.choice([0, 1, 3], 600, p=[0.5, 0.48, 0.02])
    weight = rng.choice([0.0, 1e-9, 1.0], 600) if weighs else None

    def members_of(rows: Ints) -> Members:
        weights = None if weight is None else weight[rows]
        return Members(pool[rows].astype(np.uint64), rows.astype(np.uint64), weights)

    members = members_of(np.arange(600))
    order = PoolOrder.drawn(members, seed=1, purpose="x")
    expected = np.flatnonzero(order.first(n) & (members.weights > 0))
    cuts = np.split(np.arange(600), [100, 350])
    keys = [DrawKeys.of(members_of(rows), seed=1, purpose="x") for rows in cuts]
    rows = [cut if weight is None else cut[weight[cut] > 0] for cut in cuts]
    last = LastCells.of(n, np.sum([LastCells.counts(each, n_pools=4) for each in keys], axis=0))
    threshold = last.threshold([each.select(last.within(each)) for each in keys])
    found = np.concatenate([mine[threshold.drawn(each)] for mine, each in zip(rows, keys, strict=True)])
    assert found.tolist() == expected.tolist()
