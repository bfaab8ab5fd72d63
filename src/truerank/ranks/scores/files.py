"""Scores from files: long tables, `.npz` dense, factors or sparse, `.npy` dense. Nothing pickled is ever read."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from truerank.core.arrays import Ints
from truerank.core.errors import InputError
from truerank.core.ids import IdColumn
from truerank.core.ranking import Scores
from truerank.data.files import check_readable, whole_file
from truerank.data.matrices import Stored
from truerank.ranks.scores.archives import map_npy, read_arrays, write_array
from truerank.ranks.scores.matrices import from_stored
from truerank.ranks.scores.scores import TILE_USERS, Factors, dense, factors
from truerank.ranks.scores.tables import lists

DENSE_KEYS = ("scores",)
FACTOR_KEYS = ("user_factors", "item_factors")
SPARSE_KEYS = ("format", "shape", "data")  # what scipy.sparse.save_npz writes, with the places of the entries:
PLACES = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}
KEYS = {*DENSE_KEYS, *FACTOR_KEYS, *SPARSE_KEYS, "indices", "indptr", "row", "col", "users", "items"}
BIASES = {"user_bias", "item_bias"}
MOST = float(np.finfo(np.float32).max)


def read_scores(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    users: IdColumn | None = None,
    items: IdColumn | None = None,
) -> Scores:
    """The scores in a file: a table or TREC run (also in parts), `.npz` or `.npy`.

    `users` and `items` name the rows and columns of a matrix that comes without ids, in their order: `.npy`, or
    `.npz` without `users` and `items`, such as scipy.sparse.save_npz writes.
    """
    path = Path(path)
    if path.suffix == ".npz":
        return _from_npz(path, users=users, items=items)
    if path.suffix == ".npy":
        check_readable(path)
        return dense(map_npy(path), users=users, items=items, name=str(path))
    return lists(path, columns=columns, name=str(path))


def write_scores(scores: Scores, path: str | Path, *, progress: Callable[[int, int], None] | None = None) -> None:
    """Write scores as `.npz`: factors as they are, anything else as a dense matrix, a block of users at a time.

    The same scores make the same bytes.
    """
    ids = {"users": scores.users.values.to_numpy(), "items": scores.items.values.to_numpy()}
    ids = {name: np.array(values.tolist()) if values.dtype == object else values for name, values in ids.items()}
    with whole_file(Path(path)) as temporary, temporary.open("wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        if isinstance(scores, Factors):
            write_array(archive, "user_factors", scores.user.shape, scores.user.dtype, [scores.user])
            write_array(archive, "item_factors", scores.item.shape, scores.item.dtype, [scores.item])
        else:
            first = scores.block(np.arange(min(1, len(scores.users)))) if len(scores.users) else np.zeros((0, 0))
            shape = (len(scores.users), len(scores.items))
            write_array(archive, "scores", shape, first.dtype, _blocks(scores, progress))
        for name, values in ids.items():
            write_array(archive, name, values.shape, values.dtype, [values])


def _blocks(scores: Scores, progress: Callable[[int, int], None] | None) -> Iterator[npt.NDArray[np.floating]]:
    n = len(scores.users)
    for start in range(0, n, TILE_USERS):
        if progress is not None:
            progress(start, n)
        yield scores.block(np.arange(start, min(start + TILE_USERS, n)))


def _from_npz(path: Path, *, users: IdColumn | None, items: IdColumn | None) -> Scores:
    check_readable(path)
    arrays = read_arrays(path, KEYS | BIASES)
    name = str(path)
    users, items = arrays.get("users", users), arrays.get("items", items)
    if all(key in arrays for key in DENSE_KEYS):
        return dense(arrays["scores"], users=users, items=items, name=name)
    if all(key in arrays for key in FACTOR_KEYS):
        for key in (*FACTOR_KEYS, *sorted(BIASES & arrays.keys())):
            _check_size(arrays[key], name=f"{name}, {key}")
        return factors(
            *(arrays[key] for key in FACTOR_KEYS),
            user_bias=arrays.get("user_bias"),
            item_bias=arrays.get("item_bias"),
            users=users,
            items=items,
            name=name,
        )
    if all(key in arrays for key in SPARSE_KEYS):
        return from_stored(_stored(arrays, name=name), users=users, items=items, name=name)
    raise InputError(
        f"{path}: arrays {', '.join(arrays) or 'none'}; expected scores (with users, items), "
        "user_factors and item_factors (with users, items and optional user_bias, item_bias), "
        "or what scipy.sparse.save_npz writes."
    )


def _check_size(array: Any, *, name: str) -> None:
    """Factors are multiplied in single precision: what does not fit there would be infinite."""
    if array.dtype.kind != "f":
        return
    if not np.isfinite(array).all():
        raise InputError(f"{name}: values that are not finite numbers; expected finite numbers.")
    largest = float(np.abs(array).max(initial=0))
    if largest > MOST:
        raise InputError(f"{name}: values up to {largest:.3g}; expected at most {MOST:.3g}. Rescale them.")


def _stored(arrays: Mapping[str, Any], *, name: str) -> Stored:
    """The entries of a matrix that scipy.sparse.save_npz wrote; every index is checked."""
    form = _word(arrays["format"])
    if form not in PLACES:
        raise InputError(f"{name}: sparse format {form!r}; expected csr, csc or coo. Save it with .tocsr().")
    missing = [key for key in PLACES[form] if key not in arrays]
    if missing:
        raise InputError(f"{name}: no array {missing[0]}; expected {', '.join(PLACES[form])} with format {form}.")
    value, shape = arrays["data"], arrays["shape"]
    first, second = (arrays[key] for key in PLACES[form])
    if shape.dtype.kind not in "iu" or shape.shape != (2,) or int(shape.min()) < 0:
        raise InputError(f"{name}: shape is {shape.tolist()}; expected two whole numbers.")
    if value.ndim != 1 or value.dtype.kind not in "fiub":
        raise InputError(f"{name}: data is {value.dtype} of shape {value.shape}; expected one number per entry.")
    size = (int(shape[0]), int(shape[1]))
    if form == "coo":
        row, column = _places(first, size[0], name=f"{name}, row"), _places(second, size[1], name=f"{name}, col")
    else:
        major, minor = size if form == "csr" else size[::-1]
        inner = _places(first, minor, name=f"{name}, indices")
        outer = _outer(second, major, len(inner), name=f"{name}, indptr")
        row, column = (outer, inner) if form == "csr" else (inner, outer)
    if not len(row) == len(column) == len(value):
        raise InputError(f"{name}: {len(value):,} entries at {len(row):,} places; expected one place each.")
    return _summed(Stored(size, row, column, value))


def _word(array: Any) -> str:
    word = array.item() if array.size == 1 else ""
    return word.decode("ascii", "replace") if isinstance(word, bytes) else str(word)


def _places(array: Any, size: int, *, name: str) -> Ints:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"{name}: {array.dtype} of shape {array.shape}; expected whole numbers, one per entry.")
    if len(array) and (int(array.min()) < 0 or int(array.max()) >= size):
        raise InputError(f"{name}: {int(array.min())} to {int(array.max())}; expected numbers from 0 to {size - 1}.")
    return np.asarray(array, dtype=np.int64)


def _outer(array: Any, size: int, entries: int, *, name: str) -> Ints:
    start = _places(array, entries + 1, name=name)
    if len(start) != size + 1 or start[0] != 0 or start[-1] != entries or (np.diff(start) < 0).any():
        raise InputError(f"{name}: {len(start):,} starts; expected {size + 1:,} that rise from 0 to {entries:,}.")
    return np.repeat(np.arange(size), np.diff(start))


def _summed(entries: Stored) -> Stored:
    """Entries stored twice are added, as scipy means them."""
    order = np.lexsort((entries.column, entries.row))
    row, column, value = entries.row[order], entries.column[order], entries.value[order]
    if len(row) == 0:
        return entries
    new = np.concatenate([[True], (np.diff(row) != 0) | (np.diff(column) != 0)])
    added = value if new.all() else np.add.reduceat(value.astype(np.float64), np.flatnonzero(new))
    return Stored(entries.shape, row[new], column[new], added)
