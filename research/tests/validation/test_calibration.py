"""The calibration study: known truths, draws that depend on the seed alone, blocks that are made once."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from scipy.stats import hypergeom

from truerank_research.runner import committed
from truerank_research.validation.calibration.judged_worlds import JudgedWorld, _population
from truerank_research.validation.calibration.ranked_worlds import RankedWorld
from truerank_research.validation.calibration.said import SCHEMA
from truerank_research.validation.calibration.study import calibration_tables
from truerank_research.validation.calibration.summary import EQUAL, VALUE, summary
from truerank_research.validation.calibration.worlds import World, worlds

WORLDS: tuple[World, ...] = (
    JudgedWorld("users", 20),
    JudgedWorld("biased", 20, biased=True, estimators=("ips", "snips")),
    JudgedWorld("design", 20, interval="design"),
    JudgedWorld("full", 20, full=True, metrics=("nDCG@20",), estimators=("full",)),
    RankedWorld("sessions", 20),
)


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_two_models_are_equal_in_truth_and_a_third_is_not(world: World) -> None:
    known = world.true_values(1)
    equal = [value for (what, _, _), value in known.items() if what == "b - a"]
    assert equal == pytest.approx([0.0] * len(equal), abs=1e-12)
    assert all(abs(value) > 1e-4 for (what, _, _), value in known.items() if what == "c - a")


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_a_draw_depends_on_the_seed_alone(world: World) -> None:
    first, again, other = (world.draw(seed, 0) for seed in (1, 1, 2))
    assert first.estimates == again.estimates
    assert first.comparisons == again.comparisons
    assert first.estimates != other.estimates


def test_few_judged_rows_do_not_stop_a_study() -> None:
    """No row shows which user or item is number 0; models name theirs."""
    for run in range(5):
        assert JudgedWorld("few", 2, judged=1).draw(3, run).estimates


def test_the_summary_counts() -> None:
    rows = [
        (0, "a", "Recall@5", "pooled", 0.5, 0.4, 0.6, 0, False),
        (1, "a", "Recall@5", "pooled", 0.5, 0.51, 0.6, 0, True),
        (0, "b - a", "Recall@5", "pooled", 0.1, 0.05, 0.2, 1, False),
        (1, "b - a", "Recall@5", "pooled", 0.0, None, None, -9, True),
    ]
    drawn = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    truth = pl.when(pl.col("what") == "a").then(0.5).otherwise(0.0)
    value, equal = summary(drawn.with_columns(truth=truth)).sort("kind", descending=True).to_dicts()
    assert (value["kind"], value["covered"], value["covered_calm"], value["warned"]) == (VALUE, 0.5, 1.0, 0.5)
    assert (equal["kind"], equal["decided"], equal["insufficient"], equal["no_interval"]) == (EQUAL, 0.5, 0.5, 0.5)


def test_there_are_enough_worlds_each_with_a_name_of_its_own() -> None:
    every = worlds()
    assert len({world.name for world in every}) == len(every) >= 30
    assert {world.n_users for world in every} >= {5, 10, 20, 50, 200, 1000}
    assert any(world.ample for world in every)


def test_the_published_mean_is_held_against_what_it_estimates() -> None:
    """Recall of users by their chance to have a judged relevant item, here by the hypergeometric distribution."""
    world = JudgedWorld("published", 20, metrics=("Recall@20",), estimators=("published",))
    units = world.truth(1).units().filter(pl.col("model") == "a").sort("unit")
    n_relevant = _population(world.n_items, world.active, world.excluded, 1, ties=world.ties).labels.sum(axis=1)
    kept = hypergeom.sf(0, world.n_items, n_relevant, world.judged)
    recall = units["value"].fill_null(0.0).to_numpy()
    truth = world.true_values(1)["a", "Recall@20", "published"]
    assert truth == pytest.approx(kept @ recall / kept.sum(), rel=1e-12)
    assert truth != pytest.approx(recall[n_relevant > 0].mean(), rel=1e-3)


@pytest.mark.parametrize("world", worlds(), ids=lambda world: world.name)
def test_every_world_can_be_drawn(world: World) -> None:
    assert {each.estimator for each in world.draw(1, 0).estimates} == set(world.estimators)


# ------------------------------------------------------------------------------------------------------------ its pages


def cell(world: str, kind: str = VALUE, **other: Any) -> dict[str, Any]:
    usual = {
        "world": world, "users": 200, "ample": False, "metric": "Recall@20", "estimator": "pooled", "kind": kind,
        "draws": 1000, "covered": 0.95, "covered_calm": 0.95, "warned": 0.0, "no_interval": 0.0, "width": 0.1,
        "decided": 0.04, "decided_calm": 0.04, "calm": 1000, "insufficient": 0.0, "right": 0.0,
    }  # fmt: skip
    return usual | other


def test_cells_are_held_against_what_is_promised() -> None:
    """With 1,000 draws three Monte-Carlo errors are 2.4 points at 93 %, 1.6 at 97 % and 2.3 at 6.5 %."""
    found = pl.DataFrame(
        [
            cell("just short", covered_calm=0.907),
            cell("short", covered_calm=0.905),
            cell("few users", covered_calm=0.905, users=20),
            cell("wide", covered_calm=0.987),
            cell("few draws without a warning", covered_calm=0.5, calm=199, covered=0.7),
            cell("never without a warning", covered_calm=None, calm=0, warned=1.0, ample=True),
            cell("chance", EQUAL, decided=0.085, decided_calm=0.066),
            cell("errors", EQUAL, decided=0.09, decided_calm=0.02, calm=500),
        ]
    )
    made = calibration_tables(found)
    assert [row["world"] for row in made.tables["short"]] == ["short", "errors"]
    assert [row["insufficient"] for row in made.tables["cells"]] == [None] * 6 + [0.0] * 2
    assert made.settings == {
        "worlds": 8, "fewest draws": 1000, "most draws": 1000, "lowest coverage": 0.7,
        "judged": 6, "held": 5, "below as counted": 3, "wide": 1,
        "equal": 2, "called different": 1,
        "equal without a warning": 2, "called different without a warning": 1,
        "most called different without a warning": 0.066,
        "ample": 1, "ample and warned of": 1,
    }  # fmt: skip


def test_what_was_measured_keeps_what_is_promised() -> None:
    """Two cells of 250 fall short by more than chance, and no equal models are called different too often."""
    results = [committed(name) for name in ("calibration", "calibration-beyond")]
    assert sum(result.settings["judged"] - result.settings["held"] for result in results) <= 2
    assert sum(result.settings["judged"] for result in results) >= 200
    assert not any(result.settings["called different"] for result in results)
