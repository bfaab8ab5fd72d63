"""What each page in docs/results begins with (`result_pages.py`, which writes it): a function of its tables for every page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from result_parts import Head, Table, number, numbers, rows_having
from truerank.report.study_charts import BAND, GREEN, HELD, curves, percent, ranges
from truerank.report.study_charts import dot as _dot
from truerank.report.study_charts import span as _span


def coverage(found: list[Table]) -> Head:
    rows = rows_having(found, "interval", "coverage")
    held = [number(row["coverage"]) for row in rows]
    published = [number(row["share of its intervals that hold mean recall"])
                 for row in rows_having(found, "share of its intervals that hold mean recall")]  # fmt: skip
    dots = [
        _dot(f"{row['metric']}, {row['estimator']}", f"{row['interval']} intervals", number(row["coverage"]))
        for row in rows
    ]
    return Head(
        ranges(dots, HELD, band=BAND, form="%"),
        "How often intervals held the truth, by metric and estimator",
        (
            "KuaiRec is labelled nearly in full, so the truth is known; all but a few random items per user were hidden again and again, and the truth was estimated from the rest.",
            f"A dot is how often a 95 % interval held it, for one model or difference: {_span(held)} of draws, and {GREEN}.",
            f"The mean over users as it was published is another question, and its intervals hold mean recall in {_span(published)} of draws.",
        ),
    )


def lists(found: list[Table]) -> Head:
    rows = rows_having(found, "world", "95 % held")
    held = [number(row["95 % held"]) for row in rows]
    dots = [_dot(f"{row['world']}, {row['users']} users", row["metric"], number(row["95 % held"])) for row in rows]
    wide = sum(each > BAND[1] for each in held)
    return Head(
        ranges(dots, HELD, band=BAND, form="%"),
        "How often intervals of coverage and Gini held the truth, by world",
        (
            "How many items a recommender shows at all, and how unequally, are numbers of all users together, so their intervals were measured on worlds whose truth is known.",
            f"A dot is how often a 95 % interval held it: {_span(held)} of draws; {GREEN}.",
            f"{wide} of {len(held)} are to its right: wider than needed, which is safe and costs data.",
        ),
    )


def mean_recall(found: list[Table]) -> Head:
    rows = rows_having(found, "corrected error", "published bias")
    dots = [
        _dot(f"{row['model']}, K = {row['K']}", f"{row['N̄']} judged items", number(row["corrected error"]))
        for row in rows
    ]
    error = [number(row["corrected error"]) for row in rows]
    off = [number(row["corrected error"]) for row in rows if abs(number(row["published bias"])) > 0.15]
    covered = [number(row["covered"]) for row in rows if number(row["N̄"]) >= 20]
    short = sum(each < 0.9 for each in covered)
    return Head(
        ranges(dots, "error of corrected, over that of the published mean", at=1.0),
        "Error of the corrected mean over that of the published one, by model and cut-off",
        (
            "Where users have few judged items, those without a relevant one among them drop out of the published mean, and it is biased; corrected models them.",
            f"Left of the dashed line corrected has the smaller error: in {sum(each < 1 for each in error)} of {len(error)} cells, and in {sum(each < 1 for each in off)} of the {len(off)} in which the published mean is more than 15 % off.",
            f"Its 95 % intervals held the truth less often than in 90 % of draws in {short} of {len(covered)} cells with 20 judged items or more; draws are few, so each of these figures is rough.",
        ),
    )


def models(found: list[Table]) -> Head:
    table = next(table for table in found if table and "evaluate" in table[0])
    dots = _recalls(table, "all")
    best, popular = dots[0], next(dot for dot in dots if dot["label"] == "popularity")
    above = [dot["label"] for dot in dots if dot["low"] > popular["high"]]
    return Head(
        ranges(dots, "Recall@50, with 95 % intervals", at=popular["value"]),
        "Recall@50 of each recommender with its interval, popularity as a dashed line",
        (
            "Recommenders were trained on one part of KuaiRec and tested on another in which nearly every label is known.",
            f"{best['label']} finds most, {best['value']:.3f} of what users like in the first 50; popularity (dashed) finds {popular['value']:.3f}.",
            f"Settings were not tuned; the intervals of {len(above)} models lie above that of popularity ({', '.join(above)}).",
        ),
    )


def models_torch(found: list[Table]) -> Head:
    tables = [table for table in found if table and "epochs" in table[0]]
    tasks = ("biased split, both classes", "big matrix, positives only")
    dots = [dot for table, task in zip(tables, tasks, strict=True) for dot in _recalls(table, task)]
    first = {dot["label"]: dot for dot in dots if dot["group"] == tasks[0]}
    second = [dot for dot in dots if dot["group"] == tasks[1]]
    best, most = max(first.values(), key=lambda dot: dot["value"]), max(second, key=lambda dot: dot["value"])
    beyond = sum(dot["low"] > first["popularity"]["high"] for dot in first.values()) or "no"
    return Head(
        ranges(dots, "Recall@50, with 95 % intervals", offset=True),
        "Recall@50 of the learned models with intervals, in two tasks",
        (
            "The models that need torch, on KuaiRec, in two tasks: learning from a biased part of a table with both classes, and from positives alone.",
            f"In the first {best['label']} finds most ({best['value']:.3f}; popularity {first['popularity']['value']:.3f}), and {beyond} intervals lie above popularity's.",
            f"In the second {most['label']} finds most ({most['value']:.3f}); settings were not tuned.",
        ),
    )


def _recalls(table: Table, group: str) -> list[dict[str, Any]]:
    return [
        {**_dot(row["model"], group, value), "low": low, "high": high}
        for row in table
        for value, low, high in [numbers(row["Recall@50"])]
    ]


def position_fits(found: list[Table]) -> Head:
    rows = rows_having(found, "planted", "coverage of 95 % intervals")
    dots = [
        _dot(
            f"{row['planted']}: {row['parameter']}",
            "from clicks" if row["parameter"].startswith("P(") else "from scroll depths",
            number(row["coverage of 95 % intervals"]),
        )
        for row in rows
    ]
    depth = [dot["value"] for dot in dots if dot["group"] == "from scroll depths"]
    clicks = [dot["value"] for dot in dots if dot["group"] == "from clicks"]
    groups = {
        row["family"]: number(row["coverage of 95 % intervals"])
        for row in rows_having(found, "family", "coverage of 95 % intervals")
    }
    worst = min(groups, key=lambda name: groups[name])
    return Head(
        ranges(dots, HELD, band=BAND, form="%"),
        "How often intervals held the planted position model, by fit",
        (
            "Sessions were drawn from position models that are known, and the models fitted to them.",
            f"From scroll depths 95 % intervals held what was planted in {_span(depth)} of fits ({GREEN}), from clicks in {_span(clicks)}, for which nothing is promised.",
            f"Fits per group are weakest for {worst}: {percent(groups[worst])}.",
        ),
    )


def published_bias(found: list[Table]) -> Head:
    rows = rows_having(found, "judged per user N̄", "bias")
    points = [
        {"at": row["judged per user N̄"], "value": number(row["bias"]), "group": row["metric"], "panel": row["model"]}
        for row in rows
    ]
    fewest, most = rows[0]["judged per user N̄"], rows[-1]["judged per user N̄"]
    low = [number(row["bias"]) for row in rows if row["judged per user N̄"] == fewest]
    high = [number(row["bias"]) for row in rows if row["judged per user N̄"] == most]
    return Head(
        curves(points, across="judged items per user", title="bias of the published mean", form="%", zero=True),
        "Bias of the published mean over the number of judged items per user",
        (
            "The usual mean over users leaves out everyone without a judged positive, and these are not like the others: they like little.",
            f"With {fewest} judged items per user it comes out {_span([-each for each in low], 0)} too low, with {most} still {_span([-each for each in high], 1)}.",
            "More users do not help: this is where it converges to, exactly, without any noise.",
        ),
    )


def reliability_coverage(found: list[Table]) -> Head:
    rows = rows_having(found, "coverage: least", "most")
    dots = [
        {**_dot(f"{row['figure']}: {row['question'].replace('_', ' ')}", f"{row['repetitions']} repetition{'s' * (row['repetitions'] != '1')}", number(row["median"])),
         "low": number(row["coverage: least"]), "high": number(row["most"])}
        for row in rows
    ]  # fmt: skip
    once = [number(row["median"]) for row in rows if row["repetitions"] == "1" and row["figure"] != "of means"]
    least = min(number(row["coverage: least"]) for row in rows)
    means = [number(row["median"]) for row in rows if row["figure"] == "of means"]
    return Head(
        ranges(dots, HELD, band=BAND, form="%", offset=True),
        "How often intervals of the reliability study held the truth, by question",
        (
            "A reliability study sees some users and wants to speak of all; here the study was run thousands of times on users drawn from a population that is known.",
            f"A dot is the median over ways to choose candidates, a bar goes from least to most: with one repetition the medians are {_span(once)}, and {GREEN}.",
            f"The lowest of all is {percent(least)}; intervals of the order of means hold nearly always (medians {_span(means)}), as they are wide.",
        ),
    )


def reliability(found: list[Table]) -> Head:
    rows = [row for row in rows_having(found, "sparsity", "Full", "WTDH") if row["Full"].count("/") == 2]
    shown = {
        "Full": "all items",
        "Exposed": "only what was shown",
        "Random": "random sample",
        "Popularity": "by popularity",
        "Skew": "Skew",
    }
    kept = [row for row in rows if row[""].endswith("published")]
    points = [
        {"at": row["sparsity"], "value": number(row[name]), "group": word, "panel": row[""].partition(",")[0]}
        for name, word in shown.items() for row in kept
    ]  # fmt: skip
    half = {row[""].partition(",")[0]: row for row in kept if row["sparsity"].startswith("50")}
    full = ", ".join(f"{numbers(row['Full'])[0]:.2f} on {world}" for world, row in half.items())
    sample = ", ".join(f"{numbers(row['Random'])[0]:.2f} on {world}" for world, row in half.items())
    means = ", ".join(f"{numbers(row['Random'])[2]:.2f} on {world}" for world, row in half.items())
    return Head(
        curves(points, across="share of pairs that were hidden", title="τ of a user's order of models", zero=True),
        "Agreement of each user's order of models with the truth over sparsity, for five ways to choose candidates, on two worlds",
        (
            "Recommenders are often compared on a sample of candidates instead of all items; on two worlds in which everything is known, that was done in every usual way.",
            f"With half of the pairs hidden, ranking all items keeps a user's order of models with a τ of {full}, a random sample with {sample}.",
            f"Means over users, which is what tables report, are steadier: {means} for the same sample.",
        ),
    )


HEADS: Mapping[str, Callable[[list[Table]], Head]] = {
    "coverage": coverage,
    "lists": lists,
    "mean-recall": mean_recall,
    "models": models,
    "models-torch": models_torch,
    "position-fits": position_fits,
    "published-bias": published_bias,
    "reliability": reliability,
    "reliability-coverage": reliability_coverage,
}
