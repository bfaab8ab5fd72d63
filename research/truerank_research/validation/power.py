"""Whether plans keep their word: power as planned from a pilot, and how often a difference is then shown."""

from __future__ import annotations

import polars as pl

from truerank_research.results import Measured
from truerank_research.runner import Run, Study
from truerank_research.validation.power_worlds import compare_power, worlds

CLOSE = 0.03  # that a plan may be apart from what happens


def measure(run: Run) -> Measured:
    """Power as planned beside the share of data sets of the planned size in which the difference was shown."""
    draws, every = (4000, 1) if run.full else (5, 4)  # the fourth is another kind of estimate
    arguments = [(world, draws, run.seed) for world in worlds()[::every]]
    rows = pl.concat(run.pieces(compare_power, arguments, about="drawing worlds"))
    return Measured({"worlds": rows.to_dicts()}, {"draws": draws})


STUDIES = (
    Study(
        "power", "Is a true difference significant as often as was planned?", measure, minutes=4,
    ),
)  # fmt: skip
