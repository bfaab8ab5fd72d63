"""What to take from the reliability study, in words that depend on its figures: headlines are counted or chosen by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from reliability_runs import Run
from truerank.studies.papers.reliability.claims import BY_CONSTRUCTION, CLAIMS
from truerank.studies.papers.reliability.looks import AWARE, EVERY, HIDDEN
from truerank.studies.papers.reliability.rules import POWER, SIZED, LogPlace, ResultReading, SupportWord, above

BANDS = {"10 to 50 %": (0.1, 0.3, 0.5), "70 to 95 %": (0.7, 0.85, 0.9, 0.95)}
LITTLE, MUCH = BANDS.values()
NEAR = 1.5  # times
UNIFORM, BIASED = ("uniform",), ("popularity", "positivity")


def places(
    run: Run,
    *,
    sampler: str,
    sparsities: Sequence[float] = HIDDEN,
    loggers: Sequence[str] = (*UNIFORM, *BIASED),
    reading: ResultReading = ResultReading.USERS,
) -> list[LogPlace]:
    figures = run.figures[reading]
    return [LogPlace(figures, logger, sparsity, sampler) for logger, sparsity in product(loggers, sparsities)]


def better_than_full(runs: Sequence[Run], sparsities: Sequence[float], reading: ResultReading) -> tuple[int, int]:
    """In how many logs some other sampler is clearly above Full, of how many."""
    logs = [p for run in runs for p in places(run, sampler="Full", sparsities=sparsities, reading=reading)]
    return sum(any(above(p.at(POWER, each), p.at(POWER)) for each in EVERY) for p in logs), len(logs)


def who_beats_full(runs: Sequence[Run], sparsities: Sequence[float], reading: ResultReading) -> str:
    """Samplers by the number of logs in which they are clearly above Full."""
    logs = [p for run in runs for p in places(run, sampler="Full", sparsities=sparsities, reading=reading)]
    found = Counter(each for p in logs for each in EVERY if above(p.at(POWER, each), p.at(POWER)))
    return ", ".join(f"{name} {n}" for name, n in found.most_common()) or "none"


def means_beside_full(run: Run, sampler: str, sparsities: Sequence[float]) -> str:
    """In how many logs the τ of means of a sampler is higher than Full's, clearly or not, and in how many lower."""
    logs = places(run, sampler=sampler, sparsities=sparsities, reading=ResultReading.MEANS)
    gaps = [p.at(POWER).value - p.at(POWER, "Full").value for p in logs]
    return f"{sum(each > 0 for each in gaps)} / {sum(each < 0 for each in gaps)}"


def lost_when_all_is_known(run: Run) -> float:
    """τ of Random at the large size with the order of all items, everything shown."""
    return float(np.mean([each.at(POWER).value for each in places(run, sampler="Random", sparsities=(0.0,))]))


def apart(run: Run) -> float:
    """Best less worst of the sized samplers at the large size, median over logs."""
    logs = places(run, sampler="Random")
    return float(np.median([np.ptp([p.at(POWER, each).value for each in SIZED]) for p in logs]))


def gained(run: Run) -> float:
    """What the large size gains over the moderate one, median over samplers and logs."""
    found = [
        p.at(POWER).value - p.at(POWER, size=p.figures.scale.moderate).value
        for each in SIZED
        for p in places(run, sampler=each)
    ]
    return float(np.median(found))


def number_against_choice(runs: Sequence[Run]) -> str:
    """How the gain from more candidates compares with the distance between samplers."""
    if all(apart(run) / NEAR <= gained(run) <= NEAR * apart(run) for run in runs):
        return "about as much as"
    if all(gained(run) > apart(run) for run in runs):
        return "more than"
    if all(gained(run) < apart(run) for run in runs):
        return "less than"
    return "in some studies more and in others less than"


def highest_sized(runs: Sequence[Run]) -> str:
    """The sized samplers by the number of logs in which they have the highest value, also if others have it too."""
    logs = [p for run in runs for p in places(run, sampler="Random")]
    values = [{each: p.at(POWER, each).value for each in SIZED} for p in logs]
    best = Counter(name for of in values for name in SIZED if of[name] == max(of.values()))
    return ", ".join(f"{name} {n}" for name, n in best.most_common())


def against_random(run: Run) -> tuple[int, int, int]:
    """How often WTD, WTDH and Skew are clearly above Random under a biased logger, clearly below it, of how many."""
    cells = [p for each in AWARE for p in places(run, sampler=each, loggers=BIASED)]
    over = sum(above(p.at(POWER), p.at(POWER, "Random")) for p in cells)
    return over, sum(above(p.at(POWER, "Random"), p.at(POWER)) for p in cells), len(cells)


def weighting(runs: Sequence[Run]) -> str:
    """What weighting does to a biased log, by the shares that "consistently" asks for."""
    shares = [over / cells for over, _, cells in map(against_random, runs)]
    if min(shares) >= 0.8:
        return "improves on plain sampling of a biased log"
    return "does not repair a biased log" if max(shares) < 0.4 else "repairs a biased log at best in part"


def gains_from(runs: Sequence[Run]) -> float | None:
    """The least sparsity at which WTD, WTDH or Skew is clearly above Random in some study."""
    cells = [p for run in runs for each in AWARE for p in places(run, sampler=each)]
    return min((p.sparsity for p in cells if above(p.at(POWER), p.at(POWER, "Random"))), default=None)


def exposed(runs: Sequence[Run], loggers: Sequence[str], sparsities: Sequence[float]) -> tuple[int, int, int, int]:
    """Exposed: logs with no sized sampler clearly above, clearly above Full, clearly below Full, logs."""
    logs = [p for run in runs for p in places(run, sampler="Exposed", loggers=loggers, sparsities=sparsities)]
    strong = sum(not any(above(p.at(POWER, each), p.at(POWER)) for each in SIZED) for p in logs)
    over = sum(above(p.at(POWER), p.at(POWER, "Full")) for p in logs)
    return strong, over, sum(above(p.at(POWER, "Full"), p.at(POWER)) for p in logs), len(logs)


def of_means(run: Run, sparsity: float = 0.5) -> tuple[float, float]:
    """Predictive power of Random, mean of the loggers: τ per user, and τ of means."""
    both = (
        places(run, sampler="Random", sparsities=(sparsity,), reading=r)
        for r in (ResultReading.USERS, ResultReading.MEANS)
    )
    users, means = (float(np.mean([p.at(POWER).value for p in each])) for each in both)
    return users, means


def changed_by_means(run: Run) -> tuple[int, int]:
    """How many claims hold for means and not for users, and the reverse."""
    of = {
        r: {c.name for c in CLAIMS if run.verdict(c, r).word is SupportWord.HOLDS}
        for r in (ResultReading.USERS, ResultReading.MEANS)
    }
    known = {c.name for c in CLAIMS if run.verdict(c, ResultReading.MEANS).word is not SupportWord.UNTESTED}
    return len(of[ResultReading.MEANS] - of[ResultReading.USERS]), len(
        (of[ResultReading.USERS] & known) - of[ResultReading.MEANS]
    )


def lowest_of_means(run: Run) -> tuple[str, float]:
    """The sized sampler with the lowest τ of means where everything is shown (mean of the loggers)."""
    found = {
        each: float(np.mean([p.at(POWER).value for p in places(run, sampler=each, sparsities=(0.0,), reading=ResultReading.MEANS)]))
        for each in SIZED
    }  # fmt: skip
    name = min(found, key=lambda each: found[each])
    return name, found[name]


def verdict_in_all(runs: Sequence[Run], word: SupportWord) -> str:
    """The claims that have one verdict in all studies, apart from what the definitions decide."""
    open_ = (c for c in CLAIMS if c.name not in BY_CONSTRUCTION)
    same = [c for c in open_ if all(run.verdict(c).word is word for run in runs)]
    return " ".join(f"{each.sentence.removesuffix('.')} ({each.name})." for each in same) or "none."


def lessons(runs: Sequence[Run]) -> Iterator[str]:
    yield "## What to take from it"
    yield ""
    yield "All of it is about eight models that were not tuned, on two worlds, at the large n (1,000 of 3,327 videos, 25 of 80 jokes). τ is that of the models' values of one user, averaged over users, unless it"
    yield "says means: those of a table of results. A log is one logger and sparsity above 0 in one of four studies."
    yield ""
    yield from _full(runs)
    yield from _samples(runs)
    yield from _exposed(runs)
    yield from _means(runs)
    yield f"- **Holds in all four studies:** {verdict_in_all(runs, SupportWord.HOLDS)}"
    yield f"- **Does not hold in any, not even in part:** {verdict_in_all(runs, SupportWord.NOT)}"
    yield "  (What the definitions decide is left out of both.)"
    yield ""


def _each(runs: Sequence[Run], of_run: Callable[[Run], str]) -> str:
    return "; ".join(f"{run.name} {of_run(run)}" for run in runs)


def _full(runs: Sequence[Run]) -> Iterator[str]:
    def counts(reading: ResultReading) -> str:
        found = (better_than_full(runs, each, reading) for each in BANDS.values())
        return " and ".join(f"{n - worse} of {n} logs at {band}" for band, (worse, n) in zip(BANDS, found, strict=True))

    def by_study(reading: ResultReading) -> str:
        return _each(
            runs,
            lambda run: " and ".join(
                "{} of {}".format(*better_than_full([run], band, reading)) for band in BANDS.values()
            ),
        )

    yield f"- **Ranking all items: no other way of choosing candidates predicts a user's order of models clearly better in {counts(ResultReading.USERS)} sparsity; the order of means in {counts(ResultReading.MEANS)}.**"
    yield f"  Logs in which another is clearly better, 10 to 50 % and 70 to 95 %: {by_study(ResultReading.USERS)}. With undefined τ as 0:"
    yield f"  {by_study(ResultReading.AS_0)}. For means: {by_study(ResultReading.MEANS)}. Which ones, at 70 to 95 % (logs): {who_beats_full(runs, MUCH, ResultReading.USERS)}; for means: {who_beats_full(runs, MUCH, ResultReading.MEANS)}."
    for name in ("Exposed", "Random"):
        yield f"  τ of means of {name} at 70 to 95 %, logs in which it is higher / lower than Full's, clearly or not: {_each(runs, lambda run: means_beside_full(run, name, MUCH))}."  # noqa: B023
    yield f"  With everything shown, Random's τ with Full is {_each(runs, lambda run: f'{lost_when_all_is_known(run):.2f}')}: what a sample alone costs."


def _samples(runs: Sequence[Run]) -> Iterator[str]:
    yield f"- **If you sample, the number of candidates matters {number_against_choice(runs)} how they are chosen.** From the moderate to the large size predictive power gains (median)"
    yield f"  {_each(runs, lambda run: f'{gained(run):.2f}')}; the best and the worst of six samplers are apart by {_each(runs, lambda run: f'{apart(run):.2f}')}. Logs in which each is the highest of the six, alone or with others: {highest_sized(runs)}."
    yield f"- **Weighting negatives {weighting(runs)}.** The positives stay those that the logger showed. WTD, WTDH and Skew against Random under the two biased loggers, clearly above / clearly below / cells:"
    least = gains_from(runs)
    if least is None:
        where = " They are clearly above nowhere."
    else:
        where = (
            f" Below {100 * least:.0f} % sparsity they are clearly above nowhere, under any logger."
            if least > min(HIDDEN)
            else ""
        )
    one = next(each for each in CLAIMS if each.name == "I.3")
    same = (
        " WTD and WTDH are nearly one sampler (I.3)."
        if all(run.verdict(one).word is SupportWord.HOLDS for run in runs)
        else ""
    )
    yield f"  {_each(runs, lambda run: '{} / {} / {}'.format(*against_random(run)))}.{where}{same}"


def _exposed(runs: Sequence[Run]) -> Iterator[str]:
    kinds = {"uniform exposure": UNIFORM, "biased exposure": BIASED}
    found = {f"{kind}, {band}": exposed(runs, kinds[kind], BANDS[band]) for kind, band in product(kinds, BANDS)}
    good = [where for where, (strong, *_, n) in found.items() if strong >= 0.8 * n]
    bad = [where for where, (strong, *_, n) in found.items() if strong < 0.5 * n]
    said = [
        f"no sample is clearly better in at least 80 % of logs with {'; '.join(good)}" if good else "",
        f"some sample is clearly better in most logs with {'; '.join(bad)}" if bad else "",
    ]
    yield f"- **Ranking only what was exposed: {', and '.join(each for each in said if each) or 'some sample is clearly better in some logs everywhere'}.**"
    yield "  Logs with no sized sampler clearly above Exposed; Exposed clearly above Full; clearly below Full; of how many:"
    yield (
        "  "
        + ". ".join(
            f"{where[0].upper()}{where[1:]} sparsity: {', '.join(map(str, each[:-1]))} of {each[-1]}"
            for where, each in found.items()
        )
        + "."
    )
    yield "  For random exposure this library has estimators that need no such choice ([random-exposure.md](../random-exposure.md))."


def _means(runs: Sequence[Run]) -> Iterator[str]:
    steadier = sum(means > users for users, means in map(of_means, runs))
    head = "The order of means is steadier than one user's order of models" + (
        "" if steadier == len(runs) else f" in {steadier} of {len(runs)} studies"
    )
    yield f"- **{head}.** At 50 % sparsity, Random has τ per user and τ of means {_each(runs, lambda run: '{:.2f} and {:.2f}'.format(*of_means(run)))}."
    yield f"  Claims that hold for means and not for users, and the reverse ([below](#read-differently)): {_each(runs, lambda run: '{} and {}'.format(*changed_by_means(run)))}."
    lowest = {run.name: lowest_of_means(run) for run in runs}
    yield f"  With everything shown, the lowest τ of means is {'; '.join(f'{name} {sampler} {value:.2f}' for name, (sampler, value) in lowest.items())}."
    turned = [f"{name} {50 * (1 - value):.0f} %" for name, (_, value) in lowest.items() if value < 0.5]
    if turned:
        yield f"  There the choice of candidates alone turns round the order of many pairs of means: {'; '.join(turned)}."
