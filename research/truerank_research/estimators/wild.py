"""User weights that make mean recall exactly unbiased, where users like few things; for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb
from typing import ClassVar

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.estimator import EstimatorInfo
from truerank.core.terms import Smooth, ratio
from truerank.estimators.rows import Sample
from truerank_research.estimators.mean_recall import MeanRecall, describe


@dataclass(frozen=True, slots=True)
class Wild(MeanRecall):
    """(1 / U) Σ g(n) m / n over all users with a judged item, exactly unbiased; who likes nothing counts as 0.

    E[g(n) m / n] is a user's recall, and E[g(n)] is 1 if the user has a relevant item, else 0. For a fixed number of
    judged items g(n) = 1 - Σ_{j=0..n} (-1)^j C(n, j) N_(j) / N-bar_(j), falling factorials: exact
    if no user has more than N-bar relevant items, and no function of n is exact beyond. Under Bernoulli exposure with
    rate p, g(n) = 1 - (-(1 - p) / p)^n, exact for all. The weights alternate in sign and grow by a factor of about
    N / N-bar with each judged relevant item: unbiased, and of no use for deciding.

    >>> import polars as pl, truerank as tr
    >>> scores = {"m": tr.scores.dense([[4.0, 3, 2, 1]], users=[7], items=[1, 2, 3, 4])}
    >>> labels = pl.DataFrame({"user": [7] * 2, "item": [1, 3], "label": [1, 0]})
    >>> how = {"exposure": "random", "metrics": ["Recall@1"], "estimators": [Wild()]}
    >>> tr.evaluate(scores, labels, **how).estimates[0].value, fixed_weight(1, 4, 2), fixed_weight(2, 4, 2)
    (2.0, 2.0, -2.0)
    """

    info: ClassVar[EstimatorInfo] = describe(
        "wild",
        "no user has more relevant items than were judged (unless a rate is declared)",
        "its weights alternate in sign and grow with every judged relevant item, so that single users decide",
    )
    purpose: ClassVar[str] = "it weighs the published mean of Recall"
    users: ClassVar[str] = "users, those without a relevant item as 0"

    def combine(self, hits: Floats, n: Floats, sample: Sample) -> Smooth:
        counts = n.astype(np.int64).tolist()
        if sample.rate is not None:
            weight = np.array([declared_weight(count, sample.rate) for count in counts])
        else:
            sizes = zip(counts, sample.n_candidates.tolist(), sample.n_labelled.tolist(), strict=True)
            weight = np.array([fixed_weight(count, int(size), int(judged)) for count, size, judged in sizes])
        share = np.divide(hits, n, out=np.zeros(len(n)), where=n > 0)
        values = np.where(sample.defined, share * weight, 0.0)
        return ratio(values, np.ones(len(n)), defined=sample.defined, clusters=sample.clusters)


@cache
def fixed_weight(n: int, size: int, judged: int) -> float:
    """g(n) for n relevant among `judged` of `size` items; computed in whole numbers, as its terms nearly cancel."""
    total, term = Fraction(0), Fraction(1)
    for j in range(min(n, judged) + 1):
        total += (-1) ** j * comb(n, j) * term
        if j < judged:
            term *= Fraction(size - j, judged - j)
    return float(1 - total)


def declared_weight(n: int, rate: float) -> float:
    """g(n) where every item was judged by itself with probability `rate`.

    >>> declared_weight(0, 0.5), declared_weight(1, 0.25), declared_weight(2, 0.25)
    (0.0, 4.0, -8.0)
    """
    return 1.0 - (-(1.0 - rate) / rate) ** n
