"""Looking while data arrive: intervals at every look, when to stop, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused

import truerank as tr
from truerank.core.errors import RefusedError
from truerank.core.provenance import plain
from truerank.core.requirements import Outcome
from truerank.evaluation.watch import Watched, WatchState
from truerank.inference.sequences import FIRST, ConfidenceSequence
from truerank.report.plans import watch_answer, watch_panels, watch_sentence
from truerank.report.text import render

N_USERS, N_ITEMS = 400, 20


def arriving(
    *, better: float = 0.5, seed: int = 1, drift: bool = False, wins: Any = None
) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """Every pair labelled; `a` lists a relevant item first for a share of users, `b` for the others.

    `wins` are those of `a`, user by user as they arrive.
    """
    rng = np.random.default_rng(seed)
    user, item = (each.ravel() for each in np.indices((N_USERS, N_ITEMS)))
    order = np.arange(N_USERS) / N_USERS
    share = np.where(order < 0.5, 1.0, 0.0) if drift else np.full(N_USERS, better)
    in_order = drift or wins is not None
    wins = rng.random(N_USERS) < share if wins is None else wins
    label = (item == 0).astype(int)
    first = {"a": np.where(wins, 0, 1), "b": np.where(wins, 1, 0)}
    scores = {name: pl.DataFrame({"user": user, "item": item, "score": (item == at[user]) + 0.01 * (N_ITEMS - item)})
              for name, at in first.items()}  # fmt: skip
    came = np.arange(N_USERS) if in_order else rng.permutation(N_USERS)
    return scores, pl.DataFrame({"user": user, "item": item, "label": label, "time": 1000 + came[user]})


def watched(better: float, require: str = "a > b", **more: Any) -> Watched:
    scores, labels = arriving(better=better, drift=bool(more.pop("drift", False)))
    given: dict[str, Any] = {"require": require, "metrics": ["Precision@1"], "planned": 300}
    return tr.watch(scores, labels, **(given | more))


def test_a_clear_winner_is_shown() -> None:
    result = watched(0.8)
    (pair,) = result.pairs
    assert pair.state is WatchState.SHOWN
    assert result.outcome is Outcome.SHOWN
    assert pair.look.low > 0
    assert pair.look.users == N_USERS
    assert not pair.reasons
    assert not pair.cautions
    assert watch_answer(result).summary.verdict == watch_sentence(pair, result)
    assert render(watch_answer(result).summary, width=80) == (
        "Stop: a is better than b on Precision@1, significant with 400 users.\n"
        "Evidence: sufficient\n\n"
        "metric                 a - b (95% CI)    users  differ\n"
        "Precision@1, full  +0.62 (0.49, 0.74) *    400     400\n"
        "Precision: mean over users, full. Intervals are anytime-valid.\n"
    )


def test_a_look_is_that_of_the_formula() -> None:
    """The interval of a difference, with the multiplier of the sequence in place of Student's t, by hand."""
    scores, labels = arriving(better=0.7)
    look = tr.watch(scores, labels, require="a > b", metrics=["Precision@1"], planned=250).pairs[0].look
    values = {name: tr.evaluate({name: each}, labels, metrics=["Precision@1"]).units() for name, each in scores.items()}
    d = values["a"].sort("unit")["value"].to_numpy() - values["b"].sort("unit")["value"].to_numpy()
    n, alpha = float(N_USERS), 0.05
    rho = (-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / 250
    z = math.sqrt(2 * (n * rho + 1) / (n * rho) * math.log(math.sqrt(n * rho + 1) / alpha))
    around = d - d.mean()
    kurtosis = n * (around**4).sum() / (around**2).sum() ** 2
    df = min(2 * n / (kurtosis - 1) - 1, n - 1)
    t = z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    k = (around**3).sum() / (around**2).sum() ** 1.5
    reach = [3 / k * (np.cbrt(1 + k * (x - k / 6)) - 1) for x in (t, -t)]
    error = d.std(ddof=1) / math.sqrt(n)
    assert (look.low, look.high) == pytest.approx(
        (d.mean() - error * max(t, reach[0]), d.mean() - error * min(-t, reach[1]))
    )


def test_the_past_does_not_decide() -> None:
    """The first 120 users would have been significant; all 400 are not, and they are what a look is about."""
    wins = np.concatenate([np.arange(120) % 3 < 2, np.arange(280) % 2 < 1])
    wins[:120] = np.random.default_rng(1).permutation(wins[:120])
    scores, labels = arriving(wins=wins)
    assert tr.watch(scores, labels.filter(pl.col("time") < 1120), require="a > b", metrics=["Precision@1"],
                    planned=150).pairs[0].state is WatchState.SHOWN  # fmt: skip
    result = tr.watch(scores, labels, require="a > b", metrics=["Precision@1"], planned=150)
    assert result.pairs[0].state is WatchState.GOING_ON
    assert result.outcome is Outcome.INSUFFICIENT


def test_users_who_return_count_once_with_all_their_rows() -> None:
    """Rows of later visits change what a user contributes, not how many users there are, nor when they arrived."""
    scores, labels = arriving(better=0.7)
    later = labels.with_columns(time=pl.col("time") + pl.when(pl.col("item") > 9).then(10_000).otherwise(0))
    once, twice = (
        tr.watch(scores, rows, require="a > b", metrics=["Precision@1"], planned=300).pairs[0]
        for rows in (labels, later)
    )  # fmt: skip
    assert twice.look == once.look
    assert twice.look.users == N_USERS
    compared = tr.evaluate(scores, later, metrics=["Precision@1"]).compare("a", "b")[0]
    assert twice.look.difference == pytest.approx(compared.difference)


def test_ratios_are_linearised() -> None:
    """Pooled recall of users with one relevant item each is a mean, and has its interval."""
    scores, labels = arriving(better=0.7)
    recall, precision = (
        tr.watch(scores, labels, require="a > b", metrics=[metric], estimators=[estimator]).pairs[0].look
        for metric, estimator in (("Recall@1", "pooled"), ("Precision@1", "full"))
    )
    assert (recall.difference, recall.low, recall.high) == pytest.approx(
        (precision.difference, precision.low, precision.high)
    )


def test_users_who_did_not_come_at_random_are_said() -> None:
    found = watched(0.5, drift=True)
    assert "drift" in {message.code for message in found.messages}
    assert found.pairs[0].state is WatchState.REFUSED
    assert [reason.code for reason in found.pairs[0].reasons] == ["drift"]
    assert found.outcome is Outcome.INSUFFICIENT
    assert "drift" not in {message.code for message in watched(0.8).messages}


def test_missing_times_are_dropped_and_counted() -> None:
    scores, labels = arriving(better=0.7)
    some = labels.with_columns(time=pl.when(pl.col("user") >= 7).then("time"))
    found = tr.watch(scores, some, require="a > b", metrics=["Precision@1"], drop_missing_times=True)
    (message,) = (message for message in found.messages if message.code == "missing-times")
    assert message.numbers == {"rows": 7 * N_ITEMS, "users": 7}
    assert found.pairs[0].look.users == N_USERS - 7


def test_rows_that_carry_no_verdict_carry_no_promise() -> None:
    """Judged rows that are said to be random, and are the top of the lists."""
    scores, labels = arriving(better=0.9)
    odd = labels.filter(pl.col("item") < 6)
    found = tr.watch(scores, odd, require="a > b", exposure="random", metrics=["Precision@1"])
    (pair,) = found.pairs
    assert pair.state is WatchState.REFUSED
    assert found.outcome is Outcome.INSUFFICIENT
    assert pair.reasons
    assert watch_answer(found).summary.evidence == "insufficient"


@pytest.mark.parametrize("users", [20, 99])
def test_too_early(users: int) -> None:
    """However clear it seems, and though an ordinary test would be significant."""
    scores, labels = arriving(wins=np.ones(N_USERS, dtype=bool))
    labels = labels.filter(pl.col("user") < users)
    found = tr.watch(scores, labels, require="a > b", metrics=["Precision@1"])
    assert found.pairs[0].state is WatchState.EARLY
    assert math.isnan(found.pairs[0].look.low)
    assert watch_answer(found).document["watched"][0]["state"] == "too early"


def test_what_cannot_be_watched_is_refused() -> None:
    scores, labels = arriving(better=0.6)
    with refused("no time column"):
        tr.watch(scores, labels.drop("time"), require="a > b")
    with refused("no model 'c'"):
        tr.watch(scores, labels, require="a > c")
    with refused("nothing is required"):
        tr.watch(scores, labels, require=[])
    with refused("above 0"):
        tr.watch(scores, labels, require="a > b", difference=-1.0)
    with refused("times are missing"):
        tr.watch(scores, labels.with_columns(time=pl.lit(None, pl.Float64)), require="a > b")
    with refused("every look is known", RefusedError):
        tr.watch(scores, labels, require="a > b", metrics=["Coverage@2"])


def lists_of_unequal_items(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Differences of two equal models by inverse propensities: one lists items of probability .3, the other of .02."""
    return rng.binomial(10, 0.045, shape) / 3.0 - rng.binomial(10, 0.003, shape) / 0.2


STREAMS: dict[str, Any] = {
    "wins and losses": lambda rng, shape: rng.choice([-1.0, 0.0, 1.0], size=shape, p=[0.1, 0.8, 0.1]),
    "lognormal": lambda rng, shape: rng.lognormal(0, 1, shape) - math.exp(0.5),
    "rare large losses": lambda rng, shape: np.where(rng.random(shape) < 0.95, 1.0, -19.0),
    "unequal propensities": lists_of_unequal_items,
}


@pytest.mark.parametrize("stream", STREAMS)
def test_ever_wrong_over_all_looks(stream: str) -> None:
    """Over 3,000 users in 200 runs of equal models; an ordinary interval, looked at as often, is wrong in a third."""
    d = STREAMS[stream](np.random.default_rng(4), (200, 3000))
    t = np.arange(1.0, d.shape[1] + 1)
    m, squares, cubes, fourths = (np.cumsum(d**power, axis=1) / t for power in (1, 2, 3, 4))
    second = np.maximum(squares - m**2, 1e-30)
    third, fourth = cubes - 3 * m * squares + 2 * m**3, fourths - 4 * m * cubes + 6 * m**2 * squares - 3 * m**4
    stderr = np.sqrt(second / np.maximum(t - 1, 1))
    df = np.clip(2 * t / np.maximum(fourth / second**2 - 1, 1e-12) - 1, 1.0, np.maximum(t - 1, 1.0))
    low, high = ConfidenceSequence(200, 0.05).interval(m, stderr, df, third / second**1.5 / np.sqrt(t), t)
    looked = np.cumsum(d != 0, axis=1) >= FIRST
    assert (looked & ((low > 0) | (high < 0))).any(axis=1).mean() <= 0.05
    assert (looked & (np.abs(m) > 1.96 * stderr)).any(axis=1).mean() > 0.2


def biased(rng: np.random.Generator, *, n_users: int = 1200) -> tuple[dict[str, Any], pl.DataFrame]:
    """Equal models: `a` lists items that are often shown, `b` items that are rarely shown, which weigh forty times."""
    n_items = 20
    propensity = np.repeat([0.4, 0.01], n_items // 2)
    label = rng.random((n_users, n_items)) < 0.1
    user, item = np.nonzero(rng.random((n_users, n_items)) < propensity)
    rows = {"user": user, "item": item, "label": label[user, item].astype(int), "propensity": propensity[item]}
    often = np.repeat([1.0, 0.0], n_items // 2) + rng.random((n_users, n_items)) / 10
    return {"a": often, "b": -often}, pl.DataFrame({**rows, "time": user})


BIASED: dict[str, Any] = {
    "require": "a > b", "exposure": "biased", "metrics": ["Precision@10"], "estimators": ["ips"], "planned": 500
}  # fmt: skip


def test_unequal_propensities_are_cautioned() -> None:
    scores, rows = biased(np.random.default_rng(7))
    result = tr.watch(scores, rows, **BIASED)
    (pair,) = result.pairs
    assert [caution.code for caution in pair.cautions] == ["approximate-level"]
    assert "approximate-level" in {message.code for message in result.messages}
    assert watch_answer(result).summary.warnings == (str(pair.cautions[0]),)
    assert plain(watch_answer(result).document)["watched"][0]["cautions"][0]["code"] == "approximate-level"


def test_rows_that_would_weigh_much_widen_the_interval_before_one_is_relevant() -> None:
    """Nothing that `b` lists was relevant yet; each such row would change the difference forty times as much."""
    scores, rows = biased(np.random.default_rng(8), n_users=400)
    rows = rows.with_columns(label=pl.when(pl.col("propensity") < 0.1).then(0).otherwise(pl.col("label")))
    (pair,) = tr.watch(scores, rows, **BIASED).pairs
    assert pair.look.informative >= FIRST
    assert pair.look.difference > 0
    assert pair.state is WatchState.GOING_ON


def test_the_picture_of_several_looks() -> None:
    """Bars are the intersection of all intervals so far: they never widen; labels of the axis stand apart."""
    pytest.importorskip("altair")
    scores, labels = arriving(better=0.8)
    looks = [tr.watch(scores, labels.filter(pl.col("user") < n), require="a > b", metrics=["Precision@1"])
             for n in (50, 100, 200, 300, 400)]  # fmt: skip
    layers = watch_panels(*looks)[0].chart.to_dict()["layer"]
    rows = layers[0]["data"]["values"]
    assert [row["users"] for row in rows] == [100, 200, 300, 400]
    lows, highs = ([getattr(watched.pairs[0].look, end) for watched in looks[1:]] for end in ("low", "high"))
    assert [row["low"] for row in rows] == np.maximum.accumulate(lows).tolist()
    assert [row["high"] for row in rows] == np.minimum.accumulate(highs).tolist()
    assert layers[0]["encoding"]["x"]["axis"]["labelOverlap"] is True


def test_users_without_a_hit_are_no_events_of_any_estimator() -> None:
    """Most users have labelled rows in lists, few a relevant one there: intervals wait for these, whatever sums."""
    rng = np.random.default_rng(6)
    label = (rng.random((400, 30)) < 0.3) & (rng.random(400) < 0.05)[:, None]
    item = np.concatenate([rng.choice(30, 8, replace=False) for _ in range(400)])
    user = np.repeat(np.arange(400), 8)
    rows = pl.DataFrame({"user": user, "item": item, "label": label[user, item].astype(int), "time": user})
    scores = {name: rng.normal(size=(400, 30)) for name in ("a", "b")}

    def events(estimator: str, metric: str) -> int:
        watched = tr.watch(
            scores, rows, require="a > b", exposure="random", metrics=[metric], estimators=[estimator]
        )  # fmt: skip
        return watched.pairs[0].look.informative

    plain = events("horvitz-thompson", "Precision@5")
    assert 0 < plain < 30
    assert events("hajek", "Precision@5") == events("assisted", "Precision@5") == plain
    assert events("post-stratified", "Recall@5") == events("pooled", "Recall@5")
