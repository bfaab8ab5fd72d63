"""Calls of `evaluate` on labels that are all there, or a uniform sample: metrics, ties, forms of scores, catalogues."""

from __future__ import annotations

from collections.abc import Iterator

from tests.golden.house.call import Call, Options

# ------------------------------------------------------------------------------------------------------------- metrics

SUMS = ["Precision@5", "Precision@10(denominator=list)", "DCG@10", "RBP@0.8"]
RECALL = ["Recall@5", "MeanRR"]
LISTWISE = [
    "Recall@10(denominator=smaller)",
    "nDCG@10",
    "nDCG@10(ideal=cutoff)",
    "AP@10",
    "AP@10(denominator=positives)",
    "AP@10(denominator=cutoff)",
    "AUC",
    "HitRate@5",
    "RR",
    "RR@10",
    "RPrecision",
    "ERR@10",
]
GRADED_SUMS = ["DCG@10(gain=linear)", "DCG@5(gain=exponential)"]
GRADED = [
    *GRADED_SUMS,
    "nDCG@10(gain=linear)",
    "nDCG@10(gain=exponential)",
    "nDCG@5(gain=linear,ideal=cutoff)",
    "ERR@10",
    "ERR@5(highest=6)",
]
SHALLOW = ["Recall@5", "Precision@5", "DCG@10", "nDCG@10", "RR@10", "HitRate@10", "AP@5"]
TIES = ["expected", "random", "optimistic", "pessimistic", "strict"]
LABEL_FREE = ["expected", "random", "strict"]
THREE = ["good", "tied", "never"]


def short(text: str) -> str:
    return text.replace(" ", "-").replace(":", "-")


# ---------------------------------------------------------------------------------------------- full and random labels


def _full() -> Iterator[Call]:
    group = "full"
    for ties in TIES:
        base: Options = {"models": THREE, "ties": ties}
        for labels, exposure in (("full", "full"), ("positives", "full-negative")):
            options: Options = {**base, "labels": labels, "exposure": exposure}
            metrics = [*SUMS, *RECALL, *LISTWISE]
            yield Call(f"full/{exposure}/{ties}", group, "evaluate", "world", {**options, "metrics": metrics})
        options = {**base, "labels": "full graded", "positive": ">3", "metrics": GRADED}
        yield Call(f"full/graded/{ties}", "full-more", "evaluate", "world", options)
    group = "full-more"
    both: Options = {"labels": "full", "models": ["good", "tied"], "metrics": SUMS}
    yield Call(
        "full/graded/unlisted",
        group,
        "evaluate",
        "world",
        {
            "labels": "positives graded",
            "positive": ">3",
            "exposure": "full-negative",
            "models": THREE,
            "metrics": GRADED,
        },
    )
    yield Call(
        "full/graded/no rule",
        group,
        "evaluate",
        "world",
        {
            "labels": "full graded",
            "models": ["good", "tied"],
            "metrics": ["DCG@10(gain=linear)", "nDCG@10(gain=exponential)"],
        },
    )
    for name in ("horvitz-thompson", "hajek"):
        yield Call(f"full/{name}", group, "evaluate", "world", {**both, "estimators": [name]})
        yield Call(
            f"full/{name}/unlisted",
            group,
            "evaluate",
            "world",
            {**both, "labels": "positives", "exposure": "full-negative", "estimators": [name]},
        )
        yield Call(
            f"full/{name}/design", group, "evaluate", "world", {**both, "estimators": [name], "interval": "design"}
        )
    for name in ("pooled", "published"):
        yield Call(f"full/{name}", group, "evaluate", "world", {**both, "estimators": [name], "metrics": RECALL})
    yield Call(
        "full/pooled/unlisted",
        group,
        "evaluate",
        "world",
        {**both, "labels": "positives", "exposure": "full-negative", "estimators": ["pooled"], "metrics": RECALL},
    )
    yield Call(
        "full/traditional",
        group,
        "evaluate",
        "world",
        {**both, "estimators": ["full", "traditional"], "metrics": [*SUMS, *RECALL, "AUC", "nDCG@10"]},
    )
    yield Call("full/defaults", group, "evaluate", "large", {"labels": "full", "models": ["good", "tied"]})
    yield Call(
        "full/bootstrap",
        "resampled",
        "evaluate",
        "world",
        {**both, "metrics": [*SUMS, *RECALL, "nDCG@10", "AUC"], "interval": "bootstrap:400"},
    )
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
            options: Options = {
                "exposure": "random",
                "labels": "random",
                "models": THREE,
                "metrics": metrics,
                "ties": ties,
            }
            group = "traditional" if name == "traditional" else "random"
            yield Call(f"random/{name}/{ties}", group, "evaluate", "world", {**options, "estimators": [name]})
    group = "random-more"
    for name in ("pooled", "horvitz-thompson", "hajek"):
        for labels, exposure in (("random", "random"), ("bernoulli", "random:0.3")):
            options = {
                "labels": labels,
                "exposure": exposure,
                "models": ["good", "tied"],
                "metrics": RANDOM[name],
                "estimators": [name],
            }
            end = f"{name}/{short(exposure)}"
            yield Call(f"random/design/{end}", group, "evaluate", "large", {**options, "interval": "design"})
            yield Call(
                f"random/bootstrap/{end}",
                "resampled",
                "evaluate",
                "large",
                {**options, "interval": "bootstrap:300"},
            )
            if exposure != "random":
                yield Call(f"random/rate/{end}", group, "evaluate", "large", {**options, "population": "users"})
    for name in ("horvitz-thompson", "hajek", "traditional"):
        metrics = GRADED if name == "traditional" else GRADED_SUMS
        graded: Options = {
            "exposure": "random",
            "labels": "random graded",
            "positive": ">3",
            "models": THREE,
            "metrics": metrics,
        }
        yield Call(f"random/graded/{name}", group, "evaluate", "world", {**graded, "estimators": [name]})
    together: Options = {
        "exposure": "random",
        "labels": "random",
        "models": [*THREE, "partial"],
        "metrics": [*SUMS, *RECALL],
        "estimators": ["pooled", "published", "horvitz-thompson", "hajek", "traditional"],
    }
    yield Call("random/all", group, "evaluate", "world", together)
    yield Call("random/all/baseline", group, "evaluate", "world", {**together, "baseline": "tied", "level": 0.9})
    yield Call("random/all/population", group, "evaluate", "world", {**together, "population": "more users"})
    usual = {"exposure": "random", "labels": "random", "models": THREE, "estimators": ["pooled", "horvitz-thompson"]}
    yield Call("random/defaults", group, "evaluate", "large", usual)
    yield Call(
        "random/rate/all",
        group,
        "evaluate",
        "world",
        {**together, "labels": "bernoulli", "exposure": "random:0.3", "population": "users"},
    )
    yield Call(
        "random/rate/graded",
        group,
        "evaluate",
        "world",
        {
            **together,
            "labels": "bernoulli graded",
            "exposure": "random:0.3",
            "population": "users",
            "positive": ">3",
            "metrics": GRADED_SUMS,
            "estimators": ["horvitz-thompson", "hajek"],
        },
    )


# ---------------------------------------------------------------------------------------------------- scores, catalogue


def _forms() -> Iterator[Call]:
    group = "forms"
    full: Options = {"labels": "full", "metrics": ["Recall@5", "DCG@10", "nDCG@10", "AUC", "RPrecision"]}
    random: Options = {
        "labels": "random",
        "exposure": "random",
        "metrics": ["Recall@5", "DCG@10"],
        "estimators": ["pooled", "horvitz-thompson", "hajek"],
    }
    negative: Options = {"labels": "positives", "exposure": "full-negative", "metrics": SHALLOW}
    for models in (
        ["factors", "plain factors"],
        ["function", "turned"],
        ["single", "constant"],
        ["table", "never"],
        ["partial", "good"],
    ):
        name = "-".join(short(each) for each in models)
        for kind, options in (("full", full), ("random", random)):
            for ties in ("expected", "random"):
                yield Call(
                    f"forms/{kind}/{name}/{ties}",
                    group,
                    "evaluate",
                    "world",
                    {**options, "models": models, "ties": ties},
                )
    group = "lists"
    for models in (["top", "ranks"], ["sparse", "good"]):
        name = "-".join(models)
        for ties in LABEL_FREE:
            yield Call(f"lists/{name}/{ties}", group, "evaluate", "world", {**negative, "models": models, "ties": ties})
        yield Call(
            f"lists/{name}/optimistic", group, "evaluate", "world", {**negative, "models": models, "ties": "optimistic"}
        )
    top: Options = {**negative, "models": ["top", "ranks"]}
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
        given: Options = {**options, "models": THREE}
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
            "labels": "biased plain",
            "models": THREE,
            "metrics": ["Recall@5", "nDCG@5", "AUC"],
            "sampler": sampler,
            "train": True,
            "seed": 3,
        }
        yield Call(f"sampled/{sampler}", "catalogue", "sampled-candidates", "large", options)


def calls() -> Iterator[Call]:
    yield from _full()
    yield from _random()
    yield from _forms()
