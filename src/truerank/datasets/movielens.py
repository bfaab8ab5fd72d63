"""MovieLens 100K and 1M (Harper and Konstan, TiiS 2015): films that users chose to rate."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import polars as pl

from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.record import record
from truerank.datasets.dataset import (
    ID_COLUMNS,
    Dataset,
    Part,
    PublishedSize,
    as_log,
    find,
    read_columns,
    read_fields,
)

FIELDS: dict[str, type[pl.DataType]] = {"user": pl.Int64, "item": pl.Int64, "rating": pl.Float64, "time": pl.Int64}


def _read(path: Path, *, separator: str, step: int, positive: str) -> Log:
    table = read_fields(path, FIELDS, separator=separator, step=step)
    return as_log(table, source=path, value="rating", positive=positive, rewards=("rating",))


@record
class MovieLens100K(Dataset):
    """`train` is every rating; label = rating >= 4."""

    positive: str = ">=4"

    name = "movielens-100k"
    summary = "ratings of films, chosen by the users"
    home = "https://grouplens.org/datasets/movielens/100k/"
    terms = "research use, no redistribution, cite"
    files = ("u.data",)
    published: ClassVar = {"train": PublishedSize(943, 1_682, 100_000, 55_375)}

    def parts(self, folder: Path) -> dict[str, Part]:
        path = find(folder, "u.data", under=("", "ml-100k"))
        if path is None:
            return {}
        return {"train": Part(partial(_read, path, separator="\t", step=1, positive=self.positive))}


@record
class MovieLens1M(Dataset):
    """`train` is every rating; label = rating >= 4. The compact file has pairs only: each is labelled 1."""

    positive: str = ">=4"

    name = "movielens-1m"
    summary = "ratings of films, chosen by the users"
    home = "https://grouplens.org/datasets/movielens/1m/"
    terms = "research use, no redistribution, cite"
    files = ("ratings.dat",)
    published: ClassVar = {"train": PublishedSize(6_040, 3_706, 1_000_209, 575_281)}

    def parts(self, folder: Path) -> dict[str, Part]:
        path = find(folder, "ratings.dat", under=("", "ml-1m"))
        if path is not None:
            return {"train": Part(partial(_read, path, separator=":", step=2, positive=self.positive))}
        pairs = find(folder, "interactions.parquet")
        if pairs is None:
            return {}
        if not self.usual_rule:
            raise InputError(f"{pairs}: pairs without ratings; a rule for ratings cannot be applied to them.")
        size = self.published["train"]
        return {"train": Part(partial(_pairs, pairs), replace(size, positives=size.rows))}


def _pairs(path: Path) -> Log:
    return as_log(read_columns(path, ID_COLUMNS).with_columns(label=pl.lit(1)), source=path, value="label")
