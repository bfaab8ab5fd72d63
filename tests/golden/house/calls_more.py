"""Calls of `evaluate` beyond the papers: default estimators, hold-outs, designed samples, judges, pairs, lists."""

from __future__ import annotations

from collections.abc import Iterator

from tests.golden.house.call import Call, Options
from tests.golden.house.calls_labels import SUMS, THREE

MIXED = ["Recall@5", "Precision@5", "DCG@10"]


def _call(name: str, options: Options, *, data: str = "large") -> Call:
    group, _, _ = name.partition("/")
    return Call(name, group, "evaluate", data, options)


def calls() -> Iterator[Call]:
    random: Options = {"exposure": "random", "labels": "random", "models": THREE, "metrics": MIXED}
    for interval in ("population", "design"):
        yield _call(f"post-stratified/{interval}", {**random, "metrics": ["Recall@5", "Recall@20"],
                    "estimators": ["post-stratified"], "interval": interval})  # fmt: skip
    yield _call("post-stratified/biased", {**random, "exposure": "biased", "labels": "biased", "metrics": ["Recall@5"],
                "estimators": ["post-stratified"]})  # fmt: skip
    yield _call("post-stratified/few", {**random, "metrics": ["Recall@5"]}, data="few")
    yield _call("defaults/random", random)
    yield _call("defaults/random/exclude", {**random, "exclude": "train"})
    yield _call("defaults/random/six", {**random, "models": [*THREE, "single", "factors", "constant"]})
    yield _call("defaults/random/all", {**random, "models": [*THREE, "single"], "adjust": "all"})
    yield _call("defaults/random/groups", {**random, "item_groups": "item groups"})
    yield _call("defaults/holdout", {**random, "exposure": "holdout", "labels": "positives", "exclude": "train",
                "metrics": [*MIXED, "nDCG@10", "HitRate@5", "RR", "AP@10"]})  # fmt: skip
    for tool in ("trec_eval", "rectools", "recbole"):
        yield _call(f"defaults/like/{tool}", {"exposure": "holdout", "labels": "positives", "models": THREE,
                    "metrics": ["Recall@5", "nDCG@10"], "like": tool})  # fmt: skip
    designed: Options = {**random, "exposure": "designed", "labels": "biased"}
    yield _call("designed/defaults", designed)
    yield _call("designed/sums", {**designed, "metrics": SUMS, "estimators": ["horvitz-thompson", "hajek"]})
    yield _call("designed/recall", {**designed, "metrics": ["Recall@5"], "estimators": ["pooled", "post-stratified"]})
    for judge in ("judge", "partial judge"):
        short = judge.replace(" ", "-")
        yield _call(f"assisted/{short}", {**random, "judge": judge})
        yield _call(f"assisted/{short}/designed", {**designed, "judge": judge})
    yield _call("assisted/scores", {**random, "assist": "quality", "estimators": ["assisted", "hajek"],
                "metrics": ["Precision@5", "DCG@10"]})  # fmt: skip
    yield _call("assisted/few", {**random, "judge": "judge"}, data="few")
    yield _call("assisted/text", {**random, "judge": "judge"}, data="text")
    yield _call("pairs/random", {**random, "metrics": ["AP@10(denominator=cutoff)", "AUC"]})
    yield _call("pairs/few", {**random, "metrics": ["AP@10(denominator=cutoff)", "AUC"]}, data="few")
    yield _call("lists/metrics", {**random, "exclude": "train", "metrics": ["Coverage@5", "Gini@5", "Novelty@5"]})
