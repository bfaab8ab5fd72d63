"""How far sampled and biased evaluation can be trusted, measured on a world that is fully observed (paper 5).

    world, models --rank once--> orders of each user's items
    world --logger, sparsity--> logs --sampler, size--> candidate sets --metrics--> one value per model
    values --> Q1 how many models tie, Q2-Q4 Kendall's tau-b with what more data would say, per user, then averaged

`study` runs it; `Grid` says what is varied.
"""

from __future__ import annotations

from truerank.studies.reliability.grid import Family, Grid, Preset, families, loggers_of
from truerank.studies.reliability.run import study
from truerank.studies.reliability.worlds import Models, World

__all__ = ["Family", "Grid", "Models", "Preset", "World", "families", "loggers_of", "study"]
