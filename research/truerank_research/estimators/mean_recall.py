"""What experimental estimators of the mean recall over users share."""

from __future__ import annotations

from typing import ClassVar

from truerank.core.arrays import Floats
from truerank.core.estimator import Estimator, EstimatorInfo, Exposed, ObservedUnits, Request
from truerank.core.metric import Metric
from truerank.core.terms import Smooth
from truerank.estimators.refusals import LABEL_FREE, additive, only_recall
from truerank.estimators.rows import UNIFORM, Sample, per_unit
from truerank.metrics.discounts import expected_discount
from truerank_research.estimators import EXPERIMENTAL


class MeanRecall(Estimator):
    """A mean over users of what their labelled hits and labelled relevant items say; `combine` is what differs."""

    __slots__ = ()

    purpose: ClassVar[str]  # why it is for Recall alone
    users: ClassVar[str]  # whom the mean is over

    def refusal(self, context: Metric) -> str | None:
        return only_recall(context, self.purpose)

    def estimand(self, request: Request, unit: str = "user") -> str:
        return f"mean {request.metric} over {self.users}"

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        log = units.log
        sample = Sample.uniform(units.chunk, units.ranks, rate=units.learned.facts.get("rate"))
        hits = per_unit(log, log.label * expected_discount(additive(request.metric), units.ranks))
        return self.combine(hits, per_unit(log, log.label), sample)

    def combine(self, hits: Floats, n: Floats, sample: Sample) -> Smooth:
        """The terms from each user's labelled hits and number n of labelled relevant items."""
        raise NotImplementedError


def describe(name: str, assumption: str, caution: str, *, left_out: str = "have no judged item") -> EstimatorInfo:
    return EstimatorInfo(
        name=name,
        exposures=frozenset({Exposed.FULL, Exposed.RANDOM}),
        assumptions=(UNIFORM, assumption),
        ties=LABEL_FREE,
        needs_size=True,
        stands=True,
        left_out=left_out,
        caution=f"{EXPERIMENTAL}: for comparison: {caution}; use corrected",
    )
