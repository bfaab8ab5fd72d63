"""How much of what a target would expose the log cannot show."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.log import Pairs
from truerank.estimators.ranked.exposures import Exposures, total_known, total_of
from truerank.exposure.policies.policies import WholeList


@dataclass(frozen=True, slots=True, eq=False)
class SupportTally:
    """What tells the share of a target's exposure on what the log cannot show.

    `exact` says that it is known where the log lists its candidates or all that was displayed: `outside` of `exposed`.
    What is displayed where nobody looks (ε0 = 0) is not shown: `vain` rows. Else it is estimated from viewed rows:
    E[Σ w] = Σ_a ε(x, a) over what is supported, so 1 - Σ w / Σ ε estimates it. `moments` are the number of clusters and
    the sums of w, ε, w², w ε, ε² over them, with w and ε summed in each cluster; None where they are not known.
    """

    exact: bool
    listed: bool
    outside: float
    exposed: float
    vain: int
    moments: Floats | None

    @classmethod
    def of(cls, view: Exposures) -> SupportTally:
        whole, log = view.target.whole, view.log
        displayed = not view.views_known or log.viewed is not None
        vain = np.flatnonzero(view.logging.exposure() == 0) if displayed else np.zeros(0, dtype=np.int64)
        exact = whole is not None and (log.candidates is not None or (displayed and view.logging.rank is not None))
        outside = exposed = 0.0
        if exact and whole is not None:
            # with a deterministic list, what was not displayed cannot be
            shown = log.candidates or Pairs.of(log.unit, log.item, n_units=log.n_units)
            outside, exposed = _outside(view, whole, shown, vain)
        elif whole is None and displayed:
            exposed = float(view.target.exposure().sum())
            outside = float(view.target.exposure(vain).sum())
        known = total_known(view.target) and view.views_known and not exact
        return cls(exact, whole is not None, outside, exposed, len(vain), _moments(view) if known else None)

    def __add__(self, other: SupportTally) -> SupportTally:
        return SupportTally(
            self.exact,
            self.listed,
            self.outside + other.outside,
            self.exposed + other.exposed,
            self.vain + other.vain,
            None if self.moments is None or other.moments is None else self.moments + other.moments,
        )

    def share(self) -> tuple[float | None, float]:
        """The share that is not supported, and its standard error where it is estimated; None where nothing tells."""
        if self.exact or (not self.listed and self.vain):
            return (self.outside / self.exposed if self.exposed else 0.0), 0.0
        if self.moments is None:
            return None, 0.0
        n, weight, exposed, weight_squares, products, exposed_squares = self.moments.tolist()
        if not exposed:
            return None, 0.0
        ratio = weight / exposed
        squares = max(weight_squares - 2 * ratio * products + ratio**2 * exposed_squares, 0.0)
        return 1.0 - ratio, math.sqrt(squares * n / max(n - 1, 1)) / exposed


def _moments(view: Exposures) -> Floats:
    rows, kept = view.viewed_rows(), view.target.defined()
    seen = view.by_unit(view.weights(rows=rows), rows)
    weight, exposed = (view.clusters.sums(np.where(kept, each, 0.0)) for each in (seen, total_of(view)))
    n = np.count_nonzero(view.clusters.has(kept))
    return np.array([n, weight.sum(), exposed.sum(), (weight**2).sum(), (weight * exposed).sum(), (exposed**2).sum()])


def _outside(view: Exposures, whole: WholeList, shown: Pairs, vain: Ints) -> tuple[float, float]:
    """Exposure on items that are not among those shown, or in vain, and all of it; items without an id are not."""
    log, exposure = view.log, view.target.listed()
    width = len(log.items) + 2
    inside = np.repeat(np.arange(len(shown.start) - 1), shown.count) * width + shown.item
    inside = np.setdiff1d(inside, log.unit[vain] * width + log.item[vain]) if len(vain) else inside
    listed = np.isin(whole.unit * width + np.where(whole.item < 0, width - 1, whole.item), inside)
    return float(exposure[~listed].sum()), float(exposure.sum())
