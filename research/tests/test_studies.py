"""Every study runs in its quick size on simulated data, and every committed verdict follows from its numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from truerank_research.pages import PAPERS, Paper
from truerank_research.results import Result, read_results
from truerank_research.runner import RESULTS, Run, judged, run_study, studies

RUNNABLE = [name for name, study in studies().items() if study.measure]


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_quick_size_runs(name: str, tmp_path: Path) -> None:
    study = studies()[name]
    result = run_study(study, Run(folder=tmp_path))
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
