"""The demo: a simulated dataset whose truth is known, one question, one picture, one lesson; and its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from truerank.core.arrays import Bools
from truerank.core.estimator import Estimator
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.core.record import record
from truerank.core.results import Estimate, Results
from truerank.core.rng import cell_uniforms
from truerank.estimators.full import Full
from truerank.estimators.weighted import Pooled, Published
from truerank.evaluation.labels import evaluate
from truerank.exposure.expose import expose_independently
from truerank.io.atomic_write import MARKER, FolderKind, Marker, check_folder, read_marker, whole_file, whole_folder
from truerank.io.files import write
from truerank.metrics.additive import Recall
from truerank.models import Model
from truerank.models.baselines import Popularity, Random
from truerank.models.least_squares import EASE
from truerank.models.neighbours import ItemKNN
from truerank.ranking.scores.files import write_scores
from truerank.ranking.scores.scores import dense
from truerank.simulation.dataset import TABLES, DatasetSettings, SimulatedDataset, simulate_dataset, write_tables
from truerank.simulation.feed import FeedSettings
from truerank.simulation.feed_truth import FOLDER as FEED_FOLDER
from truerank.simulation.feed_truth import write_feed

K = 5
NOTE = "demo.json"
FOLDER = FolderKind(
    "demo",
    (*TABLES, "biased.parquet", "scores/*.npz", *(f"feed/{name}" for name in (*FEED_FOLDER.files, MARKER)), NOTE),
)
FEED = FeedSettings(sessions=4000)
NEWCOMERS = "newcomers"
FEW = 0.4  # the share of users, those who like the least, whose taste `newcomers` knows
KNOWN = 0.6  # the share of what they like that it knows


@record(eq=False)
class Demo:
    """A dataset, recommenders fitted to its log and one that is made up, a biased log, and where the files are."""

    dataset: SimulatedDataset
    fitted: Mapping[str, Scores]
    newcomers: Scores
    biased: Log
    folder: Path

    @property
    def models(self) -> dict[str, Scores]:
        """All recommenders."""
        return {**self.fitted, NEWCOMERS: self.newcomers}

    @property
    def feed(self) -> Path:
        return self.folder / "feed"

    def scores(self, *names: str) -> str:
        """The options of a command that name the scores of some recommenders."""
        return " ".join(f"--scores {name}={self.folder / 'scores' / name}.npz" for name in names)

    def option(self, name: str) -> str:
        """A file of ratings, and how they become labels."""
        return f"{self.folder / name}.parquet --positive '>3'"


def make_demo(folder: Path, *, seed: int) -> Demo:
    """Draw the dataset of a seed and fit recommenders; nothing is written."""
    dataset = simulate_dataset(DatasetSettings(), seed=seed)
    return Demo(dataset, fit_models(dataset.train, seed=seed), serve_newcomers(dataset, seed=seed),
                biased_log(dataset, seed=seed), folder)  # fmt: skip


def fit_models(train: Log, *, seed: int) -> dict[str, Scores]:
    """Five simple recommenders of different kinds."""
    models: dict[str, Model] = {
        "random": Random(),
        "popularity": Popularity(),
        "narrow-knn": ItemKNN(neighbours=5),
        "item-knn": ItemKNN(neighbours=100),
        "ease": EASE(),
    }
    return {name: model.fit(train, seed=seed) for name, model in models.items()}


def serve_newcomers(dataset: SimulatedDataset, *, seed: int) -> Scores:
    """A recommender that asks users who like few things what they like, and gives what is popular to everybody else.

    Made from the truth: for the 40 % of users who like the fewest unseen items, a random 60 % of these come first.
    """
    liked = dataset.rating > 3
    number = (liked & unseen(dataset)).sum(axis=1)
    few = number <= np.quantile(number, FEW)
    uniform = cell_uniforms(seed, NEWCOMERS, dataset.users.keys()[:, None], dataset.items.keys())
    known = liked & few[:, None] & (uniform < KNOWN)
    return dense(liked.mean(axis=0) + known, users=dataset.users.values, items=dataset.items.values)


def unseen(dataset: SimulatedDataset) -> Bools:
    """Which pairs were not shown for training, [users x items]."""
    result = np.ones(dataset.rating.shape, dtype=bool)
    result[dataset.train.user, dataset.train.item] = False
    return result


def biased_log(dataset: SimulatedDataset, *, seed: int) -> Log:
    """What a deployed system shows of the unseen pairs: popular items up to 13 times as often, liked ones 1.5 times."""
    pairs = dataset.truth.select(np.flatnonzero(unseen(dataset).ravel()))
    liked = dataset.rating > 3
    popularity = liked.mean(axis=0) / liked.mean(axis=0).max()
    probability = (0.02 + 0.24 * popularity) * np.where(liked, 1.5, 1.0)
    return expose_independently(pairs, probability[pairs.user, pairs.item], seed=seed)


def write_demo(demo: Demo, *, seed: int, force: bool, say: Callable[[str, int, int], None] | None) -> None:
    """Leave the files in their folder, unless those of the same demo are there; `force` replaces those of another."""
    if _is_written(demo.folder, seed=seed):
        return
    with whole_folder(demo.folder, kind=FOLDER, force=force) as place:
        write_tables(demo.dataset, place)
        # one value column, as in the other files: labels follow from ratings
        write(replace(demo.biased, rewards={"rating": demo.biased.rewards["rating"]}), place / "biased.parquet")
        (place / "scores").mkdir()
        for name, scores in demo.models.items():
            write_scores(scores, place / "scores" / f"{name}.npz")
        write_feed(FEED, place / "feed", seed=seed, say=say)
        with whole_file(place / NOTE) as temporary:
            temporary.write_bytes(msgspec.json.encode({"seed": seed}))


def _is_written(folder: Path, *, seed: int) -> bool:
    """Whether a folder holds the demo of this seed and version, whatever else was put beside its files."""
    marker = read_marker(folder)
    if (
        marker is None
        or marker.kind != FOLDER.name
        or marker.made_by != Marker(FOLDER.name, {}).made_by
        or NOTE not in marker.files
    ):
        return False
    check_folder(folder, kind=FOLDER.name, expected="a folder of `truerank demo`")
    return bool(msgspec.json.decode((folder / NOTE).read_bytes()) == {"seed": seed})


MODELS = (NEWCOMERS, "ease", "item-knn", "popularity")
RANKS = ("first", "second", "third", "last")
COMMAND = "  truerank"  # how a line begins that is to be copied, and so is never wrapped


@record
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


@record
class Picture:
    """Intervals under each other, on one axis that begins at 0."""

    title: str
    bars: tuple[Bar, ...]

    @property
    def n_covered(self) -> int:
        """How many of the intervals cover their truth."""
        return sum(bar.covers_truth for bar in self.bars)


@record
class Lesson:
    """A question, and its answer in paragraphs and pictures."""

    question: str
    parts: tuple[str | Picture, ...]


def make_lesson(demo: Demo) -> Lesson:
    """Both kinds of recall, from one random test set, with intervals beside the truth."""
    dataset = demo.dataset
    models = {name: demo.models[name] for name in MODELS}
    question: dict[str, Any] = {"exclude": dataset.train, "metrics": [Recall(K)]}
    complete = evaluate(models, dataset.truth, estimators=[Full(), Pooled()], **question)
    sampled = evaluate(models, dataset.random, exposure="random", estimators=[Published(), Pooled()], **question)
    per_user = _picture(
        "per user: each user's own share, then the mean over users", complete, sampled, Full(), Published()
    )
    pooled = _picture(
        "pooled: of everything that anybody likes, the share found", complete, sampled, Pooled(), Pooled()
    )
    truth, estimated = _estimates(complete, Full()), _estimates(sampled, Published())
    loss = {name: 1 - estimated[name].value / truth[name].value for name in MODELS}
    others = sorted(loss[name] for name in MODELS if name != NEWCOMERS)
    true_rank, estimated_rank = (
        sorted(MODELS, key=lambda name: -values[name].value).index(NEWCOMERS) for values in (truth, estimated)
    )
    n_counted, n_users = sampled.estimates[0].units, complete.estimates[0].units
    n = len(dataset.random) // len(dataset.users)
    return Lesson(
        f"Which recommender finds most of what users like with its first {K} items?",
        (
            f"{len(dataset.users):,} users and {len(dataset.items):,} items whose every rating is known, so the truth "
            f"is known too. The test: {n} random items per user are labelled. Recall@{K} is the share of liked items "
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
            f"The files are in {demo.folder}/. Next, and then with your own files:",
            f"{COMMAND} evaluate {demo.option('random')} --exposure random --exclude "
            f"{demo.folder / 'train.parquet'} {demo.scores('ease', 'popularity')}",
        ),
    )


def _picture(title: str, complete: Results, sampled: Results, truth: Estimator, estimator: Estimator) -> Picture:
    truths, estimates = _estimates(complete, truth), _estimates(sampled, estimator)
    bars = [Bar(name, truths[name].value, estimates[name].low, estimates[name].high) for name in MODELS]
    return Picture(title, tuple(sorted(bars, key=lambda bar: -bar.truth)))


def _estimates(results: Results, estimator: Estimator) -> dict[str, Estimate]:
    return {estimate.model: estimate for estimate in results.estimates if estimate.estimator == estimator.info.name}
