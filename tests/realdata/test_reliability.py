"""The reliability study on KuaiRec's fully observed block, with a small grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from realdata import folder_of
from truerank.core.arrays import Floats
from truerank.core.ranking import Scores
from truerank.core.rng import cell_uniforms
from truerank.datasets.feeds import KuaiRec
from truerank.exposure.counts import rows_of_items
from truerank.metrics.additive import Recall
from truerank.metrics.listwise import NDCG
from truerank.ranking.scores.scores import dense
from truerank.reliability import Grid, families, loggers_of, study

pytestmark = pytest.mark.realdata


def test_more_candidates_agree_better_and_sparser_logs_tie_more(tmp_path: Path) -> None:
    parts = KuaiRec().load(folder_of("kuairec"), parts=["full", "train"])
    world, train = parts["full"], parts["train"]
    popular = rows_of_items(train, world.items, positive=True).astype(np.float64)
    chance = cell_uniforms(1, "random scores", world.users.keys()[:, None], world.items.keys()[None, :])
    # the truth with more and more noise: models whose order is known
    truth = np.zeros(chance.shape)
    truth[world.user, world.item] = world.label
    noise = np.random.default_rng(1).standard_normal(truth.shape)

    def scored(matrix: Floats) -> Scores:
        return dense(matrix, users=world.users.values, items=world.items.values)

    scores: dict[str, Scores] = {
        "popular": scored(popular + np.zeros_like(chance)),
        "random": scored(chance),
        **{f"noise {at}": scored(truth + at * noise) for at in (0.5, 0.6, 0.8, 1.0)},
    }
    grid = Grid(
        loggers_of(["uniform"]),
        (0.0, 0.5, 0.95),
        families(["Exposed", "Random@e", "Random", "Skew"], sizes=(1, 10, 100, 1000)),
        (NDCG(100), Recall(10)),
        holdout=None,
    )
    found = study(scores, world, tmp_path / "study", grid=grid, train=train, resamples=100).results
    ndcg = found.filter(pl.col("metric") == "nDCG@100")

    def values(sampler: str, question: str, *, sparsity: float) -> list[float]:
        chosen = (pl.col("sampler") == sampler) & (pl.col("question") == question) & (pl.col("sparsity") == sparsity)
        return ndcg.filter(chosen)["value"].to_list()

    # missing cells are labelled 0 in the compact file: everything is exposed
    if len(world) == len(world.users) * len(world.items):
        assert values("Exposed", "fidelity", sparsity=0.0) == values("Random@e", "fidelity", sparsity=0.0) == [1.0]
    rising = values("Random", "fidelity", sparsity=0.5)
    assert rising == sorted(rising)
    ties = [values("Full", "resolution", sparsity=each)[0] for each in grid.sparsities]
    assert ties == sorted(ties)
    assert values("Full", "robustness", sparsity=0.5) == values("Full", "predictive_power", sparsity=0.5)
    assert found.filter(pl.col("question") == "fidelity")["users"].unique().len() == 1
