"""Calls of `evaluate` on labels of unequal exposure: propensities given and fitted, clips, rewards, interventions."""

from __future__ import annotations

from collections.abc import Iterator

from tests.golden.house.call import EXACT, ITERATED, Call, Options
from tests.golden.house.calls_labels import GRADED_SUMS, LABEL_FREE, RECALL, SUMS, THREE

# -------------------------------------------------------------------------------------------------------- biased labels


def _biased() -> Iterator[Call]:
    group = "biased"
    base: Options = {"exposure": "biased", "labels": "biased", "models": THREE, "metrics": [*SUMS, "Recall@5"]}
    given: Options = {"name": "doubly-robust", "reward": "quality"}
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
    everyone: Options = {**base, "population": "users", "estimators": several}
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
        "biased/graded",
        group,
        "evaluate",
        "world",
        {
            **base,
            "labels": "biased graded",
            "positive": ">3",
            "metrics": GRADED_SUMS,
            "estimators": ["ips", "snips", given],
        },
    )
    yield Call(
        "biased/refused/metric", group, "evaluate", "world", {**base, "metrics": ["nDCG@10"], "estimators": ["ips"]}
    )
    yield Call(
        "biased/refused/design", group, "evaluate", "world", {**base, "estimators": ["ips"], "interval": "design"}
    )
    group = "resampled"
    yield Call(
        "biased/bootstrap",
        group,
        "evaluate",
        "large",
        {**base, "estimators": ["ips", "snips", given], "interval": "bootstrap:300"},
    )
    plain: Options = {
        "exposure": "biased",
        "labels": "biased plain",
        "models": ["good", "tied"],
        "metrics": ["DCG@10", "Recall@5"],
    }
    models: dict[str, Options] = {
        "power-0.5": {"propensity": "power:0.5"},
        "power-1": {"propensity": "power:1"},
        "naive-bayes": {"propensity": "naive-bayes", "random": "slice"},
        "naive-bayes-unseen": {"propensity": "naive-bayes:label,unseen", "random": "slice"},
        "naive-bayes-graded": {
            "propensity": "naive-bayes:rating",
            "labels": "biased graded",
            "random": "slice graded",
            "positive": ">3",
            "metrics": GRADED_SUMS,
        },
        "logistic": {"propensity": "logistic", "user_features": "user features", "item_features": "item features"},
        "logistic-items": {"propensity": "logistic:0.1", "item_features": "item features"},
    }
    for name, more in models.items():
        fitted = {**plain, "interval": "bootstrap:200", **more}
        iterated = ITERATED if name.startswith("logistic") else EXACT
        scaled = [] if name.startswith("power") else ["ips"]  # powers of counts have no scale, and ips refuses them
        yield Call(
            f"biased/fitted/{name}",
            group,
            "evaluate",
            "world" if iterated == ITERATED else "large",
            {**fitted, "estimators": [*scaled, {"name": "snips", "clip": 8.0}, "snips"]},
            exact=iterated,
        )
    yield Call(
        "biased/fitted/default interval",
        group,
        "evaluate",
        "world",
        {**plain, "propensity": "power:0.5"},
    )
    for name, reward in {
        "default": {},
        "item-rates": {"reward": "item-rates", "folds": 5, "strength": 2.0},
        "clipped": {"reward": "item-rates", "clip": 4.0},
    }.items():
        for data in ("world", "large"):
            robust = {**base, "estimators": [{"name": "doubly-robust", **reward}]}
            yield Call(f"biased/folds/{name}/{data}", group, "evaluate", data, robust)
    yield Call(
        "biased/folds/graded",
        group,
        "evaluate",
        "large",
        {**base, "labels": "biased graded", "positive": ">3", "metrics": GRADED_SUMS, "estimators": ["doubly-robust"]},
    )


def _intervened() -> Iterator[Call]:
    group = "intervened"
    base: Options = {
        "labels": "held out",
        "exposure": "full-negative",
        "exclude": "train",
        "models": THREE,
        "estimators": ["intervened"],
        "metrics": [*SUMS, *RECALL],
    }
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
    both: Options = {
        **base,
        "estimators": ["intervened", "intervened-pooled"],
        "metrics": ["Recall@5"],
        "strategy": "wtd_h",
    }
    yield Call("intervened/both", group, "intervened", "large", {**both, "baseline": "tied", "level": 0.9})
    yield Call(
        "intervened/bootstrap",
        "resampled",
        "intervened",
        "large",
        {**both, "interval": "bootstrap:300"},
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


def calls() -> Iterator[Call]:
    yield from _biased()
    yield from _intervened()
