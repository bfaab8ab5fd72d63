"""Results that were saved read back equal, give the same JSON, table and text, and keep to the published schema."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank import metrics
from truerank.core.messages import Message, Severity
from truerank.core.provenance import Input, Provenance
from truerank.core.results import Comparison, Estimate, Results
from truerank.core.units import COLUMNS
from truerank.core.wording import option
from truerank.estimators.assisted import DoublyRobust
from truerank.estimators.full import Intervened, IntervenedPooled
from truerank.estimators.weighted import IPS, SNIPS, Naive
from truerank.exposure.kinds import BiasedExposure, FullExposure, RandomExposure, Unlisted
from truerank.exposure.policies.targets import RankColumn
from truerank.exposure.positions import parse_position
from truerank.exposure.positions.position_models import Exponential
from truerank.exposure.propensities.counted import PopularityPower
from truerank.inference.clipping import AutoClip
from truerank.io.atomic_write import seal
from truerank.metrics.additive import DCG, Recall
from truerank.report import document, frames

RNG = np.random.default_rng(3)
SCORES = {"a": RNG.random((12, 8)), "b": RNG.random((12, 8))}
FULL = pl.DataFrame(
    {"user": np.repeat(np.arange(12), 8), "item": np.tile(np.arange(8), 12), "label": RNG.integers(0, 2, 96)}
)
SHOWN = FULL.filter(pl.Series(RNG.random(96) < 0.6))
BIASED = SHOWN.with_columns(propensity=pl.Series(RNG.uniform(0.1, 0.9, len(SHOWN))))
CHOSEN = SHOWN.with_columns(inclusion=pl.Series(RNG.uniform(0.1, 0.9, len(SHOWN))))
IMPRESSIONS = pl.DataFrame(
    {"session": np.repeat(np.arange(40), 3), "user": np.repeat(np.arange(20), 6), "item": np.tile([1, 2, 3], 40),
     "position": np.tile([1, 2, 3], 40), "click": RNG.integers(0, 2, 120), "stars": RNG.random(120),
     "new": np.tile([3, 1, 2], 40)}
)  # fmt: skip
METRICS = ("nDCG@3", "AP@3", "HitRate@3", "AUC", "RR", "MeanRR", "RBP@0.9", "ERR@3", "RPrecision", "DCG@3")
POLICIES = {"new": RankColumn("new"), "log": RankColumn("position")}


def off_policy(**options: Any) -> Results:
    return tr.off_policy(IMPRESSIONS, POLICIES, position=Exponential(0.5), rewards=["click", "stars"], **options)


def evaluated(labels: pl.DataFrame = FULL, **options: Any) -> Results:
    return tr.evaluate(SCORES, labels, metrics=[Recall(3), DCG(3)], **options)


CALLS: dict[str, Callable[[], Results]] = {
    "full": evaluated,
    "design": lambda: evaluated(interval=tr.Design()),
    "random": lambda: evaluated(SHOWN, exposure=RandomExposure()),
    "all metrics": lambda: tr.evaluate(SCORES, FULL, metrics=[metrics.parse(name) for name in METRICS]),
    "intervened": lambda: evaluated(
        CHOSEN, exposure=FullExposure(Unlisted.NEGATIVE), estimators=[Intervened(), IntervenedPooled()]
    ),
    "biased": lambda: evaluated(
        BIASED, exposure=BiasedExposure(), estimators=[SNIPS(), IPS(clip=3.0), SNIPS(clip=2.0), Naive()]
    ),
    "doubly robust": lambda: evaluated(BIASED, exposure=BiasedExposure(), estimators=[DoublyRobust()]),
    "fitted": lambda: evaluated(SHOWN, exposure=BiasedExposure(PopularityPower(0.5)), estimators=[SNIPS()]),
    "undefined": lambda: evaluated(FULL.with_columns(label=pl.lit(0)), baseline="a"),
    "one model": lambda: tr.evaluate({"a": SCORES["a"]}, FULL, metrics=[Recall(3)]),
    "off policy": lambda: off_policy(clips=(1.0, 4.0, math.inf)),
    "chosen clips": lambda: off_policy(clips=AutoClip()),
    "fitted positions": lambda: tr.off_policy(
        IMPRESSIONS.filter(pl.col("position") <= 1 + pl.col("session") % 3),
        POLICIES,
        position=parse_position("fit:exp"),
        rewards=["click"],
    ),
}
VALIDATOR = jsonschema.Draft202012Validator(document.schema())


def odd() -> Results:
    """Whatever can stand in results: undefined and infinite numbers, odd names, messages in several orders."""
    few = Message(
        "few-users", Severity.CAUTION, f"only {option('n_items 3')} of 3 <b>&</b>", numbers={"n": 3, "share": math.nan}
    )
    cut = Message(
        "clipped", Severity.CAUTION, "cut at inf", numbers={"clip": math.inf, "rows": "7"}, subjects=("ü\n", "Recall@5")
    )
    first = Estimate(
        model='ü\n"<b>,\t', metric="Recall@5", k=5, estimator="snips", settings={"rate": None, "folds": (1, 2)},
        estimand="x", value=math.nan, stderr=math.inf, low=-math.inf, high=5e-324, level=0.95, interval="population",
        units=0, undefined=2**40, clusters=0, ess=None, reward="日本", clip=math.inf, assumptions=("a", "b; c"),
        warnings=(few, cut, few),
    )  # fmt: skip
    second = replace(first, model="", value=0.1 + 0.2, k=None, clip=1e-9, ess=math.inf, warnings=(cut, few), low=-0.0)
    third = replace(
        second, clip=8, warnings=(Message("few-users", Severity.CAUTION, few.text, numbers={"n": 4}),), value=1.0
    )
    compared = Comparison(
        model=first.model, baseline="", metric="Recall@5", estimator="snips", difference=-0.5, stderr=0.1, low=-0.7,
        high=-0.3, level=0.95, p=1e-300, units=2, clusters=1, reward="日本", clip=None, reasons=(few, cut),
    )  # fmt: skip
    units = pl.DataFrame(
        {
            "unit": ["é\n", "007"] * 2, "cluster": ["é\n", "007"] * 2, "model": first.model, "metric": "Recall@5",
            "estimator": "snips", "reward": "日本", "clip": [None, None, 8.0, 8.0], "numerator": [1.0, math.nan] * 2,
            "denominator": [0.0, 2.0] * 2, "total": [None, None, 1.0, math.inf], "value": [None] * 4,
            "defined": [True, False] * 2,
        },
        schema_overrides={"value": pl.Float64},
    ).select(COLUMNS)  # fmt: skip
    return Results(
        (first, second, third),
        (
            compared,
            replace(compared, clip=8.0, p=math.nan),
            replace(compared, p_adjusted=1e-200, verdict="worse", family=3),
        ),
        (
            Message("dropped", Severity.NOTE, f"{option('exclude')} dropped 2\nrows"),
            few,
            Message("plain", Severity.NOTE, "{x}"),
        ),
        Provenance(
            call="truerank evaluate 'ü\n'",
            inputs=(
                Input(role="labels", source="a/ü.csv", bytes=3, sha256="0" * 64, rows=0),
                Input(role="s", source=""),
            ),
            settings={"seed": 2**80, "interval": None, "level": np.float64(0.95)},
            counts={"items": None, "users": 3},
            details={"tail": math.nan, "clips": (1, math.inf), "nested": [{"a": {"b": True}}]},
        ),
        SimpleNamespace(frame=lambda: units),
    )


@pytest.mark.parametrize("name", [*CALLS, "odd"])
def test_saved_results_read_back_equal(name: str, tmp_path: Path) -> None:
    results = odd() if name == "odd" else CALLS[name]()
    results.save(tmp_path / "kept")
    found = Results.read(tmp_path / "kept")
    assert found == results
    assert found.json() == results.json()
    assert str(found) == str(results)
    assert found._repr_html_() == results._repr_html_()
    assert found.estimates_table().equals(results.estimates_table())
    assert found.comparisons_table().equals(results.comparisons_table())
    assert frames.all_rows(found).equals(frames.all_rows(results))
    assert (results.unit_table is None) == (not (tmp_path / "kept" / "units.parquet").exists())
    # once more, from what was read
    found.save(tmp_path / "again")
    for file in (tmp_path / "kept").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


@pytest.mark.parametrize("name", [*CALLS, "odd"])
def test_json_keeps_to_the_schema(name: str) -> None:
    content = json.loads((odd() if name == "odd" else CALLS[name]()).json(), parse_constant=pytest.fail)
    VALIDATOR.validate(content)


@pytest.mark.parametrize("part", ["estimates", "comparisons", "messages", "provenance", "format"])
def test_the_schema_misses_nothing(part: str) -> None:
    """Every field is required, none is unknown: a new one must be written down there."""
    jsonschema.Draft202012Validator.check_schema(document.schema())
    content = json.loads(odd().json())
    del content[part]
    assert not VALIDATOR.is_valid(content)
    if part == "format":
        return
    entry = json.loads(odd().json())[part]
    entry = entry if isinstance(entry, dict) else entry[0]
    for key in entry:
        content = json.loads(odd().json())
        entry = content[part] if part == "provenance" else content[part][0]
        del entry[key]
        assert not VALIDATOR.is_valid(content), key
    content = json.loads(odd().json())
    (content[part] if part == "provenance" else content[part][0])["unheard of"] = 1
    assert not VALIDATOR.is_valid(content)


# -------------------------------------------------------------------------------------------------------------- places


def test_a_json_file_is_results_without_units(tmp_path: Path) -> None:
    results = CALLS["full"]()
    (tmp_path / "results.json").write_bytes(results.json())
    found = Results.read(tmp_path / "results.json")
    assert found == replace(results, unit_table=None)
    with refused("units=True"):
        found.units()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cannot be read as JSON"),
        (b"{", "cannot be read as JSON"),
        (b"\xff\xfe", "cannot be read as JSON"),
        (b"[]", "format None"),
        (b'{"format": 1}', "format 1"),
        (b'{"format": 2}', "is not what results of format 2 hold"),
        (b'{"format": 2, "estimates": 3, "comparisons": [], "messages": [], "provenance": {}}', "is not what"),
        (b'{"format": 2, "estimates": [{}], "comparisons": [], "messages": [], "provenance": {}}', "is not what"),
        (b'{"format": 2, "estimates": [], "comparisons": [null], "messages": [], "provenance": {}}', "is not what"),
        (
            b'{"format": 2, "estimates": [], "comparisons": [], "messages": [{"code": "a", "severity": "none", '
            b'"text": "x"}], "provenance": {}}',
            "is not what",
        ),
    ],
)
def test_what_is_no_result_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(content)
    with refused(reason):
        Results.read(tmp_path / "results.json")
    with refused(r"is not complete \(it has no truerank\.json\)"):
        Results.read(tmp_path)
    seal(tmp_path, kind="set of results", names=["results.json"])
    with refused(reason):
        Results.read(tmp_path)


# --------------------------------------------------------------------------------------------------------------- shown


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with refused(r"pip install pandas, or pip install '\.\[pandas\]' in a checkout"):
        CALLS["full"]().to_pandas()
