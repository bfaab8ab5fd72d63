"""Intervened test sets on Coat, drawn and by inclusion probabilities: `make intervened` writes docs/results/intervened.md."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kuairec import data_folder
from result_pages import write_page
from truerank.core.estimator import Estimator
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Pool, Ranks, Scores
from truerank.data.datasets.coat import Coat
from truerank.data.split import wtd
from truerank.estimators import terms_of
from truerank.estimators.biased.intervened import Intervened, IntervenedPooled
from truerank.estimators.judged.full import Full as Plain
from truerank.exposure.interventions import dispersion, intervene, with_inclusion
from truerank.exposure.interventions.design import FullIntervention, RegularIntervention, Strategy
from truerank.exposure.interventions.popularity import EqualPerItemIntervention, PopularityStratifiedIntervention
from truerank.exposure.interventions.skew import SkewIntervention
from truerank.exposure.interventions.weighted import WTDHIntervention, WTDIntervention
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.models.baselines import Popularity
from truerank.models.ease import EASE
from truerank.models.neighbours import ItemKNN
from truerank.ranks.candidates import Catalogue, Overlap, lay_out
from truerank.ranks.kernel.rank import rank
from truerank.ranks.scores.scores import factors

SEED, SPLITS, K = 20261116, 10, 10
WORK = Path("build/intervened.jsonl")  # finished comparisons, so that an interrupted study goes on where it stopped
COMPARED: dict[str, Strategy] = {
    "SKEW": SkewIntervention.published(),
    "WTD": WTDIntervention.published(),
    "WTD_H": WTDHIntervention.published(),
    "WTD, item power 1": WTDIntervention.released(),
    "WTD_H, item power 1": WTDHIntervention.released(),
}
SHOWN: dict[str, Strategy] = {
    "FULL": FullIntervention(),
    "REG": RegularIntervention(),
    **COMPARED,
    "popularity-stratified": PopularityStratifiedIntervention(),
    "equal-per-item": EqualPerItemIntervention(),
}
ASKED: tuple[tuple[Metric, Estimator], ...] = (
    (Recall(K), Intervened()),
    (Recall(K), IntervenedPooled()),
    (Precision(K), Intervened()),
    (DCG(K), Intervened()),
)


class Agreement(msgspec.Struct, frozen=True):
    """What drawn test sets give on average, with its Monte-Carlo error, and what the formula gives."""

    strategy: str
    model: str
    metric: str
    estimator: str
    runs: int
    mean: float
    noise: float
    formula: float
    drawn_seconds: float
    formula_seconds: float

    @property
    def holds(self) -> bool:
        return abs(self.formula - self.mean) <= max(3 * self.noise, 0.01 * self.mean)


@dataclass(frozen=True)
class World:
    """One split of Coat: the held-out rows over the catalogue, the parts that weights need, and every model's ranks."""

    heldout: Log
    train: Log
    weights: Log
    truth: Log
    ranks: Mapping[str, Ranks]
    truth_ranks: Mapping[str, Ranks]


# ------------------------------------------------------------------------------------------------------------- the data


def coat() -> dict[str, Log]:
    return Coat().load(data_folder() / "coat")


def world_of(parts: Mapping[str, Log], *, seed: int) -> World:
    """Training items do not compete, test items always do (Overlap.KEEP); the held-out rows are not in the training part."""
    split = wtd(parts["train"], parts["random"], seed=seed)
    models = fitted(split["train"])
    heldout, ranks = ranked(split["heldout"], split["train"], models)
    truth, truth_ranks = ranked(split["truth"], split["train"], models)
    return World(heldout, split["train"], split["weights"], truth, ranks, truth_ranks)


def fitted(train: Log) -> dict[str, Scores]:
    total, n = (np.bincount(train.item, each, minlength=len(train.items)) for each in (train.rewards["rating"], None))
    mean = np.where(n > 0, total / np.maximum(n, 1), 0.0)
    return {
        "PosPop": Popularity().fit(train, seed=0),
        "AvgRating": factors(np.ones((len(train.users), 1)), mean[:, None], users=train.users, items=train.items),
        "ItemKNN": ItemKNN(50).fit(train, seed=0),
        "EASE": EASE(100.0).fit(train, seed=0),
    }


def ranked(log: Log, train: Log, models: Mapping[str, Scores]) -> tuple[Log, dict[str, Ranks]]:
    catalogue = Catalogue(train.items, float(len(train.items)))
    setting = lay_out(replace(log, complete=True), catalogue, exclude=train, overlap=Overlap.KEEP)
    pool = setting.pools[Pool.CATALOGUE]
    return setting.labels, {name: rank(each, setting.labels, pools=[pool])[0] for name, each in models.items()}


# ------------------------------------------------------------------------------------------------------------ agreement


def agreement(world: World, name: str, strategy: Strategy, *, runs: int) -> list[Agreement]:
    """The mean over drawn test sets against the formula; ranks are given to both, so that only test sets are timed."""
    begin = time.perf_counter()
    formula = by_formula(world, strategy)
    between = time.perf_counter()
    drawn = np.array(by_drawing(world, strategy, seeds=range(SEED, SEED + runs)))
    seconds = time.perf_counter() - between, between - begin
    pairs = [(model, metric, estimator) for model in world.ranks for metric, estimator in ASKED]
    return [
        Agreement(
            strategy=name,
            model=model,
            metric=str(metric),
            estimator=estimator.about.name,
            runs=runs,
            mean=float(np.nanmean(drawn[:, at])),
            noise=float(np.nanstd(drawn[:, at], ddof=1) / math.sqrt(runs)),
            formula=formula[at],
            drawn_seconds=seconds[0],
            formula_seconds=seconds[1],
        )
        for at, (model, metric, estimator) in enumerate(pairs)
    ]


def by_formula(world: World, strategy: Strategy) -> list[float]:
    """Weights, inclusion probabilities and the value of every model and metric."""
    log = with_inclusion(world.heldout, strategy, train=world.train, random=world.weights)
    return [
        terms_of(estimator, log, ranks, metrics=[metric])[0].value()
        for ranks in world.ranks.values()
        for metric, estimator in ASKED
    ]


def by_drawing(world: World, strategy: Strategy, *, seeds: Sequence[int]) -> list[list[float]]:
    """The values on drawn test sets, by the plain estimator (pooled recall is Σ hits / Σ relevant); weights are made once."""
    plan = strategy.design(world.heldout, train=world.train, random=world.weights, fraction=0.5, seed=0)
    found = []
    for seed in seeds:
        rows = plan.draw(seed=seed)
        log = replace(world.heldout.select(rows), inclusion=np.ones(len(rows)))
        values = []
        for whole in world.ranks.values():
            ranks = replace(whole, above=whole.above[rows], tied=whole.tied[rows])
            for metric, estimator in ASKED:
                way: Estimator = estimator if estimator.about.name == "intervened-pooled" else Plain()
                values.append(terms_of(way, log, ranks, metrics=[metric])[0].value())
        found.append(values)
    return found


def by_raw_weights(world: World, strategy: Strategy) -> float:
    """Pooled recall of PosPop with the weights themselves in the place of probabilities: a common shortcut, and wrong."""
    plan = strategy.design(world.heldout, train=world.train, random=world.weights, fraction=0.5, seed=0)
    log = replace(world.heldout, inclusion=plan.members.weights)
    return terms_of(IntervenedPooled(), log, world.ranks["PosPop"], metrics=[Recall(K)])[0].value()


# ---------------------------------------------------------------------------------------------------- exposure and truth


def exposures(worlds: Sequence[World]) -> dict[str, list[tuple[int, float]]]:
    """Rows and variance / mean of rows per item of one drawn test set for each split."""
    return {
        name: [
            (len(drawn), dispersion(drawn))
            for at, world in enumerate(worlds)
            for drawn in [intervene(world.heldout, strategy, train=world.train, random=world.weights, seed=SEED + at)]
        ]
        for name, strategy in SHOWN.items()
    }


def against_truth(worlds: Sequence[World]) -> dict[str, dict[str, float]]:
    """Mean Recall@10 over splits: on the random truth, and expected on each kind of test set."""
    found: dict[str, dict[str, float]] = {}
    for model in worlds[0].ranks:
        truth = [
            terms_of(Plain(), world.truth, world.truth_ranks[model], metrics=[Recall(K)])[0].value() for world in worlds
        ]
        found[model] = {"truth": float(np.mean(truth))}
        for name, strategy in SHOWN.items():
            values = []
            for world in worlds:
                log = with_inclusion(world.heldout, strategy, train=world.train, random=world.weights)
                values.append(terms_of(Intervened(), log, world.ranks[model], metrics=[Recall(K)])[0].value())
            found[model][name] = float(np.mean(values))
    return found


# ------------------------------------------------------------------------------------------------------------ the page


def page(
    found: Sequence[Agreement],
    shown: Mapping[str, Any],
    truth: Mapping[str, Mapping[str, float]],
    raw: Mapping[str, float],
) -> str:
    runs = found[0].runs
    regular = np.mean([value for _, value in shown["REG"]])
    lines = [
        "# Intervened test sets on Coat",
        "",
        f"Written by `make intervened`. Coat Shopping split as in the WTD paper (60 % of the biased ratings train, 40 % held out: "
        f"2,784 rows; 15 % of the random ratings for weights, 70 % as the truth), {SPLITS} splits with seeds 0 to {SPLITS - 1}, half of the "
        "held-out rows drawn. Training items do not compete, test items always do. Relevant: rating > 3. Strategies as published unless said.",
        "",
        "## How level items are",
        "",
        "Rows of a drawn test set, and variance / mean of rows per item (about 1 at random), mean over the splits.",
        "",
        "| test set | rows | variance / mean | smallest to largest | relative to REG |",
        "|---|---|---|---|---|",
    ]
    for name, values in shown.items():
        rows, level = zip(*values, strict=True)
        sizes = f"{min(rows):,}" if min(rows) == max(rows) else f"{min(rows):,} to {max(rows):,}"
        lines.append(
            f"| {name} | {sizes} | {np.mean(level):.2f} | {min(level):.2f} to {max(level):.2f} | {np.mean(level) / regular:.2f} |"
        )
    lines += [
        "",
        "WTD_H with the item's weight squared, as published, is less level than with the plain weight: it over-corrects, so that rare "
        "items are now the frequent ones. WTD is no more level than REG: its weights rest on 696 random rows for 300 items, about two each, and the noise "
        "of these counts goes into the test set, squared. equal-per-item is below 1 because it leaves nothing to chance.",
        "",
        "## One evaluation instead of 2,000",
        "",
        f"Split 0, {runs:,} drawn test sets (seeds from {SEED}), against the form by inclusion probabilities. It holds if the difference is at most "
        "3 Monte-Carlo standard errors or 1 % of the value. All rows share their seeds, so their errors go together.",
        "",
        "| test set | model | metric | drawn, mean | Monte-Carlo error | by probabilities | difference | holds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.strategy} | {each.model} | {_called(each)} | {each.mean:.5f} | {each.noise:.5f} | {each.formula:.5f} | "
        f"{each.formula / each.mean - 1:+.2%} | {'yes' if each.holds else 'NO'} |"
        for each in found
    ]
    lines += [
        "",
        "Weights are no probabilities: half of the rows are drawn without replacement, so a row of twice the weight is not drawn twice as often. "
        "With the weights themselves in their place, pooled Recall@10 of PosPop would be "
        + ", ".join(f"{value:.4f} for {name}" for name, value in raw.items())
        + ".",
        "",
        "Cost, all four models and metrics, ranks given to both; weights are made once for all drawn sets:",
        "",
        "| test set | drawn | by probabilities | ratio |",
        "|---|---|---|---|",
    ]
    costs = {each.strategy: each for each in found}
    lines += [
        f"| {name} | {each.drawn_seconds:.1f} s | {each.formula_seconds * 1000:.1f} ms | {each.drawn_seconds / each.formula_seconds:,.0f} |"
        for name, each in costs.items()
    ]
    names = list(SHOWN)
    lines += [
        "",
        "## Which test set comes near the truth",
        "",
        f"Recall@{K} per user on the random ratings, and how far the expected value on each test set is from it (ratio of means over the "
        f"{SPLITS} splits, as in table 2 of the paper). Models are untuned: ItemKNN with 50 neighbours, EASE with λ = 100.",
        "",
        f"| model | truth | {' | '.join(names)} |",
        f"|---|---|{'---|' * len(names)}",
    ]
    for model, values in truth.items():
        off = " | ".join(f"{values[name] / values['truth'] - 1:+.0%}" for name in names)
        lines.append(f"| {model} | {values['truth']:.4f} | {off} |")
    return "\n".join(lines) + "\n"


def _called(each: Agreement) -> str:
    return f"{each.metric}{' per user' if each.metric.startswith('Recall') and each.estimator == 'intervened' else ''}{' pooled' if 'pooled' in each.estimator else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("docs/results/intervened.md"))
    arguments = parser.parse_args()
    parts = coat()
    worlds = [world_of(parts, seed=seed) for seed in range(SPLITS)]
    found: list[Agreement] = []
    WORK.parent.mkdir(parents=True, exist_ok=True)
    done = (
        [msgspec.json.decode(line, type=Agreement) for line in WORK.read_bytes().splitlines()] if WORK.exists() else []
    )
    by_formula(worlds[0], SkewIntervention())  # what is loaded once is no part of the cost
    for name, strategy in COMPARED.items():
        kept = [each for each in done if (each.strategy, each.runs) == (name, arguments.runs)]
        if not kept:
            kept = agreement(worlds[0], name, strategy, runs=arguments.runs)
            with WORK.open("ab") as out:
                out.write(b"".join(msgspec.json.encode(each) + b"\n" for each in kept))
            print(f"{name}: {kept[0].drawn_seconds:.0f} s", file=sys.stderr)
        found += kept
    raw = {name: by_raw_weights(worlds[0], strategy) for name, strategy in COMPARED.items()}
    write_page(arguments.out, "intervened", page(found, exposures(worlds), against_truth(worlds), raw))
    failures = [each for each in found if not (each.holds and each.drawn_seconds >= 100 * each.formula_seconds)]
    for each in failures:
        print(f"does not hold: {each}", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
