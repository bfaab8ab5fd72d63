"""Other packages add metrics, estimators, models, datasets and readers by entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import refused

import truerank as tr
from truerank.core import language

ENTRY_POINTS = """
[truerank.metrics]
Half = plugin:HalfPrecision
[truerank.estimators]
twice = plugin:Twice
[truerank.models]
backwards = plugin:Backwards
[truerank.datasets]
tiny = plugin:Tiny
[truerank.readers]
pairs = plugin:read_pairs
"""
PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
import polars as pl
import truerank as tr
from truerank.estimators.weighted import Hajek
from truerank.metrics.additive import Precision
from truerank.models import NOTHING_BESIDE, Labels
from truerank.datasets.ratings import Coat
import dataclasses


@dataclass(frozen=True)
class HalfPrecision(Precision):
    name: ClassVar[str] = "Half"

    def rank_discount(self, rank):
        return (rank <= self.k) / 2


@dataclass(frozen=True)
class Twice(Hajek):
    info = dataclasses.replace(Hajek.info, name="twice")


@dataclass(frozen=True)
class Backwards:
    name: ClassVar[str] = "backwards"
    summary: ClassVar[str] = "Later items first."
    needs: ClassVar[None] = None
    labels: ClassVar[Labels] = Labels.NOTHING

    def fit(self, log, *, seed, side=NOTHING_BESIDE, progress=None):
        return tr.scores.dense(np.tile(np.arange(len(log.items), dtype=float), (len(log.users), 1)),
                               users=log.users, items=log.items)


@dataclass(frozen=True)
class Tiny(Coat):
    name: ClassVar[str] = "tiny"


def read_pairs(path):
    rows = [line.split("|") for line in path.read_text().splitlines()]
    return pl.DataFrame({"user": [int(row[0]) for row in rows], "item": [int(row[1]) for row in rows],
                         "label": [int(row[2]) for row in rows]})
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder on the path with an installed package that offers one of each kind."""
    information = tmp_path / "plugin-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "plugin.py").write_text(PLUGIN)
    (tmp_path / "log.pairs").write_text("1|1|1\n1|2|0\n2|1|1\n2|3|1\n3|2|0\n3|3|1\n")
    return tmp_path


def run_python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_every_kind_is_found_by_its_entry_point(package: Path) -> None:
    code = """
import truerank as tr
from truerank import datasets

log = tr.read("log.pairs")
scores = tr.models.parse("backwards").fit(log, seed=0)
results = tr.evaluate({"backwards": scores}, log, exposure="holdout", metrics=["Half@2", "Precision@2"])
half, whole = (estimate.value for estimate in results.estimates)
assert 2 * half == whole > 0
assert tr.estimators.named("twice").info.name == "twice" and "twice" in tr.estimators.catalogue()
assert datasets.named("tiny").name == "tiny"
print("found")
"""
    done = run_python(package, "-c", code)
    assert done.stdout == "found\n", done.stderr


def test_a_package_that_cannot_be_loaded_is_named(package: Path) -> None:
    (package / "plugin.py").write_text("import nothing_of_this_name\n")
    done = run_python(package, "-c", "import truerank as tr; tr.metrics.parse('Recall@5')")
    assert "the package plugin offers Half" in done.stderr


@pytest.mark.parametrize("name", ["corrected", "weighted"])
def test_experimental_estimators_say_how_to_get_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where truerank-research is not installed."""
    monkeypatch.setattr(language, "_names", lambda kind: {})
    with refused("truerank-research"):
        tr.estimators.parse(name)
