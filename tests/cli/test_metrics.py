"""Every metric, with every option, through the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import instances, labelled

from truerank.core.metric import Metric

METRICS: list[Metric] = [metric for cls in labelled().values() for metric in instances(cls, (1, 3))]


def call(run: Any, *options: str) -> Any:
    return run("evaluate", *options, "--scores", "a=a.npz", "--format", "json", "--quiet")


def test_every_metric_is_evaluated_on_full_labels(run: Any) -> None:
    named = [part for metric in METRICS for part in ("--metric", str(metric))]
    outcome = call(run, "labels.csv", *named).fine()
    assert [each["metric"] for each in json.loads(outcome.out)["estimates"]] == [str(metric) for metric in METRICS]


@pytest.mark.parametrize("estimator", ["horvitz-thompson", "hajek"])
def test_graded_gain_from_a_random_sample_without_a_rule(run: Any, folder: Path, estimator: str) -> None:
    # one of two candidates judged, at rank 1, grade 3: N / N-bar = 2, gain 7; hajek: 7 / 1 x (1 + 1/log2(3))
    (folder / "rated.csv").write_text("user,item,rating\n1,10,3\n")
    (folder / "two.csv").write_text("user,item,score\n1,10,2\n1,20,1\n")
    outcome = run(
        "evaluate rated.csv --exposure random --scores m=two.csv --metric DCG@2(gain=exponential) "
        f"--estimator {estimator} --format json --quiet",
    ).fine()  # fmt: skip
    (estimate,) = json.loads(outcome.out)["estimates"]
    assert estimate["value"] == pytest.approx(14.0 if estimator == "horvitz-thompson" else 7 * 1.6309297535714575)
    assert estimate["reward"] == "rating"


def test_negative_grades_are_an_error_of_input(run: Any, folder: Path) -> None:
    (folder / "rated.csv").write_text("user,item,rating\n1,10,-1\n1,20,2\n")
    outcome = call(run, "rated.csv", "--exposure", "random", "--metric", "DCG@2(gain=linear)")
    assert outcome.code == 2
    assert "the rating of user 1, item 10 is -1; gains need grades of 0 or more" in outcome.message


@pytest.mark.parametrize(
    ("metric", "advice"),
    [
        ("Recall@3(denominator=smaller)", "use Recall divided by all relevant items"),
        ("ERR@3", "use DCG or RBP."),
        ("RPrecision", "use Recall or Precision."),
    ],
)
def test_what_partial_labels_cannot_give_is_refused(run: Any, metric: str, advice: str) -> None:
    outcome = call(run, "sample.csv", "--exposure", "random", "--metric", metric)
    assert outcome.code == 2
    assert advice in outcome.message


def test_like_decides_how_labels_were_collected(run: Callable[..., Any]) -> None:
    words = "evaluate labels.csv --scores a=a.npz --like ranx --metric Recall@2 --format json"
    alone, both = (run(f"{words} {more}") for more in ("", "--exposure holdout"))
    assert alone.code == both.code == 0, alone.err
    assert json.loads(alone.out)["estimates"] == json.loads(both.out)["estimates"]
