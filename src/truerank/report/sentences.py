"""A comparison as one sentence for a report or a paper: estimand, values, intervals, verdict."""

from __future__ import annotations

from truerank.core.errors import InputError
from truerank.core.results import INSUFFICIENT, SHOWN_ABOVE, SHOWN_BELOW, Comparison, Estimate, Results
from truerank.report.numbers import interval, number, p_value


def sentence(results: Results, model: str, baseline: str, *, metric: str | None = None) -> str:
    """What the results say of two models by one metric (by default the first), in a sentence that can be pasted.

    >>> import polars as pl, truerank as tr
    >>> labels = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "label": [1, 0, 1, 0]})
    >>> scores = {name: labels.select("user", "item", score=pl.lit(sign) * pl.col("item"))
    ...           for name, sign in (("up", 1), ("down", -1))}
    >>> found = tr.evaluate(scores, labels, metrics=["Recall@1"], exposure="full")
    >>> print(sentence(found, "down", "up"))  # doctest: +ELLIPSIS
    By mean Recall@1 over users with a relevant item (estimator full, 2 users), down has 1.0000 ... no verdict: ...
    """
    found = [each for each in results.compare(model, baseline) if metric in (None, each.metric)]
    if not found:
        raise InputError(f"no comparison of {model} and {baseline} by {metric}; expected a metric of the results.")
    first = found[0]
    values = {
        each.model: each
        for each in results.estimates
        if (each.metric, each.estimator, each.reward, each.clip)
        == (first.metric, first.estimator, first.reward, first.clip)
    }
    one, other = values[model], values[baseline]
    unit = f"{results.provenance.unit}s"
    return (
        f"By {one.estimand} (estimator {one.estimator}, {first.units:,} {unit}), {model} has {_valued(one)} and "
        f"{baseline} {_valued(other)}; their difference of {number(first.difference)} "
        f"({first.level:.0%} interval {interval(first.low, first.high)}, adjusted p "
        f"{p_value(first.p_adjusted)}) {_verdict(first, directed=one.directed)}."
    )


def _valued(estimate: Estimate) -> str:
    return f"{number(estimate.value)} ({estimate.level:.0%} interval {interval(estimate.low, estimate.high)})"


def _verdict(found: Comparison, *, directed: bool) -> str:
    if found.verdict in (*SHOWN_ABOVE, *SHOWN_BELOW):
        return f"shows that {found.model} is {found.verdict}"
    if found.verdict == INSUFFICIENT:
        return f"carries no verdict: {' '.join(found.reason_texts).rstrip('.')}"
    return "does not show which is better" if directed else "does not show which is higher"
