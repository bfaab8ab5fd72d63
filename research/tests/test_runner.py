"""The runner: pieces are stored and resumed, a folder belongs to one run, results are read back as written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import polars as pl
import pytest
from refusals import refused

from truerank_research.claims import Cell, Claim, cell_rows, share
from truerank_research.results import Measured, read_results
from truerank_research.runner import Run, Study, run_study, verdicts


def square(folder: Path, number: int) -> pl.DataFrame:
    """A piece that counts its calls in a file."""
    with (folder / "calls").open("a") as calls:
        calls.write(f"{number}\n")
    return pl.DataFrame({"square": [number**2]})


def study(folder: Path) -> Study:
    def measure(run: Run) -> Measured:
        tables = run.pieces(square, [(folder, number) for number in (2, 3)])
        cells = [Cell("squares", f"{at}", "value", table["square"][0]) for at, table in enumerate(tables)]
        return Measured({"cells": cell_rows(cells)}, {"n": 2})

    rule = Claim(
        "four",
        "Two squared is four.",
        "page 1",
        "Equal.",
        lambda cells: share([cells.value("squares", "0", "value") == 4], "4"),
    )
    return Study("squares", "What is a square?", measure, claims=(rule,))


def test_a_stopped_run_continues_and_gives_the_same_bytes(tmp_path: Path) -> None:
    run = Run(folder=tmp_path / "out")
    first = run_study(study(tmp_path), run)
    next((tmp_path / "out" / "pieces").glob("*")).unlink()
    again = run_study(study(tmp_path), run)
    assert again.encode() == first.encode()
    assert len((tmp_path / "calls").read_text().split()) == 3


def test_a_folder_belongs_to_one_run(tmp_path: Path) -> None:
    run_study(study(tmp_path), Run(folder=tmp_path / "out"))
    with refused("another run"):
        run_study(study(tmp_path), Run(folder=tmp_path / "out", seed=1))


def test_pieces_in_processes_equal_pieces_here(tmp_path: Path) -> None:
    here, apart = (run_study(study(tmp_path), Run(processes=n)) for n in (1, 2))
    assert here == apart


def test_a_result_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    result = run_study(study(tmp_path), Run())
    (tmp_path / result.file_name).write_bytes(result.encode())
    assert msgspec.to_builtins(read_results(tmp_path)[0]) == msgspec.to_builtins(result)
    (tmp_path / result.file_name).rename(tmp_path / "other.json")
    with refused("Rename"):
        read_results(tmp_path)


def test_real_data_decide_where_they_can(tmp_path: Path) -> None:
    real = run_study(study(tmp_path), Run())
    simulated = replace(real, synthetic=True)
    assert [str(verdict) for _, verdict, _ in verdicts(study(tmp_path), [simulated, real])] == ["replicates"]
    assert [str(verdict) for _, verdict, _ in verdicts(study(tmp_path), [])] == ["cannot be tested here"]


def test_two_numbers_in_one_place_are_an_error() -> None:
    with pytest.raises(ValueError, match="same table"):
        cell_rows([Cell("t", "a", "x", 1.0)] * 2)
