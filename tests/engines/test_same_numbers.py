"""Local, Dask and Spark give the same numbers: values to the last bit, standard errors to 1e-12 of their size.

Estimators are found through the catalogues, so that a new one is held to it, too.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from small_study import small_grid, small_scores, small_train, small_world
from ways import EXCLUDE, ITEM_FEATURES, JUDGE, MODELS, SEED, WAYS, Way, read, rows_of

import truerank as tr
from truerank.core.errors import InputError
from truerank.core.results import Results
from truerank.data import partition
from truerank.data.survey import scan
from truerank.engines.dask import DaskWorkers
from truerank.engines.spark import SparkOpened, SparkWorkers
from truerank.estimators import ranked
from truerank.estimators.judged.assisted import Assisted
from truerank.estimators.judged.judge_alone import JudgeAlone
from truerank.evaluation import judged_source, ranked_source
from truerank.exposure.policies.targets import RankColumn
from truerank.studies.calibration.run import study as draw_worlds
from truerank.studies.calibration.worlds import worlds
from truerank.studies.reliability.run import study

TOLERANCE = 1e-12
TARGETS = {"new": RankColumn("new"), "other": RankColumn("other"), "log": RankColumn("position")}


def same(found: Results, expected: Results) -> None:
    """Values and differences to the last bit, standard errors nearly so, the same verdicts and counts."""
    assert len(found.estimates) == len(expected.estimates) > 0
    for one, other in zip(found.estimates, expected.estimates, strict=True):
        assert (one.model, one.metric, one.estimator, one.clip) == (
            other.model,
            other.metric,
            other.estimator,
            other.clip,
        )
        np.testing.assert_array_equal(one.value, other.value)
        np.testing.assert_allclose(one.stderr, other.stderr, rtol=TOLERANCE, atol=0)
        assert (one.units, one.undefined, one.clusters) == (other.units, other.undefined, other.clusters)
    for pair, wanted in zip(found.comparisons, expected.comparisons, strict=True):
        np.testing.assert_array_equal(pair.difference, wanted.difference)
        assert pair.verdict == wanted.verdict


# -------------------------------------------------------------------------------------------------------------- judged


def questions() -> list[list[Way]]:
    """Every way to ask about judged rows; those of one exposure and one interval together."""
    found: dict[tuple[str, str], list[Way]] = {}
    for way in WAYS:
        found.setdefault((str(way.exposure), str(way.interval)), []).append(way)
    return list(found.values())


QUESTIONS = questions()


def test_every_estimator_is_asked_for() -> None:
    from truerank import estimators

    assert {way.estimator.about.name for ways in QUESTIONS for way in ways} == {*estimators.catalogue()}


def answered(number: int, engine: Any) -> Results:
    ways = QUESTIONS[number]
    estimators = list(dict.fromkeys(way.estimator for way in ways))
    predicts = any(isinstance(each, Assisted | JudgeAlone) for each in estimators)
    metrics = list(
        dict.fromkeys(metric for way in ways for metric in way.metrics[: None if way.estimator.about.of_lists else 3])
    )
    return tr.evaluate(
        MODELS,
        read(rows_of(ways[0])),
        exposure=ways[0].exposure,
        metrics=metrics,
        estimators=estimators,
        interval=ways[0].interval,
        exclude=EXCLUDE,
        item_features=ITEM_FEATURES if any(each.about.of_lists for each in estimators) else None,
        judge=JUDGE if predicts else None,
        assist=MODELS["second"] if predicts else None,
        seed=SEED,
        threads=1,
        engine=engine,
    )


@cache
def locally(number: int) -> Results:
    return answered(number, None)


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_every_estimator_on_dask(number: int, dask: Any) -> None:
    same(answered(number, dask), locally(number))


# bootstraps are drawn where results are concluded: on Spark, which takes longer to begin, one of them stands for all
AT_ONCE = [at for at, ways in enumerate(QUESTIONS) if not isinstance(ways[0].interval, tr.Bootstrap)]
LATER = [at for at in range(len(QUESTIONS)) if at not in AT_ONCE]


@pytest.mark.parametrize(
    "number", [*AT_ONCE, LATER[0], *(pytest.param(number, marks=pytest.mark.slow) for number in LATER[1:])]
)
def test_every_estimator_on_spark(number: int, spark: Any) -> None:
    same(answered(number, spark), locally(number))


# -------------------------------------------------------------------------------------------------------------- ranked


def feed(n_users: int = 40, *, seed: int = 3, heavy: int = 0) -> pl.DataFrame:
    """Sessions of users, unsorted; the first user has as many rows more as are asked for."""
    rng = np.random.default_rng(seed)
    users = np.concatenate([np.repeat(np.arange(n_users), 3), np.zeros(heavy, dtype=np.int64)])
    rows = []
    for session, user in enumerate(users.tolist()):
        items, new, other = rng.permutation(9), rng.permutation(6) + 1, rng.permutation(6) + 1
        for place in range(min(6, int(rng.geometric(0.3)))):
            like = int(rng.random() < 0.3 + items[place] / 20)
            rows.append(
                (f"s{session:04}", user, int(items[place]), place + 1, like, int(new[place]), int(other[place]))
            )
    names = ["session", "user", "item", "position", "reward", "new", "other"]
    return pl.DataFrame(rows, schema=names, orient="row").sample(fraction=1.0, shuffle=True, seed=seed)


def lists(frame: pl.DataFrame) -> pl.DataFrame:
    """A target's ranking of nine items in every session."""
    rng = np.random.default_rng(1)
    sessions = frame["session"].unique().sort().to_list()
    parts = [{"session": [name] * 9, "item": np.arange(9), "rank": rng.permutation(9) + 1} for name in sessions]
    return pl.concat(map(pl.DataFrame, parts)).sample(fraction=1.0, shuffle=True, seed=1)


def estimators_of_logs() -> list[Any]:
    return [cls() for cls in ranked.catalogue().values()]


def earned(log: Any, engine: Any, *, position: str, **options: Any) -> Results:
    return tr.off_policy(
        log,
        TARGETS,
        position=position,
        estimators=estimators_of_logs(),
        clips=(1.5, math.inf),
        reward_range=(0, 1),
        seed=1,
        threads=1,
        engine=engine,
        **options,
    )


@pytest.mark.parametrize("position", ["exp:0.8", "fit:exp"])
def test_every_estimator_of_ranked_logs(position: str, engine: Any) -> None:
    log = feed()
    same(earned(log, engine, position=position), earned(log, None, position=position))


def test_tables_of_targets_and_a_bootstrap(engine: Any) -> None:
    log = feed()
    options: dict[str, Any] = {"position": "exp:0.8", "interval": tr.Bootstrap(30, seed=2), "seed": 1}
    found = [tr.off_policy(log, {"table": lists(log), **TARGETS}, engine=each, **options) for each in (engine, None)]
    same(found[0], found[1])


# -------------------------------------------------------------------------------------------------------------- streams


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if memory held a hundred rows."""
    for module in (judged_source, ranked_source, partition):
        monkeypatch.setattr(module, "MEMORY_ROWS", 100)
    monkeypatch.setattr(partition, "CHUNK_ROWS", 80)


def in_files(frame: pl.DataFrame, folder: Path, *, empty: bool = True) -> Path:
    """Rows over several files, so that users lie in all of them; one file has none."""
    folder.mkdir()
    for number in range(4):
        frame[number::4].write_parquet(folder / f"part-{number}.parquet")
    if empty:
        frame.head(0).write_parquet(folder / "part-empty.parquet")
    return folder


@pytest.mark.usefixtures("streamed")
def test_a_log_in_files_with_one_heavy_user(tmp_path: Path, engine: Any) -> None:
    frame = feed(120, heavy=40)  # a tenth of the rows is of one user
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

    with pytest.raises(InputError, match=r"1\.parquet"):
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


def test_a_calibration_study(tmp_path: Path, engine: Any) -> None:
    chosen = [worlds()[0]]
    draw_worlds(chosen, tmp_path / "here", draws=2, seed=1, processes=1)
    draw_worlds(chosen, tmp_path / "there", draws=2, seed=1, engine=engine)
    blocks = [path.name for path in (tmp_path / "here").iterdir()]
    assert len(blocks) > 1
    for name in blocks:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes(), name


# --------------------------------------------------------------------------------------------------------------- frames


def test_frames_of_spark(spark: Any) -> None:
    log = feed()
    there = spark.createDataFrame(log.to_arrow()).repartition(3)
    options: dict[str, Any] = {"position": "exp:0.8", "seed": 1}
    same(tr.off_policy(there, TARGETS, engine=spark, **options), tr.off_policy(log, TARGETS, **options))


@pytest.mark.usefixtures("streamed")
def test_where_no_disk_is_shared_rows_travel(tmp_path: Path, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on other machines: workers get bytes, and no name of a file."""
    monkeypatch.setattr(DaskWorkers, "_seen", lambda _: None)
    monkeypatch.setattr(SparkOpened, "open", lambda opened: nullcontext(SparkWorkers(opened.session, None)))
    sent: list[Any] = []
    part = partition.Chunks.part

    def noted(chunks: partition.Chunks, at: int, *, same_disk: bool) -> Any:
        sent.extend(part(chunks, at, same_disk=same_disk).values() if not same_disk else ())
        return part(chunks, at, same_disk=same_disk)

    monkeypatch.setattr(partition.Chunks, "part", noted)
    log = in_files(feed(120), tmp_path / "log")
    found = [tr.off_policy(log, TARGETS, position="fit:exp", engine=each, seed=1) for each in (engine, None)]
    same(found[0], found[1])
    assert sent
    assert all(rows.portable for rows in sent)
