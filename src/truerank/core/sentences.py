"""The sentence of every message by code: one table.

A key is a code or, where a code has several sentences, the code, a dot and a word that tells them apart. Fields are the
figures and names of a message, `{option:NAME VALUE|PYTHON}` is an option (`core.wording.option`). Sentences about a
whole evaluation end with a full stop; those about one estimate or comparison, which reports put into lists, do not.
"""

from __future__ import annotations

NOTES = {
    # input
    "columns": "{sentence}",
    "chunks": "{sentence}",
    "log-read": "{sentence}",
    "numbered": (
        "{matrix}: no ids of {kind}s; {line}s are read as {kind}s 0 to {last:,}, as {table} numbers them from 0."
    ),
    "matched": "{users:,} users, {items} items, {judged:,} labelled pairs, {relevant:,} of them relevant.",
    "relevant-rows": "{source}: no value column, so every row counts as a relevant pair.",
    "excluded": "{matched:,} of {rows:,} excluded pairs concern users and items of this evaluation.",
    "no-exclusions.lists": (
        "nothing is excluded: lists are evaluated as they are. If they contain training items, values are too low; "
        "{option:exclude TRAIN} removes these."
    ),
    "returned": "{back:,} of the {drawn:,} pairs that the design sampled for these users have a label.",
    "scored": "{model}: scores for {users:,} of {of:,} users.",
    "scored.partly": (
        "{model}: scores for {users:,} of {of:,} users; {without_labels:,} users with scores have no labels; "
        "{items_without_score:,} items of the catalogue have no score and are never recommended."
    ),
    "scores": "{model}: scores for {users:,} of {n_users:,} users and {items:,} of {n_items:,} items",
    "never-recommended": "{model}: {never:,} of {relevant:,} relevant labelled items are never recommended.",
    "randomness": (
        "the labelled pairs look like a uniform sample: items were labelled about equally often (X² = {statistic:,.1f} "
        "on {df:,.0f} degrees of freedom, p = {p:.2g})."
    ),
    "randomness.untestable": "random exposure cannot be tested: no user has more candidates than labelled items.",
    "drawn-among-unseen": (
        "if items were sampled from those that a user had not seen, exclude the seen ones ({option:exclude})"
    ),
    "propensities": "{description}.",
    "propensities.sum": "Σ 1 / propensity is {stand_for:,.0f}, near the {pairs:,} pairs",
    "positions": "positions go from {first} to {deepest:,}",
    "propensity-unused": "the log has a column propensity, which is not used: the logging policies give the exposures.",
    "propensity-used": (
        "the log has a column propensity, which gives its exposures; the position model {positions} is used for the "
        "ranks of targets only. Drop the column to use the position model for both."
    ),
    "position-fit": "position model of {place}: {model}, {parameters}, from {n:,} {rows}.",
    "position-fit.detail": "position model of {place}: {sentence}",
    "no-ranking": "{model}: {units:,} of {n_units:,} {unit}s of the log have no ranking.",
    "unlogged-sessions": (
        "{model}: {sessions:,} sessions that it ranks are not in the log and are excluded. If nothing was viewed in "
        "them they count: declare all sessions with {option:sessions FILE}."
    ),
    "never-shown": "{model}: it never exposes {rows:,} of {n_rows:,} logged items, whose weight is 0.",
    # choices
    "usual-estimator": (
        "default estimators: {defaults}. Verdicts need at least {fewest:.0f} labelled pairs in top-K lists."
    ),
    "like": "as in {tool}: {choices}.",
    "left-out.target": "excluded: {target} with {estimator}: {reason}",
    "left-out.reward": "excluded: {estimator} of {reward}: {reason}",
    "loggers-share-users": (
        "users have sessions of several logging policies, so the variance is between users, not within policies."
    ),
    "loggers-fixed": "intervals take the number of sessions of each logging policy as fixed.",
    "clip-chosen": (
        "clip {clip} chosen for {subject}, {reward}, {estimator}: the smallest{equal} whose value differs from that of "
        "no larger clip by more than the standard error of that difference. Its value differs by {change:.3g} from "
        "that of the largest clip; intervals do not include the choice."
    ),
    "no-clip-chosen": (
        "no clip is chosen for {estimator}: a ratio of clipped sums can move either way as the clip falls, so the rule "
        "would see no bias; the largest clip is used."
    ),
    "clip-not-chosen": "another clip was chosen for this difference, and the verdict is given there",
    # results
    "refit-failed": (
        "no interval: it needs the value without each part of the data in turn, and without {parts:,} of them {reason}"
    ),
    "partly-foreseen": (
        "{metric}: {predictor} covers a part of the rank positions, {shares}; the others are assumed to be alike."
    ),
    "not-assisted.few-rows": (
        "{metric}: assisted equals {plain} for {models}, without predictions of {predictor}: these are fewer than "
        "assisted(fewest=...), 30 by default, or for recall as few outside the lists."
    ),
    "not-assisted.alike": (
        "{metric}: assisted equals {plain} for {models}, without predictions of {predictor}: predictions of these "
        "pairs are all alike, or nothing else is predicted."
    ),
    "not-assisted.no-slope": (
        "{metric}: assisted equals {plain} for {models}, without predictions of {predictor}: labels do not go with "
        "predictions beyond sampling error."
    ),
    "prediction-balance": (
        "{metric}: labelled pairs against the lists, by the predictions of {predictor}: z = {by_model}."
    ),
    "judge-off": (
        "{metric}: judge-alone minus assisted is {differences} ({level:.0%} CI): no more than sampling error explains."
    ),
    "group": "group {group}: {units:,} of {of:,} {unit}s; the messages below are about all of them.",
    "detectable": "{question}: {detection}.",
    "detectable-more": "the same holds for {further:,} more questions: ask them one at a time.",
    "every-look": (
        "stopping at the first look that decides is wrong{together} with a probability of about {error:.0%}, however "
        "often you look, if users arrive in random order, unrelated to their taste. Each look is about all users so "
        "far: if you go on, a later look may be inconclusive again. Large losses of fewer than 5 % of the users who "
        "tell the models apart may not be among the first {first} of them."
    ),
}

CAUTIONS = {
    # input
    "relevant-rows.rule": (
        "{source}: rows with a value {rule} count as relevant, as in {tool}; for another rule use, for example, "
        '{option:positive ">3"|truerank.read(..., positive=">3")}.'
    ),
    "unlike": "{metric}: {difference}, which truerank does not do.",
    "missing-times": "{sentence}",
    "left-out-question": "excluded: {question}: {reason}",
    "users-without-rows": (
        "{users:,} of {of:,} users have no labelled pair. They belong to the population, because the labels were read "
        "or split with them: where a metric is a mean over all users, they count as 0 or are excluded, as its estimand "
        "states. To exclude them, read the labels without them."
    ),
    "holdout": (
        "hold-out evaluation treats unobserved pairs as irrelevant. This underestimates the metrics, most for models "
        "that recommend items the old system did not expose, so the winner need not be the better model. A few "
        "randomly exposed items per user would show it (docs/random-exposure.md)."
    ),
    "holdout.pooled": (
        "documents without a label count as irrelevant. This underestimates the metrics, most for systems whose "
        "documents were not pooled, so the winner need not be the better system. Labels of a random sample of the "
        "documents that they retrieve would show it ({option:exposure random})."
    ),
    "overlap-dropped": "{rows:,} labelled rows are excluded items and were dropped ({option:overlap}).",
    "no-exclusions": (
        "nothing is excluded: training items are candidates beside the test items, and models score them highest, so "
        "values are too low; give the training pairs with {option:exclude TRAIN}."
    ),
    "seen-in-lists": (
        "{model}: {share:.0%} of the listed items are excluded (training items of their users): they are no "
        "candidates, and lists are that much shorter. Make the lists without them."
    ),
    "scored-outside": "{model}: {items:,} scored items are not in the catalogue and are no candidates.",
    "taken-as-catalogue": (
        "{model}: every user lists all {n_items:,} items, which are taken as the whole catalogue; if there are more, "
        "give {option:items} or {option:n_items}."
    ),
    "few-users-in-common": (
        "{model} has no scores for {missing:,} of {users:,} users of {source}, such as {examples}; its users are such "
        "as {model_examples}. If these are the same users, give them the same ids."
    ),
    "scores-missing": (
        "{model}: scores for {users:,} of {n_users:,} users and {items:,} of {n_items:,} items; the other users are "
        "excluded"
    ),
    "judge-only-users": (
        "{users:,} of {of:,} users have labels of the judge only. assisted and judge-alone include them: assisted "
        "assumes that the judge is as accurate for them as for the others."
    ),
    "unasked": "{rows:,} rows are not in the design and are excluded: their sampling probability is unknown.",
    "not-returned": (
        "{rows:,} pairs of the design ({share:.0%}) have no label. Labelled pairs of the same user represent them "
        "({users:,} users), as if missing at random; {silent:,} users without any label are excluded. If missing "
        "labels depend on whether items were liked, values are biased."
    ),
    "users-not-returned": (
        "{users:,} of the {of:,} users of the design have no row in the labels and are excluded, as if they were not "
        "in the design."
    ),
    "pairs-missing": "{share:.1%} of all pairs have no label",
    "randomness.uneven": (
        "the labelled pairs are not quite a uniform sample: beyond sampling error, how often items were labelled "
        "differs by {effect:.0%} of the mean (X² = {statistic:,.1f} on {df:,.0f} degrees of freedom, p = {p:.2g})."
    ),
    "not-quite-random": "how often items were exposed differs by {effect:.0%} of the mean beyond sampling error",
    "inclusion-unused": (
        "{source}: the inclusion probabilities are not used, all {rows:,} rows count as the test set; for the average "
        'over test sets drawn with them, use {option:estimator intervened|estimators=["intervened"]} or '
        "intervened-pooled."
    ),
    "independent-units": (
        "no column of users: {unit}s are assumed to be independent. Where one person has several, intervals are too "
        "short and p-values too small; name the column with {columns}."
    ),
    "list-end": (
        "position model of {place}: no list goes beyond rank {rank}, which {lists_at_end:,} of {lists:,} lists reach. "
        "truerank takes this as the end of lists, not as people who stopped (censored). Add the column candidates (how "
        "many items a list has) to the log to state where each list ends."
    ),
    "position-misfit": (
        "position model of {place}: its {observed} differ from those in the log by more than sampling error (p = "
        "{p:.1g}). Verdicts stand only where the table of observed views gives the same. {remedy}."
    ),
    "many-surfaces": (
        "the log has more than {most} surfaces, so they share one fitted position model. Join surfaces that are "
        "scrolled alike."
    ),
    # lists and users of an estimate
    "no-scores": "{users:,} of {of:,} users have no scores from this model and are excluded",
    "left-out": "{units:,} of {of:,} {unit}s are excluded: they {reason}",
    "lacking-classes": (
        "{users:,} of {of:,} users lack a relevant or an irrelevant labelled item and are excluded, so this mean leans "
        "towards users who have many of both"
    ),
    "tied-scores": (
        "{model}: {share:.0%} of the relevant labelled items share their score with another candidate; values are "
        "expected over tie orders."
    ),
    "tie-cut": (
        "{users:,} of {of:,} users have equal scores at the end of their list: which of these items it contains was "
        "drawn at random, by seed, user and item"
    ),
    "short-lists": (
        "{users:,} of {of:,} users have fewer than {cutoff} recommended items, and empty rank positions count as "
        "misses; if exclusions have shortened top lists, give longer ones"
    ),
    "short-lists.whole": (
        "{users:,} of {of:,} users have fewer than {cutoff} recommended items, which are their whole list; if "
        "exclusions have shortened top lists, give longer ones"
    ),
    "orders-differ": (
        "{metric}: {first} orders the models {first_order}, {second} orders them {second_order}: they estimate "
        "different things."
    ),
    "unequal-judging": (
        "users have very unequal numbers of labelled items: with weights for that, {users:,.0f} of them have an "
        "effective sample size of {equal:,.0f}, and the interval may be too narrow"
    ),
    "balance-unchecked": (
        "whether labelled pairs represent the lists cannot be checked: the number of candidates is unknown"
    ),
    "judge-off.significant": (
        "{metric}: judge-alone minus assisted is {differences} ({level:.0%} CI), beyond sampling error for {models}: "
        "do not rely on judge-alone."
    ),
    "assistance-costs": (
        "{metric}: with predictions, the variance of differences is larger than with {plain}, {shares}: predictions do "
        "not fit the rank positions in which these lists differ. Compare them with {plain}."
    ),
    "predictions-repeat-labels": (
        "{predictor} agrees with all {rows:,} labels: check that it does not contain them. If it does, its errors "
        "elsewhere are not corrected, and the interval is too narrow"
    ),
    # weights of an estimate
    "few-effective-rows": (
        "the weighted {rows:,} rows have an effective sample size of {effective:,.0f}: the interval is rough"
    ),
    "heavy-row": "one row has {share:.0%} of all weight: check its propensity",
    "heavy-row.clip": "one row has {share:.0%} of all weight: check its propensity, or clip",
    "clipped": (
        "clipping at {clip:g} removes {lost:.1%} of the weight, so the value leans towards what was exposed often"
    ),
    "unseen-bounds": (
        "between {low:.4g} and {high:.4g}, sampling error apart, whatever is earned there (a reward is between "
        "{least:g} and {most:g})"
    ),
    # intervals
    "few-users": "only {users:,} users: the interval is rough",
    "few-units": "only {units:,} {cluster}s: the interval is rough",
    "few-hits": "rests on {users:,} users with a relevant labelled item in the list: the interval is rough",
    "few-rewards": "rests on {units:,} {cluster}s with a reward: the interval is rough",
    "few-hit-pairs": (
        "rests on {users:,} users with two relevant labelled items in the list (below {fewest}): the interval is "
        "rough, and the value is often too low"
    ),
    "no-single-item": (
        "no list contains an item that is in no other: the interval rests on what users unlike all of these could add"
    ),
    "same-value": "all users have the same value: the interval cannot show how others would differ",
    "no-interval": "no interval: no observed row would change the value, so its error is unknown",
    "unequal-clusters": (
        "{cluster}s are very unequal: {n:,} of them have an effective number of {effective:.0f} for the error, and one "
        "has {largest:.0%} of it; the interval is rough"
    ),
    "sizes-with-values": (
        "values of {cluster}s depend on their weight (correlation {correlation:.2f}), and the effective number of "
        "{cluster}s is {effective:.0f}: the interval is a little too short"
    ),
    "group-interval": (
        "a model that was fitted to all users has no interval within a group of them; for one, evaluate these users "
        "alone, to whom it is then fitted."
    ),
    "approximate-level": (
        "labelled rows have unequal weights, so the error of repeated looks is only approximately controlled: a few "
        "rows of large weight may not have been drawn yet. Confirm a close decision with more users"
    ),
    "position-model-rejected.value": (
        "the fitted position model ({fits}) does not describe the {observed} of the log (p = {p:.1g}), and the value "
        "depends on it: {value_by_table:.3g} with the table of observed views. {remedy}"
    ),
}
