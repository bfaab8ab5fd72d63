"""Estimators: how the rows that were observed stand for those that were not."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Pool, Ranks, Ties
from truerank.core.terms import Terms


@runtime_checkable
class Estimator(Protocol):
    """How observed rows stand for unobserved ones: gives Terms, and says what they estimate."""

    name: ClassVar[str]
    pool: ClassVar[Pool]
    assumptions: ClassVar[tuple[str, ...]]
    complete: ClassVar[bool]  # every candidate must carry a label
    ties: ClassVar[frozenset[Ties]]  # the tie policies it works with
    design: ClassVar[bool]  # whether an interval for exactly these units is known
    needs_size: ClassVar[bool]  # the number of candidates must be known
    biased: ClassVar[bool]  # made for logs in which some pairs were likelier to be shown than others
    left_out: ClassVar[str]  # whom it leaves out although they have scores, and whether that matters

    def refusal(self, metric: Metric) -> str | None:
        """Why this metric cannot be estimated this way and what to use, or None."""
        ...

    def estimand(self, metric: Metric) -> str: ...

    def terms(self, log: Log, ranks: Ranks, *, metric: Metric, keep_rows: bool = False) -> Terms: ...
