"""Which comparisons are adjusted together (finding A13), and what a requirement says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.errors import InputError
from truerank.core.requirements import Outcome, Requirement
from truerank.core.results import Results


def results(**options: Any) -> Results:
    rng = np.random.default_rng(3)
    n, items = 200, 60
    liked = rng.random((n, items)) < 0.2
    scores = {name: signal * liked + rng.normal(size=liked.shape) for name, signal in (("a", 2), ("b", 1), ("c", 1))}
    user, item = np.divmod(np.arange(n * items), items)
    frame = pl.DataFrame({"user": user, "item": item, "label": liked[user, item].astype(int)})
    models = {name: tr.scores.dense(each, users=range(n), items=range(items)) for name, each in scores.items()}
    return tr.evaluate(models, frame, **{"metrics": ["Recall@10", "DCG@10"], **options})


def test_another_metric_does_not_change_significance() -> None:
    alone, both = results(metrics=["Recall@10"]), results()
    assert [each.p_adjusted for each in both.comparisons[:3]] == [each.p_adjusted for each in alone.comparisons]
    together = results(adjust="all")
    for alone_in_metric, among_all in zip(both.comparisons, together.comparisons, strict=True):
        assert among_all.p == alone_in_metric.p
        assert among_all.p_adjusted >= alone_in_metric.p_adjusted
        assert among_all.low < alone_in_metric.low
        assert among_all.high > alone_in_metric.high


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [
        ("a > b: Recall@10, full", Outcome.SHOWN),
        ("a > b", Outcome.SHOWN),
        ("b > a: DCG@10", Outcome.NOT_SHOWN),
        ("b > c: recall@10", Outcome.NOT_SHOWN),
        ("a > b: clip=none, full", Outcome.SHOWN),
    ],
)
def test_requirements(rule: str, outcome: Outcome) -> None:
    found, sentence = Requirement.parse(rule).outcome(results())
    assert found is outcome
    assert sentence.startswith(rule)
    assert str(Requirement.parse(rule)) == rule


@pytest.mark.parametrize("name", ["x > y", "x: y", "f(1, 2)", "$(rm -rf)", "<b>&", "x, y", "ü 1"])
def test_names_that_are_code_can_be_required(name: str) -> None:
    rule = Requirement(name, "pop", ("Recall@5",))
    assert Requirement.parse(str(rule)) == rule


@pytest.mark.parametrize("rule", ["a", "a > b > c", "a >", "> b", "a > a", "a > b: Recall@10(", "a > b: nDCG@10"])
def test_wrong_requirements_are_refused(rule: str) -> None:
    with pytest.raises(InputError):
        results().require(rule)


def test_too_little_evidence_is_neither_shown_nor_not() -> None:
    frame = pl.DataFrame({"user": [0, 0, 1, 1], "item": [0, 1, 0, 1], "label": [1, 0, 1, 0]})
    scores = {"a": np.array([[2.0, 1], [2, 1]]), "b": np.array([[1.0, 2], [1, 2]])}
    code, sentence = tr.evaluate(scores, frame, metrics=["Recall@1"]).require("a > b")
    assert code == 4
    assert "insufficient" in sentence
    assert "the two differ for 2 of the users" in sentence
