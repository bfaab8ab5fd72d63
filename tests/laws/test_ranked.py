"""What holds for every estimate from a ranked log."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from ranked import numerator, read, terms_of, views_of

import truerank as tr
from truerank.core.estimator import Beyond, Request
from truerank.core.terms import Smooth
from truerank.estimators import RANKED
from truerank.estimators.discounted import (
    IdealSum,
    LearntDiscountRaw,
    LogDiscountDebiased,
    LogDiscountRaw,
    RankedNDCG,
    RankedPostNormalised,
)
from truerank.estimators.fast import add_bins
from truerank.estimators.impressions import Exposures, Limited
from truerank.estimators.weighted import IPS
from truerank.exposure.policies.targets import RankColumn
from truerank.exposure.positions.position_models import Exponential, Table
from truerank.inference.clipping import GRID, AutoClip, paired_errors, smallest_harmless
from truerank.inference.intervals import Population, between
from truerank.inference.weights import SupportTally, WeightDiagnostics, WeightTally, pareto_tail

INF = math.inf
CLIPS = np.array([1.0, 1.7, 4.0, INF])


def make_log(seed: int, *, n: int = 60, users: bool = True, dense: bool = False) -> pl.DataFrame:
    """Sessions of 1 to 6 viewed items with two targets' ranks; an item that a target never shows has none."""
    rng = np.random.default_rng(seed)
    rows = []
    for session in range(n):
        length = int(rng.integers(1, 7))
        items = rng.permutation(12)[:length]
        new, other = (rng.permutation(8)[:length] + 1 for _ in range(2))
        for place in range(length):
            reward = float(rng.normal()) if dense else int(rng.random() < 0.3)
            rows.append(
                {
                    "session": session, "user": session // 3, "item": int(items[place]), "position": place + 1,
                    "reward": reward, "new": None if rng.random() < 0.1 else int(new[place]),
                    "other": int(other[place]), "candidates": 12,
                }
            )  # fmt: skip
    frame = pl.DataFrame(rows).sample(fraction=1.0, shuffle=True, seed=seed)
    return frame if users else frame.drop("user")


def views(frame: pl.DataFrame, **targets: Any) -> dict[str, Exposures]:
    chosen = targets or {"new": RankColumn("new"), "other": RankColumn("other")}
    return views_of(read(frame), chosen, position=Exponential(0.7))


def lists_of(frame: pl.DataFrame, *, without: int) -> pl.DataFrame:
    """A target's table: its ranks of the logged items, and one more item; some sessions are missing."""
    logged = frame.select("session", "item", rank="other").filter(pl.col("session") % 7 != without)
    last = logged.group_by("session").agg(rank=pl.col("rank").max() + 1).with_columns(item=pl.lit(99, dtype=pl.Int64))
    return pl.concat([logged, last.select(logged.columns).with_columns(pl.col("rank").cast(pl.Int64))])


@pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])
@pytest.mark.parametrize("name", ["new", "other"])
@pytest.mark.parametrize("of", list(Limited))
def test_sums_for_all_clips_are_those_of_each(name: str, dense: bool, of: Limited) -> None:
    """One pass over the rows gives Σ c w of each unit as the formula does, clip by clip."""
    frame = make_log(3, dense=dense)
    view = views(frame, new=RankColumn("new"), other=lists_of(frame, without=3))[name]
    sums = list(view.rewards("reward", CLIPS, of))
    weights = list(view.clipped_sums(None, None, CLIPS, of))
    for at, clip in enumerate(CLIPS.tolist()):
        weight = view.weights(clip, of=of)
        np.testing.assert_allclose(sums[at], view.by_unit(weight * view.log.reward("reward")), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(weights[at], view.by_unit(weight), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("of", list(Limited))
def test_clips_that_nothing_reaches_share_their_sums(of: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever block of rows has the weights that reach a clip, the bits are those of the clip asked alone."""
    view = views(make_log(3, dense=True))["new"]
    clips = np.array([INF, 0.5, 1.3, 1e6, 0.9, 2.5, 1e7])
    alone = [next(iter(view.clipped_sums(None, None, clips[at : at + 1], of))) for at in range(len(clips))]
    monkeypatch.setattr("truerank.estimators.impressions.BLOCK", 7)
    together = view.clipped_sums(None, None, clips, of, more=1)
    for sums, wanted in zip(together, alone, strict=True):
        np.testing.assert_array_equal(sums, wanted)
    assert together.at[0] == together.at[3] == together.at[6] != together.at[1]
    assert len(together.rows) == len(set(together.at)) + 1


def test_all_questions_at_once_are_answered_as_each_alone() -> None:
    view = views(make_log(3).with_columns(again=2.0 * pl.col("reward")))["new"]
    asked = [Request(None, reward, clip) for clip in (4.0, 1.0, INF) for reward in ("reward",)]
    for estimator in (cls() for name, cls in RANKED.catalogue().items() if name != "doubly-robust"):
        together = estimator.terms(None, view, requests=asked, learned=None)
        for each, terms in zip(asked, together, strict=True):
            np.testing.assert_array_equal(terms.sums, terms_of(estimator, view, clip=each.clip).sums)


@pytest.mark.parametrize("of", list(Limited))
def test_sums_of_weights_for_all_clips_are_those_of_each(of: Limited) -> None:
    made = views(make_log(7))["new"]
    tally = WeightTally.count(made, CLIPS, most=1000, limits=of)
    for clip in CLIPS.tolist():
        weight, found = made.weights(clip, of=of), tally.diagnostics(clip)
        assert found.ess == pytest.approx(weight.sum() ** 2 / (weight**2).sum(), rel=1e-12)
        assert found.lost == pytest.approx(1 - weight.sum() / made.weights().sum(), abs=1e-12)
        lowered = np.count_nonzero((weight > 0) & (made.weights() > weight * (1 + 1e-15)))
        assert found.clipped == lowered / len(weight)
    assert tally.diagnostics(INF).largest == made.weights().max()


@pytest.mark.parametrize("scaled", [False, True], ids=["ratios", "scaled"])
def test_compiled_sums_of_weights_are_the_plain_ones(scaled: bool) -> None:
    """Rows of weight 0 and of weights that are clips themselves among them; more rows than one block."""
    rng = np.random.default_rng(3)
    limited = np.where(
        rng.random(5000) < 0.2, rng.choice([0.0, *CLIPS[np.isfinite(CLIPS)]], 5000), rng.gamma(1, 3, 5000)
    )
    scale = rng.choice([0.0, 0.5, 1.0], 5000) if scaled else None
    compiled, plain = (np.zeros((5, len(CLIPS) + 1)) for _ in range(2))
    add_bins(scale, limited, CLIPS, compiled)
    factor = np.ones(5000) if scale is None else scale
    weight = factor * limited
    for row, values in enumerate((weight > 0, factor, factor**2, weight, weight**2)):
        plain[row] = np.bincount(np.searchsorted(CLIPS, limited), values, minlength=len(CLIPS) + 1)
    np.testing.assert_array_equal(compiled[0], plain[0])
    np.testing.assert_allclose(compiled, plain, rtol=1e-12)


def test_clip_one_of_the_inverse_leaves_raw_labels() -> None:
    """m = 1: Σ c ε, the naive form."""
    made = views(make_log(11))["new"]
    raw = numerator(terms_of(LearntDiscountRaw(), made))
    assert numerator(terms_of(IPS(of=Limited.INVERSE), made, clip=1.0)) == pytest.approx(raw, abs=1e-15)


def test_log_discounts_are_those_of_the_classical_dcg() -> None:
    frame = pl.DataFrame({"session": [1, 1], "item": [1, 2], "position": [1, 2], "reward": [1, 1], "new": [3, 1]})
    made = views_of(read(frame), {"new": RankColumn("new")}, position=Exponential(0.5))["new"]
    assert terms_of(LogDiscountRaw(), made).value() == pytest.approx(0.5 + 1)
    # labels 1 / 1 and 1 / 0.5
    assert terms_of(LogDiscountDebiased(), made).value() == pytest.approx(0.5 + 2)


# ----------------------------------------------------------------------------------------------------- normalised forms


def table_one(item: str) -> Exposures:
    """Table 1 of paper 3: two contexts, two items, top-1 policies; every quality was seen."""
    frame = pl.DataFrame(
        {
            "session": ["x1", "x1", "x2", "x2"], "item": ["a1", "a2", "a1", "a2"], "propensity": [1.0] * 4,
            "reward": [1.0, 0.0, 1.0, 2.5],
        }
    ).with_columns(new=pl.when(pl.col("item") == item).then(1).otherwise(2))  # fmt: skip
    return views_of(read(frame), {"new": RankColumn("new")}, position=Table((1.0, 0.0)))["new"]


@pytest.mark.parametrize(
    ("ideal", "first", "second"),
    [(IdealSum.LABELS, [1.0, 1 / 3.5], [0.0, 2.5 / 3.5]), (IdealSum.ORDER, [1.0, 0.4], [0.0, 1.0])],
    ids=["as printed", "as defined"],
)
def test_table_1_normalising_turns_the_order_round(ideal: IdealSum, first: list[float], second: list[float]) -> None:
    def of(estimator: Any, item: str) -> Smooth:
        return terms_of(estimator, table_one(item))

    assert numerator(of(IPS(), "a1")).tolist() == [1.0, 1.0]
    assert numerator(of(IPS(), "a2")).tolist() == [0.0, 2.5]
    assert (of(IPS(), "a1").value(), of(IPS(), "a2").value()) == (1.0, 1.25)
    ndcg = RankedNDCG(ideal)
    assert numerator(of(ndcg, "a1")) == pytest.approx(first)
    assert numerator(of(ndcg, "a2")) == pytest.approx(second)
    assert of(ndcg, "a1").value() > of(ndcg, "a2").value()  # .64 and .36 printed, .70 and .50 as defined
    assert of(ndcg, "a1").value() == pytest.approx(sum(first) / 2)
    post = RankedPostNormalised(ideal)
    assert of(post, "a1").value() < of(post, "a2").value()


@pytest.mark.parametrize("seed", range(8))
def test_post_normalised_orders_as_dcg_and_ndcg_does_within_one_session(seed: int) -> None:
    made = views(make_log(seed))
    values = {
        name: [terms_of(each, made[name]) for each in
               (IPS(), RankedPostNormalised(), RankedNDCG())]
        for name in ("new", "other")
    }  # fmt: skip
    dcg, post, ndcg = zip(*values.values(), strict=True)
    assert (dcg[0].value() < dcg[1].value()) == (post[0].value() < post[1].value())
    both = ndcg[0].defined & ndcg[1].defined
    num, share = ([numerator(each) for each in two] for two in (dcg, ndcg))
    assert (np.sign(num[0] - num[1])[both] == np.sign(share[0] - share[1])[both]).all()
    # sessions without a reward have no ideal: dropped and counted
    assert (~ndcg[0].defined).sum() == np.count_nonzero(made["new"].by_unit(made["new"].log.reward("reward")) == 0)


# -------------------------------------------------------------------------------------------- clips, tails, diagnostics


def test_the_chosen_clip_is_reported_with_the_whole_curve() -> None:
    frame = make_log(4, n=300)
    targets = {"new": RankColumn("new"), "log": RankColumn("position")}
    results = tr.off_policy(
        frame, targets, position=Exponential(0.7), clips=AutoClip(), estimators=[IPS()], baseline="log"
    )
    assert len(results.estimates) == 2 * len(GRID)
    assert len(results.comparisons) == len(GRID)
    chosen = {each["of"]: each for each in results.provenance.details["chosen"]}
    assert set(chosen) == {"new", "log", "new - log"}
    tested = [each for each in results.comparisons if not math.isnan(each.p_adjusted)]
    assert [each.clip for each in tested] == [chosen["new - log"]["clip"]]
    assert tested[0].p_adjusted == tested[0].p  # one test, however long the curve
    marked = {line.split("chosen: ")[0].strip() for line in results.details().splitlines() if "chosen: " in line}
    assert marked == {"new", "log", "log - new"}
    assert results.clips().filter("chosen")["model"].to_list() == ["log", "new"]
    assert sum("chosen for" in note for note in results.notes) == 3
    of_new = [each for each in results.estimates if each.model == "new"]
    value = np.array([each.value for each in of_new])
    assert of_new[smallest_harmless(value, clip_errors(frame))].clip == chosen["new"]["clip"]


def clip_errors(frame: pl.DataFrame) -> Any:
    """The error of the difference between two clips, as that of two models is found."""
    made = views(frame)["new"]
    terms = [terms_of(IPS(), made, clip=clip) for clip in GRID]
    return np.array([[between(Population(), a, b, level=0.95).stderr for b in terms] for a in terms])


def test_clips_are_compared_by_the_error_of_their_difference() -> None:
    """Clips share their rows: intervals of the values meet where the difference is many standard errors."""
    both = np.random.default_rng(5).normal(size=500) / 500
    own = np.random.default_rng(6).normal(size=500) / 5000
    error = paired_errors(np.stack([both, both + own]), 500)
    assert error[0, 1] == pytest.approx(math.sqrt((own**2).sum() * 500 / 499))
    apart = 4 * float(error[0, 1])
    assert apart < math.sqrt((both**2).sum())  # less than the error of either value
    assert smallest_harmless(np.array([1.0 - apart, 1.0]), error) == 1
    assert smallest_harmless(np.array([1.0 - apart / 5, 1.0]), error) == 0
    assert smallest_harmless(np.array([1.0, 1.0]), np.zeros((2, 2))) == 1  # a clip that changes nothing is not taken
    assert smallest_harmless(np.array([1.0, 1.0]), np.full((2, 2), math.nan)) == 1


def test_tail_index_of_known_distributions() -> None:
    rng = np.random.default_rng(1)
    for k in (0.2, 0.7, 1.2):
        drawn = np.sort((rng.random(200_000) ** -k - 1) / k + 1)[-1300:]
        assert pareto_tail(drawn) == pytest.approx(k, abs=0.12)
    assert math.isnan(pareto_tail(np.ones(100)))
    assert math.isnan(pareto_tail([1.0, 2.0]))


def test_the_tail_index_is_that_of_zhang_and_stephens() -> None:
    """Number by number, with the prior of ten observations at one half of Vehtari et al."""
    drawn = np.sort(np.random.default_rng(2).pareto(1.5, 40) + 1)
    x = [float(each - drawn[0]) for each in drawn[1:]]
    n, m = len(x), 30 + int(math.sqrt(len(x)))
    quarter = x[int(n / 4 + 0.5) - 1]
    rates = [1 / x[-1] + (1 - math.sqrt(m / (j - 0.5))) / (3 * quarter) for j in range(1, m + 1)]

    def index(rate: float) -> float:
        return math.fsum(math.log1p(-rate * each) for each in x) / n

    fit = [n * (math.log(-rate / index(rate)) - index(rate) - 1) for rate in rates]
    weight = [1 / math.fsum(math.exp(other - own) for other in fit) for own in fit]
    centre = math.fsum(rate * share for rate, share in zip(rates, weight, strict=True))
    assert pareto_tail(drawn) == pytest.approx((n * index(centre) + 5) / (n + 10), rel=1e-9)


def test_each_warning_has_its_threshold() -> None:
    fine = WeightDiagnostics(10_000, 5_000.0, 3.0, 0.001, 0.2, 0.0, 0.0, 0.0, 0.01)
    assert not list(fine.check(INF, kind="rows", beyond=Beyond.MISSING))
    cases = {
        "few-effective-rows": WeightDiagnostics(10_000, 50.0, 3.0, 0.001, 0.2, 0.0, 0.0),
        "heavy-row": WeightDiagnostics(10_000, 5_000.0, 3.0, 0.2, 0.2, 0.0, 0.0),
        "heavy-tail": WeightDiagnostics(10_000, 5_000.0, 3.0, 0.001, 0.8, 0.0, 0.0),
        "much-clipped": WeightDiagnostics(10_000, 5_000.0, 3.0, 0.001, 0.2, 0.1, 0.2),
        "unsupported": WeightDiagnostics(10_000, 5_000.0, 3.0, 0.001, 0.2, 0.0, 0.0, 0.3, 0.01),
        "too-much-weight": WeightDiagnostics(10_000, 5_000.0, 3.0, 0.001, 0.2, 0.0, 0.0, -0.3, 0.01),
    }
    for code, diagnostics in cases.items():
        (warning,) = diagnostics.check(INF, kind="rows", beyond=Beyond.MISSING)
        assert warning.code == code


def test_support_from_candidates_and_from_weights() -> None:
    """Items 1 and 2 compete; the target gives half of its exposure to item 3, which the log cannot show."""
    frame = pl.DataFrame(
        {"session": [1, 1, 2, 2], "item": [1, 2, 1, 2], "position": [1, 2, 1, 2], "reward": [1, 0, 0, 1]}
    ).with_columns(candidates=pl.lit([1, 2]))
    target = pl.DataFrame({"session": [1, 1, 2, 2], "item": [1, 3, 2, 3], "exposure": [0.5] * 4})

    def share(log: pl.DataFrame) -> float | None:
        made = views_of(read(log), {"new": target}, position=Exponential(0.5))["new"]
        return SupportTally.count(made).share()[0]

    assert share(frame) == 0.5
    # from weights: (0.5 / 1 + 0.5 / 0.5) / 2
    assert share(frame.drop("candidates")) == pytest.approx(0.25)
