"""Jester dataset 1 (Goldberg et al., Information Retrieval 2001): jokes, many users rated all 100."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.record import record
from truerank.datasets.dataset import (
    ID_COLUMNS,
    Dataset,
    Part,
    PublishedSize,
    cells,
    find,
    other_size,
    read_columns,
    reading,
)

JOKES, MISSING = 100, 99.0
# users and ratings of each file; users are numbered through the files in this order
FILES = {1: (24_983, 1_810_455), 2: (23_500, 1_708_993), 3: (24_938, 616_912)}
FULL = PublishedSize(7_200, 100, 720_000)


@record
class Jester(Dataset):
    """`full` has the users who rated every joke, `train` the ratings of the others; label = rating > 0 of -10 to 10.

    The published files are matrices: the number of ratings, then 100 ratings, 99 where there is none. They are Excel
    files; save them as CSV (or install fastexcel to read them as they are). Users and jokes are numbered from 0, users
    through the files 1 to 3. The compact file has the `full` users of file 1. No paper sets the label rule: it is ours.
    """

    name = "jester"
    summary = "ratings of jokes; 7,200 users of file 1 rated all 100"
    home = "https://eigentaste.berkeley.edu/dataset/ (dataset 1)"
    terms = "research use, cite"
    files = ("jester-data-1.csv", "jester-data-2.csv and -3.csv (optional)")
    published: ClassVar = {"full": FULL, "train": PublishedSize(17_783, 100, 1_090_455)}

    def load(self, folder: Path, *, parts: Collection[str] | None = None, check: bool = True) -> dict[str, Log]:
        """As of every dataset; with `check`, each file must also have its published number of users and ratings."""
        for number, path in _matrices(Path(folder)).items() if check else ():
            matrix, (users, ratings) = read_ratings(path), FILES[number]
            count = int(np.count_nonzero(matrix != MISSING))
            if (len(matrix), count) != (users, ratings):
                raise other_size(
                    f"{path}: {len(matrix):,} users and {count:,} ratings; expected {users:,} and {ratings:,}"
                )
        return Dataset.load(self, folder, parts=parts, check=check)

    def parts(self, folder: Path) -> dict[str, Part]:
        paths = _matrices(folder)
        compact = find(folder, "ratings_fully_observed.parquet")
        if not paths:
            return {} if compact is None else {"full": Part(partial(self._table, compact))}
        size = None if list(paths) == [1] else PublishedSize()
        return {
            "full": Part(partial(self._rows, paths, whole=True), size),
            "train": Part(partial(self._rows, paths, whole=False), PublishedSize()),
        }

    def _rows(self, paths: Mapping[int, Path], *, whole: bool) -> Log:
        tables = []
        for number, path in paths.items():
            matrix = read_ratings(path)
            is_part = (matrix != MISSING).all(axis=1) == whole
            first_user = sum(users for before, (users, _) in FILES.items() if before < number)
            ratings = np.where(is_part[:, None], matrix, MISSING)
            tables.append(cells(ratings, missing=MISSING, value="rating", first_user=first_user))
        return self.rated_log(pl.concat(tables), next(iter(paths.values())))

    def _table(self, path: Path) -> Log:
        return self.rated_log(read_columns(path, {**ID_COLUMNS, "rating": pl.Float64}), path)


def _matrices(folder: Path) -> dict[int, Path]:
    """The matrices in a folder, by their numbers."""
    names = {number: [f"jester-data-{number}{ending}" for ending in (".csv", ".xls", ".xlsx")] for number in FILES}
    return {number: path for number, of_number in names.items() if (path := find(folder, *of_number)) is not None}


@lru_cache(maxsize=3)
def read_ratings(path: Path) -> Floats:
    """The matrix of ratings of one file; the counts in its first column must agree with it."""
    with reading(path):
        if path.suffix == ".csv":
            table = pl.read_csv(path, has_header=False, infer_schema_length=None, glob=False)
        else:
            table = _excel(path)
        if len(table.columns) != JOKES + 1 or not all(kind.is_numeric() for kind in table.dtypes):
            raise ValueError(f"{len(table.columns)} columns; expected a count and {JOKES} ratings, all numbers")
        matrix = table.cast(pl.Float64).to_numpy()
        ratings = matrix[:, 1:]
        wrong = (ratings != MISSING).sum(axis=1) != matrix[:, 0]
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"line {row + 1} counts {matrix[row, 0]:g} ratings and has another number of them")
        if not ((np.abs(ratings) <= 10) | (ratings == MISSING)).all():
            raise ValueError("ratings outside -10 to 10")
        return np.ascontiguousarray(ratings)


def _excel(path: Path) -> pl.DataFrame:
    try:
        return pl.read_excel(path, has_header=False, engine="calamine")
    except ModuleNotFoundError:
        raise InputError(
            f"{path}: an Excel file, which needs the package fastexcel. Install it, or save the file as "
            f"{path.with_suffix('.csv').name}."
        ) from None
