"""Values as plain tables: numbers and names alone, so that a file of them can be read whoever wrote it.

A table has the arrays and columns of a value, one in each row, and in its first row how the value is made of them, as
JSON. Only frozen dataclasses and enumerations of this package come back, filled with what stands there: nothing else is
ever called that a file names, which a pickle would do.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

import msgspec
import numpy as np
import polars as pl

from truerank.core.errors import InputError

SCHEMA: dict[str, Any] = {"kind": pl.String, "shape": pl.List(pl.Int64), "content": pl.Binary}
TREE, COLUMN = "tree", "column"
NUMBERS = "biuf"  # kinds of arrays: true and false, whole numbers, floats
UNREADABLE = (
    msgspec.DecodeError,
    TypeError,
    ValueError,
    LookupError,
    ImportError,
    AttributeError,
    RecursionError,
    OSError,
)
PACKAGE = __name__.partition(".")[0]


class NotPlainError(InputError):
    """A value that is made of something else than numbers, names and dataclasses of this package."""


def to_table(value: Any) -> pl.DataFrame:
    """A value as a table; what is one object in several places is written once.

    >>> table = to_table({"a": np.arange(3), "b": (1.5, None)})
    >>> table["kind"].to_list(), of_table(table)
    (['tree', '<i8'], {'a': array([0, 1, 2]), 'b': (1.5, None)})
    """
    writer = _Writer()
    tree = msgspec.json.encode(writer.tree(value))
    kinds, shapes, contents = zip((TREE, [], tree), *writer.arrays, strict=True)
    return pl.DataFrame([kinds, shapes, contents], schema=SCHEMA)


def of_table(table: pl.DataFrame) -> Any:
    """The value that a table was made of, bit by bit; arrays lie in memory as they did."""
    if dict(table.schema) != SCHEMA or not len(table) or table["kind"][0] != TREE:
        raise NotPlainError("a table that was not made of a value; make it again.")
    try:
        arrays = [_array(*row) for row in table.iter_rows()][1:]
        return _Reader(arrays).value(msgspec.json.decode(table["content"][0]))
    except (*UNREADABLE, pl.exceptions.PolarsError):
        raise NotPlainError("a table that was made of a value of another version; make it again.") from None


def _array(kind: str, shape: list[int], content: bytes) -> Any:
    if kind == TREE:
        return None
    if kind == COLUMN:
        return pl.read_ipc_stream(io.BytesIO(content)).to_series()
    dtype = np.dtype(kind.rstrip("T"))
    if dtype.kind not in NUMBERS:
        raise NotPlainError(f"an array of {kind}; expected numbers.")
    found = np.frombuffer(content, dtype=dtype).copy()  # may be written to, as one that was computed
    return found.reshape(shape[::-1]).T if kind.endswith("T") else found.reshape(shape)


@dataclass(slots=True)
class _Writer:
    """What a value is made of; `known` are the objects that were written, by their identity."""

    arrays: list[tuple[str, list[int], bytes]] = field(default_factory=list)
    known: dict[int, int] = field(default_factory=dict)
    held: list[Any] = field(default_factory=list)  # as long as their identity counts

    def tree(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if type(value) is float:
            return ["float", value.hex()]  # JSON has no NaN, and this no rounding
        if isinstance(value, Enum):
            return ["enum", *_home(type(value)), value.value]
        if id(value) in self.known:
            return ["again", self.known[id(value)]]
        made = self._made(value)
        self.known[id(value)] = len(self.held)
        self.held.append(value)
        return made

    def _made(self, value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            return ["array" if isinstance(value, np.ndarray) else "number", self._added(np.asarray(value))]
        if isinstance(value, pl.Series):
            return ["array", self._column(value)]
        if type(value) in (tuple, list):
            return [type(value).__name__, [self.tree(each) for each in value]]
        if isinstance(value, frozenset):
            return ["frozenset", [self.tree(each) for each in sorted(value)]]
        if isinstance(value, Mapping):
            return ["dict", [[self.tree(key), self.tree(each)] for key, each in value.items()]]
        own = {each.name: getattr(value, each.name) for each in _fields(type(value))}
        return ["value", *_home(type(value)), {name: self.tree(each) for name, each in own.items()}]

    def _added(self, values: np.ndarray) -> int:
        if values.dtype.kind not in NUMBERS:
            raise NotPlainError(f"an array of {values.dtype}; expected numbers.")
        turned = values.ndim > 1 and values.flags.f_contiguous and not values.flags.c_contiguous
        content = np.ascontiguousarray(values.T if turned else values).tobytes()
        self.arrays.append((values.dtype.str + ("T" if turned else ""), list(values.shape), content))
        return len(self.arrays) - 1

    def _column(self, values: pl.Series) -> int:
        if values.dtype.is_nested() or values.dtype == pl.Object:
            raise NotPlainError(f"a column of {values.dtype}; expected numbers or text.")
        stream = io.BytesIO()
        values.to_frame().write_ipc_stream(stream)
        self.arrays.append((COLUMN, [len(values)], stream.getvalue()))
        return len(self.arrays) - 1


@dataclass(slots=True)
class _Reader:
    """A value made of its arrays; `known` are the objects in the order in which they were written."""

    arrays: list[Any]
    known: list[Any] = field(default_factory=list)

    def value(self, tree: Any) -> Any:
        if not isinstance(tree, list):
            return tree
        kind, *rest = tree
        if kind == "float":
            return float.fromhex(rest[0])
        if kind == "enum":
            return _class(*rest[:2])(rest[2])
        if kind == "again":
            return self.known[rest[0]]
        made = self._made(kind, rest)
        self.known.append(made)
        return made

    def _made(self, kind: str, rest: list[Any]) -> Any:
        if kind in ("array", "number"):
            return self.arrays[rest[0]] if kind == "array" else self.arrays[rest[0]][()]
        if kind in ("tuple", "list", "frozenset"):
            several = [self.value(each) for each in rest[0]]
            return several if kind == "list" else frozenset(several) if kind == "frozenset" else tuple(several)
        if kind == "dict":
            return {self.value(key): self.value(each) for key, each in rest[0]}
        cls = _class(*rest[:2])
        return cls(**{name: self.value(each) for name, each in rest[2].items()})


def _fields(cls: type[Any]) -> list[Any]:
    """What a frozen dataclass is made from; what it has found out since is found again."""
    frozen = is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    if not frozen:
        raise NotPlainError(f"a {cls.__name__}; expected numbers, names and frozen dataclasses of {PACKAGE}.")
    return [each for each in fields(cls) if each.init]


def _home(cls: type[Any]) -> tuple[str, str]:
    """The module of a class of this package, and its name there."""
    module, name = cls.__module__, cls.__qualname__
    if not module.startswith(f"{PACKAGE}.") or "." in name:
        raise NotPlainError(f"a {name} of {module}; expected what {PACKAGE} itself defines.")
    return module, name


def _class(module: str, name: str) -> Any:
    """The class of that name, if it is a frozen dataclass or an enumeration which that module of this package makes."""
    if not module.startswith(f"{PACKAGE}.") or "." in name:
        raise NotPlainError(f"a {name} of {module}; expected what {PACKAGE} itself defines.")
    cls = getattr(importlib.import_module(module), name)
    if not isinstance(cls, type) or cls.__module__ != module:
        raise NotPlainError(f"{module} defines no {name}.")
    if not issubclass(cls, Enum):
        _fields(cls)
    return cls
