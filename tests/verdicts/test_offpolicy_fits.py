"""Fitted position models: no standard error that is unknown, and lists that ended before people stopped."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

import truerank as tr
from truerank.evaluation.input_checks import _parameter
from truerank.exposure.policies.targets import RankColumn
from truerank.exposure.positions.fits import Parameter


def test_lists_that_all_end_at_one_rank_are_recognised() -> None:
    """Depths are geometric, lists have five items: many come to the fifth, and none of them stopped there."""
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
    targets = {"log": RankColumn("position")}
    recognised = tr.off_policy(log, targets, position="fit:exp", estimators=["ips"])
    stated = tr.off_policy(log.with_columns(candidates=pl.lit(5)), targets, position="fit:exp", estimators=["ips"])
    (end,) = (message for message in recognised.messages if message.code == "list-end")
    assert end.numbers == {"rank": 5, "lists": 800, "lists_at_end": int((depth == 5).sum())}
    assert "candidates" in end.text
    assert "list-end" not in {message.code for message in stated.messages}
    assert recognised.provenance.details["fits"] == stated.provenance.details["fits"]
    assert abs(stated.provenance.details["fits"][0]["value"] - 0.8) < 0.02
    assert "position-misfit" not in {message.code for message in recognised.messages}


def test_an_unknown_error_is_not_printed() -> None:
    assert _parameter(Parameter("P(V|2)", 0.7383, math.nan, math.nan, math.nan)) == "P(V|2) = 0.7383"
    assert _parameter(Parameter("gamma", 0.7383, 0.012, 0.7, 0.8)) == "gamma = 0.7383 ± 0.012"
