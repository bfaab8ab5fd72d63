"""Values on their way between the processes of one run.

A parcel is the pickle of a value, made by this run and read by this run, never by another one and never from a file of
the user's. Where workers see this machine's files it lies in a folder that only this user can open, and an engine's own
channels carry no more than its name; else it travels as bytes. What all chunks share is unpacked once in each process.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO, Any, Protocol

from truerank.core.errors import TruerankError
from truerank.core.threads import one_blas_thread
from truerank.engines.engine import Sendable

PROTOCOL = 5  # arrays are written without a copy


class Pickling(Protocol):
    """How values are written; functions that no module names need the pickler of an engine."""

    def __call__(self, value: Any, file: IO[bytes], /, protocol: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Parcel:
    """A packed value: its bytes, or the file that holds them; `digest` tells shared values apart."""

    content: bytes | Path
    digest: str = ""  # of what a process keeps unpacked

    def open(self) -> Any:
        if isinstance(self.content, bytes):
            return pickle.loads(self.content)
        with self.content.open("rb") as file:
            return pickle.load(file)

    def remove(self) -> None:
        if isinstance(self.content, Path):
            self.content.unlink(missing_ok=True)


def pack(value: Any, folder: Path | None, *, dump: Pickling = pickle.dump) -> Parcel:
    """A value as a file of a folder that both sides see, or as bytes.

    >>> pack([1, 2], None).open()
    [1, 2]
    """
    if folder is None:
        stream = io.BytesIO()
        dump(value, stream, protocol=PROTOCOL)
        return Parcel(stream.getvalue())
    path = folder / uuid.uuid4().hex
    with path.open("wb") as file:
        dump(value, file, protocol=PROTOCOL)
    return Parcel(path)


def pack_shared(value: Any, folder: Path | None, *, dump: Pickling = pickle.dump) -> Parcel:
    """What all chunks share: unpacked once in every process, which knows it by a digest of its bytes."""
    parcel = pack(value, folder, dump=dump)
    if isinstance(parcel.content, bytes):
        digest = hashlib.blake2b(parcel.content, digest_size=16).hexdigest()
    else:
        with parcel.content.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    return Parcel(parcel.content, digest)


@dataclass(slots=True)
class PackedParts:
    """PackedParts that were packed: those of data in memory once for all passes over them, others for one pass."""

    chunks: Any = None
    packed: dict[int, Parcel] = field(default_factory=dict)
    lock: Any = field(default_factory=Lock)  # parts of one pass are packed by several threads

    def of(self, chunks: Sendable[Any], at: int, folder: Path | None, *, dump: Pickling) -> Parcel:
        keeps = chunks.held and folder is not None
        if keeps:
            with self.lock:
                if chunks is not self.chunks:
                    self.forget()
                    self.chunks = chunks
                if at in self.packed:
                    return self.packed[at]
        parcel = pack(chunks.part(at, same_disk=folder is not None), folder, dump=dump)
        if not keeps:
            return parcel
        kept = Parcel(parcel.content, str(parcel.content))
        with self.lock:
            self.packed[at] = kept
        return kept

    def done(self, parcel: Parcel) -> None:
        """A part that nobody needs any more goes at once."""
        if not parcel.digest:
            parcel.remove()

    def forget(self) -> None:
        for parcel in self.packed.values():
            parcel.remove()
        self.packed.clear()


# ----------------------------------------------------------------------------------------------------------- on workers


@dataclass(slots=True)
class Recent:
    """The latest few values that a process has unpacked, by their digests."""

    most: int
    lock: Any = field(default_factory=Lock)
    values: dict[str, Any] = field(default_factory=dict)

    def of(self, digest: str, made: Callable[[], Any]) -> Any:
        with self.lock:
            if digest not in self.values:
                while len(self.values) >= self.most:
                    self.values.pop(next(iter(self.values)))
                self.values[digest] = made()
            return self.values[digest]


SHARED, CHUNKS = Recent(2), Recent(4)  # of this pass and of the one before; of data in memory a few chunks


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that is the user's to know: what a worker found wrong with the data, in its own words."""

    kind: type[TruerankError]
    text: str

    def raised(self) -> TruerankError:
        return self.kind(self.text)


def carry_out(shared: Parcel, part: Parcel, folder: Path | None) -> Parcel:
    """On a worker: read a chunk, work on it with BLAS on one thread, and pack the result."""
    try:
        return _carried_out(shared, part, folder)
    except MemoryError:
        pass
    # told anew, when all that the work held is let go: an engine needs memory, too, to say that there is none
    CHUNKS.values.clear()
    raise MemoryError("no memory left")


def _carried_out(shared: Parcel, part: Parcel, folder: Path | None) -> Parcel:
    work, read = SHARED.of(shared.digest, shared.open)
    try:
        with one_blas_thread():
            chunk = CHUNKS.of(part.digest, lambda: read(part.open())) if part.digest else read(part.open())
            result = work(chunk)
    except TruerankError as error:
        result = Failure(type(error), error.marked)
    return pack(result, folder)


def opened(parcel: Parcel) -> Any:
    """The result in a parcel, which is removed; what was wrong with the data is raised here."""
    result = parcel.open()
    parcel.remove()
    if isinstance(result, Failure):
        raise result.raised()
    return result
