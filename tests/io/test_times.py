"""Times of rows are put in order of time, or refused; missing times are dropped on request, and counted.

The rows are in random order, so that no order but that of the times gives the right parts.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from calling import call

import truerank as tr
from truerank.core.errors import InputError

N, N_USERS, N_TEST = 240, 12, 48
START = datetime.datetime(2023, 11, 28, 22, 15, 30)  # the days pass the end of a month and of a year
HOURS = np.random.default_rng(5).permutation(N) * 7
INSTANTS = [START + datetime.timedelta(hours=int(hours)) for hours in HOURS]
SECONDS = [int(each.replace(tzinfo=datetime.UTC).timestamp()) for each in INSTANTS]
ROWS = pl.DataFrame({"user": np.arange(N) % N_USERS, "item": np.arange(N) // N_USERS, "hour": HOURS})
LATEST = sorted(ROWS.filter(pl.col("hour") >= np.sort(HOURS)[N - N_TEST]).select("user", "item").rows())
LAST = sorted(ROWS.sort("hour").group_by("user").last().select("user", "item").rows())


def text(form: str) -> list[str]:
    return [each.strftime(form) for each in INSTANTS]


def unpadded(instant: datetime.datetime) -> str:
    return f"{instant.year}-{instant.month}-{instant.day} {instant.hour}:15"


UNPADDED = pl.Series([unpadded(each) for each in INSTANTS])


def replaced(values: list[Any], row: int, value: Any) -> list[Any]:
    return [*values[:row], value, *values[row + 1 :]]


ORDERED: dict[str, pl.Series] = {
    "datetimes": pl.Series(INSTANTS),
    "datetimes of a time zone": pl.Series(INSTANTS).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo"),
    "seconds": pl.Series(SECONDS),
    "seconds as floats": pl.Series([float(each) for each in SECONDS]),
    "milliseconds": pl.Series([1000 * each for each in SECONDS]),
    "decimals": pl.Series([Decimal(each) for each in SECONDS]),
    "wide integers": pl.Series(SECONDS, dtype=pl.Int128),
    "counts from zero": pl.Series(HOURS),
    "milliseconds since the start": pl.Series(HOURS * 3_600_000),
    "nanoseconds since the start": pl.Series(HOURS * 10**9),
    "before and after 0": pl.Series(HOURS - 500),
    "numbers of digits": pl.Series([int(each) for each in text("%Y%m%d%H%M%S")]),
    "ISO with T": pl.Series(text("%Y-%m-%dT%H:%M:%S")),
    "ISO with a space": pl.Series(text("%Y-%m-%d %H:%M:%S")),
    "ISO in minutes": pl.Series(text("%Y-%m-%d %H:%M")),
    "ISO in UTC": pl.Series(text("%Y-%m-%dT%H:%M:%SZ")),
    "ISO with fractions": pl.Series([f"{each}{'.25' if row % 2 else ''}" for row, each in enumerate(text("%F %T"))]),
    "ISO as categories": pl.Series(text("%Y-%m-%dT%H:%M:%S"), dtype=pl.Categorical),
}
REFUSED: dict[str, tuple[pl.Series, int]] = {  # and the first row that is named
    "DD-MM-YYYY": (pl.Series(text("%d-%m-%Y")), 1),
    "DD/MM/YYYY": (pl.Series(text("%d/%m/%Y")), 1),
    "MM-DD-YYYY": (pl.Series(text("%m-%d-%Y")), 1),
    "ISO without padding": (UNPADDED, 1 + int((UNPADDED.str.len_bytes() < 16).arg_true()[0])),
    "names of months": (pl.Series(text("%b %d %Y %H:%M")), 1),
    "time of day as text": (pl.Series(text("%H:%M:%S")), 1),
    "time of day": (pl.Series([each.time() for each in INSTANTS]), 1),
    "durations": (pl.Series([each - START for each in INSTANTS]), 1),
    "booleans": (pl.Series(HOURS > 400), 1),
    "numbers as text": (pl.Series([str(each) for each in SECONDS]), 1),
    "one field that is no number": (pl.Series(replaced([str(each) for each in SECONDS], 6, "n/a")), 7),
    "one date of another form": (pl.Series(replaced(text("%Y-%m-%d"), 6, "31/12/2023")), 7),
    "a date that does not exist": (pl.Series(replaced(text("%Y-%m-%d"), 6, "2024-02-30")), 7),
    "some with an offset": (pl.Series(replaced(text("%Y-%m-%dT%H:%M:%S"), 6, "2024-01-01T00:00:00Z")), 7),
    "a date among datetimes": (pl.Series(replaced(text("%Y-%m-%dT%H:%M:%S"), 6, "2024-01-01")), 7),
    "seconds and milliseconds": (pl.Series([s * (1000 if row % 3 == 1 else 1) for row, s in enumerate(SECONDS)]), 2),
    "one of milliseconds": (pl.Series(replaced(SECONDS, 6, 1000 * SECONDS[6])), 7),
    "one of seconds": (pl.Series(replaced([1000 * each for each in SECONDS], 6, SECONDS[6])), 7),
    "0 for a missing time": (pl.Series(replaced(SECONDS, 6, 0)), 7),
    "-1 for a missing time": (pl.Series(replaced(SECONDS, 6, -1)), 7),
    "one of digits": (pl.Series(replaced(SECONDS, 6, 20240131)), 7),
}
MISSING: dict[str, pl.Series] = {
    "a null among numbers": pl.Series(replaced(SECONDS, 6, None)),
    "a null among datetimes": pl.Series(replaced(list(INSTANTS), 6, None)),
    "a null among text": pl.Series(replaced(text("%Y-%m-%dT%H:%M:%S"), 6, None)),
    "empty text": pl.Series(replaced(text("%Y-%m-%dT%H:%M:%S"), 6, "")),
    "NaN": pl.Series(replaced([float(each) for each in SECONDS], 6, float("nan"))),
    "inf": pl.Series(replaced([float(each) for each in SECONDS], 6, float("inf"))),
    "-inf": pl.Series(replaced([float(each) for each in SECONDS], 6, float("-inf"))),
}


def timed(times: pl.Series) -> pl.DataFrame:
    return ROWS.select("user", "item").with_columns(time=times)


def pairs(part: tr.Log) -> list[tuple[int, int]]:
    return sorted(zip(part.users.values.gather(part.user), part.items.values.gather(part.item), strict=True))


def refused(by: Callable[[], object]) -> str:
    with pytest.raises(InputError) as told:
        by()
    return str(told.value)


@pytest.mark.parametrize("what", ORDERED)
def test_times_are_ordered_as_times(what: str) -> None:
    log = tr.read(timed(ORDERED[what]))
    assert pairs(tr.split(log, "time", 0.2).test) == LATEST
    assert pairs(tr.split(log, "last").test) == LAST


def test_offsets_from_utc_count() -> None:
    zones = [
        datetime.timezone(datetime.timedelta(hours=hours, minutes=minutes))
        for hours, minutes in ((-9, -30), (0, 0), (14, 0))
    ]
    moments = [each.replace(tzinfo=datetime.UTC).astimezone(zones[row % 3]) for row, each in enumerate(INSTANTS)]
    log = tr.read(timed(pl.Series([each.isoformat() for each in moments])))
    assert pairs(tr.split(log, "time", 0.2).test) == LATEST


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_order_in_time_is_refused_and_rows_are_named(what: str) -> None:
    column, row = REFUSED[what]
    log = tr.read(timed(column))
    for by in ("time", "last"):
        told = refused(lambda by=by: tr.split(log, by))  # type: ignore[misc]
        assert "user " in told
        assert row != 7 or f"user {ROWS['user'][6]}, item {ROWS['item'][6]} is" in told  # the only one
    assert refused(lambda: tr.split(log, "time", drop_missing_times=True))  # which drops only what is missing


@pytest.mark.parametrize(
    ("what", "ending"),
    [
        *((what, "parquet") for what in (*REFUSED, *MISSING)),
        *((what, "csv") for what in (*REFUSED, *MISSING) if what not in ("numbers as text", "durations")),
    ],
)
def test_the_command_line_names_rows_of_the_file(what: str, ending: str, tmp_path: Path) -> None:
    column, row = REFUSED.get(what) or (MISSING[what], 7)
    path, out = tmp_path / f"log.{ending}", tmp_path / "parts"
    getattr(timed(column), f"write_{ending}")(path)
    ended = call(f"split {path} --by time --out {out}")
    assert (ended.code, out.exists()) == (2, False), ended.err
    assert f"row {row} is" in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("what", MISSING)
def test_missing_times_are_refused_or_dropped_and_counted(what: str, tmp_path: Path) -> None:
    log, gone = tr.read(timed(MISSING[what])), (ROWS["user"][6], ROWS["item"][6])
    assert "drop_missing_times=True" in refused(lambda: tr.split(log, "time"))
    for by in ("time", "last"):
        train, test = tr.split(log, by, drop_missing_times=True)
        assert sorted([*pairs(train), *pairs(test)]) == sorted(set(ROWS.select("user", "item").rows()) - {gone})
        assert any("1 of 240" in note for note in test.notes)
    path, out = tmp_path / "log.parquet", tmp_path / "parts"
    timed(MISSING[what]).write_parquet(path)
    ended = call(f"split {path} --by time --drop-missing-times --out {out}").fine()
    assert "1 of 240" in ended.err
    written = [pl.read_parquet(out / f"{part}.parquet").select("user", "item").rows() for part in ("train", "test")]
    assert [sorted(part) for part in written] == [
        pairs(part) for part in tr.split(log, "time", drop_missing_times=True)
    ]
