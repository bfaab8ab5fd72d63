"""Every way to ask about judged rows: estimators, metrics, exposures and intervals, found through the catalogues."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from cases import instances

import truerank as tr
from truerank import estimators, metrics
from truerank.core.arrays import Bools
from truerank.core.estimator import Clipping, Estimator, EstimatorInfo, Exposed
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric, OfLists
from truerank.core.ranking import JudgedChunk
from truerank.estimators.assisted import Assisted, DoublyRobust, JudgeAlone
from truerank.estimators.predictions import Assistance, GivenRewards
from truerank.evaluation.compatibility import Compatibility, LabelQuestion, lacking
from truerank.evaluation.label_rows import LabelRows
from truerank.evaluation.labels import prepare_labels
from truerank.evaluation.question import Plan
from truerank.exposure import propensities
from truerank.exposure.kinds import BiasedExposure, Exposure, FullExposure, HoldoutExposure, RandomExposure, Unlisted
from truerank.inference.intervals import Interval
from truerank.io.spill import scratch

N_USERS, N_ITEMS = 17, 14
SEED = 5
RNG = np.random.default_rng(SEED)
USERS = [f"user {number:03}" for number in RNG.permutation(N_USERS)]  # text, so that keys are digests
RATING = RNG.integers(0, 4, (N_USERS, N_ITEMS)).astype(np.float64)
CHANCE = 0.2 + 0.75 * RNG.random((N_USERS, N_ITEMS)) ** 2
EXCLUDED = RNG.random((N_USERS, N_ITEMS)) < 0.1
ITEMS = np.arange(N_ITEMS) * 10


def model(seed: int, *, without: int = 0) -> Any:
    """Scores with ties for all users but the last few."""
    known = USERS[: N_USERS - without]
    scores = np.random.default_rng(seed).integers(0, 6, (len(known), N_ITEMS)).astype(np.float64)
    scores[::4, 3] = -np.inf
    return tr.scores.dense(scores, users=known, items=ITEMS)


MODELS = {"first": model(1), "second": model(2, without=2)}
GUESS = GivenRewards(tr.scores.dense(RNG.random((N_USERS, N_ITEMS)), users=USERS, items=ITEMS))
# what a judge says of three in four pairs
SAID = np.random.default_rng(7).random((N_USERS, N_ITEMS)) < 0.75
JUDGE = pl.DataFrame(
    {
        "user": np.array(USERS)[np.nonzero(SAID)[0]],
        "item": ITEMS[np.nonzero(SAID)[1]],
        "probability": (0.3 * (RATING > 1) + 0.5 * np.random.default_rng(6).random(RATING.shape))[SAID],
    }
)
USER_FEATURES = pl.DataFrame({"user": USERS, "age": RNG.normal(size=N_USERS)})
ITEM_FEATURES = pl.DataFrame({"item": ITEMS, "new": RNG.integers(0, 2, N_ITEMS)})
RATE = 0.5
METRICS: list[Metric] = [
    metric
    for cls in metrics.catalogue().values()
    for metric in instances(cls, (1, 4))
    if getattr(metric, "highest", None) != 1  # grades go up to 3
]


def frame(shown: Bools) -> pl.DataFrame:
    user, item = np.nonzero(shown & ~EXCLUDED)
    return pl.DataFrame(
        {
            "user": np.array(USERS)[user],
            "item": ITEMS[item],
            "rating": RATING[user, item],
            "propensity": CHANCE[user, item],
            "inclusion": 0.1 + 0.9 * ((user * 7 + item * 3) % 10) / 9,
        }
    )


EXCLUDE = pl.DataFrame({"user": np.array(USERS)[np.nonzero(EXCLUDED)[0]], "item": ITEMS[np.nonzero(EXCLUDED)[1]]})
DRAWN = {
    Exposed.FULL: np.ones((N_USERS, N_ITEMS), dtype=bool),
    Exposed.RANDOM: RNG.random((N_USERS, N_ITEMS)) < RATE,
    Exposed.BIASED: RNG.random((N_USERS, N_ITEMS)) < CHANCE,
}
DRAWN[Exposed.HOLDOUT] = DRAWN[Exposed.BIASED]  # what was held out of a log is a part of what it happened to show
DRAWN[Exposed.RANDOM][4] = DRAWN[Exposed.BIASED][7] = False  # users without a row
SIDE: dict[str, Any] = {
    "random": frame(RNG.random((N_USERS, N_ITEMS)) < 0.3).select(
        "user", "item", label=(pl.col("rating") > 1).cast(int)
    ),
    "user_features": USER_FEATURES,
    "item_features": ITEM_FEATURES,
}


# ---------------------------------------------------------------------------------------------------------------- ways


@dataclass(frozen=True)
class Way:
    """An estimator on one kind of log, with an interval."""

    estimator: Estimator
    exposure: Exposure
    interval: Interval | None = None

    def __str__(self) -> str:
        kind = getattr(self.exposure, "propensity", None) or getattr(self.exposure, "rate", None) or ""
        reward = type(getattr(self.estimator, "reward", None)).__name__ if hasattr(self.estimator, "reward") else ""
        by = f"by {self.estimator.by}" if isinstance(self.estimator, Assisted) else ""
        return " ".join(
            map(str, (self.estimator.info.name, reward, by, self.exposure.exposed, kind, self.interval or ""))
        )

    @property
    def few(self) -> bool:
        """Whether it differs from another way by what predicts alone, so that not everything is asked of it again."""
        return getattr(self.estimator, "by", Assistance.JUDGE) is not Assistance.LOG and not hasattr(
            self.estimator, "reward"
        )

    @property
    def fitted(self) -> bool:
        return getattr(self.exposure, "propensity", None) is not None

    @property
    def metrics(self) -> list[Metric]:
        """Every metric that goes with it; one of each kind where all is fitted again without each user."""
        able = [metric for metric in METRICS if self.estimator.refusal(metric) is None and not self.lacks(metric)]
        return list({type(metric): metric for metric in able}.values()) if self.fitted else able

    def lacks(self, metric: Metric) -> bool:
        """Whether a metric of lists needs more than there is here."""
        question = LabelQuestion(exposure=self.exposure, item_features=ITEM_FEATURES)
        facts = Compatibility(question, MODELS, N_ITEMS, ["exclude"]).facts
        return isinstance(metric, OfLists) and lacking(metric, facts) is not None

    @property
    def question(self) -> LabelQuestion:
        weighs = self.estimator.info.clipping is not Clipping.NONE
        return LabelQuestion(
            exposure=self.exposure,
            metrics=self.metrics,
            estimators=[self.estimator],
            clips=(math.inf, 2.0) if weighs else None,
            item_features=ITEM_FEATURES if self.estimator.info.of_lists else None,
            judge=JUDGE if isinstance(self.estimator, Assisted | JudgeAlone) else None,
            assist=MODELS["second"] if isinstance(self.estimator, Assisted) else None,
            interval=self.interval or tr.Population(),
            seed=SEED,
        )


def exposures(info: EstimatorInfo) -> Iterator[Exposure]:
    if "inclusion" in info.uses:
        yield FullExposure(Unlisted.NEGATIVE)
        return
    if Exposed.FULL in info.exposures:
        yield FullExposure()
    if Exposed.HOLDOUT in info.exposures:
        yield HoldoutExposure()
    if Exposed.RANDOM in info.exposures:
        yield RandomExposure()
        yield RandomExposure(RATE)
    if Exposed.BIASED in info.exposures:
        for name, cls in propensities.catalogue().items():
            if (info.needs_scale and not cls.scaled) or (info.of_lists and name != "column"):
                continue
            given_too = {kind: SIDE[kind] for kind in cls.uses if kind in SIDE}
            yield BiasedExposure(None if name == "column" else name, **given_too)


def estimator_instances(cls: type[Any]) -> list[Estimator]:
    several: dict[type[Any], list[Estimator]] = {
        DoublyRobust: [DoublyRobust(), DoublyRobust(GUESS)],
        Assisted: [Assisted(by, fewest=0, doubt=0) for by in Assistance],
    }
    return several.get(cls, [cls()])


def all_ways() -> Iterator[Way]:
    for cls in estimators.catalogue().values():
        for estimator in estimator_instances(cls):
            for exposure in exposures(cls.info):
                way = Way(estimator, exposure)
                if estimator.info.predicts and way.few and (way.fitted or exposure.rate is not None):
                    continue
                yield way
                if estimator.info.predicts and way.few:
                    continue
                if not way.fitted:
                    yield replace(way, interval=tr.Bootstrap(40, seed=SEED))
                random = exposure.exposed is Exposed.RANDOM and not cls.info.of_lists  # which no draw changes
                if cls.info.design and (random or exposure.exposed is Exposed.FULL):
                    yield replace(way, interval=tr.Design())


WAYS = list(all_ways())


def parametrized(numbers: Sequence[int]) -> pytest.MarkDecorator:
    """A test of these ways; those that differ only in how their parts are put together from others are slow."""
    seen: set[tuple[str, ...]] = set()
    slow = set()
    for number in random.Random("ways").sample(numbers, len(numbers)):
        estimator, exposed, interval = (
            repr(WAYS[number].estimator),
            WAYS[number].exposure.exposed,
            WAYS[number].interval,
        )
        kind = str(WAYS[number]).removesuffix(str(interval or ""))
        parts = {(estimator, exposed), (kind.split(str(exposed))[-1], exposed), (type(interval).__name__, exposed)}
        if parts <= seen:
            slow.add(number)
        seen |= parts
    cases = [
        pytest.param(number, id=str(WAYS[number]), marks=[pytest.mark.slow] if number in slow else [])
        for number in numbers
    ]
    return pytest.mark.parametrize("number", cases)


# ----------------------------------------------------------------------------------------------------------- measuring


def rows_of(way: Way) -> pl.DataFrame:
    shown = DRAWN[way.exposure.exposed]
    if getattr(way.exposure, "unlisted", None) is Unlisted.NEGATIVE:
        shown = shown & (RATING > 1)
    return frame(shown)


def read(rows: pl.DataFrame) -> Log:
    return tr.read(rows, positive=">1", users=Ids.of(USERS), name="labels")


@contextmanager
def prepared(way: Way, rows: pl.DataFrame) -> Iterator[tuple[Plan[LabelRows], JudgedChunk]]:
    with scratch() as space:
        plan, source = prepare_labels(way.question, MODELS, {"labels": read(rows), "exclude": EXCLUDE}, space=space)
        assert source.n_chunks == 1
        yield plan, source.chunk(0)
