"""What is asked of the code: calls made of text and numbers alone, so that they hold for any interface.

`evaluate` options: labels, models, exclude, candidates, random and features name parts of a data set (`data.py`);
exposure is full, full-negative, random, random:RATE or biased; an estimator is a name, or its name and options.
`offpolicy` options: log and columns (`new=old` renames one), targets and loggers as rank:COLUMN, exposure:COLUMN,
table:FRAME or log; clips as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

FOUND_AT = "50cc53b"
# how far a resampled standard error may lie from the golden: with 200 replicates its own error is 5 %
LOOSE = 0.25
# the same of a jackknife of 40 groups, where it is 11 %
LOOSE_GROUPS = 0.5
EXACT = 1e-12
# a fit that ends when its steps are small
ITERATED = 1e-6


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `exact` is how closely values must agree, relative.

    `resampled`: its intervals are drawn or fitted again, so standard errors may differ by the share `loose`.
    `folds`: its values rest on drawn folds, and are compared within 3 standard errors.
    """

    id: str
    group: str
    kind: str
    data: str
    options: Mapping[str, Any]
    resampled: bool = False
    folds: bool = False
    loose: float = LOOSE
    exact: float = EXACT


# ------------------------------------------------------------------------------------------------------------- metrics

SUMS = ["Precision@5", "Precision@10(denominator=list)", "DCG@10", "RBP@0.8"]
RECALL = ["Recall@5", "MeanRR"]
LISTWISE = [
    "Recall@10(denominator=smaller)", "nDCG@10", "nDCG@10(ideal=cutoff)", "AP@10", "AP@10(denominator=positives)",
    "AP@10(denominator=cutoff)", "AUC", "HitRate@5", "RR", "RR@10", "RPrecision", "ERR@10",
]  # fmt: skip
GRADED_SUMS = ["DCG@10(gain=linear)", "DCG@5(gain=exponential)"]
GRADED = [*GRADED_SUMS, "nDCG@10(gain=linear)", "nDCG@10(gain=exponential)", "nDCG@5(gain=linear,ideal=cutoff)", "ERR@10", "ERR@5(highest=6)"]  # fmt: skip
SHALLOW = ["Recall@5", "Precision@5", "DCG@10", "nDCG@10", "RR@10", "HitRate@10", "AP@5"]
TIES = ["expected", "random", "optimistic", "pessimistic", "strict"]
LABEL_FREE = ["expected", "random", "strict"]
THREE = ["good", "tied", "never"]


def _short(text: str) -> str:
    return text.replace(" ", "-").replace(":", "-")


# ---------------------------------------------------------------------------------------------- full and random labels


def _full() -> Iterator[Call]:
    group = "full"
    for ties in TIES:
        base = {"models": THREE, "ties": ties}
        for labels, exposure in (("full", "full"), ("positives", "full-negative")):
            options = {**base, "labels": labels, "exposure": exposure}
            metrics = [*SUMS, *RECALL, *LISTWISE]
            yield Call(f"full/{exposure}/{ties}", group, "evaluate", "world", {**options, "metrics": metrics})
        options = {**base, "labels": "full graded", "positive": ">3", "metrics": GRADED}
        yield Call(f"full/graded/{ties}", "full-more", "evaluate", "world", options)
    group = "full-more"
    both = {"labels": "full", "models": ["good", "tied"], "metrics": SUMS}
    yield Call(
        "full/graded/unlisted", group, "evaluate", "world",
        {"labels": "positives graded", "positive": ">3", "exposure": "full-negative", "models": THREE, "metrics": GRADED},
    )  # fmt: skip
    yield Call(
        "full/graded/no rule", group, "evaluate", "world",
        {"labels": "full graded", "models": ["good", "tied"], "metrics": ["DCG@10(gain=linear)", "nDCG@10(gain=exponential)"]},
    )  # fmt: skip
    for name in ("horvitz-thompson", "hajek"):
        yield Call(f"full/{name}", group, "evaluate", "world", {**both, "estimators": [name]})
        yield Call(
            f"full/{name}/unlisted", group, "evaluate", "world",
            {**both, "labels": "positives", "exposure": "full-negative", "estimators": [name]},
        )  # fmt: skip
        yield Call(
            f"full/{name}/design", group, "evaluate", "world", {**both, "estimators": [name], "interval": "design"}
        )
    for name in ("pooled", "published"):
        yield Call(f"full/{name}", group, "evaluate", "world", {**both, "estimators": [name], "metrics": RECALL})
    yield Call(
        "full/pooled/unlisted", group, "evaluate", "world",
        {**both, "labels": "positives", "exposure": "full-negative", "estimators": ["pooled"], "metrics": RECALL},
    )  # fmt: skip
    yield Call(
        "full/traditional", group, "evaluate", "world",
        {**both, "estimators": ["full", "traditional"], "metrics": [*SUMS, *RECALL, "AUC", "nDCG@10"]},
    )  # fmt: skip
    yield Call("full/defaults", group, "evaluate", "large", {"labels": "full", "models": ["good", "tied"]})
    yield Call(
        "full/bootstrap", "resampled", "evaluate", "world",
        {**both, "metrics": [*SUMS, *RECALL, "nDCG@10", "AUC"], "interval": "bootstrap:400"}, resampled=True,
    )  # fmt: skip
    yield Call("full/design", group, "evaluate", "world", {**both, "metrics": [*SUMS, "nDCG@10"], "interval": "design"})
    for level in (0.8, 0.99):
        yield Call(f"full/level-{level}", group, "evaluate", "world", {**both, "level": level, "baseline": "tied"})


RANDOM = {
    "published": RECALL,
    "pooled": RECALL,
    "horvitz-thompson": SUMS,
    "hajek": SUMS,
    "traditional": [*SUMS, *RECALL, *LISTWISE],
}


def _random() -> Iterator[Call]:
    for name, metrics in RANDOM.items():
        for ties in TIES if name == "traditional" else LABEL_FREE:
            if (name, ties) == ("hajek", "strict"):
                continue
            options = {"exposure": "random", "labels": "random", "models": THREE, "metrics": metrics, "ties": ties}
            group = "traditional" if name == "traditional" else "random"
            yield Call(f"random/{name}/{ties}", group, "evaluate", "world", {**options, "estimators": [name]})
    group = "random-more"
    for name in ("pooled", "horvitz-thompson", "hajek"):
        for labels, exposure in (("random", "random"), ("bernoulli", "random:0.3")):
            options = {
                "labels": labels, "exposure": exposure, "models": ["good", "tied"], "metrics": RANDOM[name],
                "estimators": [name],
            }  # fmt: skip
            end = f"{name}/{_short(exposure)}"
            yield Call(f"random/design/{end}", group, "evaluate", "large", {**options, "interval": "design"})
            yield Call(
                f"random/bootstrap/{end}", "resampled", "evaluate", "large", {**options, "interval": "bootstrap:300"}, resampled=True
            )  # fmt: skip
            if exposure != "random":
                yield Call(f"random/rate/{end}", group, "evaluate", "large", {**options, "population": "users"})
    for name in ("horvitz-thompson", "hajek", "traditional"):
        metrics = GRADED if name == "traditional" else GRADED_SUMS
        graded = {
            "exposure": "random",
            "labels": "random graded",
            "positive": ">3",
            "models": THREE,
            "metrics": metrics,
        }
        yield Call(f"random/graded/{name}", group, "evaluate", "world", {**graded, "estimators": [name]})
    together = {
        "exposure": "random", "labels": "random", "models": [*THREE, "partial"], "metrics": [*SUMS, *RECALL],
        "estimators": ["pooled", "published", "horvitz-thompson", "hajek", "traditional"],
    }  # fmt: skip
    yield Call("random/all", group, "evaluate", "world", together)
    yield Call("random/all/baseline", group, "evaluate", "world", {**together, "baseline": "tied", "level": 0.9})
    yield Call("random/all/population", group, "evaluate", "world", {**together, "population": "more users"})
    yield Call(
        "random/defaults", group, "evaluate", "large", {"exposure": "random", "labels": "random", "models": THREE}
    )
    yield Call(
        "random/rate/all", group, "evaluate", "world",
        {**together, "labels": "bernoulli", "exposure": "random:0.3", "population": "users"},
    )  # fmt: skip
    yield Call(
        "random/rate/graded", group, "evaluate", "world",
        {
            **together, "labels": "bernoulli graded", "exposure": "random:0.3", "population": "users", "positive": ">3",
            "metrics": GRADED_SUMS, "estimators": ["horvitz-thompson", "hajek"],
        },
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------- scores, catalogue


def _forms() -> Iterator[Call]:
    group = "forms"
    full = {"labels": "full", "metrics": ["Recall@5", "DCG@10", "nDCG@10", "AUC", "RPrecision"]}
    random = {
        "labels": "random", "exposure": "random", "metrics": ["Recall@5", "DCG@10"],
        "estimators": ["pooled", "horvitz-thompson", "hajek"],
    }  # fmt: skip
    negative = {"labels": "positives", "exposure": "full-negative", "metrics": SHALLOW}
    for models in (
        ["factors", "plain factors"], ["function", "turned"], ["single", "constant"], ["table", "never"],
        ["partial", "good"],
    ):  # fmt: skip
        name = "-".join(_short(each) for each in models)
        for kind, options in (("full", full), ("random", random)):
            for ties in ("expected", "random"):
                yield Call(
                    f"forms/{kind}/{name}/{ties}", group, "evaluate", "world", {**options, "models": models, "ties": ties}
                )  # fmt: skip
    group = "lists"
    for models in (["top", "ranks"], ["sparse", "good"]):
        name = "-".join(models)
        for ties in LABEL_FREE:
            yield Call(f"lists/{name}/{ties}", group, "evaluate", "world", {**negative, "models": models, "ties": ties})
        yield Call(
            f"lists/{name}/optimistic", group, "evaluate", "world", {**negative, "models": models, "ties": "optimistic"}
        )
    top = {**negative, "models": ["top", "ranks"]}
    yield Call("lists/n_items", group, "evaluate", "world", {**top, "n_items": 55})
    yield Call("lists/items", group, "evaluate", "world", {**top, "items": "more items"})
    yield Call(
        "lists/n_items/random", group, "evaluate", "world", {**random, "models": ["top", "ranks"], "n_items": 40}
    )
    yield Call(
        "lists/items/random", group, "evaluate", "world", {**random, "models": ["top", "ranks"], "items": "more items"}
    )
    yield Call("lists/exclude", group, "evaluate", "world", {**top, "exclude": "train"})
    yield Call("lists/refused", group, "evaluate", "world", {**top, "metrics": ["Recall@30"]})
    yield Call(
        "lists/published",
        group,
        "evaluate",
        "world",
        {**random, "estimators": ["published"], "metrics": ["Recall@5"], "models": ["top", "ranks"]},
    )
    yield Call("lists/text", group, "evaluate", "text", {**top, "models": ["top", "ranks", "tied"]})
    group = "catalogue"
    for exposure, options in (("full", full), ("full-negative", negative), ("random", random)):
        given = {**options, "models": THREE}
        yield Call(f"exclude/drop/{exposure}", group, "evaluate", "world", {**given, "exclude": "train"})
        among = {"full": "among", "full-negative": "positives among", "random": "random"}[exposure]
        competing = {**given, "labels": among, "candidates": "candidates"}
        yield Call(f"candidates/{exposure}", group, "evaluate", "world", competing)
        if exposure != "random":
            yield Call(
                f"exclude/keep/{exposure}", group, "evaluate", "world", {**given, "exclude": "train", "overlap": "keep"}
            )
        yield Call(f"text/{exposure}", group, "evaluate", "text", {**given, "exclude": "train"})
        yield Call(f"few/{exposure}", group, "evaluate", "few", given)
        yield Call(f"one/{exposure}", group, "evaluate", "one", given)
        yield Call(
            f"few/{exposure}/strict",
            group,
            "evaluate",
            "few",
            {**given, "models": ["constant", "tied"], "ties": "random", "seed": 5},
        )
    yield Call(
        "items/negative", group, "evaluate", "world", {**negative, "models": ["good", "sparse"], "items": "more items"}
    )
    yield Call(
        "exclude/error", group, "evaluate", "world", {**full, "models": THREE, "exclude": "train", "overlap": "error"}
    )
    yield Call(
        "candidates/exclude",
        group,
        "evaluate",
        "world",
        {**random, "models": THREE, "candidates": "candidates", "exclude": "train"},
    )
    yield Call(
        "population/full",
        group,
        "evaluate",
        "world",
        {**negative, "models": ["good", "partial"], "population": "more users"},
    )
    yield Call(
        "threads", group, "evaluate", "large", {**full, "models": ["good", "tied"], "threads": 2, "block_users": 17}
    )
    yield Call(
        "seed", group, "evaluate", "large", {**random, "models": ["tied", "constant"], "ties": "random", "seed": 9}
    )
    for sampler in ("Random@10", "Full", "Skew@8", "Popularity@8", "WTDH@6", "Exposed"):
        options = {
            "labels": "biased plain", "models": THREE, "metrics": ["Recall@5", "nDCG@5", "AUC"], "sampler": sampler,
            "train": True, "seed": 3,
        }  # fmt: skip
        yield Call(f"sampled/{sampler}", "catalogue", "sampled-candidates", "large", options)


# -------------------------------------------------------------------------------------------------------- biased labels


def _biased() -> Iterator[Call]:
    group = "biased"
    base = {"exposure": "biased", "labels": "biased", "models": THREE, "metrics": [*SUMS, "Recall@5"]}
    given = {"name": "doubly-robust", "reward": "quality"}
    for name in ("ips", "snips", "naive"):
        for ties in LABEL_FREE:
            if (name, ties) != ("snips", "strict"):
                yield Call(
                    f"biased/{name}/{ties}", group, "evaluate", "world", {**base, "ties": ties, "estimators": [name]}
                )
    for ties in LABEL_FREE:
        yield Call(
            f"biased/given-rewards/{ties}", group, "evaluate", "world", {**base, "ties": ties, "estimators": [given]}
        )
    for clip in (2.0, 5.0, 50.0):
        clipped = [{"name": name, "clip": clip} for name in ("ips", "snips")] + [{**given, "clip": clip}]
        yield Call(f"biased/clip-{clip:g}", group, "evaluate", "world", {**base, "estimators": clipped})
    several = [
        {"name": "ips"},
        {"name": "ips", "clip": 3.0},
        {"name": "snips", "clip": 3.0},
        {"name": "snips"},
        "naive",
    ]
    group = "biased-more"
    everyone = {**base, "population": "users", "estimators": several}
    yield Call("biased/several", group, "evaluate", "large", everyone)
    yield Call("biased/several/baseline", group, "evaluate", "large", {**everyone, "baseline": "good", "level": 0.9})
    yield Call("biased/exclude", group, "evaluate", "large", {**everyone, "exclude": "train"})
    yield Call(
        "biased/candidates",
        group,
        "evaluate",
        "large",
        {**everyone, "labels": "biased among", "candidates": "candidates"},
    )
    yield Call("biased/partial", group, "evaluate", "large", {**everyone, "models": ["good", "partial", "factors"]})
    yield Call(
        "biased/lists",
        group,
        "evaluate",
        "world",
        {**base, "models": ["top", "ranks"], "metrics": ["DCG@5", "Recall@5"], "estimators": ["ips", "snips"]},
    )
    yield Call(
        "biased/silent",
        group,
        "evaluate",
        "world",
        {**base, "labels": "silent", "estimators": ["ips", "snips", "naive"]},
    )
    yield Call("biased/few", group, "evaluate", "few", {**base, "estimators": ["ips", "snips", "naive", given]})
    yield Call("biased/one", group, "evaluate", "one", {**base, "estimators": ["ips", "snips", "naive", given]})
    yield Call("biased/text", group, "evaluate", "text", {**base, "estimators": ["ips", "snips", "naive", given]})
    yield Call(
        "biased/constant",
        group,
        "evaluate",
        "world",
        {**base, "labels": "constant", "estimators": ["ips", "snips", "naive"]},
    )
    yield Call(
        "biased/defaults", group, "evaluate", "large", {"exposure": "biased", "labels": "biased", "models": THREE}
    )
    yield Call(
        "biased/graded", group, "evaluate", "world",
        {**base, "labels": "biased graded", "positive": ">3", "metrics": GRADED_SUMS, "estimators": ["ips", "snips", given]},
    )  # fmt: skip
    yield Call(
        "biased/refused/metric", group, "evaluate", "world", {**base, "metrics": ["nDCG@10"], "estimators": ["ips"]}
    )
    yield Call(
        "biased/refused/design", group, "evaluate", "world", {**base, "estimators": ["ips"], "interval": "design"}
    )
    group = "resampled"
    yield Call(
        "biased/bootstrap", group, "evaluate", "large", {**base, "estimators": ["ips", "snips", given], "interval": "bootstrap:300"},
        resampled=True,
    )  # fmt: skip
    for name, more in {
        "power-0.5": {"propensity": "power:0.5"},
        "power-1": {"propensity": "power:1"},
        "naive-bayes": {"propensity": "naive-bayes", "random": "slice"},
        "naive-bayes-unseen": {"propensity": "naive-bayes:label,unseen", "random": "slice"},
        "naive-bayes-graded": {
            "propensity": "naive-bayes:rating", "labels": "biased graded", "random": "slice graded", "positive": ">3",
            "metrics": GRADED_SUMS,
        },
        "logistic": {"propensity": "logistic", "user_features": "user features", "item_features": "item features"},
        "logistic-items": {"propensity": "logistic:0.1", "item_features": "item features"},
    }.items():  # fmt: skip
        fitted = {**base, "labels": "biased plain", "models": ["good", "tied"], "interval": "bootstrap:200", **more}
        iterated = ITERATED if name.startswith("logistic") else EXACT
        yield Call(
            f"biased/fitted/{name}", group, "evaluate", "world" if iterated == ITERATED else "large",
            {**fitted, "estimators": ["ips", {"name": "snips", "clip": 8.0}, "snips"]}, resampled=True, exact=iterated,
        )  # fmt: skip
    yield Call(
        "biased/fitted/default interval", group, "evaluate", "world",
        {**base, "labels": "biased plain", "models": ["good", "tied"], "propensity": "power:0.5"}, resampled=True,
    )  # fmt: skip
    yield Call(
        "biased/fitted/refused", group, "evaluate", "world",
        {**base, "labels": "biased plain", "propensity": "power:0.5", "interval": "population"},
    )  # fmt: skip
    for name, reward in {
        "default": {},
        "item-rates": {"reward": "item-rates", "folds": 5, "strength": 2.0},
        "clipped": {"reward": "item-rates", "clip": 4.0},
    }.items():
        for data in ("world", "large"):
            robust = {**base, "estimators": [{"name": "doubly-robust", **reward}]}
            yield Call(f"biased/folds/{name}/{data}", group, "evaluate", data, robust, folds=True)
    yield Call(
        "biased/folds/graded", group, "evaluate", "large",
        {**base, "labels": "biased graded", "positive": ">3", "metrics": GRADED_SUMS, "estimators": ["doubly-robust"]}, folds=True,
    )  # fmt: skip
    yield Call(
        "biased/folds/fitted", group, "evaluate", "large",
        {**base, "labels": "biased plain", "propensity": "power:0.5", "interval": "bootstrap:200", "estimators": ["doubly-robust"]},
        resampled=True, folds=True,
    )  # fmt: skip


def _intervened() -> Iterator[Call]:
    group = "intervened"
    base = {
        "labels": "held out", "exposure": "full-negative", "exclude": "train", "models": THREE,
        "estimators": ["intervened"], "metrics": [*SUMS, *RECALL],
    }  # fmt: skip
    pooled = {"estimators": ["intervened-pooled"], "metrics": ["Recall@5"]}
    for strategy in ("full", "reg", "skew", "wtd", "wtd_h", "popularity-stratified", "equal-per-item"):
        yield Call(
            f"intervened/{strategy}", group, "intervened", "world", {**base, "strategy": strategy, "fraction": 0.4}
        )
        yield Call(
            f"intervened/{strategy}/pooled", group, "intervened", "text", {**base, **pooled, "strategy": strategy}
        )
    for strategy in ("skew", "wtd", "wtd_h"):
        yield Call(
            f"intervened/{strategy}/released",
            group,
            "intervened",
            "world",
            {**base, **pooled, "strategy": strategy, "preset": "released"},
        )
    for ties in LABEL_FREE:
        yield Call(
            f"intervened/ties/{ties}",
            group,
            "intervened",
            "world",
            {**base, "strategy": "skew", "ties": ties, "overlap": "keep"},
        )
    both = {**base, "estimators": ["intervened", "intervened-pooled"], "metrics": ["Recall@5"], "strategy": "wtd_h"}
    yield Call("intervened/both", group, "intervened", "large", {**both, "baseline": "tied", "level": 0.9})
    yield Call(
        "intervened/bootstrap",
        "resampled",
        "intervened",
        "large",
        {**both, "interval": "bootstrap:300"},
        resampled=True,
    )
    yield Call("intervened/lists", group, "intervened", "world", {**both, "models": ["top", "ranks"]})
    drawn = {
        **base,
        "estimators": ["full"],
        "metrics": ["Recall@5", "nDCG@10"],
        "overlap": "keep",
        "draw": True,
        "seed": 4,
    }
    for strategy in ("reg", "skew", "wtd_h"):
        yield Call(f"intervened/drawn/{strategy}", group, "intervened", "world", {**drawn, "strategy": strategy})


# ----------------------------------------------------------------------------------------------------------- off-policy

BASE = ["session", "item", "position", "click", "new", "other", "blank"]
USERS = [*BASE, "user"]
COUNTED = [*USERS, "candidates"]
NEW = {"new": "rank:new"}
BOTH = {"new": "rank:new", "log": "log"}
TABLES = {"new": "table:table", "other": "table:other table", "log": "log"}
CLICK = ["click"]
CLIPS = "1,2,4,8,32,inf"
EVERY = ["ips", "snips", "ndcg", "post-normalised", "dcg-log-raw", "dcg-log-debiased", "dcg-raw"]


def _off(end: str, options: Mapping[str, Any], *, group: str = "offpolicy", data: str = "feed", **more: Any) -> Call:
    plain = {"log": "viewed", "columns": USERS, "targets": BOTH, "rewards": CLICK, "position": "exp:0.8", **options}
    kept = {name: value for name, value in plain.items() if value is not None}
    kept["columns"] = list(dict.fromkeys([*kept["columns"], *kept.get("rewards", ())]))
    return Call(f"offpolicy/{end}", group, "offpolicy", data, kept, **more)


def _offpolicy_estimators() -> Iterator[Call]:
    for name in EVERY:
        one = {"estimators": [name], "columns": COUNTED, "clips": CLIPS}
        yield _off(f"{name}/columns", {**one, "targets": {**BOTH, "other": "rank:other"}})
        yield _off(f"{name}/tables", {**one, "targets": TABLES})
        yield _off(f"{name}/sessions alone", {**one, "columns": [*BASE, "candidates"], "targets": TABLES})
        yield _off(f"{name}/partial", {**one, "targets": {"new": "rank:new", "other": "table:partial table"}})
    for normaliser in ("session", "impression", "mean-of-means"):
        ips = [{"name": "ips", "normaliser": normaliser}]
        snips = [{"name": "snips", "normaliser": normaliser}] if normaliser != "mean-of-means" else []
        one = {"columns": COUNTED, "clips": "4,inf", "estimators": ips + snips, "rewards": ["click", "dwell", "value"]}
        yield _off(f"normaliser/{normaliser}", one)
        yield _off(f"normaliser/{normaliser}/sessions alone", {**one, "columns": [*BASE, "candidates"]})
        yield _off(f"normaliser/{normaliser}/declared", {**one, "sessions": "sessions"})
    yield _off("normaliser/default impression", {"normaliser": "impression"})
    yield _off("normaliser/refused", {"estimators": [{"name": "snips", "normaliser": "mean-of-means"}]})
    for ideal in ("order", "labels"):
        both = [{"name": name, "ideal": ideal} for name in ("ndcg", "post-normalised")]
        yield _off(f"ideal/{ideal}", {"estimators": both, "clips": "2,8,inf", "rewards": ["click", "dwell"]})
    yield _off("all", {"estimators": EVERY, "columns": COUNTED, "targets": TABLES, "rewards": ["click", "like"]})
    yield _off("defaults", {"columns": COUNTED})
    yield _off("defaults/snips left out", {})
    given = {"name": "doubly-robust", "model": "column"}
    predicted = {"columns": [*USERS, "prediction"], "targets": {"new": "table:predicted table"}}
    yield _off("given predictions", {**predicted, "estimators": [given], "clips": CLIPS})
    yield _off(
        "given predictions/displayed", {**predicted, "log": "displayed", "rows": "displayed", "estimators": [given]}
    )
    for name, options in {
        "default": {"estimators": ["doubly-robust"], "clips": "4,inf"},
        "few folds": {"estimators": [{"name": "doubly-robust", "folds": 2, "strength": 5.0}]},
        "no users": {"estimators": ["doubly-robust"], "columns": BASE},
        "displayed": {"estimators": ["doubly-robust"], "log": "displayed", "rows": "displayed"},
        "exposures": {"estimators": ["doubly-robust"], "targets": {"new": "table:exposure table"}},
    }.items():
        tables = {"new": "table:table", "other": "table:other table"}
        yield _off(f"folds/{name}", {"targets": tables, **options}, group="offpolicy-resampled", folds=True)


def _offpolicy_logs() -> Iterator[Call]:
    group = "offpolicy-logs"
    rewards = ["click", "dwell", "value", "like"]
    every = [*COUNTED, "dwell", "value", "like"]
    yield _off("rewards", {"columns": every, "rewards": rewards, "clips": "1,8,inf"}, group=group)
    yield _off(
        "one reward",
        {"columns": ["session", "item", "position", "reward=dwell", "new"], "targets": BOTH, "rewards": None},
        group=group,
    )
    yield _off(
        "mixed order", {"log": "mixed order", "columns": every, "rewards": rewards, "clips": "8,inf"}, group=group
    )
    yield _off("declared", {"columns": COUNTED, "sessions": "sessions", "targets": TABLES}, group=group)
    yield _off("declared/users", {"columns": USERS, "sessions": "sessions"}, group=group)
    yield _off(
        "blank", {"columns": COUNTED, "targets": {"blank": "rank:blank", "log": "log"}, "clips": "2,inf"}, group=group
    )
    yield _off("longer", {"targets": {"long": "table:longer table", "log": "log"}}, group=group)
    yield _off(
        "exposure table", {"targets": {"new": "table:exposure table", "log": "log"}, "clips": "4,inf"}, group=group
    )
    yield _off("flagged", {"log": "displayed", "columns": [*COUNTED, "viewed"], "clips": "4,inf"}, group=group)
    yield _off("flagged/tables", {"log": "displayed", "columns": [*USERS, "viewed"], "targets": TABLES}, group=group)
    yield _off(
        "displayed",
        {"log": "displayed", "rows": "displayed", "estimators": ["ips", "ndcg", "post-normalised"]},
        group=group,
    )
    yield _off(
        "displayed/tables",
        {"log": "displayed", "rows": "displayed", "targets": TABLES, "clips": "3,inf", "estimators": ["ips"]},
        group=group,
    )
    yield _off("listed", {"columns": [*USERS, "candidates=listed"], "clips": "4,inf"}, group=group)
    yield _off("no users", {"columns": BASE, "clips": "4,inf"}, group=group)
    yield _off(
        "baseline", {"targets": {**TABLES, "blank": "rank:blank"}, "baseline": "log", "clips": "8,inf"}, group=group
    )
    for level in (0.5, 0.99):
        yield _off(f"level-{level}", {"level": level, "columns": COUNTED}, group=group)
    yield _off("threads", {"columns": COUNTED, "threads": 2, "clips": CLIPS}, group=group)
    propensities = [*USERS, "propensity", "exposed", "candidates"]
    yield _off(
        "propensities",
        {
            "columns": propensities,
            "position": None,
            "targets": {"new": "exposure:exposed", "log": "exposure:propensity"},
            "clips": "2,8,inf",
            "normaliser": "impression",
        },
        group=group,
    )
    yield _off("propensities/position", {"columns": propensities, "clips": "2,8,inf"}, group=group)
    yield _off(
        "propensities/tables",
        {"columns": propensities, "position": None, "targets": {"new": "table:exposure table"}},
        group=group,
    )
    for name, data in {"user": "loggers by user", "session": "loggers by session"}.items():
        several = {
            "columns": [*COUNTED, "logger", "a", "b"],
            "loggers": {"a": "rank:a", "b": "rank:b"},
            "clips": "2,inf",
        }
        yield _off(f"loggers/{name}", several, group=group, data=data)
        yield _off(
            f"loggers/{name}/no users", {**several, "columns": [*BASE, "logger", "a", "b"]}, group=group, data=data
        )
        yield _off(
            f"loggers/{name}/groups", {**several, "columns": [*several["columns"], "group"]}, group=group, data=data
        )
        exposed = {
            **several,
            "columns": [*COUNTED, "logger", "exposed_a", "exposed_b"],
            "loggers": {"a": "exposure:exposed_a", "b": "exposure:exposed_b"},
        }
        yield _off(f"loggers/{name}/exposures", exposed, group=group, data=data)
    bandit = {
        "log": "rows",
        "columns": ["item", "reward", "propensity", "new", "other"],
        "position": None,
        "rewards": None,
    }
    chosen = {"targets": {"new": "exposure:new", "other": "exposure:other", "log": "exposure:propensity"}}
    yield _off("bandit", {**bandit, **chosen, "clips": CLIPS}, group=group, data="bandit")
    yield _off(
        "bandit/users",
        {**bandit, **chosen, "columns": [*bandit["columns"], "user"], "clips": "3,inf"},
        group=group,
        data="bandit",
    )
    yield _off("bandit/few", {**bandit, **chosen, "log": "few"}, group=group, data="bandit")
    yield _off(
        "bandit/rewards",
        {**bandit, **chosen, "columns": [*bandit["columns"], "spent"], "rewards": ["reward", "spent"]},
        group=group,
        data="bandit",
    )
    yield _off("few", {"log": "few", "columns": COUNTED, "clips": "2,inf", "estimators": EVERY}, group=group)
    yield _off("one user", {"log": "one user", "columns": COUNTED}, group=group)
    yield _off("one session", {"log": "one session", "columns": COUNTED}, group=group)
    yield _off("silent", {"columns": COUNTED, "targets": TABLES}, group=group, data="silent feed")
    yield _off("silent/ndcg", {"columns": COUNTED, "estimators": ["ndcg"]}, group=group, data="silent feed")
    yield _off("refused/design", {"interval": "design"}, group=group)
    yield _off("refused/no model", {"position": None}, group=group)
    for clips in ("auto", "1,inf"):
        yield _off(
            f"clips/{clips}",
            {"clips": clips, "columns": COUNTED, "rewards": ["click", "dwell"], "targets": TABLES},
            group=group,
        )
    yield _off(
        "clips/auto/all",
        {"clips": "auto", "columns": COUNTED, "estimators": ["ips", "dcg-log-debiased", "dcg-raw"]},
        group=group,
    )
    for name, options in {
        "columns": {"columns": COUNTED, "clips": "2,inf"},
        "no users": {"columns": BASE},
        "tables": {"targets": TABLES, "estimators": ["ips", "snips", "post-normalised", "ndcg"]},
        "bandit": {**bandit, **chosen},
        "loggers": {"columns": [*COUNTED, "logger", "a", "b"], "loggers": {"a": "rank:a", "b": "rank:b"}},
    }.items():
        data = {"bandit": "bandit", "loggers": "loggers by user"}.get(name, "feed")
        yield _off(
            f"bootstrap/{name}",
            {**options, "interval": "bootstrap:300"},
            group="offpolicy-resampled",
            data=data,
            resampled=True,
        )


def _offpolicy_positions() -> Iterator[Call]:
    group = "offpolicy-positions"
    shown = {"columns": COUNTED, "clips": "4,inf"}
    for text in (
        "exp:0.75",
        "exp:0.9@8",
        "yule:1.2",
        "log",
        "log:3",
        "log@10",
        "table:1:0.8:0.6:0.5:0.45:0.4:0.35:0.3:0.3:0.2:0.2:0.1",
    ):
        log = "short" if "@" in text else "viewed"
        yield _off(
            f"position/{text}",
            {
                **shown,
                "log": log,
                "position": text,
                "targets": {"new": "table:table", "other": "rank:other", "log": "log"},
            },
            group=group,
        )
    places = [*USERS, "surface", "group"]
    for name, text in {
        "surface": "main=exp:0.7,side=yule:1.5", "group": "*/old=exp:0.7,*/young=exp:0.85", "default": "*=log,side=exp:0.8",
        "both": "main=exp:0.8,side/old=yule:1.4,side/young=log",
    }.items():  # fmt: skip
        yield _off(f"position/by {name}", {"columns": places, "position": text, "clips": "4,inf"}, group=group)
        surface = {"new": "table:surface table", "other": "table:other table"}
        yield _off(f"position/by {name}/table", {"columns": places, "position": text, "targets": surface}, group=group)
    group = "offpolicy-resampled"
    loose = {"group": group, "resampled": True, "loose": LOOSE_GROUPS}
    for family in ("exp", "yule", "log", "table"):
        exact = EXACT if family in ("exp", "table") else ITERATED
        yield _off(f"fit/{family}", {**shown, "position": f"fit:{family}"}, **loose, exact=exact)
    yield _off("fit/exp@6", {"position": "fit:exp@6", "log": "short", "columns": BASE}, **loose)
    yield _off(
        "fit/exp/tables", {"position": "fit:exp", "targets": TABLES, "estimators": ["ips", "snips", "ndcg"]}, **loose
    )
    yield _off("fit/exp/flagged", {"position": "fit:exp", "log": "displayed", "columns": [*USERS, "viewed"]}, **loose)
    yield _off("fit/by surface", {"position": "main=fit:exp,side=fit:yule", "columns": places}, **loose, exact=ITERATED)
    yield _off("fit/by group", {"position": "*/old=fit:exp,*/young=exp:0.8", "columns": places}, **loose)
    yield _off("fit/small", {"position": "fit:exp", "rewards": ["click"]}, data="small feed", **loose)
    displayed = {"log": "displayed", "rows": "displayed", "estimators": ["ips"], "targets": NEW}
    for family in ("clicks", "harvest"):
        yield _off(
            f"fit/{family}", {**displayed, "position": f"fit:{family}"}, data="shuffled feed", **loose, exact=ITERATED
        )
    yield _off("fit/refused", {"position": "fit:exp", "interval": "bootstrap:200"}, group=group)
    yield _off(
        "fit/folds",
        {"position": "fit:exp", "targets": {"new": "table:table"}, "estimators": ["doubly-robust"]},
        folds=True,
        **loose,
    )


# -------------------------------------------------------------------------------------------------------------- studies


def _studies() -> Iterator[Call]:
    group = "studies"
    metrics = ["Recall@5", "nDCG@10"]
    small = {
        "metrics": metrics,
        "sparsities": [0.0, 0.5],
        "sizes": [2, 6],
        "samplers": ["Full", "Exposed", "Random", "Skew"],
    }
    yield Call(
        "study/published", group, "study", "study", {**small, "loggers": ["uniform", "popularity"]}, resampled=True
    )
    yield Call(
        "study/released", group, "study", "study",
        {**small, "preset": "released", "loggers": ["uniform", "positivity"], "samplers": ["Full", "WTD", "Popularity"], "seed": 2},
        resampled=True,
    )  # fmt: skip
    yield Call(
        "study/repeated", group, "study", "study",
        {**small, "loggers": ["positivity"], "repetitions": 2, "exclude": True, "samplers": ["Full", "Random@e", "WTDH"], "level": 0.9},
        resampled=True,
    )  # fmt: skip
    models = ["m0", "m1", "m2"]
    yield Call(
        "coverage/uniform", group, "coverage", "study",
        {"models": models, "drawing": {"n": 12}, "estimators": ["pooled", "published"], "metrics": ["Recall@5"], "runs": 20},
    )  # fmt: skip
    yield Call(
        "coverage/design", group, "coverage", "study",
        {
            "models": models, "drawing": {"n": 12}, "estimators": ["horvitz-thompson", "hajek"], "metrics": ["DCG@10"], "runs": 20,
            "interval": "design",
        },
    )  # fmt: skip
    yield Call(
        "coverage/biased", group, "coverage", "study",
        {"models": models, "drawing": {}, "estimators": ["ips", "snips", "naive"], "metrics": ["DCG@10", "Recall@5"], "runs": 20},
    )  # fmt: skip


CALLS: tuple[Call, ...] = (
    *_full(), *_random(), *_forms(), *_biased(), *_intervened(), *_offpolicy_estimators(), *_offpolicy_logs(),
    *_offpolicy_positions(), *_studies(),
)  # fmt: skip
GROUPS: tuple[str, ...] = tuple(dict.fromkeys(call.group for call in CALLS))


def of_group(group: str) -> tuple[Call, ...]:
    return tuple(call for call in CALLS if call.group == group)
