"""As many items per user as a random test set has, chosen for the models that are compared: how much more they tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from truerank.core.estimator import Estimator
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.core.results import Estimate
from truerank.core.values import text_of
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.hajek import Hajek
from truerank.evaluation.designing import design_exposure
from truerank.evaluation.judged import evaluate
from truerank.exposure.kinds import DesignedExposure, Exposure, FullExposure, RandomExposure
from truerank.metrics.precision import Precision
from truerank.studies.demo.chapter import Bar, Chapter, Picture, Say, command
from truerank.studies.demo.made import K, Made

METRIC = Precision(K)
KNOWN, UNKNOWN = ("ease", "popularity"), "narrow-knn"


@dataclass(frozen=True, slots=True)
class TargetedTopic:
    """Two recommenders are known when items are chosen and one is not; the same number of items as at random."""

    name: ClassVar[str] = "targeted"
    about: ClassVar[str] = "A few items per user may be shown: which ones tell most."

    __str__ = text_of

    def tell(self, made: Made, *, seed: int, say: Say | None) -> Chapter:
        if say is not None:
            say("choosing items to show", 0, 1)
        world = made.world
        n = len(world.random) // len(world.users)
        models = {name: made.fitted[name] for name in (*KNOWN, UNKNOWN)}
        planned = design_exposure(
            {name: models[name] for name in KNOWN}, metrics=[METRIC], per_user=n, exclude=world.train, seed=seed
        )
        design = planned.design
        rows = world.truth.select(design.user * len(world.items) + design.item)
        truth = _found(models, world.truth, made, FullExposure(), Full())
        uniform = _found(models, world.random, made, RandomExposure(), Hajek())
        chosen = _found(models, rows, made, DesignedExposure(design), Hajek())
        bars = [
            Bar.of(f"{name}, {how}", each, truth=truth[name].value)
            for name in models
            for how, each in (("at random", uniform[name]), ("chosen", chosen[name]))
        ]
        ratio = {name: (float(chosen[name].stderr or 0.0) / float(uniform[name].stderr or 1.0)) ** 2 for name in models}
        return Chapter(
            "Which items to show",
            (
                f"You may show {n} items to each of {len(world.users):,} users, to learn which recommender is better. "
                f"At random, a list of {K} out of {len(world.items):,} is hardly ever met. truerank can choose "
                f"instead: what {' and '.join(KNOWN)} recommend is shown more often, with chances that are known and "
                "never 0, so that the result is still true of everything.",
                Picture(f"{METRIC} from {n} items per user, with the truth", tuple(bars)),
                f"The variance over users is {' and '.join(f'{ratio[name]:.2f}' for name in KNOWN)} of that of random "
                f"items for {' and '.join(KNOWN)}, and {ratio[UNKNOWN]:.2f} for {UNKNOWN}, which was not known when "
                "items were chosen.",
                command(
                    f"truerank plan exposure --allocate {made.scores(*KNOWN)} --exclude "
                    f"{made.folder / 'train.parquet'} --per-user {n} --metric {METRIC} --out design"
                ),
            ),
        )


def _found(
    models: Mapping[str, Scores], rows: Log, made: Made, exposure: Exposure, estimator: Estimator
) -> dict[str, Estimate]:
    results = evaluate(
        models, rows, exclude=made.world.train, exposure=exposure, metrics=[METRIC], estimators=[estimator]
    )
    return {each.model: each for each in results.estimates}
