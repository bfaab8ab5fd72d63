"""truerank study figures, called as a user calls it."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from small_study import small_grid, small_scores, small_train, small_world

from truerank.metrics.ndcg import NDCG
from truerank.metrics.recall import Recall
from truerank.reliability import study as reliability

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "study"
    world = small_world()
    grid = replace(small_grid(repetitions=1), metrics=(NDCG(3), Recall(2)))
    reliability(small_scores(world), world, out, grid=grid, train=small_train(), resamples=20)
    return out


@pytest.fixture
def study(finished: Path, folder: Path) -> Path:
    """A finished study in the current folder."""
    shutil.copytree(finished, folder / "study")
    return folder / "study"


def test_four_pictures_are_written_and_named(run: Run, study: Path) -> None:
    found = run("study", "figures", "study", "--loggers", "uniform", "--sparsities", "0.5", "--undefined", "zero")
    assert (found.code, found.err) == (0, "")
    names = ("resolution", "fidelity", "robustness", "predictive_power")
    assert found.out == "".join(f"{name:16} study/figures/{name}.svg\n" for name in names)
    for name in names:
        text = (study / "figures" / f"{name}.svg").read_text()
        assert "Recall@2" in text
        assert "uniform, 50 % hidden" in text
    found = run("study", "figures", "study", "--format", "png", "--out", "here", "--samplers", "Full", "--loggers",
                "uniform", "--of-means")  # fmt: skip
    assert found.code == 0
    assert {each.name for each in Path("here").iterdir()} == {"truerank.json", *(f"{name}.png" for name in names)}


def test_refusals_are_one_sentence(run: Run, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        (("nothing",), "nothing: is no folder of a study"),
        (("study", "--metric", "AUC"), "'AUC' is not in the study; it has nDCG@3, Recall@2."),
        (("study", "--loggers", "duration"), "it has uniform, popularity, positivity."),
        (("study", "--sparsities", "much"), "expected numbers"),
        (("study", "--of-means", "--undefined", "zero"), "choose one"),
        (("study", "--out", "labels.csv"), "labels.csv: is a file"),
    ]
    for arguments, message in cases:
        found = run("study", "figures", *arguments)
        assert found.code == 2
        assert found.out == ""
        assert message in found.message
    (study / "results.parquet").unlink()
    assert "study/results.parquet: is missing" in run("study", "figures", "study").message
    (study / "truerank.json").unlink()
    assert "the command that began it goes on with it" in run("study", "figures", "study").message
    monkeypatch.setitem(sys.modules, "altair", None)
    assert "pip install '.[report]'" in run("study", "figures", "study").message
    assert not (study / "figures").exists()
