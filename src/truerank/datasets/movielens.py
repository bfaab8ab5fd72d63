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
from truerank.datasets.dataset import ID_COLUMNS, Dataset, Part, PublishedSize, RatedFile, as_log, find, read_columns


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
    rated: ClassVar = {"train": RatedFile("u.data", ("", "ml-100k"))}


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
    rated: ClassVar = {"train": RatedFile("ratings.dat", ("", "ml-1m"), separator=":", step=2)}

    def parts(self, folder: Path) -> dict[str, Part]:
        parts, pairs = Dataset.parts(self, folder), find(folder, "interactions.parquet")
        if parts or pairs is None:
            return parts
        if not self.usual_rule:
            raise InputError(f"{pairs}: pairs without ratings; a rule for ratings cannot be applied to them.")
        size = self.published["train"]
        return {"train": Part(partial(_pairs, pairs), replace(size, positives=size.rows))}


def _pairs(path: Path) -> Log:
    return as_log(read_columns(path, ID_COLUMNS).with_columns(label=pl.lit(1)), source=path, value="label")
