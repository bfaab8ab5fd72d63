"""The ids of sessions and users of a ranked log."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from truerank.evaluation.impression_rows import UnitIds
from truerank.io.impressions import Impressions


def unit_ids(log: Impressions) -> UnitIds:
    """The ids of units and of their clusters; a session without a row has no known user."""
    unit: Any = pl.Series(np.arange(log.n_units))
    if log.sessions is not None and log.session_of_unit is not None:
        unit = log.sessions.values.gather(log.session_of_unit)
    cluster = unit
    if log.users is not None:
        known = log.cluster < len(log.users)
        cluster = log.users.values.gather(pl.Series(np.where(known, log.cluster, 0)).set(pl.Series(~known), None))
    return UnitIds(unit, cluster, np.bincount(log.unit, minlength=log.n_units).astype(np.float64))
