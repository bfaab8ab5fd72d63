"""Scores from files: long tables, `.npz` dense, factors or sparse, `.npy` dense. Nothing pickled is ever read."""

from __future__ import annotations

import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from truerank.core.errors import InputError, some
from truerank.core.ids import IdColumn, Ids
from truerank.core.progress import Progress, Watching, watching
from truerank.core.ranking import Scores
from truerank.core.sizes import check_size
from truerank.core.validation import Wanted, checked_arguments
from truerank.core.wording import option
from truerank.io.atomic_write import whole_file
from truerank.io.files import check_readable
from truerank.io.frames import Stored, is_sparse, stored
from truerank.io.paths import unchanged, url_of, versions_of
from truerank.ranking.scores.scores import TILE_USERS, Factors, dense, factors
from truerank.ranking.scores.tables import from_stored, is_wide, lists, sparse

# RuntimeError stands for what zipfile raises about a compression it does not know, and for too deep headers too
DAMAGED = (
    ValueError, TypeError, KeyError, EOFError, OSError, OverflowError, MemoryError, RuntimeError, SyntaxError,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
KINDS = "fiubUS"  # numbers and fixed-width text


def read_arrays(path: Path, wanted: Collection[str]) -> dict[str, Any]:
    """The arrays of these names; other names get None, and their arrays are not read."""
    try:
        with unchanged(versions_of([path])), path.open("rb") as stream:
            if stream.read(2) != b"PK":
                raise InputError(f"{path}: cannot be read as .npz (it is no archive). Write it with np.savez.")
            stream.seek(0)
            with zipfile.ZipFile(stream) as archive, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # numpy's, about files of Python 2
                entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
                if len(entries) < len(archive.infolist()):
                    raise ValueError("two arrays have the same name")
                return {
                    name: _array(archive, entry, path=path) if name in wanted else None
                    for name, entry in entries.items()
                }
    except DAMAGED as error:
        raise unreadable(path, error) from None


def write_array(
    archive: zipfile.ZipFile,
    name: str,
    shape: tuple[int, ...],
    kind: np.dtype[Any],
    blocks: Iterable[npt.NDArray[Any]],
) -> None:
    """Add an array to an archive, block of rows by block; no date is stored, so that equal arrays make equal bytes."""
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as stream:
        np.lib.format.write_array_header_2_0(stream, header)
        for block in blocks:
            stream.write(np.ascontiguousarray(block, dtype=kind).tobytes())


def map_npy(path: Path) -> Any:
    """The matrix of a file, memory-mapped."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.lib.format.open_memmap(path, mode="r")
    except DAMAGED as error:
        raise unreadable(path, error) from None


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, *, path: Path) -> Any:
    """One array; its declared size is compared with the archive's before anything is allocated."""
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"format version {version[0]}, {version[1]}")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = read(stream)
        if kind.hasobject:
            raise ValueError("object")
        if kind.kind not in KINDS or min(shape, default=0) < 0:
            raise ValueError(f"{entry.filename} is {kind} of shape {shape}")
        declared = math.prod(shape) * kind.itemsize
        held = entry.file_size - stream.tell()
        stored_plain = entry.compress_type == zipfile.ZIP_STORED  # deflate never gains more than a factor of 1032
        most = entry.compress_size if stored_plain else 1032 * entry.compress_size + 1024
        if declared != held or entry.file_size > most:
            raise ValueError(f"{entry.filename} declares {declared:,} bytes and holds {max(held, 0):,}")
        check_size(f"{path}, {entry.filename},", memory=declared, instead="Give factors, or top lists.")
        stream.seek(0)
        return np.lib.format.read_array(stream, allow_pickle=False)


def unreadable(path: Path, error: BaseException) -> InputError:
    if "object" in str(error).lower():
        return InputError(
            f"{path}: holds an object array, which is never read. "
            "Save ids as fixed-width text, e.g. np.array(ids, dtype=str)."
        )
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    return InputError(f"{path}: cannot be read as {path.suffix} ({reason}). Write the file anew.")


DENSE_KEYS = ("scores",)
FACTOR_KEYS = ("user_factors", "item_factors")
SPARSE_KEYS = ("format", "shape", "data")  # what scipy.sparse.save_npz writes, with the places of the entries
KEYS = {*DENSE_KEYS, *FACTOR_KEYS, *SPARSE_KEYS, "indices", "indptr", "row", "col", "users", "items"}
BIASES = {"user_bias", "item_bias"}


@checked_arguments()
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
        (version,) = versions_of([path])
        with unchanged([version]):
            scores = dense(map_npy(path), users=users, items=items, name=str(path))
        return replace(scores, file=version) if isinstance(scores.matrix, np.memmap) else scores
    return lists(path, columns=columns, name=url_of(path))


def as_scores(source: Any, *, name: str) -> Scores:
    """Scores of a file, a matrix or a frame; what is Scores already stays."""
    if isinstance(source, Scores):
        return source
    if isinstance(source, str | Path):
        return read_scores(source)
    if isinstance(source, np.ndarray):
        return dense(source, name=name)
    if is_sparse(source):
        return sparse(source, name=name)
    if is_wide(source):
        return dense(source.to_numpy(), users=source.index.tolist(), items=source.columns.tolist(), name=name)
    if callable(source):
        raise InputError(
            f"{name}: a function needs users and items: truerank.scores.function(call, users=..., items=...)."
        )
    return lists(source, name=name)


SCORES = Wanted("scores, as truerank.read_scores gives them", lambda value: isinstance(value, Scores))


@checked_arguments(scores=SCORES)
def write_scores(scores: Scores, path: str | Path, *, progress: Watching = None) -> None:
    """Write scores as `.npz`: factors as they are, anything else as a dense matrix, a block of users at a time.

    The same scores make the same bytes.
    """
    ids = {"users": ids_array(scores.users, "users"), "items": ids_array(scores.items, "items")}
    with (
        watching(progress) as report,
        whole_file(Path(path)) as temporary,
        temporary.open("wb") as stream,
        zipfile.ZipFile(stream, "w") as archive,
    ):
        if isinstance(scores, Factors):
            write_array(archive, "user_factors", scores.user.shape, scores.user.dtype, [scores.user])
            write_array(archive, "item_factors", scores.item.shape, scores.item.dtype, [scores.item])
        else:
            first = scores.block(np.arange(min(1, len(scores.users)))) if len(scores.users) else np.zeros((0, 0))
            shape = (len(scores.users), len(scores.items))
            write_array(archive, "scores", shape, first.dtype, _blocks(scores, report))
        for name, values in ids.items():
            write_array(archive, name, values.shape, values.dtype, [values])


def top_lists(scores: Scores, most: int) -> pl.DataFrame:
    """The highest scores of each user as a table user, item, rank; equal scores in the order of the catalogue.

    >>> from truerank.ranking.scores.scores import dense
    >>> top_lists(dense(np.array([[1.0, 3.0, 2.0]])), 2).rows()
    [(0, 1, 1), (0, 2, 2)]
    """
    n, parts, first = min(most, len(scores.items)), [], 0
    for block in _blocks(scores, None):
        rows = np.repeat(np.arange(first, first + len(block)), n)
        order = np.argsort(-np.asarray(block), axis=1, kind="stable")[:, :n]
        ids = {"user": scores.users.values.gather(rows), "item": scores.items.values.gather(order.ravel())}
        parts.append(pl.DataFrame({**ids, "rank": np.tile(np.arange(1, n + 1), len(block))}))
        first += len(block)
    return pl.concat(parts)


def ids_array(ids: Ids, name: str) -> npt.NDArray[Any]:
    """Ids as an array that reads back as the same; those that none can hold are refused.

    >>> ids_array(Ids.of(["b", "a"]), "users").tolist()
    ['a', 'b']
    """
    values = ids.values
    if values.dtype == pl.Int128:
        fits = bool((values >= 0).all()) and values[-1] < 2**64
        if not fits:
            raise InputError(
                f"{name}: ids such as {values[-1]} do not fit into the whole numbers of .npz; expected less than 2^64 "
                "and none below 0 beside those above 2^63. Write them as text, such as with a letter in front."
            )
        return values.cast(pl.UInt64).to_numpy()
    if not ids.is_text:
        return values.to_numpy()
    if bool(values.str.ends_with("\0").any()):
        raise InputError(f"{name}: ids that end in a NUL cannot be kept as text of .npz. Write them without it.")
    return np.array(values.to_list(), dtype=str)


def _blocks(scores: Scores, report: Progress | None) -> Iterator[npt.NDArray[np.floating]]:
    n = len(scores.users)
    for start in range(0, n, TILE_USERS):
        if report is not None:
            report("writing", start, n)
        yield scores.block(np.arange(start, min(start + TILE_USERS, n)))


def _from_npz(path: Path, *, users: IdColumn | None, items: IdColumn | None) -> Scores:
    check_readable(path)
    arrays = read_arrays(path, KEYS | BIASES)
    name = str(path)
    users, items = _checked_ids(arrays, "users", users, name=name), arrays.get("items", items)
    if all(key in arrays for key in DENSE_KEYS):
        return dense(arrays["scores"], users=users, items=items, name=name)
    if all(key in arrays for key in FACTOR_KEYS):
        return factors(
            *(arrays[key] for key in FACTOR_KEYS),
            user_bias=arrays.get("user_bias"),
            item_bias=arrays.get("item_bias"),
            users=users,
            items=items,
            name=name,
        )
    if all(key in arrays for key in SPARSE_KEYS):
        return from_stored(_stored(path), users=users, items=items, name=name)
    raise InputError(
        f"{path}: arrays {', '.join(arrays) or 'none'}; expected scores (with users, items), "
        "user_factors and item_factors (with users, items and optional user_bias, item_bias), "
        "or what scipy.sparse.save_npz writes."
    )


def _checked_ids(arrays: Mapping[str, Any], key: str, ids: IdColumn | None, *, name: str) -> IdColumn | None:
    """The ids that a file has, else those of the caller; both must be the same."""
    of_file: IdColumn | None = arrays.get(key, ids)
    if of_file is not None and ids is not None and of_file is not ids:
        stored_ids, named = Ids.of(of_file, where=f"{name}, {key}"), Ids.of(ids, where=key)
        if stored_ids != named:
            raise InputError(
                f"{name}: has {key} of its own (such as {some(stored_ids.texts()[:3])}), which are not those that "
                f"{option(key)} names (such as {some(named.texts()[:3])}). Leave that out, or name the same."
            )
    return of_file


def _stored(path: Path) -> Stored:
    """The entries of a matrix that scipy.sparse.save_npz wrote; every index is checked."""
    from scipy.sparse import load_npz

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of places that are no whole numbers
            matrix = load_npz(path)
            if matrix.format != "coo":  # whose places scipy checks when it is made
                matrix.check_format(full_check=True)
    except (*DAMAGED, Warning) as error:
        raise unreadable(path, error) from None
    return stored(matrix, name=str(path))
