"""The figures of a reliability study show every value of its results."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from reported import SIZED, SIZELESS, studied

from truerank.reliability.studied import FinishedStudy
from truerank.report.charts import COLOURS
from truerank.report.study import COLUMNS, LEFT_OUT, RESOLUTION, figures, part_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return studied(tmp_path_factory.mktemp("figures"))


@pytest.fixture(scope="module")
def study(folder: Path) -> FinishedStudy:
    return FinishedStudy.read(folder)


@pytest.mark.parametrize("tau", list(COLUMNS))
def test_every_value_of_the_results_is_drawn(study: FinishedStudy, tau: str) -> None:
    for question, panel in figures(study, metric="Recall@3", tau=tau).items():
        rows = study.results.filter(question=question, metric="Recall@3")
        drawn = pl.DataFrame(panel.chart.to_dict()["data"]["values"], infer_schema_length=None)
        columns = COLUMNS[LEFT_OUT if question == RESOLUTION else tau]
        assert len(drawn) == len(rows) == 3 * 3 * (3 + 6 * 3)
        assert drawn["sampler"].to_list() == rows["sampler"].to_list()
        for name, column in zip(("value", "low", "high"), columns, strict=True):
            if column in rows.columns:
                assert drawn[name].to_list() == rows[column].fill_nan(None).to_list()


def test_a_sampler_looks_the_same_in_every_part(study: FinishedStudy) -> None:
    def colours(part: FinishedStudy) -> dict[str, str]:
        chart = figures(part, metric="nDCG@100", every=study)["fidelity"].chart.to_dict()
        scale = chart["spec"]["layer"][-1]["encoding"]["color"]["scale"]
        return dict(zip(scale["domain"], scale["range"], strict=True))

    whole = colours(study)
    assert {whole[name] for name in SIZED} == set(COLOURS)
    assert not {whole[name] for name in SIZELESS} & set(COLOURS)
    assert colours(part_of(study, sampler=["Full", "Skew"])) == {name: whole[name] for name in ("Full", "Skew")}
