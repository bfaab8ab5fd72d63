"""Wrong values thrown at every argument of every public function: an answer or an error of truerank, nothing raw."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

import truerank as tr
from truerank.core.errors import TruerankError
from truerank.core.validation import BY_NAME
from truerank.exposure.policies.targets import RankColumn

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass")

N = 40
USER, ITEM = np.divmod(np.arange(N * 6), 6)
ROWS = {"user": USER, "item": ITEM, "label": (np.arange(N * 6) % 3 == 0).astype(int), "time": np.arange(N * 6)}
LABELS = pl.DataFrame(ROWS | {"propensity": 0.5})
LOG = tr.read(LABELS)
TIMED = LABELS.with_columns(time=pl.int_range(pl.len()))
SCORES = {name: np.random.default_rng(at).random((N, 6)) for at, name in enumerate("ab")}
SHOWN = pl.DataFrame(
    {
        "session": np.repeat(np.arange(20), 3),
        "item": np.tile([1, 2, 3], 20),
        "position": np.tile([1, 2, 3], 20),
        "reward": np.random.default_rng(3).random(60),
        "rank": np.tile([3, 1, 2], 20),
    }
)
DENSE = tr.scores.dense(SCORES["a"])
LISTED = pl.DataFrame({"user": [1, 1], "item": [2, 3], "score": [0.5, 0.1]})
FEATURES = pl.DataFrame({"user": np.arange(N), "age": np.arange(N)})


# made anew for every call: a generator can be used once
VALUES = pl.DataFrame({"day": [1, 2, 3, 4], "value": [0.1, 0.3, 0.2, 0.4]})
VALUES_THROWN: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "whole number": lambda: 7,
    "beyond 128 bits": lambda: 10**40,
    "number": lambda: 0.5,
    "not a number": lambda: float("nan"),
    "true": lambda: True,
    "text": lambda: "0.9",
    "list": lambda: [1, 2],
    "nested": lambda: [[1], [2]],
    "set": lambda: {1, 2},
    "mapping": lambda: {1: 2},
    "unknown column": lambda: {"usr": "user"},
    "generator": lambda: (each for each in [1, 2]),
    "object": object,
    "matrix": lambda: np.matrix([[1, 2]]),
    "frame": lambda: pl.DataFrame({"x": [1]}),
    "series": lambda: pl.Series([1, 2]),
}


def _calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Every public function with a call that works."""
    results = tr.evaluate(SCORES, LABELS)
    return {
        "read": (tr.read, {"source": LABELS}),
        "scan": (tr.scan, {"source": LABELS}),
        "read_impressions": (tr.read_impressions, {"source": SHOWN}),
        "read_features": (tr.read_features, {"source": FEATURES, "kind": "user"}),
        "write": (tr.write, {"log": LOG, "path": "o.parquet"}),
        "split": (tr.split, {"log": LOG, "by": "random", "test": 0.5}),
        "evaluate": (tr.evaluate, {"scores": SCORES, "labels": LABELS, "metrics": ["Recall@2"]}),
        "watch": (tr.watch, {"scores": SCORES, "labels": TIMED, "require": "a > b", "metrics": ["Recall@2"]}),
        "design_exposure": (tr.design_exposure, {"scores": SCORES, "metrics": ["Precision@2"], "per_user": 2}),
        "off_policy": (tr.off_policy, {"log": SHOWN, "targets": {"new": RankColumn("rank")}, "position": "log"}),
        "plan_exposure": (
            tr.plan_exposure, {"difference": 0.1, "metrics": ["Precision@10"], "n_items": 100, "value": 0.2}
        ),
        "plan_sessions": (tr.plan_sessions, {"difference": 0.1, "reward": 0.2, "effective": 0.4}),
        "intervene": (tr.intervene, {"log": LOG, "strategy": "full", "seed": 0}),
        "with_inclusion": (tr.with_inclusion, {"log": LOG, "strategy": "full"}),
        "expose": (tr.expose, {"dataset": LOG, "policy": "uniform", "sparsity": 0.5, "seed": 0}),
        "fit_propensities": (tr.exposure.fit_propensities, {"model": "power:0.5", "log": LOG}),
        "calibration": (
            tr.exposure.calibration,
            {"fitted": tr.exposure.fit_propensities("power:0.5", LOG), "log": LOG, "random": LOG},
        ),
        "describe": (tr.describe, {"source": LABELS}),
        "randomness": (tr.randomness, {"log": LOG}),
        "sample_candidates": (tr.sample_candidates, {"log": LOG, "sampler": "Random@2", "seed": 0}),
        "read_scores": (tr.read_scores, {"path": "s.npz"}),
        "write_scores": (tr.write_scores, {"scores": DENSE, "path": "s2.npz"}),
        "Bootstrap": (tr.Bootstrap, {}),
        "scores.dense": (tr.scores.dense, {"matrix": SCORES["a"]}),
        "scores.factors": (tr.scores.factors, {"user_factors": SCORES["a"], "item_factors": SCORES["a"]}),
        "scores.sparse": (tr.scores.sparse, {"matrix": csr_array(SCORES["a"])}),
        "scores.product": (tr.scores.product, {"left": csr_array(SCORES["a"]), "right": np.eye(6)}),
        "scores.lists": (tr.scores.lists, {"source": LISTED}),
        "scores.top": (tr.scores.top, {"recommended": np.array([[2, 3], [3, 2]]), "users": [1, 2]}),
        "scores.function": (tr.scores.function, {"call": lambda rows: rows, "users": [1, 2], "items": [3, 4]}),
        "scores.per_user": (tr.scores.per_user, {"call": lambda row: row, "users": [1, 2], "items": [3, 4]}),
        "exposures": (
            tr.exposure.exposures,
            {"source": pl.DataFrame({"session": [1, 1], "item": [1, 2], "score": [0.5, 0.1]}), "position": "exp:0.5"},
        ),
        "agreement.agree": (tr.agreement.agree, {"offline": VALUES, "online": VALUES}),
        "agreement.correlation": (tr.agreement.correlation, {"offline": [1, 2, 3, 4], "online": [1, 3, 2, 4]}),
        "agreement.rank_correlation": (tr.agreement.rank_correlation, {"x": [1, 2, 3, 4], "y": [1, 3, 2, 4]}),
        "agreement.sign_agreement": (tr.agreement.sign_agreement, {"offline": [1, 2], "online": [1, 3]}),
        "agreement.disagreement": (tr.agreement.disagreement, {"x": [1, 2], "y": [1, 3]}),
        "agreement.sensitivity": (tr.agreement.sensitivity, {"difference": [1, 2], "stderr": [1, 3]}),
        "Results.by": (results.by, {"segment": 2}),
        "Results.compare": (results.compare, {"model": "a", "baseline": "b"}),
        "Results.require": (results.require, {"rule": "a > b: Recall@10"}),
        "Results.save": (results.save, {"path": "saved", "force": True}),
        "Results.read": (results.read, {"path": "saved"}),
    }  # fmt: skip


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Any:
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("arguments"))
    try:
        tr.write_scores(DENSE, "s.npz")
        tr.evaluate(SCORES, LABELS).save("saved")
        yield _calls()
    finally:
        os.chdir(before)


def _thrown(call: Callable[..., Any], works: dict[str, Any]) -> int:
    """Throw values at each argument in turn; how many errors of truerank came back."""
    refused = 0
    for name in inspect.signature(call).parameters:
        for what, made in VALUES_THROWN.items():
            if name in ("progress", "call") and callable(made()):
                continue  # what a function of the user's own raises is its own
            try:
                call(**{**works, name: made()})
            except TruerankError as error:
                refused += 1
                if re.search(r"(?<![\w-])--[a-z]", str(error)):
                    pytest.fail(f"{name}={what}: a flag of the command line in Python: {error}")
            except Exception as error:
                pytest.fail(f"{call.__qualname__}, {name}={what}: {type(error).__name__}: {error}")
    return refused


def test_wrong_arguments_are_errors_of_truerank(calls: Any) -> None:
    for name, (call, works) in calls.items():
        call(**works)
        assert _thrown(call, works) > 0, name


def test_every_public_function_is_thrown_at(calls: Any) -> None:
    public = {name for name in dir(tr) if inspect.isfunction(getattr(tr, name)) and not name.startswith("_")}
    public |= {f"scores.{name}" for name in dir(tr.scores) if inspect.isfunction(getattr(tr.scores, name))}
    public = {name for name in public if "__" not in name}
    again = {"scores.read_scores", "scores.write_scores"}  # the same functions in their submodule
    assert public - again <= set(calls)
    known = {name for call, _ in calls.values() for name in inspect.signature(call).parameters}
    assert set(BY_NAME) <= known, set(BY_NAME) - known  # a check that cannot fail
