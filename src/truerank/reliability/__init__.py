"""How far sampled and biased evaluation can be trusted, measured on a fully observed dataset (paper 5).

    dataset, models --rank once--> orders of each user's items
    dataset --logging policy, sparsity--> logs --sampler, size--> candidate sets --metrics--> one value per model
    values --> Q1 how many models tie, Q2-Q4 Kendall's tau-b with what more data would say, per user, then averaged

`study` runs it; `Grid` says what is varied; `advise` says what it means for another log.
"""

from __future__ import annotations

from truerank.reliability.advice import Advice, advice_for, advise
from truerank.reliability.dataset import LabelledDataset, Models
from truerank.reliability.grid import Family, Grid, Preset, families, loggers_of
from truerank.reliability.run import study
from truerank.reliability.studied import FinishedStudy

__all__ = [
    "Advice",
    "Family",
    "FinishedStudy",
    "Grid",
    "LabelledDataset",
    "Models",
    "Preset",
    "advice_for",
    "advise",
    "families",
    "loggers_of",
    "study",
]
