"""The calibration study: known truths, draws that depend on the seed alone, blocks that are made once."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from calling import call
from scipy.stats import hypergeom
from truerank.report.study_pages import page_of
from truerank.studies.calibration.found import SEED, calibration_results, calibration_tables
from truerank.studies.calibration.judged_worlds import JudgedWorld, _population
from truerank.studies.calibration.ranked_worlds import RankedWorld
from truerank.studies.calibration.run import Block, read, study
from truerank.studies.calibration.said import SCHEMA
from truerank.studies.calibration.summary import EQUAL, VALUE, summaries, summary
from truerank.studies.calibration.worlds import World, worlds
from truerank.studies.own.result import StudyResult

COMMITTED = Path(__file__).parents[2] / "docs" / "results" / "studied"

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


def test_estimators_beyond_the_papers_have_a_page_of_their_own() -> None:
    found = pl.DataFrame([cell("users 200"), cell("strata, users 200")])
    papers, beyond = calibration_results(found, seed=3)
    assert (papers.study, beyond.study) == ("calibration", "calibration-beyond")
    assert papers.command == beyond.command == "truerank study calibration --draws 1000 --seed 3"
    assert [row["world"] for row in beyond.rows("cells")] == ["strata, users 200"]
    (alone,) = calibration_results(found[:1], seed=SEED)
    assert alone.command == "truerank study calibration --draws 1000"
    assert "beyond the papers" in page_of(beyond).title
    assert "beyond the papers" not in page_of(alone).title


def test_the_command_leaves_tables_results_and_pages(tmp_path: Path) -> None:
    words = ("study", "calibration", "--draws", "1", "--threads", "1", "--out", str(tmp_path / "made"), "--quiet")
    assert call(*words, "--world", "users 5").code == 0
    left = {path.name for path in (tmp_path / "made").iterdir() if path.suffix in {".parquet", ".md", ".svg"}}
    assert left == {"calibration.parquet", "calibration.md", "calibration.svg"}
    found = call(*words, "--world", "pairs, users 20")
    assert found.code == 0, found.err
    both = [f"{name}.{ending}" for name in ("calibration", "calibration-beyond") for ending in ("json", "md", "svg")]
    assert [Path(line).name for line in found.out.splitlines()] == ["calibration.parquet", *both]
    assert "1 worlds whose truth is known" in (tmp_path / "made" / "calibration-beyond.md").read_text()


def test_what_was_measured_keeps_what_is_promised() -> None:
    """Two cells of 250 fall short by more than chance, and no equal models are called different too often."""
    results = [StudyResult.read(COMMITTED / f"{name}.json") for name in ("calibration", "calibration-beyond")]
    assert sum(result.settings["judged"] - result.settings["held"] for result in results) <= 2
    assert sum(result.settings["judged"] for result in results) >= 200
    assert not any(result.settings["called different"] for result in results)
