"""Which estimator is taken where none is asked for: the steadiest whose conditions hold, by a rule that is said.

The rule looks at how many rows, users and candidates there are, never at a label or at where a row fell, so that
choosing by it cannot favour a model or a value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from truerank.core.estimator import Estimator, Exposed
from truerank.core.messages import RULE, Message, note
from truerank.core.metric import Metric
from truerank.estimators.biased.snips import SNIPS
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.hajek import Hajek
from truerank.estimators.judged.holdout import Holdout
from truerank.estimators.judged.horvitz_thompson import HorvitzThompson
from truerank.estimators.judged.pairs import ExpandedPairs
from truerank.estimators.judged.pooled import Pooled
from truerank.estimators.judged.post_stratified import PostStratified

FEWEST = 30  # judged rows in lists, and beside them, from which on shares of relevant items are steady


@dataclass(frozen=True, slots=True)
class Usual:
    """An estimator, and how many judged rows it wants: in the lists, and beside them if it looks there."""

    estimator: Estimator
    listed: int = 0
    beside: int = 0

    def holds(self, metric: Metric, expected: ExpectedRows) -> bool:
        return expected.listed(metric) >= self.listed and expected.beside(metric) >= self.beside


# the first that gives a metric and has the rows that it wants is taken
UsualEstimators = Mapping[Exposed, tuple[Usual, ...]]
PLAIN: UsualEstimators = {
    Exposed.FULL: (Usual(Full()),),
    Exposed.HOLDOUT: (Usual(Holdout()),),
    Exposed.RANDOM: (Usual(Pooled()), Usual(HorvitzThompson())),
    Exposed.DESIGNED: (Usual(Pooled()), Usual(Hajek())),
    Exposed.BIASED: (Usual(SNIPS()),),
}
USUAL: UsualEstimators = {
    **PLAIN,
    Exposed.RANDOM: (
        Usual(PostStratified(), listed=FEWEST, beside=FEWEST), Usual(Pooled()), Usual(ExpandedPairs()),
        Usual(Hajek(), listed=FEWEST), Usual(HorvitzThompson()),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """How many judged rows fall into lists if they are a uniform draw: rows K / N, the same for every model.

    >>> from truerank.metrics.precision import Precision
    >>> ExpectedRows(rows=1000, candidates=200).listed(Precision(10))
    50.0
    """

    rows: int
    candidates: float  # of a user, on average

    def listed(self, metric: Metric) -> float:
        places = math.inf if metric.cutoff is None else metric.cutoff
        return self.rows * min(places / self.candidates, 1.0) if self.candidates > 0 else 0.0

    def beside(self, metric: Metric) -> float:
        return self.rows - self.listed(metric)


def about_usual(
    chosen: Sequence[tuple[Metric, Estimator]], usual: Sequence[Usual], expected: ExpectedRows
) -> tuple[Message, ...]:
    """Which estimators the rule took, and what it is; nothing where every label is known or taken as known."""
    wanted = {each.estimator: max(each.listed, each.beside) for each in usual}
    ruled = [(metric, estimator) for metric, estimator in chosen if estimator in wanted]
    if not ruled or all(each.estimator.about.complete for each in usual):
        return ()
    by_name: dict[str, list[str]] = {}
    for metric, estimator in ruled:
        by_name.setdefault(estimator.about.name, []).append(str(metric))
    takes = "; ".join(f"{name} for {', '.join(metrics)}" for name, metrics in by_name.items())
    plain = [each.estimator.about.name for each in usual if not wanted[each.estimator]]
    first = plain[0] if len(plain) == 1 else f"the first of {', '.join(plain)} that can give it"
    if not any(wanted.values()):
        return (note(RULE, f"no estimator was asked for: {takes}. The rule: {first}, whatever the counts."),)
    listed = min(expected.listed(metric) for metric, _ in ruled)
    beside = min(expected.beside(metric) for metric, _ in ruled)
    steady = " and ".join(each.estimator.about.name for each in usual if wanted[each.estimator])
    return (
        note(
            RULE,
            f"no estimator was asked for: {takes}. The rule, one for all cut-offs of a metric: {steady} where they can "
            f"be had and {FEWEST} judged rows are expected in lists (for recall also beside them), else {first}; here "
            f"about {listed:,.0f} in the shortest lists, {beside:,.0f} beside the longest.",
            numbers={"listed": listed, "beside": beside},
        ),
    )
