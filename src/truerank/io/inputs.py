"""What an input is made of: its format, its size and a hash of its bytes, so that results can name it for good."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truerank.core.errors import InputError
from truerank.core.provenance import Input
from truerank.io.part_files import parts_of
from truerank.io.stores import is_remote, url_of


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The size of a file, or of all part files, and the SHA-256 of what is in them."""

    bytes: int
    sha256: str


def fingerprint(path: Path, *, threads: int = 1) -> Fingerprint | None:
    """Size and hash of a file, or of the part files of a folder or a glob; None for what can be read only once.

    Of one file the hash is that of `sha256sum FILE`; of parts it is that of the lines which `sha256sum` prints for them
    in the order of their names, given relative to the folder they share. Bytes are streamed, so memory does not grow.
    """
    parts = parts_of(path)
    if parts is None:
        return _of_file(path) if path.is_file() or not path.exists() else None
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        prints = list(pool.map(_of_file, parts))
    lines = [f"{found.sha256}  {name}\n" for found, name in zip(prints, _relative(path, parts), strict=True)]
    return Fingerprint(sum(found.bytes for found in prints), hashlib.sha256("".join(lines).encode()).hexdigest())


def size_of(path: Path) -> int | None:
    """The bytes of a file, or of all part files; None for what can be read only once, or lies in an object store."""
    parts = parts_of(path)
    if is_remote(path) or (parts is None and path.exists() and not path.is_file()):
        return None
    try:
        return sum(part.stat().st_size for part in (parts or [path]))
    except OSError:
        raise InputError(f"{path}: no such file. Check the path.") from None


def input_of(
    source: Any,
    *,
    role: str,
    name: str | None = None,
    most: int | None = None,
    threads: int = 1,
    rows: int | None = None,
    users: int | None = None,
    items: int | None = None,
    positives: int | None = None,
) -> Input:
    """What results say of an input: of a path all, of a frame or an array what it is.

    A hash reads every byte, so files of more than `most` bytes can be left without one.

    >>> input_of([[1.0]], role="scores", name="als", users=1, items=1).source
    'list'
    """
    given = isinstance(source, str | os.PathLike)
    kind = type(source)
    size = size_of(Path(source)) if given else None
    hashed = size is not None and (most is None or size <= most)
    found = fingerprint(Path(source), threads=threads) if hashed else None
    return Input(
        role=role,
        source=url_of(source) if given else kind.__qualname__,
        name=name,
        format=_format(Path(source)) if given else kind.__module__.partition(".")[0],
        bytes=size,
        sha256=None if found is None else found.sha256,
        rows=rows,
        users=users,
        items=items,
        positives=positives,
    )


def _of_file(path: Path) -> Fingerprint:
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
            return Fingerprint(stream.tell(), digest.hexdigest())
    except FileNotFoundError:
        raise InputError(f"{path}: no such file. Check the path.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None


def _relative(path: Path, parts: Sequence[Path]) -> list[str]:
    shared = path if path.is_dir() else Path(os.path.commonpath([part.parent for part in parts]))
    return [part.relative_to(shared).as_posix() for part in parts]


def _format(path: Path) -> str | None:
    """The ending that tells the format, of a folder that of its parts."""
    parts = parts_of(path)
    endings = {"".join(part.suffixes[-2:] if part.suffix == ".gz" else part.suffixes[-1:]).lower()
               for part in (parts or [path])}  # fmt: skip
    return ", ".join(sorted(ending.lstrip(".") for ending in endings if ending)) or None
