"""What holds for every estimate from a ranked log."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.terms import Terms
from truerank.estimators import ranked
from truerank.estimators.ranked.normalised import IdealSum
from truerank.estimators.ranked.weights import Weighing
from truerank.evaluation.ranked_setting import Prepared, prepare
from truerank.exposure.positions.exponential import Exponential
from truerank.exposure.positions.table import Table
from truerank.report import frames
from truerank.uncertainty.clipping import GRID, paired_errors, smallest_harmless
from truerank.uncertainty.intervals import Population
from truerank.uncertainty.streams import Signed, spreads
from truerank.uncertainty.weight_sums import support, weight_sums
from truerank.uncertainty.weights import WeightDiagnostics, pareto_tail

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


def prepared(frame: pl.DataFrame, **targets: Any) -> Prepared:
    log = tr.read_impressions(frame, extra=["new", "other"])
    chosen = targets or {"new": tr.RankColumn("new"), "other": tr.RankColumn("other")}
    return prepare(log, chosen, position=Exponential(0.7), loggers=None, columns=None, level=0.95)


def lists_of(frame: pl.DataFrame, *, without: int) -> pl.DataFrame:
    """A target's table: its ranks of the logged items, and one more item; some sessions are missing."""
    logged = frame.select("session", "item", rank="other").filter(pl.col("session") % 7 != without)
    last = logged.group_by("session").agg(rank=pl.col("rank").max() + 1).with_columns(item=pl.lit(99, dtype=pl.Int64))
    return pl.concat([logged, last.select(logged.columns).with_columns(pl.col("rank").cast(pl.Int64))])


@pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])
@pytest.mark.parametrize("users", [False, True], ids=["sessions", "users"])
@pytest.mark.parametrize(
    "estimator",
    [
        tr.RankedIPS(),
        tr.RankedIPS(tr.Normaliser.IMPRESSION),
        tr.RankedSNIPS(),
        tr.RankedSNIPS(tr.Normaliser.IMPRESSION),
    ],
    ids=lambda each: f"{each.name} {each.normaliser.value}",
)
def test_passes_over_rows_give_what_terms_give(estimator: Any, users: bool, dense: bool) -> None:
    frame = make_log(3, users=users, dense=dense)
    cases = [prepared(frame).weighings]
    table = lists_of(frame, without=3)
    cases.append(prepared(frame, new=tr.RankColumn("new"), other=table).weighings)
    for made in cases:
        for pair in (Signed(made["new"]), Signed(made["other"]), Signed(made["new"], made["other"])):
            for threads in (1, 2):
                found = spreads(estimator, pair, reward="reward", clips=CLIPS, level=0.9, threads=threads)
                for clip, spread in zip(CLIPS.tolist(), found, strict=True):
                    terms = [estimator.terms(each, reward="reward", clip=clip) for each in pair.both]
                    plain = Population()
                    wanted = plain.around(terms[0], level=0.9) if len(terms) == 1 else plain.between(*terms, level=0.9)
                    for name in ("value", "stderr", "low", "high", "p"):
                        assert getattr(spread, name) == pytest.approx(getattr(wanted, name), rel=1e-10, abs=1e-12)


def test_threads_and_the_order_of_rows_do_not_change_a_bit() -> None:
    frame = make_log(5)
    targets = {"new": tr.RankColumn("new"), "log": tr.RankColumn("position")}
    options: dict[str, Any] = {"position": Exponential(0.7), "clips": CLIPS.tolist()}
    found = [
        tr.off_policy(each, targets, threads=threads, **options).json()
        for each, threads in ((frame, 1), (frame, 3), (frame.reverse(), 2), (frame.sort("item"), 1))
    ]
    assert len(set(found)) == 1


def test_sums_of_weights_for_all_clips_are_those_of_each() -> None:
    frame = make_log(7)
    made = prepared(frame).weighings["new"]
    sums = weight_sums(made, CLIPS)
    for at, clip in enumerate(CLIPS.tolist()):
        weight = made.weights(clip)
        assert sums.total[at] == pytest.approx(weight.sum(), rel=1e-12)
        assert sums.square[at] == pytest.approx((weight**2).sum(), rel=1e-12)
        assert sums.lowered[at] == np.count_nonzero((weight > 0) & (made.weights() > weight * (1 + 1e-15)))
    assert sums.largest[0] == made.weights().max()
    assert sums.at(INF).ess == pytest.approx(made.weights().sum() ** 2 / (made.weights() ** 2).sum())


def test_the_logging_policy_earns_what_it_has_earned() -> None:
    frame = make_log(9)
    results = tr.off_policy(frame, {"log": tr.RankColumn("position")}, position=Exponential(0.7))
    earned = frame.group_by("session").agg(pl.col("reward").sum())["reward"].mean()
    assert [each.value for each in results.estimates] == pytest.approx([earned, earned])
    made = prepared(frame, log=tr.RankColumn("position")).weighings["log"]
    assert made.weights() == pytest.approx(np.ones(len(frame)), abs=1e-15)


def test_clip_one_leaves_raw_labels() -> None:
    """m = 1: Σ c ε, the naive form."""
    made = prepared(make_log(11)).weighings["new"]
    raw = tr.LearntDiscountRaw().terms(made, reward="reward", clip=INF).num
    assert tr.RankedIPS().terms(made, reward="reward", clip=1.0).num == pytest.approx(raw, abs=1e-15)


def test_log_discounts_are_those_of_the_classical_dcg() -> None:
    frame = pl.DataFrame({"session": [1, 1], "item": [1, 2], "position": [1, 2], "reward": [1, 1], "new": [3, 1]})
    log = tr.read_impressions(frame, extra=["new"])
    made = prepare(
        log, {"new": tr.RankColumn("new")}, position=Exponential(0.5), loggers=None, columns=None, level=0.95
    ).weighings["new"]
    assert tr.LogDiscountRaw().terms(made, reward="reward", clip=INF).value() == pytest.approx(0.5 + 1)
    # labels 1 / 1 and 1 / 0.5
    assert tr.LogDiscountDebiased().terms(made, reward="reward", clip=INF).value() == pytest.approx(0.5 + 2)


def test_every_estimator_says_what_it_is() -> None:
    assert set(ranked.catalogue()) == {
        "ips", "snips", "doubly-robust", "ndcg", "post-normalised", "dcg-log-raw", "dcg-log-debiased", "dcg-raw",
    }  # fmt: skip
    for cls in ranked.catalogue().values():
        assert isinstance(cls(), ranked.RankedEstimator)
        assert cls().estimand("like", "session")
        assert "like" in cls().estimand("like", "session")


# ----------------------------------------------------------------------------------------------------- normalised forms


def table_one(item: str) -> Weighing:
    """Table 1 of paper 3: two contexts, two items, top-1 policies; every quality was seen."""
    frame = pl.DataFrame(
        {
            "session": ["x1", "x1", "x2", "x2"], "item": ["a1", "a2", "a1", "a2"], "propensity": [1.0] * 4,
            "reward": [1.0, 0.0, 1.0, 2.5],
        }
    ).with_columns(new=pl.when(pl.col("item") == item).then(1).otherwise(2))  # fmt: skip
    log = tr.read_impressions(frame, extra=["new"])
    top_one = Table((1.0, 0.0))
    return prepare(
        log, {"new": tr.RankColumn("new")}, position=top_one, loggers=None, columns=None, level=0.95
    ).weighings["new"]


@pytest.mark.parametrize(
    ("ideal", "first", "second"),
    [(IdealSum.LABELS, [1.0, 1 / 3.5], [0.0, 2.5 / 3.5]), (IdealSum.ORDER, [1.0, 0.4], [0.0, 1.0])],
    ids=["as printed", "as defined"],
)
def test_table_1_normalising_turns_the_order_round(ideal: IdealSum, first: list[float], second: list[float]) -> None:
    def of(estimator: Any, item: str) -> Terms:
        terms: Terms = estimator.terms(table_one(item), reward="reward", clip=INF)
        return terms

    assert of(tr.RankedIPS(), "a1").num.tolist() == [1.0, 1.0]
    assert of(tr.RankedIPS(), "a2").num.tolist() == [0.0, 2.5]
    assert (of(tr.RankedIPS(), "a1").value(), of(tr.RankedIPS(), "a2").value()) == (1.0, 1.25)
    ndcg = tr.RankedNDCG(ideal)
    assert of(ndcg, "a1").num == pytest.approx(first)
    assert of(ndcg, "a2").num == pytest.approx(second)
    assert of(ndcg, "a1").value() > of(ndcg, "a2").value()  # .64 and .36 printed, .70 and .50 as defined
    assert of(ndcg, "a1").value() == pytest.approx(sum(first) / 2)
    post = tr.RankedPostNormalised(ideal)
    assert of(post, "a1").value() < of(post, "a2").value()


@pytest.mark.parametrize("seed", range(8))
def test_post_normalised_orders_as_dcg_and_ndcg_does_within_one_session(seed: int) -> None:
    made = prepared(make_log(seed)).weighings
    values = {
        name: [each.terms(made[name], reward="reward", clip=INF) for each in
               (tr.RankedIPS(), tr.RankedPostNormalised(), tr.RankedNDCG())]
        for name in ("new", "other")
    }  # fmt: skip
    dcg, post, ndcg = zip(*values.values(), strict=True)
    assert (dcg[0].value() < dcg[1].value()) == (post[0].value() < post[1].value())
    both = ndcg[0].defined & ndcg[1].defined
    assert (np.sign(dcg[0].num - dcg[1].num)[both] == np.sign(ndcg[0].num - ndcg[1].num)[both]).all()
    # sessions without a reward have no ideal: dropped and counted
    assert (~ndcg[0].defined).sum() == np.count_nonzero(made["new"].by_unit(made["new"].log.reward("reward")) == 0)


def test_with_one_reward_everywhere_ndcg_is_dcg() -> None:
    """The same ideal in every session leaves no room for disagreement: one reward at position 1."""
    frame = make_log(2).with_columns(reward=(pl.col("position") == 1).cast(pl.Int8))
    made = prepared(frame).weighings["new"]
    dcg, ndcg = (each.terms(made, reward="reward", clip=INF) for each in (tr.RankedIPS(), tr.RankedNDCG()))
    assert ndcg.num == pytest.approx(dcg.num)


# -------------------------------------------------------------------------------------------- clips, tails, diagnostics


def test_the_chosen_clip_is_reported_with_the_whole_curve() -> None:
    frame = make_log(4, n=300)
    targets = {"new": tr.RankColumn("new"), "log": tr.RankColumn("position")}
    results = tr.off_policy(
        frame, targets, position=Exponential(0.7), clips=tr.AutoClip(), estimators=[tr.RankedIPS()], baseline="log"
    )
    assert len(results.estimates) == 2 * len(GRID)
    assert len(results.comparisons) == len(GRID)
    chosen = {each["of"]: each for each in results.provenance.details["chosen"]}
    assert set(chosen) == {"new", "log", "new - log"}
    tested = [each for each in results.comparisons if not math.isnan(each.p_adjusted)]
    assert [each.clip for each in tested] == [chosen["new - log"]["clip"]]
    assert tested[0].p_adjusted == tested[0].p  # one test, however long the curve
    assert str(results).count("chosen: ") == 3
    assert "over all comparisons shown at chosen clips." in str(results)
    assert results.clips().filter("chosen")["model"].to_list() == ["log", "new"]
    assert sum("chosen for" in note for note in results.notes) == 3
    of_new = [each for each in results.estimates if each.model == "new"]
    value = np.array([each.value for each in of_new])
    assert of_new[smallest_harmless(value, clip_errors(frame))].clip == chosen["new"]["clip"]


def clip_errors(frame: pl.DataFrame) -> Any:
    """The error of the difference between two clips, as that of two models is found."""
    made = prepared(frame).weighings["new"]
    terms = [tr.RankedIPS().terms(made, reward="reward", clip=clip) for clip in GRID]
    return np.array([[Population().between(a, b, level=0.95).stderr for b in terms] for a in terms])


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


def test_no_clip_is_chosen_for_ratios() -> None:
    frame = make_log(4, n=300)
    results = tr.off_policy(
        frame,
        {"new": tr.RankColumn("new")},
        position=Exponential(0.7),
        clips=tr.AutoClip(),
        estimators=[tr.RankedSNIPS(tr.Normaliser.IMPRESSION), tr.RankedNDCG()],
    )
    assert [each["clip"] for each in results.provenance.details["chosen"]] == [None, None]
    assert sum("no clip is chosen for" in note for note in results.notes) == 2


def test_tail_index_of_known_distributions() -> None:
    rng = np.random.default_rng(1)
    for k in (0.2, 0.7, 1.2):
        drawn = np.sort((rng.random(200_000) ** -k - 1) / k + 1)[-1300:]
        assert pareto_tail(drawn) == pytest.approx(k, abs=0.12)
    assert math.isnan(pareto_tail(np.ones(100)))
    assert math.isnan(pareto_tail([1.0, 2.0]))


def test_each_warning_has_its_threshold() -> None:
    fine = WeightDiagnostics(10_000, 5_000.0, 3.0, 0.001, 0.2, 0.0, 0.0, 0.0, 0.01)
    assert fine.warnings(INF) == ()
    cases = {
        "are worth": WeightDiagnostics(10_000, 50.0, 3.0, 0.001, 0.2, 0.0, 0.0),
        "one row carries": WeightDiagnostics(10_000, 5_000.0, 3.0, 0.2, 0.2, 0.0, 0.0),
        "tail index": WeightDiagnostics(10_000, 5_000.0, 3.0, 0.001, 0.8, 0.0, 0.0),
        "takes 20% of the weight": WeightDiagnostics(10_000, 5_000.0, 3.0, 0.001, 0.2, 0.1, 0.2),
        "never shown by the log": WeightDiagnostics(10_000, 5_000.0, 3.0, 0.001, 0.2, 0.0, 0.0, 0.3, 0.01),
        "more than can be": WeightDiagnostics(10_000, 5_000.0, 3.0, 0.001, 0.2, 0.0, 0.0, -0.3, 0.01),
    }
    for words, each in cases.items():
        (warning,) = each.warnings(INF)
        assert words in warning


def test_support_from_candidates_and_from_weights() -> None:
    """Items 1 and 2 compete; the target gives half of its exposure to item 3, which the log cannot show."""
    frame = pl.DataFrame(
        {"session": [1, 1, 2, 2], "item": [1, 2, 1, 2], "position": [1, 2, 1, 2], "reward": [1, 0, 0, 1]}
    ).with_columns(candidates=pl.lit([1, 2]))
    target = pl.DataFrame({"session": [1, 1, 2, 2], "item": [1, 3, 2, 3], "exposure": [0.5] * 4})

    def share(log: pl.DataFrame) -> float | None:
        made = prepare(
            tr.read_impressions(log), {"new": target}, position=Exponential(0.5), loggers=None, columns=None, level=0.95
        )
        return support(made.weighings["new"])[0]

    assert share(frame) == 0.5
    # from weights: (0.5 / 1 + 0.5 / 0.5) / 2
    assert share(frame.drop("candidates")) == pytest.approx(0.25)


def test_without_numba_the_plain_forms_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = make_log(6)
    targets = {"new": tr.RankColumn("new"), "other": tr.RankColumn("other")}
    options: dict[str, Any] = {"position": Exponential(0.7), "clips": CLIPS.tolist()}
    fast = tr.off_policy(frame, targets, **options)
    for module in ("weight_sums", "streams"):
        monkeypatch.setattr(f"truerank.uncertainty.{module}.find_spec", lambda name: None)
    plain = tr.off_policy(frame, targets, **options)
    for a, b in zip((*fast.estimates, *fast.comparisons), (*plain.estimates, *plain.comparisons), strict=True):
        for name in ("value", "difference", "stderr", "low", "high", "p", "ess", "units"):
            if hasattr(a, name):
                assert getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-10, abs=1e-12)


def test_results_as_a_table_say_which_reward_and_clip() -> None:
    frame = make_log(6).with_columns(again=pl.col("reward"))
    targets = {"new": tr.RankColumn("new"), "other": tr.RankColumn("other")}
    results = tr.off_policy(
        frame,
        targets,
        position=Exponential(0.7),
        clips=[2.0, INF],
        rewards=["reward", "again"],
        estimators=[tr.RankedIPS()],
    )
    table = pl.read_csv(frames.csv(results))
    assert table.filter(pl.col("kind") == "comparison").select("reward", "clip").rows() == [
        ("reward", 2.0), ("reward", None), ("again", 2.0), ("again", None),
    ]  # fmt: skip
    assert results.table().shape[0] == 8
    curve = results.clips().filter((pl.col("model") == "new") & (pl.col("reward") == "reward"))
    assert curve["clip"].to_list() == [2.0, INF]
    value = curve["value"].to_list()
    assert curve["shift"].to_list() == [value[0] - value[1], 0.0]
    assert curve["together"][1] == curve["stderr"][1]
