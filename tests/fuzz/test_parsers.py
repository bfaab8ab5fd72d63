"""Whatever a file holds, reading it gives a result or one message: exit code 0 or 2, and never a hang."""

from __future__ import annotations

import gzip
import signal
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from mutate import BINARY, PLAIN, TEXT, Mutation, csv, damaged, dense, factors, parquet, qrels, run, stored
from scipy import sparse

import truerank.cli

QUICK, FULL = 300, 20_000
SECONDS = 20
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


@dataclass(frozen=True, slots=True)
class Kind:
    """A format: the name of its file, a valid one, how to damage it, and the commands that read it in turn."""

    name: str
    file: str
    valid: bytes
    mutations: tuple[Mutation, ...]
    calls: tuple[str, ...]


LABELS = ("data describe {}", "evaluate {} --scores m=good.npz --metric Recall@2 --threads 1 --quiet")
SCORES = ("data describe {} --quiet", "evaluate good.csv --scores m={} --metric AP@2 --threads 1 --quiet")
TOP = "evaluate good.csv --scores m={} --n-items 60 --metric Recall@2 --threads 1 --quiet"
LISTS = (f"{TOP} --unlisted negative", f"{TOP} --exposure random")
KINDS = [
    Kind("csv", "x.csv", csv(), TEXT, LABELS),
    Kind("tsv", "x.tsv", csv("\t"), TEXT, LABELS),
    Kind("qrels", "x.qrels", qrels(), TEXT, LABELS),
    Kind("run", "x.run", run(), TEXT, LISTS),
    Kind("gzip", "x.csv.gz", gzip.compress(csv(), mtime=0), PLAIN, LABELS),
    Kind("parquet", "x.parquet", parquet(), PLAIN, LABELS),
    Kind("dense", "x.npz", dense(), BINARY, SCORES),
    Kind("factors", "x.npz", factors(), BINARY, SCORES),
    Kind("sparse csr", "x.npz", stored(), BINARY, (*LISTS, SCORES[0])),
    Kind("sparse coo", "x.npz", stored(sparse.coo_array), BINARY, (*LISTS, SCORES[0])),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "good.csv").write_bytes(csv())
    (tmp_path / "good.npz").write_bytes(dense())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUERANK_DEBUG", raising=False)
    handlers = {number: signal.getsignal(number) for number in HANDLED}
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    signal.signal(signal.SIGALRM, too_long)
    yield tmp_path
    signal.alarm(0)
    for number, handler in handlers.items():
        signal.signal(number, handler)


class TooLongError(BaseException):
    """No handler of the code under test may catch it."""


def too_long(signum: int, frame: FrameType | None) -> Any:
    raise TooLongError


def outcome(call: str, monkeypatch: pytest.MonkeyPatch) -> int | str:
    """The exit code, or what else happened."""
    monkeypatch.setattr(sys, "argv", ["truerank", *call.split()])
    signal.alarm(SECONDS)
    try:
        truerank.cli.main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else str(stop.code)
    except TooLongError:
        return f"longer than {SECONDS} seconds"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return 0


def fuzz(kind: Kind, count: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> dict[Any, int]:
    """Every input of a kind through the command line; how often each exit code came."""
    codes: dict[Any, int] = {}
    for number in range(count):
        Path(kind.file).write_bytes(damaged(kind.valid, kind.mutations, kind=kind.name, number=number))
        call = kind.calls[number % len(kind.calls)].format(kind.file)
        code = outcome(call, monkeypatch)
        said = capfd.readouterr()
        assert code in (0, 2), f"{kind.name} {number}: {call} gave {code}. {said.err[-2000:]}"
        assert code == 0 or said.err.strip(), f"{kind.name} {number}: refused without a word"
        codes[code] = codes.get(code, 0) + 1
    return codes


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_valid_files_are_read(
    kind: Kind, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / kind.file).write_bytes(kind.valid)
    for call in kind.calls:
        assert outcome(call.format(kind.file), monkeypatch) == 0, capfd.readouterr().err


# polars ends the whole process on about one damaged Parquet file in thousands, where a declared length asks for more
# memory than there is: no code of ours can catch that, so only the quick inputs, which are always the same, are tried
TIERS = [
    *(pytest.param(kind, QUICK, id=f"quick-{kind.name}") for kind in KINDS),
    *(pytest.param(k, FULL, id=f"full-{k.name}", marks=pytest.mark.slow) for k in KINDS if k.name != "parquet"),
]


@pytest.mark.parametrize(("kind", "count"), TIERS)
def test_damaged_files_are_read_or_refused(
    kind: Kind, count: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    codes = fuzz(kind, count, monkeypatch, capfd)
    assert sum(codes.values()) == count
    # both happen: the inputs are neither all nonsense nor all valid
    assert min(codes.get(0, 0), codes.get(2, 0)) > count / 200, codes


def test_gzip_is_read_exactly_where_all_of_it_can_be_unpacked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file that was cut off is refused, not read as far as it goes: Python's own gzip says which those are."""
    kind = next(each for each in KINDS if each.name == "gzip")
    whole = 0
    for number in range(QUICK):
        data = damaged(kind.valid, kind.mutations, kind=kind.name, number=number)
        Path(kind.file).write_bytes(data)
        code = outcome(kind.calls[0].format(kind.file), monkeypatch)
        capfd.readouterr()
        try:
            text = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            assert code == 2, number
        else:
            whole += 1
            assert code == 0 or text != csv(), number
    assert 0 < whole < QUICK
