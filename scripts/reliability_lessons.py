"""What to take from the reliability study, in words, with its own figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from reliability_claims import AWARE, CLAIMS, EVERY, HIDDEN
from reliability_page import Run
from reliability_verdicts import POWER, SIZED, Place, Reading, Word, above
from truerank.studies.reliability import Preset


def places(run: Run, *, sampler: str, hidden: bool = True, reading: Reading = Reading.USERS) -> list[Place]:
    figures = run.figures[reading]
    sparsities = HIDDEN if hidden else figures.sparsities
    return [Place(figures, logger, sparsity, sampler) for logger, sparsity in product(figures.loggers, sparsities)]


def lost_when_all_is_known(run: Run) -> float:
    """τ of Random at the large size with the order of all items, everything shown."""
    whole = [each for each in places(run, sampler="Random", hidden=False) if each.sparsity == 0]
    return float(np.mean([each.at(POWER).value for each in whole]))


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


def beaten(run: Run) -> tuple[int, int, int]:
    """In how many logs some other sampler is clearly above Full, in how many with undefined τ as 0, of how many."""
    both = [places(run, sampler="Full", reading=kind) for kind in (Reading.USERS, Reading.AS_0)]
    counts = [sum(any(above(p.at(POWER, each), p.at(POWER)) for each in EVERY) for p in logs) for logs in both]
    return counts[0], counts[1], len(both[0])


def against_random(run: Run) -> tuple[int, int, int]:
    """How often WTD, WTDH and Skew are clearly above Random, clearly below it, of how many."""
    cells = [p for each in AWARE for p in places(run, sampler=each)]
    over = sum(above(p.at(POWER), p.at(POWER, "Random")) for p in cells)
    return over, sum(above(p.at(POWER, "Random"), p.at(POWER)) for p in cells), len(cells)


def of(run: Run, sampler: str, logger: str, sparsity: float, reading: Reading = Reading.USERS) -> float:
    return Place(run.figures[reading], logger, sparsity, sampler).at(POWER).value


def random_of_users_and_means(run: Run, sparsity: float = 0.5) -> tuple[float, float]:
    """Predictive power of Random, mean of the loggers: τ per user, and τ of means."""
    loggers = run.figures[Reading.USERS].loggers
    both = ([of(run, "Random", each, sparsity, kind) for each in loggers] for kind in (Reading.USERS, Reading.MEANS))
    users, means = (sum(each) / len(each) for each in both)
    return users, means


def lowest_of_means(run: Run) -> tuple[str, float]:
    """The sampler with the lowest τ of means where everything is shown."""
    found = {each: of(run, each, "uniform", 0.0, Reading.MEANS) for each in SIZED}
    name = min(found, key=lambda each: found[each])
    return name, found[name]


def gains_from(runs: Sequence[Run]) -> float:
    """The least sparsity at which WTD, WTDH or Skew is clearly above Random in some study."""
    cells = [p for run in runs for each in AWARE for p in places(run, sampler=each)]
    return min((p.sparsity for p in cells if above(p.at(POWER), p.at(POWER, "Random"))), default=1.0)


def verdict_in_all(runs: Sequence[Run], word: Word) -> str:
    """The claims that have one verdict in all studies, identities aside."""
    same = [c for c in CLAIMS if c.name[0] != "I" and all(run.verdict(c).word is word for run in runs)]
    return " ".join(f"{each.sentence.removesuffix('.')} ({each.name})." for each in same)


def lessons(runs: Sequence[Run]) -> Iterator[str]:
    def each(of_run: Callable[[Run], str]) -> str:
        return "; ".join(f"{run.name} {of_run(run)}" for run in runs)

    def counted(of_run: Callable[[Run], tuple[object, ...]], text: str) -> str:
        return each(lambda run: text.format(*of_run(run)))

    text, code = (next(r for r in runs if r.work.name == "kuairec" and r.preset is p) for p in Preset)
    logs = [p for run in runs if run.work.name == "jester" for p in places(run, sampler="Exposed")]
    ahead = sum(above(p.at(POWER), p.at(POWER, "Full")) for p in logs)
    yield "## What to take from it"
    yield ""
    yield "All of it is about eight models that were not tuned, on two worlds. τ is that of the models' values of one user, averaged over users, unless it says means."
    yield ""
    yield "- **Rank all items if you can.** Logs with something hidden in which another way of choosing candidates predicts the true order clearly better than Full:"
    yield f"  {counted(beaten, '{} ({}) of {}')}; in brackets with undefined τ as 0, which Full has most of at high sparsity. Even with everything shown, a sample (1,000 of 3,327 videos, 25 of 80 jokes) costs a good part of the order:"
    yield f"  Random's τ with Full is then {each(lambda run: f'{lost_when_all_is_known(run):.2f}')}."
    yield "- **If you sample, the number of candidates matters as much as how they are chosen.** From the moderate to the large size predictive power gains (median)"
    yield f"  {each(lambda run: f'{gained(run):.2f}')}; the best and the worst of six samplers are apart by {each(lambda run: f'{apart(run):.2f}')}. Which is best depends on logger and sparsity."
    yield "- **Weighting negatives does not repair a biased log.** The positives stay those that the logger showed. WTD, WTDH and Skew against Random, clearly above / clearly below / cells:"
    yield f"  {counted(against_random, '{} / {} / {}')}. Below {100 * gains_from(runs):.0f} % sparsity they are clearly above nowhere. WTD and WTDH are nearly one sampler (I.3)."
    yield "- **Ranking only what was exposed is good where exposure was uniform, and not where it was biased.** KuaiRec at 95 % sparsity: under the uniform logger Exposed has τ"
    yield f"  {of(text, 'Exposed', 'uniform', 0.95):.2f} and Full {of(text, 'Full', 'uniform', 0.95):.2f} (`published`; `released` {of(code, 'Exposed', 'uniform', 0.95):.2f} and {of(code, 'Full', 'uniform', 0.95):.2f}), under the positivity logger {of(text, 'Exposed', 'positivity', 0.95):.2f} and {of(text, 'Full', 'positivity', 0.95):.2f} ({of(code, 'Exposed', 'positivity', 0.95):.2f} and {of(code, 'Full', 'positivity', 0.95):.2f}). On Jester Exposed is clearly ahead of Full in {ahead} of {len(logs)} logs."
    yield "  For random exposure this library has estimators that need no such choice ([random-exposure.md](../random-exposure.md))."
    yield "- **One user's order of models is noisy; the order of their means is steadier.** At 50 % sparsity, Random has τ per user and τ of means"
    yield f"  {counted(random_of_users_and_means, '{:.2f} and {:.2f}')}. Several claims that fail for users hold for means on KuaiRec, whose models are further apart ([below](#read-differently))."
    yield f"  Even means are turned round by negatives that models rank high: with everything shown, the lowest τ of means is {counted(lowest_of_means, '{} {:.2f}')}."
    yield f"- **Holds in all four studies:** {verdict_in_all(runs, Word.HOLDS)}"
    yield f"- **Does not hold in any, not even in part:** {verdict_in_all(runs, Word.NOT)}"
    yield ""
