"""truerank study figures, called as a user calls it."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from calling import Run
from small_study import small_grid, small_scores, small_train, small_world

from truerank.metrics.additive import Recall
from truerank.metrics.listwise import NDCG
from truerank.reliability import study as reliability


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


def test_refusals_are_one_sentence(run: Run, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        (("nothing",), "nothing: is not complete"),
        (("study", "--metric", "AUC"), "'AUC' is not in study; expected one of nDCG@3, Recall@2."),
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
    assert "study/results.parquet: is missing" in run("study figures study").message
    (study / "truerank.json").unlink()
    assert "the command that began it goes on with it" in run("study figures study").message
    monkeypatch.setitem(sys.modules, "altair", None)
    assert "pip install '.[report]'" in run("study figures study").message
    assert not (study / "figures").exists()
