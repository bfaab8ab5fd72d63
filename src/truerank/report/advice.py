"""Advice as text, and as plain values for JSON and CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from truerank.reliability.advice import Advice
from truerank.reliability.advice_words import verdict, warnings
from truerank.reliability.choices import Choice
from truerank.reliability.studied import PositivesProfile
from truerank.report.text import as_csv


def advice_text(advice: Advice, *, top: int) -> str:
    """What the log looks like, what to do, the figures behind it, and what to keep in mind."""
    parts = [*_source(advice), _log(advice), verdict(advice), _table(advice, top)]
    return "\n\n".join([*parts, "\n".join(f"! {each}" for each in warnings(advice))]) + "\n"


def advice_plain(advice: Advice, *, top: int) -> dict[str, Any]:
    """Nested plain values; NaN is None."""
    log = advice.log
    return {
        "verdict": verdict(advice),
        "recommended": _plain(asdict(advice.recommended)),
        "metric": advice.metric,
        "users": advice.users,
        "sparsity": advice.sparsity,
        "log": None if log is None else asdict(log) | {"positives_per_user": log.positives_per_user},
        "logger": advice.logger.logger,
        "loggers": [_plain(asdict(each)) for each in advice.loggers],
        "choices": [
            _plain(asdict(each)) | {"not_clearly_worse": each in advice.not_worse} for each in _shown(advice, top)
        ],
        "not_clearly_worse": len(advice.not_worse),
        "pairs": advice.pairs,
        "undecided": [list(each) for each in advice.undecided],
        "tau_of_all_pairs": list(advice.tau_of_all),
        "outside": list(advice.outside),
        "wrong": [asdict(each) for each in advice.wrong],
        "other_metrics": [
            {
                "metric": each.metric,
                "sampler": each.choice[0],
                "size": each.choice[1],
                "tau": each.tau,
                "tau_of_recommended": each.recommended,
            }
            for each in advice.other_metrics
        ],
        "study": {
            "source": advice.source,
            "shipped": list(advice.shipped),
            "users": advice.study_users,
            "repetitions": advice.study_repetitions,
            "densest": advice.study_range[0],
            "sparsest": advice.study_range[1],
        },
        "warnings": list(warnings(advice)),
    }


def advice_csv(advice: Advice, *, top: int) -> str:
    """A row for each choice."""
    scenario = {
        "metric": advice.metric,
        "users": advice.users,
        "logger": advice.logger.logger,
        "sparsity": advice.sparsity,
        "pairs": advice.pairs,
        "undecided": len(advice.undecided),
        "outside": "; ".join(advice.outside),
    }
    rows = [
        {**scenario, **_plain(asdict(each)), "recommended": each == advice.recommended}
        | {"not_clearly_worse": each in advice.not_worse}
        for each in _shown(advice, top)
    ]
    return as_csv(rows).decode()


def _shown(advice: Advice, top: int) -> list[Choice]:
    """The best, and what is recommended where it is not among them."""
    first = list(advice.choices[:top])
    return first if advice.recommended in first else [*first, advice.recommended]


def _source(advice: Advice) -> Iterator[str]:
    """What the advice goes by, where no study was given."""
    if advice.shipped:
        yield (
            f"No study was given: this goes by the one on {advice.source}, the nearest of those that come with "
            f"truerank ({', '.join(advice.shipped)}). `truerank study reliability` makes one of a world like yours."
        )


def _log(advice: Advice) -> str:
    look = advice.log
    header, rows = "exposure at this sparsity", []
    if look is None:
        first = (
            f"Your log: {advice.users:,} users; as said, sparsity {advice.sparsity:.1%}, logger {advice.logger.logger}."
        )
    elif isinstance(look, PositivesProfile):
        first = (
            f"Your log: {advice.users:,} users; {look.items:,} items, {look.items_liked:,} of them liked; "
            f"{look.positives_per_user:.1f} positives per user, and nothing else; as said, sparsity "
            f"{advice.sparsity:.1%}, logger {advice.logger.logger}."
        )
        rows = [["your log", "", "", f"{look.positives_per_user:.1f}", "", ""]]
    else:
        same = math.isclose(advice.sparsity, look.sparsity)
        said = "" if same else f", figures are of {advice.sparsity:.1%} as said"
        header = "exposure at this sparsity" if same else f"exposure at {look.sparsity:.1%} sparsity"
        first = (
            f"Your log: {look.users:,} users, {advice.users:,} of them counted; {look.items:,} items, "
            f"{look.items_shown:,} of them shown; {look.rows:,} pairs (sparsity {look.sparsity:.1%}{said}), "
            f"{look.positives_per_user:.1f} positives per user."
        )
        rows = [["your log", f"{look.spread:.2f}", f"{look.lift:.2f}", f"{look.positives_per_user:.1f}", "", ""]]
    rows += [
        [
            each.logger,
            f"{each.spread:.2f}",
            f"{each.lift:.2f}",
            f"{each.positives_per_user:.1f}",
            "" if math.isnan(each.distance) else f"{each.distance:.2f}",
            "taken" if each == advice.logger else "",
        ]
        for each in advice.loggers
    ]
    titles = [header, "spread", "lift", "positives per user", "distance", ""]
    return first + "\n\n" + _aligned([titles, *rows], text=(0, 5))


def _table(advice: Advice, top: int) -> str:
    header = [
        "sampler", "size", "negatives", "tau", "95 % interval", "closer models", "endless users",
        "best stays best", "tau per user", "95 % interval", "undefined", "ties", "",
    ]  # fmt: skip
    rows = [
        [
            each.sampler,
            "" if each.size is None else f"{each.size:,}",
            f"{each.negatives:,.0f}",
            f"{each.tau:.3f}",
            f"{each.low:.3f} to {each.high:.3f}",
            f"{each.closer:.3f}",
            f"{each.limit:.3f}",
            "unknown" if math.isnan(each.best_low) else f"{each.best_low:.2f} to {each.best_high:.2f}",
            f"{each.per_user:.3f}",
            f"{each.per_user_low:.3f} to {each.per_user_high:.3f}",
            f"{each.undefined:.1%}",
            f"{each.ties:.1%}",
            "recommended" if each == advice.recommended else "" if each in advice.not_worse else "worse",
        ]
        for each in _shown(advice, top)
    ]
    words = (
        f"{len(advice.choices):,} ways to choose candidates, {len(advice.not_worse):,} of them not clearly worse than "
        f"the best (their intervals overlap).\ntau: expected agreement of the order of means over {advice.users:,} "
        f"users with the true one, {advice.pairs} of {advice.all_pairs} pairs of models; closer models: half as far "
        "apart.\ntau per user: of single users, undefined as 0."
    )
    return _aligned([header, *rows], text=(0, 12)) + "\n" + words


def _aligned(rows: Sequence[Sequence[str]], *, text: tuple[int, ...]) -> str:
    """Columns side by side, numbers to the right."""
    width = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    cells = (
        [f"{cell:{width[at]}}" if at in text else f"{cell:>{width[at]}}" for at, cell in enumerate(row)] for row in rows
    )
    return "\n".join("  ".join(each).rstrip() for each in cells)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(each, float) and math.isnan(each) else each for name, each in values.items()}
