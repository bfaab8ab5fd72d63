"""The sentences of warnings: the part of the table of `core.sentences` about numbers not to decide by."""

from __future__ import annotations

WARNINGS = {
    # input
    "no-positive": "no labelled pair is relevant: Recall is undefined, Precision and DCG are 0.",
    "no-positive.log": "no row is positive: models cannot be told apart",
    "few-positives": "{positives:,} rows are positive: too few to tell models apart",
    "few-users.log": "{users:,} users: a verdict needs at least {fewest} who tell two models apart",
    "repeated-pairs": (
        "{rows:,} rows repeat a pair, where one label per pair is expected: keep one of each, or name the session if "
        "these are impressions; the figures are those of the first row of each pair"
    ),
    "nothing-excluded": "nothing is excluded: check the ids of {source}.",
    "no-item-in-common": (
        "{model} and {source} have no item in common: {model} has items such as {model_examples}, {source} such as "
        "{examples}; so no relevant item is ever recommended. Check the ids."
    ),
    "no-scores.log": (
        "{model}: scores for {users:,} of {n_users:,} users and {items:,} of {n_items:,} items: no {kind} in common, "
        "check the ids"
    ),
    "nothing-returned": (
        "none of the {rows:,} rows is in the design: its users and items have other ids, or the labels are of another "
        "design"
    ),
    "not-returned.much": (
        "{rows:,} pairs of the design ({share:.0%}) have no label. Labelled pairs of the same user represent them "
        "({users:,} users), as if missing at random; {silent:,} users without any label are excluded. If missing "
        "labels depend on whether items were liked, values are biased."
    ),
    "no-propensities": (
        "the log does not contain exposure probabilities: estimates rest on a model of them, which these data cannot "
        "check. A few randomly exposed items per user would"
    ),
    "propensity-scale.small": (
        "Σ 1 / propensity is {stand_for:,.0f}, but there are {pairs:,.0f} pairs: pairs with small propensities were "
        "not drawn, users without exposure are missing ({option:population|users=}), or the propensities are too "
        "large. {biased} off by about as much; {unbiased} is not."
    ),
    "propensity-scale.large": (
        "Σ 1 / propensity is {stand_for:,.0f}, but there are {pairs:,.0f} pairs: the propensities are too small. "
        "{biased} off by about as much; {unbiased} is not."
    ),
    "propensity-scale.log": (
        "Σ 1 / propensity is {stand_for:,.0f}, but there are {pairs:,} pairs: propensities are not exposure "
        "probabilities, users or items are missing, or pairs with small propensities were not drawn; only estimators "
        "that need ratios of propensities are valid"
    ),
    "propensity-scale.actions": (
        "1 / propensity is {mean:,.1f} on average, where {items:,} items were exposed: these are not the propensities "
        "of choosing an item"
    ),
    "one-position": "all rows are at position 1: positions cannot be told apart",
    "nothing-foreseen": (
        "{metric}: {predictor} has no prediction for any rank position of {models}, so that assisted equals {plain} "
        "there: check the ids of users and items."
    ),
    # a sample that does not represent the lists
    "not-random": (
        "{option:exposure random} does not fit, the labelled pairs are no uniform sample: beyond sampling error, how "
        "often items were labelled differs by {effect:.0%} of the mean (above {large:.0%})"
    ),
    "not-random.tested": (
        "{option:exposure random} does not fit, the labelled pairs are no uniform sample: beyond sampling error, how "
        "often items were labelled differs by {effect:.0%} of the mean (above {large:.0%}; X² = {statistic:,.1f} on "
        "{df:,.0f} degrees of freedom, p = {p:.2g})."
    ),
    "users-selected-by-label": (
        "{users:,} users lack a positive, where random exposure gives at least about {expected:,.0f}: users were "
        "probably selected because they have a positive label, and values such as Precision are too high. Restore or "
        "collect the rows of users without a positive label, who were exposed as well"
    ),
    "unbalanced": (
        "balance check failed: labelled pairs represent {share:.0%} of the top-K lists of {model}, not 100% (z = "
        "{z:.1f}), so the value is not that of the lists"
    ),
    "few-list-rows": (
        "about {rows:.1f} labelled rows fall in the top-K lists. A verdict, and a check whether they represent the "
        "lists, need at least {fewest:.0f}: label more pairs, or evaluate longer lists"
    ),
    "predictions-unbalanced": (
        "{predictor} predicts {labelled:.3g} on average for labelled pairs of {model}, and {lists:.3g} for all pairs "
        "that these represent (z = {z:.1f}, above {far:g}): the predictions contain the labels or were fitted on them, "
        "or labelled pairs were not sampled as stated. Use predictions that were made without the labels"
    ),
    "heavy-rows-missing": (
        "{share:.0%} of all pairs are like none of the rows (Σ 1 / propensity is that much too small): pairs with "
        "small propensities were not drawn, and their labels are missing from the value"
    ),
    "quiet-weights": (
        "the weights of pairs in these lists imply a standard error of about {implied:.2g}, {ratio:.1f} times that of "
        "the interval: the heaviest of them happen not to be relevant, and one that is would change the value"
    ),
    # values
    "for-comparison": "{reason}",
    "judged-only": (
        "ranks only the labelled items: this is not {metric} over the catalogue and changes with the number of labels"
    ),
    "outside-bounds": (
        "the value is outside {low:g} to {high:g}, the range of {metric}, as sums and ratios of few weighted rows may "
        "be: use an estimator that divides by the weights (hajek, snips), or more data"
    ),
    "nothing-defined": "no user has a defined value",
    "nothing-to-divide-by": (
        "no labelled item is relevant, or their estimated number is not above 0: the value divides by nothing"
    ),
    "no-hit": "no relevant labelled item is in any list: the value may be above 0, but its error is unknown",
    "no-hit-pairs": (
        "no user has two relevant labelled items in the list: AP counts pairs of hits, so the value is too low by an "
        "unknown amount. Label more items per user, or use Precision or DCG"
    ),
    "no-reward": "nothing that this target would expose has a reward: the error of the value is unknown",
    # weights
    "few-effective-rows.weights": (
        "the weighted {rows:,} {kind} have an effective sample size of {effective:,.0f} (expected at least "
        "{fewest:.0f} and {smallest:.0%}): target and log differ too much; collect more, or clip"
    ),
    "heavy-row.weights": (
        "one row has {share:.0%} of all weight (its weight is {weight:.3g}; expected at most {large:.0%}): the value "
        "rests on single rows"
    ),
    "heavy-tail": (
        "the largest weights have a tail index of {tail:.2f} (above {heavy}): even the interval cannot be trusted; "
        "clip, or collect data nearer to the target"
    ),
    "much-clipped": (
        "clipping at {clip:g} removes {lost:.0%} of the weight (above {much:.0%}): the value is biased by up to about "
        "that share, which the interval does not include"
    ),
    "unsupported": (
        "the log never exposes {share:.0%} of what the target would expose (above {most:.0%}), or the position model "
        "is wrong: {consequence}"
    ),
    "unsupported.estimated": (
        "the log never exposes an estimated {share:.0%} of what the target would expose (above {most:.0%}), or the "
        "position model is wrong: {consequence}"
    ),
    "too-much-weight": (
        "weights sum to {share:.0%} of the target's exposure, more than is possible: the position model, the "
        "propensities or the lists do not fit the log"
    ),
    "heavy-tailed-rewards": (
        "the largest of the {rewards:,} rewards have a tail index of {tail:.2f} (above {heavy}): few make most of the "
        "total, and larger ones may not be in the data; then the interval is too short. Limit rewards to what matters, "
        "or take their logarithm"
    ),
    "heavy-rewards": (
        "what {cluster}s add to the value has a tail index of {tail:.2f} (above {heavy}): a few add most, and larger "
        "ones may not be in the data; then the interval is too short"
    ),
    "few-carry": (
        "what {cluster}s add to the value has an effective sample size of {effective:.1f} (below {fewest:.0f}): the "
        "value rests on few of them"
    ),
    # intervals and verdicts
    "single-user": "a single user: there is no interval for a population",
    "no-spread": "all labelled items in the lists have the same label: the error of the value is unknown",
    "no-spread.difference": "the error of the difference is unknown: it has no interval",
    "no-interval.single": "no interval: all data are from one {cluster}, and a variance needs at least two",
    "no-interval.stratum": (
        "no interval: a logging policy has a single {cluster}, and the variance within it needs at least two; leave it "
        "out, or use {option:bootstrap 1000|interval=Bootstrap(1000)}"
    ),
    "interval-outside": (
        "the interval, {low:.4g} to {high:.4g}, is wholly outside the range of the metric and is left out"
    ),
    "few-informative": "the two differ for {informative:,} of the {cluster}s, and a verdict needs at least {fewest}",
    "one-cluster": (
        "one {cluster} has {share:.0%} of the variance, and without it the difference reverses or is inconclusive"
    ),
    "unseen-exposure": (
        "{share:.0%} of what a target would expose, or of its weight, is not in the data (above {much:.0%}), and what "
        "could be earned there can reverse the difference"
    ),
    "position-model-rejected.table": (
        "the fitted position model ({fits}) does not describe the {observed} of the log (p = {p:.1g}), and the verdict "
        "depends on it: {verdict} with the fitted model ({difference:+.3g}), {verdict_by_table} with the table of "
        "observed views ({difference_by_table:+.3g}). {remedy}"
    ),
    "position-model-rejected": (
        "the fitted position model ({fits}) does not describe the {observed} of the log (p = {p:.1g}), and no table of "
        "observed views can confirm the verdict. {remedy}"
    ),
    "drift": (
        "{model}, {baseline}: the users of the second half differ from those of the first by more than sampling error "
        "(p = {p:.1g}): they did not arrive in random order, and results of earlier users may not hold for later ones"
    ),
}
