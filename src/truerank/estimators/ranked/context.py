"""What decides whether an estimator can be had from a ranked log: facts of the log, the target and the reward."""

from __future__ import annotations

from dataclasses import dataclass

from truerank.core.estimator import Learner
from truerank.data.impressions import Impressions, Logged
from truerank.estimators.ranked.exposures import total_known
from truerank.exposure.policies.policies import Policy, differs
from truerank.exposure.positions.places import Positions


@dataclass(frozen=True, slots=True)
class RankedContext:
    """Facts of a log and a target.

    `whole` says that all items that the target would rank are known, `total` that the sum of their exposures is,
    `ranks` that it gives ranks; `models` that a position model says how likely these are viewed, `several` that models
    differ within the log; `logging_models` that one says how likely logged positions are viewed. `negative` says that
    the `reward` has negative values; without a reward nothing is asked of it. `positions` are the models, or else
    `learner` fits them.
    """

    target: str
    views_known: bool
    whole: bool
    total: bool
    ranks: bool
    models: bool
    several: bool
    logging_models: bool
    reward: str | None = None
    negative: bool = False
    positions: Positions | None = None
    learner: Learner | None = None

    @classmethod
    def of(cls, log: Impressions, target: Policy, logging: Policy) -> RankedContext:
        """Without a reward."""
        return cls(
            target=target.name,
            views_known=log.logged is Logged.VIEWED,
            whole=target.whole is not None,
            total=total_known(target),
            ranks=target.rank is not None,
            models=target.positions is not None,
            several=target.positions is not None and differs(target.positions),
            logging_models=logging.positions is not None,
        )
