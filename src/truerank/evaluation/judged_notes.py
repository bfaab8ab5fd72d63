"""What is said once about a whole evaluation of judged rows: what matched, what was tied, where orders differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.estimator import Estimator
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.messages import Message, caution, note, warning
from truerank.core.metric import Metric
from truerank.core.ranking import Scores
from truerank.core.results import Estimate
from truerank.core.terms import Terms
from truerank.estimators.pairs import PairRatio
from truerank.estimators.predictions import Helped
from truerank.estimators.refusals import is_recall
from truerank.evaluation.question import Tallies
from truerank.exposure.randomness.items import LARGE, JudgedItems
from truerank.uncertainty.balance import FAR, MUCH

FEW_PAIRS = 5  # users with two labelled hits in their list, below which the interval of AP is rough
EVEN = 0.5  # of the users, that they are worth when weighted by how much each judged item stands for


def about_counts(users: Ids, *, n_items: float, judged: int, positives: int) -> list[Message]:
    """How many users, items and positives there are: the first thing to look at when a number surprises."""
    size = "unknown" if math.isnan(n_items) else f"{int(n_items):,}"
    messages = [
        note(
            "matched",
            f"{len(users):,} users, {size} items, {judged:,} judged pairs, {positives:,} of them relevant.",
            numbers={"users": len(users), "judged": judged, "relevant": positives},
        )
    ]
    if positives == 0:
        messages.append(
            warning("no-positive", "no judged pair is relevant: Recall is undefined, Precision and DCG are 0.")
        )
    return messages


def about_population(n_users: int, empty: int) -> list[Message]:
    """Users who count although nothing of them was judged: with the labels come the users they are about."""
    if not empty:
        return []
    return [
        caution(
            "users-without-rows",
            f"{empty:,} of {n_users:,} users have no judged row, and belong to the population all the same, because "
            "the labels were read or split with them; where a metric is a mean over all users, they count as 0 or are "
            "left out, as its estimand says. For the others alone, read the labels without them.",
            numbers={"users": empty},
        )
    ]


def about_holdout(source: str, rows: Log) -> list[Message]:
    """What a hold-out takes as relevant, and that the rest is taken as irrelevant."""
    every = note("relevant-rows", f"{source}: no value column, so every row is a relevant pair.")
    return [
        *([] if rows.rewards else [every]),
        caution(
            "holdout",
            "a hold-out takes every pair that is not listed as irrelevant, though nobody asked about them: values are "
            "too low, most for models that recommend what was never shown, so a winner here need not be the better "
            "model. A few randomly exposed items per user would tell (docs/random-exposure.md).",
        ),
    ]


def about_scores(models: Mapping[str, Scores], users: Ids, items: Ids) -> list[Message]:
    """How many users and items of the evaluation each model has scores for."""
    messages = []
    for name, scores in models.items():
        known = int(np.count_nonzero(scores.users.locate(users) >= 0))
        without = len(scores.users) - known
        extra = f"; {without:,} users with scores have no labels and are not evaluated" if without else ""
        unknown = int(np.count_nonzero(scores.items.locate(items) < 0)) if scores.depth is None else 0
        unscored = f"; {unknown:,} items of the catalogue have no score and are never recommended" if unknown else ""
        messages.append(
            note(
                "scored",
                f"{name}: scores for {known:,} of {len(users):,} users{extra}{unscored}.",
                numbers={"users": known, "without_labels": without, "items_without_score": unknown},
                about=(name,),
            )
        )
    return messages


def about_ranks(model: str, tallies: Tallies) -> list[Message]:
    """Relevant items that a model never recommends, or whose score others share."""
    positive, never, tied = (int(tallies.get((model, what), 0)) for what in ("positive", "never", "tied"))
    messages = []
    if never:
        messages.append(
            note(
                "never-recommended",
                f"{model}: {never:,} of {positive:,} relevant judged items are never recommended.",
                numbers={"never": never, "relevant": positive},
                about=(model,),
            )
        )
    if positive and tied / positive > 0.1:
        messages.append(
            caution(
                "tied-scores",
                f"{model}: {tied / positive:.0%} of the relevant judged items share their score with another "
                "candidate; values are expected over tie orders.",
                numbers={"tied": tied, "relevant": positive},
                about=(model,),
            )
        )
    return messages


def about_refits(failures: Mapping[str, int]) -> list[Message]:
    """Why fitted models have no interval: without some parts of the users they cannot be fitted."""
    return [
        note("refit-failed", f"no interval: without {parts:,} parts of the users {reason}")
        for reason, parts in failures.items()
    ]


def differing_orders(estimates: Sequence[Estimate]) -> list[Message]:
    """Recall pooled over pairs and recall averaged over users are different questions; say where answers differ."""
    groups: dict[str, dict[str, list[Estimate]]] = {}
    for estimate in estimates:
        if estimate.segment is not None:
            continue
        known = groups.setdefault(estimate.metric, {}).setdefault(estimate.estimator, [])
        # one name with several settings estimates one thing: the first stands for all
        if estimate.model not in {other.model for other in known}:
            known.append(estimate)
    return [
        caution(
            "orders-differ",
            f"{metric}: {first} orders the models {_order(a)}, {second} orders them {_order(b)}: "
            "they estimate different things.",
            about=(metric, first, second),
        )
        for metric, by_estimator in groups.items()
        for (first, a), (second, b) in combinations(by_estimator.items(), 2)
        if a[0].estimand != b[0].estimand and _ordered(a) and _ordered(b) and _order(a) != _order(b)
    ]


def _ordered(estimates: Sequence[Estimate]) -> bool:
    return not any(math.isnan(estimate.value) for estimate in estimates)


def _order(estimates: Sequence[Estimate]) -> str:
    return " > ".join(estimate.model for estimate in sorted(estimates, key=lambda estimate: -estimate.value))


def about_exclusions(matched: int, source: str, rows: int) -> list[Message]:
    """How much of the exclusions has a user and an item of this evaluation."""
    messages = [
        note(
            "excluded",
            f"{matched:,} of {rows:,} excluded pairs concern users and items of this evaluation.",
            numbers={"matched": matched, "rows": rows},
        )
    ]
    if matched or not rows:
        return messages
    return [*messages, warning("nothing-excluded", f"nothing is excluded: check the ids of {source}.")]


def about_overlap(dropped: int) -> list[Message]:
    if not dropped:
        return []
    return [
        caution(
            "overlap-dropped",
            f"{dropped:,} judged rows are excluded items and were dropped ({{option:overlap}}).",
            numbers={"rows": dropped},
        )
    ]


def about_catalogue(models: Mapping[str, Scores], items: Ids, *, taken_whole: Sequence[str]) -> list[Message]:
    """Items that are scored but do not compete, and tables that were taken as the whole catalogue."""
    messages = []
    for name, scores in models.items():
        ignored = len(scores.items) - int(np.count_nonzero(scores.items.locate(items) >= 0))
        if ignored and scores.depth is None:
            messages.append(
                caution(
                    "scored-outside",
                    f"{name}: {ignored:,} scored items are not in the catalogue and do not compete.",
                    numbers={"items": ignored},
                    about=(name,),
                )
            )
        if name in taken_whole:
            messages.append(
                caution(
                    "taken-as-catalogue",
                    f"{name}: every user lists all {len(scores.items):,} items, taken as the whole catalogue; "
                    "if there are more, give {option:items} or {option:n_items}.",
                    about=(name,),
                )
            )
    return messages


def about_randomness(items: JudgedItems | None) -> list[Message]:
    """Whether the judged rows look like the uniform draws they are taken for, in one line."""
    if items is None:
        return []
    found = items.finding()
    if found is None:
        return [
            note("randomness", "whether rows were judged at random cannot be tested: no user had a choice of items.")
        ]
    numbers = {"statistic": found.statistic, "df": found.df, "p": found.p, "effect": found.effect}
    figures = f"X² = {found.statistic:,.1f} on {found.df:,.0f} degrees of freedom, p {_p(found.p)}"
    if not found.rejected:
        sentence = f"the judged rows look like uniform draws: items were judged about equally often ({figures})."
        return [note("randomness", sentence, numbers=numbers)]
    if not found.not_random:
        return [
            caution(
                "randomness",
                f"the judged rows are not quite uniform draws: beyond chance, how often items were judged differs by "
                f"{found.effect:.0%} of the mean ({figures}).",
                numbers=numbers,
            )
        ]
    return [warning(each.code, f"{each.text} ({figures}).", numbers=numbers) for each in not_random(items)]


def not_random(items: JudgedItems | None) -> tuple[Message, ...]:
    """What takes verdicts away: rows that plainly are no uniform draws."""
    found = None if items is None else items.finding()
    if found is None or not found.not_random:
        return ()
    return (
        warning(
            "not-random",
            "{option:exposure random} does not fit, the judged rows are no uniform draws: beyond chance, how often "
            f"items were judged differs by {found.effect:.0%} of the mean (above {LARGE:.0%})",
            numbers={"p": found.p, "effect": found.effect},
        ),
    )


def _p(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"


def about_propensities(description: str | None, tallies: Tallies, *, designed: bool = False) -> list[Message]:
    """What was assumed of exposure, and whether it fits: each row stands for 1 / π, so Σ 1 / π is about all pairs."""
    if description is None:
        return []
    stand_for, pairs, z = _pairs(tallies)
    messages = [note("propensities", f"{description}.")]
    if abs(z) > FAR and abs(stand_for / pairs - 1) > MUCH:
        off = "horvitz-thompson is" if designed else "ips and doubly-robust are"
        steady = "hajek" if designed else "snips"
        why = (
            "rows that are seldom shown and stand for many others were not drawn, users to whom nothing was shown are "
            "missing ({option:population|users=}), or the propensities are too large"
            if stand_for < pairs
            else "the propensities are too small"
        )
        messages.append(
            warning(
                "propensity-scale",
                f"the rows stand for {stand_for:,.0f} pairs (Σ 1 / propensity), but there are {pairs:,.0f}: {why}. "
                f"{off} off by about as much; {steady} is not.",
                numbers={"stand_for": stand_for, "pairs": pairs, "z": z},
            )
        )
    return messages


def missing_share(tallies: Tallies) -> float:
    """The share of all pairs that the rows do not stand for, where that is more than chance; 0 where it is not."""
    stand_for, pairs, z = _pairs(tallies)
    return 1 - stand_for / pairs if z < -FAR and stand_for / pairs < 1 - MUCH else 0.0


def heavy_rows_missing(tallies: Tallies) -> tuple[Message, ...]:
    """That pairs with small propensities, of which one stands for many, are not among the rows."""
    share = missing_share(tallies)
    if not share:
        return ()
    return (
        warning(
            "heavy-rows-missing",
            f"{share:.0%} of all pairs are like none of the rows (Σ 1 / propensity is that much too small): rows that "
            "are seldom shown and would weigh much were not drawn, and what they earn is missing from the value",
            numbers={"share": share},
        ),
    )


def expansions(judged: Ints, candidates: Floats) -> Floats:
    """How many users have a judged item, Σ N / N-bar and Σ (N / N-bar)² over them; those of other users add.

    >>> expansions(np.array([10, 5, 0]), np.array([20.0, 20.0, 20.0])).tolist()
    [2.0, 6.0, 20.0]
    """
    used = judged > 0
    stands_for = candidates[used] / judged[used]
    return np.array([float(np.count_nonzero(used)), stands_for.sum(), (stands_for**2).sum()])


def unequal_judging(tallies: Tallies) -> tuple[Message, ...]:
    """That few users with few judged items outweigh the others, whether or not anything of theirs was a hit.

    By the design alone: where users with one judged item among many had no hit by chance, nothing in the spread shows
    how much one would have changed.
    """
    n, total, squares = tallies.get(("expansion",), np.zeros(3)).tolist()
    equal = total**2 / squares if squares > 0 else 0.0
    if not 0 < equal < EVEN * n:
        return ()
    return (
        caution(
            "unequal-judging",
            f"users have very unequal numbers of judged items: weighted for that, {n:,.0f} of them are worth "
            f"{equal:,.0f} equal ones, and the interval may be too narrow",
            numbers={"users": n, "equal": equal},
        ),
    )


def _pairs(tallies: Tallies) -> tuple[float, float, float]:
    """Σ 1 / π over rows, the number of pairs it estimates, and by how many standard errors the two differ."""
    stand_for, noise, pairs = (float(tallies.get(("propensity", what), 0.0)) for what in ("weight", "noise", "pairs"))
    apart = stand_for - pairs
    if math.isnan(pairs) or abs(apart) <= 1e-9 * pairs:
        return stand_for, pairs, 0.0
    return stand_for, pairs, apart / math.sqrt(noise) if noise > 0 else math.copysign(math.inf, apart)


def about_inclusion(source: str, n_rows: int) -> list[Message]:
    """What to say where rows have inclusion probabilities that no estimator looks at."""
    return [
        caution(
            "inclusion-unused",
            f"{source}: the inclusion probabilities are not used, all {n_rows:,} rows count as the test set; for "
            "what test sets drawn with them give on average, say "
            '{option:estimator intervened|estimators=["intervened"]} or intervened-pooled.',
        )
    ]


def _hit_pairs(terms: Terms) -> int | None:
    """How many users have two labelled hits in their list; None where that does not matter, or every label is known."""
    whole = terms.whole
    if whole.exact or not isinstance(whole.form, PairRatio):
        return None
    return whole.form.users_with_pair(whole.totals())


def no_hit_pairs(terms: Terms) -> tuple[Message, ...]:
    """What takes interval and verdict from AP: no pair of hits shows what pairs add to it."""
    if _hit_pairs(terms) != 0:
        return ()
    sentence = (
        "no user has two labelled hits in the list: AP counts pairs of hits, so the value is too low and nothing shows "
        "by how much. Label more items per user, or use Precision or DCG"
    )
    return (warning("no-hit-pairs", sentence),)


def few_hit_pairs(terms: Terms) -> tuple[Message, ...]:
    n_users = _hit_pairs(terms)
    if n_users is None or not 0 < n_users < FEW_PAIRS:
        return ()
    sentence = (
        f"rests on {n_users} users with two labelled hits in the list (below {FEW_PAIRS}): the interval is rough, and "
        "the value is often too low"
    )
    return (caution("few-hit-pairs", sentence, numbers={"users": n_users}),)


def rests_on_all_pairs(estimator: Estimator, metric: Metric) -> bool:
    """Whether a value is off where rows do not represent all pairs. Assisted sums are not: they have the level of the
    labelled rows of lists, and whether these represent the lists is checked."""
    return estimator.about.needs_scale and (is_recall(metric) or not isinstance(estimator, Helped))
