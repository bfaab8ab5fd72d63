"""Valid files, and ways to damage them. Input i of a kind is always the same bytes."""

from __future__ import annotations

import gzip
import io
import random
import warnings
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

USERS, ITEMS = (1, 2, 3, 4), (10, 20, 30, 40, 50)
PAIRS = [(user, item) for user in USERS for item in ITEMS]
ODD = [
    b"\x00", b"\xff\xfe", b"\xc3\x28", b"\xf0\x9f\x98\x80", b"\xef\xbb\xbf", b'"', b"'", b'""', b"\r", b"\r\n", b"\n\n",
    b"\t", b",", b" ", b"1e999", b"-1e999", b"9" * 40, b"-9223372036854775809", b"18446744073709551616", b"0.1e-400",
    b"nan", b"NaN", b"-inf", b"null", b"None", b"true", b"1_000", b"0x10", b"1.", b".5", b"+7", b"--1", b"\xe2\x80\xa8",
    b"2020-01-01", b"12:30", b"a" * 3000, b"#", b"\\", b"\x1a", b"\x0c", b"user", b"item", b"=1+1",
]  # fmt: skip


def csv(separator: str = ",", *, before: str = "") -> bytes:
    """Labels of all pairs; ids are text where they have something before them."""
    rows = [("user", "item", "label")]
    rows += [(f"{before}{user}", f"{before}{item}", str((user + item) % 3 % 2)) for user, item in PAIRS]
    return "".join(separator.join(row) + "\n" for row in rows).encode()


def qrels(*, before: str = "") -> bytes:
    return "".join(f"{before}{u} 0 {before}{i} {(u + i) % 3 % 2}\n" for u, i in PAIRS).encode()


def top(*, before: str = "") -> bytes:
    """Lists of a model, of all pairs."""
    lines = [f"{before}{user},{before}{item},{user * item % 7}\n" for user, item in PAIRS]
    return "".join(["user,item,score\n", *lines]).encode()


def run() -> bytes:
    return "".join(f"{user} Q0 {item} 1 {(user * item) % 7 / 2} tag\n" for user, item in PAIRS).encode()


def parquet() -> bytes:
    stream = io.BytesIO()
    pl.read_csv(csv()).write_parquet(stream)
    return stream.getvalue()


def archive(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def dense() -> bytes:
    return archive(scores=np.arange(20.0).reshape(4, 5) % 7, users=np.array(USERS), items=np.array(ITEMS))


def factors() -> bytes:
    made = np.random.default_rng(0)
    return archive(
        user_factors=made.normal(size=(4, 2)), item_factors=made.normal(size=(5, 2)).astype(np.float32),
        item_bias=np.ones(5), users=np.array(USERS), items=np.array(ITEMS),
    )  # fmt: skip


def stored(kind: type[Any] = sparse.csr_array) -> bytes:
    stream = io.BytesIO()
    matrix = kind(np.arange(5 * 51).reshape(5, 51) % 7 * (np.arange(51) % 10 == 0))
    sparse.save_npz(stream, matrix, compressed=False)
    return stream.getvalue()


# ---------------------------------------------------------------------------------------------------------- mutations

Mutation = Callable[[bytes, random.Random], bytes]


def flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def overwrite(data: bytes, rng: random.Random) -> bytes:
    at, length = rng.randrange(len(data)), rng.choice((1, 2, 4, 16))
    return data[:at] + rng.randbytes(length) + data[at + length :]


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def behead(data: bytes, rng: random.Random) -> bytes:
    return data[rng.randrange(len(data)) :]


def insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(ODD) + data[at:]


def delete(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice((1, 1, 3, 20)) :]


def repeat(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    piece = data[at : at + rng.choice((1, 5, 40))]
    return data[:at] + piece * rng.choice((2, 3, 500)) + data[at:]


def field(data: bytes, rng: random.Random) -> bytes:
    """One field of one line becomes something odd."""
    return _lines(data, rng, lambda fields: [*fields[:-1], rng.choice(ODD)], shuffle=True)


def drop_column(data: bytes, rng: random.Random) -> bytes:
    separator = _separator(data)
    lines = [line.split(separator) for line in data.split(b"\n")]
    at = rng.randrange(max(len(lines[0]), 1))
    return b"\n".join(separator.join(line[:at] + line[at + 1 :]) for line in lines)


def lose_field(data: bytes, rng: random.Random) -> bytes:
    return _lines(data, rng, lambda fields: fields[:-1])


def swap_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def _lines(
    data: bytes, rng: random.Random, change: Callable[[list[bytes]], list[bytes]], *, shuffle: bool = False
) -> bytes:
    separator, lines = _separator(data), data.split(b"\n")
    at = rng.randrange(len(lines))
    fields = lines[at].split(separator)
    if shuffle:
        first = rng.randrange(len(fields))
        fields = fields[first:] + fields[:first]
        fields = change(fields)
        fields = fields[-first:] + fields[:-first] if first else fields
    else:
        fields = change(fields)
    lines[at] = separator.join(fields)
    return b"\n".join(lines)


def _separator(data: bytes) -> bytes:
    return max((b",", b"\t", b" "), key=data.count)


def inside(data: bytes, rng: random.Random) -> bytes:
    """An array of an archive is damaged, and packed again so that the archive's own checks hold."""
    stream = io.BytesIO()
    quiet = warnings.catch_warnings(action="ignore")  # about two entries of one name
    with quiet, zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        names = old.namelist()
        chosen = rng.choice(names)
        for each in names:
            name, content = each, old.read(each)
            if each == chosen:
                how = rng.choice((flip, overwrite, truncate, insert, delete, _header, _header, _body, _body))
                content = how(content, rng)
                name = rng.choice((each, each, each, rng.choice(names), "other.npy", each[:-4]))
            new.writestr(name, content, compress_type=rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return stream.getvalue()


def _header(content: bytes, rng: random.Random) -> bytes:
    """Another type, order or shape, with a header of the same length."""
    end = 10 + int.from_bytes(content[8:10], "little")
    kind = rng.choice(
        ("<f8", "<f4", "<i8", "<u8", "|O", "|b1", "<U3", "|S8", "<f2", "<c16", "<M8[s]", "|V8", ">f8", "x")
    )
    shape = tuple(rng.choice((0, 1, 2, 4, 5, 20, -1, 10**6, 10**12, 2**63, 2**70)) for _ in range(rng.randrange(4)))
    text = repr({"descr": kind, "fortran_order": rng.random() < 0.3, "shape": shape}).encode()
    if rng.random() < 0.2:
        text = rng.choice((b"(" * 90, b"{}", b"{'descr': 1}", b"[1" * 40, b"\xff" * 9, b"1L", b"__import__('os')"))
    return content[:10] + text[: end - 11].ljust(end - 11) + b"\n" + content[end:]


def _body(content: bytes, rng: random.Random) -> bytes:
    """Another value of eight bytes."""
    end = 10 + int.from_bytes(content[8:10], "little")
    value = rng.choice((np.nan, np.inf, -np.inf, 1e308, -0.0, 0.0, 1.0, 1e300))
    number = rng.choice((0, 1, -1, 7, 255, 2**31, 2**40, 2**63 - 1, -(2**63)))
    piece = np.float64(value).tobytes() if rng.random() < 0.5 else number.to_bytes(8, "little", signed=True)
    places = max((len(content) - end) // 8, 1)
    at = end + 8 * rng.randrange(places)
    return content[:at] + piece + content[at + 8 :]


TEXT: tuple[Mutation, ...] = (
    flip, overwrite, truncate, behead, insert, insert, delete, repeat, field, field, drop_column, lose_field,
    swap_lines,
)  # fmt: skip
BINARY: tuple[Mutation, ...] = (flip, overwrite, truncate, behead, insert, delete, repeat, *(inside,) * 10)


PLAIN: tuple[Mutation, ...] = (flip, overwrite, truncate, behead, insert, delete, repeat)


def packed(data: bytes, rng: random.Random) -> bytes:
    """The text within is damaged, and packed again so that its check sum holds."""
    return gzip.compress(rng.choice(TEXT)(gzip.decompress(data), rng), mtime=0)


PACKED: tuple[Mutation, ...] = (*PLAIN, *(packed,) * 4)


def damaged(valid: bytes, mutations: tuple[Mutation, ...], *, kind: str, number: int) -> bytes:
    """Input `number` of a kind: one to three mutations of a valid file."""
    rng = random.Random(f"{kind}/{number}")
    data = valid
    for _ in range(rng.choice((1, 1, 2, 3))):
        try:
            data = rng.choice(mutations)(data, rng) if data else rng.choice(ODD)
        except (
            zipfile.BadZipFile,
            KeyError,
            ValueError,
            NotImplementedError,
            EOFError,
            OSError,
            IndexError,
            RuntimeError,
            zlib.error,
        ):
            break  # damaged too much to be unpacked again
    return data
