"""Times of rows: numbers, dates or datetimes, by which rows can be put in order.

Text is read only as padded ISO 8601 (2024-01-31, 2024-01-31T09:30:00, with a fraction and an offset where it has them):
the order of other dates as text is not their order in time. One column has one kind: dates, datetimes, or datetimes
with an offset. Numbers must have one unit, see `_check_unit`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Ints, frozen
from truerank.core.errors import InputError, some
from truerank.core.log import Log
from truerank.core.wording import columns_option, option

ISO = (
    r"^(?<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?<clock>[0-9]{2}:[0-9]{2})(?::(?<second>[0-9]{2})(?:[.,](?<fraction>[0-9]{1,9}))?)?"
    r"(?<offset>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)
NAMED_ROWS, LONGEST = 3, 60  # rows in a message, and characters of a value there
UNIT_GAP = 50.0  # factor between two groups of numbers that are not of one unit
UNIT_SPREAD = 10.0  # factor that instants of one unit span at most, from 1976 on
SMALLEST_INSTANT = 3e8  # seconds from 1970 to 1979; instants in finer units are larger
CONVERT = (
    "Times are numbers (such as seconds since 1970), dates, datetimes, or ISO 8601 text (2024-01-31 or "
    "2024-01-31T09:30:00Z, one form in a column). Convert the column first, for example with polars: "
    'pl.col("time").str.to_datetime("%d-%m-%Y").'
)
CAST = 'pl.col("time").cast(pl.Int64)'

RowName = Callable[[int], str]


def row_number(row: int) -> str:
    """The name of a row in messages, where rows are in the order of their file."""
    return f"row {row + 1:,}"


def pair_name(log: Log) -> RowName:
    """The name of a row in messages, where rows are not in the order of their file: its user and item."""
    return lambda row: f"user {log.users.texts(log.user[[row]])[0]}, item {log.items.texts(log.item[[row]])[0]}"


def parse_times(
    column: pl.Series, *, where: str, drop_missing: bool = False, name_row: RowName = row_number
) -> pl.Series:
    """The times of a column as numbers, dates or datetimes.

    A column that is something else, numbers of mixed units and missing times (null, NaN, infinite, empty text) are
    refused. With `drop_missing` a missing time is null instead, for the caller to drop and to count.

    >>> parse_times(pl.Series(["2024-01-31", "2024-02-01"]), where="log.csv").to_list()[0]
    datetime.datetime(2024, 1, 31, 0, 0)
    >>> parse_times(pl.Series([3.0, float("nan")]), where="log.csv", drop_missing=True).to_list()
    [3.0, None]
    """
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        times = _parse_text(column, where=where, name_row=name_row)
    elif column.dtype.is_numeric():
        times = _finite(column)
        _check_unit(times, where=where, name_row=name_row)
    elif column.dtype in (pl.Date, pl.Datetime, pl.Null):
        times = column
    else:
        what = {pl.Time: "times of day, without a date", pl.Duration: "durations"}.get(
            column.dtype.base_type(), f"{column.dtype} values"
        )
        raise InputError(f"{where}: {what}: {_rows(column, column.is_not_null(), name_row)}. {CONVERT}")
    missing = times.is_null()
    if not drop_missing and bool(missing.any()):
        raise InputError(
            f"{where}: {missing.sum():,} of {len(times):,} times are missing: {_rows(column, missing, name_row)}. Add "
            f"them, or drop these rows: {option('drop_missing_times', 'drop_missing_times=True')}."
        )
    return times


def with_times(log: Log, *, drop_missing: bool = False, name_row: RowName | None = None) -> tuple[Log, Bools]:
    """A log whose times are parsed, see `parse_times`, and which of its rows these are: all, or those with a time.

    Messages name rows by user and item, unless by `name_row`.
    """
    if log.time is None:
        raise InputError(
            f"{log.source}: no time column, which orders the rows. Name it: {columns_option('time')}; a split by user "
            f"({option('by user')}) needs none."
        )
    values = log.time.tolist() if log.time.dtype == object else log.time  # polars tells the type of a list better
    column = pl.Series("time", values, strict=False)
    name = pair_name(log) if name_row is None else name_row
    times = parse_times(column, where=f"{log.source}, time", drop_missing=drop_missing, name_row=name)
    has_time = times.is_not_null()
    timed = replace(log.select(has_time.to_numpy()), time=frozen(time_array(times.filter(has_time))))
    return timed, has_time.to_numpy()


def time_ranks(log: Log) -> Ints:
    """The place of each row's time among all times from 1 on; equal times have one place.

    >>> import truerank as tr
    >>> time_ranks(tr.read(pl.DataFrame({"user": [1, 2, 3], "item": [1, 1, 1], "time": [30, 10, 30]}))).tolist()
    [2, 1, 2]
    """
    timed, _ = with_times(log)
    return pl.Series(timed.time).rank("dense").to_numpy().astype(np.int64)


def about_missing_times(timed: Bools, source: str) -> list[str]:
    """How many rows were dropped because they have no time."""
    dropped = int(np.count_nonzero(~timed))
    return [f"{source}: {dropped:,} of {len(timed):,} rows have no time and were dropped."] if dropped else []


def time_array(column: pl.Series) -> Any:
    """A column of times as an array, before anything is known of it; numbers that numpy does not have as floats."""
    wide = column.dtype in (pl.Int128, pl.UInt128, pl.Decimal)
    return (column.cast(pl.Float64) if wide else column).to_numpy()


# ------------------------------------------------------------------------------------------------------------- numbers


def _finite(column: pl.Series) -> pl.Series:
    """Numbers, null where they are not finite."""
    return column.set(~column.is_finite(), None) if column.dtype.is_float() else column


def _check_unit(times: pl.Series, *, where: str, name_row: RowName) -> None:
    """Refuse numbers of different units, such as seconds and milliseconds.

    The rule: the largest times, within a factor of 10, are at least 3e8, and at least 50 times as large as every other
    time. Seconds and milliseconds of the same years differ by more than that, as do dates such as 20240131, or a 0 or
    -1 in place of a missing time; times that are counted from the start of a log fill the gap.
    """
    numbers = times.cast(pl.Float64).drop_nulls()
    if not len(numbers):
        return
    values = numbers.to_numpy()
    large = values >= values.max() / UNIT_SPREAD
    rest = float(values.max(initial=-np.inf, where=~large))
    if large.all() or values[large].min() < UNIT_GAP * max(rest, SMALLEST_INSTANT / UNIT_GAP):
        return
    is_large = times.cast(pl.Float64) >= values.max() / UNIT_SPREAD
    few = is_large if 2 * large.sum() <= len(values) else ~is_large
    example = times.filter(~few).drop_nulls()[0]
    raise InputError(
        f"{where}: times of more than one unit, such as seconds and milliseconds: {_rows(times, few, name_row)}, and "
        f"others such as {example}, at least {UNIT_GAP:g} times smaller or larger. Write all times in one unit, and "
        "nothing where the time is missing."
    )


# ---------------------------------------------------------------------------------------------------------------- text


def _parse_text(column: pl.Series, *, where: str, name_row: RowName) -> pl.Series:
    """Datetimes of ISO 8601 text, null where there is no text."""
    field = pl.col("field")
    parts = (
        column.alias("field").to_frame().select(field.str.strip_chars())
        .select(field.replace("", None))
        .with_columns(field.str.extract_groups(ISO).alias("part"))
        .unnest("part")
    )  # fmt: skip
    # what is left out is added: every field is a datetime with an offset then
    text = pl.concat_str(
        "date", pl.lit("T"), pl.col("clock").fill_null("00:00"), pl.lit(":"), pl.col("second").fill_null("00"),
        pl.lit("."), pl.col("fraction").fill_null("0"),
        pl.col("offset").str.replace("(?i)z", "+00").str.replace(":", "").str.pad_end(5, "0").fill_null("+0000"),
    )  # fmt: skip
    unit: Literal["us", "ns"] = "ns" if bool((parts["fraction"].str.len_bytes() > 6).any()) else "us"
    times = text.str.strptime(pl.Datetime(unit, "UTC"), "%Y-%m-%dT%H:%M:%S%.f%z", strict=False)
    form = pl.when(pl.col("clock").is_null()).then(0).when(pl.col("offset").is_null()).then(1).otherwise(2)
    read = parts.select("field", times=times.dt.replace_time_zone(None), form=form)
    wrong = read["field"].is_not_null() & read["times"].is_null()
    if bool(wrong.any()):
        raise InputError(_unreadable(column, wrong, where=where, name_row=name_row))
    forms = read.filter(pl.col("field").is_not_null())["form"].value_counts(sort=True)["form"]
    if len(forms) > 1:
        rare = (read["form"] != forms[0]) & read["field"].is_not_null()
        usual = read.filter(pl.col("form") == forms[0])["field"].drop_nulls()[0]
        raise InputError(
            f"{where}: dates, datetimes and datetimes with an offset cannot be ordered together: "
            f"{_rows(column, rare, name_row)}, and others such as {usual!r}. Write all of them in one form."
        )
    return read["times"]


def _unreadable(column: pl.Series, wrong: pl.Series, *, where: str, name_row: RowName) -> str:
    """What to say of fields that are no ISO 8601 text; where most of the column are numbers, of those that are not."""
    numeric = column.cast(pl.Float64, strict=False).is_not_null()
    n_numeric, n = int(numeric.sum()), int(column.is_not_null().sum())
    if 2 * n_numeric > n > n_numeric:
        odd = column.is_not_null() & ~numeric
        return (
            f"{where}: text, because {odd.sum():,} of {n:,} fields are not numbers: {_rows(column, odd, name_row)}. "
            "Correct these fields, or leave them empty where the time is missing."
        )
    if n_numeric == n:
        return f"{where}: numbers that are stored as text: {_rows(column, wrong, name_row)}. Convert: {CAST}."
    return (
        f"{where}: {wrong.sum():,} of {n:,} fields cannot be read as times: {_rows(column, wrong, name_row)}. {CONVERT}"
    )


def _rows(column: pl.Series, which: pl.Series, name_row: RowName) -> str:
    """The first of these rows with their values."""
    rows = which.fill_null(value=False).arg_true()
    first = [f"{name_row(row)} is {_shown(column[row])}" for row in rows.head(NAMED_ROWS).to_list()]
    return some(first, most=NAMED_ROWS, total=len(rows))


def _shown(value: Any) -> str:
    text = "empty" if value is None else repr(value) if isinstance(value, str) else " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
