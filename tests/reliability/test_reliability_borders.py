"""What a study refuses, says or leaves open at its borders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from refusals import refused
from small_study import small_grid, small_scores, small_train, small_world

from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.metrics.listwise import NDCG
from truerank.ranking.scores.scores import dense
from truerank.reliability import Grid, study

if TYPE_CHECKING:
    pass


def small(**options: Any) -> dict[str, Any]:
    grid = replace(small_grid(repetitions=1), metrics=(NDCG(10),))
    return {"grid": grid, "train": small_train(), "resamples": 5, "block_users": 4, **options}


def test_pairs_to_exclude_must_be_of_this_world(tmp_path: Path) -> None:
    world = small_world()
    rows = np.arange(3)
    strangers = Log(Ids.of([7, 8, 9]), world.items, unit=rows, item=rows, rewards={}, source="seen")
    with refused("none of the pairs to exclude has a user and an item of world"):
        study(small_scores(world), world, tmp_path / "a", exclude=strangers, **small())
    some = Log(Ids.of([7, 101]), world.items, unit=np.array([0, 1]), item=np.array([0, 1]), rewards={}, source="seen")
    notes = study(small_scores(world), world, tmp_path / "b", exclude=some, **small()).notes
    assert "1 pairs to exclude are of users or items that the labels lack." in notes
    everything = replace(world, rewards={}, source="seen")
    with refused("no positive label that is not excluded"):
        study(small_scores(world), world, tmp_path / "c", exclude=everything, **small())
    assert not (tmp_path / "c").exists()


def test_scores_that_are_no_numbers_are_found_before_any_work(tmp_path: Path) -> None:
    world = small_world()
    for wrong in (np.nan, np.inf):
        scores = small_scores(world)
        matrix = scores["m2"].block(np.arange(12)).copy()
        matrix[11, 29] = wrong
        scores["m2"] = dense(matrix, users=world.users.values, items=world.items.values)
        with refused("m2: scores that are NaN or infinite"):
            study(scores, world, tmp_path / "study", **small())
    assert not (tmp_path / "study").exists()


def few_users(n_users: int, n_items: int = 30) -> Log:
    world = small_world(missing=0)
    kept = (world.user < n_users) & (world.item < n_items)
    return replace(world.select(np.flatnonzero(kept)), users=Ids.of(100 + np.arange(n_users)),
                   items=Ids.of(world.items.values[:n_items]))  # fmt: skip


def test_where_nothing_can_be_held_out_only_wtd_is_refused(tmp_path: Path) -> None:
    world = few_users(12, n_items=8)
    scores = small_scores(world)
    grid = Grid.from_names(
        loggers=["uniform"], sparsities=[0.5], samplers=["Random", "WTDH"], sizes=[2], metrics=[NDCG(5)]
    )
    assert study(scores, world, tmp_path / "a", grid=grid, resamples=5).results.height > 0
    grid = Grid.from_names(loggers=["uniform"], sparsities=[0.5], samplers=["WTD"], sizes=[2], metrics=[NDCG(5)])
    with refused("nothing could be held out as random data for WTD"):
        study(scores, world, tmp_path / "b", grid=grid, resamples=5)
