"""Very large and very small numbers: a value that is a number, or one sentence; never inf or a library's warning."""

from __future__ import annotations

import json
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
from click.testing import CliRunner

import truerank as tr
from truerank.cli import _as_line
from truerank.cli.commands import cli
from truerank.core.arrays import LARGEST_NUMBER, LEAST_CHANCE
from truerank.core.errors import InputError
from truerank.exposure.propensities.counted import PopularityPower

N = 60


def _impressions(**columns: Any) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "session": np.repeat(np.arange(N // 3), 3),
            "item": np.tile([1, 2, 3], N // 3),
            "position": np.tile([1, 2, 3], N // 3),
            "reward": rng.random(N),
            "rank": np.tile([3, 1, 2], N // 3),
        }
        | columns
    )


def _choices(**columns: Any) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    chances = {"propensity": np.full(N, 0.5), "target_propensity": np.full(N, 0.25)}
    return pl.DataFrame({"item": np.arange(N) % 4, "reward": rng.random(N)} | chances | columns)


def _with(first: float, rest: float = 0.5) -> list[float]:
    return [first] + [rest] * (N - 1)


LOGS: dict[str, tuple[pl.DataFrame, str]] = {
    "tiniest propensity": (_choices(propensity=_with(1e-320)), "--target new=@exposure:target_propensity"),
    "tiny propensity": (_choices(propensity=_with(1e-41)), "--target new=@exposure:target_propensity"),
    "largest reward": (_impressions(reward=_with(1e308)), "--target new=@rank --position log"),
    "all rewards largest": (_impressions(reward=_with(1e308, 1.7e308)), "--target new=@rank --position log"),
    "large negative reward": (_impressions(reward=_with(-1e150)), "--target new=@rank --position log"),
    "a position without exposure": (
        _impressions(position=np.tile([1, 2, 5000], N // 3)),
        "--target new=@rank --position exp:0.5",
    ),
    "a position next to none": (
        _impressions(position=np.tile([1, 2, 1050], N // 3)),
        "--target new=@rank --position exp:0.5",
    ),
}
FINE: dict[str, tuple[pl.DataFrame, str]] = {
    "least propensity": (_choices(propensity=_with(LEAST_CHANCE)), "--target new=@exposure:target_propensity"),
    "least propensity of a large reward": (
        _choices(propensity=_with(LEAST_CHANCE), reward=_with(LARGEST_NUMBER)),
        "--target new=@exposure:target_propensity",
    ),
    "large rewards": (
        _impressions(reward=_with(LARGEST_NUMBER, -0.3 * LARGEST_NUMBER)),
        "--target new=@rank --position log",
    ),
    "tiny rewards": (_impressions(reward=_with(1e-300, 3e-310)), "--target new=@rank --position log"),
}


def _called(frame: pl.DataFrame, options: str, folder: Path) -> Any:
    frame.write_parquet(folder / "log.parquet")
    call = ["offpolicy", str(folder / "log.parquet"), *options.split(), "--format", "json", "--quiet"]
    return CliRunner().invoke(cli, call)  # warnings are errors in tests


@pytest.mark.parametrize("name", LOGS)
def test_what_would_be_infinite_is_refused(name: str, tmp_path: Path) -> None:
    found = _called(*LOGS[name], tmp_path)
    assert isinstance(found.exception, InputError), found.output
    assert "\n" not in str(found.exception)
    assert "expected" in str(found.exception) or "weight is" in str(found.exception)


@pytest.mark.parametrize("name", FINE)
def test_the_border_is_still_a_number(name: str, tmp_path: Path) -> None:
    found = _called(*FINE[name], tmp_path)
    assert found.exception is None, found.exception
    document = json.loads(found.stdout)
    for estimate in document["estimates"]:
        for key in ("value", "stderr", "low", "high", "ess"):
            assert estimate[key] is None or isinstance(estimate[key], float | int), (key, estimate[key])
        assert estimate["value"] is not None
    assert '"inf"' not in found.stdout


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


def test_a_warning_of_a_library_has_no_path() -> None:
    line = _as_line(RuntimeWarning("overflow\nencountered"), RuntimeWarning, "/somewhere/file.py", 12)
    assert line == "truerank: overflow encountered\n"


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
