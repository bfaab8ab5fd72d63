"""What the paper claims about table 2, and the rules by which verdicts come from the numbers."""

from __future__ import annotations

import math

from truerank.studies.papers.experiment import Obtained
from truerank.studies.papers.paper import Cells, ClaimFinding, ClaimVerdict, PaperClaim, by_share
from truerank.studies.papers.wtd.published import FACTORISED, IMPERSONAL, PERSONAL, RECOMMENDERS, SETS, TRUTH

MAIN = "Table 2, Recall@10"
FORMS = "IB_KNN with other similarities, settings chosen anew"
BASELINES, AWARE, OURS = ("FULL", "REG"), ("SKEW", "WTD", "WTD_H"), ("WTD", "WTD_H")
NO_YAHOO = "Yahoo! R3 is not here: it may not be used without its own agreement."
ALIKE, BALANCED, SIMILAR, VERY_CLOSE = 0.1, 55.0, 25.0, 10.0

CLAIMS: tuple[PaperClaim, ...] = (
    PaperClaim(
        "counts", "The counts of Table 1 (CoatShopping).", "Table 1",
        "Holds if every number is what is printed, up to digits that were cut off.",
    ),
    PaperClaim(
        "truths", "Recall@10 on the ground truth is .066, .068, .067, .073 and .063 on CoatShopping.", "Table 2",
        "Holds if all five are within .01.",
    ),
    PaperClaim(
        "far", "FULL and REG are very far from the truth, SKEW, WTD and WTD_H much closer.", "Section 6",
        "For each recommender each of the three must be nearer to the truth than FULL and than REG.",
    ),
    PaperClaim(
        "half", "REG gives what FULL gives, at half the size.", "Section 6",
        "For each recommender recall on REG must be within a tenth of that on FULL.",
    ),
    PaperClaim(
        "signs", "On CoatShopping every test set overestimates, with one exception: PosPop on WTD_H.", "Section 6",
        "Each of the 25 differences must have the sign that is printed.",
    ),
    PaperClaim(
        "best", "WTD and WTD_H come closest to the truth.", "Sections 6 and 7",
        "For each recommender the smallest difference must be that of WTD or WTD_H.",
    ),
    PaperClaim(
        "impersonal", "WTD is very close for recommenders that do not personalise.", "Section 6",
        f"For PosPop and AvgRating the difference on WTD must be the smallest of all, and at most {VERY_CLOSE:g} % "
        "(asked for after a first run, in which the smallest alone would have done).",
    ),
    PaperClaim(
        "personal", "WTD_H is the best for personalised recommenders.", "Section 6",
        "For UB_KNN, IB_KNN and MF the difference on WTD_H must be the smallest of all.",
    ),
    PaperClaim(
        "balance", "WTD_H is not more than around 50 % off, but for MF.", "Section 6",
        f"For each of the other four the difference must be at most {BALANCED:g} %.",
    ),
    PaperClaim(
        "no random data", "WTD_H works well, so randomly collected data are not necessary.", "Section 7",
        "For each recommender WTD_H must be clearly nearer to the truth than FULL: their intervals do not meet.",
    ),
    PaperClaim(
        "metrics", "The differences of Precision, MAP and nDCG are very similar to those of recall.", "Section 6",
        f"Each of the 75 differences must be within {SIMILAR:g} points of that of recall.",
    ),
    PaperClaim(
        "MF", "All test sets rank MF among the best, while it is the worst by the truth.", "Section 6",
        "MF must be last by the truth, and first or second on each of the five test sets.",
    ),
    PaperClaim(
        "webscope", "The half of tables 1 and 2 on Webscope R3: SKEW is best for PosPop there.", "Table 2",
        "Needs Yahoo! R3.",
    ),
)  # fmt: skip


def judged(obtained: Obtained) -> tuple[ClaimFinding, ...]:
    cells = obtained.cells
    off = {(who, test): cells.value(MAIN, who, f"{test}, %") for who in RECOMMENDERS for test in SETS}
    near = {key: abs(value) for key, value in off.items()}
    if any(math.isnan(value) for value in off.values()):
        return tuple(
            ClaimFinding(claim.key, ClaimVerdict.UNTESTED, "Some difference is undefined.") for claim in CLAIMS
        )

    def said(test: str) -> str:
        return f"{test} {', '.join(f'{off[who, test]:+.0f}' for who in RECOMMENDERS)}"

    def closest(who: str) -> str:
        return min(SETS, key=lambda test: near[who, test])

    both = [near[who, test] < near[who, base] for who in RECOMMENDERS for test in AWARE for base in BASELINES]
    alike = [abs((100 + off[who, "REG"]) / (100 + off[who, "FULL"]) - 1) <= ALIKE for who in RECOMMENDERS]
    printed = {(cell.row, cell.column): cell.published for cell in cells.of(MAIN)}
    signs = [(off[who, test] > 0) == ((printed[who, f"{test}, %"] or 0.0) > 0) for who, test in off]
    best = {who: closest(who) for who in RECOMMENDERS}
    plain = [part for who in IMPERSONAL for part in (best[who] == "WTD", near[who, "WTD"] <= VERY_CLOSE)]
    own = [best[who] == "WTD_H" for who in PERSONAL]
    balance = [near[who, "WTD_H"] <= BALANCED for who in RECOMMENDERS if who != FACTORISED]
    apart = [_clearly_nearer(cells, who) for who in RECOMMENDERS]
    others = _other_metrics(cells, off)
    everything = f"In percent, for {', '.join(RECOMMENDERS)}: {'; '.join(map(said, SETS))}"
    order = ", ".join(f"{who} {test}" for who, test in best.items())
    return (
        *_of_the_data(obtained),
        by_share("far", both, f"{sum(both)} of {len(both)} comparisons. {everything}."),
        by_share("half", alike, f"{sum(alike)} of {len(alike)} recommenders: {said('FULL')}; {said('REG')}."),
        by_share("signs", signs, f"{sum(signs)} of {len(signs)} signs are those that are printed."),
        by_share("best", [each in OURS for each in best.values()], f"Closest: {order}."),
        by_share("impersonal", plain, f"{said('WTD')}; closest: {order}."),
        by_share("personal", own, f"Closest: {order}."),
        by_share("balance", balance, f"{said('WTD_H')}."),
        by_share("no random data", apart, f"{sum(apart)} of {len(apart)} of them: {said('FULL')}; {said('WTD_H')}."),
        by_share("metrics", others, f"{sum(others)} of {len(others)} are within {SIMILAR:g} points."),
        _factorised(obtained),
        ClaimFinding("webscope", ClaimVerdict.UNTESTED, NO_YAHOO),
    )  # fmt: skip


def _of_the_data(obtained: Obtained) -> tuple[ClaimFinding, ...]:
    """What is about Coat itself."""
    if obtained.synthetic:
        why = "These numbers are of Coat; this world is synthetic."
        return tuple(ClaimFinding(key, ClaimVerdict.UNTESTED, why) for key in ("counts", "truths"))
    counts = [cell.is_within is True for cell in obtained.cells.of("Table 1") if cell.is_within is not None]
    truths = obtained.cells.of(MAIN, column=TRUTH)
    values = ", ".join(
        f"{cell.row} {cell.obtained or math.nan:.3f} (printed {cell.published or math.nan:.3f})" for cell in truths
    )
    return (
        by_share("counts", counts, f"{sum(counts)} of {len(counts)} numbers."),
        by_share("truths", [cell.is_within is True for cell in truths], f"{values}. {_of_forms(obtained.cells)}"),
    )  # fmt: skip


def _of_forms(cells: Cells) -> str:
    """What the similarity, which the paper does not give, makes of IB_KNN."""
    found = ", ".join(
        f"{cell.row} {cell.obtained or math.nan:.3f} (FULL {cells.value(FORMS, cell.row, 'FULL, %'):+.0f} %)"
        for cell in cells.of(FORMS, column=TRUTH)
    )
    return f"The similarity of IB_KNN is not given: {found}; printed are .073 and +236 %."


def _clearly_nearer(cells: Cells, who: str) -> bool:
    """Whether WTD_H is nearer to the truth than FULL, as far as intervals of both distances say."""
    (full,), (own,) = (cells.of(MAIN, who, f"{test}, %") for test in ("FULL", "WTD_H"))
    if own.low is None or own.high is None or full.low is None or full.high is None:
        return False
    farthest = max(abs(own.low), abs(own.high))
    return farthest < (0.0 if full.low <= 0 <= full.high else min(abs(full.low), abs(full.high)))


def _other_metrics(cells: Cells, off: dict[tuple[str, str], float]) -> list[bool]:
    tables = [f"{metric}@10, difference in percent" for metric in ("Precision", "MAP", "nDCG")]
    return [
        abs(cells.value(table, who, f"{test}, %") - value) <= SIMILAR
        for table in tables
        for (who, test), value in off.items()
    ]


def _factorised(obtained: Obtained) -> ClaimFinding:
    truth = {who: obtained.cells.value(MAIN, who, TRUTH) for who in RECOMMENDERS}
    places = {TRUTH: _place(truth)}
    for test in SETS:
        places[test] = _place(
            {who: truth[who] * (100 + obtained.cells.value(MAIN, who, f"{test}, %")) for who in RECOMMENDERS}
        )
    kept = [place == len(RECOMMENDERS) if name == TRUTH else place <= 2 for name, place in places.items()]
    said = ", ".join(f"{name} {place}" for name, place in places.items())
    return by_share("MF", kept, f"Place of MF: {said}.")


def _place(values: dict[str, float]) -> int:
    """The place of MF, from the best on."""
    return 1 + sum(value > values[FACTORISED] for value in values.values())
