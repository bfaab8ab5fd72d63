"""Rows of one key are in one chunk, each row once, whatever the order, the file and the number of chunks."""

from __future__ import annotations

import errno
import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

from truerank.core.ids import as_ids
from truerank.io import partition
from truerank.io.batches import LazyTable
from truerank.io.partition import ChunkRule, Chunks, Keyed, SessionRule, hashed, together
from truerank.io.spill import Scratch, scratch

N = 3000
RNG = np.random.default_rng(5)
SESSION = RNG.integers(0, 700, N)
LOG = pl.DataFrame(
    {"session": SESSION, "user": SESSION % 150, "item": np.arange(N), "name": [f"n{i}" for i in SESSION]}
)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Scratch]:
    (tmp_path / "scratch").mkdir()
    with scratch(tmp_path / "scratch") as made:
        yield made
    assert not list((tmp_path / "scratch").iterdir())


@pytest.fixture
def nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so small that everything is large."""
    for name in ("MEMORY_ROWS", "CHUNK_ROWS"):
        monkeypatch.setattr(partition, name, 100)


def rows_of(chunks: Chunks, name: str) -> list[tuple[Any, ...]]:
    return sorted(row for at in range(chunks.n_chunks) for row in chunks.chunk(at)[name].rows())


def check_whole(chunks: Chunks, name: str, key: str, rows: pl.DataFrame) -> None:
    """All rows, once, those of a key in one chunk, as counted, and the same when read again."""
    parts = [chunks.chunk(at)[name] for at in range(chunks.n_chunks)]
    assert rows_of(chunks, name) == sorted(rows.rows())
    assert sum(part[key].n_unique() for part in parts) == rows[key].n_unique()
    assert [len(part) for part in parts] == chunks.tables[name].n_rows.tolist()
    assert all(part.schema == rows.schema for part in parts)
    assert all(chunks.chunk(at)[name].equals(part) for at, part in enumerate(parts))


Write = Callable[[pl.DataFrame, Path], object]
WRITERS: dict[str, Write] = {
    "x.parquet": lambda rows, path: rows.write_parquet(path, row_group_size=700),
    "x.csv": lambda rows, path: rows.write_csv(path),
    "x.csv.gz": lambda rows, path: path.write_bytes(gzip.compress(rows.write_csv().encode())),
}


@pytest.mark.parametrize("ending", list(WRITERS))
@pytest.mark.parametrize("n_chunks", [1, 7, 200])
@pytest.mark.usefixtures("nothing_fits")
def test_the_same_rows_in_any_number_of_chunks(place: Scratch, tmp_path: Path, ending: str, n_chunks: int) -> None:
    WRITERS[ending](LOG, tmp_path / ending)
    chunks = together({"log": Keyed(LazyTable.of(tmp_path / ending), "user")}, scratch=place, n_chunks=n_chunks)
    assert chunks.n_chunks == n_chunks
    check_whole(chunks, "log", "user", LOG)
    assert len(chunks.notes) == (n_chunks > 1)


def test_equal_integers_have_equal_hashes_whatever_their_width() -> None:
    numbers = [0, 1, -5, 2**40, -(2**63)]
    plain = hashed(as_ids(pl.Series(numbers), where=""))
    assert hashed(pl.Series(numbers, dtype=pl.Int128)).tolist() == plain.tolist()
    assert len(set(plain.tolist())) == 5
    spread = np.bincount(ChunkRule(10).of_ids(pl.Series(np.arange(100_000))), minlength=10)
    assert np.abs(spread - 10_000).max() < 500


@pytest.mark.usefixtures("nothing_fits")
def test_sorted_tables_are_cut_without_a_copy(place: Scratch, tmp_path: Path) -> None:
    """Two sorted tables and an unsorted one: the borders of the largest serve all."""
    log, some = LOG.sort("user"), LOG.filter(pl.col("item") % 3 == 0).sort("user")
    log.write_parquet(tmp_path / "log.parquet")
    some.write_parquet(tmp_path / "some.parquet")
    LOG.write_csv(tmp_path / "mixed.csv")
    names = {"log": "log.parquet", "some": "some.parquet"}
    chunks = together({k: Keyed(LazyTable.of(tmp_path / v), "user") for k, v in names.items()}, scratch=place)
    assert place.folder is None
    assert "sorted by user, read in" in chunks.notes[0]
    assert chunks.n_chunks > 10
    check_whole(chunks, "log", "user", log)
    check_whole(chunks, "some", "user", some)
    names["mixed"] = "mixed.csv"
    chunks = together({k: Keyed(LazyTable.of(tmp_path / v), "user") for k, v in names.items()}, scratch=place)
    check_whole(chunks, "mixed", "user", LOG)
    for at in range(chunks.n_chunks):
        chunk = chunks.chunk(at)
        assert set(chunk["some"]["user"]) <= set(chunk["log"]["user"]) == set(chunk["mixed"]["user"])


# ------------------------------------------------------------------------------------------ tables that follow sessions


@pytest.mark.parametrize("n_chunks", [1, 7, 200])
@pytest.mark.parametrize("kind", ["Int32", "String", "UInt64"])
@pytest.mark.usefixtures("nothing_fits")
def test_a_target_follows_the_sessions_of_the_log(place: Scratch, tmp_path: Path, n_chunks: int, kind: str) -> None:
    wanted = getattr(pl, kind)
    log = LOG.with_columns(pl.col("session").cast(wanted))
    target = pl.DataFrame({"session": np.concatenate([SESSION[::-1], [9999, 9999, 12345]]), "rank": np.arange(N + 3)})
    target = target.with_columns(pl.col("session").cast(pl.String if kind == "String" else pl.Int64))
    chunks = together({"log": Keyed(LazyTable.of(log), "user")}, scratch=place, n_chunks=n_chunks)
    sessions = SessionRule.of(chunks, "log", Keyed(LazyTable.of(log), "session"))
    assert len(sessions.sessions) == log["session"].n_unique()
    both = sessions.follow(chunks, "new", Keyed(LazyTable.of(target), "session"), scratch=place)
    assert rows_of(both, "new") == sorted(target[:N].rows())
    assert both.absent["new"] == 2
    for at in range(n_chunks):
        chunk = both.chunk(at)
        assert set(chunk["new"]["session"].cast(pl.String)) == set(chunk["log"]["session"].cast(pl.String))
    kept = sessions.follow(chunks, "new", Keyed(LazyTable.of(target), "session"), scratch=place, kept=True)
    check_whole(kept, "new", "session", target)
    target.write_csv(tmp_path / "target.csv")
    large = Keyed(LazyTable.of(tmp_path / "target.csv"), "session")
    if kind != "String":
        spilled = sessions.follow(chunks, "new", large, scratch=place)
        assert rows_of(spilled, "new") == rows_of(both, "new")
        assert "partitioned once on disk" in spilled.notes[-1]


def test_a_session_of_two_users_is_refused(place: Scratch) -> None:
    log = pl.DataFrame({"session": [*range(50), 17], "user": [*range(50), 3]})
    chunks = together({"log": Keyed(LazyTable.of(log), "user")}, scratch=place, n_chunks=20)
    with refused("session 17 belongs to two users"):
        SessionRule.of(chunks, "log", Keyed(LazyTable.of(log), "session"))


# ------------------------------------------------------------------------------------------------- nothing stays behind


@pytest.mark.usefixtures("nothing_fits")
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_folder_vanishes_after_errors(tmp_path: Path, error: type[BaseException]) -> None:
    LOG.write_csv(tmp_path / "x.csv")
    (tmp_path / "within").mkdir()

    def stop(what: str, done: int, total: int) -> None:
        assert list((tmp_path / "within").iterdir())
        raise error

    with pytest.raises(error), scratch(tmp_path / "within") as place:
        together({"x": Keyed(LazyTable.of(tmp_path / "x.csv"), "user")}, scratch=place, progress=stop)
    assert not list((tmp_path / "within").iterdir())


@pytest.mark.usefixtures("nothing_fits")
def test_a_full_disk_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LOG.write_csv(tmp_path / "x.csv")
    (tmp_path / "within").mkdir()
    opened = Path.open

    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(self: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        return Full() if mode == "ab" else opened(self, mode, *rest, **options)

    monkeypatch.setattr(Path, "open", full)
    with refused(r"No space left.*TMPDIR") as caught, scratch(tmp_path / "within") as place:
        together({"x": Keyed(LazyTable.of(tmp_path / "x.csv"), "user")}, scratch=place)
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "within").iterdir())
    missing = tmp_path / "not-there"
    with refused("not-there: cannot be written"), scratch(missing) as place:
        together({"x": Keyed(LazyTable.of(tmp_path / "x.csv"), "user")}, scratch=place)
