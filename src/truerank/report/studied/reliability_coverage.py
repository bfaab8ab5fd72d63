"""The page of the study of intervals of the reliability study."""

from __future__ import annotations

from truerank.report.study_charts import BAND, GREEN, HELD, dot, percent, ranges, span
from truerank.report.study_pages import StudyPage
from truerank.studies.own.result import StudyResult
from truerank.studies.own.study import Row

OF_MEANS = "of means"
REMARKS = [
    "What to expect of them:",
    "",
    "- One repetition: most intervals do what they say. Those that hold the truth too rarely are of two kinds. Samplers that weigh items by their rows in the log (Popularity, WTDH), above all where all items "
    "have been shown about equally often: ranks of nearly equal counts are chance of the users who are there, so that a study of few users expects something else than one of many; the "
    "interval knows nothing of that bias. And means close to 1, to which few users contribute.",
    "- Several repetitions: intervals are wider than they need to be, as a bootstrap that redraws users and repetitions is; the same two kinds are the exceptions.",
    "- τ of means takes few values, and close models change places from resample to resample: intervals are wide, mostly hold the truth always, and the estimate itself is too low where models are close in the world and some draws "
    "of users turn them round.",
]


def page(result: StudyResult) -> StudyPage:
    rows, settings = result.rows("figures"), result.settings
    runs = settings["runs"]
    dots = [
        dot(f"{row['kind']}: {row['question'].replace('_', ' ')}", _repeated(row["repetitions"]), row["median"], low=row["least"], high=row["most"])
        for row in rows
    ]  # fmt: skip
    once = [row["median"] for row in rows if row["repetitions"] == 1 and row["kind"] != OF_MEANS]
    means = [row["median"] for row in rows if row["kind"] == OF_MEANS]
    far = 3.3 * (0.95 * 0.05 / runs) ** 0.5
    return StudyPage(
        "Intervals of the reliability study",
        ranges(dots, HELD, band=BAND, form="%", offset=True),
        "How often intervals of the reliability study held the truth, by question",
        (
            "A reliability study sees some users and wants to speak of all; here the study was run thousands of times on users drawn from a population that is known.",
            f"A dot is the median over ways to choose candidates, a bar goes from least to most: with one repetition the medians are {span(once)}, and {GREEN}.",
            f"The lowest of all is {percent(min(row['least'] for row in rows))}; intervals of the order of means hold nearly always (medians {span(means)}), as they are wide.",
        ),
        [
            f"The population is a synthetic world of {settings['population']:,} users x {settings['items']} items with five "
            f"recommenders (random, popularity, two item-knn, EASE), whose training pairs are excluded. A study sees {settings['users']} of these users, drawn with "
            f"replacement; {runs:,} studies for each number of repetitions, {settings['resamples']} resamples, 95 % intervals, nDCG@10, seed {result.seed}. The truth is the same "
            f"study of everybody, the mean of {settings['truth repetitions']} repetitions. With {runs:,} studies a correct method falls within "
            f"{0.95 - far:.1%} to {0.95 + far:.1%} with 99.9 % probability.",
            "",
            "| figure | repetitions | question | rows | coverage: least | median | most | largest bias in standard deviations |",
            "|---|---|---|---|---|---|---|---|",
            *(
                f"| {row['kind']} | {row['repetitions']} | {row['question']} | {row['rows']} | {row['least']:.1%} | {row['median']:.1%} | {row['most']:.1%} | {row['bias']:.2f} |"
                for row in rows
            ),
            "",
            *REMARKS,
            *(line for repetitions in dict.fromkeys(row["repetitions"] for row in rows) for line in _part(result, repetitions)),
        ],
    )  # fmt: skip


def _repeated(repetitions: int) -> str:
    return f"{repetitions} repetition{'s' * (repetitions > 1)}"


def _part(result: StudyResult, repetitions: int) -> list[str]:
    """The scenarios of one number of repetitions."""
    settings = result.settings
    return [
        "",
        f"## {_repeated(repetitions)}, logger {settings['logger']}, {settings['sparsity']:.0%} hidden".replace(
            "%", " %"
        ),
        "",
        "| figure | question | candidates | truth | mean | sd | mean width | coverage |",
        "|---|---|---|---|---|---|---|---|",
        *(_line(row) for row in result.rows("scenarios") if row["repetitions"] == repetitions),
    ]


def _line(row: Row) -> str:
    size = "" if row["size"] is None else f" {row['size']}"
    return (
        f"| {row['kind']} | {row['question']} | {row['sampler']}{size} | {row['truth']:.4f} | {row['mean']:.4f} | {row['sd']:.4f} | "
        f"{row['width']:.4f} | {row['covered']:.1%} |"
    )
