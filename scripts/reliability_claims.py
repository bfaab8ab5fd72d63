"""What the sampler paper claims (paper 5), sentence by sentence, with the rule that each is tested by.

Written before the grid was run; REVISED names the rules that were corrected after a first run had been seen, because
they did not test the sentence. Sources: sections of the paper, or `figures`: what its figures show at n = 1,000, where
the text does not say it.
"""

from __future__ import annotations

from math import isnan

from reliability_verdicts import (
    FIDELITY,
    FIXED,
    POWER,
    RESOLUTION,
    ROBUSTNESS,
    SIZED,
    Claim,
    Figures,
    Place,
    Scale,
    Test,
    above,
    beats,
    close,
    dips,
    exceeds,
    gains_less,
    highest,
    rises,
    tau,
    trails,
    unbeaten,
)

LOW, MODERATE, HIGH = (0.0, 0.1, 0.3, 0.5), (0.1, 0.3, 0.5), (0.9, 0.95)
HIDDEN = (0.1, 0.3, 0.5, 0.7, 0.85, 0.9, 0.95)  # something is hidden
PLAIN, LIKED, AWARE = ("Random", "WTD", "WTDH"), ("Popularity", "Positivity"), ("WTD", "WTDH", "Skew")
# the share of cells that a sentence asks for: plain or "consistently"; "generally", "mostly", "often", "tends"; identities
ALWAYS, MOSTLY, EXACTLY = 0.8, 0.5, 1.0
REVISED = ("Q3.2", "Q3.4", "Q3.5", "C.2", "C.3", "C.4")
BY_CONSTRUCTION = ("Q3.1", "Q3.3", "I.1", "I.2")  # decided by the definitions, whatever the data
EVERY = (*FIXED, *SIZED)
QUESTIONS = (RESOLUTION, FIDELITY, ROBUSTNESS, POWER)
SAME = 1e-6  # identities hold but for rounding
# 200, 500 and 1,000 of KuaiRec's 3,327 items are 6, 15 and 30 %: 5, 10 and 25 of Jester's 80
SCALES = {
    "kuairec": Scale("nDCG@100", "nDCG@10", cutoff=100, large=1000, half=500, moderate=200),
    "jester": Scale("nDCG@10", "nDCG@5", cutoff=10, large=25, half=10, moderate=5),
}


def least_at_cutoff(place: Place) -> tuple[float, bool]:
    """The size with the fewest ties is from half the cut-off to the cut-off."""
    sizes, curve = place.sizes, place.curve(RESOLUTION)
    if any(isnan(each.value) for each in curve):
        return float("nan"), False
    n = min(zip(curve, sizes, strict=True), key=lambda each: each[0].value)[1]
    return float(n), place.figures.scale.cutoff / 2 <= n <= place.figures.scale.cutoff


def few_ties(place: Place) -> tuple[float, bool]:
    """At most 2 % of pairs tie at some size up to twice the cut-off."""
    sizes = [n for n in place.figures.sizes if n <= 2 * place.figures.scale.cutoff]
    least = min(place.at(RESOLUTION, size=n).value for n in sizes)
    return least, least <= 0.02


def more_than_before(place: Place) -> tuple[float, bool]:
    """Clearly more ties than at the sparsity before."""
    before = max(each for each in place.figures.sparsities if each < place.sparsity)
    now, then = place.at(RESOLUTION), place.at(RESOLUTION, sparsity=before)
    return now.value - then.value, above(now, then)


def more_than_at_half(place: Place) -> tuple[float, bool]:
    now, then = place.at(RESOLUTION), place.at(RESOLUTION, sparsity=0.5)
    return now.value - then.value, above(now, then)


def finer_than_shorter(place: Place) -> tuple[float, bool]:
    """Clearly fewer ties than with the shorter cut-off."""
    long, short = place.at(RESOLUTION), place.at(RESOLUTION, metric=place.figures.scale.shorter)
    return long.value - short.value, above(short, long)


def same_order_with_shorter(place: Place) -> tuple[float, bool]:
    """τ-b between the order of the nine samplers under both cut-offs is at least 0.5."""
    both = (
        [place.at(POWER, each, metric=metric).value for each in EVERY]
        for metric in (place.figures.scale.metric, place.figures.scale.shorter)
    )
    found = tau(*both)
    return found, found >= 0.5


def skew_falls_behind(place: Place) -> tuple[float, bool]:
    """Skew's distance to Random has grown clearly since sparsity 10 %."""
    ends = (place.at(FIDELITY, each, sparsity=at) for at in (0.1, place.sparsity) for each in ("Random", "Skew"))
    (early, early_skew, late, late_skew) = ends
    growth = (late.value - late_skew.value) - (early.value - early_skew.value)
    return growth, exceeds([late, early_skew], [early, late_skew])


def at_moderate_at_least(question: str, least: float) -> Test:
    """At the moderate size and all larger ones, up to the large one."""

    def test(place: Place) -> tuple[float, bool]:
        scale = place.figures.scale
        found = [place.at(question, size=n).value for n in place.sizes if n >= scale.moderate]
        return found[0], all(each > least for each in found)

    return test


def near_plateau(place: Place) -> tuple[float, bool]:
    """At the moderate size within 0.05 of the large one."""
    gap = place.at(FIDELITY).value
    gap -= place.at(FIDELITY, size=place.figures.scale.moderate).value
    return gap, gap <= 0.05


def differ_markedly(place: Place) -> tuple[float, bool]:
    """Sized samplers are apart by at least 0.05, and all clearly below 1."""
    found = [place.at(FIDELITY, each) for each in SIZED]
    apart = max(each.value for each in found) - min(each.value for each in found)
    return apart, apart >= 0.05 and all(each.high < 0.99 for each in found)


def is_one(place: Place) -> tuple[float, bool]:
    value = place.at(ROBUSTNESS).value
    return value, abs(value - 1) < SAME


def same_for_full(place: Place) -> tuple[float, bool]:
    gap = place.at(ROBUSTNESS).value - place.at(POWER).value
    return gap, abs(gap) < SAME


def same_at_0(place: Place) -> tuple[float, bool]:
    gap = place.at(FIDELITY).value - place.at(POWER).value
    return gap, abs(gap) < SAME


def above_random_and_unbeaten(place: Place) -> tuple[float, bool]:
    lead, _ = beats(ROBUSTNESS, "Random")(place)
    own = place.at(ROBUSTNESS)
    best = not any(above(place.at(ROBUSTNESS, each), own) for each in SIZED)
    return lead, above(own, place.at(ROBUSTNESS, "Random")) and best


def comparable_to_weighted(place: Place) -> tuple[float, bool]:
    """At most 0.05 below the best of WTD, WTDH and Skew."""
    gap = place.at(POWER).value - max(place.at(POWER, each).value for each in AWARE)
    return gap, gap >= -0.05


def much_below_random(place: Place) -> tuple[float, bool]:
    gap = place.at(POWER).value - place.at(POWER, "Random").value
    return gap, gap <= -0.05


def below_half_of_random(place: Place) -> tuple[float, bool]:
    """Clearly below Random with about half as many candidates."""
    own, other = place.at(POWER), place.at(POWER, "Random", size=place.figures.scale.half)
    return own.value - other.value, above(other, own)


def tight(place: Place) -> tuple[float, bool]:
    own = place.at(POWER)
    half = (own.high - own.low) / 2
    return half, half <= 0.01


def open_questions(sampler: str) -> tuple[str, ...]:
    """What a sampler can be good at: Full is what fidelity compares with, and agrees with itself."""
    return tuple(each for each in QUESTIONS if (sampler, each) != ("Full", FIDELITY))


def excelling(figures: Figures) -> tuple[str, ...]:
    """The samplers that no other clearly beats in most logs, in every question that is open to them."""
    logs = [(logger, sparsity) for logger in figures.loggers for sparsity in HIDDEN if sparsity in figures.sparsities]
    found = []
    for name in EVERY:
        places = [Place(figures, logger, sparsity, name) for logger, sparsity in logs]
        good = (sum(_unbeaten(each, question) for each in places) for question in open_questions(name))
        if all(each > len(places) / 2 for each in good):
            found.append(name)
    return tuple(found)


def nobody_excels(place: Place) -> tuple[float, bool]:
    """No sampler excels; the figure is how many do. Undefined where a question has no figures, as ties of means."""
    here = [(each, at) for each in EVERY for at in place.figures.sparsities]
    if any(all(isnan(place.at(q, each, sparsity=at).value) for each, at in here) for q in QUESTIONS):
        return float("nan"), False
    n = len(excelling(place.figures))
    return float(n), n == 0


def _unbeaten(place: Place, question: str) -> bool:
    own = place.at(question)
    others = (
        place.at(question, each) for each in EVERY if each != place.sampler and (each, question) != ("Full", FIDELITY)
    )
    return not isnan(own.value) and not any(
        above(own, each) if question == RESOLUTION else above(each, own) for each in others
    )


CLAIMS = (
    Claim("Q1.1", "5.1", "Very small and very large samples have the most ties (U-shaped in n).",
          "clearly more ties at the smallest and at the largest n than at the best n between", "ties at the best n",
          RESOLUTION, ALWAYS, dips(RESOLUTION), SIZED),
    Claim("Q1.2", "figures", "Ties are fewest around n = 50 to 100.", "the best n is from K/2 to K", "best n",
          RESOLUTION, ALWAYS, least_at_cutoff, SIZED),
    Claim("Q1.3", "5.1", "Up to 50 % sparsity most samplers have few ties at small to moderate n.",
          "at most 2 % ties at some n up to 2K", "ties at the best n up to 2K", RESOLUTION, MOSTLY, few_ties, SIZED, LOW),
    Claim("Q1.4", "5.1", "Ties of Full grow with sparsity.", "clearly more than at the sparsity before", "growth",
          RESOLUTION, ALWAYS, more_than_before, ("Full",), HIDDEN),
    Claim("Q1.5", "5.1", "At 90 and 95 % ties stay much higher, even for large n.", "clearly more than at 50 %, large n", "difference to 50 %",
          RESOLUTION, ALWAYS, more_than_at_half, SIZED, HIGH),
    Claim("Q1.6", "5.1", "Skew, Popularity and Positivity consistently have fewer ties.",
          "clearly fewer than Random, WTD and WTDH, large n", "distance to the least of them",
          RESOLUTION, ALWAYS, trails(RESOLUTION, *PLAIN), ("Skew", *LIKED)),
    Claim("Q1.7", "5.1, figures", "Full has the most ties in most settings.", "clearly more than all six sized samplers, large n", "lead over the next",
          RESOLUTION, MOSTLY, beats(RESOLUTION, *SIZED), ("Full",)),
    Claim("Q1.8", "5.1", "Exposed and Random@e have few ties at high sparsity.", "clearly fewer than Full, 90 and 95 %", "distance to Full",
          RESOLUTION, ALWAYS, trails(RESOLUTION, "Full"), ("Exposed", "Random@e"), HIGH),
    Claim("Q1.9", "our reading of 4.5, which speaks of differences between samplers", "The deep cut-off separates models better than shorter ones.", "clearly fewer ties of models than with one shorter nDCG (@10; Jester @5), large n", "difference",
          RESOLUTION, ALWAYS, finer_than_shorter, EVERY),
    Claim("Q1.10", "4.5", "Shorter cut-offs show the same patterns.", "τ-b ≥ 0.5 between the orders of the nine samplers under both cut-offs; only one shorter nDCG (@10; Jester @5) and one question, predictive power, are tested", "τ-b",
          POWER, ALWAYS, same_order_with_shorter, ("Full",)),
    Claim("Q2.1", "5.2", "Fidelity rises with n.", "clearly more at the largest n than at the smallest, no clear fall between", "gain",
          FIDELITY, ALWAYS, rises(FIDELITY), SIZED),
    Claim("Q2.2", "5.2", "Random, WTD and WTDH are the most faithful.", "clearly above Popularity and Positivity, large n", "lead",
          FIDELITY, ALWAYS, beats(FIDELITY, *LIKED), PLAIN),
    Claim("Q2.3", "5.2", "Random, WTD and WTDH reach near-maximum fidelity at n ≥ 200 and 10 to 50 % sparsity.", "τ > 0.9 at the moderate n and all larger", "τ at the moderate n",
          FIDELITY, ALWAYS, at_moderate_at_least(FIDELITY, 0.9), PLAIN, MODERATE),
    Claim("Q2.4", "5.2, weaker reading", "At n = 200 Random, WTD and WTDH are near the fidelity that they reach at the largest n.", "τ at the moderate n within 0.05 of that at the largest", "what is still gained",
          FIDELITY, ALWAYS, near_plateau, PLAIN, MODERATE),
    Claim("Q2.5", "5.2", "Skew is as faithful at low sparsity.", "within 0.05 of Random, 0 to 30 %, large n", "Skew − Random",
          FIDELITY, ALWAYS, close(FIDELITY, "Random"), ("Skew",), (0.0, 0.1, 0.3)),
    Claim("Q2.6", "5.2", "Skew's fidelity declines faster with sparsity, mainly under the positivity logger.", "its distance to Random at 90 and 95 % clearly larger than at 10 %", "growth of the distance",
          FIDELITY, ALWAYS, skew_falls_behind, ("Skew",), HIGH),
    Claim("Q2.7", "5.2", "The fidelity of Popularity and Positivity converges later.", "clearly below Random at the moderate n", "distance to Random",
          FIDELITY, ALWAYS, trails(FIDELITY, "Random", size=lambda scale: scale.moderate), LIKED),
    Claim("Q2.8", "5.2", "Exposed and Random@e are equally faithful.", "within 0.05", "Exposed − Random@e",
          FIDELITY, ALWAYS, close(FIDELITY, "Random@e"), ("Exposed",), HIDDEN),
    Claim("Q2.9", "5.2", "Exposed tends to be less faithful than Random@e.", "clearly below", "Exposed − Random@e",
          FIDELITY, MOSTLY, trails(FIDELITY, "Random@e"), ("Exposed",), HIDDEN),
    Claim("Q2.10", "5.2", "Even with everything shown, sampling distorts, and samplers differ markedly.", "at 0 %: the six sized samplers at least 0.05 apart, all clearly below 1, large n", "best − worst",
          FIDELITY, ALWAYS, differ_markedly, ("Full",), (0.0,)),
    Claim("Q3.1", "5.3", "Without sparsity robustness is perfect at every n.", "exactly 1 at 0 % (by construction)", "τ",
          ROBUSTNESS, EXACTLY, is_one, EVERY, (0.0,)),
    Claim("Q3.2", "5.3", "Larger n generally improves robustness.", "clearly more at the largest n than at the smallest, no clear fall between", "gain",
          ROBUSTNESS, MOSTLY, rises(ROBUSTNESS), SIZED, HIDDEN),
    Claim("Q3.3", "5.3", "WTD and WTDH are the most robust, above all under the uniform logger.", "uniform logger: clearly above Random, no sized sampler clearly above, large n. It cannot hold by construction: under the uniform logger the weights of WTD and WTDH are all equal in `released`, and equal but for noise in `published`, so that both are Random", "lead over Random",
          ROBUSTNESS, ALWAYS, above_random_and_unbeaten, ("WTD", "WTDH"), HIDDEN, ("uniform",)),
    Claim("Q3.4", "5.3", "Popularity and Positivity gain little robustness from larger n.", "what they gain from the smallest to the largest n is clearly less than what Random gains", "gain − Random's gain",
          ROBUSTNESS, ALWAYS, gains_less(ROBUSTNESS, "Random"), LIKED, HIDDEN),
    Claim("Q3.5", "5.3", "Full is the most robust in most cases.", "alone the highest value of all nine, clearly or not, large n", "lead over the next",
          ROBUSTNESS, MOSTLY, highest(ROBUSTNESS, *EVERY), ("Full",), HIDDEN),
    Claim("Q3.6", "5.3", "Exposed and Random@e are equally robust at low sparsity.", "within 0.05, 10 to 50 %", "Exposed − Random@e",
          ROBUSTNESS, ALWAYS, close(ROBUSTNESS, "Random@e"), ("Exposed",), MODERATE),
    Claim("Q3.7", "5.3", "At high sparsity Random@e is consistently more robust than Exposed.", "clearly above, 90 and 95 %", "Random@e − Exposed",
          ROBUSTNESS, ALWAYS, beats(ROBUSTNESS, "Exposed"), ("Random@e",), HIGH),
    Claim("Q4.1", "5.4", "Predictive power rises with n.", "clearly more at the largest n than at the smallest, no clear fall between", "gain",
          POWER, ALWAYS, rises(POWER), SIZED),
    Claim("Q4.2", "5.4", "Random, WTD, WTDH and Skew have the most predictive power of sized samplers.", "clearly above Popularity and Positivity, large n", "lead",
          POWER, ALWAYS, beats(POWER, *LIKED), (*PLAIN, "Skew")),
    Claim("Q4.3", "5.4", "Random, WTD, WTDH and Skew overtake Full at high sparsity.", "clearly above Full, 90 and 95 %, large n", "lead over Full",
          POWER, ALWAYS, beats(POWER, "Full"), (*PLAIN, "Skew"), HIGH),
    Claim("Q4.4", "5.4", "The predictive power of Skew, WTD and WTDH often exceeds 0.7 at n ≥ 200 and 10 to 50 % sparsity.", "τ > 0.7 at the moderate n and all larger", "τ at the moderate n",
          POWER, MOSTLY, at_moderate_at_least(POWER, 0.7), AWARE, MODERATE),
    Claim("Q4.5", "5.4", "Random predicts about as well as the weighted samplers.", "at most 0.05 below the best of WTD, WTDH and Skew, large n", "Random − best",
          POWER, ALWAYS, comparable_to_weighted, ("Random",)),
    Claim("Q4.6", "5.4", "Popularity and Positivity have much lower predictive power.", "at least 0.05 below Random, large n", "distance to Random",
          POWER, ALWAYS, much_below_random, LIKED),
    Claim("Q4.7", "figures", "Positivity is the worst sized sampler.", "clearly below the other five, large n", "distance to the next",
          POWER, ALWAYS, trails(POWER, *SIZED), ("Positivity",)),
    Claim("Q4.8", "5.4", "Exposed and Random@e predict equally well.", "within 0.05", "Exposed − Random@e",
          POWER, ALWAYS, close(POWER, "Random@e"), ("Exposed",), HIDDEN),
    Claim("Q4.9", "5.4", "Random@e predicts badly where data is sparse.", "clearly below Random, 90 and 95 %, large n", "distance to Random",
          POWER, ALWAYS, trails(POWER, "Random"), ("Random@e",), HIGH),
    Claim("C.1", "6", "WTD, WTDH and Skew consistently outperform naive baselines.", "predictive power clearly above Random's, large n", "lead over Random",
          POWER, ALWAYS, beats(POWER, "Random"), AWARE, HIDDEN),
    Claim("C.2", "6", "Exposed is a surprisingly strong contender.", "predictive power: no sized sampler clearly above (one may be higher within the noise), large n", "distance to the best sized",
          POWER, ALWAYS, unbeaten(POWER, *SIZED), ("Exposed",), HIDDEN),
    Claim("C.3", "6", "No single sampler excels in everything.", "no sampler has, in every question that is open to it (not fidelity for Full, which it compares with), no other clearly above it in most logs with something hidden, large n", "how many samplers do",
          POWER, EXACTLY, nobody_excels, ("Full",), (0.0,), ("uniform",)),
    Claim("C.4", "6", "A larger sample is no better where its items are badly chosen.", "predictive power of Popularity and Positivity clearly below that of Random with about half as many", "distance",
          POWER, ALWAYS, below_half_of_random, LIKED),
    Claim("C.5", "5", "Intervals are mostly too small to be seen.", "half-width of predictive power at most 0.01, large n", "half-width",
          POWER, MOSTLY, tight, EVERY, HIDDEN),
    Claim("I.1", "figures", "Robustness and predictive power of Full are the same.", "equal (by construction)", "difference",
          POWER, EXACTLY, same_for_full, ("Full",)),
    Claim("I.2", "figures", "Without sparsity fidelity and predictive power are the same.", "equal at 0 % (by construction)", "difference",
          POWER, EXACTLY, same_at_0, EVERY, (0.0,)),
    Claim("I.3", "from the definitions", "WTD and WTDH are nearly the same.", "predictive power within 0.02, large n", "WTD − WTDH",
          POWER, ALWAYS, close(POWER, "WTDH", within=0.02), ("WTD",)),
)  # fmt: skip
