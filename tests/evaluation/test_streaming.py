"""Files too large for memory are read in chunks of whole users or sessions, and change no bit of a value."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank.core.results import Results
from truerank.evaluation import conclude, sources
from truerank.exposure.policies.targets import RankColumn
from truerank.io import partition


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    """From here on hardly anything fits into memory."""

    def shrink() -> None:
        for module in (sources, partition):
            monkeypatch.setattr(module, "MEMORY_ROWS", 100)
        monkeypatch.setattr(partition, "CHUNK_ROWS", 400)
        monkeypatch.setattr(conclude, "BUDGET", 1000)

    return shrink


def same(held: Results, streamed: Results) -> None:
    assert [estimate.value for estimate in held.estimates] == [estimate.value for estimate in streamed.estimates]
    for before, after in zip(held.estimates, streamed.estimates, strict=True):
        assert after.stderr == pytest.approx(before.stderr, rel=1e-12, nan_ok=True)
        assert (after.units, after.undefined, after.clusters) == (before.units, before.undefined, before.clusters)
        assert after.warning_texts == before.warning_texts
    for one, other in zip(held.comparisons, streamed.comparisons, strict=True):
        assert other.difference == one.difference
        assert other.p == pytest.approx(one.p, rel=1e-9, nan_ok=True)
    told = {"chunks"}  # what was done to read it in pieces is all that is said besides
    assert [str(each) for each in streamed.messages if each.code not in told] == list(held.notes)
    assert any(each.code in told for each in streamed.messages)


# -------------------------------------------------------------------------------------------------------------- ranked


def log_and_table(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows, listed = [], []
    for session in range(600):
        user, shown, depth = int(rng.integers(0, 150)), rng.permutation(40)[:8], min(8, int(rng.geometric(0.25)))
        new = rng.permutation(8) + 1
        for place in range(depth):
            click = int(rng.random() < 0.3)
            rows.append((f"s{session}", user, int(shown[place]), place + 1, click, int(new[place]), 8))
    names = ["session", "user", "item", "position", "click", "new", "candidates"]
    log = pl.DataFrame(rows, schema=names, orient="row").sample(fraction=1, shuffle=True, seed=1)
    for session in (*sorted(set(log["session"])), "never logged"):
        listed += [(session, int(item), rank + 1) for rank, item in enumerate(rng.permutation(40)[:10])]
    table = pl.DataFrame(listed, schema=["session", "item", "rank"], orient="row")
    log.write_parquet(folder / "log.parquet")
    log.drop("user").write_csv(folder / "without users.csv")
    log.drop("session").write_parquet(folder / "without sessions.parquet")
    table.sample(fraction=1, shuffle=True, seed=2).write_parquet(folder / "table.parquet")


EVERY = [f"s{session}" for session in range(640)]


@pytest.mark.parametrize(
    ("name", "targets", "how"),
    [
        ("log.parquet", ("new", "position"), {"position": "fit:exp", "clips": [1, 4, math.inf]}),
        (
            "log.parquet",
            ("table", "position"),
            {"position": "exp:0.8", "estimators": ["ips", "snips", "doubly-robust"]},
        ),
        ("without users.csv", ("table", "new"), {"position": "yule:1.5"}),
        ("without users.csv", ("new",), {"position": "exp:0.8", "sessions": EVERY}),
        ("log.parquet", ("new",), {"position": "exp:0.8", "sessions": EVERY, "interval": tr.Bootstrap(50)}),
        ("without sessions.parquet", ("new",), {"position": "exp:0.8", "estimators": ["ips"]}),
    ],
    ids=["fitted", "table and users", "table", "declared sessions", "declared sessions of users", "rows as units"],
)
def test_a_log_on_disk(tmp_path: Path, small: Any, name: str, targets: tuple[str, ...], how: dict[str, Any]) -> None:
    log_and_table(tmp_path)
    chosen = {each: str(tmp_path / "table.parquet") if each == "table" else RankColumn(each) for each in targets}
    held = tr.off_policy(str(tmp_path / name), chosen, rewards=["click"], **how)
    small()
    streamed = tr.off_policy(str(tmp_path / name), chosen, rewards=["click"], threads=2, **how)
    same(held, streamed)
    with refused("single units"):
        streamed.units()
