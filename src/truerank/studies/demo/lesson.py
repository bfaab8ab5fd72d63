"""What the demo shows: recall per user and pooled recall, estimated from one random test set, beside the truth."""

from __future__ import annotations

from dataclasses import dataclass

from truerank.core.estimator import Estimator
from truerank.core.results import Results
from truerank.estimators.full import Full
from truerank.estimators.weighted import Pooled, Published
from truerank.evaluation.judged import evaluate
from truerank.exposure.kinds import RandomExposure
from truerank.metrics.recall import Recall
from truerank.studies.demo.made import NEWCOMERS, K, Made

MODELS = (NEWCOMERS, "ease", "item-knn", "popularity")
RANKS = ("first", "second", "third", "last")
COMMAND = "  truerank"  # how a line begins that is to be copied, and so is never wrapped


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval beside the truth.

    >>> Bar("ease", truth=0.3, low=0.1, high=0.2).covers_truth
    False
    """

    name: str
    truth: float
    low: float
    high: float

    @property
    def covers_truth(self) -> bool:
        return self.low <= self.truth <= self.high


@dataclass(frozen=True, slots=True)
class Picture:
    """Intervals under each other, on one axis that begins at 0."""

    title: str
    bars: tuple[Bar, ...]

    @property
    def n_covered(self) -> int:
        """How many of the intervals cover their truth."""
        return sum(bar.covers_truth for bar in self.bars)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question, and its answer in paragraphs and pictures."""

    question: str
    parts: tuple[str | Picture, ...]


def make_lesson(made: Made) -> Lesson:
    """Both kinds of recall, from one random test set, with intervals beside the truth."""
    world = made.world
    models = {name: made.models[name] for name in MODELS}
    complete = evaluate(models, world.truth, exclude=world.train, metrics=[Recall(K)], estimators=[Full(), Pooled()])
    sampled = evaluate(models, world.random, exclude=world.train, exposure=RandomExposure(), metrics=[Recall(K)],
                       estimators=[Published(), Pooled()])  # fmt: skip
    per_user = _picture(
        "per user: each user's own share, then the mean over users", complete, sampled, Full(), Published()
    )
    pooled = _picture(
        "pooled: of everything that anybody likes, the share found", complete, sampled, Pooled(), Pooled()
    )
    truth, estimate = _values(complete, Full()), _values(sampled, Published())
    loss = {name: 1 - estimate[name] / truth[name] for name in MODELS}
    others = sorted(loss[name] for name in MODELS if name != NEWCOMERS)
    true_rank, estimated_rank = (
        sorted(MODELS, key=lambda name: -values[name]).index(NEWCOMERS) for values in (truth, estimate)
    )
    n_counted, n_users = sampled.estimates[0].units, complete.estimates[0].units
    n = len(world.random) // len(world.users)
    return Lesson(
        f"Which recommender finds most of what users like with its first {K} items?",
        (
            f"{len(world.users):,} users and {len(world.items):,} items whose every rating is known, so the truth is "
            f"known too. The test: {n} random items per user are labelled. Recall@{K} is the share of liked items "
            "found.",
            "◆ the truth   ├──┤ estimate from the test (95% CI)",
            per_user,
            pooled,
            f"Per user, {per_user.n_covered} of {len(MODELS)} intervals cover the truth. Only users with a liked item "
            f"among their {n} count ({n_counted:,} of {n_users:,}), and those like many things. Three recommenders "
            f"lose alike ({others[0]:.0%} to {others[-1]:.0%}), so their order can survive: a biased number can look "
            f"right. {NEWCOMERS}, made for users who like few things, loses {loss[NEWCOMERS]:.0%}: truly "
            f"{RANKS[true_rank]}, it is estimated to be {RANKS[estimated_rank]}.",
            f"Pooled, no user is excluded, and {pooled.n_covered} of {len(MODELS)} intervals cover the truth: another "
            "question, and one that this test can answer.",
            f"The files are in {made.folder}/. Next, and then with your own files:",
            f"{COMMAND} evaluate {made.option('random')} --exposure random --exclude "
            f"{made.folder / 'train.parquet'} {made.scores('ease', 'popularity')}",
        ),
    )


def _picture(title: str, complete: Results, sampled: Results, truth: Estimator, estimator: Estimator) -> Picture:
    values = _values(complete, truth)
    estimates = {
        estimate.model: estimate for estimate in sampled.estimates if estimate.estimator == estimator.about.name
    }
    bars = [Bar(name, values[name], estimates[name].low, estimates[name].high) for name in MODELS]
    return Picture(title, tuple(sorted(bars, key=lambda bar: -bar.truth)))


def _values(results: Results, estimator: Estimator) -> dict[str, float]:
    return {
        estimate.model: estimate.value for estimate in results.estimates if estimate.estimator == estimator.about.name
    }
