"""Targeted against uniform exposure, on a block whose every label is known: variance, bias and coverage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import polars as pl

from truerank.core.arrays import Floats, Ints
from truerank.core.estimator import Estimator, Exposed, Learned
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.metric import Additive
from truerank.core.ranking import Candidates, Ranks, Scores
from truerank.core.rng import generator
from truerank.estimators import terms_of
from truerank.estimators.full import Full
from truerank.estimators.weighted import Hajek, Pooled
from truerank.evaluation.design import (
    design_data,
    design_goal,
    drawn_places,
    effects_of,
    exposure_probabilities,
    wishes,
)
from truerank.inference.intervals import Design, around, between
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.metrics.discounts import expected_discount
from truerank.models.baselines import Popularity, Random
from truerank.models.matrix import one_thread
from truerank.models.neighbours import ItemKNN
from truerank.ranking.kernel.rank import rank
from truerank.sampling.unequal import DrawBy
from truerank_research.results import Measured
from truerank_research.runner import Run, Setting, Source, Study
from truerank_research.validation.kuairec import DATASET, block, svd

PER_USER = 20
AT_ONCE = 20  # draws that are kept together
EVERY = 5  # draws of which intervals are made
KNOWN = ("popularity", "svd-32", "item-knn")
PAIRS = (("popularity", "svd-32"), ("item-knn", "popularity"), ("item-knn", "svd-32"))
RANDOM = "random"
STRANGER = 1_000_000_000  # the first id of users that no block has
DESIGNED = Learned(facts={"exposed": Exposed.DESIGNED})
BARS = {"known": 0.1, "not known": 0.7, "random list": 2.0}  # of the variance, over that of uniform exposure
COLUMNS = ("draw", "what", "metric", "estimator", "value", "low", "high")

Question = tuple[str, str, str]  # what, metric, estimator


@dataclass(frozen=True, slots=True)
class TargetedSetting(Setting):
    """Which world, and the cut-off that exposures are chosen for."""

    k: int = 5

    @property
    def summed(self) -> list[Additive]:
        """What the design is made for."""
        return [Precision(self.k), DCG(self.k)]

    @property
    def metrics(self) -> list[Additive]:
        return [*self.summed, Recall(self.k)]

    def models(self) -> RankedModels:
        return ranked_models(self.source, self.full, self.seed)

    def worth(self, metric: Additive, ranks: Ranks) -> Floats:
        """What every cell is worth to a metric, divided as the metric says."""
        return expected_discount(metric, ranks) / (self.k if isinstance(metric, Precision) else 1)


@dataclass(frozen=True, slots=True, eq=False)
class RankedModels:
    """A block with all labels, what is known from outside it, and the ranks of every cell by each model."""

    labels: Log
    outside: Log
    scores: Mapping[str, Scores]
    ranks: Mapping[str, Ranks]

    @property
    def shape(self) -> tuple[int, int]:
        return self.labels.n_units, len(self.labels.items)


@cache
def ranked_models(source: Source, full: bool, seed: int) -> RankedModels:
    labels, train = block(source, full=full, seed=seed)
    n_users, n_items = len(labels.users), len(labels.items)
    scores: dict[str, Scores] = {
        "popularity": Popularity().fit(train, seed=0),
        "svd-32": svd(train, dimensions=32),
        "item-knn": ItemKNN().fit(train, seed=0),
        **{f"svd-{n}": svd(train, dimensions=n) for n in (8, 128) if 2 * n < n_users},  # else nothing is left out
        "narrow-knn": ItemKNN(neighbours=5).fit(train, seed=0),
        RANDOM: Random().fit(train, seed=0),
    }
    whole = Candidates(n_users, float(n_items))
    with one_thread():
        ranks = {name: rank(each, labels, pools=[whole], name=name)[0] for name, each in scores.items()}
    return RankedModels(labels, strangers(train) if source.is_synthetic else train, scores, ranks)


def strangers(train: Log) -> Log:
    """What others liked: a made world trains on cells of the block, which a design would never show again."""
    return replace(train, users=Ids.of(STRANGER + np.arange(len(train.users))))


@dataclass(frozen=True, slots=True, eq=False)
class TargetedChances:
    """What a design says of every user, how its draws are laid out, and what all lists are worth."""

    chance: Floats  # [users x places]
    listed: list[Ints]
    order: Ints
    worth: dict[tuple[str, str], float]  # of all cells, by model and metric

    def draw(self, setting: TargetedSetting, number: int) -> tuple[Ints, Floats]:
        """Cells of the block that one draw shows, and their chances."""
        rng = generator(setting.seed, f"targeted {setting.k} {number}")
        cells, chances = [], []
        for user, (chance, listed) in enumerate(zip(self.chance, self.listed, strict=True)):
            places = drawn_places(chance, listed, DrawBy.SYSTEMATIC, rng)
            cells.append(user * len(chance) + self.order[places])
            chances.append(chance[places])
        cell, drawn = np.concatenate(cells), np.concatenate(chances)
        order = np.argsort(cell)
        return cell[order], drawn[order]


@lru_cache(maxsize=1)  # pieces come by cut-off, and the chances of one are many
def targeted_chances(setting: TargetedSetting) -> TargetedChances:
    found = setting.models()
    known = {name: found.scores[name] for name in KNOWN}
    world = design_data(known, exclude=found.outside, users=found.labels.users, items=found.labels.items)
    goal = design_goal(world, setting.summed, seed=setting.seed)
    chance, listed = np.empty(found.shape), []
    for user in range(len(chance)):
        likely = world.likely(user)
        rows, places, effects = effects_of(goal, user, len(world.items))
        wish = wishes(effects, places, likely**2)
        chance[user] = exposure_probabilities(likely, wish, world.excluded(user), PER_USER)
        listed.append(rows)
    worth = {
        (name, str(metric)): float(setting.worth(metric, ranks).sum())
        for name, ranks in found.ranks.items()
        for metric in setting.summed
    }
    return TargetedChances(chance, listed, world.order, worth)


def draw_exposures(setting: TargetedSetting, first: int, last: int) -> pl.DataFrame:
    """Values and differences of some draws of a design, of every fifth draw also intervals."""
    models, rows = setting.models(), []
    for number in range(first, last):
        cell, chance = targeted_chances(setting).draw(setting, number)
        ranks = {
            name: replace(whole, above=whole.above[cell], tied=whole.tied[cell]) for name, whole in models.ranks.items()
        }
        log = replace(models.labels.select(cell), propensity=chance)
        ends = intervals_of(setting, log, ranks) if number % EVERY == 0 else {}
        rows += [
            (number, *key, value, *ends.get(key, (math.nan, math.nan)))
            for key, value in values_of(setting, log, ranks, 1 / chance).items()
        ]
    return pl.DataFrame(rows, schema=list(COLUMNS), orient="row")


def values_of(setting: TargetedSetting, log: Log, ranks: Mapping[str, Ranks], weight: Floats) -> dict[Question, float]:
    """Estimates of every model and pair from the cells of one draw."""
    whole = targeted_chances(setting).worth
    values: dict[Question, float] = {}
    for name, each in ranks.items():
        for metric in setting.metrics:
            here = setting.worth(metric, each)
            earned = float((here * log.label) @ weight)
            if isinstance(metric, Recall):
                values[name, str(metric), "pooled"] = earned / float(log.label @ weight)
                continue
            n_users = int(each.scored.sum())
            values[name, str(metric), "horvitz-thompson"] = earned / n_users
            values[name, str(metric), "hajek"] = earned / float(here @ weight) * (whole[name, str(metric)] / n_users)
    for one, other in PAIRS:
        for name, metric_name, estimator in list(values):
            if name == one:
                apart = values[one, metric_name, estimator] - values[other, metric_name, estimator]
                values[f"{one} - {other}", metric_name, estimator] = apart
    return values


def intervals_of(setting: TargetedSetting, log: Log, ranks: Mapping[str, Ranks]) -> dict[Question, tuple[float, float]]:
    """Intervals for exactly these users, of the defaults."""
    ends = {}
    usual: list[tuple[Additive, Estimator]] = [(metric, Hajek()) for metric in setting.summed]
    for metric, estimator in [*usual, (Recall(setting.k), Pooled())]:
        terms = {}
        for name, each in ranks.items():
            (terms[name],) = terms_of(estimator, log, each, metrics=[metric], learned=DESIGNED, keep_rows=True)
            spread = around(Design(), terms[name], level=0.95)
            ends[name, str(metric), estimator.info.name] = spread.low, spread.high
        for one, other in PAIRS:
            spread = between(Design(), terms[one], terms[other], level=0.95)
            ends[f"{one} - {other}", str(metric), estimator.info.name] = spread.low, spread.high
    return ends


def true_variances(setting: TargetedSetting) -> pl.DataFrame:
    """True values, and the variances that estimators have under uniform exposure of as many items.

    `uniform` is that of Horvitz-Thompson (recall: pooled), exactly; `hajek` that of Hájek, linearised: what a cell adds
    is worth (label - q), q the share of all worth that is relevant.
    """
    found = setting.models()
    n_items = found.shape[1]
    factor = n_items**2 * (1 - PER_USER / n_items) / PER_USER
    label = found.labels.label.reshape(found.shape)
    rows = []
    for metric in setting.metrics:
        recall = isinstance(metric, Recall)
        full: Estimator = Pooled() if recall else Full()
        value, effect, by_share = {}, {}, {}
        for name, ranks in found.ranks.items():
            value[name] = terms_of(full, found.labels, ranks, metrics=[metric])[0].value()
            worth = setting.worth(metric, ranks).reshape(found.shape)
            scale = label.sum() if recall else ranks.scored.sum()
            effect[name] = label * (worth - value[name] if recall else worth) / scale
            share = (worth * label).sum() / worth.sum()
            by_share[name] = effect[name] if recall else worth * (label - share) / scale
        for one, other in PAIRS:
            what = f"{one} - {other}"
            value[what], effect[what], by_share[what] = (each[one] - each[other] for each in (value, effect, by_share))
        rows += [
            (what, str(metric), value[what], *(factor * _spread_of(each[what]) for each in (effect, by_share)))
            for what in value
        ]
    return pl.DataFrame(rows, schema=["what", "metric", "truth", "uniform", "hajek"], orient="row")


def _spread_of(effect: Floats) -> float:
    """The sum over users of the variance of what their cells add."""
    return float(effect.var(axis=1, ddof=1).sum())


def measure(run: Run) -> Measured:
    """Variance, bias and coverage from chosen items, for models that the design knew and for others."""
    draws, cutoffs = (200, (5, 10, 50)) if run.full else (10, (5,))
    settings = [TargetedSetting(run.source, run.full, run.seed, k) for k in cutoffs]
    truth = pl.concat(run.pieces(true_variances, [(setting,) for setting in settings], about="finding the truth"))
    starts = range(0, draws, AT_ONCE)
    arguments = [(setting, first, min(first + AT_ONCE, draws)) for setting in settings for first in starts]
    drawn = pl.concat(run.pieces(draw_exposures, arguments, about="drawing exposures"))
    rows = summary(drawn.join(truth, on=["what", "metric"], maintain_order="left"))
    items = settings[0].models().shape[1]
    return Measured(
        {"questions": rows, "kinds": [_kind(rows, kind, bar) for kind, bar in BARS.items()]},
        {
            "draws": draws, "every": EVERY, "items": items, "per user": PER_USER,
            "known": KNOWN,
        },
    )  # fmt: skip


def kind_of(what: str) -> str:
    """Whether the design knew a model.

    >>> [kind_of(what) for what in ("svd-32", "svd-8", "random", "item-knn - svd-32")]
    ['known', 'not known', 'random list', 'difference']
    """
    if " - " in what:
        return "difference"
    return "known" if what in KNOWN else "random list" if what == RANDOM else "not known"


def summary(drawn: pl.DataFrame) -> list[dict[str, Any]]:
    """Of each question: its variance over that of uniform exposure, bias in standard errors, how often it held.

    `share` is over Horvitz-Thompson's (recall: pooled), `like` over that of the same estimator.
    """
    held = (pl.col("low") <= pl.col("truth")) & (pl.col("truth") <= pl.col("high"))
    found = drawn.group_by("metric", "estimator", "what", maintain_order=True).agg(
        share=pl.col("value").var() / pl.col("uniform").first(),
        like=pl.col("value").var()
        / pl.when(pl.col("estimator") == "hajek").then(pl.col("hajek")).otherwise(pl.col("uniform")).first(),
        bias=(pl.col("value").mean() - pl.col("truth").first()) / (pl.col("value").std() / pl.len().sqrt()),
        covered=held.filter(pl.col("low").is_not_nan()).mean(),
    )
    return [{**row, "kind": kind_of(row["what"])} for row in found.to_dicts()]


def _kind(rows: list[dict[str, Any]], kind: str, bar: float) -> dict[str, Any]:
    """The worst of a kind by Hájek, and how often its intervals hold, on average over questions and at worst."""
    found = [row for row in rows if row["kind"] == kind and row["estimator"] == "hajek"]
    held = [row["covered"] for row in found if row["covered"] is not None]
    return {
        "kind": kind,
        "bar": bar,
        "share": max(row["share"] for row in found),
        "like": max(row["like"] for row in found),
        "covered": sum(held) / len(held),
        "lowest": min(held),
    }


STUDIES = (
    Study(
        "targeted-exposure", "How much variance do labels of chosen items save, against random ones?",
        measure, data=(DATASET,), minutes=6,
    ),
)  # fmt: skip
