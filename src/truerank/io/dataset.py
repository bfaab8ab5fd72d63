"""What a loader of a public dataset is, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.io.file_version import check_unchanged, versions_of
from truerank.io.files import check_readable, kind_of
from truerank.io.read import read

PolarsType = type[pl.DataType]


@dataclass(frozen=True, slots=True)
class PublishedSize:
    """How large a part is as published; None where that is not known."""

    users: int | None
    items: int | None
    rows: int | None
    positives: int | None = None


class Dataset(Protocol):
    """A public dataset: what it is, where it is, and how its files become logs.

    `positive` is the rule for labels, and can be given; the raw values stay beside the label. `published` has the
    size of each part: `train` (what a system or the users chose), `random` (shown at random), `full` (every pair).
    """

    name: ClassVar[str]
    about: ClassVar[str]
    home: ClassVar[str]
    terms: ClassVar[str]
    files: ClassVar[tuple[str, ...]]
    published: ClassVar[Mapping[str, PublishedSize]]

    @property
    def positive(self) -> str: ...

    def load(self, folder: Path, *, parts: Collection[str] | None = None, check: bool = True) -> dict[str, Log]:
        """The parts by name, or those asked for; with `check`, a part of another size than published is refused."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """A part that the files of a folder have: how to read it, and how large it should be."""

    read: Callable[[], Log]
    counts: PublishedSize


def gather(name: str, found: Mapping[str, Part], *, parts: Collection[str] | None, check: bool) -> dict[str, Log]:
    """Read the parts asked for and check their sizes."""
    unknown = sorted(set(parts or ()) - set(found))
    if unknown:
        raise InputError(f"{name} has no part {unknown[0]!r} here; expected one of {', '.join(found)}.")
    logs = {}
    for key, part in found.items():
        if parts is None or key in parts:
            logs[key] = part.read()
            if check:
                _check(name, key, logs[key], part.counts)
    return logs


def _check(name: str, part: str, log: Log, counts: PublishedSize) -> None:
    positives = int(log.rewards["label"].sum()) if "label" in log.rewards else None
    for what, expected, found in (
        ("rows", counts.rows, len(log)),
        ("users", counts.users, len(log.users)),
        ("items", counts.items, len(log.items)),
        ("positives", counts.positives, positives),
    ):
        if expected is not None and found != expected:
            raise InputError(
                f"{log.source}: {found or 0:,} {what}; expected {expected:,} in {name}, part {part}, as published. "
                "The file is damaged or another one: get it again. For a subset on purpose, say "
                "check=False."
            )


def find(folder: Path, name: str, *, under: Sequence[str] = ("",)) -> Path | None:
    """The file of this name, in the folder or one of these below it."""
    return next((path for each in under if (path := folder / each / name).is_file()), None)


def nothing_found(dataset: type[Dataset], folder: Path) -> InputError:
    """The error for a folder with none of the files."""
    if not folder.is_dir():
        return InputError(f"{folder}: no such folder. Check the path.")
    return InputError(
        f"{folder}: no files of {dataset.name}; expected {', '.join(dataset.files)}. Get them from {dataset.home}."
    )


def read_columns(path: Path, columns: Mapping[str, PolarsType]) -> pl.DataFrame:
    """These columns of a CSV or Parquet file, and no others: public logs have dozens."""
    check_readable(path)
    with reading(path):
        if kind_of(path) == ".parquet":
            _has(path, pl.read_parquet_schema(path), columns)
            return pl.read_parquet(path, columns=list(columns), glob=False)
        _has(path, pl.read_csv(path, n_rows=0, glob=False).columns, columns)
        return pl.read_csv(path, columns=list(columns), schema_overrides=columns, glob=False)


def read_fields(path: Path, columns: Mapping[str, PolarsType], *, separator: str, step: int = 1) -> pl.DataFrame:
    """A text table without a header; with `step` 2 every second field is empty, as between the colons of `1::2`."""
    check_readable(path)
    with reading(path):
        table = pl.read_csv(
            path, has_header=False, separator=separator, infer_schema=False, glob=False, quote_char=None
        )  # fmt: skip
        table = table.select(table.columns[::step])
        if len(table.columns) != len(columns):
            raise InputError(
                f"{path}: {len(table.columns)} fields per line; expected {len(columns)}: {' '.join(columns)}."
            )
        table = table.rename(dict(zip(table.columns, columns, strict=True)))
        return table.with_columns(pl.col(name).cast(kind) for name, kind in columns.items())


class reading:  # noqa: N801
    """What polars and numpy say about a damaged file, said in our words; one that changes meanwhile is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        self.versions = versions_of([self.path])

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        check_unchanged(self.versions)
        if isinstance(error, pl.exceptions.PolarsError | pl.exceptions.PanicException | OSError | ValueError):
            reason = str(error).strip().split("\n")[0]
            raise InputError(f"{self.path}: cannot be read ({reason}). Get the file again.") from None


def _has(path: Path, found: Collection[str], wanted: Collection[str]) -> None:
    missing = [name for name in wanted if name not in found]
    if missing:
        raise InputError(f"{path}: no column {missing[0]!r}; found {', '.join(found)}. Get the file again.")


def as_log(
    table: pl.DataFrame,
    *,
    source: Path,
    value: str,
    positive: str | None = None,
    rewards: Sequence[str] = (),
    users: Ids | None = None,
    items: Ids | None = None,
) -> Log:
    """A log of a table with columns user, item and `value`, which becomes the label; `rewards` are kept beside it."""
    ordered = table.sort("user", "item", maintain_order=True)
    log = read(
        ordered.rename({value: "value"}).drop(*(name for name in rewards if name != value)),
        positive=positive,
        users=users,
        items=items,
        name=str(source),
    )
    raw = {name: _floats(ordered[name]) for name in rewards}
    return replace(log, rewards={name: values for name, values in {**log.rewards, **raw}.items() if name != "value"})


def _floats(column: pl.Series) -> Floats:
    return frozen(column.cast(pl.Float64).fill_null(float("nan")).to_numpy().copy())


def cells(matrix: Floats, *, missing: float, value: str, first_user: int = 0) -> pl.DataFrame:
    """The cells of a matrix [users x items] that are not missing, users and items numbered.

    >>> cells(np.array([[0.0, 5.0]]), missing=0, value="rating").rows()
    [(0, 1, 5.0)]
    """
    user, item = np.nonzero(matrix != missing)
    return pl.DataFrame({"user": user + first_user, "item": item, value: matrix[user, item]})
