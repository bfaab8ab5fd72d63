"""Our own contenders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import truerank as tr
from benchmarks.workloads import CUTOFFS, Array, RanksWork, lists_work
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.metric import Metric
from truerank.core.options import Denominator
from truerank.core.ranking import Candidates
from truerank.exposure.kinds import FullExposure, Unlisted
from truerank.metrics.additive import Precision, Recall
from truerank.metrics.listwise import NDCG, ReciprocalRank
from truerank.metrics.pairwise import AveragePrecision
from truerank.metrics.tables import unit_values_of
from truerank.ranking.kernel.rank import rank

METRICS: list[Metric] = [
    make(k) for k in CUTOFFS for make in (Recall, Precision, NDCG, lambda k: AveragePrecision(k, Denominator.POSITIVES))
]
METRICS.append(ReciprocalRank(100))


def lists_kernel(n_users: int) -> Callable[[], Any]:
    """From lists and relevant items in positions to the 17 values of every user."""
    work = lists_work(n_users)
    user, item, score = work.shuffled()
    lists = tr.scores.lists(pl.DataFrame({"user": user, "item": item, "score": score}))
    catalogue = Ids.of(np.arange(work.n_items))
    log = _log(work.relevant_user, work.relevant_item, n_users, catalogue)
    pool = Candidates(n_users, float(work.n_items))

    def run() -> Any:
        ranks = rank(lists, log, pools=[pool], threads=1)[0]
        return unit_values_of(METRICS, log, ranks)

    return run


def lists_end_to_end(n_users: int) -> Callable[[], Any]:
    """From a shuffled table user, item, score to estimates with intervals."""
    work = lists_work(n_users)
    user, item, score = work.shuffled()
    table = pl.DataFrame({"user": user, "item": item, "score": score})
    truth = pl.DataFrame(
        {"user": work.relevant_user, "item": work.relevant_item, "label": np.ones(len(work.relevant_user), np.int8)}
    )
    catalogue = Ids.of(np.arange(work.n_items))
    exposure = FullExposure(Unlisted.NEGATIVE)
    return lambda: tr.evaluate(
        {"model": tr.scores.lists(table)}, tr.read(truth), exposure=exposure, metrics=METRICS, items=catalogue
    )


def ranks_setting(work: RanksWork) -> tuple[Any, Log, Candidates]:
    """Scores, judged rows and candidates of workload B."""
    n_users, n_items = len(work.user_factors), len(work.item_factors)
    scores = tr.scores.factors(work.user_factors, work.item_factors)
    every = np.arange(n_users)
    log = _log(np.repeat(every, work.relevant.shape[1]), work.relevant.ravel(), n_users, scores.items)
    excluded = Pairs.of(np.repeat(every, work.excluded.shape[1]), work.excluded.ravel(), n_units=n_users)
    return scores, log, Candidates(n_users, float(n_items), exclude=excluded)


def _log(user: Array, item: Array, n_users: int, items: Ids) -> Log:
    return Log(
        users=Ids.of(np.arange(n_users)),
        items=items,
        unit=user,
        item=item,
        rewards={"label": np.ones(len(user))},
        complete=True,
    )


CONTENDERS = {"truerank": lists_kernel, "truerank-end-to-end": lists_end_to_end}
