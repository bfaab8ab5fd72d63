"""What a loader of a public dataset is, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, frozen
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.record import record
from truerank.io.files import check_readable, kind_of
from truerank.io.paths import unchanged, versions_of
from truerank.io.read import read

Columns = dict[str, type[pl.DataType]]  # the types of columns by name
RATED: Columns = {"user": pl.Int64, "item": pl.Int64, "rating": pl.Float64, "time": pl.Int64}
USUAL = {"user_id": "user", "item_id": "item", "video_id": "item", "timestamp": "time", "time_ms": "time",
         "propensity_score": "propensity"}  # fmt: skip
ID_COLUMNS: Columns = {"user_id": pl.Int64, "item_id": pl.Int64}


@record
class PublishedSize:
    """How large a part is as published; None where that is not known."""

    users: int | None = None
    items: int | None = None
    rows: int | None = None
    positives: int | None = None


@record
class Part:
    """A part that the files of a folder have: how to read it, and how large it should be if not as published."""

    read: Callable[[], Log]
    size: PublishedSize | None = None


@record
class Source:
    """A file that has a part of a dataset: its names, the folders it can be in, how it is read; `size` as in Part."""

    names: tuple[str, ...]
    read: Callable[[Any, Path], Log]
    under: tuple[str, ...] = ("",)
    size: PublishedSize | None = None


@record
class Dataset:
    """A public dataset: what it is, where it is, and how its files become logs.

    `positive` is the rule for labels, and can be another; the raw values stay beside the label. `published` has the
    size of each part: `train` (what a system or the users chose), `random` (shown at random), `full` (every pair). A
    part is read from the first of its `sources` that a folder has.
    """

    positive: str = ">0"

    name: ClassVar[str]
    summary: ClassVar[str]
    home: ClassVar[str]
    terms: ClassVar[str]
    files: ClassVar[tuple[str, ...]]
    published: ClassVar[Mapping[str, PublishedSize]]
    sources: ClassVar[Mapping[str, tuple[Source, ...]]] = {}

    @property
    def usual_rule(self) -> bool:
        """Whether labels are made by the rule of the dataset, for which positives are published."""
        return self.positive == type(self)().positive

    def parts(self, folder: Path) -> dict[str, Part]:
        """The parts that the files of a folder have, by name."""
        parts: dict[str, Part] = {}
        for part, sources in self.sources.items():
            for source in sources:
                path = find(folder, *source.names, under=source.under)
                if path is not None and part not in parts:
                    parts[part] = Part(partial(source.read, self, path), source.size)
        return parts

    def rated_log(self, table: pl.DataFrame, source: Path, **populations: Ids) -> Log:
        """A log of ratings, which the rule makes labels."""
        return as_log(table, source=source, value="rating", positive=self.positive, rewards=("rating",), **populations)

    def load(self, folder: Path, *, parts: Collection[str] | None = None, check: bool = True) -> dict[str, Log]:
        """The parts by name, or some of them; with `check`, a part of another size than published is refused."""
        folder = Path(folder)
        present = self.parts(folder)
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder. Check the path.")
        if not present:
            raise InputError(
                f"{folder}: no files of {self.name}; expected {', '.join(self.files)}. Get them from {self.home}."
            )
        unknown = sorted(set(parts or ()) - set(present))
        if unknown:
            raise InputError(f"{self.name} has no part {unknown[0]!r} here; expected one of {', '.join(present)}.")
        logs = {}
        for name, part in present.items():
            if parts is None or name in parts:
                logs[name] = part.read()
                if check:
                    self._check(name, logs[name], part.size or self.published[name])
        return logs

    def _check(self, part: str, log: Log, size: PublishedSize) -> None:
        positives = int(log.rewards["label"].sum()) if "label" in log.rewards else 0
        for what, expected, count in (
            ("rows", size.rows, len(log)),
            ("users", size.users, len(log.users)),
            ("items", size.items, len(log.items)),
            ("positives", size.positives if self.usual_rule else None, positives),
        ):
            if expected is not None and count != expected:
                raise other_size(f"{log.source}: {count:,} {what}; expected {expected:,} in {self.name}, part {part},")


def other_size(what: str) -> InputError:
    """The refusal of a file that is not as published."""
    return InputError(
        f"{what} as published. The file is damaged or another one: get it again. For a subset on purpose, say "
        "check=False."
    )


def find(folder: Path, *names: str, under: Sequence[str] = ("",)) -> Path | None:
    """The file of one of these names, in the folder or one of those below it."""
    return next((path for name in names for place in under if (path := folder / place / name).is_file()), None)


def text_of_ratings(*, separator: str = "\t", step: int = 1, n_fields: int = 4) -> Callable[[Dataset, Path], Log]:
    """Reads a text file of user, item, rating and perhaps time, without a header."""
    fields = dict(list(RATED.items())[:n_fields])
    return lambda dataset, path: dataset.rated_log(read_fields(path, fields, separator=separator, step=step), path)


def table_of_values(columns: Columns, *, value: str = "rating") -> Callable[[Dataset, Path], Log]:
    """Reads a table of ids and values, of which one becomes the label; all stay beside it."""
    rewards = [name for name, kind in columns.items() if kind == pl.Float64 and name not in USUAL]

    def read_table(dataset: Dataset, path: Path) -> Log:
        table = read_columns(path, columns)
        return as_log(table, source=path, value=value, positive=dataset.positive, rewards=rewards)

    return read_table


def table_of_labels(columns: Columns) -> Callable[[Dataset, Path], Log]:
    """Reads a table of ids and labels, or of positives alone, to which no other rule can be applied."""

    def read_table(dataset: Dataset, path: Path) -> Log:
        if not dataset.usual_rule:
            raise InputError(f"{path}: pairs without values; a rule for values cannot be applied to them.")
        table, rewards = read_columns(path, columns), [name for name in columns if name not in (*USUAL, "label")]
        if "label" not in columns:
            table = table.with_columns(label=pl.lit(1))
        return as_log(table, source=path, value="label", rewards=rewards)

    return read_table


def read_columns(path: Path, columns: Columns) -> pl.DataFrame:
    """These columns of a CSV or Parquet file, and no others: public logs have dozens. Some get their usual names."""
    check_readable(path)
    with reading(path):
        is_parquet = kind_of(path) == ".parquet"
        present = pl.read_parquet_schema(path) if is_parquet else pl.read_csv(path, n_rows=0, glob=False).columns
        missing = [name for name in columns if name not in present]
        if missing:
            raise InputError(f"{path}: no column {missing[0]!r}; found {', '.join(present)}. Get the file again.")
        if is_parquet:
            table = pl.read_parquet(path, columns=list(columns), glob=False)
        else:
            table = pl.read_csv(path, columns=list(columns), schema_overrides=columns, glob=False)
        return table.rename(USUAL, strict=False)


def read_fields(path: Path, columns: Columns, *, separator: str, step: int = 1) -> pl.DataFrame:
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


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What polars and numpy report of a damaged file, in one sentence; a file that changes meanwhile is refused."""
    try:
        with unchanged(versions_of([path])):
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"{path}: cannot be read ({reason}). Get the file again.") from None


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
    raw = {name: frozen(ordered[name].cast(pl.Float64).fill_null(float("nan")).to_numpy().copy()) for name in rewards}
    return replace(log, rewards={name: values for name, values in {**log.rewards, **raw}.items() if name != "value"})


def cells(matrix: Floats, *, missing: float, value: str, first_user: int = 0) -> pl.DataFrame:
    """The cells of a matrix [users x items] that are not missing, users and items numbered.

    >>> cells(np.array([[0.0, 5.0]]), missing=0, value="rating").rows()
    [(0, 1, 5.0)]
    """
    user, item = np.nonzero(matrix != missing)
    return pl.DataFrame({"user": user + first_user, "item": item, value: matrix[user, item]})
