"""The page docs/results/reliability.md, from the tables of four studies: two worlds, each with both presets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reliability_runs import TITLES, Run
from truerank.studies.papers.reliability.claims import BY_CONSTRUCTION, CLAIMS, REVISED
from truerank.studies.papers.reliability.curves import TABLES, PublishedFigure, published
from truerank.studies.papers.reliability.looks import EXACTLY, excelling
from truerank.studies.papers.reliability.rules import (
    FIXED,
    NOWHERE,
    POWER,
    RESOLUTION,
    SCATTERED,
    SIZED,
    ResultReading,
    SamplerClaim,
    StudyFigure,
    StudyFigures,
    SupportFound,
    SupportWord,
)
from truerank.studies.papers.reliability.worlds import SEED
from truerank.studies.reliability import Preset

QUESTIONS = {
    "resolution": "Q1, share of pairs of models that tie",
    "fidelity": "Q2, fidelity: τ with Full on the same log",
    "robustness": "Q3, robustness: τ with the same sampler at sparsity 0",
    "predictive_power": "Q4, predictive power: τ with Full at sparsity 0",
}
PARTS = {"Q1": "Resolution", "Q2": "Fidelity", "Q3": "Robustness", "Q4": "Predictive power", "C": "Conclusion and beyond",
         "I": "Identities"}  # fmt: skip
CLOSE, FACTOR = 0.05, 1.5
COIN = 0.25  # of a standard deviation: the better model wins for less than 60 % of users, were differences normal
Z = 1.96
SHOWN = (0.1, 0.5, 0.95)
KNOWN = (RESOLUTION, "uniform", 0.0, "Full")


def page(runs: Sequence[Run], *, lessons: Iterator[str]) -> str:
    lines = [
        "# How reliable are sampled candidates? The study on KuaiRec and Jester",
        "",
        "Written by `make reliability-study`. The study of paper 5 (Pereira, Said and Santos, RecSys 2025; [how it works](../reliability.md)), with the samplers as",
        "the text has them (`published`) and as the authors' code does (`released`), and the paper's claims one by one. The four figures of each study: `truerank study figures build/reliability/kuairec/published-10`, and so on.",
        "",
        *lessons,
        *_what_was_run(runs),
        *_models(runs),
        *_claims(runs),
        *_summary(runs),
        *_readings(runs),
        *_beside_the_paper([each for each in runs if each.work.name == "kuairec"]),
        *_ties(runs),
        *_means(runs),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _what_was_run(runs: Sequence[Run]) -> Iterator[str]:
    yield "## What was run"
    yield ""
    yield "**KuaiRec**: the world is the small matrix, 1,411 users x 3,327 videos, 217,175 positives (watch ratio above 2), the paper's own. Models are trained on the 846,253"
    yield "positive pairs of the big matrix, each once. Not as in the paper: the 17,827 unobserved cells of the small matrix count as negatives;"
    yield "the big matrix has no negatives here, so the popularity logger ranks by positives of training (and all cells of the world), and SAR counts co-occurrence on positives;"
    yield "LightFM-F has item categories only, not the paper's user file and daily counts; models have the library's defaults, not tuned (the paper's search judged ALS, BPR"
    yield "and LightFM on users they had never seen, which says nothing about their settings, and its chosen values are not known). nDCG@100, as the paper shows."
    yield ""
    yield "**Jester**: 7,200 users rated all 100 jokes. Half of the users (drawn once) give all their ratings for training; of the other half the ratings of 20 jokes (drawn once) are"
    yield "history; the world is the 3,136 of those 3,600 users who like a joke of their history x the other 80 jokes, every cell rated and none trained on. The other 464 are left out: nothing is known of them, and"
    yield "SAR, ALS and EASE would score all jokes alike for them. Positive is a rating above 5 of -10 to 10: 30 % of pairs. Above 0 it would be 63 %, leaving too few negatives to sample. Training data are positives, as on KuaiRec. EASE takes LightFM-F's place: jokes have no features here. With 80 jokes"
    yield "nDCG@100 is everything, so nDCG@10 is looked at, and sizes are 1, 2, 5, 10, 15, 25, 35, 50; 5, 10 and 25 stand for the paper's 200, 500 and 1,000: the same shares of all items (6, 15, 30 %)."
    yield ""
    yield "Held out before logging, as random data for WTD: with `published` a tenth of each user's cells, with `released` a tenth of the items, but nothing under the uniform logger. What is held out"
    yield "is neither shown nor a candidate, so that nothing whose label is known is taken for a negative, and Full equals Exposed at sparsity 0."
    yield ""
    yield f"Both: 3 loggers x 8 sparsities x 9 samplers, eight models, {runs[0].repetitions} repetitions that draw everything anew, seed {SEED}, chosen beforehand. Intervals are 95 %, 1,000 resamples of users and repetitions."
    yield ""
    rows = []
    for each in runs:
        figures, times = each.figures[ResultReading.USERS], each.times
        n = 3 * len(figures.sparsities) * (len(FIXED) + len(SIZED) * len(figures.sizes))
        clock = "interrupted" if times["resumed"] else f"{times['seconds'] / 60:.1f} min"
        rows.append([each.name, f"{each.users:,}", f"{n:,}", str(len(each.work.metrics)), clock,
                     f"{times['processor_seconds'] / 60:.1f} min", f"{times['peak_megabytes'] / 1024:.1f} GB"])  # fmt: skip
    yield from _table(
        ["study", "users evaluated", "scenarios", "metrics", "by the clock", "processor time", "memory"], rows
    )
    yield f"On {runs[0].times['cores']} cores that had other work to do: the clock says more than an idle machine would."
    yield ""


def _models(runs: Sequence[Run]) -> Iterator[str]:
    yield "### The models"
    yield ""
    yield "True means over users, all pairs known, with 95 % intervals for the population of users."
    yield ""
    worlds = {each.work.name: each for each in runs}
    for name, each in worlds.items():
        ordered = sorted(each.truth.items(), key=lambda item: -item[1][0])
        yield from _table(
            [f"{TITLES[name]}, {each.work.scale.metric}", *(model for model, _ in ordered)],
            [["mean", *(f"{value:.3f} ({low:.3f} to {high:.3f})" for _, (value, low, high) in ordered)]],
        )
        yield _coin_tosses(each)
        yield ""
    below = {TITLES[name]: _below_popularity(each) for name, each in worlds.items()}
    named = [f"on {world} than {_listed(models)}" for world, models in below.items() if models]
    if named:
        yield f"**The order of models is that of this task.** Popularity has a higher mean {' and '.join(named)}, models that know the user, because no pair of the world is in the training data and models of positives"
        yield "take all of it for negatives ([models.md](models.md)); it says nothing about these models at other tasks."
        yield ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _below_popularity(run: Run) -> list[str]:
    personal = (each for each in run.truth if each not in ("random", "popularity"))
    return [each for each in personal if run.truth[each][0] < run.truth["popularity"][0]]


def _coin_tosses(run: Run) -> str:
    """The pairs of models that single users hardly tell apart, and whether their means differ."""
    close = sorted((each for each in run.pairs if abs(each.difference) < COIN * each.sd), key=lambda each: each.z)
    said = (
        f"{each.model} and {each.other} by {abs(each.difference):.4f} on average, with a standard deviation of {each.sd:.3f} over users (z = {each.z:.1f})"
        for each in close[:2]
    )
    return (
        f"{TITLES[run.work.name]}: for a single user {len(close)} of the {len(run.pairs)} pairs of models are close to a coin toss (a difference below a quarter of its standard deviation over users); the means of "
        f"{sum(each.z > Z for each in close)} of these differ clearly. The closest differ: {'; '.join(said) or 'none'}."
    )


def _claims(runs: Sequence[Run]) -> Iterator[str]:
    yield "## The claims, one by one"
    yield ""
    yield "Each claim is a rule (`src/truerank/studies/papers/reliability/claims.py`), looked at in cells, one per sampler, logger and sparsity that it speaks of. It **holds** where the share of supporting cells is what its"
    yield 'words ask for (80 % for a plain or consistent statement, 50 % for "generally", "most", "often" or "tends", all for an identity), **does not hold** below half of that, and holds **in part** between. In'
    yield 'brackets, where not all cells support it: the samplers, loggers and sparsities for which it holds taken alone ("scattered": none of them; "nowhere": not one cell). "Clearly" is beyond the 95 % half-width of the difference, computed from both intervals'
    yield 'as if independent; a rule that asks for it is not supported by a cell that leaves it open. "Highest", "within" and "no other clearly above" are also met within the noise. Large or largest n is 1,000,'
    yield "on Jester 25 (larger ones were computed and are not looked at), moderate n 200 (5). Under each verdict: supporting cells / cells, and the median of what is measured."
    yield ""
    yield f"Rules were written before the grid was run, but {', '.join(REVISED)} (what they test, or the share that they ask for) the end of Jester's curves at n = 25 and who is in Jester's world were corrected after a first run had been seen,"
    yield f"because they did not test the sentence (or tested it on users of whom nothing is known): take these for rules made afterwards. {', '.join(BY_CONSTRUCTION)} are decided by the definitions, whatever the data."
    yield ""
    for prefix, title in PARTS.items():
        rows = []
        for claim in (each for each in CLAIMS if each.name.split(".")[0] == prefix):
            cells = [_shown(run.verdict(claim)) for run in runs]
            sentence = f"{claim.sentence} ({claim.source})<br>*Rule:* {claim.rule}; {_asked(claim)}. *Measured:* {claim.measure}."
            rows.append([claim.name, sentence, *cells])
        yield f"### {title}"
        yield ""
        yield from _table(["", "claim", *(each.name for each in runs)], rows)
        if prefix == "C":
            who = ((run.name, excelling(run.figures[ResultReading.USERS])) for run in runs)
            yield (
                "Who excels by the rule of C.3: "
                + "; ".join(f"{name} {', '.join(of) or 'none'}" for name, of in who)
                + "."
            )
            yield ""


def _asked(claim: SamplerClaim) -> str:
    return "in all cells" if claim.needed == EXACTLY else f"in at least {100 * claim.needed:.0f} % of cells"


def _shown(found: SupportFound) -> str:
    if found.word is SupportWord.UNTESTED:
        return found.word.value
    word = f"**{found.word.value}**"
    if found.where in (NOWHERE, SCATTERED):
        word += f" ({found.where})"
    elif found.where:
        word += f" ({'' if found.word is SupportWord.HOLDS else 'holds '}for {found.where})"
    return f"{word}<br>{found.supporting}/{found.cells}, {_number(found.median)}"


def _number(value: float) -> str:
    return f"{value:g}" if value == int(value) else f"{value:.3f}".replace("-0.000", "0.000")


def _summary(runs: Sequence[Run]) -> Iterator[str]:
    yield "### Which hold with what"
    yield ""
    for world in dict.fromkeys(each.work.name for each in runs):
        words = {
            each.preset: {claim.name: each.verdict(claim).word for claim in CLAIMS}
            for each in runs
            if each.work.name == world
        }
        text, code = words[Preset.PUBLISHED], words[Preset.RELEASED]
        groups = {
            "hold with both": [n for n in text if text[n] is code[n] is SupportWord.HOLDS],
            "only with `published`": [
                n for n in text if text[n] is SupportWord.HOLDS and code[n] is not SupportWord.HOLDS
            ],
            "only with `released`": [
                n for n in text if code[n] is SupportWord.HOLDS and text[n] is not SupportWord.HOLDS
            ],
            "in part with one or both, fully with neither": [
                n
                for n in text
                if SupportWord.HOLDS not in (text[n], code[n]) and SupportWord.PART in (text[n], code[n])
            ],
            "with neither, not even in part": [n for n in text if text[n] is code[n] is SupportWord.NOT],
        }
        yield f"**{TITLES[world]}** ({len(text)} claims)"
        yield ""
        for title, names in groups.items():
            yield f"- {title}: {len(names)}" + (f" ({', '.join(names)})" if names else "")
        yield ""


def _readings(runs: Sequence[Run]) -> Iterator[str]:
    """Where another way of reading the table changes a verdict."""
    yield "### Read differently"
    yield ""
    yield "The verdicts above are for τ per user, averaged over the users for whom it is defined, and exact ties, as in the paper. Claims whose verdict changes when undefined τ count as 0, when τ is of the models'"
    yield "means over users (what a table of results shows), or when values are rounded to 4 decimals before ties are counted (what the authors' code does):"
    yield ""
    rows = []
    for claim in CLAIMS:
        kinds = (ResultReading.ROUNDED,) if claim.question == RESOLUTION else (ResultReading.AS_0, ResultReading.MEANS)
        changed = []
        for run in runs:
            own = run.verdict(claim)
            others = [(kind, run.verdict(claim, kind)) for kind in kinds]
            said = [f"{kind.value}: {it.word.value} ({it.supporting}/{it.cells})" for kind, it in others
                    if it.word is not own.word and it.word is not SupportWord.UNTESTED]  # fmt: skip
            changed.append("; ".join(said))
        if any(changed):
            rows.append([f"{claim.name} {claim.sentence}", *changed])
    yield from _table(["claim", *(each.name for each in runs)], rows)


def _beside_the_paper(runs: Sequence[Run]) -> Iterator[str]:
    ordered = sorted(runs, key=lambda each: each.preset is not Preset.RELEASED)
    yield "## Beside the paper's curves"
    yield ""
    yield "KuaiRec at n = 1,000: what the figures show (read off to ±0.005, ~ where lines hide one another), then ours with `released` samplers, then with `published` ones, ± half the 95 % interval. Ties: rounded to 4"
    yield f"decimals for `released`, exact for `published`. How many of the values that can be read agree within {CLOSE} (of ties, which span 0.001 to 0.5, within a factor of {FACTOR}):"
    yield ""
    known = list(published())
    rows = []
    for question, title in QUESTIONS.items():
        of = [each for each in known if each.question == question]
        cells = []
        for run in ordered:
            ours = [_ours(run, each).value for each in of]
            agree = sum(_agrees(each, value) for each, value in zip(of, ours, strict=True))
            off = sum(value - each.value for each, value in zip(of, ours, strict=True)) / len(of)
            near = sum(abs(value - each.value) <= CLOSE for each, value in zip(of, ours, strict=True))
            also = f" ({near} within {CLOSE})" if question == RESOLUTION else ""
            cells.append(f"{agree} of {len(of)}{also}, ours {off:+.3f} on average")
        rows.append([title, *cells])
    yield from _table(["", *(each.preset.value for each in ordered)], rows)
    names = list(dict.fromkeys(each.sampler for each in known))
    rows = []
    for name in names:
        of = [each for each in known if each.sampler == name and each.question != RESOLUTION]
        cells = []
        for run in ordered:
            agree = sum(_agrees(each, _ours(run, each).value) for each in of)
            off = sum(_ours(run, each).value - each.value for each in of) / len(of)
            cells.append(f"{agree} of {len(of)}, {off:+.3f}")
        rows.append([name, *cells])
    yield "By sampler, Q2 to Q4:"
    yield ""
    yield from _table(["", *(each.preset.value for each in ordered)], rows)
    yield "Other values have likely causes that cannot be told apart here: other models (untuned, where the paper's settings are not known; LightFM-F with other features), training data without negatives, SAR on positives,"
    yield "a popularity logger that ranks by them, and missing cells that count as negatives. Under the uniform logger the paper's WTDH differs from its Random, which neither its text nor its code can give; it may have"
    yield f"weighted by training data. Ties with everything known (Full, uniform logger): {_ties_when_known(known, ordered)}. Two models tie for a user where, for instance, neither has a positive in its top 100, which depends on the models."
    yield ""
    for question, title in QUESTIONS.items():
        yield f"### {title}"
        yield ""
        head = [each.strip() for each in TABLES[question].strip().splitlines()[0].split("|")[1:]]
        of = [each for each in known if each.question == question]
        rows = []
        for logger, sparsity in dict.fromkeys((each.logger, each.sparsity) for each in of):
            here = {each.sampler: each for each in of if (each.logger, each.sparsity) == (logger, sparsity)}
            rows.append([f"{logger} {100 * sparsity:.0f} %", *(_three(here.get(name), ordered) for name in head)])
        yield from _table(["", *head], rows)


def _ties_when_known(known: Sequence[PublishedFigure], runs: Sequence[Run]) -> str:
    of = next(each for each in known if (each.question, each.logger, each.sparsity, each.sampler) == KNOWN)
    ours = (f"{run.preset.value} {100 * _ours(run, of).value:.2f} %" for run in runs)
    return f"the paper {100 * of.value:.1f} % of pairs of models, ours {', '.join(ours)}"


def _ours(run: Run, read: PublishedFigure) -> StudyFigure:
    rounded = read.question == RESOLUTION and run.preset is Preset.RELEASED
    figures = run.figures[ResultReading.ROUNDED if rounded else ResultReading.USERS]
    scale = figures.scale
    size = None if read.sampler in FIXED else scale.large
    return figures.of[scale.metric, read.question, read.logger, read.sparsity, read.sampler, size]


def _agrees(read: PublishedFigure, value: float) -> bool:
    if read.question == RESOLUTION:
        return read.value / FACTOR <= value <= read.value * FACTOR
    return abs(read.value - value) <= CLOSE


def _three(read: PublishedFigure | None, runs: Sequence[Run]) -> str:
    if read is None:
        return ""
    ours = (_ours(run, read) for run in runs)
    return "<br>".join([read.text, *(f"{each.value:.3f} ± {(each.high - each.low) / 2:.3f}" for each in ours)])


def _ties(runs: Sequence[Run]) -> Iterator[str]:
    yield "## Ties, exact and rounded"
    yield ""
    yield "Share of pairs of models that tie for a user, mean of the three loggers, large n: exact / after rounding to 4 decimals."
    yield ""

    def cell(run: Run, sparsity: float, name: str) -> str:
        both = (
            _mean(run.figures[kind], RESOLUTION, sparsity, name)
            for kind in (ResultReading.USERS, ResultReading.ROUNDED)
        )
        return " / ".join(f"{each:.4f}" for each in both)

    yield from _by_sampler(runs, cell)


def _means(runs: Sequence[Run]) -> Iterator[str]:
    yield "## Predictive power: of users and of means"
    yield ""
    yield "Mean of the three loggers, large n: τ per user / the same with undefined τ as 0 / τ of the models' means over users. In brackets the share of users whose τ is undefined, where it is at least 1 %."
    yield ""

    def cell(run: Run, sparsity: float, name: str) -> str:
        kinds = (ResultReading.USERS, ResultReading.AS_0, ResultReading.MEANS)
        text = " / ".join(f"{_mean(run.figures[kind], POWER, sparsity, name):.2f}" for kind in kinds)
        share = run.undefined[name, sparsity]
        return text + (f" ({100 * share:.0f} %)" if share >= 0.01 else "")

    yield from _by_sampler(runs, cell)


def _by_sampler(runs: Sequence[Run], cell: Callable[[Run, float, str], str]) -> Iterator[str]:
    """A row for each study and sparsity, a column for each sampler."""
    names = (*FIXED, *SIZED)
    rows = [
        [run.name, f"{100 * sparsity:.0f} %", *(cell(run, sparsity, name) for name in names)]
        for run in runs
        for sparsity in (0.0, *SHOWN)
    ]
    yield from _table(["", "sparsity", *names], rows)


def _mean(figures: StudyFigures, question: str, sparsity: float, sampler: str) -> float:
    scale = figures.scale
    size = None if sampler in FIXED else scale.large
    found = [figures.of[scale.metric, question, logger, sparsity, sampler, size].value for logger in figures.loggers]
    return sum(found) / len(found)
