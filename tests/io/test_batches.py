"""A table in batches has the rows, types and messages of the table read whole."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truerank.io.batches import LazyTable
from truerank.io.files import read_table
from truerank.io.text import TextTypes

ROWS = pl.DataFrame({
    "user": [3, 1, 2, 1, 3, 3, 9],
    "name": ["a", "b", "", "d, e", 'f "g"', "h\ni", "j"],
    "value": [0.5, 1.0, -2.0, 1e-3, 0.0, 7.0, 8.25],
    "seen": [True, False, True, True, False, True, True],
})  # fmt: skip


def written(rows: pl.DataFrame, path: Path) -> Path:
    """The rows in a file of the format that its ending names."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        rows.write_parquet(path, row_group_size=2)
        return path
    text = rows.write_csv(separator="\t" if name.endswith(".tsv") else ",").encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "csv.gz", "tsv.gz"])
@pytest.mark.parametrize("most", [1, 3, 100])
def test_batches_of_a_file_are_its_rows(tmp_path: Path, ending: str, most: int) -> None:
    path = written(ROWS, tmp_path / f"x.{ending}")
    table = LazyTable.of(path)
    batches = list(table.batches(most=most))
    assert max(map(len, batches)) <= most
    assert pl.concat(batches).equals(read_table(path))
    assert table.read().equals(ROWS)
    assert (table.n_rows, table.schema, table.where) == (7, dict(ROWS.schema), str(path))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_slices_reach_over_parts(tmp_path: Path, ending: str) -> None:
    for at, (start, end) in enumerate([(0, 3), (3, 3), (3, 4), (4, 7)]):
        written(ROWS[start:end], tmp_path / f"{at}.{ending}")
    table = LazyTable.of(tmp_path)
    for start in range(8):
        for end in range(start, 8):
            assert table.between(start, end).read().equals(ROWS[start:end])
    assert LazyTable.of(f"{tmp_path}/*.{ending}").read().equals(ROWS)


def test_parts_of_different_widths_and_orders_of_columns(tmp_path: Path) -> None:
    pl.DataFrame({"user": pl.Series([1], dtype=pl.Int8), "v": [1.0]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"v": [2.0], "user": pl.Series([2**40])}).write_parquet(tmp_path / "b.parquet")
    pl.DataFrame({"v": ["no"], "user": ["rows"]}).clear().write_parquet(tmp_path / "c.parquet")
    table = LazyTable.of(tmp_path)
    assert pl.concat(table.batches()).rows() == [(1, 1.0), (2**40, 2.0)]
    assert table.schema["user"] == pl.Int64


def test_parts_of_text_decide_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item\n1,1\n2,2\n")
    (tmp_path / "b.csv").write_text("item,user\n3,x\n")
    (tmp_path / "c.csv").write_text("user,item\n")
    assert LazyTable.of(tmp_path).read().rows() == [("1", 1), ("2", 2), ("x", 3)]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (["1", "-7", "0"], pl.Int64),
        (["1", "", "3"], pl.Int64),
        (["7", "007"], pl.String),
        (["00"], pl.String),
        (["-0", "0.5"], pl.Float64),
        (["+7"], pl.String),
        (["7"] * 5000 + ["x7"], pl.String),
        (["7"] * 5000 + ["007"], pl.String),
        (["7"] * 5000 + ["7.5"], pl.Float64),
        ([""] * 5000 + ["7.5"], pl.Float64),
        ([""] * 5000 + ["7"], pl.Int64),
        (["7"] * 5000 + [str(2**64)], pl.Int128),
        ([str(2**63), "-1"], pl.Int128),
        (["1.0", "2"], pl.Float64),
        ([".5", "1e-3", "0.50", "-0.5", "+0.5"], pl.Float64),
        (["007.5", "1.5"], pl.String),
        (["0.5", "inf", "NaN"], pl.Float64),
        (["true", "False"], pl.Boolean),
        (["true", "1"], pl.String),
        (["true"] * 5000 + ["yes"], pl.String),
        (["", ""], pl.String),
        ([" 7"], pl.String),
        (["2020-01-01"], pl.String),
    ],
)
def test_all_fields_decide_the_type(tmp_path: Path, fields: list[str], kind: Any) -> None:
    path = tmp_path / "x.csv"
    path.write_text("other,column\n" + "".join(f"1,{field}\n" for field in fields))
    table = LazyTable.of(path)
    assert table.schema["column"] == kind
    rows = table.read()["column"]
    assert rows.dtype == kind
    if kind in (pl.String, pl.Int64, pl.Int128):  # what was written stays
        assert rows.cast(pl.String).fill_null("").to_list() == fields
    halves = [TextTypes.of(pl.LazyFrame({"c": [x or None for x in part]}, schema={"c": pl.String}))
              for part in (fields[: len(fields) // 2], fields[len(fields) // 2 :])]  # fmt: skip
    assert (halves[0] + halves[1]).schema()["c"] == kind
