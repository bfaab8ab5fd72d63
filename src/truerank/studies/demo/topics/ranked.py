"""A ranked log: what other rankers would earn, from what one ranker showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from truerank.core.results import Estimate
from truerank.core.values import text_of
from truerank.estimators.ranked.ips import RankedIPS
from truerank.estimators.ranked.naive import LearntDiscountRaw
from truerank.estimators.ranked.snips import RankedSNIPS
from truerank.evaluation.ranked import off_policy
from truerank.studies.demo.chapter import Chapter, Say, Sheet, command
from truerank.studies.demo.made import FEED, Made

TARGETS = ("better", "worse")
WHY = {
    "dcg-raw": "counts clicks by the new rank alone, on a scale of its own: what the old ranker buried had no chance "
    "to be clicked",
    "ips": "each click counts by how much likelier the new ranker shows the item than the old one did",
    "snips": "the same as a ratio: chance in how much exposure the log happens to carry cancels",
}


@dataclass(frozen=True, slots=True)
class RankedTopic:
    """Sessions of a feed that one ranker filled, and two others that nobody has seen."""

    name: ClassVar[str] = "ranked"
    about: ClassVar[str] = "Ranked impressions: would another ranker earn more, before an A/B test?"

    __str__ = text_of

    def tell(self, made: Made, *, seed: int, say: Say | None) -> Chapter:
        if say is not None:
            say("estimating from the ranked log", 0, 1)
        results = off_policy(
            made.feed / "log.parquet",
            {name: made.feed / f"{name}.parquet" for name in TARGETS},
            estimators=[LearntDiscountRaw(), RankedIPS(), RankedSNIPS()],
            rewards=["reward"],
        )
        known = msgspec.json.decode((made.feed / "truth.json").read_bytes())["truth"]
        truth = {each["policy"]: each["value"] for each in known if each["reward"] == "reward"}
        found = {(each.model, each.estimator): each for each in results.estimates}
        rows = [(name, f"{truth[name]:.3f}", *(_said(found[name, estimator]) for estimator in WHY)) for name in TARGETS]
        return Chapter(
            "A ranked log",
            (
                f"{FEED.sessions:,} sessions of a feed that one ranker filled. What would two other rankers earn per "
                "session, without showing them to anyone?",
                Sheet.of("", ("", "truth", *WHY), rows),
                "\n".join(f"  {name} {why}." for name, why in WHY.items()),
                command(
                    f"truerank offpolicy {made.feed / 'log.parquet'} --target better={made.feed / 'better.parquet'} "
                    f"--target log={made.feed / 'logging.parquet'} --baseline log --reward reward"
                ),
            ),
        )


def _said(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
