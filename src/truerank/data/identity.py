"""What tells one input or setting from another for good: a digest of all that it is made of.

Two processes give the same digest for the same values, whatever objects hold them. Files are told by their bytes, other
rows by their values, in their order.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.core.errors import InputError
from truerank.data.batches import LazyTable, is_pandas
from truerank.data.inputs import fingerprint
from truerank.data.matrices import is_sparse
from truerank.data.stores import is_remote

SEED = 1  # of the hash of rows
SIZE = 16  # bytes of a digest
PIECE = 2**26  # bytes of an array that are taken at a time
LONGEST = 60  # characters of a value that is shown


def described(value: Any, *, what: str) -> Any:
    """A value as plain data in which a change shows: small ones as they are, others by their text and a digest.

    >>> described({"level": 0.9, "clips": (1, math.inf)}, what="a call")
    {'level': 0.9, 'clips': [1, 'inf']}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list) and len(value) <= LONGEST:
        return [described(each, what=what) for each in value]
    if isinstance(value, Mapping) and len(value) <= LONGEST and all(isinstance(name, str) for name in value):
        return {name: described(each, what=f"{what}, {name}") for name, each in value.items()}
    named = is_dataclass(value) and type(value).__str__ is not object.__str__
    text = str(value)[:LONGEST] if named else type(value).__name__
    return f"{text} {digest(value, what=what)}"


def digest(value: Any, *, what: str) -> str:
    """Of all that a value is made of; `what` names it in a refusal.

    >>> digest(np.arange(3), what="x") == digest(np.arange(3), what="x") != digest(np.arange(4), what="x")
    True
    """
    found = hashlib.blake2b(digest_size=SIZE)
    for part in _parts(value, what):
        found.update(part)
    return found.hexdigest()


def _parts(value: Any, what: str) -> Iterable[bytes | memoryview]:
    """The bytes of a value, with what tells where one part ends and the next begins."""
    for holds, parts in KINDS:
        if holds(value):
            return parts(value, what)
    if hasattr(value, "__arrow_c_stream__"):
        return _of_table(LazyTable.of(value), what)
    raise InputError(
        f"{what}: nobody can tell whether a {type(value).__name__} is the same next time, so what is made of it cannot "
        "be kept; give a file or a frame, or leave {option:keep} out."
    )


def _is(*kinds: type[Any]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _several(values: Iterable[Any], name: str, what: str) -> Iterable[bytes | memoryview]:
    yield f"{name}(".encode()
    yield from chain.from_iterable(_parts(each, what) for each in values)
    yield b")"


def _of_array(values: np.ndarray, what: str) -> Iterable[bytes | memoryview]:
    if values.dtype.kind == "O":
        yield from _several(values.ravel().tolist(), f"objects {values.shape}", what)
        return
    yield f"array {values.dtype.str} {values.shape};".encode()
    for part in np.array_split(values, max(1, values.nbytes // PIECE)) if values.ndim else [values]:
        yield np.ascontiguousarray(part).tobytes()


def _of_sparse(matrix: Any, what: str) -> Iterable[bytes | memoryview]:
    rows = matrix.tocsr()
    return _several([rows.shape, rows.data, rows.indices, rows.indptr], "sparse", what)


def _of_dataclass(value: Any, what: str) -> Iterable[bytes | memoryview]:
    own = [getattr(value, each.name) for each in fields(value) if each.init]
    return _several(own, f"{type(value).__module__}.{type(value).__qualname__}", what)


def _of_path(path: Path, what: str) -> Iterable[bytes | memoryview]:
    """The bytes of a file or of part files; of objects of a store their rows."""
    if is_remote(path):
        return _of_table(LazyTable.of(path), what)
    found = fingerprint(path)
    if found is None:
        raise InputError(f"{what}: {path} can be read only once, so that nobody can go on with it; copy it to a file.")
    return [f"file {found.sha256};".encode()]


def _of_table(table: LazyTable, what: str) -> Iterable[bytes | memoryview]:
    """Columns and types; then the bytes of its files, or its rows where these are more than their files (Hive)."""
    yield f"table {[(name, str(kind)) for name, kind in table.schema.items()]};".encode()
    files = [piece.file.path for piece in table.pieces if piece.file is not None]
    if table.kept is None and len(files) == len(table.pieces) and not any(map(is_remote, files)):
        prints = [fingerprint(file) if file.is_file() else None for file in files]
        if all(prints):
            yield f"files {[found.sha256 for found in prints if found is not None]};".encode()
            return
    for batch in table.batches():
        yield batch.hash_rows(seed=SEED).to_numpy().tobytes()  # of each row, so that batches do not matter


KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, str], Iterable[bytes | memoryview]]], ...] = (
    (_is(Enum), lambda value, _: [f"{type(value).__name__} {value.value!r};".encode()]),
    (
        _is(bool, int, float, Fraction, str, bytes, date, type(None)),
        lambda value, _: [f"{type(value).__name__} {value!r};".encode()],
    ),
    (_is(np.ndarray, np.generic), lambda value, what: _of_array(np.asarray(value), what)),
    (_is(Path), _of_path),
    (_is(LazyTable), _of_table),
    (_is(pl.Series), lambda value, what: _of_table(LazyTable.of(value.to_frame("")), what)),
    (_is(pl.DataFrame, pl.LazyFrame), lambda value, what: _of_table(LazyTable.of(value), what)),
    (is_pandas, lambda value, what: _of_table(LazyTable.of(value), what)),
    (is_sparse, _of_sparse),
    (_is(Mapping), lambda value, what: _several([each for pair in value.items() for each in pair], "mapping", what)),
    (_is(tuple, list), lambda value, what: _several(value, "several", what)),
    (_is(Set), lambda value, what: _several(sorted(value, key=repr), "set", what)),
    (lambda value: is_dataclass(value) and not isinstance(value, type), _of_dataclass),
)
