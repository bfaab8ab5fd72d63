"""Ids of any type, factorised once: integers of any width match each other, integers never match strings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.arrays import check_unmasked
from truerank.core.errors import InputError, some
from truerank.core.record import record

Keys = npt.NDArray[np.uint64]
IdColumn: TypeAlias = "pl.Series | npt.NDArray[Any] | Iterable[Any]"


@record(eq=False)
class Ids:
    """Distinct ids in sorted order; a position in it stands for the id everywhere inside the library.

    Sorting makes every result independent of the order of rows in a file. `numbered` says that nobody gave them: they
    are the places of rows or columns of a matrix, from 0, which are the ids of other data only if that can be shown.
    """

    values: pl.Series
    numbered: bool = False

    @classmethod
    def of(cls, column: IdColumn, *, where: str = "ids") -> Ids:
        """The distinct ids of a column.

        >>> Ids.of([30, 10, 30]).texts()
        ['10', '30']
        """
        return cls(as_ids(column, where=where).unique().sort())

    @classmethod
    def places(cls, size: int) -> Ids:
        """The rows or columns of a matrix that has no ids, numbered from 0.

        >>> Ids.places(3).texts()
        ['0', '1', '2']
        """
        return cls(pl.Series(np.arange(size)), numbered=True)

    @classmethod
    def factorise(cls, column: IdColumn, *, where: str = "ids") -> tuple[Ids, npt.NDArray[np.int64]]:
        """The distinct ids of a column, and the position of each row's id among them.

        >>> ids, at = Ids.factorise([30, 10, 30])
        >>> ids.texts(), at.tolist()
        (['10', '30'], [1, 0, 1])
        """
        series = as_ids(column, where=where)
        if series.dtype == pl.Int64 and len(series):
            values = series.to_numpy()
            low, high = int(values.min()), int(values.max())
            # whole numbers that lie close together need no hashing: a table by value says where each stands
            if high - low <= 4 * len(series) + 1024:
                values = values - low
                present = np.zeros(high - low + 1, dtype=bool)
                present[values] = True
                ids = cls(pl.Series(np.flatnonzero(present) + low))
                return ids, values if present.all() else (np.cumsum(present) - 1)[values]
        ids = cls(series.unique().sort())
        return ids, ids.locate(series)

    @classmethod
    def union(cls, parts: Mapping[str, Ids]) -> Ids:
        """All ids of several populations, named for messages."""
        first, *others = ((name, part) for name, part in parts.items() if len(part))
        for name, part in others:
            _same_kind(first[1].values, part.values, where=f"{name} against {first[0]}")
        return cls.of(joined_ids([part.values for _, part in (first, *others)]))

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, more: object) -> bool:
        return isinstance(more, Ids) and self.is_text == more.is_text and self.values.equals(more.values)

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_text(self) -> bool:
        return self.values.dtype == pl.String

    def texts(self, positions: npt.NDArray[np.int64] | None = None) -> list[str]:
        """Ids as text, for messages."""
        chosen = self.values if positions is None else self.values[positions]
        return [str(value) for value in chosen.to_list()]

    def locate(self, column: IdColumn | Ids, *, where: str = "ids") -> npt.NDArray[np.int64]:
        """The position of each id, -1 where it is not among these.

        >>> Ids.of(["a", "c"]).locate(["c", "b"]).tolist()
        [1, -1]
        """
        if isinstance(column, Ids) and self == column:
            return np.arange(len(self))
        wanted = column.values if isinstance(column, Ids) else as_ids(column, where=where)
        ids = self.values
        _same_kind(ids, wanted, where=where)
        if ids.dtype != wanted.dtype and len(ids) and len(wanted):
            ids, wanted = ids.cast(pl.Int128), wanted.cast(pl.Int128)
        if not len(ids) or not len(wanted):
            return np.full(len(wanted), -1, dtype=np.int64)
        index = pl.DataFrame({"id": ids, "position": np.arange(len(ids))})
        positions = pl.DataFrame({"id": wanted}).join(index, on="id", how="left", maintain_order="left")
        return positions["position"].fill_null(-1).to_numpy().astype(np.int64)

    def keys(self) -> Keys:
        """A 64-bit key of each id that depends on nothing but the id: what random streams are derived from."""
        if self.values.dtype == pl.Int64:
            return self.values.to_numpy().astype(np.int64).view(np.uint64).copy()
        digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in self.texts())
        return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def first_true(values: pl.Series) -> int | None:
    """The place of the first value that is true: the row that a message names.

    >>> first_true(pl.Series([False, None, True])), first_true(pl.Series([False]))
    (2, None)
    """
    return int(values.arg_true()[0]) if values.any() else None


def joined_ids(columns: Sequence[pl.Series]) -> pl.Series:
    """Columns of ids below each other, in the wider type of integers where they differ."""
    if len({str(column.dtype) for column in columns}) > 1:
        columns = [column.cast(pl.Int128) for column in columns]
    return pl.concat(columns) if columns else pl.Series([], dtype=pl.Int64)


def as_ids(column: IdColumn, *, where: str, before: int = 0) -> pl.Series:
    """A column of ids as 64-bit integers (128-bit where they do not fit) or text; `before` counts the rows before."""
    series = _series(column, where=where)
    row = first_true(series.is_null())
    if row is not None:
        raise InputError(
            f"{where}: row {before + row + 1} has no id; every row needs one. Remove or fill the empty ids."
        )
    kind = series.dtype
    if kind == pl.String or len(series) == 0:
        return series
    if isinstance(kind, pl.Categorical | pl.Enum):
        return series.cast(pl.String)
    if kind.is_integer():
        numbers = series.cast(pl.Int64, strict=False)
        return series.cast(pl.Int128) if numbers.null_count() else numbers
    if kind.is_float():
        exact = 2**53 if kind == pl.Float64 else 2**24  # beyond it neighbours are rounded to each other
        bad = ~(series.is_finite() & (series.round(0) == series) & (series.abs() < exact))
        if not bool(bad.any()):
            return series.cast(pl.Int64)
        series = series.filter(bad)
    raise InputError(
        f"{where}: ids are {kind} (such as {some(_shown(series))}); expected whole numbers or text. Convert the column."
    )


def _series(column: IdColumn, *, where: str) -> pl.Series:
    if isinstance(column, pl.Series):
        return column
    if isinstance(column, np.ndarray):
        check_unmasked(column, where=where)
        if column.ndim != 1:
            raise InputError(f"{where}: ids have {column.ndim} dimensions; expected one id per entry.")
        return pl.Series(column.tolist() if column.dtype.kind in "OU" else np.ascontiguousarray(column))
    if isinstance(column, str | bytes | Set | Mapping | Iterator) or not isinstance(column, Iterable):
        raise InputError(
            f"{where}: ids are a {type(column).__name__}; expected a list, an array or a column of whole numbers or "
            "text, whose order is known."
        )
    values = list(column)
    wide = any(isinstance(value, int) and abs(value) >= 2**63 for value in values)  # else the first decides the width
    try:
        return pl.Series(values, dtype=pl.Int128 if wide else None, strict=True)
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: id {error.object!a} is no text that UTF-8 can hold. Write it otherwise.") from None
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"{where}: ids of mixed types, or too large; expected whole numbers or text. {error}"
        ) from None


def _same_kind(first: pl.Series, second: pl.Series, *, where: str) -> None:
    if len(first) and len(second) and (first.dtype == pl.String) != (second.dtype == pl.String):
        raise InputError(
            f"{where}: ids are {_kind(second)} (such as {some(_shown(second))}) where the others are "
            f"{_kind(first)} (such as {some(_shown(first))}); text never matches numbers. Store both as the same type."
        )


def _kind(series: pl.Series) -> str:
    return "text" if series.dtype == pl.String else "numbers"


def _shown(series: pl.Series) -> list[str]:
    """A few ids for a message; of texts, those that are no numbers."""
    if series.dtype == pl.String:
        odd = series.filter(series.cast(pl.Int64, strict=False).is_null())
        series = odd if len(odd) else series
    return [repr(value) for value in series.head(3).to_list()]
