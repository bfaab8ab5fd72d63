"""Every study runs in its quick size on simulated data, and every committed verdict follows from its numbers."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from truerank_research.__main__ import main
from truerank_research.pages import PAPERS, Paper
from truerank_research.results import Result, read_results
from truerank_research.runner import RESULTS, SYNTHETIC, judged, studies

RUNNABLE = [name for name, study in studies().items() if study.measure]


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_quick_size_runs_from_the_command_line(name: str, tmp_path: Path) -> None:
    study = studies()[name]
    data = ["--data", SYNTHETIC] if study.data else []
    command = ["run", name, *data, "--quick", "--out", str(tmp_path), "--processes", "1"]
    CliRunner().invoke(main, command, catch_exceptions=False)
    (path,) = (path for path in tmp_path.glob("*.json") if path.name != "run.json")
    result = msgspec.json.decode(path.read_bytes(), type=Result)
    assert result.size == "quick"
    assert any(table.values for table in result.tables.values())
    assert [row["claim"] for row in result.rows("claims")] == [claim.key for claim in study.claims]


@pytest.mark.parametrize("result", read_results(RESULTS), ids=lambda result: result.file_name)
def test_committed_verdicts_follow_from_the_numbers(result: Result) -> None:
    assert result.size == "full"
    assert judged(studies()[result.study], result).encode() == result.encode()


def test_every_study_has_a_committed_result() -> None:
    assert {result.study for result in read_results(RESULTS)} == set(RUNNABLE)


def test_keys_of_claims_are_unique_within_a_study() -> None:
    for study in studies().values():
        assert len({claim.key for claim in study.claims}) == len(study.claims), study.name


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.key)
def test_every_table_and_figure_of_a_paper_has_a_study(paper: Paper) -> None:
    parts = {part for study in studies().values() for part in (study.shows or {}).get(paper.key, ())}
    assert parts == set(paper.parts)
