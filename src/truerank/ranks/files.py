"""Scores from files: long tables, `.npz` dense or factors, `.npy` dense. Nothing pickled is ever read."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truerank.core import Scores
from truerank.data.files import check_readable, whole_file
from truerank.errors import InputError
from truerank.ids import Ids
from truerank.ranks.scores import Factors, dense, factors
from truerank.ranks.tables import lists

DENSE_KEYS = ("scores",)
FACTOR_KEYS = ("user_factors", "item_factors")


def read_scores(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    users: Ids | None = None,
    items: Ids | None = None,
) -> Scores:
    """The scores in a file; `users` and `items` name the rows and columns of a `.npy` matrix."""
    path = Path(path)
    if path.suffix == ".npz":
        return _from_npz(path)
    if path.suffix == ".npy":
        check_readable(path)
        return dense(_load(path, mapped=True), users=users, items=items, name=str(path))
    return lists(path, columns=columns, name=str(path))


def write_scores(scores: Scores, path: str | Path) -> None:
    """Write scores as `.npz`: factors as they are, anything else as a dense matrix."""
    ids = {"users": scores.users.values.to_numpy(), "items": scores.items.values.to_numpy()}
    ids = {name: np.array(values.tolist()) if values.dtype == object else values for name, values in ids.items()}
    if isinstance(scores, Factors):
        arrays: dict[str, Any] = {"user_factors": scores.user, "item_factors": scores.item[: len(scores.items)]}
    else:
        arrays = {"scores": scores.block(np.arange(len(scores.users)))}
    with whole_file(Path(path)) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **arrays, **ids)  # type: ignore[arg-type]


def _from_npz(path: Path) -> Scores:
    check_readable(path)
    arrays = _load(path, mapped=False)
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


def _load(path: Path, *, mapped: bool) -> Any:
    """The array, or all arrays by name. Object arrays would need pickle, which can run code: refused."""
    try:
        if mapped:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except ValueError as error:
        if "pickle" in str(error).lower():
            raise InputError(
                f"{path}: holds an object array, which is never read. "
                "Save ids as fixed-width text, e.g. np.array(ids, dtype=str)."
            ) from None
        raise InputError(f"{path}: cannot be read as {path.suffix} ({error}). Write the file anew.") from None
    except (zipfile.BadZipFile, OSError, EOFError, AttributeError, KeyError) as error:
        raise InputError(f"{path}: cannot be read as {path.suffix} ({error}). Write the file anew.") from None
