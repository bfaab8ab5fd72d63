"""Arrays in `.npz` archives, checked before they are read: nothing pickled, nothing larger than it says it is."""

from __future__ import annotations

import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from truerank.core.errors import InputError, some

DAMAGED = (
    ValueError, TypeError, KeyError, EOFError, OSError, NotImplementedError, OverflowError, MemoryError, RecursionError,
    SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error, RuntimeError,
)  # fmt: skip
KINDS = "fiubUS"  # numbers and fixed-width text


def read_arrays(path: Path, wanted: Collection[str]) -> dict[str, Any]:
    """The arrays of these names; other names get None, and their arrays are not read."""
    try:
        with path.open("rb") as stream:
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
        shape, fortran, kind = _header(stream)
        if kind.kind == "O" or kind.hasobject:
            raise InputError(
                f"{path}: {entry.filename} holds an object array, which is never read. "
                "Save ids as fixed-width text, e.g. np.array(ids, dtype=str)."
            )
        if kind.kind not in KINDS or min(shape, default=0) < 0:
            raise ValueError(f"{entry.filename} is {kind} of shape {shape}")
        declared = math.prod(shape) * kind.itemsize
        held = entry.file_size - stream.tell()
        if declared != held or entry.file_size > _most(entry):
            raise ValueError(f"{entry.filename} declares {declared:,} bytes and holds {max(held, 0):,}")
        data = stream.read()
    if len(data) != declared:
        raise ValueError(f"{entry.filename} declares {declared:,} bytes and holds {len(data):,}")
    if declared == 0:
        return np.zeros(shape, dtype=kind)
    return np.frombuffer(data, dtype=kind).reshape(shape, order="F" if fortran else "C")


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    if version in ((2, 0), (3, 0)):
        return np.lib.format.read_array_header_2_0(stream)
    raise ValueError(f"format version {some([str(number) for number in version])}")


def _most(entry: zipfile.ZipInfo) -> int:
    """The most bytes that the packed ones can unpack to: deflate never gains more than a factor of 1032."""
    return entry.compress_size if entry.compress_type == zipfile.ZIP_STORED else 1032 * entry.compress_size + 1024


def unreadable(path: Path, error: BaseException) -> InputError:
    if "object" in str(error).lower():
        return InputError(
            f"{path}: holds an object array, which is never read. "
            "Save ids as fixed-width text, e.g. np.array(ids, dtype=str)."
        )
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    return InputError(f"{path}: cannot be read as {path.suffix} ({reason}). Write the file anew.")
