"""Archives that promise more than they hold are refused before anything is allocated."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import truerank as tr
from truerank.core.errors import InputError


def header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def refused(path: Path) -> str:
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            tr.read_scores(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    return str(caught.value)


@pytest.mark.parametrize("shape", [(10**6, 10**6), (2**40,), (2**62, 8), (10**30,), (0, 2**62), (5, 5)])
@pytest.mark.parametrize("pack", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_size_that_is_not_there(tmp_path: Path, shape: tuple[int, ...], pack: int) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w", pack) as archive:
        archive.writestr("scores.npy", header(shape) + bytes(8 * 3))
    assert "bytes" in refused(tmp_path / "x.npz")


def test_an_archive_that_lies_about_its_sizes(tmp_path: Path) -> None:
    """The directory says 4 GB where a few bytes are packed: more than any packing can give."""
    data = header((2**29,)) + bytes(8)
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("scores.npy", data)
    packed = bytearray((tmp_path / "x.npz").read_bytes())
    size = len(data).to_bytes(4, "little")
    lie = (len(header((2**29,))) + 2**32 - 2**20).to_bytes(4, "little")
    for start in (packed.index(b"PK\x03\x04") + 22, packed.index(b"PK\x01\x02") + 24):
        assert packed[start : start + 4] == size
        packed[start : start + 4] = lie
    (tmp_path / "x.npz").write_bytes(packed)
    assert "declares" in refused(tmp_path / "x.npz")


def test_arrays_that_nobody_asked_for_are_not_read(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.ones((2, 2)))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("scores.npy", stream.getvalue())
        archive.writestr("notes.npy", header((10**6, 10**6)))
        archive.writestr("notes.txt", "written by hand")
    assert len(tr.read_scores(tmp_path / "x.npz").users) == 2
