"""What the four questions of the study have in common: tables beside the paper's figures, curves, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from truerank.core.progress import Progress
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import (
    Cell,
    Cells,
    ClaimFinding,
    ClaimVerdict,
    GraphKind,
    GraphPoint,
    PaperClaim,
    PaperGraph,
)
from truerank.studies.papers.reliability.claims import CLAIMS, REVISED
from truerank.studies.papers.reliability.curves import published
from truerank.studies.papers.reliability.looks import ALWAYS, EVERY, EXACTLY
from truerank.studies.papers.reliability.rules import (
    FIXED,
    RESOLUTION,
    LogPlace,
    ResultReading,
    SamplerClaim,
    StudyFigure,
    StudyFigures,
    judge,
)
from truerank.studies.papers.reliability.studied import StudyRun, studied
from truerank.studies.reliability import Preset
from truerank.studies.work import Keep, StudySize, StudySource

SPECIFIED, WIDER = 0.02, 0.05  # how far from a number that was read off a figure ours may be: asked for, and beside it
FEWER = (0.0, 0.1, 0.5, 0.9, 0.95)  # sparsities of tables that have nothing published beside them
PANELS = (0.0, 0.5, 0.95)
DRAWN = ("Full", "Random", "Popularity", "Positivity", "WTDH", "Skew")  # as many as there are colours; tables have all
MEDIAN = "median"
SUPPORT, NEAR = "Cells that support each claim", "Numbers read off the figure, and ours"
TITLES = {
    RESOLUTION: "share of pairs of models that tie",
    "fidelity": "τ with all candidates of the same log",
    "robustness": "τ with the same sampler where everything is shown",
    "predictive_power": "τ with all candidates where everything is shown",
}
DIFFERS = (
    "KuaiRec's unobserved cells (17,827 of 4,694,397) cannot be told from negatives here and count as such.",
    "The big matrix has positives alone here: SAR counts co-occurrence on positives, and the popularity logger ranks "
    "by positives of training and all cells of the world.",
    "LightFM-F knows categories of videos, not the paper's user file and daily counts; models have the library's "
    "settings, as the paper's chosen ones are not known (E-S5 varies both).",
    "Jester is not in the paper: half of the users train, and of the others 20 jokes are history; liked is above 5. "
    "EASE takes LightFM-F's place, nDCG@10 that of nDCG@100, and n = 5, 10 and 25 of 80 jokes those of 200, 500 and "
    "1,000 of 3,327 videos.",
    "`released` is what the paper's code does (τ of values rounded to 4 decimals), `published` what its text says "
    "(exact values, a uniform logger that is uniform, samplers that leave positives out).",
)
MADE = "The world is synthetic: a fully observed block whose users and items are also learnt from outside it."


def claims_of(*prefixes: str) -> tuple[SamplerClaim, ...]:
    """The claims whose names begin so, in order."""
    return tuple(claim for claim in CLAIMS if claim.name.split(".")[0] in prefixes or claim.name in prefixes)


def as_paper(claims: Sequence[SamplerClaim], *, figure: str = "") -> tuple[PaperClaim, ...]:
    """Claims with their rules in words; `figure` adds that its numbers are met."""
    made = [PaperClaim(claim.name, claim.sentence, _where(claim.source), _rule(claim)) for claim in claims]
    if figure:
        made.append(
            PaperClaim(
                "curves", f"The numbers of {figure} at n = 1,000.", figure,
                f"Holds if at least 80 % of those that can be read are within {SPECIFIED} with the samplers of the "
                "paper's code, in part if at least 40 % are.",
            )
        )  # fmt: skip
    return tuple(made)


def _rule(claim: SamplerClaim) -> str:
    revised = " (rule revised after a first run)" if claim.name in REVISED else ""
    return (
        f"A cell supports it if: {claim.rule}. Holds {_asked(claim)}{revised}, with both presets on the paper's world."
    )


def _where(source: str) -> str:
    return f"section {source}" if source[:1].isdigit() else source


def _asked(claim: SamplerClaim) -> str:
    return "in all cells" if claim.needed == EXACTLY else f"where at least {100 * claim.needed:.0f} % of cells do"


# -------------------------------------------------------------------------------------------------------------- running


def measured(
    question: str,
    claims: Sequence[SamplerClaim],
    source: StudySource,
    *,
    size: StudySize,
    seed: int,
    keep: Keep,
    progress: Progress | None,
) -> Measurements:
    """All that one question says about every world and preset."""
    del progress
    runs = studied(source, size=size, seed=seed, keep=keep)
    cells = [cell for run in runs for cell in _table(run, question)]
    cells += _near(runs, question)
    cells += supporting(runs, claims)
    setting = runs[0].setting
    return Measurements(
        tuple(cells),
        (_graph(runs[0], question),),
        settings={
            "metric": setting.scale.metric, "repetitions": setting.repetitions,
            "models": [entry.title for entry in setting.entries], "sizes": list(setting.sizes),
            "intervals": "resamples of users and repetitions",
        },
        differs=(*DIFFERS, *((MADE,) if source.is_synthetic else ())),
    )  # fmt: skip


def reading_of(run: StudyRun, question: str) -> ResultReading:
    """Ties are rounded in the paper's code; τ is already that of rounded values there."""
    rounded = question == RESOLUTION and run.preset is Preset.RELEASED
    return ResultReading.ROUNDED if rounded else ResultReading.USERS


def _table(run: StudyRun, question: str) -> Iterator[Cell]:
    figures = run.figures(reading_of(run, question))
    known = _published(question) if run.setting.name == "kuairec" and run.preset is Preset.RELEASED else {}
    sparsities = figures.sparsities if known else tuple(each for each in figures.sparsities if each in FEWER)
    for logger in figures.loggers:
        for sparsity in sparsities:
            for sampler in EVERY:
                found = _at(figures, question, logger, sparsity, sampler)
                printed = known.get((logger, sparsity, sampler))
                yield Cell(
                    f"{run.title}: {TITLES[question]}, n = {run.setting.scale.large:,}",
                    f"{logger}, {100 * sparsity:.0f} %", sampler, found.value, printed, found.low, found.high,
                    tolerance=None if printed is None else SPECIFIED,
                )  # fmt: skip


def _at(figures: StudyFigures, question: str, logger: str, sparsity: float, sampler: str) -> StudyFigure:
    return LogPlace(figures, logger, sparsity, sampler).at(question)


def _published(question: str) -> Mapping[tuple[str, float, str], float]:
    return {(each.logger, each.sparsity, each.sampler): each.value for each in published() if each.question == question}


def _near(runs: Sequence[StudyRun], question: str) -> Iterator[Cell]:
    """How many of the numbers that can be read are met, within both tolerances."""
    known = _published(question)
    for run in (each for each in runs if each.setting.name == "kuairec"):
        figures = run.figures(reading_of(run, question))
        off = [_at(figures, question, *where).value - value for where, value in known.items()]
        table = f"{NEAR} (KuaiRec)"
        yield Cell(table, run.preset.value, "numbers", float(len(off)))
        for room in (SPECIFIED, WIDER):
            yield Cell(table, run.preset.value, f"within {room}", float(sum(abs(each) <= room for each in off)))
        yield Cell(table, run.preset.value, "mean difference", sum(off) / len(off))


def supporting(runs: Sequence[StudyRun], claims: Sequence[SamplerClaim]) -> Iterator[Cell]:
    """Of each claim and study: cells that support it, all cells, and the median of what is measured."""
    for run in runs:
        figures = run.figures()
        for claim in claims:
            found = judge(claim, figures)
            row = f"{claim.name} {claim.sentence}"
            yield Cell(SUPPORT, row, f"{run.title}: support", float(found.supporting))
            yield Cell(SUPPORT, row, f"{run.title}: of", float(found.cells))
            yield Cell(SUPPORT, row, f"{run.title}: {MEDIAN}", found.median)


# ------------------------------------------------------------------------------------------------------------- verdicts


def verdicts(obtained: Obtained, claims: Sequence[SamplerClaim], *, curves: bool = True) -> tuple[ClaimFinding, ...]:
    """A verdict on each claim, from how many cells support it on the paper's world with each preset."""
    cells = obtained.cells
    titles = list(dict.fromkeys(cell.column.rpartition(": ")[0] for cell in cells.of(SUPPORT)))
    own = titles[0].partition(", ")[0] if titles else ""
    found = [_verdict(cells, claim, titles, own) for claim in claims]
    return (*found, _curves(cells)) if curves else tuple(found)


def _verdict(cells: Cells, claim: SamplerClaim, titles: Sequence[str], own: str) -> ClaimFinding:
    row = f"{claim.name} {claim.sentence}"
    words: dict[str, ClaimVerdict] = {}
    said = []
    for title in titles:
        support, of, median = (cells.value(SUPPORT, row, f"{title}: {each}") for each in ("support", "of", MEDIAN))
        words[title] = word_of(support, of, median, needed=claim.needed)
        measure = "" if math.isnan(median) else f", {median:.3g}"
        said.append(f"{title} {support:.0f} of {of:.0f}{measure}")
    decisive = [word for title, word in words.items() if title.startswith(f"{own},")]
    same = decisive[0] if decisive and len(set(decisive)) == 1 else ClaimVerdict.IN_PART
    why = f"Cells that support it, and the median of: {claim.measure}. {'; '.join(said)}."
    return ClaimFinding(claim.name, same if decisive else ClaimVerdict.UNTESTED, why)


def word_of(support: float, of: float, median: float, *, needed: float) -> ClaimVerdict:
    """The verdict on one study: by the share of cells that the sentence asks for.

    >>> [word_of(n, 10, 0.5, needed=0.8).value for n in (8, 4, 3)]
    ['holds', 'holds in part', 'does not hold']
    """
    if not of > 0 or math.isnan(median):
        return ClaimVerdict.UNTESTED
    share = support / of
    if share >= needed - 1e-12:
        return ClaimVerdict.HOLDS
    return ClaimVerdict.DOES_NOT if share < needed / 2 else ClaimVerdict.IN_PART


def _curves(cells: Cells) -> ClaimFinding:
    table = f"{NEAR} (KuaiRec)"
    n = cells.value(table, Preset.RELEASED.value, "numbers")
    if math.isnan(n):
        return ClaimFinding("curves", ClaimVerdict.UNTESTED, "The figure is of KuaiRec; this world is synthetic.")
    said = []
    for preset in (Preset.RELEASED, Preset.PUBLISHED):
        near = [cells.value(table, preset.value, f"within {room}") for room in (SPECIFIED, WIDER)]
        off = cells.value(table, preset.value, "mean difference")
        said.append(
            f"{preset.value}: {near[0]:.0f} of {n:.0f} within {SPECIFIED}, {near[1]:.0f} within {WIDER}, "
            f"{off:+.3f} on average"
        )
    support = cells.value(table, Preset.RELEASED.value, f"within {SPECIFIED}")
    return ClaimFinding("curves", word_of(support, n, 0.0, needed=ALWAYS), f"{'; '.join(said)}.")


# --------------------------------------------------------------------------------------------------------------- graphs


def _graph(run: StudyRun, question: str) -> PaperGraph:
    """Curves over the size of the sample, as in the paper's figure, at three sparsities."""
    figures, scale = run.figures(reading_of(run, question)), run.setting.scale
    sizes = tuple(n for n in figures.sizes if n <= scale.large)
    points = []
    for logger in figures.loggers:
        for sparsity in (each for each in PANELS if each in figures.sparsities):
            panel = f"{logger}, {100 * sparsity:.0f} %"
            for sampler in DRAWN:
                place = LogPlace(figures, logger, sparsity, sampler)
                ends = (sizes[0], sizes[-1]) if sampler in FIXED else sizes
                for n in ends:
                    value = place.at(question, size=n).value
                    points.append(GraphPoint(float(n), None if math.isnan(value) else value, sampler, panel))
    full, random = (_mean(points, each, sizes[-1]) for each in ("Full", "Random"))
    return PaperGraph(
        "curves", f"{run.title}, {scale.metric}: {TITLES[question]}, over the number of sampled candidates",
        f"Mean of all panels at n = {scale.large:,}: {full:.3f} with all candidates, {random:.3f} with random ones.",
        GraphKind.LINES, x="n", y=question.replace("_", " "), points=tuple(points), log=True,
    )  # fmt: skip


def _mean(points: Sequence[GraphPoint], sampler: str, n: int) -> float:
    found = [point.y for point in points if point.group == sampler and point.x == n and point.y is not None]
    return sum(found) / len(found) if found else math.nan
