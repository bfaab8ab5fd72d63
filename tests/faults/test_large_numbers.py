"""Very large and very small numbers: a value that is a number, or one sentence; never inf or a library's warning."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.cli import _as_line
from truerank.core.arrays import LEAST_CHANCE
from truerank.core.errors import InputError
from truerank.exposure.propensities.counted import PopularityPower

N = 60


def _with(first: float, rest: float = 0.5) -> list[float]:
    return [first] + [rest] * (N - 1)


def _judged(propensity: list[float]) -> tuple[dict[str, Any], pl.DataFrame]:
    rng = np.random.default_rng(1)
    user, item = np.divmod(np.arange(N), 3)
    labels = {"user": user, "item": item, "label": np.arange(N) % 2, "propensity": propensity}
    return {"a": rng.random((N // 3, 3)), "b": rng.random((N // 3, 3))}, pl.DataFrame(labels)


@pytest.mark.parametrize("estimator", ["ips", "snips", "doubly-robust"])
def test_tiny_propensities_of_judged_rows(estimator: str) -> None:
    scores, labels = _judged(_with(1e-320))
    with pytest.raises(InputError, match=r"propensity is .*no less than 1e-40"):
        tr.evaluate(scores, labels, exposure="biased", estimators=[estimator], metrics=["Precision@2"])
    scores, labels = _judged(_with(LEAST_CHANCE))
    results = tr.evaluate(scores, labels, exposure="biased", estimators=[estimator], metrics=["Precision@2"])
    assert all(math.isfinite(each.value) for each in results.estimates)
    assert all(math.isfinite(each.difference) for each in results.comparisons)


def test_fitted_propensities_next_to_nothing_are_refused() -> None:
    rng = np.random.default_rng(2)
    user, item = np.divmod(np.arange(N), 3)
    kept = (item > 0) | (user == 0)
    labels = pl.DataFrame({"user": user[kept], "item": item[kept], "label": (np.arange(N) % 2)[kept]})
    exposure = tr.exposure.BiasedExposure(PopularityPower(200.0, clip=1e-300))
    with pytest.raises(InputError, match="fitted propensities go down to"):
        tr.evaluate(
            {"a": rng.random((N // 3, 3))}, labels, exposure=exposure, estimators=["snips"],
            metrics=["Precision@2"],
        )  # fmt: skip


def test_a_command_shows_warnings_without_a_path(tmp_path: Path) -> None:
    """In a process of its own, as a user calls it: whatever a library warns of is one line without a source."""
    code = (
        "import warnings, truerank.cli as c, truerank.cli.outcome as o; "
        "o.cli.main = lambda **_: warnings.warn('odd', RuntimeWarning); c.main()"
    )
    path = os.pathsep.join(each for each in sys.path if each)
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("PYTHONWARNINGS", None)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ended.stderr == "truerank: odd\n"
    assert warnings.formatwarning is not _as_line
