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

from truerank.core.metric import Metric
from truerank.core.options import Denominator, Discount, Gain, Ideal
from truerank.metrics.additive import DCG, RBP, MeanRR, Precision, Recall
from truerank.metrics.listwise import ERR, NDCG, HitRate, ReciprocalRank, RPrecision
from truerank.metrics.pairwise import AUC, AveragePrecision

TOOLS = ("rectools", "lenskit", "recbole", "replay", "implicit", "ranx", "torchmetrics")
CASES = cases()
# torchmetrics counts in single precision, the others in double
TOLERANCE = {tool: 1e-6 if tool == "torchmetrics" else 1e-9 for tool in TOOLS}
LINEAR, EXPONENTIAL = Gain.LINEAR, Gain.EXPONENTIAL
POSITIVES: Final = Denominator.POSITIVES
SMALLER: Final = Denominator.SMALLER
CUTOFF: Final = Denominator.CUTOFF
LIST: Final = Denominator.LIST


def at_cutoffs(table: dict[str, Callable[[int], Metric]]) -> dict[str, Metric]:
    return {f"{name}@{k}": make(k) for name, make in table.items() for k in CUTOFFS}


# what agrees for every user with a relevant item
SAME: dict[str, dict[str, Metric]] = {
    "rectools": at_cutoffs(
        {
            "Precision": Precision,
            "Precision(r_precision=True)": lambda k: Recall(k, SMALLER),
            "Recall": Recall,
            "HitRate": HitRate,
            "MAP": lambda k: AveragePrecision(k, POSITIVES),
            "MAP(divide_by_k=True)": lambda k: AveragePrecision(k, CUTOFF),
            "NDCG": lambda k: NDCG(k, ideal=Ideal.CUTOFF),
            "NDCG(divide_by_achievable=True)": NDCG,
            "MRR": ReciprocalRank,
        }
    ),
    "lenskit": at_cutoffs(
        {
            "Precision": lambda k: Precision(k, LIST),
            "Recall": lambda k: Recall(k, SMALLER),
            "Hit": HitRate,
            "RecipRank": ReciprocalRank,
            "DCG": lambda k: DCG(k, discount=Discount.ORIGINAL),
            "NDCG": lambda k: NDCG(k, discount=Discount.ORIGINAL),
            "NDCG(gain=rating)": lambda k: NDCG(k, LINEAR, discount=Discount.ORIGINAL),
        }
    ),
    "recbole": at_cutoffs(
        {
            "Hit": HitRate,
            "MRR": ReciprocalRank,
            "MAP": AveragePrecision,
            "Recall": Recall,
            "NDCG": NDCG,
            "Precision": Precision,
        }
    ),
    "replay": at_cutoffs(
        {
            "HitRate": HitRate,
            "MAP": AveragePrecision,
            "MRR": ReciprocalRank,
            "NDCG": NDCG,
            "Precision": Precision,
            "Recall": Recall,
        }
    ),
    "ranx": at_cutoffs(
        {
            "hit_rate": HitRate,
            "precision": Precision,
            "recall": Recall,
            "map": lambda k: AveragePrecision(k, POSITIVES),
            "mrr": ReciprocalRank,
            "dcg": lambda k: DCG(k, LINEAR),
            "dcg_burges": lambda k: DCG(k, EXPONENTIAL),
            "ndcg": lambda k: NDCG(k, LINEAR),
            "ndcg_burges": lambda k: NDCG(k, EXPONENTIAL),
        }
    )
    | {"r-precision": RPrecision(), "mrr": ReciprocalRank(), "rbp.50": RBP(0.5), "rbp.90": RBP(0.9)},
    "torchmetrics": at_cutoffs(
        {
            "precision": Precision,
            "recall": Recall,
            "hit_rate": HitRate,
            "reciprocal_rank": ReciprocalRank,
            "normalized_dcg": NDCG,
            "normalized_dcg(grades)": lambda k: NDCG(k, LINEAR),
        }
    )
    | {"r_precision": RPrecision(), "auroc": AUC()},
}
# what differs, by the name of the test below that states how
RELATED = {
    "lenskit": {"AveragePrecision", "RBP(patience=0.5)"},
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
    assert f"tests/golden/make.py {tool}" in source


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
    for tool in ("rectools", "ranx", "recbole"):
        assert all(user not in values for values in stored(tool)[name].values())
    # RePlay and torchmetrics say 0, and keep them in the mean
    for tool in ("replay", "torchmetrics"):
        assert all(values[user] == 0 for values in stored(tool)[name].values())
    # LensKit: undefined, except Precision and DCG, which are 0 as here
    for metric, values in stored("lenskit")[name].items():
        zero = metric.split("@")[0] in ("Precision", "DCG")
        assert values[user] == 0 if zero else math.isnan(values[user])
    # here: undefined where relevant items are divided by, or looked for; else 0
    undefined: list[Metric] = [Recall(3), AveragePrecision(3), NDCG(3), ReciprocalRank(), RPrecision()]
    assert all(math.isnan(ours(each, CASES[name])[user]) for each in (*undefined, MeanRR(), AUC()))
    nothing: list[Metric] = [Precision(3), HitRate(3), DCG(3), RBP(0.5), ERR(3)]
    assert all(ours(each, CASES[name])[user] == 0 for each in nothing)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("metric", "value"), [("Recall", Recall), ("MAP", AveragePrecision), ("NDCG", NDCG)])
def test_their_means_follow(metric: str, value: Callable[[int], Metric], name: str) -> None:
    # RePlay divides by all users, here by those whose value is defined
    found = [each for each in ours(value(3), CASES[name]).values() if not math.isnan(each)]
    close(math.fsum(found) / len(CASES[name].lists), stored("replay")[name][f"{metric}@3"][MEAN])
    assert np.mean(found) > stored("replay")[name][f"{metric}@3"][MEAN] + 0.01


# ---------------------------------------------------------------------------------------------------- stated relations


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", CUTOFFS)
def test_lenskit_divides_average_precision_by_the_list_where_it_is_shorter(k: int, name: str) -> None:
    case, found = CASES[name], ours(AveragePrecision(k), CASES[name])
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
            close(ours(RBP(0.5), case)[str(user)], theirs[str(user)])


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
            close(ours(AUC(), case)[str(user)], stored("replay")[name][f"RocAuc@{k}"][str(user)])
    assert stored("replay")["example"]["RocAuc@3"]["1"] == 0
    assert ours(AUC(), CASES["example"])["1"] == 0.25


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", CUTOFFS)
def test_implicit_pools_what_it_calls_precision(k: int, name: str) -> None:
    # Σ hits / Σ min(K, relevant) over users with a relevant item: neither a precision nor a mean over users
    case, theirs = CASES[name], stored("implicit")[name]
    users = case.relevant_users
    hits = [k * ours(Precision(k), case)[str(user)] for user in users]
    close(sum(hits) / sum(min(k, len(case.grades[user])) for user in users), theirs[f"precision@{k}"][MEAN])
    for key, metric in (("map", AveragePrecision(k)), ("ndcg", NDCG(k))):
        close(float(np.mean([ours(metric, case)[str(user)] for user in users])), theirs[f"{key}@{k}"][MEAN])


@pytest.mark.parametrize("k", [k for k in CUTOFFS if k >= 10])
def test_implicit_auc_of_whole_lists(k: int) -> None:
    # beyond rank K it takes relevant items as spread evenly over what is left; with whole lists nothing is left
    case = CASES["example"]
    values = [ours(AUC(), case)[str(user)] for user in case.relevant_users]
    close(float(np.mean(values)), stored("implicit")["example"][f"auc@{k}"][MEAN])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", CUTOFFS)
def test_torchmetrics_divides_average_precision_by_hits(k: int, name: str) -> None:
    case, theirs = CASES[name], stored("torchmetrics")[name][f"average_precision@{k}"]
    average, hits = ours(AveragePrecision(k, CUTOFF), case), ours(Precision(k), case)
    for user in theirs:
        close(average[user] / hits[user] if hits[user] else 0.0, theirs[user], tool="torchmetrics")
