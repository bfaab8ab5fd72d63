"""Local, Dask and Spark give the same numbers: values to the last bit, standard errors to 1e-12 of their size.

Estimators are found through the catalogues, so that a new one is held to it, too.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from engine_cases import AT_ONCE, LATER, QUESTIONS, TARGETS, answered, earned, feed, in_files, lists, same
from refusals import refused
from small_study import small_grid, small_scores, small_train, small_world

import truerank as tr
from truerank.core.results import Results
from truerank.engines.dask import DaskWorkers
from truerank.engines.spark import Spark, SparkWorkers
from truerank.evaluation import sources
from truerank.io import partition
from truerank.io.read import scan
from truerank.reliability.run import study

# -------------------------------------------------------------------------------------------------------------- judged


def test_every_estimator_is_asked_for() -> None:
    from truerank import estimators

    assert {way.estimator.info.name for ways in QUESTIONS for way in ways} == {*estimators.catalogue()}


@cache
def locally(number: int) -> Results:
    return answered(number, None)


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_every_estimator_on_dask(number: int, dask: Any) -> None:
    same(answered(number, dask), locally(number))


@pytest.mark.parametrize(
    "number", [*AT_ONCE, LATER[0], *(pytest.param(number, marks=pytest.mark.slow) for number in LATER[1:])]
)
def test_every_estimator_on_spark(number: int, spark: Any) -> None:
    same(answered(number, spark), locally(number))


# -------------------------------------------------------------------------------------------------------------- ranked


@pytest.mark.parametrize("position", ["exp:0.8", "fit:exp"])
def test_every_estimator_of_ranked_logs(position: str, engine: Any) -> None:
    log = feed()
    same(earned(log, engine, position=position), earned(log, None, position=position))


# -------------------------------------------------------------------------------------------------------------- streams


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if memory held a hundred rows."""
    for module in (sources, partition):
        monkeypatch.setattr(module, "MEMORY_ROWS", 100)
    monkeypatch.setattr(partition, "CHUNK_ROWS", 80)


@pytest.mark.usefixtures("streamed")
def test_a_log_in_files_with_one_heavy_user(tmp_path: Path, engine: Any) -> None:
    frame = feed(60, heavy=40)  # one user has more rows than a chunk
    log = in_files(frame, tmp_path / "log")
    targets = in_files(lists(frame), tmp_path / "targets")
    options: dict[str, Any] = {"position": "fit:exp", "seed": 1, "threads": 1}
    found = [tr.off_policy(log, {"table": targets, **TARGETS}, engine=each, **options) for each in (engine, None)]
    same(found[0], found[1])
    whole = tr.off_policy(frame, {"table": lists(frame), **TARGETS}, **options)
    assert [each.value for each in found[0].estimates] == [each.value for each in whole.estimates]


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("sort", [False, True])
def test_labels_in_files(tmp_path: Path, engine: Any, sort: bool) -> None:
    rng = np.random.default_rng(8)
    cells = rng.choice(200 * 30, 900, replace=False)
    cells = np.concatenate([cells[cells >= 30], np.arange(30)])  # the first user has every item
    frame = pl.DataFrame({"user": cells // 30, "item": cells % 30, "label": rng.integers(0, 2, len(cells))})
    frame = frame.sort("user") if sort else frame
    scores = {name: rng.normal(size=(200, 30)) for name in ("a", "b")}
    if sort:
        (tmp_path / "labels").mkdir()
        for number, part in enumerate(frame.iter_slices(250)):
            part.write_parquet(tmp_path / "labels" / f"{number}.parquet")
    labels = tmp_path / "labels" if sort else in_files(frame, tmp_path / "labels")
    options: dict[str, Any] = {"exposure": "random", "metrics": ["Recall@5", "DCG@5"], "threads": 1}
    found = [tr.evaluate(scores, scan(labels), engine=each, **options) for each in (engine, None)]
    same(found[0], found[1])
    whole = tr.evaluate(scores, frame, **options)
    assert [each.value for each in found[0].estimates] == [each.value for each in whole.estimates]


@pytest.mark.usefixtures("streamed")
def test_a_part_file_that_is_damaged_is_named(tmp_path: Path, engine: Any) -> None:
    """Sorted rows are read by the workers themselves, from the user's own files."""
    frame = feed(120).sort("user")
    folder = tmp_path / "log"
    folder.mkdir()
    for number, part in enumerate(frame.iter_slices(200)):
        part.write_parquet(folder / f"{number}.parquet", compression="uncompressed")
    whole = (folder / "1.parquet").read_bytes()

    def damage(what: str, done: int, total: int) -> None:
        if what.startswith("counting") and len(whole) == (folder / "1.parquet").stat().st_size:
            (folder / "1.parquet").write_bytes(whole[:64] + bytes(len(whole) // 2))

    with refused(r"1\.parquet"):
        tr.off_policy(folder, TARGETS, position="exp:0.8", engine=engine, progress=damage)


# -------------------------------------------------------------------------------------------------------------- studies


def test_a_reliability_grid(tmp_path: Path, engine: Any) -> None:
    world = small_world()
    grid = small_grid(repetitions=1)
    for name, each in (("here", None), ("there", engine)):
        study(
            small_scores(world), world, tmp_path / name, grid=grid, train=small_train(), seed=3, resamples=20,
            block_users=5, engine=each,
        )  # fmt: skip
    files = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert "results.parquet" in files
    for name in files:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes(), name


# --------------------------------------------------------------------------------------------------------------- frames


@pytest.mark.usefixtures("streamed")
def test_where_no_disk_is_shared_rows_travel(tmp_path: Path, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on other machines: workers get bytes, and no name of a file."""
    monkeypatch.setattr(DaskWorkers, "_seen", lambda _: None)
    monkeypatch.setattr(Spark, "open", lambda spark: nullcontext(SparkWorkers(spark.session, None)))
    sent: list[Any] = []
    part = partition.Chunks.part

    def noted(chunks: partition.Chunks, at: int, *, same_disk: bool) -> Any:
        sent.extend(part(chunks, at, same_disk=same_disk).values() if not same_disk else ())
        return part(chunks, at, same_disk=same_disk)

    monkeypatch.setattr(partition.Chunks, "part", noted)
    log = in_files(feed(60), tmp_path / "log")
    found = [tr.off_policy(log, TARGETS, position="fit:exp", engine=each, seed=1) for each in (engine, None)]
    same(found[0], found[1])
    assert sent
    assert all(rows.portable for rows in sent)
