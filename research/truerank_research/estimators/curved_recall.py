"""Terms of mean recall under the rank curve: histograms of ranks for each user, fitted when a value is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from truerank.core.arrays import Bools, Floats, Ints, sums_by
from truerank.core.clusters import Clusters
from truerank.core.messages import Message
from truerank.core.terms import Smooth, Terms, ratio
from truerank_research.estimators.curve_messages import check_curve, check_fit, no_verdict
from truerank_research.estimators.histograms import Histograms
from truerank_research.estimators.rank_curve import CurveFit, fit_curve, plausible

# ends of the bins of ranks; the cut-off is one more; the same whatever the data, so that chunks agree
ENDS = tuple(float(end) for power in range(7) for end in (5 * 10**power, 15 * 10**power))


def ends_of(k: int) -> Floats:
    """The last rank of every bin, with the cut-off among them.

    >>> ends_of(50)[:4].tolist(), ends_of(10)[:3].tolist()
    ([5.0, 15.0, 50.0, 150.0], [5.0, 10.0, 15.0])
    """
    return np.unique([*ENDS, float(k)])


@dataclass(frozen=True, slots=True, eq=False)
class CurvedRecall(Terms):
    """Relevant and judged items of each row by bin of ranks, the last for what is never recommended.

    `recommended` of `candidates` are in the list of a row. The fit needs all rows at once and is made when a value is
    asked for; under weights the value moves by its influences, Σ (w - 1) L.
    """

    blanks: ClassVar[Mapping[str, Any]] = {
        "relevant": 0.0, "judged": 0.0, "recommended": 0.0, "candidates": 0.0, "defined": False,
    }  # fmt: skip

    k: int
    like_nothing: float
    relevant: Floats
    judged: Floats
    recommended: Floats
    candidates: Floats
    defined: Bools
    clusters: Clusters
    known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  # what was fitted once

    def histograms(self) -> Histograms:
        """Of the rows that count, over the bins that there are."""
        rows = self.defined
        recommended, candidates = self.recommended[rows], self.candidates[rows]
        ends = ends_of(self.k)
        begin = np.concatenate([[0.0], ends[:-1]])
        size = np.clip(recommended[:, None] - begin, 0.0, ends - begin)
        never = candidates - recommended
        deepest = float(recommended.max(initial=1.0))
        used = int(np.searchsorted(ends, deepest)) + 1
        within = int(np.searchsorted(ends, float(self.k))) + 1
        last = np.minimum(ends[:used], deepest)
        relevant, judged = self.relevant[rows], self.judged[rows]
        beyond = (relevant[:, -1], judged[:, -1], never)
        parts = [np.array(part[:, :used]) for part in (relevant, judged, size)]
        if never.any() and within < used:  # what is never recommended ranks below the list: with the last of it
            for part, more in zip(parts, beyond, strict=True):
                part[:, -1] += more
            last[-1] = max(float(candidates.max()), float(last[-1]))
        elif never.any():
            parts = [np.column_stack([part, more]) for part, more in zip(parts, beyond, strict=True)]
            last = np.append(last, deepest + float(never.max()))
        return Histograms(parts[0], parts[1], parts[2], last, min(within, used))

    def fit(self) -> CurveFit | None:
        """None where no judged item is relevant."""
        if "fit" not in self.known:
            rows = self.histograms()
            self.known["fit"] = fit_curve(rows, like_nothing=self.like_nothing) if rows.relevant.any() else None
        found: CurveFit | None = self.known["fit"]
        return found

    def plausible(self) -> Mapping[float, float]:
        """The value under each share of users who like nothing that the data do not rule out."""
        if "plausible" not in self.known:
            rows = self.histograms()
            self.known["plausible"] = plausible(rows) if rows.relevant.any() else {}
        found: Mapping[float, float] = self.known["plausible"]
        return found

    def _relevant(self) -> tuple[Floats, Floats]:
        """Judged relevant items of each row, in the list and in all."""
        within = int(np.searchsorted(ends_of(self.k), float(self.k))) + 1
        return self.relevant[:, :within].sum(axis=1), self.relevant.sum(axis=1)

    def share_with_relevant(self) -> float:
        """The share of users with a judged relevant item."""
        n = int(np.count_nonzero(self.defined))
        return float(np.count_nonzero((self._relevant()[1] > 0) & self.defined)) / n if n else 0.0

    def above_chance(self) -> float:
        """By how many standard errors judged items in lists are relevant more often than others; NaN without both."""
        within = int(np.searchsorted(ends_of(self.k), float(self.k))) + 1
        relevant, judged = (part[self.defined].sum(axis=0) for part in (self.relevant, self.judged))
        (hits, inside), (others, outside) = (
            (float(relevant[part].sum()), float(judged[part].sum())) for part in (slice(within), slice(within, None))
        )
        if not (inside > 0 and outside > 0):
            return math.nan
        rate = (hits + others) / (inside + outside)
        noise = math.sqrt(rate * (1 - rate) * (1 / inside + 1 / outside))
        return (hits / inside - others / outside) / noise if noise > 0 else math.nan

    def correction(self) -> float:
        """The value minus the mean of m / n over users with n >= 1."""
        hits, n = self._relevant()
        kept = self.defined & (n > 0)
        published = ratio(np.divide(hits, n, out=np.zeros(len(n)), where=kept), kept.astype(np.float64), defined=kept)
        return self.value() - published.value()

    def reasons(self, model: str) -> tuple[Message, ...]:
        return () if self.exact else (no_verdict(),)

    def cautions(self) -> tuple[Message, ...]:
        return (*check_fit(self), *check_curve(self))

    def value(self) -> float:
        return self.whole.value()

    def influence(self) -> Floats:
        fit = self.fit()
        if fit is None:
            return np.full(len(self.clusters), math.nan)
        rows = np.zeros(len(self.defined))
        rows[self.defined] = fit.found.influence
        return self.clusters.sums(rows)

    def n_informative(self, other: CurvedRecall | None = None) -> int:
        """Clusters with a judged relevant item; of two, those for which these lie in other bins."""
        own = np.where(self.defined[:, None], self.relevant, 0.0)
        if other is None:
            return int(np.count_nonzero(self.clusters.has(np.asarray(own.any(axis=1)))))
        theirs = np.where(other.defined[:, None], other.relevant, 0.0)
        return int(np.count_nonzero(self.clusters.has(np.asarray((own != theirs).any(axis=1)))))

    @property
    def whole(self) -> Smooth:
        """The recall of each row given the fit to all, and its weight: the chance that it has a relevant item."""
        if "whole" not in self.known:
            above, below = np.zeros(len(self.defined)), np.zeros(len(self.defined))
            fit = self.fit()
            if fit is not None:
                above[self.defined], below[self.defined] = fit.found.value, fit.found.weight
            self.known["whole"] = ratio(above, below, defined=self.defined, clusters=self.clusters, exact=self.exact)
        found: Smooth = self.known["whole"]
        return found

    @property
    def exact(self) -> bool:
        """Whether every candidate was judged."""
        return bool((self.judged[self.defined].sum(axis=1) >= self.candidates[self.defined] - 0.5).all())


def binned(above: Floats, tied: Floats, *, k: int) -> Floats:
    """The share of each row's possible ranks, above + 1 ... above + 1 + tied, in each bin; the last: never recommended.

    >>> binned(np.array([4.0, np.inf]), np.array([1.0, 0.0]), k=5)[:, [0, 1, -1]].tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    """
    ends = ends_of(k)
    begin = np.concatenate([[0.0], ends[:-1]])
    listed = np.isfinite(above)
    first = np.where(listed, above, 0.0)[:, None]
    length = np.where(listed, tied + 1.0, 1.0)[:, None]
    inside = np.clip(np.minimum(first + length, ends) - np.maximum(first, begin), 0.0, None) / length
    return np.column_stack([np.where(listed[:, None], inside, 0.0), np.where(listed, 0.0, 1.0)])


def sums_by_bin(above: Floats, tied: Floats, values: Floats, *, unit: Ints, n: int, k: int) -> Floats:
    """Σ of the values of each unit's rows by bin of their ranks, [units x bins].

    A row without ties has one rank, and so one bin; others are shared among the bins of their ranks.

    >>> sums_by_bin(np.array([4.0, 5.0]), np.zeros(2), np.array([1.0, 2.0]), unit=np.array([0, 0]), n=1, k=5)[:, :2]
    array([[1., 2.]])
    """
    ends = ends_of(k)
    n_bins = len(ends) + 1
    plain = (tied == 0) & ((above == np.floor(above)) & (above < ends[-1]) | np.isposinf(above))
    first = np.where(np.isfinite(above), above, 0.0)
    at = np.where(np.isfinite(above), np.searchsorted(ends, first, side="right"), len(ends))
    found = sums_by((unit * n_bins + at)[plain], values[plain], n=n * n_bins).reshape(n, n_bins)
    if not plain.all():
        rest = ~plain
        share = binned(above[rest], tied[rest], k=k) * values[rest, None]
        found += np.stack([sums_by(unit[rest], np.ascontiguousarray(each), n=n) for each in share.T], axis=1)
    return found
