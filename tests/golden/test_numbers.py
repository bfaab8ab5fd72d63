"""Every number of every estimator, metric, exposure and interval on small worlds, and of plans, is what it was.

Whether they are right is shown elsewhere: by hand, by enumeration, by other tools. Here a change that nobody meant is
noticed where no other test looks. `PYTHONPATH=tests/support python -m tests.golden.test_numbers` stores them anew; say
in the commit why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from engine_cases import LATER, QUESTIONS, answered, earned, feed, lists
from ways import DRAWN, MODELS, SIDE, frame, read

import truerank as tr
from truerank.core.estimator import Exposed
from truerank.core.results import Results
from truerank.core.values import options_of
from truerank.estimators import ESTIMATORS, RANKED
from truerank.ranking import samplers

STORED = Path(__file__).parent / "numbers.json"
FEED = feed(30)
TARGET = {"new": lists(FEED), "log": tr.exposure.RankColumn("position")}
PILOT: dict[str, Any] = {"difference": 0.05, "metrics": ["Precision@4", "Recall@4"], "threads": 1}
OFFLINE, ONLINE = [1, 4, 2, 2, 7, 6, 9, 3], [2, 3, 3, 1, 9, 5, 8, 4]


NAMES = ("model", "metric", "estimator", "reward", "clip")
SHARED = ("stderr", "low", "high", "level", "units", "clusters")
FIELDS = {
    "estimates": ("value", *SHARED, "undefined", "ess"),
    "comparisons": ("difference", *SHARED, "interval_level", "p", "p_adjusted", "family"),
}
EVIDENCE = ("informative", "df", "largest", "balance", "balance_z", "lost", "unsupported")

OWN = {
    name
    for kind in (ESTIMATORS, RANKED)
    for name, estimator in kind.catalogue().items()
    if estimator.__module__.startswith("truerank.")
}


def of(results: Results) -> Any:
    """Estimates and comparisons by their names, and what they rest on."""
    content = json.loads(results.json())
    return [
        [each[field] for field in fields] + [(each["evidence"] or {}).get(name) for name in EVIDENCE]
        for part, fields in FIELDS.items()
        for each in sorted(content[part], key=lambda each: [str(each[name]) for name in NAMES])
        if each["estimator"] in OWN  # not those of other packages that are installed
    ]


def planned() -> Any:
    labels = read(frame(DRAWN[Exposed.RANDOM]))
    plans = [tr.plan_exposure(labels, MODELS, interval=each, **PILOT) for each in (tr.Population(), tr.Design())]
    for metric, relevant in (("Precision@4", None), ("Recall@4", 0.1), ("DCG@4", None)):
        plans.append(
            tr.plan_exposure(difference=0.1, metrics=[metric], n_items=60, value=0.3, relevant=relevant, shared=0.4)
        )
    sessions = [tr.plan_sessions(difference=0.1, reward=0.2, effective=0.4, alike=alike) for alike in (0.0, 0.3)]
    return [plan.table().sort(pl.all()).rows() for plan in (*plans, *sessions)]


def sampled() -> Any:
    """The probabilities of negatives by every sampler."""
    log = tr.read(frame(DRAWN[Exposed.BIASED]), positive=">1")
    made = [cls(3) if "n" in options_of(cls) else cls() for cls in samplers.catalogue().values()]
    beside = tr.read(SIDE["random"])
    drawn = [tr.sample_candidates(log, each, train=beside, random=beside, seed=1) for each in sorted(made, key=str)]
    return [(each.item.tolist(), each.inclusion().value.tolist()) for each in drawn]


CASES: dict[str, Callable[[], Any]] = {
    **{
        f"{ways[0].exposure}, {ways[0].interval or 'population'}": partial(lambda at: of(answered(at, None)), number)
        for number, ways in enumerate(QUESTIONS)
        if number not in LATER[1:]
    },
    **{
        f"ranked, {position}": partial(lambda position: of(earned(FEED, None, position=position)), position)
        for position in ("exp:0.8", "fit:exp")
    },
    "ranked by a table, resampled": lambda: of(
        tr.off_policy(FEED, TARGET, position="log", clips=(1.5, 8.0), interval=tr.Bootstrap(30), seed=1, threads=1)
    ),
    "plans": planned,
    "samplers": sampled,
    "agreement": lambda: [
        astuple(each(OFFLINE, ONLINE)) for each in (tr.agreement.correlation, tr.agreement.rank_correlation)
    ],
}


def leaves(value: Any) -> list[Any]:
    """The numbers within, in their order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [number for each in value for number in leaves(each)]
    return [] if isinstance(value, str) else [value]


def numbers(case: str) -> np.ndarray:
    return np.array(leaves(CASES[case]()), dtype=np.float64)


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_what_they_were(case: str) -> None:
    stored = np.array(json.loads(STORED.read_text())[case], dtype=np.float64)
    np.testing.assert_allclose(numbers(case), stored, rtol=1e-7, atol=1e-12)


if __name__ == "__main__":
    found = {case: [None if np.isnan(x) else float(f"{x:.10g}") for x in numbers(case)] for case in CASES}
    STORED.write_text(
        "{\n" + ",\n".join(f"{json.dumps(case)}: {json.dumps(row)}" for case, row in found.items()) + "\n}\n"
    )
