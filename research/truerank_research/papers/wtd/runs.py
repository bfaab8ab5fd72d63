"""Settings chosen and recommenders tested, run by run: pieces of work, and means over runs with their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Pool, Scores
from truerank.inference.intervals import weights_of
from truerank.metrics.additive import Precision, Recall
from truerank.metrics.listwise import NDCG
from truerank.metrics.pairwise import AveragePrecision
from truerank.metrics.tables import unit_values_of
from truerank.models import Model
from truerank.models.neighbours import Preference, matrix_of
from truerank.ranking.candidates import Catalogue, Overlap, lay_out
from truerank.ranking.candidates import Setting as Layout
from truerank.ranking.kernel.rank import rank
from truerank.ranking.scores.scores import dense
from truerank_research.claims import Cell
from truerank_research.papers.wtd import RECOMMENDERS, TRUTH
from truerank_research.papers.wtd.setting import STRATEGIES, TUNED, Shape, Split, shape_of, split_of
from truerank_research.runner import Setting


def compare_similarities(setting: Setting, number: int) -> pl.DataFrame:
    """Recall@10 on the truth and on FULL in 18 forms of IB_KNN; neighbours chosen on the random validation part."""
    split = split_of(setting, number)
    train = split.train
    validation, truth, full = (lay_out_test(log, train) for log in (split.validation, split.truth, split.heldout))

    def recall(score: Floats, test: Layout) -> float:
        scores = dense(score, users=train.users.values, items=train.items.values)
        return float(np.nanmean(values_on(scores, test, [Recall(K)])[0]))

    rows = []
    for name, similarity, value in similarities(matrix_of(train, Preference.VALUES).toarray()):
        near = [nearest(similarity, k) for k in shape_of(setting).neighbours]
        used = (value != 0).astype(np.float64)
        forms = {
            "": [value @ part for part in near],
            ", squared": [value @ part**2 for part in near],
            ", weighted mean": [(value @ part) / np.maximum(used @ part, 1e-12) for part in near],
        }
        for form, scores in forms.items():
            best = max(scores, key=lambda score: recall(score, validation))
            rows.append((name + form, recall(best, truth), recall(best, full)))
    return pl.DataFrame(rows, schema=["similarity", "truth", "full"], orient="row")


def similarities(rating: Floats) -> Iterator[tuple[str, Floats, Floats]]:
    """Name, similarity of items, and the weights of a user's items; 0 is no rating."""
    rated = (rating > 0).astype(np.float64)
    liked = (rating > 3).astype(np.float64)
    mean = rating.sum(axis=1) / np.maximum(rated.sum(axis=1), 1)
    centred = (rating - mean[:, None]) * rated
    yield "cosine of ratings", cosine(rating), rating
    yield "cosine of who rated", cosine(rated), rating
    yield "Jaccard of who rated", jaccard(rated), rating
    yield "cosine of who liked", cosine(liked), liked
    yield "adjusted cosine", cosine(centred), rating
    yield "adjusted cosine, centred ratings", cosine(centred), centred


def cosine(columns: Floats) -> Floats:
    """Cosines of columns; of one without numbers, and with itself, 0.

    >>> cosine(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])).round(3).tolist()
    [[0.0, 0.707, 0.0], [0.707, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    norm = np.linalg.norm(columns, axis=0)
    return _without_self((columns.T @ columns) / np.maximum(np.outer(norm, norm), np.finfo(float).tiny))


def jaccard(columns: Floats) -> Floats:
    """Rows that two columns share, of those that one of them has."""
    both = columns.T @ columns
    count = np.diag(both)
    return _without_self(both / np.maximum(count[:, None] + count - both, 1))


def nearest(similarity: Floats, k: int) -> Floats:
    """The k largest of each row, if above 0; equals in the order of items.

    >>> nearest(np.array([[0.0, 0.5, 0.2]]), 1).tolist()
    [[0.0, 0.5, 0.0]]
    """
    largest = np.zeros_like(similarity)
    best = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    np.put_along_axis(largest, best, np.take_along_axis(similarity, best, axis=1), axis=1)
    return np.maximum(largest, 0.0)


def _without_self(similarity: Floats) -> Floats:
    other = similarity.copy()
    np.fill_diagonal(other, 0.0)
    return other


K = 10
METRICS: Mapping[str, Metric] = {
    "Recall": Recall(K), "Precision": Precision(K), "MAP": AveragePrecision(K), "nDCG": NDCG(K),
}  # fmt: skip
RANDOM, PRACTICE = "random part", "intervened part"  # the validation part
KEPT, EVERY = "truth, training rows kept", "all pairs"
RESAMPLES, LEVEL = 1000, 0.95


def lay_out_test(log: Log, train: Log, *, overlap: Overlap = Overlap.DROP) -> Layout:
    """Test rows over the catalogue without each user's training items; unlisted items are negative."""
    catalogue = Catalogue(train.items, float(len(train.items)))
    return lay_out(replace(log, complete=True), catalogue, exclude=train, overlap=overlap)


def values_on(scores: Scores, test: Layout, metrics: Sequence[Metric]) -> list[Floats]:
    """The value of each user who has a positive among the test rows, NaN for others."""
    ranks = rank(scores, test.labels, pools=[test.pools[Pool.CATALOGUE]])[0]
    values = unit_values_of([Recall(K), *metrics], test.labels, ranks)
    return [np.where(np.isnan(values[Recall(K)]), np.nan, values[metric]) for metric in metrics]


def tune_run(setting: Setting, number: int, dataset: str) -> pl.DataFrame:
    """Recall@10 of every setting of the tuned recommenders, on both kinds of validation part."""
    split = split_of(setting, number, dataset)
    _, aside = split.in_practice(seed=setting.seed + number)
    parts = {RANDOM: lay_out_test(split.validation, split.train), PRACTICE: lay_out_test(aside, split.train)}
    return tuning_table(split.train, parts, shape_of(setting), seed=setting.seed)


def tuning_table(train: Log, parts: Mapping[str, Layout], shape: Shape, *, seed: int) -> pl.DataFrame:
    rows = []
    for recommender in TUNED:
        for number, model in enumerate(shape.grid(recommender)):
            scores = model.fit(train, seed=seed)
            for part, test in parts.items():
                recall = float(np.nanmean(values_on(scores, test, [Recall(K)])))
                rows.append((recommender, number, part, recall))
    return pl.DataFrame(rows, schema=["recommender", "number", "part", "recall"], orient="row")


def best_settings(tuned: pl.DataFrame, part: str) -> dict[str, int]:
    """The number in its grid of the best setting of each recommender; the first of several."""
    best = tuned.filter(part=part).sort("recall", "number", descending=[True, False])
    first = best.group_by("recommender", maintain_order=True).agg(pl.col("number").first())
    return dict.fromkeys(RECOMMENDERS, 0) | dict(first.iter_rows())


def score_run(
    setting: Setting, number: int, dataset: str, part: str, numbers: tuple[tuple[str, int], ...]
) -> pl.DataFrame:
    """Every user's value of every metric and recommender, with the chosen settings, on every test set of a run."""
    split = split_of(setting, number, dataset)
    models = {name: shape_of(setting).grid(name)[chosen] for name, chosen in numbers}
    return user_values(models, split.train, dict(_test_sets(split, part, seed=setting.seed + number)), setting.seed)


def _test_sets(split: Split, part: str, *, seed: int) -> Iterator[tuple[str, Layout]]:
    heldout = split.heldout if part == RANDOM else split.in_practice(seed=seed)[0]
    yield TRUTH, lay_out_test(split.truth, split.train)
    yield KEPT, lay_out_test(split.truth, split.train, overlap=Overlap.KEEP)
    if split.every is not None:
        yield EVERY, lay_out_test(split.every, split.train)
    for name, strategy in STRATEGIES.items():
        yield name, lay_out_test(split.draw(strategy, heldout, seed=seed), split.train)


def user_values(models: Mapping[str, Model], train: Log, tests: Mapping[str, Layout], seed: int) -> pl.DataFrame:
    """A row for each recommender, test set, metric and user."""
    parts = []
    for recommender, model in models.items():
        scores = model.fit(train, seed=seed)
        for name, test in tests.items():
            for metric, values in zip(METRICS, values_on(scores, test, list(METRICS.values())), strict=True):
                columns = {"recommender": recommender, "test": name, "metric": metric}
                parts.append(pl.DataFrame({"value": values}).with_columns(**{k: pl.lit(v) for k, v in columns.items()}))
    return pl.concat(parts)


@dataclass(frozen=True, slots=True)
class RunMeans:
    """Means over runs of means over users, in every resample of users; the first is that of the data themselves.

    Splits of one dataset share their users, so a resample draws users once for all runs. NaN is left out.
    """

    weights: Floats
    values: Mapping[tuple[str, str, str], Floats]  # [users x runs] by recommender, test set and metric

    @classmethod
    def from_tables(cls, tables: Sequence[pl.DataFrame], *, seed: int) -> RunMeans:
        runs: dict[tuple[str, str, str], list[Floats]] = {}
        for table in tables:
            for (who, test, metric), rows in table.group_by("recommender", "test", "metric", maintain_order=True):
                runs.setdefault((str(who), str(test), str(metric)), []).append(rows["value"].to_numpy())
        values = {key: np.stack(columns, axis=1) for key, columns in runs.items()}
        n_users = len(next(iter(values.values())))
        keys, numbers = Ids.of(np.arange(n_users)).keys(), np.arange(RESAMPLES, dtype=np.uint64)
        resamples = weights_of(keys, numbers, seed=seed, purpose="users of runs")
        return cls(np.concatenate([np.ones((1, n_users)), resamples]), values)

    def mean(self, recommender: str, test: str, metric: str = "Recall") -> Floats:
        value = self.values[recommender, test, metric]
        defined = ~np.isnan(value)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (self.weights @ np.where(defined, value, 0.0)) / (self.weights @ defined.astype(np.float64))
        return np.asarray(means.mean(axis=1))

    def percent(self, recommender: str, test: str, *, truth: str = TRUTH, metric: str = "Recall") -> Floats:
        """The difference in percent of the mean on a test set from that on the truth: a ratio of means."""
        return np.asarray(100 * (self.mean(recommender, test, metric) / self.mean(recommender, truth, metric) - 1))


def interval_cell(
    table: str, row: str, column: str, values: Floats, printed: float | None = None, tolerance: float | None = None
) -> Cell:
    """The value, and the percentiles of its resamples."""
    low, high = np.nanquantile(values[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Cell(table, row, column, float(values[0]), printed, float(low), float(high), tolerance)
