"""E-W1: recall on the random ground truth, and on intervened test sets, of five recommenders (tables 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from truerank.core.log import Log
from truerank.datasets.ratings import Coat, YahooR3
from truerank.datasets.split import restrict
from truerank.inference.agreement import rank_correlation
from truerank_research.claims import Cell, Cells, Claim, Finding, Verdict, cell_rows, share, where_given, within
from truerank_research.papers.wtd import (
    COAT,
    COLUMNS_1,
    CORRELATIONS,
    NON_PERSONAL,
    PERSONAL,
    RECOMMENDERS,
    SETS,
    TABLE_1,
    TRUNCATED,
    TRUTH,
    WEBSCOPE,
    WEIGHTED,
)
from truerank_research.papers.wtd.runs import (
    EVERY,
    KEPT,
    METRICS,
    PRACTICE,
    RANDOM,
    RunMeans,
    best_settings,
    compare_similarities,
    interval_cell,
    score_run,
    tune_run,
)
from truerank_research.papers.wtd.setting import STRATEGIES, parts_of, shape_of
from truerank_research.results import Measured
from truerank_research.runner import Run, Setting, Study

MAIN, SIMILARITIES = "Table 2, Recall@10", "IB_KNN in 18 forms, settings chosen anew"
YAHOO = "Table 2, Recall@10, Webscope"
UNLICENSED = "Yahoo! R3 may not be used without its own agreement."
OTHERS = "{}@10, difference in percent"
NEAR = 0.01  # tolerance of the printed recalls on the truth
ALIKE, BALANCED, SIMILAR, VERY_CLOSE, NEAR_FULL = 0.1, 55.0, 25.0, 10.0, 25
DIFFERENCES = (
    "Yahoo! R3 (Webscope) may not be used without its own agreement: its half of the tables is run where it is given.",
    "The paper does not say what happens to random test rows that are also training rows (366 pairs of Coat): they "
    "are dropped from the truth here, and a second table keeps them.",
    "MF is solved exactly where RankSys makes one sweep of coordinate descent per round. α = 1 and 20 rounds, which "
    "the paper does not state.",
    "The similarity of IB_KNN is not stated: it is the cosine of raw ratings here. A second table has 18 forms, chosen "
    "without a look at their values: six similarities, each as a sum, with squared similarities, as weighted mean.",
    "Users without a positive in a test set are left out of its means; the paper does not say.",
)


def measure(run: Run) -> Measured:
    setting, shape = run.setting, shape_of(run)
    best = choose_settings(run, Coat.name)
    by_random, by_practice = (run_means(run, Coat.name, part, best[part]) for part in (RANDOM, PRACTICE))
    others = run.pieces(compare_similarities, [(setting, number) for number in range(shape.runs)])
    cells = [
        *_count_cells(setting),
        *_difference_cells(by_random, MAIN, printed=COAT),
        *_order_cells(by_random),
        *_difference_cells(by_practice, f"Table 2, tuned on an {PRACTICE}"),
        *_difference_cells(by_random, "Table 2, training rows kept in the truth", truth=KEPT),
        *(cell for metric in list(METRICS)[1:]
          for cell in _difference_cells(by_random, OTHERS.format(metric), metric=metric)),
        *_similarity_cells(others),
    ]  # fmt: skip
    if run.source.is_synthetic:
        cells += _difference_cells(by_random, "Table 2, truth from all pairs", truth=EVERY)
    if run.source.has(YahooR3.name):
        cells += _difference_cells(yahoo_means(run), YAHOO, printed=WEBSCOPE)
    simulated = ["The data are simulated in Coat's shape: compare the order of published numbers only."]
    return Measured(
        {"cells": cell_rows(cells)},
        shape.settings() | {"drawn": "half of the held-out rows", "intervals": "1,000 resamples of users"},
        [*DIFFERENCES, *(simulated if run.source.is_synthetic else [])],
    )


def choose_settings(run: Run, dataset: str) -> dict[str, list[dict[str, int]]]:
    """The settings chosen by either validation part in every run."""
    arguments = [(run.setting, number, dataset) for number in range(shape_of(run).runs)]
    tuned = run.pieces(tune_run, arguments, about="choosing settings")
    return {part: [best_settings(table, part) for table in tuned] for part in (RANDOM, PRACTICE)}


def run_means(run: Run, dataset: str, part: str, chosen: Sequence[Mapping[str, int]]) -> RunMeans:
    arguments = [(run.setting, number, dataset, part, tuple(best.items())) for number, best in enumerate(chosen)]
    return RunMeans.from_tables(run.pieces(score_run, arguments), seed=run.seed)


def yahoo_means(run: Run) -> RunMeans:
    return run_means(run, YahooR3.name, RANDOM, choose_settings(run, YahooR3.name)[RANDOM])


def yahoo_facts(setting: Setting) -> list[dict[str, float]]:
    """The counts of Yahoo! R3, of the users of the random part, as in the paper."""
    chosen, random = (parts_of(setting, YahooR3.name)[0][part] for part in ("train", "random"))
    return [_facts(random), _facts(restrict(chosen, users=random.users, items=random.items))]


def _count_cells(setting: Setting) -> Iterator[Cell]:
    """Table 1."""
    parts, _ = parts_of(setting)
    counted = [_facts(parts["random"]), _facts(parts["train"])]
    if setting.source.has(YahooR3.name):
        counted += yahoo_facts(setting)
    for name, printed in TABLE_1.items():
        tolerance = None if setting.source.is_synthetic else TRUNCATED.get(name, 0.5)
        for at, (column, number) in enumerate(zip(COLUMNS_1, printed, strict=True)):
            value = counted[at][name] if at < len(counted) else None
            thousands = 1000.0 if (name, column) == ("ratings", COLUMNS_1[-1]) else tolerance
            yield Cell("Table 1", name, column, value, number, tolerance=thousands)


def _facts(log: Log) -> dict[str, float]:
    n, users, items = len(log), len(np.unique(log.user)), len(np.unique(log.item))
    return {
        "ratings": n, "users": users, "items": items, "ratings per user": n / users, "ratings per item": n / items,
        "mean rating": float(log.rewards["rating"].mean()), "sparsity": 1 - n / (users * items),
    }  # fmt: skip


def _difference_cells(
    means: RunMeans,
    table: str,
    *,
    printed: Mapping[str, Sequence[float]] | None = None,
    truth: str = TRUTH,
    metric: str = "Recall",
) -> Iterator[Cell]:
    """The value on the truth, then the difference in percent on each test set."""
    for who in RECOMMENDERS:
        numbers = dict(zip((TRUTH, *SETS), printed[who], strict=True)) if printed else {}
        near = NEAR if printed else None
        yield interval_cell(table, who, TRUTH, means.mean(who, truth, metric), numbers.get(TRUTH), near)
        for name in STRATEGIES:
            off = means.percent(who, name, truth=truth, metric=metric)
            yield interval_cell(table, who, f"{name}, %", off, numbers.get(name))


def _order_cells(means: RunMeans) -> Iterator[Cell]:
    """Tables 3 and 4 from the means here."""
    for row, table in (("all five", "Table 3"), ("without MF", "Table 4")):
        names = [who for who in RECOMMENDERS if row == "all five" or who != "MF"]
        truth = [means.mean(who, TRUTH)[0] for who in names]
        for test, printed in zip(SETS, CORRELATIONS[table]["CoatShopping"], strict=True):
            tau = rank_correlation([means.mean(who, test)[0] for who in names], truth).coefficient
            yield Cell("Kendall's τ of the means here (tables 3 and 4)", row, test, tau, printed)


def _similarity_cells(tables: Sequence[pl.DataFrame]) -> Iterator[Cell]:
    mean = pl.concat(tables).group_by("similarity", maintain_order=True).agg(pl.col("truth", "full").mean())
    for similarity, truth, full in mean.iter_rows():
        yield Cell(SIMILARITIES, similarity, TRUTH, truth, COAT["IB_KNN"][0])
        yield Cell(SIMILARITIES, similarity, "FULL, %", 100 * (full / truth - 1), COAT["IB_KNN"][1])


class Differences(dict[tuple[str, str], float]):
    """Differences in percent from the truth, by recommender and test set."""

    def text(self, *tests: str) -> str:
        return "; ".join(f"{test} {', '.join(f'{self[who, test]:+.0f}' for who in RECOMMENDERS)}" for test in tests)

    def distance(self, who: str, test: str) -> float:
        return abs(self[who, test])

    def closest(self, who: str) -> str:
        return min(SETS, key=lambda test: self.distance(who, test))


def differences_rule(rule: Callable[[Differences, Cells], tuple[list[bool], str]]) -> Callable[[Cells], Finding]:
    """A rule over the differences in percent of table 2; it needs all of them."""

    def judge(cells: Cells) -> Finding:
        off = Differences({(who, test): cells.value(MAIN, who, f"{test}, %") for who in RECOMMENDERS for test in SETS})
        if any(math.isnan(value) for value in off.values()):
            return Finding(Verdict.UNTESTABLE, "Some difference is undefined.")
        return share(*rule(off, cells))

    return judge


def _far_rule(off: Differences, _: Cells) -> tuple[list[bool], str]:
    nearer = [
        off.distance(who, test) < off.distance(who, base)
        for who in RECOMMENDERS
        for test in WEIGHTED
        for base in SETS[:2]
    ]
    names = ", ".join(RECOMMENDERS)
    return nearer, f"{sum(nearer)} of {len(nearer)} comparisons. In percent, for {names}: {off.text(*SETS)}."


def _half_rule(off: Differences, _: Cells) -> tuple[list[bool], str]:
    alike = [abs((100 + off[who, "REG"]) / (100 + off[who, "FULL"]) - 1) <= ALIKE for who in RECOMMENDERS]
    return alike, f"{sum(alike)} of {len(alike)} recommenders: {off.text('FULL', 'REG')}."


def _signs_rule(off: Differences, cells: Cells) -> tuple[list[bool], str]:
    printed = {(cell.row, cell.column): cell.published or 0.0 for cell in cells.select(MAIN)}
    signs = [(value > 0) == (printed[who, f"{test}, %"] > 0) for (who, test), value in off.items()]
    return signs, f"{sum(signs)} of {len(signs)} signs are the printed ones."


def closest_rule(tests: Sequence[str], recommenders: Sequence[str], limit: float = math.inf) -> Callable[..., Finding]:
    """The test set closest to the truth is one of these, and within the limit in percent."""

    @differences_rule
    def rule(off: Differences, _: Cells) -> tuple[list[bool], str]:
        parts = [off.closest(who) in tests for who in recommenders]
        if math.isfinite(limit):
            parts += [off.distance(who, test) <= limit for who in recommenders for test in tests]
        order = ", ".join(f"{who} {off.closest(who)} ({off[who, off.closest(who)]:+.0f})" for who in RECOMMENDERS)
        return parts, f"Closest: {order}."

    return rule


def _balance_rule(off: Differences, _: Cells) -> tuple[list[bool], str]:
    parts = [off.distance(who, "WTD_H") <= BALANCED for who in RECOMMENDERS if who != "MF"]
    return parts, f"{off.text('WTD_H')}."


def _no_random_data_rule(off: Differences, cells: Cells) -> tuple[list[bool], str]:
    apart = [_clearly_nearer(cells, who) for who in RECOMMENDERS]
    return apart, f"{sum(apart)} of {len(apart)} recommenders: {off.text('FULL', 'WTD_H')}."


def _clearly_nearer(cells: Cells, who: str) -> bool:
    """Whether the interval of WTD_H is nearer to the truth than that of FULL."""
    (full,), (own,) = (cells.select(MAIN, who, f"{test}, %") for test in ("FULL", "WTD_H"))
    if own.low is None or own.high is None or full.low is None or full.high is None:
        return False
    farthest = max(abs(own.low), abs(own.high))
    return farthest < (0.0 if full.low <= 0 <= full.high else min(abs(full.low), abs(full.high)))


def _metrics_rule(off: Differences, cells: Cells) -> tuple[list[bool], str]:
    similar = [
        abs(cells.value(OTHERS.format(metric), who, f"{test}, %") - value) <= SIMILAR
        for metric in list(METRICS)[1:]
        for (who, test), value in off.items()
    ]
    return similar, f"{sum(similar)} of {len(similar)} are within {SIMILAR:g} points."


def _mf_rule(off: Differences, cells: Cells) -> tuple[list[bool], str]:
    truth = {who: cells.value(MAIN, who, TRUTH) for who in RECOMMENDERS}
    values = {TRUTH: truth, **{test: {who: truth[who] * (100 + off[who, test]) for who in truth} for test in SETS}}
    places = {name: 1 + sum(value > own["MF"] for value in own.values()) for name, own in values.items()}
    parts = [place == len(truth) if name == TRUTH else place <= 2 for name, place in places.items()]
    return parts, f"Rank of MF: {', '.join(f'{name} {place}' for name, place in places.items())}."


def _truths_rule(cells: Cells) -> Finding:
    finding = within(MAIN, TRUTH, real=True)(cells)
    values = ", ".join(
        f"{cell.row} {cell.obtained or math.nan:.3f} (printed {cell.published or math.nan:.3f})"
        for cell in cells.select(MAIN, column=TRUTH)
    )
    forms = {cell.row: cell.obtained or math.nan for cell in cells.select(SIMILARITIES, column=TRUTH)}
    truth, full, *_ = COAT["IB_KNN"]
    both = [
        form
        for form, value in forms.items()
        if abs(value - truth) <= 0.01 and abs(cells.value(SIMILARITIES, form, "FULL, %") - full) <= NEAR_FULL
    ]
    why = (
        f"{values}. Of {len(forms)} forms of IB_KNN {len(both)} are within .01 of the "
        f"truth and within {NEAR_FULL} points of FULL as printed ({truth:.3f}, {full:+g} %): "
        f"{', '.join(both) or 'what the paper did is unexplained'}."
    )
    return finding if cells.synthetic else Finding(finding.verdict, why)


def _webscope_rule(cells: Cells) -> Finding:
    off = {test: abs(cells.value(YAHOO, "PosPop", f"{test}, %")) for test in SETS}
    closest = min(SETS, key=lambda test: off[test])
    counts = [cell.is_within is True for cell in cells.select("Table 1") if cell.column.startswith("Webscope")]
    why = f"{closest} is nearest for PosPop; {sum(counts)} of {len(counts)} counts are as printed."
    return share([closest == "SKEW", *counts], why)


CLAIMS = (
    Claim(
        "counts", "The counts of Table 1 (CoatShopping).", "Table 1",
        "Every number is the printed one, up to truncated digits.", within("Table 1", real=True),
    ),
    Claim(
        "truths", "Recall@10 on the ground truth is .066, .068, .067, .073 and .063 on CoatShopping.", "Table 2",
        "All five are within .01.", _truths_rule,
    ),
    Claim(
        "far", "FULL and REG are very far from the truth, SKEW, WTD and WTD_H much closer.", "Section 6",
        "For each recommender each of the three is nearer to the truth than FULL and than REG.",
        differences_rule(_far_rule),
    ),
    Claim(
        "half", "REG gives the same as FULL, at half the size.", "Section 6",
        "For each recommender recall on REG is within a tenth of that on FULL.", differences_rule(_half_rule),
    ),
    Claim(
        "signs", "On CoatShopping every test set overestimates, with one exception: PosPop on WTD_H.", "Section 6",
        "Each of the 25 differences has the printed sign.", differences_rule(_signs_rule),
    ),
    Claim(
        "best", "WTD and WTD_H come closest to the truth.", "Sections 6 and 7",
        "For each recommender the smallest difference is that of WTD or WTD_H.",
        closest_rule(("WTD", "WTD_H"), RECOMMENDERS),
    ),
    Claim(
        "impersonal", "WTD is very close for non-personalised recommenders.", "Section 6",
        f"For PosPop and AvgRating the difference on WTD is the smallest of all, and at most {VERY_CLOSE:g} % (added "
        "after a first run, in which the smallest alone would have sufficed).",
        closest_rule(("WTD",), NON_PERSONAL, VERY_CLOSE),
    ),
    Claim(
        "personal", "WTD_H is the best for personalised recommenders.", "Section 6",
        "For UB_KNN, IB_KNN and MF the difference on WTD_H is the smallest of all.",
        closest_rule(("WTD_H",), PERSONAL),
    ),
    Claim(
        "balance", "WTD_H is not more than around 50 % off, except for MF.", "Section 6",
        f"For each of the other four the difference is at most {BALANCED:g} %.", differences_rule(_balance_rule),
    ),
    Claim(
        "no random data", "WTD_H works well, so randomly collected data are not necessary.", "Section 7",
        "For each recommender WTD_H is clearly nearer to the truth than FULL: their intervals do not overlap.",
        differences_rule(_no_random_data_rule),
    ),
    Claim(
        "metrics", "The differences of Precision, MAP and nDCG are very similar to those of recall.", "Section 6",
        f"Each of the 75 differences is within {SIMILAR:g} points of that of recall.",
        differences_rule(_metrics_rule),
    ),
    Claim(
        "MF", "All test sets rank MF among the best, while it is the worst by the truth.", "Section 6",
        "MF is last by the truth, and first or second on each of the five test sets.", differences_rule(_mf_rule),
    ),
    Claim(
        "webscope", "The half of tables 1 and 2 on Webscope R3: SKEW is best for PosPop there.", "Table 2",
        "Needs Yahoo! R3 in a folder yahoo-r3: the smallest difference of PosPop is that of SKEW, and its numbers of "
        "Table 1 are the printed ones.", where_given(YAHOO, _webscope_rule, UNLICENSED),
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-W1", "How far is recall on intervened test sets from recall on randomly collected ratings?", measure,
        data=("coat",), optional=("yahoo-r3",), minutes=4, claims=CLAIMS, shows={"wtd": ("Table 1", "Table 2")},
    ),
)  # fmt: skip
