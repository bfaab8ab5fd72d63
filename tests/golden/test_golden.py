"""Values that other tools gave on a small input, stored beside the scripts that made them, against ours.

Every metric of a tool is here: equal to 1e-9, or in the exact relation that is stated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Final

import numpy as np
import pytest
from golden_values import CUTOFFS, HERE, MEAN, Case, cases, ours, stored

import truerank as tr
from truerank.core.metric import Metric

TOOLS = ("rectools", "lenskit", "replay", "implicit", "ranx", "torchmetrics")
CASES = cases()
# torchmetrics counts in single precision, the others in double
TOLERANCE = {tool: 1e-6 if tool == "torchmetrics" else 1e-9 for tool in TOOLS}
LINEAR, EXPONENTIAL = tr.Gain.LINEAR, tr.Gain.EXPONENTIAL
POSITIVES: Final = tr.Denominator.POSITIVES
SMALLER: Final = tr.Denominator.SMALLER
CUTOFF: Final = tr.Denominator.CUTOFF
LIST: Final = tr.Denominator.LIST


def at_cutoffs(table: dict[str, Callable[[int], Metric]]) -> dict[str, Metric]:
    return {f"{name}@{k}": make(k) for name, make in table.items() for k in CUTOFFS}


# what agrees for every user with a relevant item
SAME: dict[str, dict[str, Metric]] = {
    "rectools": at_cutoffs(
        {
            "Precision": tr.Precision,
            "Precision(r_precision=True)": lambda k: tr.Recall(k, SMALLER),
            "Recall": tr.Recall,
            "HitRate": tr.HitRate,
            "MAP": lambda k: tr.AveragePrecision(k, POSITIVES),
            "MAP(divide_by_k=True)": lambda k: tr.AveragePrecision(k, CUTOFF),
            "NDCG": lambda k: tr.NDCG(k, ideal=tr.Ideal.CUTOFF),
            "NDCG(divide_by_achievable=True)": tr.NDCG,
            "MRR": tr.ReciprocalRank,
        }
    ),
    "lenskit": at_cutoffs(
        {
            "Precision": lambda k: tr.Precision(k, LIST),
            "Recall": lambda k: tr.Recall(k, SMALLER),
            "Hit": tr.HitRate,
            "RecipRank": tr.ReciprocalRank,
        }
    ),
    "replay": at_cutoffs(
        {
            "HitRate": tr.HitRate,
            "MAP": tr.AveragePrecision,
            "MRR": tr.ReciprocalRank,
            "NDCG": tr.NDCG,
            "Precision": tr.Precision,
            "Recall": tr.Recall,
        }
    ),
    "ranx": at_cutoffs(
        {
            "hit_rate": tr.HitRate,
            "precision": tr.Precision,
            "recall": tr.Recall,
            "map": lambda k: tr.AveragePrecision(k, POSITIVES),
            "mrr": tr.ReciprocalRank,
            "dcg": lambda k: tr.DCG(k, LINEAR),
            "dcg_burges": lambda k: tr.DCG(k, EXPONENTIAL),
            "ndcg": lambda k: tr.NDCG(k, LINEAR),
            "ndcg_burges": lambda k: tr.NDCG(k, EXPONENTIAL),
        }
    )
    | {"r-precision": tr.RPrecision(), "mrr": tr.ReciprocalRank(), "rbp.50": tr.RBP(0.5), "rbp.90": tr.RBP(0.9)},
    "torchmetrics": at_cutoffs(
        {
            "precision": tr.Precision,
            "recall": tr.Recall,
            "hit_rate": tr.HitRate,
            "reciprocal_rank": tr.ReciprocalRank,
            "normalized_dcg": tr.NDCG,
            "normalized_dcg(grades)": lambda k: tr.NDCG(k, LINEAR),
        }
    )
    | {"r_precision": tr.RPrecision(), "auroc": tr.AUC()},
}
# what differs, by the name of the test below that states how
RELATED = {
    "lenskit": {"AveragePrecision", "DCG", "NDCG", "NDCG(gain=rating)", "RBP(patience=0.5)"},
    "replay": {"RocAuc"},
    "ranx": {"rbp.50 of grades"},
    "implicit": {"precision", "map", "ndcg", "auc"},
    "torchmetrics": {"average_precision"},
}


def close(found: float, wanted: float, *, tool: str = "") -> None:
    assert found == pytest.approx(wanted, rel=0, abs=TOLERANCE.get(tool, 1e-9))


@pytest.mark.parametrize("tool", TOOLS)
def test_every_metric_of_a_tool_is_compared(tool: str) -> None:
    for metrics in stored(tool).values():
        named = {name for name in metrics if name not in SAME.get(tool, {})}
        assert {name.split("@")[0] for name in named} == RELATED.get(tool, set())


@pytest.mark.parametrize("tool", TOOLS)
def test_source_says_how_the_values_were_made(tool: str) -> None:
    source = (HERE / tool / "source.md").read_text()
    assert json.loads((HERE / tool / "expected.json").read_text())["version"] in source
    assert f"tests/golden/{tool}/make.py" in source


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("tool", "metric"), [(tool, metric) for tool in SAME for metric in SAME[tool]])
def test_equal_for_every_user_with_a_relevant_item(tool: str, metric: str, name: str) -> None:
    case, theirs = CASES[name], stored(tool)[name][metric]
    found = ours(SAME[tool][metric], case)
    compared = [str(user) for user in case.relevant_users if str(user) in theirs]
    assert len(compared) >= (2 if name == "example" else 7)
    for user in compared:
        # both say that there is nothing to divide by, or both give the same number
        assert math.isnan(theirs[user]) == math.isnan(found[user]), user
        if not math.isnan(found[user]):
            close(found[user], theirs[user], tool=tool)


# ------------------------------------------------------------------------------------- users without a relevant item


def without_positives(case: Case) -> str:
    (user,) = set(case.lists) - set(case.relevant_users)
    return str(user)


@pytest.mark.parametrize("name", CASES)
def test_users_without_a_relevant_item(name: str) -> None:
    user = without_positives(CASES[name])
    # RecTools and ranx leave them out of everything (ranx cannot take them at all)
    for tool in ("rectools", "ranx"):
        assert all(user not in values for values in stored(tool)[name].values())
    # RePlay and torchmetrics say 0, and keep them in the mean
    for tool in ("replay", "torchmetrics"):
        assert all(values[user] == 0 for values in stored(tool)[name].values())
    # LensKit: undefined, except Precision and DCG, which are 0 as here
    for metric, values in stored("lenskit")[name].items():
        zero = metric.split("@")[0] in ("Precision", "DCG")
        assert values[user] == 0 if zero else math.isnan(values[user])
    # here: undefined where relevant items are divided by, or looked for; else 0
    undefined: list[Metric] = [tr.Recall(3), tr.AveragePrecision(3), tr.NDCG(3), tr.ReciprocalRank(), tr.RPrecision()]
    assert all(math.isnan(ours(each, CASES[name])[user]) for each in (*undefined, tr.MeanRR(), tr.AUC()))
    nothing: list[Metric] = [tr.Precision(3), tr.HitRate(3), tr.DCG(3), tr.RBP(0.5), tr.ERR(3)]
    assert all(ours(each, CASES[name])[user] == 0 for each in nothing)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("metric", "value"), [("Recall", tr.Recall), ("MAP", tr.AveragePrecision), ("NDCG", tr.NDCG)])
def test_their_means_follow(metric: str, value: Callable[[int], Metric], name: str) -> None:
    # RePlay divides by all users, here by those whose value is defined
    found = [each for each in ours(value(3), CASES[name]).values() if not math.isnan(each)]
    close(math.fsum(found) / len(CASES[name].lists), stored("replay")[name][f"{metric}@3"][MEAN])
    assert np.mean(found) > stored("replay")[name][f"{metric}@3"][MEAN] + 0.01


# ---------------------------------------------------------------------------------------------------- stated relations


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", CUTOFFS)
def test_lenskit_divides_average_precision_by_the_list_where_it_is_shorter(k: int, name: str) -> None:
    case, found = CASES[name], ours(tr.AveragePrecision(k), CASES[name])
    for user in case.relevant_users:
        theirs = stored("lenskit")[name][f"AveragePrecision@{k}"][str(user)]
        n, length = len(case.grades[user]), min(k, len(case.lists[user]))
        if length == 0:
            assert math.isnan(theirs)
            assert found[str(user)] == 0
        else:
            close(found[str(user)] * min(k, n) / min(length, n), theirs)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", CUTOFFS)
def test_lenskit_does_not_discount_rank_two(k: int, name: str) -> None:
    # its discount is max(1, log2(rank)), here log2(rank + 1)
    def worth(rank: int) -> float:
        return 1 / max(1.0, math.log2(rank))

    case, theirs = CASES[name], stored("lenskit")[name]
    for user in case.relevant_users:
        listed, grades = enumerate(case.lists[user][:k], start=1), case.grades[user]
        gains = [(grades.get(item, 0), worth(rank)) for rank, item in listed]
        best = sorted(grades.values(), reverse=True)[:k]
        dcg = math.fsum(w for g, w in gains if g)
        close(dcg, theirs[f"DCG@{k}"][str(user)])
        close(dcg / math.fsum(map(worth, range(1, len(best) + 1))), theirs[f"NDCG@{k}"][str(user)])
        graded = math.fsum(g * worth(r) for r, g in enumerate(best, start=1))
        close(math.fsum(g * w for g, w in gains) / graded, theirs[f"NDCG(gain=rating)@{k}"][str(user)])
    if name == "example" and k == 3:
        assert abs(ours(tr.NDCG(3), case)["1"] - theirs["NDCG@3"]["1"]) > 0.05


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", CUTOFFS)
def test_lenskit_cuts_rank_biased_precision(k: int, name: str) -> None:
    # nothing beyond rank K counts there; the whole list gives the value here
    case, theirs = CASES[name], stored("lenskit")[name][f"RBP(patience=0.5)@{k}"]
    for user in case.relevant_users:
        ranks = [r for r, item in enumerate(case.lists[user][:k], start=1) if item in case.grades[user]]
        if math.isnan(theirs[str(user)]):
            assert not case.lists[user]
            continue
        close(math.fsum(0.5**r for r in ranks), theirs[str(user)])
        if k == max(CUTOFFS):
            close(ours(tr.RBP(0.5), case)[str(user)], theirs[str(user)])


@pytest.mark.parametrize("name", CASES)
def test_ranx_multiplies_rank_biased_precision_by_the_grade(name: str) -> None:
    case = CASES[name]
    for user, theirs in stored("ranx")[name]["rbp.50 of grades"].items():
        if user != MEAN:
            grades = case.grades[int(user)]
            ranked = enumerate(case.lists[int(user)], start=1)
            close(math.fsum(grades.get(item, 0) * 0.5**rank for rank, item in ranked), theirs)


@pytest.mark.parametrize("name", CASES)
def test_replay_measures_the_curve_within_the_list(name: str) -> None:
    # with the whole catalogue in the list it is AUC; else it compares only items of the list
    case, k = CASES[name], max(CUTOFFS)
    whole = [user for user in case.relevant_users if len(case.lists[user]) == len(case.items)]
    assert whole
    for user in whole:
        if len(case.grades[user]) < len(case.items):
            close(ours(tr.AUC(), case)[str(user)], stored("replay")[name][f"RocAuc@{k}"][str(user)])
    assert stored("replay")["example"]["RocAuc@3"]["1"] == 0
    assert ours(tr.AUC(), CASES["example"])["1"] == 0.25


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", CUTOFFS)
def test_implicit_pools_what_it_calls_precision(k: int, name: str) -> None:
    # Σ hits / Σ min(K, relevant) over users with a relevant item: neither a precision nor a mean over users
    case, theirs = CASES[name], stored("implicit")[name]
    users = case.relevant_users
    hits = [k * ours(tr.Precision(k), case)[str(user)] for user in users]
    close(sum(hits) / sum(min(k, len(case.grades[user])) for user in users), theirs[f"precision@{k}"][MEAN])
    for key, metric in (("map", tr.AveragePrecision(k)), ("ndcg", tr.NDCG(k))):
        close(float(np.mean([ours(metric, case)[str(user)] for user in users])), theirs[f"{key}@{k}"][MEAN])


@pytest.mark.parametrize("k", [k for k in CUTOFFS if k >= 10])
def test_implicit_auc_of_whole_lists(k: int) -> None:
    # beyond rank K it takes relevant items as spread evenly over what is left; with whole lists nothing is left
    case = CASES["example"]
    values = [ours(tr.AUC(), case)[str(user)] for user in case.relevant_users]
    close(float(np.mean(values)), stored("implicit")["example"][f"auc@{k}"][MEAN])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", CUTOFFS)
def test_torchmetrics_divides_average_precision_by_hits(k: int, name: str) -> None:
    case, theirs = CASES[name], stored("torchmetrics")[name][f"average_precision@{k}"]
    average, hits = ours(tr.AveragePrecision(k, CUTOFF), case), ours(tr.Precision(k), case)
    for user in theirs:
        close(average[user] / hits[user] if hits[user] else 0.0, theirs[user], tool="torchmetrics")
