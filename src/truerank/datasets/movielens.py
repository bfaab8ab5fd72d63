"""MovieLens 100K and 1M (Harper and Konstan, TiiS 2015): films that users chose to rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import polars as pl

from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.io.dataset import (
    FolderDataset,
    Part,
    PublishedSize,
    as_log,
    find,
    read_columns,
    read_fields,
)

RULE = ">=4"
FIELDS: dict[str, type[pl.DataType]] = {"user": pl.Int64, "item": pl.Int64, "rating": pl.Float64, "time": pl.Int64}


def _read(path: Path, *, separator: str, step: int, positive: str) -> Log:
    table = read_fields(path, FIELDS, separator=separator, step=step)
    return as_log(table, source=path, value="rating", positive=positive, rewards=("rating",))


@dataclass(frozen=True, slots=True)
class MovieLens100K(FolderDataset):
    """`train` is every rating; label = rating >= 4."""

    positive: str = RULE

    name: ClassVar[str] = "movielens-100k"
    about: ClassVar[str] = "ratings of films, chosen by the users"
    home: ClassVar[str] = "https://grouplens.org/datasets/movielens/100k/"
    terms: ClassVar[str] = "research use, no redistribution, cite"
    files: ClassVar[tuple[str, ...]] = ("u.data",)
    published: ClassVar[Mapping[str, PublishedSize]] = {"train": PublishedSize(943, 1_682, 100_000, 55_375)}

    def parts_in(self, folder: Path) -> dict[str, Part]:
        path = find(folder, "u.data", under=("", "ml-100k"))
        if path is None:
            return {}
        read = partial(_read, path, separator="\t", step=1, positive=self.positive)
        return {"train": Part(read, self.size("train", rule=RULE))}


@dataclass(frozen=True, slots=True)
class MovieLens1M(FolderDataset):
    """`train` is every rating; label = rating >= 4. The compact file has pairs only: each is labelled 1."""

    positive: str = RULE

    name: ClassVar[str] = "movielens-1m"
    about: ClassVar[str] = "ratings of films, chosen by the users"
    home: ClassVar[str] = "https://grouplens.org/datasets/movielens/1m/"
    terms: ClassVar[str] = "research use, no redistribution, cite"
    files: ClassVar[tuple[str, ...]] = ("ratings.dat",)
    published: ClassVar[Mapping[str, PublishedSize]] = {"train": PublishedSize(6_040, 3_706, 1_000_209, 575_281)}

    def parts_in(self, folder: Path) -> dict[str, Part]:
        path = find(folder, "ratings.dat", under=("", "ml-1m"))
        pairs = find(folder, "interactions.parquet")
        if path is not None:
            read = partial(_read, path, separator=":", step=2, positive=self.positive)
            return {"train": Part(read, self.size("train", rule=RULE))}
        if pairs is None:
            return {}
        if self.positive != RULE:
            raise InputError(f"{pairs}: pairs without ratings; a rule for ratings cannot be applied to them.")
        size = self.published["train"]
        return {"train": Part(partial(_pairs, pairs), replace(size, positives=size.rows))}


def _pairs(path: Path) -> Log:
    table = read_columns(path, {"user_id": pl.Int64, "item_id": pl.Int64}).rename(
        {"user_id": "user", "item_id": "item"}
    )
    return as_log(table.with_columns(label=pl.lit(1)), source=path, value="label")
