"""Loggers are recognised by their logs on KuaiRec, whatever the number of users."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from realdata import folder_of
from truerank.core.arrays import Floats, Ints
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.datasets.feeds import KuaiRec
from truerank.exposure.expose import Order
from truerank.metrics.listwise import NDCG
from truerank.ranking.scores.scores import dense
from truerank.reliability import FinishedStudy, Grid, advise, study

pytestmark = pytest.mark.realdata


def of_users(log: Log, kept: Ints) -> Log:
    """The rows of some users, who alone are the population."""
    mine = np.zeros(len(log.users), dtype=bool)
    mine[kept] = True
    rows = log.select(np.flatnonzero(mine[log.user]))
    users = Ids(log.users.values.filter(pl.Series(mine)))
    return replace(rows, users=users, unit=(np.cumsum(mine) - 1)[rows.user])


def test_fresh_logs_of_few_users_are_recognised(tmp_path: Path) -> None:
    parts = KuaiRec().load(folder_of("kuairec"), parts=["full", "train"])
    world, train = parts["full"], parts["train"]
    truth = np.zeros((len(world.users), len(world.items)))
    truth[world.user, world.item] = world.label
    noise = np.random.default_rng(1).standard_normal(truth.shape)

    def scored(matrix: Floats) -> Scores:
        return dense(matrix, users=world.users.values, items=world.items.values)

    scores = {f"noise {at}": scored(truth + at * noise) for at in (0.6, 0.8, 1.0)}
    grid = Grid.from_names(sparsities=(0.5, 0.7, 0.9), samplers=("Random",), sizes=(100,), metrics=(NDCG(100),))
    study(scores, world, tmp_path, grid=grid, train=train, resamples=2)
    studied = FinishedStudy.read(tmp_path)
    for at, logger in enumerate(grid.loggers):
        order = Order.of(world, logger.weights(world, train=train), seed=90 + at)
        for sparsity in (0.65, 0.85):
            log = order.dataset.select(np.flatnonzero(order.shown(order.sizes(sparsity=sparsity))))
            for n in (150, 1000):
                some = of_users(log, np.random.default_rng(n).choice(len(world.users), n, replace=False))
                found = advise(some, studied, n_items=len(world.items))
                assert found.logger.logger == str(logger)
                assert found.logger.distance < 0.15
                assert found.sparsity == pytest.approx(sparsity, abs=0.005)
