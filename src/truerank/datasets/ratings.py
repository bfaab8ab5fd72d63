"""Ratings: MovieLens, Yahoo! R3, Coat and Jester, as text files, matrices and tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.record import record
from truerank.datasets.dataset import (
    ID_COLUMNS,
    Columns,
    Dataset,
    Part,
    PublishedSize,
    Source,
    cells,
    find,
    other_size,
    read_columns,
    reading,
    table_of_labels,
    table_of_values,
    text_of_ratings,
)
from truerank.io.files import read_table

RATINGS: Columns = {**ID_COLUMNS, "rating": pl.Float64}

# MovieLens 100K and 1M (Harper and Konstan, TiiS 2015): films that users chose to rate.


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
    sources: ClassVar = {"train": (Source(("u.data",), text_of_ratings(), ("", "ml-100k")),)}


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
    sources: ClassVar = {
        "train": (
            Source(("ratings.dat",), text_of_ratings(separator=":", step=2), ("", "ml-1m")),
            Source(
                ("interactions.parquet",),
                table_of_labels(ID_COLUMNS),
                size=PublishedSize(6_040, 3_706, 1_000_209, 1_000_209),
            ),
        )
    }


# Yahoo! R3 (Webscope; Marlin and Zemel, RecSys 2009): songs that users chose to rate, and songs drawn at random.


@record
class YahooR3(Dataset):
    """`train` is what 15,400 users chose, `random` 10 random songs for each of 5,400 of them; label = rating > 3.

    No pair is in both parts, where chance would give about 1,290: the random songs were drawn among those the user had
    not rated, so `random` is a uniform sample of the songs outside `train`. Exclude the training pairs.
    """

    positive: str = ">3"

    name = "yahoo-r3"
    summary = "ratings of songs; chosen by the users, and at random"
    home = "https://webscope.sandbox.yahoo.com (R3, Yahoo! Music ratings)"
    terms = "signed agreement with Yahoo!, no redistribution"
    files = (
        "ydata-ymusic-rating-study-v1_0-train.txt",
        "ydata-ymusic-rating-study-v1_0-test.txt",
    )
    published: ClassVar = {
        "train": PublishedSize(15_400, 1_000, 311_704, 125_077),
        "random": PublishedSize(5_400, 1_000, 54_000, 4_749),
    }
    sources: ClassVar = {
        part: (Source((name,), text_of_ratings(n_fields=3)),) for part, name in zip(published, files, strict=True)
    }


# Coat Shopping (Schnabel et al., ICML 2016): coats that users chose to rate, and coats shown to them at random.

PLACES = ("", "coat")
SHAPE = (290, 300)


def _chosen(coat: Dataset, path: Path) -> Log:
    """The training ratings, with propensities where these are there."""
    log = _rated(coat, path)
    name = "propensities.ascii" if path.suffix == ".ascii" else "propensities_authors.parquet"
    propensities = find(path.parent, name)
    if propensities is None:
        return log
    matrix = _propensities(propensities, (len(log.users), len(log.items)))
    return replace(log, propensity=frozen(matrix[log.user, log.item]))


def _rated(coat: Dataset, path: Path) -> Log:
    if path.suffix == ".ascii":
        matrix = read_matrix(path)
        table, shape = cells(matrix, missing=0, value="rating"), matrix.shape
    else:
        table, shape = read_columns(path, RATINGS), SHAPE
    users, items = (Ids.of(np.arange(size)) for size in shape)
    return coat.rated_log(table, path, users=users, items=items)


@record
class Coat(Dataset):
    """`train` is what users chose (24 each), `random` what was drawn for them (16 each); label = rating > 3.

    The rows of `train` have the authors' propensities where their file is present. 366 pairs are in both parts, as
    many as chance gives: the random coats were drawn from all 300. Exclude the training pairs when evaluating.
    """

    positive: str = ">3"

    name = "coat"
    summary = "ratings of coats; chosen by the users, and at random"
    home = "https://www.cs.cornell.edu/~schnabts/mnar/"
    terms = "research use, cite"
    files = ("train.ascii", "test.ascii", "propensities.ascii (optional)")
    published: ClassVar = {
        "train": PublishedSize(290, 300, 6_960, 1_905),
        "random": PublishedSize(290, 300, 4_640, 860),
    }
    sources: ClassVar = {
        "train": (Source(("train.ascii", "train_mnar.parquet"), _chosen, PLACES),),
        "random": (Source(("test.ascii", "test_mar.parquet"), _rated, PLACES),),
    }

    def features(self, folder: Path) -> dict[str, pl.DataFrame]:
        """`users` and `items`: their features, 0 or 1, in the order of the matrices."""
        tables = {}
        for kind, key in (("user", "users"), ("item", "items")):
            matrix = find(Path(folder), f"user_item_features/{kind}_features.ascii", under=PLACES)
            table = find(Path(folder), f"{kind}_features.parquet")
            if matrix is not None:
                values = read_matrix(matrix)
                columns = {f"{kind}_feature_{number}": column for number, column in enumerate(values.T)}
                tables[key] = pl.DataFrame({kind: np.arange(len(values)), **columns})
            elif table is not None:
                tables[key] = read_table(table).rename({f"{kind}_id": kind})
        if not tables:
            raise InputError(f"{folder}: no features of {self.name}; expected the folder user_item_features.")
        return tables


def read_matrix(path: Path) -> Floats:
    """The numbers of a text matrix."""
    with reading(path):
        matrix = np.loadtxt(path, ndmin=2, dtype=np.float64)
        if matrix.size == 0 or not np.isfinite(matrix).all():
            raise ValueError("a matrix of finite numbers is expected")
        return matrix


def _propensities(path: Path, shape: tuple[int, ...]) -> Floats:
    if path.suffix == ".ascii":
        matrix = read_matrix(path)
    else:
        table = read_columns(path, {**ID_COLUMNS, "propensity": pl.Float64}).sort("user", "item")
        matrix = table["propensity"].to_numpy()
        matrix = matrix.reshape(shape) if len(matrix) == shape[0] * shape[1] else matrix[:, None]
    if matrix.shape != shape or not ((matrix > 0) & (matrix <= 1)).all():
        raise InputError(f"{path}: a matrix {matrix.shape}; expected {shape} of probabilities in (0, 1].")
    return matrix


# Jester dataset 1 (Goldberg et al., Information Retrieval 2001): jokes, many users rated all 100.

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
    sources: ClassVar = {"full": (Source(("ratings_fully_observed.parquet",), table_of_values(RATINGS)),)}

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
        if not paths:
            return Dataset.parts(self, folder)
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
