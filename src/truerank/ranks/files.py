"""Scores from files: long tables, `.npz` dense or factors, `.npy` dense. Nothing pickled is ever read."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truerank.core import Scores
from truerank.data.files import check_readable, whole_file
from truerank.errors import InputError
from truerank.ids import IdColumn
from truerank.ranks.scores import Factors, dense, factors
from truerank.ranks.tables import lists

DENSE_KEYS = ("scores",)
FACTOR_KEYS = ("user_factors", "item_factors")


def read_scores(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    users: IdColumn | None = None,
    items: IdColumn | None = None,
) -> Scores:
    """The scores in a file; `users` and `items` name the rows and columns of a `.npy` matrix, in their order."""
    path = Path(path)
    if path.suffix == ".npz":
        return _from_npz(path)
    if path.suffix == ".npy":
        check_readable(path)
        return dense(_map_npy(path), users=users, items=items, name=str(path))
    return lists(path, columns=columns, name=str(path))


def write_scores(scores: Scores, path: str | Path) -> None:
    """Write scores as `.npz`: factors as they are, anything else as a dense matrix."""
    ids = {"users": scores.users.values.to_numpy(), "items": scores.items.values.to_numpy()}
    ids = {name: np.array(values.tolist()) if values.dtype == object else values for name, values in ids.items()}
    if isinstance(scores, Factors):
        arrays: dict[str, Any] = {"user_factors": scores.user, "item_factors": scores.item}
    else:
        arrays = {"scores": scores.block(np.arange(len(scores.users)))}
    with whole_file(Path(path)) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **arrays, **ids)  # type: ignore[arg-type]


def _from_npz(path: Path) -> Scores:
    check_readable(path)
    arrays = _load_npz(path)
    name = str(path)
    if all(key in arrays for key in DENSE_KEYS):
        return dense(arrays["scores"], users=arrays.get("users"), items=arrays.get("items"), name=name)
    if all(key in arrays for key in FACTOR_KEYS):
        return factors(
            *(arrays[key] for key in FACTOR_KEYS),
            user_bias=arrays.get("user_bias"),
            item_bias=arrays.get("item_bias"),
            users=arrays.get("users"),
            items=arrays.get("items"),
            name=name,
        )
    raise InputError(
        f"{path}: arrays {', '.join(arrays) or 'none'}; expected scores (with users, items) or "
        "user_factors and item_factors (with users, items and optional user_bias, item_bias)."
    )


def _load_npz(path: Path) -> dict[str, Any]:
    """All arrays of an archive by name. Object arrays would need pickle, which can run code: refused."""
    try:
        with path.open("rb") as stream:
            if stream.read(2) != b"PK":
                raise InputError(f"{path}: cannot be read as .npz (it is no archive). Write it with np.savez.")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as archive:
                return {key: archive[key] for key in archive.files}
    except (ValueError, zipfile.BadZipFile, zlib.error, OSError, EOFError, KeyError, NotImplementedError) as error:
        raise _unreadable(path, error) from None


def _map_npy(path: Path) -> Any:
    """The matrix of a file, memory-mapped."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> InputError:
    if "object" in str(error).lower():
        return InputError(
            f"{path}: holds an object array, which is never read. "
            "Save ids as fixed-width text, e.g. np.array(ids, dtype=str)."
        )
    return InputError(f"{path}: cannot be read as {path.suffix} ({error}). Write the file anew.")
