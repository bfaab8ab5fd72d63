"""What is recommended, whatever its labels: the top of every list."""

from __future__ import annotations

import numpy as np

from truerank.core.counted import CountedItems, side_by_side
from truerank.core.errors import RefusedError
from truerank.core.estimator import Estimator, EstimatorInfo, ObservedUnits, Request
from truerank.core.log import Pairs
from truerank.core.metric import Metric, OfCounts, OfLists, PerList
from truerank.core.ranking import JudgedChunk, Pool, RankView, TopLists
from truerank.core.record import record
from truerank.core.terms import Terms, ratio
from truerank.core.wording import option
from truerank.estimators.refusals import LABELS
from truerank.metrics.discounts import relevant
from truerank.metrics.listed import ListedItems, ListFacts
from truerank.ranking.kernel.rank import Aligned
from truerank.ranking.kernel.top import top_lists


@record
class RecommendedLists(Estimator):
    """Metrics of the top K that each user of the evaluation is recommended, after exclusions; no label is looked at.

    They need no label (Serendipity does), so they are the same under every exposure, and nothing is estimated but what
    other users would get. Users without a list are left out, and counted. Equal scores are put in one order that
    follows from seed, user and item, under every tie policy: most of these metrics have no closed form over all orders.

    >>> import polars as pl, truerank as tr
    >>> lists = pl.DataFrame({"user": [1, 1, 2, 2], "item": ["a", "b", "a", "c"], "rank": [1, 2, 1, 2]})
    >>> judged = pl.DataFrame({"user": [1, 2], "item": ["d", "a"], "label": [0, 1]})
    >>> how = {"exposure": "random", "metrics": ["Coverage@2"], "items": ["a", "b", "c", "d"]}
    >>> tr.evaluate({"m": lists}, judged, **how).estimates[0].value
    0.75
    """

    info = EstimatorInfo(
        name="lists",
        exposures=LABELS,
        assumptions=("lists are what would be shown: the top K after exclusions, equal scores in one drawn order",),
        design=True,
        of_lists=True,
        left_out="have no list that the metric is defined for",
    )

    def refusal(self, context: Metric) -> str | None:
        if isinstance(context, OfLists):
            return None
        return (
            f"it looks at lists, not at labels, which this metric is about; leave "
            f"{option('estimator', 'estimators=')} out, or name another."
        )

    def estimand(self, request: Request, unit: str = "user") -> str:
        return str(request.metric.on_lists)

    def term(self, units: ObservedUnits, request: Request) -> Terms:
        chunk, metric, k = units.chunk, request.metric, request.metric.k
        deepest = max(asked.metric.k for asked in units.requests)
        lists = units.once(
            k, lambda: listed(chunk, top_of(chunk, units.view, deepest).top(k), units.learned.facts["lists"])
        )
        if isinstance(metric, PerList):
            above, below = metric.sums(lists)
            defined = ~np.isnan(above)
            sums = (np.where(defined, part, 0.0) for part in (above, below))
            return ratio(*sums, defined=defined, clusters=chunk.clusters, exact=True)
        if isinstance(metric, OfCounts):
            top = lists.lists
            items = side_by_side(top.unit, top.item, n=len(top.length), width=k)
            return CountedItems(metric.form(lists.facts), items, top.length > 0, len(units.log.items), chunk.clusters)
        raise RefusedError(f"{metric} is no metric of lists.")


def top_of(chunk: JudgedChunk, view: RankView, k: int) -> TopLists:
    """The lists of a chunk, as one model sees them; found once for all that look at them."""
    if view.scores is None:
        raise RefusedError("lists needs the scores of whole lists, not only the ranks of labelled items.")
    if ("top", k) not in view.listed:
        log = chunk.labels
        aligned = Aligned.of(view.scores, users=log.users, items=log.items, name=view.name)
        pool = chunk.pools[Pool.CATALOGUE]
        view.listed["top", k] = top_lists(aligned, log, pool=pool, k=k, seed=view.seed, name=view.name)
    lists: TopLists = view.listed["top", k]
    return lists


def listed(chunk: JudgedChunk, lists: TopLists, facts: ListFacts) -> ListedItems:
    """Lists with what metrics ask about them."""
    log, unit = chunk.labels, lists.unit
    if log.rewards:
        rows = relevant(log)
        liked = Pairs.of(log.unit[rows], log.item[rows], n_units=log.n_units)
        hit = liked.hold(unit, lists.item)
    else:
        hit = np.zeros(len(unit), dtype=bool)
    return ListedItems(lists, hit, facts, chunk.pools[Pool.CATALOGUE].exclude)
