"""The claims on Table 4 (E-U4), and the names of the tables that they are judged on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

from truerank_research.claims import Cell, Cells, Claim, Finding, numbers, share, span, where_given, within
from truerank_research.papers.ure.training import METHODS

POPULARITY = "popularity"
URE = "published mean (URE)"
ESTIMATES = (URE, "pooled", "post-stratified", "weighted, N⁺ known")
OF_PAIRS = ("pooled", "post-stratified")  # these estimate recall over all relevant pairs
TABLE, BIAS, SIZES = "Table 4, KuaiRec", "Bias over draws, in % of what is estimated", "Table 2: sizes"
ORDER = "Table 4, KuaiRec: recall over seeds and users"
TWINS = "DR against IPS"
YAHOO_TABLE = "Table 4, Yahoo!R3"
EXACT = "limit of the published mean"
LIMIT, LEAST_DRAWS, NEAR = 3.0, 200, 0.1
POOLED_OLD = "traditional, pooled"
SAME = 0.98
ONE = "The stored run has one training of each model, so that no order has an interval."
UNTESTABLE = "Cannot be tested where the intervals of all neighbours overlap."


def _recall_columns(cells: Cells) -> tuple[str, str]:
    """The columns of recall at the small and at the large K."""
    few, many = dict.fromkeys(cell.column for cell in cells.select(ORDER) if cell.column.startswith("Recall@"))
    return few, many


def _by_backbone(cells: Cells, column: str) -> list[list[Cell]]:
    """Recall of each backbone's models with its interval, in the order of methods."""
    return [cells.select(ORDER, column=column)[at : at + len(METHODS)] for at in (0, len(METHODS))]


def _is_above(one: Cell, other: Cell) -> bool | None:
    """Whether one recall is above another; None where their intervals overlap."""
    assert None not in (one.low, one.high, other.low, other.high)
    return True if one.low > other.high else False if one.high < other.low else None  # type: ignore[operator]


def _any(parts: Iterable[bool | None]) -> bool | None:
    """True if one is; None if none is and one is not known."""
    listed = list(parts)
    return True if True in listed else None if None in listed or not listed else False


def decided(parts: Sequence[bool | None], why: str) -> Finding:
    """The verdict on parts that can be decided; with others beside them at best in part.

    >>> [decided(parts, "").verdict.value for parts in ([True, True], [True, None], [None, None])]
    ['replicates', 'replicates in part', 'cannot be tested here']
    """
    overlap = f" Intervals of neighbours overlap in {sum(part is None for part in parts)} of {len(parts)}."
    known = [part for part in parts if part is not None]
    return share([bool(part) for part in parts] if known else [], why + overlap)


def _close_rule(cells: Cells) -> Finding:
    """Three readings of "Recall": a mean over all users, over those with a labelled positive, or pooled over pairs."""
    rows = [cell.row for cell in cells.select(BIAS, column=URE) if cell.row.endswith(", K = 5, N̄ = 20")]
    away: dict[str, list[float]] = {"over all users": [], "over users with a labelled positive": [], "pooled": []}
    for row in (row for row in rows if not row.startswith(POPULARITY)):
        ure, limit, pooled = (cells.value(BIAS, row, column) / 100 for column in (URE, EXACT, "pooled"))
        for values, value in zip(away.values(), (ure, (1 + ure) / (1 + limit) - 1, pooled), strict=True):
            values.append(value)
    text = "; ".join(
        f"{name} {sum(abs(value) <= NEAR for value in values)} of {len(values)} within 10 % ({span(values, '+.1%')})"
        for name, values in away.items()
    )
    return share([all(abs(value) <= NEAR for value in values) for values in away.values()], f"{text}.")


def _is_unbiased(cell: Cell) -> bool:
    """Whether a bias is within its 3 standard errors."""
    return cell.low is not None and cell.high is not None and cell.low <= 0 <= cell.high


def _unbiased_rule(cells: Cells) -> Finding:
    biases = cells.select(BIAS, column=URE)
    parts = [_is_unbiased(cell) for cell in biases]
    worst = max(biases, key=lambda cell: abs(cell.obtained or 0.0))
    return share(
        parts,
        f"{sum(parts)} of {len(parts)} biases are within 3 standard errors; they reach {worst.obtained or 0.0:+.0f} % "
        f"({worst.row}).",
    )


def _pooled_rule(cells: Cells) -> Finding:
    biases = [cell for name in ("pooled", "weighted, N⁺ known") for cell in cells.select(BIAS, column=name)]
    parts = [_is_unbiased(cell) for cell in biases]
    draws = min(numbers(cells.select(BIAS, column="draws")))
    outside = [f"{cell.column}, {cell.row}" for cell, within in zip(biases, parts, strict=True) if not within]
    why = f"{sum(parts)} of {len(parts)} biases are within 3 standard errors over {draws:g} draws."
    worst = f" Outside: {'; '.join(outside[:3])}." if outside else ""
    return share(parts if draws >= LEAST_DRAWS else [], why + worst)


def _reversed(first: Sequence[Cell], second: Sequence[Cell]) -> bool | None:
    """Whether two models are in opposite orders, both beyond the intervals; None where overlaps leave it open."""
    pairs = list(combinations(range(len(first)), 2))
    orders = [(_is_above(first[a], first[b]), _is_above(second[a], second[b])) for a, b in pairs]
    return _any(None if None in order else order[0] != order[1] for order in orders)


def _discrepancy_rule(cells: Cells) -> Finding:
    few, _ = _recall_columns(cells)
    old = _sampled(cells, "Recall@5̄")[0]
    true = [cell for cell in cells.select(ORDER, column=few) if cell.row in old]
    ratios = [(old[cell.row].obtained or 0.0) / (cell.obtained or math.nan) for cell in true]
    why = f"Recall@5̄ is {span(ratios, '.1f')} times Recall@5."
    return decided([min(ratios) > 2, _reversed(true, [old[cell.row] for cell in true])], why)


def _sampled(cells: Cells, name: str) -> list[dict[str, Cell]]:
    """Recall among the labelled items, by model, for the small and the large sample."""
    columns = dict.fromkeys(cell.column for cell in cells.select(TABLE) if cell.column.startswith(f"{name}, N̄ = "))
    return [
        {cell.row: cell for cell in cells.select(TABLE, column=column) if cell.row != POPULARITY} for column in columns
    ]


def _size_rule(cells: Cells) -> Finding:
    """Recall@5̄ against Recall@500: both as means over users, both pooled, and the mean against the pooled one."""
    many = next(cell.column for cell in cells.select(TABLE)[1:] if cell.column in ("Recall@500", "Recall@40"))
    readings = {
        "means over users": ("Recall@5̄", many),
        "pooled": ("pooled Recall@5̄", f"pooled {many}"),
        "the mean Recall@5̄ against the pooled Recall": ("Recall@5̄", f"pooled {many}"),
    }
    parts, texts = [], []
    for reading, (old, true) in readings.items():
        if not _sampled(cells, old):
            continue
        small, large = (
            [(cell.obtained or 0.0) > cells.value(TABLE, model, true) for model, cell in values.items()]
            for values in _sampled(cells, old)
        )
        parts.append(all(small) and not any(large))
        texts.append(
            f"{reading}: above for {sum(small)} of {len(small)} with few labelled items, {sum(large)} with many"
        )
    return share(parts, f"{'; '.join(texts)}.")


def _worse_rule(cells: Cells) -> Finding:
    backbones = _by_backbone(cells, _recall_columns(cells)[0])
    parts = [_any(_is_above(part[0], other) for other in part[1:4]) for part in backbones]
    lowest = [min(part, key=lambda cell: cell.obtained or 0.0).row for part in backbones]
    return decided([_any(parts)], f"Lowest: {' and '.join(lowest)}.")


def _hard_rule(cells: Cells) -> Finding:
    backbones = _by_backbone(cells, _recall_columns(cells)[0])
    best = [max(part, key=lambda cell: cell.obtained or 0.0).row for part in backbones]
    return decided(
        [_any(_is_above(other, part[-1]) for other in part[:-1]) for part in backbones], f"Best: {' and '.join(best)}."
    )


def _cutoff_rule(cells: Cells) -> Finding:
    few, many = (_by_backbone(cells, column) for column in _recall_columns(cells))
    changed = [_reversed(one, other) for one, other in zip(few, many, strict=True)]
    return decided(
        [_any(changed)], f"Orders of two models change in {changed.count(True)} of {len(changed)} backbones."
    )


def _twins_rule(cells: Cells) -> Finding:
    common = numbers(cells.select(TWINS, column=cells.select(TWINS)[1].column))
    differ = [value < SAME for value in common]
    return share(differ, f"Top lists of DR and IPS have {span(common, '.0%')} of their items in common.")


CLAIMS = (
    Claim(
        "close", "URE@5 aligns closely with Recall@5.", "Table 4, section 6.2",
        "For each model the mean over draws of URE@5 at N̄ = 20 is within 10 % of Recall@5 (the paper's largest "
        "difference is 8 %), under each of three readings of Recall (A-54): a mean over all users, over users with a "
        "labelled positive, pooled over all positives. In part where it is under one.", _close_rule,
    ),
    Claim(
        "unbiased", "URE, a mean over users, estimates Recall@K without bias.", "section 6, Theorem 3",
        "The bias over draws is within 3 Monte-Carlo standard errors for every model, K = 5, 50, 500 and N̄ = 20, 80.",
        _unbiased_rule,
    ),
    Claim(
        "pooled", "Pooled recall, and the mean weighted with known N⁺, are unbiased for what they estimate.",
        "ours: criterion",
        "Over at least 200 draws: |bias| is within 3 Monte-Carlo standard errors for every model, K = 5, 50, 500 and "
        "N̄ = 20, 80.", _pooled_rule,
    ),
    Claim(
        "discrepancy", "Recall@5̄ is far from Recall@5 and does not keep the order of models.", "Table 4",
        "At N̄ = 20: Recall@5̄ is more than twice Recall@5 for every model, and two models are in opposite orders, both "
        f"beyond their intervals. {UNTESTABLE}",
        where_given(ORDER, _discrepancy_rule, ONE),
    ),
    Claim(
        "size", "Recall@5̄ is above Recall@500 for every model, as printed, so N̄ was not 80.",
        "Table 4 against Figures 1 and 3",
        "For every model Recall@5̄ is above Recall@500 at N̄ = 20 and below it at N̄ = 80, under each of three readings "
        "of Recall (A-54). In part where it is under one.", _size_rule,
    ),
    Claim(
        "worse", "By Recall@5 some debiasing methods are worse than Bias.", "Table 4",
        "In one of the backbones IPS, DR or AutoDebias has a lower Recall@5 than Bias, beyond the intervals. "
        f"{UNTESTABLE}",
        where_given(ORDER, _worse_rule, ONE),
    ),
    Claim(
        "hard", "By Recall@5 NegS is not the best.", "Table 4",
        f"In each backbone another method has a higher Recall@5, beyond the intervals. {UNTESTABLE}",
        where_given(ORDER, _hard_rule, ONE),
    ),
    Claim(
        "cutoff", "Large and small K rank methods differently.", "Table 4",
        "In one of the backbones Recall@5 and Recall@500 order two methods differently, both beyond the intervals. "
        f"{UNTESTABLE}",
        where_given(ORDER, _cutoff_rule, ONE),
    ),
    Claim(
        "twins", "Doubly robust learning and IPS give different models.", "Table 4",
        f"With every backbone and seed less than {SAME:.0%} of the items of top lists are in both.",
        where_given(TWINS, _twins_rule, ONE),
        ours=True,
    ),
    Claim(
        "yahoo", "The Yahoo!R3 columns.", "Table 4",
        "Needs Yahoo!R3, in a folder yahoo-r3: every number is within 10 %. E-U2 has the same columns on Coat.",
        where_given(YAHOO_TABLE, within(YAHOO_TABLE), "Yahoo!R3 needs a signed agreement."),
    ),
)  # fmt: skip
