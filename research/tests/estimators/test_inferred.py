"""Inferred AP and nDCG: the numbers of TREC's programs, and the bias of their means over users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log2

import numpy as np
import polars as pl
import pytest
from tiny import Tiny
from tiny import expectation as expect

import truerank as tr
from truerank.core.options import Denominator
from truerank.estimators.full import Full
from truerank.metrics.average_precision import AveragePrecision
from truerank.metrics.ndcg import NDCG
from truerank.sampling.designs import UniformDesign
from truerank_research.estimators.inferred import Inferred, Program

SAMPLE_EVAL = Inferred(Program.SAMPLE_EVAL)


@dataclass(frozen=True)
class Topic:
    """A topic as sample_eval sees it: documents with a stratum and a grade (None: not judged), and a ranked list.

    Written from the formulas of Yilmaz, Kanoulas and Aslam (SIGIR 2008) and what NIST's program makes of them: ε of
    1e-5 and 3e-5, the number of relevant documents of a grade rounded to the nearest whole one.
    """

    strata: Mapping[str, int]
    grades: Mapping[str, int | None]
    ranking: Sequence[str]

    def share_judged(self, stratum: int, documents: Sequence[str]) -> tuple[int, int]:
        """How many of these documents are of a stratum, and how many of those were judged."""
        own = [name for name in documents if self.strata[name] == stratum]
        return len(own), sum(self.grades[name] is not None for name in own)

    def relevant(self, stratum: int, grade: int | None = None) -> float:
        """How many relevant documents (of a grade) the judged ones of a stratum stand for."""
        size, judged = self.share_judged(stratum, list(self.strata))
        found = [self.grades[name] for name in self.strata if self.strata[name] == stratum and self.grades[name]]
        return len([each for each in found if grade in (None, each)]) * size / judged if judged else 0.0

    def precision(self) -> float:
        """xinfAP: over strata, the share of the relevant documents times the mean inferred precision at judged ones."""
        strata = sorted(set(self.strata.values()))
        every = sum(self.relevant(stratum) for stratum in strata)
        value = 0.0
        for stratum in strata:
            judged = [name for name in self.strata if self.strata[name] == stratum and self.grades[name]]
            if judged:
                mean = sum(self.precision_at(name) for name in judged) / len(judged)
                value += self.relevant(stratum) / every * mean
        return value

    def precision_at(self, name: str) -> float:
        if name not in self.ranking:
            return 0.0
        above = self.ranking[: self.ranking.index(name)]
        value = 1.0
        for stratum in {self.strata[other] for other in above}:
            size, judged = self.share_judged(stratum, above)
            hits = sum(bool(self.grades[other]) for other in above if self.strata[other] == stratum)
            value += size * (hits + 1e-5) / (judged + 3e-5)
        return value / (len(above) + 1)

    def normalised_gain(self) -> float:
        """infNDCG: of each stratum the listed documents times the mean discounted gain of judged listed ones."""
        gain = 0.0
        for stratum in set(self.strata.values()):
            size, judged = self.share_judged(stratum, self.ranking)
            found = sum(
                (self.grades[name] or 0) / log2(at + 2)
                for at, name in enumerate(self.ranking)
                if self.strata[name] == stratum
            )
            gain += size * found / judged if judged else 0.0
        best: list[int] = []
        for grade in sorted({each for each in self.grades.values() if each}, reverse=True):
            number = sum(self.relevant(stratum, grade) for stratum in set(self.strata.values()))
            best += [grade] * floor(number + 0.5)
        return gain / sum(grade / log2(at + 2) for at, grade in enumerate(best[: len(self.ranking)]))


def topic(labels: Sequence[int], judged: Sequence[int], k: int) -> Topic:
    """One stratum, as uniform draws have it; the list ends after k."""
    names = [str(place) for place in range(len(labels))]
    grades = {name: labels[place] if place in judged else None for place, name in enumerate(names)}
    return Topic(dict.fromkeys(names, 0), grades, names[:k])


def test_the_oracle_by_hand() -> None:
    """Two strata: a and b all judged, c to f of which two are. c is at rank 2, with a above: a judged, relevant."""
    strata = {"a": 1, "b": 1, "c": 2, "d": 2, "e": 2, "f": 2}
    given = Topic(strata, {"a": 2, "b": 0, "c": 1, "d": 0, "e": None, "f": None}, ["a", "c", "e", "b", "d"])
    # relevant: one of grade 2, and 1 x 4 / 2 = 2 of grade 1
    assert given.precision() == pytest.approx(1 / 3 * 1 + 2 / 3 * (1 + 1) / 2, abs=1e-4)
    # stratum 1: two listed, both judged, gain 2; stratum 2: three listed, two judged, gain 1 / log2 3
    best = 2 + 1 / log2(3) + 1 / log2(4)
    assert given.normalised_gain() == pytest.approx((2 + 3 / 2 / log2(3)) / best, abs=1e-12)


def test_inferred_precision_and_gain_by_hand() -> None:
    """Judged at ranks 1 (relevant), 3 (not), 4 (relevant) of 6: (1 + 1/4 + 3/4 · 1/2) / 2."""
    world = Tiny([[1, 0, 0, 1, 1, 0]])
    found = world.terms(Inferred(), AveragePrecision(6, Denominator.POSITIVES), [(0, 2, 3)]).value()
    assert found == pytest.approx((1 + 1 / 4 + 3 / 4 / 2) / 2, abs=1e-5)
    # two of three judged relevant stand for four of six; six places times the mean of three judged
    gain = world.terms(Inferred(), NDCG(6), [(0, 2, 3)]).value()
    ideal = sum(1 / log2(place + 2) for place in range(4))
    assert gain == pytest.approx(6 * (1 + 1 / log2(5)) / 3 / ideal, abs=1e-12)
    # of the first two places one was judged, and is relevant: both are taken to be
    assert world.terms(Inferred(), NDCG(2), [(0, 2, 3)]).value() == pytest.approx(2 / (1 + 1 / log2(3)), abs=1e-12)
    # none of the first two was
    assert world.terms(Inferred(), NDCG(2), [(2, 3)]).value() == 0.0


def test_programs_differ_where_nothing_above_was_judged() -> None:
    """A relevant item at rank 4, nothing judged above: each of the three is taken as relevant by 1/2 or by 1/3."""
    world = Tiny([[0, 0, 0, 1, 0]])
    metric = AveragePrecision(5, Denominator.POSITIVES)
    assert world.terms(Inferred(), metric, [(3, 4)]).value() == pytest.approx(1 / 4 + 3 / 4 / 2, abs=1e-12)
    assert world.terms(SAMPLE_EVAL, metric, [(3, 4)]).value() == pytest.approx(1 / 4 + 3 / 4 / 3, abs=1e-12)


@pytest.mark.parametrize("k", [3, 12, 40])
def test_extended_measures_are_those_of_sample_eval(k: int) -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        n, judged = 40, int(rng.integers(1, 41))
        labels = (rng.random(n) < rng.random()).astype(int).tolist()
        shown = sorted(rng.choice(n, judged, replace=False).tolist())
        if not any(labels[place] for place in shown):
            continue
        wanted = topic(labels, shown, k)
        precision = Tiny([labels]).terms(SAMPLE_EVAL, AveragePrecision(k, Denominator.POSITIVES), [shown])
        assert precision.value() == pytest.approx(wanted.precision(), abs=1e-9)
        for estimator in (SAMPLE_EVAL, Inferred()):
            found = Tiny([labels]).terms(estimator, NDCG(k), [shown]).value()
            assert found == pytest.approx(wanted.normalised_gain(), abs=1e-9)


def test_inferred_precision_is_that_of_trec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(3)
    metric = AveragePrecision(40, Denominator.POSITIVES)
    for _ in range(20):
        labels = rng.integers(0, 2, 40).tolist()
        judged = sorted(rng.choice(40, 12, replace=False).tolist())
        # -2: in the pool and not judged
        pool = {str(item): labels[item] if item in judged else -2 for item in range(40)}
        run = {str(item): float(40 - item) for item in range(40)}
        wanted = pytrec_eval.RelevanceEvaluator({"q": pool}, {"infAP"}).evaluate({"q": run})["q"]["infAP"]
        found = Tiny([labels]).terms(Inferred(), metric, [judged]).value()
        assert found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("estimator", [Inferred(), SAMPLE_EVAL], ids=str)
@pytest.mark.parametrize("listed", [True, False], ids=["every pair", "relevant pairs alone"])
def test_nothing_is_inferred_where_all_is_known(estimator: Inferred, listed: bool) -> None:
    """Full labels, as a row for every pair or for the relevant ones: AP and nDCG themselves."""
    rng = np.random.default_rng(8)
    items = list(range(1, 13))
    scores = {"m": tr.scores.dense(rng.random((6, 12)), users=list(range(6)), items=items)}
    label = (rng.random((6, 12)) < 0.3).astype(int)
    label[:, 0] = 1
    rows = [(u, i, int(label[u, i - 1])) for u in range(6) for i in items if listed or label[u, i - 1]]
    labels = pl.DataFrame(rows, schema=["user", "item", "label"], orient="row")
    asked = ["AP@5(denominator=positives)", "nDCG@5"]
    exposure = "full" if listed else "full(unlisted=negative)"
    found = tr.evaluate(scores, labels, exposure=exposure, metrics=asked, estimators=[estimator, "full"]).estimates
    by_name = {(each.metric, each.estimator.split("(")[0]): each.value for each in found}
    for metric in asked:
        assert by_name[metric, "inferred"] == pytest.approx(by_name[metric, "full"], abs=1e-4)


def test_inferred_means_lean_towards_users_who_like_much() -> None:
    """One user likes the first item alone, one likes all others: mean AP is .86, inferred .79 on average."""
    world = Tiny([[1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1]])
    metric = AveragePrecision(6, Denominator.POSITIVES)
    truth = float(world.terms(Full(), metric, world.everything()).unit_values().mean())
    mean = expect(world, Inferred(), metric, [UniformDesign(2)] * 2, lambda terms: terms.value())
    assert truth == pytest.approx(0.855, abs=1e-3)
    assert mean < 0.95 * truth
