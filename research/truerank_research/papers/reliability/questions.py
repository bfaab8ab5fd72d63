"""E-S1 to E-S4: ties of models, fidelity, robustness and predictive power of sampled candidates (figures 2 to 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from truerank_research.claims import Cell, Cells, Claim, Finding, Verdict, cell_rows
from truerank_research.papers.reliability.data import AS_RELEASED, PUBLISHED, RELEASED, VARIANTS, StudyRun, studied
from truerank_research.papers.reliability.figures import (
    ALWAYS,
    EVERY,
    FIDELITY,
    POWER,
    RESOLUTION,
    ROBUSTNESS,
    LogPlace,
    SamplerClaim,
    StudyFigure,
    StudyFigures,
)
from truerank_research.papers.reliability.sampler_claims import CLAIMS, EXACTLY, REVISED
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

LOGGERS = {"Uni": "uniform", "Pop": "popularity", "Pos": "positivity"}
TABLES = {
    RESOLUTION: """
| Full | Random@e | Exposed | Skew | Positivity | WTDH
Uni 0 | ~.045 | .045 | | .021 | .015 | .037
Uni 50 | .073 | .049 | | .029 | .025 | .043
Uni 85 | .236 | .067 | | | | .108
Uni 95 | .498 | .029 | .028 | .271 | .293 | .246
Pop 50 | .073 | .051 | .048 | .031 | .027 | .044
Pop 95 | .426 | .027 | .026 | .276 | .293 | .232
Pos 50 | .050 | .041 | | .020 | .017 | .038
Pos 90 | .099 | .012 | .011 | .033 | .029 | .048
Pos 95 | .165 | .0014 | .0012 | .066 | | .075""",
    FIDELITY: """
| Exposed | Random@e | Random | Skew | Popularity | Positivity | WTDH
Uni 0 | ~1 | .995 | .827 | .810 | .791 | .706 | .758
Uni 10 | .945 | .953 | .822 | .810 | | .710 | .763
Uni 50 | ~.83 | .834 | .793 | .786 | | .706 | .739
Uni 90 | .639 | .630 | .736 | .729 | | .715 | .687
Uni 95 | ~.57 | .573 | .741 | .734 | | ~.73 | .691
Pop 0 | 1 | 1 | ~.827 | .817 | .796 | .725 | .827
Pop 10 | ~.95 | .953 | ~.83 | .820 | .682 | .734 | .834
Pop 50 | .843 | .872 | .831 | .808 | .767 | .744 | .815
Pop 95 | .606 | .625 | .782 | .791 | | | .744
Pos 10 | .959 | .952 | ~.83 | .809 | .637 | .728 | .828
Pos 50 | .835 | .871 | .845 | .804 | .788 | .766 | .826
Pos 95 | .632 | .699 | .828 | | .816 | | .807""",
    ROBUSTNESS: """
| Full | Exposed | Random@e | Random | Skew | Popularity | Positivity | WTDH
Uni 10 | .929 | ~.91 | .912 | .867 | .839 | .831 | .782 | .903
Uni 50 | .763 | ~.75 | .741 | .748 | .734 | .722 | .639 | .827
Uni 95 | .401 | .340 | .330 | .390 | .380 | | .283 | .506
Pop 10 | .938 | .924 | .910 | .874 | .848 | .725 | .801 | .862
Pop 50 | .782 | .765 | .739 | | .748 | .706 | .660 | .727
Pop 95 | ~.49 | .354 | .411 | .492 | .430 | | .335 | .523
Pos 10 | .990 | .957 | .950 | .940 | .857 | .671 | .838 | .883
Pos 50 | .895 | .821 | .816 | .842 | | .768 | .754 | .809
Pos 95 | .668 | .480 | .561 | .675 | .604 | .592 | .532 | .702""",
    POWER: """
| Full | Exposed | Random@e | Random | Skew | Popularity | Positivity | WTDH
Uni 10 | .929 | .912 | .905 | .810 | .801 | | .691 | .753
Uni 50 | .763 | .748 | .734 | ~.72 | | | .592 | .715
Uni 85 | .549 | | .518 | ~.53 | .525 | | .406 | .592
Uni 95 | .401 | .340 | .330 | ~.37 | .366 | | .261 | .456
Pop 10 | .938 | .924 | .910 | ~.81 | | .701 | .720 | .803
Pop 50 | .782 | .758 | .739 | .717 | .725 | .708 | .639 | .694
Pop 95 | .492 | ~.355 | .411 | .475 | .425 | | .354 | .501
Pos 10 | .990 | .955 | .947 | ~.82 | .809 | .640 | .725 | .821
Pos 50 | .895 | .821 | .814 | .790 | .780 | | .747 | .766
Pos 95 | .668 | .480 | .561 | .651 | .589 | .604 | .580 | .678""",
}


def published(question: str) -> dict[tuple[str, float, str], float]:
    """All values of a figure that could be read, by logger, sparsity and sampler.

    >>> published(RESOLUTION)["uniform", 0.0, "Full"]
    0.045
    """
    head, *rows = TABLES[question].strip().splitlines()
    samplers = [name.strip() for name in head.split("|")[1:]]
    values = {}
    for row in rows:
        where, *texts = (text.strip() for text in row.split("|"))
        logger, sparsity = where.split()
        for sampler, text in zip(samplers, texts, strict=True):
            if text:
                values[LOGGERS[logger], int(sparsity) / 100, sampler] = float(text.removeprefix("~"))
    return values


# how far from a number that was read off a figure ours may be: specified, and a wider one
SPECIFIED, WIDER = 0.02, 0.05
FEWER = (0.0, 0.1, 0.5, 0.9, 0.95)  # sparsities of tables without published numbers
COMPARED = "Published, as released, right"
SUPPORT, NEAR = "Cells that support each claim", "Numbers read off the figure, and ours (KuaiRec)"
TITLES = {
    RESOLUTION: "share of pairs of models that tie",
    "fidelity": "τ with all candidates of the same log",
    "robustness": "τ with the same sampler where everything is shown",
    "predictive_power": "τ with all candidates where everything is shown",
}
DIFFERENCES = (
    "KuaiRec's unobserved cells (17,827 of 4,694,397) cannot be told from negatives here and count as such.",
    "The big matrix has positives alone here: SAR counts co-occurrence on positives, and the popularity logger ranks "
    "by positives of training and all cells of the world.",
    "LightFM-F knows categories of videos, not the paper's user file and daily counts; models have the library's "
    "settings, as the paper's chosen ones are not known (E-S5 varies both).",
    "Jester is not in the paper: half of the users train, and of the others 20 jokes are history; liked is above 5. "
    "EASE takes LightFM-F's place, nDCG@10 that of nDCG@100, and n = 5, 10 and 25 of 80 jokes those of 200, 500 and "
    "1,000 of 3,327 videos.",
    "`as released` is what the paper's code does: LightFM looks items up in LightFM's map of user features, SAR counts "
    "all rows and has noise for 0, loggers and samplers are those of the code, τ is of values rounded to 4 decimals. "
    "`right models, samplers as released` mends the models; `right models and samplers` is what the text says (exact "
    "values, a uniform logger that is uniform, samplers that leave positives out).",
)
SIMULATED = "The dataset is simulated: a fully observed block whose users and items are also learnt from outside it."


def measure_question(question: str, claims: Sequence[SamplerClaim]) -> Callable[[Run], Measured]:
    """What one question of the study reads off every dataset and preset."""

    def measure(run: Run) -> Measured:
        runs = studied(run)
        cells = [cell for one in runs for cell in _table_cells(one, question)]
        counts = [*_near_cells(runs, question), *_support_cells(runs, claims)]
        setting = runs[0].setting
        return Measured(
            {"cells": cell_rows([*cells, *_compared(cells), *counts])},
            {
                "metric": setting.scale.metric, "repetitions": setting.repetitions,
                "models": [entry.title for entry in setting.entries], "sizes": list(setting.sizes),
                "intervals": "resamples of users and repetitions",
            },
            [*DIFFERENCES, *([SIMULATED] if run.source.is_synthetic else [])],
        )  # fmt: skip

    return measure


def _figures(run: StudyRun, question: str) -> StudyFigures:
    """Ties are rounded in the paper's code; τ is already that of rounded values there."""
    return run.figures(rounded=question == RESOLUTION and run.variant != PUBLISHED)


def _table_cells(run: StudyRun, question: str) -> Iterator[Cell]:
    figures = _figures(run, question)
    printed = published(question) if run.setting.name == "kuairec" and run.variant != PUBLISHED else {}
    sparsities = figures.sparsities if printed else tuple(value for value in figures.sparsities if value in FEWER)
    table = f"{run.title}: {TITLES[question]}, n = {run.setting.scale.large:,}"
    for logger in figures.loggers:
        for sparsity in sparsities:
            for sampler in EVERY:
                figure = _figure(figures, question, logger, sparsity, sampler)
                number = printed.get((logger, sparsity, sampler))
                yield Cell(
                    table, f"{logger}, {100 * sparsity:.0f} %", sampler, figure.value, number, figure.low, figure.high,
                    tolerance=None if number is None else SPECIFIED,
                )  # fmt: skip


def _figure(figures: StudyFigures, question: str, logger: str, sparsity: float, sampler: str) -> StudyFigure:
    return LogPlace(figures, logger, sparsity, sampler).at(question)


def _compared(cells: Sequence[Cell]) -> Iterator[Cell]:
    """What can be read off the figure, what the paper's code gives, and what right models give."""
    for cell in cells:
        for variant, column in ((AS_RELEASED, "as released"), (RELEASED, "right models")):
            if cell.published is not None and cell.table.startswith(f"KuaiRec, {variant}:"):
                row = f"{cell.row}, {cell.column}"
                yield Cell(COMPARED, row, column, cell.obtained, cell.published, cell.low, cell.high, cell.tolerance)
                if variant == AS_RELEASED:
                    yield Cell(COMPARED, row, "published", cell.published)


def _near_cells(runs: Sequence[StudyRun], question: str) -> Iterator[Cell]:
    """How many of the numbers that can be read are reached, within both tolerances."""
    printed = published(question)
    for run in (run for run in runs if run.setting.name == "kuairec"):
        figures, row = _figures(run, question), run.variant
        away = [_figure(figures, question, *where).value - value for where, value in printed.items()]
        yield Cell(NEAR, row, "numbers", float(len(away)))
        for room in (SPECIFIED, WIDER):
            yield Cell(NEAR, row, f"within {room}", float(sum(abs(value) <= room for value in away)))
        yield Cell(NEAR, row, "mean difference", sum(away) / len(away))


def _support_cells(runs: Sequence[StudyRun], claims: Sequence[SamplerClaim]) -> Iterator[Cell]:
    """Of each claim and study: cells that support it, all cells, and the median of what is measured."""
    for run in runs:
        figures = run.figures()
        for claim in claims:
            for column, value in zip(("support", "of", "median"), claim.support(figures), strict=True):
                yield Cell(SUPPORT, _row(claim), f"{run.title}: {column}", float(value))


def _row(claim: SamplerClaim) -> str:
    return f"{claim.name} {claim.sentence}"


def support_rule(claim: SamplerClaim) -> Callable[[Cells], Finding]:
    """The verdict from how many cells support a claim on the paper's dataset, with right models and either samplers."""

    def rule(cells: Cells) -> Finding:
        titles = list(dict.fromkeys(cell.column.rpartition(": ")[0] for cell in cells.select(SUPPORT)))
        dataset = titles[0].partition(", ")[0] if titles else ""
        decisive, texts = [], []
        for title in titles:
            support, of, median = (
                cells.value(SUPPORT, _row(claim), f"{title}: {column}") for column in ("support", "of", "median")
            )
            if title.startswith(f"{dataset}, right"):
                decisive.append(verdict_of(support, of, median, needed=claim.needed))
            texts.append(f"{title} {support:.0f} of {of:.0f}{'' if math.isnan(median) else f', {median:.3g}'}")
        verdict = decisive[0] if len(set(decisive)) == 1 else Verdict.IN_PART if decisive else Verdict.UNTESTABLE
        return Finding(verdict, f"Cells that support it, and the median of: {claim.measure}. {'; '.join(texts)}.")

    return rule


def verdict_of(support: float, of: float, median: float, *, needed: float) -> Verdict:
    """The verdict on one study: by the share of cells that the sentence needs.

    >>> [verdict_of(n, 10, 0.5, needed=0.8).value for n in (8, 4, 3)]
    ['replicates', 'replicates in part', 'does not replicate']
    """
    if not of > 0 or math.isnan(median):
        return Verdict.UNTESTABLE
    part = support / of
    if part >= needed - 1e-12:
        return Verdict.REPLICATES
    return Verdict.FAILS if part < needed / 2 else Verdict.IN_PART


def _curves_rule(cells: Cells) -> Finding:
    n = cells.value(NEAR, AS_RELEASED, "numbers")
    if math.isnan(n):
        return Finding(Verdict.UNTESTABLE, "The figure is of KuaiRec; this dataset is simulated.")
    texts = []
    for variant in VARIANTS:
        near, wider = (cells.value(NEAR, variant, f"within {room}") for room in (SPECIFIED, WIDER))
        away = cells.value(NEAR, variant, "mean difference")
        texts.append(
            f"{variant}: {near:.0f} of {n:.0f} within {SPECIFIED}, {wider:.0f} within {WIDER}, {away:+.3f} on average"
        )
    support = cells.value(NEAR, AS_RELEASED, f"within {SPECIFIED}")
    return Finding(verdict_of(support, n, 0.0, needed=ALWAYS), f"{'; '.join(texts)}.")


def _claim(claim: SamplerClaim) -> Claim:
    where = f"section {claim.source}" if claim.source[:1].isdigit() else claim.source
    revised = " (rule revised after a first run)" if claim.name in REVISED else ""
    needed = "all cells" if claim.needed == EXACTLY else f"at least {100 * claim.needed:.0f} % of cells"
    criterion = (
        f"A cell supports it if: {claim.rule}. Needed: {needed}{revised}, of right models on the paper's dataset with "
        "the code's samplers and with the text's."
    )
    return Claim(claim.name, claim.sentence, where, criterion, support_rule(claim))


def _study(name: str, text: str, question: str, figure: str, *prefixes: str) -> Study:
    own = tuple(claim for claim in CLAIMS if claim.name.split(".")[0] in prefixes or claim.name in prefixes)
    curves = Claim(
        "curves", f"The numbers of {figure} at n = 1,000.", figure,
        f"At least 80 % of those that can be read are within {SPECIFIED} with what the paper's code does; in "
        "part if at least 40 % are.", _curves_rule,
    )  # fmt: skip
    return Study(
        name, text, measure_question(question, own), data=("kuairec", "jester"), minutes=10,
        claims=(*map(_claim, own), curves), shows={"reliability": (figure,)},
    )  # fmt: skip


STUDIES = (
    _study("E-S1", "How often do models tie, by sampler, sample size and log?", RESOLUTION, "Figure 2", "Q1"),
    _study(
        "E-S2", "How well does sampled evaluation agree with all candidates of the same log?", FIDELITY, "Figure 3",
        "Q2",
    ),
    _study(
        "E-S3", "How well does a sampler agree with itself where everything is exposed?", ROBUSTNESS, "Figure 4",
        "Q3", "I.1",
    ),
    _study(
        "E-S4", "How well does sampled evaluation on a biased log agree with the truth, and which conclusions follow?",
        POWER, "Figure 5", "Q4", "C", "I.2", "I.3",
    ),
)  # fmt: skip
