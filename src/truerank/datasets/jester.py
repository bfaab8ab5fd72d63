"""Jester dataset 1 (Goldberg et al., Information Retrieval 2001): jokes, many users rated all 100."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Bools, Floats
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.io.dataset import Part, PublishedSize, as_log, cells, find, gather, nothing_found, read_columns, reading

RULE = ">0"
JOKES, MISSING = 100, 99.0
# users and ratings of each file; users are numbered through the files in this order
FILES = {1: (24_983, 1_810_455), 2: (23_500, 1_708_993), 3: (24_938, 616_912)}
FULL = PublishedSize(7_200, 100, 720_000)


@dataclass(frozen=True, slots=True)
class Jester:
    """`full` has the users who rated every joke, `train` the ratings of the others; label = rating > 0 of -10 to 10.

    The published files are matrices: the number of ratings, then 100 ratings, 99 where there is none. They are Excel
    files; save them as CSV (or install fastexcel to read them as they are). Users and jokes are numbered from 0, users
    through the files 1 to 3. The compact file has the `full` users of file 1. No paper sets the label rule: it is ours.
    """

    positive: str = RULE

    name: ClassVar[str] = "jester"
    about: ClassVar[str] = "ratings of jokes; 7,200 users of file 1 rated all 100"
    home: ClassVar[str] = "https://eigentaste.berkeley.edu/dataset/ (dataset 1)"
    terms: ClassVar[str] = "research use, cite"
    files: ClassVar[tuple[str, ...]] = ("jester-data-1.csv", "jester-data-2.csv and -3.csv (optional)")
    published: ClassVar[Mapping[str, PublishedSize]] = {"full": FULL, "train": PublishedSize(17_783, 100, 1_090_455)}

    def load(self, folder: Path, *, parts: Collection[str] | None = None, check: bool = True) -> dict[str, Log]:
        folder = Path(folder)
        compact = find(folder, "ratings_fully_observed.parquet")
        paths = {
            number: path
            for number in FILES
            for ending in (".xlsx", ".xls", ".csv")  # the last one found counts
            if (path := find(folder, f"jester-data-{number}{ending}")) is not None
        }
        if not paths and compact is None:
            raise nothing_found(Jester, folder)
        if not paths and compact is not None:
            found = {"full": Part(partial(self._table, compact), FULL)}
            return gather(self.name, found, parts=parts, check=check)
        matrices = {number: read_ratings(path) for number, path in paths.items()}
        if check:
            for number, matrix in matrices.items():
                _check_file(paths[number], matrix, *FILES[number])
        only_first = list(paths) == [1]
        found = {
            "full": Part(partial(self._rows, paths, matrices, whole=True), FULL if only_first else _UNKNOWN),
            "train": Part(partial(self._rows, paths, matrices, whole=False), _UNKNOWN),
        }
        return gather(self.name, found, parts=parts, check=check)

    def _rows(self, paths: Mapping[int, Path], matrices: Mapping[int, Floats], *, whole: bool) -> Log:
        tables: Sequence[pl.DataFrame] = [
            cells(np.where((_whole(matrix) == whole)[:, None], matrix, MISSING), missing=MISSING, value="rating",
                  first_user=sum(size for before, (size, _) in FILES.items() if before < number))
            for number, matrix in matrices.items()
        ]  # fmt: skip
        return self._log(pl.concat(tables), next(iter(paths.values())))

    def _table(self, path: Path) -> Log:
        names = {"user_id": "user", "item_id": "item"}
        table = read_columns(path, {"user_id": pl.Int64, "item_id": pl.Int64, "rating": pl.Float64}).rename(names)
        return self._log(table, path)

    def _log(self, table: pl.DataFrame, source: Path) -> Log:
        return as_log(table, source=source, value="rating", positive=self.positive, rewards=("rating",))


_UNKNOWN = PublishedSize(None, None, None)


def _whole(matrix: Floats) -> Bools:
    return np.asarray((matrix != MISSING).all(axis=1))


def _check_file(path: Path, matrix: Floats, users: int, ratings: int) -> None:
    found = (len(matrix), int(np.count_nonzero(matrix != MISSING)))
    if found != (users, ratings):
        raise InputError(
            f"{path}: {found[0]:,} users and {found[1]:,} ratings; expected {users:,} and {ratings:,} as published. "
            "The file is damaged or another one: get it again. For a subset on purpose, say "
            "check=False."
        )


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
