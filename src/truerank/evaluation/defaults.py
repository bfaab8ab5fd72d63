"""The default estimators, one rule for `evaluate`, `watch`, `plan` and `advise`.

The rule depends on how labels were collected and on the metric alone, never on how many rows there are: a rule that
switches at a number of rows lets one more row change the value and the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from truerank.core.estimator import Estimator, Exposed
from truerank.core.messages import RULE, Message, message
from truerank.core.metric import Metric
from truerank.estimators.full import Full
from truerank.estimators.holdout import Holdout
from truerank.estimators.pairs import ExpandedPairs
from truerank.estimators.post_stratified import PostStratified
from truerank.estimators.weighted import SNIPS, Hajek, HorvitzThompson, Pooled
from truerank.inference.balance import FEWEST_ROWS

# the first that can give a metric is the default: post-stratified for recall, Hájek's ratio (snips) for sums over
# lists; those after it are for what it cannot do (strict ties, lists of an unknown catalogue, clipped weights)
USUAL: Mapping[Exposed, tuple[Estimator, ...]] = {
    Exposed.FULL: (Full(),),
    Exposed.HOLDOUT: (Holdout(),),
    Exposed.RANDOM: (PostStratified(), Hajek(), ExpandedPairs(), Pooled(), HorvitzThompson()),
    Exposed.DESIGNED: (PostStratified(), Hajek(), Pooled(), HorvitzThompson()),
    Exposed.BIASED: (PostStratified(), SNIPS()),
}


def check_defaults(chosen: Sequence[tuple[Metric, Estimator]], usual: Sequence[Estimator]) -> tuple[Message, ...]:
    """Which estimators are the defaults here; nothing where every label is known or taken as known."""
    by_name: dict[str, list[str]] = {}
    for metric, estimator in chosen:
        if estimator in usual:
            by_name.setdefault(estimator.about.name, []).append(str(metric))
    if not by_name or all(estimator.about.complete for estimator in usual):
        return ()
    defaults = ", ".join(f"{name} ({', '.join(metrics)})" for name, metrics in by_name.items())
    return (message(RULE, defaults=defaults, fewest=FEWEST_ROWS),)
