"""What each page in docs/results begins with (`result_pages.py`, which writes it): a function of its tables for every page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean

from result_parts import Head, Table, number, numbers, rows_having
from truerank.report.study_charts import BAND, GREEN, HELD, curves, percent, ranges
from truerank.report.study_charts import dot as _dot
from truerank.report.study_charts import span as _span


def debiased(found: list[Table]) -> Head:
    column = "closer than Bias: squared error"
    parts = [table for table in found if table and column in table[0]]
    dots = [
        {**_dot(row["method"], model, value), "low": low, "high": high}
        for model, table in zip(("mf", "lightgcn with biases"), parts, strict=True)
        for row in table if row[column]
        for value, low, high in [numbers(row[column])]
    ]  # fmt: skip
    nearer = sum(dot["low"] > 0 for dot in dots)
    recall = [
        numbers(row["closer than Bias: Recall@20"])
        for table in parts
        for row in table
        if row["closer than Bias: Recall@20"]
    ]
    return Head(
        ranges(dots, "squared error saved, against learning from the log as it is", at=0.0, offset=True),
        "Squared error that debiased learners save, with intervals",
        (
            "Worlds were made in which liked pairs are seen more often, and learners trained on what was seen: as it is, or corrected for that.",
            f"The picture shows by how much correcting lowers the squared error of predicted chances, with 95 % intervals: above 0 in {nearer} of {len(dots)} cases.",
            f"Ranking is not predicting: Recall@20 was shown to be higher in {sum(each[1] > 0 for each in recall)} of these {len(recall)} cases, and lower in {sum(each[2] < 0 for each in recall)}.",
        ),
    )


def offpolicy(found: list[Table]) -> Head:
    rows = [
        row
        for row in rows_having(found, "estimator", "coverage", "RMSE", "bias")
        if "broken" not in row and "feed" not in row
    ]
    sound = [row for row in rows if "clip" not in row["estimator"] and "raw" not in row["estimator"]]
    held = [number(row["coverage"]) for row in sound]
    raw = [abs(number(row["bias"])) for row in rows if row["estimator"] == "dcg-raw"]
    dots = [
        _dot(f"{row['estimator']}, {row['reward']}", kind, number(row["coverage"]))
        for row in rows
        for kind in [next(iter(row.values()))]
    ]
    return Head(
        ranges(dots, HELD, band=BAND, form="%"),
        "How often intervals held the true reward, by estimator",
        (
            "Feeds were made in which it is known what another ranker would have earned, and that was estimated from the log of the first.",
            f"Where all assumptions hold, 95 % intervals of the weighted estimators without a clip held the truth in {_span(held)} of logs; {GREEN}.",
            f"DCG of the log as it is, without weights, is off by {percent(min(raw), 0)} or more; what breaks when an assumption fails stands below.",
        ),
    )


def advice(found: list[Table]) -> Head:
    parts = [table for table in found if table and "as stated" in table[0]]
    series = {
        "advised": "as advised",
        "best in hindsight": "best in hindsight",
        "Full": "all items",
        "Exposed": "only what was shown",
    }
    points = [
        {
            "at": sparsity,
            "value": fmean(number(row[name]) for row in table if row["sparsity"] == sparsity),
            "group": word,
            "panel": world,
        }
        for world, table in zip(("synthetic", "KuaiRec"), parts, strict=True)
        for name, word in series.items()
        for sparsity in dict.fromkeys(row["sparsity"] for row in table)
    ]
    regret = [number(row["regret"]) for table in parts for row in table]
    gain = fmean(number(row["advised"]) - number(row["Full"]) for table in parts for row in table)
    recognised = rows_having(found, "logger", "taken for uniform")
    right = sum(number(row[f"taken for {row['logger']}"]) for row in recognised)
    of = sum(number(row[name]) for row in recognised for name in row if name.startswith("taken for"))
    return Head(
        curves(points, across="share of pairs that were hidden", title="τ with the true order of models"),
        "Agreement with the true order of models over sparsity, as advised and otherwise",
        (
            "`truerank advise` says which candidates to rank so that models come out in their true order; here its advice was followed on fresh logs whose truth is known.",
            f"It loses {fmean(regret):.3f} of τ on average (at most {max(regret):.3f}) against the best choice in hindsight, and gains {gain:.3f} over ranking all items.",
            f"It recognised how the log came about in {percent(right / of)} of {of:,.0f} logs.",
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
    "advice": advice,
    "debiased-learners": debiased,
    "offpolicy": offpolicy,
    "reliability": reliability,
}
