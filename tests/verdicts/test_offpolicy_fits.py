"""What is said of fitted position models: no error that is not known, and lists that ended before people stopped."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

import truerank as tr
from truerank.evaluation.ranked_notes import _parameter
from truerank.exposure.policies.targets import RankColumn
from truerank.exposure.positions.fits import Parameter


def notes_of(log: pl.DataFrame) -> list[str]:
    found = tr.off_policy(log, {"log": RankColumn("position")}, position="fit:exp", estimators=["ips"])
    return [note for note in found.notes if "differ from those in the log" in note]


def test_a_misfit_may_be_lists_that_ended() -> None:
    """Depths are geometric, lists have five items: without `candidates` many seem to stop at the fifth."""
    rng = np.random.default_rng(1)
    depth = np.minimum(rng.geometric(0.2, size=800), 5)
    session = np.repeat(np.arange(800), depth)
    position = np.concatenate([np.arange(1, each + 1) for each in depth])
    log = pl.DataFrame(
        {
            "session": session,
            "item": position,
            "position": position,
            "reward": [0, 1] * (len(session) // 2) + [0] * (len(session) % 2),
        }
    )
    (note,) = notes_of(log)
    assert "choose another family, or a table. Or lists end where people seem to have stopped" in note
    assert "candidates" in note
    assert notes_of(log.with_columns(candidates=pl.lit(5))) == []


def test_an_unknown_error_is_not_printed() -> None:
    assert _parameter(Parameter("P(V|2)", 0.7383, math.nan, math.nan, math.nan)) == "P(V|2) = 0.7383"
    assert _parameter(Parameter("gamma", 0.7383, 0.012, 0.7, 0.8)) == "gamma = 0.7383 ± 0.012"
