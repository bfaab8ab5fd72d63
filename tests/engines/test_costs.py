"""What a run would take: reckoned by hand from made-up rates, and from what was measured."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from calling import call

from truerank.data.partition import CHUNK_ROWS
from truerank.engines.costs import COMMANDS, ENGINES, Rates, Sized, cost, rates, rates_of

KNOWN = Rates(
    driver=1e-6, work=2e-6, product=0.0, peak_gb=1.0, factor={"dask": 1.5}, row_bytes=20.0, user_bytes=100.0,
    sum_bytes=30.0,
)  # fmt: skip
SIZE = Sized(rows=CHUNK_ROWS * 100, users=1e6, items=1e5, dim=50, models=2, workers=4)


def test_workers_hold_the_factors_of_items_and_of_the_users_of_a_chunk() -> None:
    found = cost("evaluate", "dask", SIZE, known=KNOWN)
    numbers = 4 * 50 * 2  # bytes of an item or a user in both models
    assert found.worker_gb == pytest.approx(1.0 + numbers * (1e5 + 1e4) / 1e9)  # a hundred chunks
    assert found.driver_gb == pytest.approx(1.0 + (numbers * (1e5 + 1e6) + 100 * 1e6) / 1e9)
    many = cost("evaluate", "dask", replace(SIZE, rows=SIZE.rows * 10, users=1e7), known=KNOWN)
    assert many.worker_gb == pytest.approx(found.worker_gb)  # more users in more chunks


def test_logs_of_impressions_have_no_factors() -> None:
    found = cost("offpolicy", "dask", SIZE, known=KNOWN)
    assert found.worker_gb == 1.0
    assert found.driver_gb == pytest.approx(1.0 + 100 * 1e6 / 1e9)


def test_disk_is_rows_and_sums() -> None:
    found = cost("offpolicy", "local", SIZE, known=KNOWN)
    assert found.disk_gb == pytest.approx((20 * SIZE.rows + 30 * 1e6 * 2) / 1e9)


@pytest.mark.parametrize("command", COMMANDS)
def test_bytes_were_measured(command: str) -> None:
    measured = json.loads(files("truerank.engines").joinpath("costs.json").read_text())
    known = rates(command)
    assert min(known.row_bytes, known.user_bytes, known.sum_bytes) > 0
    space = next(each for each in measured["space"] if each["command"] == command)
    space["bytes_per_row"] *= 2
    assert rates_of(measured, command).row_bytes == 2 * known.row_bytes


def test_the_command_of_the_documentation_needs_no_other_option() -> None:
    command = ["plan", "cost", "--rows", "10e9", "--items", "1e6", "--dim", "64", "--models", "5"]
    done = call(*command)
    assert done.code == 0, done.err
    assert done.out.startswith("1e+10 rows of 1e+09 users, 5 models, 1e+06 items, 64 dimensions")
    told: dict[str, Any] = json.loads(call(*command, "--format", "json").out)
    assert [(each["command"], each["engine"]) for each in told["costs"]] == [
        (name, engine) for name in COMMANDS for engine in ENGINES
    ]
    assert told["size"]["users"] == 1e9  # ten rows of each, where nobody says how many users there are


@pytest.mark.slow
def test_space_is_measured(tmp_path: Path) -> None:
    from benchmarks.scale import _space

    found = _space("offpolicy", tmp_path, 0.02)
    assert found["users"][0] < found["users"][1]
    assert found["bytes_per_row"] > 5
    assert found["bytes_of_sums"] > 0
    assert not list(tmp_path.iterdir())
