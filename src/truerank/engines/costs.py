"""What a run would take: reckoned from times that were measured, with the cluster that it would be done on.

costs.json is what `python -m benchmarks scale --keep` measured. A run has a part that the machine where it is started
does alone (looking through the rows, partitioning them where they are in no order) and a part that workers share:

    hours = (driver · rows + (work · rows · models + product · users · items · dim · models) · factor / workers) / 3600

`driver` and `work` are seconds per row (and model), `product` seconds per product of the ranking, `factor` how much
longer an engine takes than threads of one process. Times are taken as linear, as docs/scale.md shows them to be.

The machine where it is started holds something of every user (ids, places, what is needed of them at the end) and the
factors of all; a worker holds the factors of all items and of the users of a chunk. On disk are the rows by user, where
they had to be partitioned, and the sums of every user and model. Bytes of each were measured like the times.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from truerank.core.errors import InputError
from truerank.data.partition import CHUNK_ROWS

COMMANDS = ("evaluate", "offpolicy")
ENGINES = ("local", "dask", "spark")
SINGLE = 4.0  # bytes of a number in factors


@dataclass(frozen=True, slots=True)
class Rates:
    """Seconds of one core, and bytes."""

    driver: float  # seconds per row
    work: float  # per row and model
    product: float  # per user, item, dimension and model
    peak_gb: float
    factor: Mapping[str, float]
    row_bytes: float = 0.0  # on disk, of rows by user
    user_bytes: float = 0.0  # in memory where it is started, beside factors
    sum_bytes: float = 0.0  # on disk, per user and model


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """The size of a run."""

    rows: float
    users: float
    items: float = 0.0
    dim: float = 0.0
    models: int = 2
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run would take on one engine: hours by the clock and of processors, bytes of memory and of disk."""

    command: str
    engine: str
    hours: float
    driver_hours: float
    core_hours: float
    worker_gb: float
    driver_gb: float
    disk_gb: float

    @property
    def bottleneck(self) -> str:
        """What would have to become faster for the run to take less time."""
        return "partitioning on one machine" if self.driver_hours > self.hours / 2 else "workers"


@cache
def _measured() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(files("truerank.engines").joinpath("costs.json").read_text())
    return found


@cache
def rates(command: str) -> Rates:
    """From what was measured: of several sizes the largest, whose times are least disturbed by the start."""
    return rates_of(_measured(), command)


def compared_rows(command: str) -> int:
    """On how many rows in memory engines were compared."""
    return max(int(each["rows"]) for each in _measured()["engines"] if each["command"] == command)


def rates_of(measured: Mapping[str, Any], command: str) -> Rates:
    """The rates of one measurement.

    >>> run = {"command": "offpolicy", "rows": 10, "users": 2, "items": 5, "dim": 0, "models": 2, "driver_seconds": 5.0,
    ...        "rest_seconds": 1.0, "work_seconds": 4.0, "threads": 2, "peak_gb": 0.5}
    >>> space = {"command": "offpolicy", "bytes_per_row": 20.0, "bytes_per_user": 100.0, "bytes_of_sums": 50.0}
    >>> engine = {"command": "offpolicy", "engine": "dask", "ratio": 1.2}
    >>> found = rates_of({"growth": [run], "engines": [engine], "space": [space]}, "offpolicy")
    >>> found.driver, found.work, found.factor, found.row_bytes, found.user_bytes, found.sum_bytes
    (0.6, 0.4, {'dask': 1.2}, 20.0, 100.0, 50.0)
    """
    runs: Sequence[Mapping[str, Any]] = [each for each in measured["growth"] if each["command"] == command]
    largest = max(runs, key=lambda each: float(each["rows"]))
    widest = max(runs, key=lambda each: _products(each) / float(each["rows"]))
    cores = {id(each): float(each["work_seconds"]) * float(each["threads"]) for each in (largest, widest)}
    product = 0.0
    if widest is not largest and _products(widest):  # two equations: rows and products at two ratios of each other
        a, b = float(largest["rows"]) * largest["models"], _products(largest)
        c, d = float(widest["rows"]) * widest["models"], _products(widest)
        product = max(0.0, (cores[id(widest)] * a - cores[id(largest)] * c) / (d * a - b * c))
    work = (cores[id(largest)] - product * _products(largest)) / (float(largest["rows"]) * largest["models"])
    space = next(each for each in measured["space"] if each["command"] == command)
    return Rates(
        driver=(float(largest["driver_seconds"]) + float(largest["rest_seconds"])) / float(largest["rows"]),
        work=max(work, 0.0),
        product=product,
        peak_gb=max(float(each["peak_gb"]) for each in runs),
        factor={each["engine"]: float(each["ratio"]) for each in measured["engines"] if each["command"] == command},
        row_bytes=float(space["bytes_per_row"]),
        user_bytes=float(space["bytes_per_user"]),
        sum_bytes=float(space["bytes_of_sums"]),
    )


def _products(run: Mapping[str, Any]) -> float:
    return float(run["users"]) * float(run["items"]) * float(run["dim"]) * float(run["models"])


def cost(command: str, engine: str, size: Sized, *, known: Rates | None = None) -> Cost:
    """What a run of this size would take.

    >>> known = Rates(driver=1e-6, work=2e-6, product=1e-9, peak_gb=1.0, factor={"dask": 1.5})
    >>> found = cost("evaluate", "dask", Sized(rows=3.6e9, users=1e6, workers=2, models=1), known=known)
    >>> found.hours, found.core_hours, found.bottleneck  # 1 h alone, 2 h of work, 1.5 times as long, by two
    (2.5, 4.0, 'workers')
    """
    named = engine.partition(":")[0]
    if command not in COMMANDS or named not in ENGINES:
        raise InputError(f"no cost of {command} on {engine} is known; expected {' or '.join(COMMANDS)} on {ENGINES}.")
    of = rates(command) if known is None else known
    driver = of.driver * size.rows
    work = of.work * size.rows * size.models + of.product * size.users * size.items * size.dim * size.models
    work *= of.factor.get(named, 1.0)
    # bytes of the factors of an item, or of a user; logs of impressions have none
    of_each = SINGLE * size.dim * size.models if command == "evaluate" else 0.0
    at_a_time = min(size.users, size.users / size.rows * CHUNK_ROWS)  # users of a chunk
    return Cost(
        command=command,
        engine=engine,
        hours=(driver + work / max(size.workers, 1)) / 3600,
        driver_hours=driver / 3600,
        core_hours=(driver + work) / 3600,
        worker_gb=of.peak_gb + of_each * (size.items + at_a_time) / 1e9,
        driver_gb=of.peak_gb + (of_each * (size.items + size.users) + of.user_bytes * size.users) / 1e9,
        disk_gb=(of.row_bytes * size.rows + of.sum_bytes * size.users * size.models) / 1e9,
    )
