"""Fitted position models: no standard error that is unknown."""

from __future__ import annotations

import math

from truerank.evaluation.input_checks import _parameter
from truerank.exposure.positions.fits import Parameter


def test_an_unknown_error_is_not_printed() -> None:
    assert _parameter(Parameter("P(V|2)", 0.7383, math.nan, math.nan, math.nan)) == "P(V|2) = 0.7383"
    assert _parameter(Parameter("gamma", 0.7383, 0.012, 0.7, 0.8)) == "gamma = 0.7383 ± 0.012"
