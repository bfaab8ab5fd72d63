"""A new metric, estimator, logger, sampler, position or propensity model, dataset, recommender is one new file.

Each toy is written into a copy of the package; nothing else is edited. The command line, Python, the page of names and
the law tests find it by themselves.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank
from docs.making import catalogue
from docs.making.outputs import with_outputs
from docs.making.steps import steps

ROOT = Path(__file__).parents[1]
HEAD = """
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from truerank.core.values import Count, Probability, check, text_of
"""
TOYS = {
    "metrics/toy.py": '''
from truerank.core.metric import BaseMetric
from truerank.core.options import Denominator


@dataclass(frozen=True, slots=True)
class Toy(BaseMetric):
    """Half of what precision says."""

    k: Count
    name: ClassVar[str] = "Toy"
    denominator: ClassVar[Denominator] = Denominator.CUTOFF
    on_full_labels: ClassVar[str] = "users"

    def rank_discount(self, rank):
        return (rank <= self.k) / 2
''',
    "estimators/toy.py": '''
from truerank.core.estimator import EstimatorInfo, Exposed
from truerank.core.forms import Ratio
from truerank.estimators.refusals import LABEL_FREE, only_recall
from truerank.core.rows import Column
from truerank.estimators.rows import WeightedRows


@dataclass(frozen=True, slots=True)
class ToyEstimator(WeightedRows):
    """Relevant items found / relevant items, among the judged."""

    info: ClassVar[EstimatorInfo] = EstimatorInfo(
        name="toy", exposures=frozenset({Exposed.FULL, Exposed.RANDOM}), assumptions=("toys tell the truth",),
        ties=LABEL_FREE, needs_size=True, left_out="have no judged item",
    )

    def refusal(self, context):
        return only_recall(context, "the toy counts relevant items")

    def form(self, metric):
        return Ratio(), (Column.GAIN, Column.RELEVANT)
''',
    "exposure/interventions.py": '''

@record
class ToyStrategy(Strategy):
    """Rows of every second item are drawn twice as often."""

    name: ClassVar[str] = "toy"

    def rule(self, counts):
        return DrawingRule(counts.n, of_item=1.0 + np.arange(len(counts.log.items)) % 2)
''',
    "exposure/logging_policies.py": '''

@record
class ToyLogger(LoggingPolicy):
    """q_i = 1, then 2, then 1 again."""

    name: ClassVar[str] = "toy"

    def weights(self, dataset, *, train=None):
        return 1.0 + np.arange(len(dataset.items)) % 2
''',
    "ranking/samplers/toy.py": '''
from truerank.ranking.samplers.draw import Sampler


@dataclass(frozen=True, slots=True)
class ToySampler(Sampler):
    """v_i = 1, then 2, then 1 again."""

    n: Count
    name: ClassVar[str] = "Toy"

    def weights(self, counts):
        return 1.0 + np.arange(len(counts.rows)) % 2
''',
    "exposure/positions/toy.py": '''
from truerank.exposure.positions.position_models import PositionModel


@dataclass(frozen=True, slots=True)
class ToyPosition(PositionModel):
    """1 at rank 1, and the same at all others."""

    rest: Probability
    cutoff: Count | None = None
    name: ClassVar[str] = "toy"
    positional: ClassVar[tuple[str, ...]] = ("rest",)

    def formula(self, position):
        return np.where(position <= 1, 1.0, self.rest)
''',
    "exposure/propensities/toy.py": '''
from truerank.core.estimator import Counts
from truerank.core.ranking import Pool
from truerank.exposure.propensities import PropensityModel


@dataclass(frozen=True, slots=True)
class ToyPropensity(PropensityModel):
    """The same probability for every pair: the share of all that the log has."""

    name: ClassVar[str] = "toy"

    def tally(self, chunk, *, learner, groups, learned):
        group = groups.at(chunk.labels.users.keys())
        rows = np.bincount(group[chunk.labels.user], minlength=len(groups)).astype(float)
        return Counts({"rows": rows, "cells": np.bincount(group, chunk.pools[Pool.CATALOGUE].count, len(groups))})

    def fit(self, tally, *, learner):
        return ToyFit(float(tally.arrays["rows"].sum() / tally.arrays["cells"].sum()))


@dataclass(frozen=True, slots=True)
class ToyFit:
    share: float
    description: ClassVar[str] = "propensities are all the same"

    def at(self, cells):
        return np.full(len(cells.user), min(self.share, 1.0))
''',
    "datasets/toy.py": '''
from truerank.datasets.dataset import Dataset, PublishedSize


@dataclass(frozen=True, slots=True)
class ToyDataset(Dataset):
    """Nobody knows it."""

    name = "toy"
    summary = "a toy"
    home = "https://example.org"
    terms = "none"
    files = ("toy.csv",)
    published: ClassVar = {"train": PublishedSize(1, 1, 1)}

    def parts(self, folder):
        return {}
''',
    "models/toy.py": '''
from truerank.models import NOTHING_BESIDE, Labels
from truerank.ranking.scores.scores import factors


@dataclass(frozen=True, slots=True)
class ToyModel:
    """Later items score higher."""

    name: ClassVar[str] = "toy"
    summary: ClassVar[str] = "The number of the item."
    needs: ClassVar[str | None] = None
    labels: ClassVar[Labels] = Labels.NOTHING

    __str__ = text_of

    def fit(self, log, *, seed, side=NOTHING_BESIDE, progress=None):
        number = np.arange(len(log.items), dtype=float)[:, None]
        return factors(np.ones((len(log.users), 1)), number, users=log.users, items=log.items)
''',
}


@dataclass(frozen=True)
class Copy:
    """A copy of the package with the toys, and some data beside it."""

    place: Path

    def run(self, *words: str, folder: Path | None = None) -> str:
        """Standard output of Python with the copy in the place of the package."""
        path = [self.place / "src", ROOT, ROOT / "tests" / "support"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
        command = [sys.executable, *words]
        done = subprocess.run(
            command, cwd=folder or self.place, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def command(self, *words: str) -> str:
        return self.run("-m", "truerank", *words)

    def collected(self, file: str, names: str) -> list[str]:
        """The tests of a file that have these names in their ids, run with the copy; they pass."""
        plain = ["-p", "no:cacheprovider", "-n", "0", "-q", "-rA", "-k", names]
        lines = self.run("-m", "pytest", *plain, file, folder=ROOT).splitlines()
        return [line.removeprefix("PASSED ") for line in lines if line.startswith("PASSED ")]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    place = tmp_path_factory.mktemp("extended")
    # with what was compiled, where it was: times of files are kept, so that the compiled code is valid
    shutil.copytree(Path(truerank.__file__).parent, place / "src" / "truerank")
    for name, text in TOYS.items():
        file = place / "src" / "truerank" / name
        there = file.read_text() if file.exists() else HEAD  # a class of its own module, or beside its like
        file.write_text(there + text)
    rng = np.random.default_rng(0)
    user, item = (axis.ravel() for axis in np.indices((12, 8)))
    label = (rng.random(96) < 0.3).astype(int)
    full = pl.DataFrame({"user": user, "item": item, "label": label})
    full.write_csv(place / "full.csv")
    full.filter(pl.Series(rng.random(96) < 0.6)).write_csv(place / "log.csv")
    for name in ("a", "b"):
        full.select("user", "item", score=pl.Series(rng.random(96))).write_csv(place / f"{name}.csv")
    return Copy(place)


SCORES = ("--scores", "a=a.csv", "--scores", "b=b.csv", "--format", "json", "--quiet")


def estimates(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)["estimates"]
    return found


# ---------------------------------------------------------------------------------------------------- the command line


def test_commands_evaluate_with_a_new_metric_and_estimator(copy: Copy) -> None:
    asked = ("--metric", "Toy@3", "--metric", "Precision@3", "--exposure", "full")
    rows = estimates(copy.command("evaluate", "full.csv", *asked, *SCORES))
    value = {(row["model"], row["metric"]): row["value"] for row in rows}
    assert 2 * value["a", "Toy@3"] == pytest.approx(value["a", "Precision@3"])
    sampled = ("--metric", "Recall@3", "--estimator", "toy", "--estimator", "pooled", "--exposure", "random")
    rows = estimates(copy.command("evaluate", "log.csv", *sampled, *SCORES))
    assert {row["estimator"] for row in rows} == {"toy", "pooled"}


def test_commands_study_with_a_new_logger_and_sampler(copy: Copy) -> None:
    grid = ("--loggers", "toy", "--samplers", "Toy,Random", "--sizes", "2,3", "--sparsities", "0.5")
    few = ("--metric", "Toy@3", "--bootstrap", "10", "--out", "study")
    scores = ("--scores", "a=a.csv", "--scores", "b=b.csv", "--quiet")
    copy.command("study", "reliability", "full.csv", *scores, *grid, *few)
    results = pl.read_parquet(copy.place / "study" / "results.parquet")
    assert set(results["logger"]) == {"toy"}
    assert "Toy" in set(results["sampler"])


# --------------------------------------------------------------------------------------------------------------- Python


def test_python_finds_them_by_name_and_in_their_rooms(copy: Copy) -> None:
    code = """
import polars as pl, truerank as tr
from truerank import estimators, exposure, metrics, models
from truerank import datasets
from truerank.exposure import interventions, positions, propensities
from truerank.exposure.logging_policies import LOGGERS
from truerank.ranking import samplers

assert metrics.parse("Toy@3") == metrics.Toy(3)
assert estimators.parse("toy") == estimators.ToyEstimator()
assert LOGGERS.parse("toy") == exposure.ToyLogger()
assert samplers.parse("toy@3") == samplers.ToySampler(3)
assert positions.parse_position("toy:0.5") == positions.ToyPosition(0.5)
assert propensities.parse_propensity("toy") == exposure.ToyPropensity()
assert interventions.STRATEGIES.parse("toy") == exposure.ToyStrategy()
assert datasets.named("toy") is datasets.ToyDataset
assert models.parse("toy") == models.ToyModel()
log = pl.read_csv("full.csv")
results = tr.evaluate({"a": pl.read_csv("a.csv")}, log, metrics=["Toy@3"], exposure="full")
assert str(results.estimates[0].metric) == "Toy@3"
print(tr.expose(tr.read(log), "toy", size=3, seed=1).propensity.max() <= 1)
"""
    assert copy.run("-c", code) == "True\n"


def test_every_class_is_in_its_room() -> None:
    for _, kind, home, _ in catalogue.SECTIONS:
        for cls in kind.catalogue().values():
            room = importlib.import_module(ROOMS.get(home, home))
            assert getattr(room, cls.__name__) is cls
            assert cls.__name__ in dir(room)


ROOMS = {
    "tr.metrics": "truerank.metrics",
    "tr.estimators": "truerank.estimators",
    "tr.exposure": "truerank.exposure",
    "tr.positions": "truerank.exposure.positions",
    "tr.models": "truerank.models",
    "tr.datasets": "truerank.datasets",
}

# ------------------------------------------------------------------------------------------------------------- the docs


def test_the_page_lists_them(copy: Copy) -> None:
    page = copy.run("-c", "from docs.making import catalogue; print(catalogue.page())")
    for form in ("`Toy@K`", "`Toy@N`", "`toy:REST[@N]`"):
        assert f"| {form} |" in page
    assert page.count("| `toy` |") == 6  # an estimator, a logger, a strategy, propensities, a dataset, a recommender


# ------------------------------------------------------------------------------------------------------------- the laws

LAWS: Sequence[tuple[str, str, str]] = (
    ("tests/laws/test_metrics.py", "Toy and (share or perfect or cut)", "[Toy]"),
    ("tests/laws/test_terms.py", "ToyEstimator and (weights or merge)", "ToyEstimator()"),
    ("tests/laws/test_propensities.py", "toy and (chunks or group)", "[toy]"),
    ("tests/exposure/test_loggers.py", "toy", "[toy]"),
    ("tests/exposure/test_interventions.py", "toy and (order or size)", "[toy]"),
    ("tests/ranking/test_samplers.py", "Toy and nested", "[Toy@9]"),
    ("tests/exposure/test_positions.py", "toy", "[toy:0.7]"),
    ("tests/models/test_laws.py", "toy", "[toy]"),
    ("tests/io/test_datasets.py", "toy", "[toy]"),
)


# each in a process of its own: two of them in the fast tests
EACH = [
    pytest.param(*law, id=Path(law[0]).stem, marks=[pytest.mark.slow] * (number > 1)) for number, law in enumerate(LAWS)
]


@pytest.mark.parametrize(("file", "names", "expected"), EACH)
def test_laws_hold_for_them(copy: Copy, file: str, names: str, expected: str) -> None:
    passed = copy.collected(file, names)
    assert any(expected in test for test in passed)


def test_the_law_of_texts_holds_for_all_of_them(copy: Copy) -> None:
    passed = copy.collected("tests/laws/test_language.py", "test_text_parses_back and toy")
    for kind in ("metric Toy", "estimator toy", "logger toy", "sampler Toy", "position model toy", "propensity toy",
                 "strategy toy", "model toy", "dataset toy"):  # fmt: skip
        assert any(f"[{kind}]" in test for test in passed), kind


def test_the_page_on_extending_shows_what_its_example_prints(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    assert with_outputs(page, tmp_path) == page
    (example,) = steps(page)
    length = example.text.split("@dataclass", 1)[1].split("\n\n\n", 1)[0].count("\n")
    assert length <= 25  # a new estimator is short
