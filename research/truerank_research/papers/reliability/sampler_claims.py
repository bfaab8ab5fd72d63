"""What the sampler paper claims, sentence by sentence, with the rule that each is tested by.

Written before the grid was run; REVISED names the rules that were corrected after a first run had been seen, because
they did not test the sentence. Sources: sections of the paper, or `figures`: what its figures show at n = 1,000, where
the text does not say it.
"""

from __future__ import annotations

from math import isnan

from truerank.inference.agreement import rank_correlation
from truerank_research.papers.reliability.figures import (
    EVERY,
    FIDELITY,
    HIDDEN,
    POWER,
    RESOLUTION,
    ROBUSTNESS,
    SIZED,
    ClaimTest,
    LogPlace,
    SamplerClaim,
    above,
    beats,
    close,
    dips,
    exceeds,
    gains_less,
    highest,
    nobody_excels,
    rises,
    trails,
    unbeaten,
)

LOW, MODERATE, HIGH = (0.0, 0.1, 0.3, 0.5), (0.1, 0.3, 0.5), (0.9, 0.95)
PLAIN, LIKED, AWARE = ("Random", "WTD", "WTDH"), ("Popularity", "Positivity"), ("WTD", "WTDH", "Skew")
# the share of cells that a sentence asks for where it is not ALWAYS: "generally", "mostly", "often"; identities
MOSTLY, EXACTLY = 0.5, 1.0
SAME = 1e-6  # identities hold but for rounding


def least_at_cutoff(place: LogPlace) -> tuple[float, bool]:
    """The size with the fewest ties is from half the cut-off to the cut-off."""
    sizes, curve = place.sizes, place.curve(RESOLUTION)
    if any(isnan(each.value) for each in curve):
        return float("nan"), False
    n = min(zip(curve, sizes, strict=True), key=lambda each: each[0].value)[1]
    return float(n), place.figures.scale.cutoff / 2 <= n <= place.figures.scale.cutoff


def few_ties(place: LogPlace) -> tuple[float, bool]:
    """At most 2 % of pairs tie at some size up to twice the cut-off."""
    sizes = [n for n in place.figures.sizes if n <= 2 * place.figures.scale.cutoff]
    least = min(place.at(RESOLUTION, size=n).value for n in sizes)
    return least, least <= 0.02


def more_than_at(sparsity: float | None = None) -> ClaimTest:
    """Clearly more ties than at another sparsity; by default the one before."""

    def test(place: LogPlace) -> tuple[float, bool]:
        before = [each for each in place.figures.sparsities if each < place.sparsity]
        now, then = place.at(RESOLUTION), place.at(RESOLUTION, sparsity=sparsity or max(before))
        return now.value - then.value, above(now, then)

    return test


def finer_than_shorter(place: LogPlace) -> tuple[float, bool]:
    """Clearly fewer ties than with the shorter cut-off."""
    long, short = place.at(RESOLUTION), place.at(RESOLUTION, metric=place.figures.scale.shorter)
    return long.value - short.value, above(short, long)


def same_order_with_shorter(place: LogPlace) -> tuple[float, bool]:
    """τ-b between the order of the nine samplers under both cut-offs is at least 0.5."""
    both = (
        [place.at(POWER, each, metric=metric).value for each in EVERY]
        for metric in (place.figures.scale.metric, place.figures.scale.shorter)
    )
    first, second = both
    if any(map(isnan, (*first, *second))):
        return float("nan"), False
    found = rank_correlation(first, second).coefficient
    return found, found >= 0.5


def skew_falls_behind(place: LogPlace) -> tuple[float, bool]:
    """Skew's distance to Random has grown clearly since sparsity 10 %."""
    ends = (place.at(FIDELITY, each, sparsity=at) for at in (0.1, place.sparsity) for each in ("Random", "Skew"))
    (early, early_skew, late, late_skew) = ends
    growth = (late.value - late_skew.value) - (early.value - early_skew.value)
    return growth, exceeds([late, early_skew], [early, late_skew])


def at_moderate_at_least(question: str, least: float) -> ClaimTest:
    """At the moderate size and all larger ones, up to the large one."""

    def test(place: LogPlace) -> tuple[float, bool]:
        scale = place.figures.scale
        found = [place.at(question, size=n).value for n in place.sizes if n >= scale.moderate]
        return found[0], all(each > least for each in found)

    return test


def near_plateau(place: LogPlace) -> tuple[float, bool]:
    """At the moderate size within 0.05 of the large one."""
    gap = place.at(FIDELITY).value
    gap -= place.at(FIDELITY, size=place.figures.scale.moderate).value
    return gap, gap <= 0.05


def differ_markedly(place: LogPlace) -> tuple[float, bool]:
    """Sized samplers are apart by at least 0.05, and all clearly below 1."""
    found = [place.at(FIDELITY, each) for each in SIZED]
    apart = max(each.value for each in found) - min(each.value for each in found)
    return apart, apart >= 0.05 and all(each.high < 0.99 for each in found)


def same(first: str, second: str | None = None) -> ClaimTest:
    """Two questions have one answer, up to rounding; without a second the answer is 1."""

    def test(place: LogPlace) -> tuple[float, bool]:
        value = place.at(first).value - (place.at(second).value if second else 0.0)
        return value, abs(value - (second is None)) < SAME

    return test


def above_random_and_unbeaten(place: LogPlace) -> tuple[float, bool]:
    lead, _ = beats(ROBUSTNESS, "Random")(place)
    own = place.at(ROBUSTNESS)
    best = not any(above(place.at(ROBUSTNESS, each), own) for each in SIZED)
    return lead, above(own, place.at(ROBUSTNESS, "Random")) and best


def comparable_to_weighted(place: LogPlace) -> tuple[float, bool]:
    """At most 0.05 below the best of WTD, WTDH and Skew."""
    gap = place.at(POWER).value - max(place.at(POWER, each).value for each in AWARE)
    return gap, gap >= -0.05


def much_below_random(place: LogPlace) -> tuple[float, bool]:
    gap = place.at(POWER).value - place.at(POWER, "Random").value
    return gap, gap <= -0.05


def below_half_of_random(place: LogPlace) -> tuple[float, bool]:
    """Clearly below Random with about half as many candidates."""
    own, other = place.at(POWER), place.at(POWER, "Random", size=place.figures.scale.half)
    return own.value - other.value, above(other, own)


def tight(place: LogPlace) -> tuple[float, bool]:
    own = place.at(POWER)
    half = (own.high - own.low) / 2
    return half, half <= 0.01


REVISED = ("Q3.2", "Q3.4", "Q3.5", "C.2", "C.3", "C.4")

CLAIMS = (
    SamplerClaim(
        "Q1.1", "5.1", "Very small and very large samples have the most ties (U-shaped in n).",
        "clearly more ties at the smallest and at the largest n than at the best n between", "ties at the best n",
        dips(RESOLUTION), SIZED,
    ),
    SamplerClaim(
        "Q1.2", "figures", "Ties are fewest around n = 50 to 100.", "the best n is from K/2 to K", "best n",
        least_at_cutoff, SIZED,
    ),
    SamplerClaim(
        "Q1.3", "5.1", "Up to 50 % sparsity most samplers have few ties at small to moderate n.",
        "at most 2 % ties at some n up to 2K", "ties at the best n up to 2K", few_ties, SIZED,
        LOW, needed=MOSTLY,
    ),
    SamplerClaim(
        "Q1.4", "5.1", "Ties of Full grow with sparsity.", "clearly more than at the sparsity before", "growth",
        more_than_at(), ("Full",), HIDDEN,
    ),
    SamplerClaim(
        "Q1.5", "5.1", "At 90 and 95 % ties stay much higher, even for large n.",
        "clearly more than at 50 %, large n", "difference to 50 %", more_than_at(0.5), SIZED,
        HIGH,
    ),
    SamplerClaim(
        "Q1.6", "5.1", "Skew, Popularity and Positivity consistently have fewer ties.",
        "clearly fewer than Random, WTD and WTDH, large n", "distance to the least of them",
        trails(RESOLUTION, *PLAIN), ("Skew", *LIKED),
    ),
    SamplerClaim(
        "Q1.7", "5.1, figures", "Full has the most ties in most settings.",
        "clearly more than all six sized samplers, large n", "lead over the next",
        beats(RESOLUTION, *SIZED), ("Full",), needed=MOSTLY,
    ),
    SamplerClaim(
        "Q1.8", "5.1", "Exposed and Random@e have few ties at high sparsity.",
        "clearly fewer than Full, 90 and 95 %", "distance to Full", trails(RESOLUTION, "Full"),
        ("Exposed", "Random@e"), HIGH,
    ),
    SamplerClaim(
        "Q1.9", "our reading of 4.5, which speaks of differences between samplers",
        "The deep cut-off separates models better than shorter ones.",
        "clearly fewer ties of models than with one shorter nDCG (@10; Jester @5), large n", "difference",
        finer_than_shorter, EVERY,
    ),
    SamplerClaim(
        "Q1.10", "4.5", "Shorter cut-offs show the same patterns.",
        "τ-b ≥ 0.5 between the orders of the nine samplers under both cut-offs; only one shorter nDCG (@10; "
        "Jester @5) and one question, predictive power, are tested", "τ-b", same_order_with_shorter,
        ("Full",),
    ),
    SamplerClaim(
        "Q2.1", "5.2", "Fidelity rises with n.",
        "clearly more at the largest n than at the smallest, no clear fall between", "gain",
        rises(FIDELITY), SIZED,
    ),
    SamplerClaim(
        "Q2.2", "5.2", "Random, WTD and WTDH are the most faithful.",
        "clearly above Popularity and Positivity, large n", "lead", beats(FIDELITY, *LIKED), PLAIN,
    ),
    SamplerClaim(
        "Q2.3", "5.2", "Random, WTD and WTDH reach near-maximum fidelity at n ≥ 200 and 10 to 50 % sparsity.",
        "τ > 0.9 at the moderate n and all larger", "τ at the moderate n",
        at_moderate_at_least(FIDELITY, 0.9), PLAIN, MODERATE,
    ),
    SamplerClaim(
        "Q2.4", "5.2, weaker reading",
        "At n = 200 Random, WTD and WTDH are near the fidelity that they reach at the largest n.",
        "τ at the moderate n within 0.05 of that at the largest", "what is still gained",
        near_plateau, PLAIN, MODERATE,
    ),
    SamplerClaim(
        "Q2.5", "5.2", "Skew is as faithful at low sparsity.", "within 0.05 of Random, 0 to 30 %, large n",
        "Skew − Random", close(FIDELITY, "Random"), ("Skew",), (0.0, 0.1, 0.3),
    ),
    SamplerClaim(
        "Q2.6", "5.2", "Skew's fidelity declines faster with sparsity, mainly under the positivity logger.",
        "its distance to Random at 90 and 95 % clearly larger than at 10 %", "growth of the distance",
        skew_falls_behind, ("Skew",), HIGH,
    ),
    SamplerClaim(
        "Q2.7", "5.2", "The fidelity of Popularity and Positivity converges later.",
        "clearly below Random at the moderate n", "distance to Random",
        trails(FIDELITY, "Random", moderate=True), LIKED,
    ),
    SamplerClaim(
        "Q2.8", "5.2", "Exposed and Random@e are equally faithful.", "within 0.05", "Exposed − Random@e",
        close(FIDELITY, "Random@e"), ("Exposed",), HIDDEN,
    ),
    SamplerClaim(
        "Q2.9", "5.2", "Exposed tends to be less faithful than Random@e.", "clearly below", "Exposed − Random@e",
        trails(FIDELITY, "Random@e"), ("Exposed",), HIDDEN, needed=MOSTLY,
    ),
    SamplerClaim(
        "Q2.10", "5.2", "Even with everything shown, sampling distorts, and samplers differ markedly.",
        "at 0 %: the six sized samplers at least 0.05 apart, all clearly below 1, large n", "best − worst",
        differ_markedly, ("Full",), (0.0,),
    ),
    SamplerClaim(
        "Q3.1", "5.3", "Without sparsity robustness is perfect at every n.", "exactly 1 at 0 % (by construction)",
        "τ", same(ROBUSTNESS), EVERY, (0.0,), needed=EXACTLY,
    ),
    SamplerClaim(
        "Q3.2", "5.3", "Larger n generally improves robustness.",
        "clearly more at the largest n than at the smallest, no clear fall between", "gain",
        rises(ROBUSTNESS), SIZED, HIDDEN, needed=MOSTLY,
    ),
    SamplerClaim(
        "Q3.3", "5.3", "WTD and WTDH are the most robust, above all under the uniform logger.",
        "uniform logger: clearly above Random, no sized sampler clearly above, large n. It cannot hold by "
        "construction: under the uniform logger the weights of WTD and WTDH are all equal in `released`, and "
        "equal but for noise in `published`, so that both are Random", "lead over Random",
        above_random_and_unbeaten, ("WTD", "WTDH"), HIDDEN, ("uniform",),
    ),
    SamplerClaim(
        "Q3.4", "5.3", "Popularity and Positivity gain little robustness from larger n.",
        "what they gain from the smallest to the largest n is clearly less than what Random gains",
        "gain − Random's gain", gains_less(ROBUSTNESS, "Random"), LIKED, HIDDEN,
    ),
    SamplerClaim(
        "Q3.5", "5.3", "Full is the most robust in most cases.",
        "alone the highest value of all nine, clearly or not, large n", "lead over the next",
        highest(ROBUSTNESS, *EVERY), ("Full",), HIDDEN, needed=MOSTLY,
    ),
    SamplerClaim(
        "Q3.6", "5.3", "Exposed and Random@e are equally robust at low sparsity.", "within 0.05, 10 to 50 %",
        "Exposed − Random@e", close(ROBUSTNESS, "Random@e"), ("Exposed",), MODERATE,
    ),
    SamplerClaim(
        "Q3.7", "5.3", "At high sparsity Random@e is consistently more robust than Exposed.",
        "clearly above, 90 and 95 %", "Random@e − Exposed", beats(ROBUSTNESS, "Exposed"),
        ("Random@e",), HIGH,
    ),
    SamplerClaim(
        "Q4.1", "5.4", "Predictive power rises with n.",
        "clearly more at the largest n than at the smallest, no clear fall between", "gain",
        rises(POWER), SIZED,
    ),
    SamplerClaim(
        "Q4.2", "5.4", "Random, WTD, WTDH and Skew have the most predictive power of sized samplers.",
        "clearly above Popularity and Positivity, large n", "lead", beats(POWER, *LIKED),
        (*PLAIN, "Skew"),
    ),
    SamplerClaim(
        "Q4.3", "5.4", "Random, WTD, WTDH and Skew overtake Full at high sparsity.",
        "clearly above Full, 90 and 95 %, large n", "lead over Full", beats(POWER, "Full"),
        (*PLAIN, "Skew"), HIGH,
    ),
    SamplerClaim(
        "Q4.4", "5.4",
        "The predictive power of Skew, WTD and WTDH often exceeds 0.7 at n ≥ 200 and 10 to 50 % sparsity.",
        "τ > 0.7 at the moderate n and all larger", "τ at the moderate n",
        at_moderate_at_least(POWER, 0.7), AWARE, MODERATE, needed=MOSTLY,
    ),
    SamplerClaim(
        "Q4.5", "5.4", "Random predicts about as well as the weighted samplers.",
        "at most 0.05 below the best of WTD, WTDH and Skew, large n", "Random − best",
        comparable_to_weighted, ("Random",),
    ),
    SamplerClaim(
        "Q4.6", "5.4", "Popularity and Positivity have much lower predictive power.",
        "at least 0.05 below Random, large n", "distance to Random", much_below_random, LIKED,
    ),
    SamplerClaim(
        "Q4.7", "figures", "Positivity is the worst sized sampler.", "clearly below the other five, large n",
        "distance to the next", trails(POWER, *SIZED), ("Positivity",),
    ),
    SamplerClaim(
        "Q4.8", "5.4", "Exposed and Random@e predict equally well.", "within 0.05", "Exposed − Random@e",
        close(POWER, "Random@e"), ("Exposed",), HIDDEN,
    ),
    SamplerClaim(
        "Q4.9", "5.4", "Random@e predicts badly where data is sparse.", "clearly below Random, 90 and 95 %, large n",
        "distance to Random", trails(POWER, "Random"), ("Random@e",), HIGH,
    ),
    SamplerClaim(
        "C.1", "6", "WTD, WTDH and Skew consistently outperform naive baselines.",
        "predictive power clearly above Random's, large n", "lead over Random",
        beats(POWER, "Random"), AWARE, HIDDEN,
    ),
    SamplerClaim(
        "C.2", "6", "Exposed is a surprisingly strong contender.",
        "predictive power: no sized sampler clearly above (one may be higher within the noise), large n",
        "distance to the best sized", unbeaten(POWER, *SIZED), ("Exposed",), HIDDEN,
    ),
    SamplerClaim(
        "C.3", "6", "No single sampler excels in everything.",
        "no sampler has, in every question that is open to it (not fidelity for Full, which it compares with), no"
        " other clearly above it in most logs with something hidden, large n", "how many samplers do",
        nobody_excels, ("Full",), (0.0,), ("uniform",), needed=EXACTLY,
    ),
    SamplerClaim(
        "C.4", "6", "A larger sample is no better where its items are badly chosen.",
        "predictive power of Popularity and Positivity clearly below that of Random with about half as many",
        "distance", below_half_of_random, LIKED,
    ),
    SamplerClaim(
        "C.5", "5", "Intervals are mostly too small to be seen.",
        "half-width of predictive power at most 0.01, large n", "half-width", tight, EVERY, HIDDEN, needed=MOSTLY,
    ),
    SamplerClaim(
        "I.1", "figures", "Robustness and predictive power of Full are the same.", "equal (by construction)",
        "difference", same(ROBUSTNESS, POWER), ("Full",), needed=EXACTLY,
    ),
    SamplerClaim(
        "I.2", "figures", "Without sparsity fidelity and predictive power are the same.",
        "equal at 0 % (by construction)", "difference", same(FIDELITY, POWER), EVERY, (0.0,), needed=EXACTLY,
    ),
    SamplerClaim(
        "I.3", "from the definitions", "WTD and WTDH are nearly the same.", "predictive power within 0.02, large n",
        "WTD − WTDH", close(POWER, "WTDH", within=0.02), ("WTD",),
    ),
)  # fmt: skip
