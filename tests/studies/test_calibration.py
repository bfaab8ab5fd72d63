"""The calibration study: known truths, draws that depend on the seed alone, blocks that are made once."""

from __future__ import annotations

import errno
from pathlib import Path

import polars as pl
import pytest
from scipy.stats import hypergeom

from truerank.studies.calibration.judged_worlds import JudgedWorld, _population
from truerank.studies.calibration.ranked_worlds import RankedWorld
from truerank.studies.calibration.run import Block, read, study
from truerank.studies.calibration.said import SCHEMA
from truerank.studies.calibration.summary import EQUAL, VALUE, summaries, summary
from truerank.studies.calibration.worlds import World, worlds

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


def test_without_shared_memory_one_process_does_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hardened container has no /dev/shm that can be written to."""

    def refused(_: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    study(WORLDS[:1], tmp_path / "one", draws=1, seed=1, processes=1)
    monkeypatch.setattr("truerank.engines.local.get_context", refused)
    study(WORLDS[:1], tmp_path / "two", draws=1, seed=1, processes=2)
    one, two = (next((tmp_path / name).glob("*.block")) for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


def test_blocks_are_made_once_and_more_draws_go_on(tmp_path: Path) -> None:
    study(WORLDS[:1], tmp_path, draws=2, seed=1, processes=1)
    (first,) = tmp_path.glob("*.block")
    first.write_bytes(first.read_bytes())
    before = first.stat().st_mtime_ns
    study(WORLDS[:1], tmp_path, draws=2, seed=1, processes=1)
    assert first.stat().st_mtime_ns == before
    drawn = read(WORLDS[0], tmp_path, seed=1)
    assert drawn["run"].unique().to_list() == [0, 1]
    found = summaries(WORLDS, tmp_path, seed=1)  # worlds that were not drawn are left out
    assert found["world"].unique().to_list() == ["users"]
    assert set(found["kind"]) >= {VALUE, EQUAL}


def test_more_draws_later_are_the_same_study(tmp_path: Path) -> None:
    """A block of two draws and one of three lie side by side: each draw counts once."""
    for draws in (2, 3):
        study(WORLDS[:1], tmp_path / "twice", draws=draws, seed=1, processes=1)
    study(WORLDS[:1], tmp_path / "once", draws=3, seed=1, processes=1)
    twice, once = (summaries(WORLDS, tmp_path / name, seed=1) for name in ("twice", "once"))
    assert twice.equals(once)


def test_processes_change_nothing(tmp_path: Path) -> None:
    for processes in (1, 2):
        study(WORLDS[:2], tmp_path / str(processes), draws=1, seed=3, processes=processes)
    for world in WORLDS[:2]:
        one, two = (read(world, tmp_path / str(n), seed=3) for n in (1, 2))
        assert one.equals(two)


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
    assert len({Block(world, 0, 0, 1, Path()).path for world in every}) == len(every) >= 30
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
