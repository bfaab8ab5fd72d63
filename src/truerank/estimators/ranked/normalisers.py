"""What a reward is counted per, and when that is honest."""

from __future__ import annotations

from enum import StrEnum


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
    def metric(self) -> str:
        """The name of the metric in results."""
        return {
            Normaliser.SESSION: "reward per session",
            Normaliser.IMPRESSION: "reward per viewed item",
            Normaliser.MEAN_OF_MEANS: "mean of session means",
        }[self]

    def words(self, unit: str) -> str:
        return {
            Normaliser.SESSION: f"per {unit}",
            Normaliser.IMPRESSION: "per viewed item",
            Normaliser.MEAN_OF_MEANS: f"per viewed item, averaged over {unit}s",
        }[self]

    @property
    def condition(self) -> tuple[str, ...]:
        """What it assumes beyond the five assumptions."""
        return {
            Normaliser.SESSION: (),
            Normaliser.IMPRESSION: ("the same expected number of viewed items under both policies",),
            Normaliser.MEAN_OF_MEANS: (
                "exposures are E[1{depth >= rank} / depth], not the probability of a view; else for comparison only",
            ),
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
