"""Coat Shopping (Schnabel et al., ICML 2016): coats that users chose to rate, and coats shown to them at random."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
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
    Dataset,
    Part,
    PublishedSize,
    cells,
    find,
    read_columns,
    reading,
)
from truerank.io.files import read_table

PLACES = ("", "coat")


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

    def parts(self, folder: Path) -> dict[str, Part]:
        paths = [find(folder, f"{name}.ascii", under=PLACES) for name in ("train", "test", "propensities")]
        if not any(paths[:2]):
            paths = [find(folder, f"{name}.parquet") for name in ("train_mnar", "test_mar", "propensities_authors")]
        train, random, propensities = paths
        present = {"train": (train, propensities), "random": (random, None)}
        return {name: Part(partial(self._read, path, beside)) for name, (path, beside) in present.items() if path}

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

    def _read(self, path: Path, propensities: Path | None) -> Log:
        if path.suffix == ".ascii":
            matrix = read_matrix(path)
            table, shape = cells(matrix, missing=0, value="rating"), matrix.shape
        else:
            table, shape = read_columns(path, {**ID_COLUMNS, "rating": pl.Float64}), (290, 300)
        users, items = (Ids.of(np.arange(size)) for size in shape)
        log = self.rated_log(table, path, users=users, items=items)
        if propensities is None:
            return log
        return replace(log, propensity=frozen(_propensities(propensities, shape)[log.user, log.item]))


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
