"""Advice in words: one sentence that says what to do, and what to keep in mind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from truerank.core.arrays import Floats
from truerank.core.errors import InputError, some
from truerank.core.ids import Ids
from truerank.exposure.logging_policies import UniformLogger
from truerank.ranking import samplers
from truerank.ranking.samplers.draw import ItemCounts
from truerank.reliability.advice import WORSE, Advice, recommend
from truerank.reliability.advice_figures import Choice
from truerank.reliability.logs import Liked, Look, Seen
from truerank.reliability.studied import FULL

FAR = 0.25  # a distance at which the exposure of a log is unlike that of a logger: a quarter of the mean
NEAR = 0.05  # a distance below which two loggers expose alike
TWICE = 2.0  # a ratio of sizes from which logs are not alike
FEW_USERS, FEW_REPETITIONS = 200, 3


def verdict(advice: Advice) -> str:
    """What to do, in a few sentences that say no more than the study measured.

    What lies outside of it comes first, and the number of pairs of models whose order is known stands beside tau. Then,
    or where the order of most pairs is not known, there is no advice to use something, only what would be the choice.
    """
    chosen, best = advice.recommended, advice.best
    unlike, few = outside(advice), 2 * advice.pairs < advice.all_pairs
    what = f"By {advice.metric} over {advice.users:,} users"
    if unlike:
        what = (
            f"Outside of what was measured: {'; '.join(unlike)}. For the nearest that was, by {advice.metric} over "
            f"{advice.users:,} users"
        )
    agrees = f"is expected to agree with the true one with Kendall's tau {_with_interval(chosen)} {_over_pairs(advice)}"
    if not advice.good:
        more = (
            f"With endlessly many users it would be {chosen.limit:.2f}: more users help."
            if chosen.limit - chosen.tau > 2 * WORSE
            else f"More users do not help ({chosen.limit:.2f} with endlessly many): it is {_cause(advice)}."
        )
        return (
            f"{what}, nothing in the study keeps the true order well: of the best, {chosen.name}, the order of models "
            f"{agrees}. {more} Do not decide by it alone."
        )
    full = chosen.sampler == FULL
    doing = "rank all items (Full)" if full else f"use {chosen.name}"
    if unlike or few:
        doing = f"the choice would be {'all items (Full)' if full else chosen.name}"
    if full and all(each.tau < chosen.tau for each in advice.choices if each != chosen):
        return f"{what}, {doing}, no sample keeps the order as well: the order of models {agrees}."
    more = ""
    if best.negatives > chosen.negatives:
        times = best.negatives / max(chosen.negatives, 1.0)
        gain = best.tau - chosen.tau
        better = f"is better by {gain:.3f}" if gain >= 0.0005 else "is no better"
        more = f" {best.name} {better}, with {times:.1f} times as many negatives."
    elif best.closer < chosen.closer:
        more = f" {best.name} is as good here, but not for models that are closer to each other."
    return f"{what}, {doing}: the order of models {agrees}.{more}"


def _over_pairs(advice: Advice) -> str:
    """Over how many pairs of models tau is, and what it can be over all where the order of some is not known."""
    unknown = len(advice.undecided)
    if not unknown:
        return f"over {'all ' if advice.pairs > 1 else ''}{_pairs(advice.pairs)}"
    low, high = advice.tau_of_all
    other = "the other" if unknown == 1 else f"the other {unknown}"
    return (
        f"over {advice.pairs} of {_pairs(advice.all_pairs)}; the study does not know the true order of {other}, so "
        f"over all it can be anything from {low:.2f} to {high:.2f}"
    )


def _pairs(n: int) -> str:
    return f"{n} pair{'' if n == 1 else 's'} of models"


def outside(advice: Advice) -> tuple[str, ...]:
    """In what the log lies outside of what the study measured; nothing where it is like one of its logs."""
    densest, sparsest = advice.study_range
    logger, look, found = advice.logger, advice.log, []
    seen = f"{advice.sparsity:.1%}"
    if advice.sparsity > sparsest + 0.001:
        found.append(f"your log is sparser than any in the study ({seen} against {sparsest:.1%})")
    if advice.sparsity < densest - 0.001:
        found.append(f"your log is denser than any in the study ({seen} against {densest:.1%})")
    if isinstance(look, Look) and logger.distance > FAR:
        nearest = "the nearest logger" if logger == advice.loggers[0] else "the logger you named"
        found.append(f"its exposure is unlike that of {nearest}, {logger.logger} (distance {logger.distance:.2f})")
    if look is not None and not _alike(look.positives_per_user, logger.positives_per_user):
        found.append(
            f"your users have {look.positives_per_user:.1f} positives each, those of the study "
            f"{logger.positives_per_user:.1f}"
        )
    if look is not None and not _alike(look.items, logger.items):
        found.append(f"your catalogue has {look.items:,} items, that of the study {logger.items:,.0f}")
    return tuple(found)


def _alike(own: float, studied: float) -> bool:
    """Whether two sizes are within a factor of two of each other.

    >>> _alike(100, 199), _alike(100, 201), _alike(1, 0)
    (True, False, False)
    """
    return studied > 0 and 1 / TWICE <= own / studied <= TWICE


def _cause(advice: Advice) -> str:
    """Why pairs stay wrong: bias, if the study tells all their signs from 0."""
    told = 1 - 2 * len(advice.wrong) / advice.pairs
    return "bias" if told <= advice.recommended.limit + 1e-9 else "bias, or pairs that come too close for the study"


def _with_interval(choice: Choice) -> str:
    return f"{tau_text(choice.tau)} (95 % interval {tau_text(choice.low)} to {choice.high:.2f})"


def tau_text(tau: float) -> str:
    """Two digits that do not round up to certainty: 1.00 is said of 1 alone.

    >>> tau_text(0.982), tau_text(0.9998), tau_text(1.0)
    ('0.98', 'over 0.99', '1.00')
    """
    return "over 0.99" if 0.995 <= tau < 1 - 1e-9 else f"{tau:.2f}"


def warnings(advice: Advice) -> tuple[str, ...]:
    """What the figures leave out, the most harmful first."""
    return tuple(each for part in (_likeness, _figures, _study) for each in part(advice))


def _likeness(advice: Advice) -> Iterator[str]:
    if isinstance(advice.log, Liked):
        yield (
            "Your log holds positives alone: Exposed and Random@e, which need the negatives that were shown to a user, "
            "are left out, and how it was exposed is as you said."
        )
    elif advice.log is not None:
        yield from _exposure(advice, advice.log)
    if advice.log is not None:
        yield from _sizes(advice, advice.log)


def _exposure(advice: Advice, look: Look) -> Iterator[str]:
    logger = advice.logger
    others = [each for each in advice.loggers if each.logger != logger.logger]
    apart = [math.hypot(each.spread - logger.spread, each.lift - logger.lift) for each in others]
    alike = [
        each for each, far in zip(others, apart, strict=True) if far > NEAR and each.distance < 2 * logger.distance
    ]
    if alike and logger.distance > NEAR and logger == advice.loggers[0]:
        yield f"{alike[0].logger} is nearly as near as {logger.logger}; ask about it as the logger too."
    if logger.logger == str(UniformLogger()) and logger.distance <= FAR:
        yield (
            "Your log looks as if it was shown at random. `tr.randomness` tests that; if so, an "
            "evaluation with random exposure estimates what all labels would say, and no candidates need to be sampled."
        )
    if look.rows < look.items:
        yield f"Items have {look.rows / look.items:.1f} rows on average: spread and lift are noisy."


def _sizes(advice: Advice, look: Seen) -> Iterator[str]:
    logger = advice.logger
    if not _alike(look.positives_per_user, logger.positives_per_user):
        better = "optimistic" if look.positives_per_user < logger.positives_per_user else "pessimistic"
        yield f"With as many positives as your users have, the study's figures are probably {better}."
    if not _alike(look.items, logger.items):
        yield "Sizes are numbers of negatives, not shares, and mean something else in a catalogue of another size."


def needs(sampler: str) -> tuple[str, ...]:
    """What a sampler needs beside the log, as studies name samplers.

    >>> needs("WTD"), needs("WTDH"), needs("WTDH(mnar_source=train)")
    (('data that were shown at random',), (), ('training data',))
    """
    half = np.full(2, 0.5)
    for random, train in ((None, None), (half, None), (None, half), (half, half)):
        try:
            _weights(sampler, ItemCounts(_ALIKE, _ALIKE, train=train, random=random))
        except InputError:
            continue
        return tuple(name for name, given in zip(_BESIDE, (random, train), strict=True) if given is not None)
    return _BESIDE


def counts_rows(sampler: str) -> bool:
    """Whether a sampler weighs items by how often the log shows them, liked or not.

    >>> [counts_rows(each) for each in ("Random", "Popularity", "Positivity", "WTDH", "WTDH(mnar_source=train)")]
    [False, True, False, True, False]
    """
    half = np.full(2, 0.5)
    one, other = (_weights(sampler, ItemCounts(rows, _ALIKE, train=half, random=half)) for rows in (_MORE, _MORE[::-1]))
    return not np.array_equal(one, other)


_BESIDE = ("data that were shown at random", "training data")
_ALIKE, _MORE = np.array([1, 1]), np.array([1, 3])


def _weights(sampler: str, counts: ItemCounts) -> Floats:
    bare, bracket, options = sampler.partition("(")
    asked = replace(counts, items=Ids.of(range(len(counts.rows))), users=Ids.of([0]))
    return samplers.parse(f"{bare}@1{bracket}{options}").weights(asked)


def _lacking(choice: Choice, advice: Advice) -> str:
    """What a choice needs that the log does not have, in words; empty where it has all."""
    if choice.size is None:
        return ""
    found = [*needs(choice.sampler)]
    if isinstance(advice.log, Liked) and counts_rows(choice.sampler):
        found.append("how often each item was shown")
    return " and ".join(found)


def _figures(advice: Advice) -> Iterator[str]:
    lacking = _lacking(advice.recommended, advice)
    if lacking:
        others = [each for each in advice.choices if not _lacking(each, advice)]
        instead = f" Without it use {recommend(others).name} ({recommend(others).tau:.2f})." if others else ""
        yield f"{advice.recommended.sampler} needs {lacking}, beside the log.{instead}"
    if advice.wrong:
        named = some([f"{each.worse} above {each.better}" for each in advice.wrong], most=3)
        yield f"However many users there are, {advice.recommended.name} puts {named}."
    worse = sorted((each for each in advice.elsewhere if each.loss > WORSE), key=lambda each: -each.loss)
    if worse:
        first = worse[0]
        yield (
            f"{len(worse)} of {len(advice.elsewhere)} other metrics would choose otherwise; {first.metric} most: "
            f"{first.name} has {first.tau:.2f} there, what is recommended here {first.recommended:.2f}."
        )
    if advice.undecided:
        named = some([" and ".join(each) for each in advice.undecided], most=3)
        yield f"The study does not know the true order of {named}: these pairs are left out of tau."


def _study(advice: Advice) -> Iterator[str]:
    if advice.pairs < 3:
        yield f"The figures rest on {advice.pairs} pair{'s' if advice.pairs > 1 else ''} of models: study more models."
    if advice.study_users < FEW_USERS or advice.study_repetitions < FEW_REPETITIONS:
        yield (
            f"The study has {advice.study_users:,} users and {advice.study_repetitions} "
            f"repetition{'s' if advice.study_repetitions > 1 else ''}: its figures are rough."
        )
    if advice.users > TWICE * advice.study_users:
        yield (
            f"Your log has more users than the study ({advice.users:,} against {advice.study_users:,}): how close "
            "pairs of models come out is known only as well as the study knows it."
        )
    yield (
        "The world of the study is not yours: other users, items and models, and loggers that favour items, not what "
        "a user likes."
    )
