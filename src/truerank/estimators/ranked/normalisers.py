"""What decides whether an estimator can be had from a ranked log: facts of the log, the target and the reward."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from truerank.core.estimator import Learner
from truerank.estimators.ranked.exposures import total_known
from truerank.exposure.policies.policies import Policy, differs
from truerank.exposure.positions.position_models import Positions
from truerank.io.impressions import Impressions, Logged

UNRANKED = "have no ranking of this target"


class Per(StrEnum):
    """What weighted rewards are summed over and divided by: units, viewed rows, or something else (no such sum)."""

    UNIT = "unit"
    VIEW = "view"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Counted:
    """What an estimate of a ranked log counts: its name in results, what it assumes, whom it leaves out."""

    name: str
    assumptions: tuple[str, ...] = ()
    left_out: str = UNRANKED
    per: Per = Per.NOTHING

    def __str__(self) -> str:
        return self.name

    def of(self, unit: str) -> Counted:
        """The same in the words of a log without sessions."""
        return replace(self, name=self.name.replace("session", unit))


class Normaliser(StrEnum):
    """What the sum of rewards is divided by; eq. 2 of paper 3 can be read as any of the three.

    SESSION        per trajectory: the mean over sessions of the rewards in a session (default)
    IMPRESSION     per viewed item: needs the same expected number of viewed items under both policies
    MEAN_OF_MEANS  the mean over sessions of the mean reward in a session: unbiased only if the position model is
                   E[1{depth >= r} / depth], so for comparison only
    """

    SESSION = "session"
    IMPRESSION = "impression"
    MEAN_OF_MEANS = "mean-of-means"

    @property
    def counted(self) -> Counted:
        """What is counted, with what ips assumes for it beyond the five assumptions."""
        return {
            Normaliser.SESSION: Counted("reward per session", per=Per.UNIT),
            Normaliser.IMPRESSION: Counted(
                "reward per viewed item",
                ("the same expected number of viewed items under both policies",),
                per=Per.VIEW,
            ),
            Normaliser.MEAN_OF_MEANS: Counted(
                "mean of session means",
                ("exposures are E[1{depth >= rank} / depth], not the probability of a view; else for comparison only",),
                "have no ranking of this target or no viewed item, so no mean,",
            ),
        }[self]

    def words(self, unit: str) -> str:
        return {
            Normaliser.SESSION: f"per {unit}",
            Normaliser.IMPRESSION: "per viewed item",
            Normaliser.MEAN_OF_MEANS: f"per viewed item, averaged over {unit}s",
        }[self]


FIVE = (
    "rewards in one session do not depend on other sessions",
    "views depend on the position alone (position-based model)",
    "the reward of an item does not depend on the other items shown",
    "a reward needs a view and else depends on user and item alone (examination hypothesis)",
    "whatever the target would show, the logging policy shows with some probability (support)",
)
CHOSEN = (
    "rewards in one impression do not depend on other impressions",
    "the logged propensities are the true probabilities that the item was chosen",
    "whatever the target would choose, the logging policy chooses with some probability (support)",
)


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
