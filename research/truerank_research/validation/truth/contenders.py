"""Who is measured: an estimator of one metric, as the sums of a draw and a form of the library.

A contender that joins is one more entry of `CONTENDERS`: its terms are those that its estimator gives for the same rows
(a test holds each to that), made for many draws from the few rows that are in lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.clusters import Clusters
from truerank.core.estimator import Groups, learn
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Candidates, JudgedChunk, Pool
from truerank.core.terms import Smooth, known_total, ratio, smooth
from truerank.estimators.assistance import AssistedMean, AssistedShare, sampled
from truerank.estimators.assisted import Assisted
from truerank.estimators.predictions import LogRates
from truerank.estimators.ratios import TwoStrata
from truerank.metrics.additive import Precision
from truerank_research.validation.truth.known import FIRST, KnownWorld, Matrix

LOG = "log"
FEWEST, DOUBT = Assisted().fewest, Assisted().doubt


@dataclass(frozen=True, slots=True, eq=False)
class ShownRows:
    """One draw: users, with repeats, and the items of each that were shown, [users x judged]."""

    world: KnownWorld
    user: Ints
    item: Ints
    seed: int
    made: dict[object, Any] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> tuple[int, int]:
        return len(self.user), int(self.item.shape[1])

    @property
    def stands_for(self) -> float:
        """α = N / N-bar."""
        return self.world.n_items / self.size[1]

    @property
    def label(self) -> Bools:
        return self._once("label", lambda: self.world.labels[self.user[:, None], self.item])

    def inside(self, model: str, k: int) -> Bools:
        """Which shown items are in the top k of a model."""
        rank = self._once(("rank", model), lambda: self.world.rank[model][self.user[:, None], self.item])
        return self._once(("inside", model, k), lambda: rank < k)

    def _once(self, key: object, make: Callable[[], Matrix]) -> Matrix:
        if key not in self.made:
            self.made[key] = make()
        stored: Matrix = self.made[key]
        return stored

    def count(self, rows: Bools) -> Floats:
        return np.asarray(rows.sum(axis=1), dtype=np.float64)

    def foreseen(self, by: str) -> Floats:
        """What is predicted of the shown rows."""
        if by == LOG:
            return self._once("rows of the log", lambda: self._predicted(self.item))
        whole = self.world.said(by)
        return self._once(("rows", by), lambda: whole[self.user[:, None], self.item].astype(np.float64))

    def listed(self, by: str, model: str, k: int) -> tuple[Floats, Floats]:
        """Sums of what is predicted over the top k of each user, and over all items."""
        if by != LOG:
            running, every = self.world.running(by, model)
            return running[self.user, k - 1], every[self.user]
        (item, fold, activity), best = self._rates(), self.world.best[model][self.user].astype(np.int64)
        running = self._once(("best of the log", model), lambda: np.cumsum(self._predicted(best), axis=1))
        return running[:, k - 1], self._once("all of the log", lambda: item.sum(axis=1)[fold] * activity)

    def _predicted(self, items: Ints) -> Floats:
        """What rates in these rows predict of some items of each user, [users x some]."""
        item, fold, activity = self._rates()
        return np.asarray(item[fold[:, None], items] * activity[:, None])

    def chunk(self) -> JudgedChunk:
        """The shown rows as the library has them."""
        n, judged = self.size
        log = Log(
            users=Ids.of(np.arange(n)),
            items=Ids.of(np.arange(self.world.n_items)),
            unit=np.repeat(np.arange(n), judged),
            item=self.item.ravel(),
            rewards={"label": self.label.ravel().astype(np.float64)},
        )
        return JudgedChunk(log, {Pool.CATALOGUE: Candidates(n, float(self.world.n_items))})

    def _rates(self) -> tuple[Floats, Ints, Floats]:
        """Rates of items by fold, and the fold and rate of each user, from these very rows; made by the library."""
        if LOG not in self.made:
            chunk, rates = self.chunk(), LogRates()
            learner = rates.learner(Precision(1))
            users = {"users": chunk.labels.users}
            learned = learn([learner], lambda work: [work(chunk)], groups=Groups(self.seed, "one"), facts=users)
            items, active, folds = learned[learner]
            fold = folds.at(chunk.labels.users.keys())
            self.made[LOG] = items, fold, active[fold, 0]  # nothing is excluded, so all users are equally active
        stored: tuple[Floats, Ints, Floats] = self.made[LOG]
        return stored


Terms = Callable[[ShownRows, str, int], Smooth]


@dataclass(frozen=True, slots=True)
class Contender:
    """An estimator of a metric: its terms for a draw, a model and a cut-off; `of_users` where it estimates a mean of
    users' recalls, not the share of all relevant pairs."""

    name: str
    metric: str
    terms: Terms
    of_users: bool = False

    def truth(self, world: KnownWorld, model: str, k: int) -> float:
        """What it is to come close to, over all users and items."""
        hits = (world.labels & (world.rank[model] < k)).sum(axis=1)
        if self.metric == "Precision":
            return float(hits.mean() / k)
        relevant = world.labels.sum(axis=1)
        if self.of_users:
            return float((hits[relevant > 0] / relevant[relevant > 0]).mean())
        return float(hits.sum() / relevant.sum())

    def truths(self, world: KnownWorld, k: int) -> dict[str, float]:
        """The true value of every model, and its difference from that of the first."""
        values = {model: self.truth(world, model, k) for model in world.rank}
        return values | {
            f"{model} - {FIRST}": value - values[FIRST] for model, value in values.items() if model != FIRST
        }


def _smooth(form: Any, draw: ShownRows, *columns: Floats) -> Smooth:
    return smooth(form, columns, None, Clusters.numbered(len(draw.user)), exact=False, rows=None, weighting=None)


def _hits(draw: ShownRows, model: str, k: int) -> Floats:
    return draw.count(draw.inside(model, k) & draw.label)


def horvitz_thompson(draw: ShownRows, model: str, k: int) -> Smooth:
    return ratio(draw.stands_for / k * _hits(draw, model, k), np.ones(len(draw.user)))


def hajek(draw: ShownRows, model: str, k: int) -> Smooth:
    each = draw.stands_for / k
    listed = draw.count(draw.inside(model, k))
    return known_total(each * _hits(draw, model, k), each * listed, np.ones(len(draw.user)))


def pooled(draw: ShownRows, model: str, k: int) -> Smooth:
    return ratio(draw.stands_for * _hits(draw, model, k), draw.stands_for * draw.count(draw.label))


def published(draw: ShownRows, model: str, k: int) -> Smooth:
    relevant = draw.count(draw.label)
    share = np.divide(_hits(draw, model, k), relevant, out=np.zeros(len(relevant)), where=relevant > 0)
    return ratio(share, np.ones(len(relevant)), defined=relevant > 0)


def post_stratified(draw: ShownRows, model: str, k: int) -> Smooth:
    hits, relevant, listed = _hits(draw, model, k), draw.count(draw.label), draw.count(draw.inside(model, k))
    n, judged = draw.size
    sums = np.stack([hits, relevant, listed, relevant - hits, judged - listed])
    known = (np.full(n, float(k)), np.full(n, float(draw.world.n_items - k)))
    return _smooth(TwoStrata(), draw, *(draw.stands_for * sums), *known)


def assisted(draw: ShownRows, model: str, k: int, *, by: str, recall: bool = False) -> Smooth:
    """By what is said of every pair; the sums of rows in lists are made from these rows alone."""
    n, predicted, inside = len(draw.user), draw.foreseen(by), draw.inside(model, k)
    unit = np.nonzero(inside)[0]
    worth = np.full(len(unit), 1.0 if recall else 1.0 / k)
    parts = _sampled(draw, draw.label[inside], worth, predicted[inside])
    top = [sums_by(unit, part, n=n) for part in parts]
    of_list, of_all = draw.listed(by, model, k)
    ones = np.ones(n)
    if not recall:
        return _smooth(AssistedMean(FEWEST, DOUBT), draw, *top, ones, ones, of_list / k, ones)
    if ("sums", by) not in draw.made:
        every = _sampled(draw, draw.label, np.ones(draw.item.shape), predicted)
        draw.made["sums", by] = np.stack([part.sum(axis=1) for part in every])
    rest = draw.made["sums", by] - np.stack(top)
    relevant = draw.stands_for * draw.count(draw.label)
    places, others = k * ones, (draw.world.n_items - k) * ones
    return _smooth(
        AssistedShare(FEWEST, DOUBT), draw, top[0], relevant, *top[1:], *rest,
        places, places, of_list, others, others, of_all - of_list,
    )  # fmt: skip


def _sampled(draw: ShownRows, label: Bools, worth: Floats, predicted: Floats) -> list[Floats]:
    """What shown rows add to the sums of assisted estimators."""
    weight = np.full(label.shape, draw.stands_for)
    return [weight * part for part in sampled(label.astype(np.float64), worth, predicted, weight)]


CONTENDERS: tuple[Contender, ...] = (
    Contender("horvitz-thompson", "Precision", horvitz_thompson),
    Contender("hajek", "Precision", hajek),
    Contender("assisted by the log", "Precision", partial(assisted, by=LOG)),
    Contender("assisted by scores", "Precision", partial(assisted, by="scores")),
    Contender("assisted by a good judge", "Precision", partial(assisted, by="good")),
    Contender("assisted by an eager judge", "Precision", partial(assisted, by="eager")),
    Contender("assisted by a useless judge", "Precision", partial(assisted, by="useless")),
    Contender("published", "Recall", published, of_users=True),
    Contender("pooled", "Recall", pooled),
    Contender("post-stratified", "Recall", post_stratified),
    Contender("assisted by a good judge", "Recall", partial(assisted, by="good", recall=True)),
)
