"""On a world with planted taste, learned models find it: true Recall@50 above that of Popularity."""

from __future__ import annotations

import pytest

import truerank as tr
from truerank import models
from truerank.metrics.recall import Recall
from truerank.models import Side
from truerank.simulation.dataset import DatasetSettings, simulate_dataset

QUICK = ["mf-dns", "lightgcn-dns"]
OTHERS = [
    "mf", "mf-ips", "mf-dr", "mf-autodebias", "lightgcn", "lightgcn-ips", "lightgcn-dr", "lightgcn-autodebias",
]  # fmt: skip


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)])
def test_a_learned_model_beats_popularity(name: str) -> None:
    """The world of the other personal models, every model with its default settings, paired over users."""
    world = simulate_dataset(DatasetSettings(users=600, items=400, taste=8.0, shown=60), seed=1)
    fitted = {
        each: models.make(each, {}).fit(world.train, seed=1, side=Side(random=world.random))
        for each in ("popularity", name)
    }
    found = tr.evaluate(
        fitted, world.truth, exclude=world.train, metrics=[Recall(50)], baseline="popularity", level=0.999
    )
    assert found.comparisons[0].low > 0, found.comparisons[0]
