"""What engines are asked in tests: every estimator of the catalogues, on judged rows and on ranked logs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from ways import EXCLUDE, ITEM_FEATURES, JUDGE, MODELS, SEED, WAYS, Way, read, rows_of

import truerank as tr
from truerank.core.results import Results
from truerank.estimators import RANKED
from truerank.estimators.assisted import Assisted, JudgeAlone
from truerank.exposure.policies.targets import RankColumn

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


def questions() -> list[list[Way]]:
    """Every way to ask about judged rows; those of one exposure and one interval together."""
    found: dict[tuple[str, str], list[Way]] = {}
    for way in WAYS:
        found.setdefault((str(way.exposure), str(way.interval)), []).append(way)
    return list(found.values())


QUESTIONS = questions()


# bootstraps are drawn where results are concluded: where that is slow, one of them stands for all
AT_ONCE = [at for at, ways in enumerate(QUESTIONS) if not isinstance(ways[0].interval, tr.Bootstrap)]
LATER = [at for at in range(len(QUESTIONS)) if at not in AT_ONCE]


def answered(number: int, engine: Any, **options: Any) -> Results:
    ways = QUESTIONS[number]
    estimators = list(dict.fromkeys(way.estimator for way in ways))
    predicts = any(isinstance(each, Assisted | JudgeAlone) for each in estimators)
    metrics = list(
        dict.fromkeys(metric for way in ways for metric in way.metrics[: None if way.estimator.info.of_lists else 3])
    )
    return tr.evaluate(
        MODELS,
        read(rows_of(ways[0])),
        exposure=ways[0].exposure,
        metrics=metrics,
        estimators=estimators,
        interval=ways[0].interval,
        exclude=EXCLUDE,
        item_features=ITEM_FEATURES if any(each.info.of_lists for each in estimators) else None,
        judge=JUDGE if predicts else None,
        assist=MODELS["second"] if predicts else None,
        seed=SEED,
        threads=1,
        engine=engine,
        **options,
    )


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
    return [cls() for cls in RANKED.catalogue().values()]


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


def in_files(frame: pl.DataFrame, folder: Path, *, empty: bool = True) -> Path:
    """Rows over several files, so that users lie in all of them; one file has none."""
    folder.mkdir()
    for number in range(4):
        frame[number::4].write_parquet(folder / f"part-{number}.parquet")
    if empty:
        frame.head(0).write_parquet(folder / "part-empty.parquet")
    return folder
