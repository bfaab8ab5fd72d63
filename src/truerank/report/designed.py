"""A design of exposure: what it is expected to save, as text and as plain values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from truerank.core.wording import option, worded
from truerank.evaluation.design import PlannedDesign
from truerank.evaluation.design_probabilities import Saving

NEXT = (
    f"Show them, and evaluate what comes back with {option('exposure designed')} and {option('design DIR')}, this "
    "folder."
)
MANY = 12  # lines of one metric, beyond which the table shows single models alone


def design_text(planned: PlannedDesign, place: Path) -> str:
    """What is to be shown, what that saves against uniform exposure, and how it is evaluated."""
    design = planned.design
    chance = design.chance
    per_user = np.bincount(design.user, minlength=len(design.users))
    few, none = int(np.count_nonzero(per_user < planned.per_user)), int(np.count_nonzero(per_user == 0))
    lines = [
        f"{len(design):,} pairs to show, {planned.per_user} items to each of {len(design.users):,} users, with chances "
        f"of {chance.min():.2g} to {chance.max():.2g}, in {place / 'shown.parquet'}.",
        *([f"{few:,} of the users have fewer items left to show, {none:,} of them none."] if few else []),
        "",
        f"What {planned.per_user} uniformly chosen items would vary by, and what these are expected to (by the guess "
        "of what is relevant):",
        "",
    ]
    savings = list(planned.savings)
    if len(savings) > MANY * len({each.metric for each in savings}):
        savings = [each for each in savings if not each.baseline]
    header = ["metric", "of", "share of the variance", "uniform items for as much"]
    rows = [
        header,
        *([each.metric, _of(each), _share(each.variance_ratio), f"{each.uniform_items:,.0f}"] for each in savings),
    ]
    width = [max(len(row[at]) for row in rows) for at in range(len(header))]
    lines += [
        "  " + "  ".join(f"{cell:<{width[at]}}" if at < 2 else f"{cell:>{width[at]}}" for at, cell in enumerate(row))
        for row in rows
    ]
    lines += [
        "",
        f"A model that none of these is like: at most about {1 / planned.uniform:.2g} times the variance of uniform "
        "exposure.",
        worded(NEXT, for_cli=True),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _of(saving: Saving) -> str:
    return f"{saving.model} - {saving.baseline}" if saving.baseline else saving.model


def _share(share: float) -> str:
    return "not known" if math.isnan(share) else f"{share:.3f}"


def design_plain(planned: PlannedDesign) -> dict[str, Any]:
    """For JSON."""
    return {
        "design": dict(planned.design.settings),
        "pairs": len(planned.design),
        "savings": planned.saved().to_dicts(),
    }
