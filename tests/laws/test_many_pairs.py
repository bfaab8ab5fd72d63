"""Differences of many pairs at once are those of one by one, to the last digits, whatever the terms are like."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from itertools import combinations

import numpy as np
import pytest

from truerank.core.clusters import Clusters
from truerank.core.terms import Smooth, known_total, ratio
from truerank.inference import intervals
from truerank.inference.intervals import Population, between
from truerank.inference.linearization import Spread

N_MODELS, N_ROWS = 14, 60  # 91 pairs: enough for a batch
Made = Callable[[np.random.Generator], list[Smooth]]


def _means(rng: np.random.Generator) -> list[Smooth]:
    return [ratio(rng.integers(0, 3, N_ROWS).astype(float), np.ones(N_ROWS)) for _ in range(N_MODELS)]


def _ratios(rng: np.random.Generator) -> list[Smooth]:
    return [ratio(rng.exponential(size=N_ROWS), rng.pareto(1.5, N_ROWS)) for _ in range(N_MODELS)]


def _one_denominator(rng: np.random.Generator) -> list[Smooth]:
    below = np.where(rng.random(N_ROWS) < 0.3, 0.0, rng.exponential(size=N_ROWS))
    return [ratio(np.where(below > 0, rng.random(N_ROWS), 0.0), below) for _ in range(N_MODELS)]


def _known_totals(rng: np.random.Generator) -> list[Smooth]:
    return [
        known_total(rng.random(N_ROWS), 1 + rng.random(N_ROWS), rng.integers(1, 9, N_ROWS).astype(float))
        for _ in range(N_MODELS)
    ]


def _clustered(rng: np.random.Generator) -> list[Smooth]:
    clusters = Clusters(rng.integers(0, 20, N_ROWS), np.arange(20, dtype=np.uint64))
    return [ratio(rng.random(N_ROWS), 1 + rng.random(N_ROWS), clusters=clusters) for _ in range(N_MODELS)]


def _some_users_each(rng: np.random.Generator) -> list[Smooth]:
    masks = [rng.random(N_ROWS) < 0.8 for _ in range(2)]
    return [ratio(rng.random(N_ROWS), np.ones(N_ROWS), defined=masks[at % 2]) for at in range(N_MODELS)]


def _nearly_the_same(rng: np.random.Generator) -> list[Smooth]:
    values = rng.random(N_ROWS)
    return [ratio(np.where(np.arange(N_ROWS) < at, 0.0, values), np.ones(N_ROWS)) for at in (0, *range(N_MODELS - 1))]


def _some_undefined(rng: np.random.Generator) -> list[Smooth]:
    nothing = ratio(np.zeros(N_ROWS), np.zeros(N_ROWS))
    return [nothing, *_means(rng)[1:]]


def _huge_and_tiny(rng: np.random.Generator) -> list[Smooth]:
    units = [10.0 ** (40 * (at % 5) - 80) for at in range(N_MODELS)]
    return [ratio(unit * rng.random(N_ROWS), np.ones(N_ROWS)) for unit in units]


def _one_cluster_is_all(rng: np.random.Generator) -> list[Smooth]:
    below = np.zeros(N_ROWS)
    below[7] = 2.0
    return [ratio(np.where(below > 0, rng.random(N_ROWS), 0.0), below) for _ in range(N_MODELS)]


KINDS: list[Made] = [
    _means, _ratios, _one_denominator, _known_totals, _clustered, _some_users_each, _nearly_the_same, _some_undefined,
    _huge_and_tiny, _one_cluster_is_all,
]  # fmt: skip


def _close(found: Spread, wanted: Spread) -> None:
    for name in (field.name for field in fields(Spread)):
        own, other = float(getattr(found, name)), float(getattr(wanted, name))
        # ends and skewness are differences: what they are differences of is their scale
        scales = {"low": abs(wanted.stderr), "high": abs(wanted.stderr), "skewness": 1.0}
        smallest = 1e-12 * np.nan_to_num(scales.get(name, 0.0))
        assert own == pytest.approx(other, rel=1e-12, abs=smallest, nan_ok=True), name


@pytest.mark.parametrize("made", KINDS, ids=lambda made: made.__name__.strip("_"))
@pytest.mark.parametrize("seed", range(3))
def test_many_pairs_are_those_of_one_by_one(made: Made, seed: int) -> None:
    terms = dict(enumerate(made(np.random.default_rng(seed))))
    asked = [(second, first) for first, second in combinations(terms, 2)]
    found = Population().spreads(terms, asked, level=0.9)[1]
    assert list(found) == asked
    for first, second in asked:
        _close(found[first, second], between(Population(), terms[first], terms[second], level=0.9))


def test_the_law_is_about_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a batch that is wrong would be seen, because it is a batch that answers."""
    terms = dict(enumerate(_means(np.random.default_rng(0))))
    asked = [(second, first) for first, second in combinations(terms, 2)]
    wrong = Spread.unknown(math.pi)
    monkeypatch.setattr(intervals, "spreads_of_pairs", lambda *_, **__: dict.fromkeys(asked, wrong))
    assert set(Population().spreads(terms, asked, level=0.9)[1].values()) == {wrong}
    assert len(asked) >= intervals.MANY_PAIRS
