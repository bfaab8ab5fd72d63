"""A few labels and a judge that is often wrong: the labels alone, the judge alone, and both together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.chance import generator
from truerank.core.results import Estimate
from truerank.core.values import text_of
from truerank.estimators.judged.assisted import Assisted
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.hajek import Hajek
from truerank.estimators.judged.judge_alone import JudgeAlone
from truerank.evaluation.judged import evaluate
from truerank.metrics.precision import Precision
from truerank.studies.demo.chapter import Bar, Chapter, Picture, Say, command
from truerank.studies.demo.made import K, Made

METRIC = Precision(K)
MODELS = ("ease", "popularity")
WAYS = {Hajek.about.name: "labels alone", JudgeAlone.about.name: "judge alone", Assisted.about.name: "both"}
FINDS, MISTAKES = 0.8, 0.1  # of relevant pairs, and of others that it calls relevant


@dataclass(frozen=True, slots=True)
class JudgesTopic:
    """Of every user a few random items have labels; a judge says something of every pair."""

    name: ClassVar[str] = "judges"
    about: ClassVar[str] = "A few labels and a judge that is often wrong, a language model say."

    __str__ = text_of

    def tell(self, made: Made, *, seed: int, say: Say | None) -> Chapter:
        if say is not None:
            say("asking a judge", 0, 1)
        world = made.world
        n = len(world.random) // len(world.users)
        models = {name: made.fitted[name] for name in MODELS}
        full = evaluate(models, world.truth, exclude=world.train, metrics=[METRIC], estimators=[Full()])
        truth = {each.model: each.value for each in full.estimates}
        results = evaluate(
            models,
            world.random,
            exposure="random",
            exclude=world.train,
            metrics=[METRIC],
            estimators=[Hajek(), Assisted()],
            judge=_judged(made, seed=seed),
        )
        found = {(each.model, each.estimator): each for each in results.estimates}
        bars = [
            Bar.of(f"{name}, {words}", found[name, way], truth=truth[name])
            for name in MODELS
            for way, words in WAYS.items()
        ]
        best = MODELS[0]
        off = found[best, JudgeAlone.about.name].value - truth[best]
        ratio = {
            name: (_error(found[name, Assisted.about.name]) / _error(found[name, Hajek.about.name])) ** 2
            for name in MODELS
        }
        return Chapter(
            "Labels and a judge",
            (
                f"{n} random items of each of {len(world.users):,} users have labels. A judge, a language model say, "
                f"labels everything: it finds {FINDS:.0%} of what is relevant, and calls {MISTAKES:.0%} of the rest "
                "relevant too. truerank asks no judge; it reads what one has said.",
                Picture(f"{METRIC} by labels, by the judge, and by both, with the truth", tuple(bars)),
                f"The judge alone looks sure and is off by {off:+.3f} for {best}: its mistakes are no chance among "
                "users, so no interval of it knows of them. Both together are as true as the labels, because these "
                f"correct the judge, and steadier: {' and '.join(f'{ratio[name]:.2f}' for name in MODELS)} of the "
                f"variance of labels alone for {' and '.join(MODELS)}. A useless judge would do no harm.",
                command(
                    f"truerank evaluate {made.option('random')} --exposure random "
                    f"--exclude {made.folder / 'train.parquet'} {made.scores(*MODELS)} "
                    f"--metric {METRIC} --estimator assisted --judge JUDGE.parquet"
                ),
            ),
        )


def _judged(made: Made, *, seed: int) -> pl.DataFrame:
    """What the judge says of every pair of the world."""
    liked = made.world.rating > 3
    chance = generator(seed, "demo judge").random(liked.shape)
    user, item = (axis.ravel() for axis in np.indices(liked.shape))
    said = chance < np.where(liked, FINDS, MISTAKES)
    users, items = made.world.users.values, made.world.items.values
    return pl.DataFrame({"user": users[user], "item": items[item], "label": said.ravel().astype(np.int64)})


def _error(estimate: Estimate) -> float:
    return float(estimate.stderr or 0.0)
