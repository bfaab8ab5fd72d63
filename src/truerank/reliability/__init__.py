"""How far sampled and biased evaluation can be trusted, measured on a world that is fully observed (paper 5).

    world, models --rank once--> orders of each user's items
    world --logger, sparsity--> logs --sampler, size--> candidate sets --metrics--> one value per model
    values --> Q1 how many models tie, Q2-Q4 Kendall's tau-b with what more data would say, per user, then averaged

`study` runs it; `Grid` says what is varied; `advise` says what it means for another log.
"""

from __future__ import annotations

from truerank.reliability.advice import Advice, advice_for
from truerank.reliability.advising import advise
from truerank.reliability.grid import Family, Grid, Preset, families, loggers_of
from truerank.reliability.run import study
from truerank.reliability.studied import Studied
from truerank.reliability.worlds import LabelledWorld, Models

__all__ = [
    "Advice",
    "Family",
    "Grid",
    "LabelledWorld",
    "Models",
    "Preset",
    "Studied",
    "advice_for",
    "advise",
    "families",
    "loggers_of",
    "study",
]
