"""Assisted estimates with few labelled hits, few rows, users that only a judge labelled, and predictions that cheat."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.results import Comparison, Estimate, Results

CALLED = ("better", "worse")


@dataclass(frozen=True)
class Labelled:
    """Labels [users x items], the scores of two models, and the pairs that people labelled."""

    labels: np.ndarray
    scores: dict[str, np.ndarray]
    user: np.ndarray
    item: np.ndarray

    @classmethod
    def uniform(cls, rng: np.random.Generator, labels: np.ndarray, n_labelled: int, **scores: np.ndarray) -> Labelled:
        n_users, n_items = labels.shape
        item = np.argsort(rng.random((n_users, n_items)), axis=1)[:, :n_labelled].ravel()
        return cls(labels, scores, np.repeat(np.arange(n_users), n_labelled), item)

    def frame(self, **columns: Any) -> pl.DataFrame:
        label = self.labels[self.user, self.item].astype(float)
        return pl.DataFrame({"user": self.user, "item": self.item, "label": label, **columns})

    def evaluate(self, judge: np.ndarray | None = None, labels: Any = None, **options: Any) -> Results:
        shape = self.labels.shape
        ids: Any = {"users": np.arange(shape[0]), "items": np.arange(shape[1])}
        if judge is not None:
            user, item = np.nonzero(~np.isnan(judge))
            options["judge"] = pl.DataFrame({"user": user, "item": item, "probability": judge[user, item]})
        scores = {name: tr.scores.dense(each, **ids) for name, each in self.scores.items()}
        asked: dict[str, Any] = {"exposure": "random", "estimators": ["assisted"], "threads": 1, **options}
        return tr.evaluate(scores, self.frame() if labels is None else labels, **asked)

    def listed(self, model: str, k: int) -> np.ndarray:
        """The ranks, from 1, of the labelled pairs that are in a model's list."""
        rank = np.argsort(np.argsort(-self.scores[model], axis=1), axis=1)[self.user, self.item] + 1
        return np.where(rank <= k, rank, 0)


def judge_of(rng: np.random.Generator, labels: np.ndarray, *, sensitivity: float, specificity: float) -> np.ndarray:
    chance = rng.random(labels.shape)
    return np.where(labels, chance < sensitivity, chance >= specificity).astype(float)


def comparison(results: Results, estimator: str = "assisted") -> Comparison:
    return next(each for each in results.comparisons if each.estimator == estimator)


def estimates(results: Results, estimator: str = "assisted") -> dict[str, Estimate]:
    return {each.model: each for each in results.estimates if each.estimator == estimator}


def codes(messages: Any) -> set[str]:
    return {each.code for each in messages}


# ---------------------------------------------------------------------------------------------------------- few hits


def equal_lists(rng: np.random.Generator, *, users: int = 100, items: int = 200, rate: float = 0.05) -> Labelled:
    """Two lists of random items, of which as many are relevant."""
    first, second = rng.random((users, items)), rng.random((users, items))
    return Labelled.uniform(rng, rng.random((users, items)) < rate, 8, a=first, b=second)


def test_equal_lists_of_which_one_has_no_labelled_hit_are_seldom_called_different() -> None:
    """About two labelled hits a list, and a judge that is nearly always right: 22 % of such draws were called."""
    rng, without_hit = np.random.default_rng(3), 0
    called = {"Precision@10": 0, "DCG@10": 0, "Recall@10": 0}
    for _ in range(40):
        drawn = equal_lists(rng)
        judge = judge_of(rng, drawn.labels, sensitivity=0.97, specificity=0.995)
        results = drawn.evaluate(judge, metrics=list(called))
        for each in results.comparisons:
            if each.estimator == "assisted":
                called[each.metric] += each.verdict in CALLED
        without_hit += any("no-hit" in codes(each.warnings) for each in estimates(results).values())
    assert without_hit >= 5  # the case was there
    assert max(called.values()) <= 0.06 * 40, called


def without_hit(drawn: Labelled, model: str) -> Labelled:
    """The same pairs where none of those that were labelled is a hit in the list of a model."""
    labels = drawn.labels.copy()
    listed = drawn.listed(model, 10) > 0
    labels[drawn.user[listed], drawn.item[listed]] = False
    return replace(drawn, labels=labels)


@pytest.mark.parametrize("interval", [None, tr.Design(), tr.Bootstrap(100)], ids=["population", "design", "bootstrap"])
@pytest.mark.parametrize("metric", ["Precision@10", "DCG@10"])
def test_the_error_of_such_a_difference_allows_for_a_hit_in_either_list(metric: str, interval: Any) -> None:
    """One hit more among n equally weighted rows moves the mean by the discount of a list over n."""
    rng = np.random.default_rng(8)
    drawn = without_hit(equal_lists(rng, rate=0.15), "b")
    judge = judge_of(rng, drawn.labels, sensitivity=0.97, specificity=0.995)
    results = drawn.evaluate(judge, metrics=[metric], **({} if interval is None else {"interval": interval}))
    assert "no-hit" in codes(estimates(results)["b"].warnings)
    one_hit = []
    for model in "ab":
        rank = drawn.listed(model, 10)
        discount, places = (
            np.full(len(each), 0.1) if metric.startswith("Precision") else 1 / np.log2(each + 1)
            for each in (rank[rank > 0], np.arange(1, 11))
        )
        one_hit.append(places.sum() * (discount**2).sum() / discount.sum() ** 2)
    assert comparison(results).stderr > math.hypot(*one_hit)


def test_lists_without_any_labelled_hit_carry_no_verdict() -> None:
    rng = np.random.default_rng(5)
    drawn = equal_lists(rng, rate=0.0)
    judge = (rng.random(drawn.labels.shape) < 0.1).astype(float)
    assert comparison(drawn.evaluate(judge, metrics=["Precision@10"])).verdict == "insufficient"


def test_values_with_few_hits_cover_the_truth() -> None:
    """Lists of 20 places with about five labelled hits, of which a judge finds half: 79 to 98 % were covered."""
    rng, covered, total = np.random.default_rng(12), 0, 0
    for _ in range(40):
        drawn = equal_lists(rng, users=60, items=80, rate=0.04)
        judge = judge_of(rng, drawn.labels, sensitivity=0.5, specificity=0.999)
        for each in estimates(drawn.evaluate(judge, metrics=["Precision@20"])).values():
            if not math.isnan(each.stderr):
                covered += each.low <= 0.04 <= each.high
                total += 1
    assert total > 60
    assert covered >= 0.93 * total


def test_without_help_of_predictions_it_is_hajek_in_everything() -> None:
    """A constant judge: the same error and verdict, also where a list has no hit."""
    rng = np.random.default_rng(21)
    for _ in range(10):
        drawn = equal_lists(rng)
        results = drawn.evaluate(np.full(drawn.labels.shape, 0.2), metrics=["DCG@10"], estimators=["assisted", "hajek"])
        one, other = comparison(results), comparison(results, "hajek")
        np.testing.assert_allclose(one.stderr, other.stderr, rtol=1e-9)
        assert one.verdict == other.verdict


# ------------------------------------------------------------------------------------- labelled rows that were observed


def search(seed: int = 7, n_labels: int = 200) -> tuple[Labelled, pl.DataFrame, np.ndarray]:
    """Two rankings of 1,000 documents for 100 queries; people label pairs of their top 10 with equal probability."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((100, 1000)) < rng.beta(1, 30, (100, 1))
    relevant[np.arange(100)[:, None], rng.integers(0, 1000, (100, 3))] = True
    scores = {name: gain * relevant + rng.normal(size=relevant.shape) for name, gain in (("a", 2.2), ("b", 2.6))}
    pool = np.zeros(relevant.shape, dtype=bool)
    for each in scores.values():
        np.put_along_axis(pool, np.argsort(-each, axis=1)[:, :10], True, axis=1)
    pairs = np.argwhere(pool)
    chosen = pairs[np.sort(rng.choice(len(pairs), n_labels, replace=False))]
    world = Labelled(relevant, scores, chosen[:, 0], chosen[:, 1])
    judge = np.where(pool, judge_of(rng, relevant, sensitivity=0.9, specificity=0.7), np.nan)
    return world, world.frame(propensity=n_labels / len(pairs)), judge


def test_a_designed_sample_of_lists_is_counted_as_it_is() -> None:
    """About 110 labelled rows in either list, where uniform draws from the catalogue would give two."""
    world, labels, judge = search()
    results = world.evaluate(
        judge, labels, exposure="designed", metrics=["Precision@10"], estimators=["assisted", "hajek"]
    )
    assert "not-assisted" not in codes(results.messages)
    with_judge, without = comparison(results), comparison(results, "hajek")
    assert with_judge.stderr < 0.9 * without.stderr
    assert not with_judge.reasons
    truth = {
        model: np.take_along_axis(world.labels, np.argsort(-scores, axis=1)[:, :10], axis=1).mean()
        for model, scores in world.scores.items()
    }
    assert with_judge.low < truth[with_judge.model] - truth[with_judge.baseline] < with_judge.high


def test_queries_that_only_the_judge_labelled_count() -> None:
    world, labels, judge = search()
    n_labelled = labels["user"].n_unique()
    assert n_labelled < 100
    results = world.evaluate(judge, labels, exposure="designed", metrics=["Precision@10"])
    assert {each.units for each in estimates(results).values()} == {100}
    alone = estimates(results, "judge-alone")
    assert {each.units for each in alone.values()} == {100}
    for model, scores in world.scores.items():
        top = np.argsort(-scores, axis=1)[:, :10]
        assert alone[model].value == pytest.approx(np.take_along_axis(judge, top, axis=1).mean())
    (said,) = [each for each in results.messages if each.code == "judge-only-users"]
    assert said.numbers["users"] == 100 - n_labelled
    by_hajek = world.evaluate(judge, labels, exposure="designed", metrics=["Precision@10"], estimators=["hajek"])
    assert {each.units for each in estimates(by_hajek, "hajek").values()} == {n_labelled}


def test_declared_users_alone_count() -> None:
    """Some of them without a label; the judge labelled pairs of others, too."""
    world, labels, judge = search()
    some = np.setdiff1d(np.arange(100), labels["user"])[:5]
    users = np.concatenate([labels["user"].unique().to_numpy(), some])
    for declared in (tr.read(labels, users=users), tr.scan(labels, users=users)):
        results = world.evaluate(judge, declared, exposure="designed", metrics=["Precision@10"])
        assert {each.units for each in estimates(results, "judge-alone").values()} == {len(users)}
        assert "judge-only-users" not in codes(results.messages)


def test_users_of_the_judge_do_not_count_where_empty_samples_do() -> None:
    """Under a declared rate a user without a row is a sample that came out empty: only the caller knows who is one."""
    rng = np.random.default_rng(2)
    labels = rng.random((90, 30)) < 0.3
    drawn = rng.random((90, 30)) < 0.3
    drawn[60:] = False
    world = Labelled(labels, {"a": rng.random((90, 30)), "b": rng.random((90, 30))}, *np.nonzero(drawn))
    judge = judge_of(rng, labels, sensitivity=0.8, specificity=0.9)
    for exposure, expected in (("random(rate=0.3)", 60), ("random", 90)):
        results = world.evaluate(judge, exposure=exposure, metrics=["Precision@5"])
        assert {each.units for each in estimates(results, "judge-alone").values()} == {expected}


def test_the_reason_why_nothing_is_taken_from_a_judge_is_the_true_one() -> None:
    world, labels, judge = search()
    options = {"exposure": "designed", "metrics": ["Precision@10"]}

    def reason(judge: np.ndarray, labels: pl.DataFrame) -> tuple[str, dict[str, Any]]:
        (said,) = [each for each in world.evaluate(judge, labels, **options).messages if each.code == "not-assisted"]
        return said.subjects[1], dict(said.numbers)

    why, rows = reason(judge, labels[:40])
    assert why == "few-rows"
    first = Labelled(world.labels, world.scores, world.user[:40], world.item[:40])
    assert rows == {model: np.count_nonzero(first.listed(model, 10)) for model in "ab"}
    why, rows = reason(np.where(np.isnan(judge), np.nan, 0.4), labels)
    assert why == "alike"
    assert min(rows.values()) > 90
    why, _ = reason(np.where(np.isnan(judge), np.nan, np.arange(1000) % 2), labels)
    assert why == "no-slope"


# ------------------------------------------------------------------------------------------------------- predictions


def ordinary(seed: int = 4, users: int = 200, items: int = 60) -> Labelled:
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, items))
    labels = rng.random((users, items)) < 1 / (1 + np.exp(2 - taste))
    return Labelled.uniform(rng, labels, 15, a=taste + rng.normal(size=taste.shape), b=rng.normal(size=taste.shape))


def test_scores_assist_by_their_order_alone() -> None:
    """Heavy tails change nothing; as they are, they made errors 1.8 to 2.5 times those of hajek."""
    world = ordinary()
    scores = np.random.default_rng(1).normal(size=world.labels.shape) + world.labels
    values = []
    for assist in (scores, np.exp(4 * scores), 1e-9 * scores - 5):
        results = world.evaluate(assist=assist, metrics=["Precision@10", "Recall@10"])
        values.append([each.value for each in results.estimates])
    np.testing.assert_allclose(values[1], values[0], rtol=1e-12)
    np.testing.assert_allclose(values[2], values[0], rtol=1e-12)


def with_labels(world: Labelled, elsewhere: np.ndarray) -> np.ndarray:
    """A judge that repeats the labels that people gave, and says something else of other pairs."""
    found = elsewhere.astype(float).copy()
    found[world.user, world.item] = world.labels[world.user, world.item]
    return found


@pytest.mark.parametrize("metric", ["Precision@10", "DCG@10", "Recall@10"])
@pytest.mark.parametrize("elsewhere", ["nothing is relevant", "an eager judge"])
def test_a_judge_that_contains_the_labels_is_noticed(metric: str, elsewhere: str) -> None:
    world = ordinary()
    rng = np.random.default_rng(9)
    eager = judge_of(rng, world.labels, sensitivity=0.9, specificity=0.6)
    judge = with_labels(world, np.zeros(world.labels.shape) if elsewhere == "nothing is relevant" else eager)
    found = comparison(world.evaluate(judge, metrics=[metric]))
    assert found.verdict == "insufficient"
    assert "predictions-unbalanced" in codes(found.reasons)
    honest = world.evaluate(eager, metrics=[metric])
    assert "predictions-unbalanced" not in codes(comparison(honest).reasons)
    (balance,) = [each for each in honest.messages if each.code == "prediction-balance"]
    assert set(balance.numbers) == {"a", "b"}
    assert all(isinstance(z, float) and abs(z) < 4 for z in balance.numbers.values())


def test_the_labels_themselves_are_no_judge() -> None:
    """Given as the judge, they predict nothing of other pairs."""
    world = ordinary()
    judge = with_labels(world, np.full(world.labels.shape, np.nan))
    results = world.evaluate(judge, metrics=["Precision@10"], estimators=["assisted", "hajek"])
    assert comparison(results).stderr == pytest.approx(comparison(results, "hajek").stderr)
    for model, each in estimates(results).items():
        assert each.value == pytest.approx(estimates(results, "hajek")[model].value)


def test_a_judge_that_agrees_with_every_label_is_doubted_and_keeps_its_verdict() -> None:
    world = ordinary()
    found = world.evaluate(world.labels.astype(float), metrics=["Precision@10"])
    assert all("predictions-repeat-labels" in codes(each.warnings) for each in estimates(found).values())
    assert comparison(found).verdict in CALLED
    wrong_once = world.labels.astype(float)
    wrong_once[world.user[0], world.item[0]] = 0.5
    again = world.evaluate(wrong_once, metrics=["Precision@10"])
    assert not any("predictions-repeat-labels" in codes(each.warnings) for each in estimates(again).values())


def judges(rng: np.random.Generator, labels: np.ndarray, rate: np.ndarray) -> dict[str, np.ndarray]:
    """Honest ones."""
    tails = np.exp(3 * rng.standard_t(2, labels.shape).clip(-30, 30))
    return {
        "good": judge_of(rng, labels, sensitivity=0.9, specificity=0.95),
        "bad": judge_of(rng, labels, sensitivity=0.3, specificity=0.7),
        "constant": np.full(labels.shape, 0.3),
        "seldom relevant": (rng.random(labels.shape) < 0.003).astype(float),
        "probabilities": rate + np.zeros(labels.shape),
        "heavy tails": tails,
    }


def drawn_pairs(
    rng: np.random.Generator, how: str, rate: np.ndarray, scores: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Which pairs are labelled, and the probability of each to be."""
    shape = rate.shape
    if how == "uniform":
        chosen = np.zeros(shape, dtype=bool)
        np.put_along_axis(chosen, np.argsort(rng.random(shape), axis=1)[:, :10], True, axis=1)
        return chosen, np.full(shape, 10 / shape[1])
    if how == "whole queries":
        pool = np.zeros(shape, dtype=bool)
        for each in scores.values():
            np.put_along_axis(pool, np.argsort(-each, axis=1)[:, :10], True, axis=1)
        return pool & (rng.random((shape[0], 1)) < 1 / 3), np.full(shape, 1 / 3)
    chance = np.clip(0.1 * np.exp(0.7 * rng.normal(size=shape) + 0.3 * np.log(rate + 0.01)), 0.01, 1)
    return rng.random(shape) < chance, chance


@pytest.mark.parametrize("how", ["uniform", "unequal", "whole queries"])
@pytest.mark.parametrize("draws", [4])
def test_honest_judges_are_seldom_called_unbalanced(how: str, draws: int) -> None:
    rng, called, total = np.random.default_rng(17), 0, 0
    for _ in range(draws):
        users, items = int(rng.integers(50, 200)), int(rng.choice([60, 150]))
        rate = np.clip(0.1 * rng.gamma(1.5, 1 / 1.5, (users, 1)) * rng.gamma(1, 1, (1, items)), 0, 0.95)
        labels = rng.random(rate.shape) < rate
        scores = {"a": np.log(rate + 1e-9) + 2 * rng.normal(size=rate.shape), "b": rng.normal(size=rate.shape)}
        chosen, chance = drawn_pairs(rng, how, rate, scores)
        world = Labelled(labels, scores, *np.nonzero(chosen))
        frame = world.frame(propensity=chance[chosen])
        exposure = "random" if how == "uniform" else "designed"
        for name, judge in judges(rng, labels, rate).items():
            prediction: dict[str, Any] = {"judge": judge}
            if name == "heavy tails":  # neither labels nor probabilities
                prediction = {"assist": tr.scores.dense(judge, users=np.arange(users), items=np.arange(items))}
            results = world.evaluate(labels=frame, exposure=exposure, metrics=["DCG@10"], **prediction)
            called += "predictions-unbalanced" in codes(comparison(results).reasons)
            total += 1
    assert called <= 0.01 * total
