"""Targeted exposure on KuaiRec: variance against uniform exposure, and coverage; writes docs/results/targeted-exposure.md.

python scripts/targeted_exposure.py [FOLDER] [DRAWS]     draws that are in FOLDER are not made again
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import kuairec
from truerank.core.arrays import Floats, Ints
from truerank.core.chance import generator
from truerank.core.estimator import Estimator, Learned
from truerank.core.log import Log
from truerank.core.metric import Additive
from truerank.core.ranking import Candidates, Ranks, Scores
from truerank.data.read import read
from truerank.estimators import terms_of
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.hajek import Hajek
from truerank.estimators.judged.pooled import Pooled
from truerank.evaluation.design_chances import SHARE, ChanceMaker
from truerank.evaluation.design_world import lists_of, world_of
from truerank.evaluation.designing import drawn_places
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.metrics.worth import expected_worth
from truerank.models.baselines import Popularity, Random
from truerank.models.neighbours import ItemKNN
from truerank.ranks.kernel.rank import rank
from truerank.sampling.designs import DrawBy
from truerank.uncertainty.intervals import Design, around, between

OUT = Path("docs/results/targeted-exposure.md")
PER_USER, BLOCK, SEED = 20, 20, 18
EVERY = 5  # draws of which intervals are made
Drawn = dict[tuple[str, str, str], float]
CUTOFFS = (5, 10, 50)
KNOWN = ("popularity", "svd-32", "item-knn")
PAIRS = (("popularity", "svd-32"), ("item-knn", "popularity"), ("item-knn", "svd-32"))
RANDOM = "random"
DESIGNED = Learned(facts={"designed": True})
BARS = {"known": 0.1, "not known": 0.7, "random list": 2.0}


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The observed block of KuaiRec with the ranks of every cell, and what a user's list is worth."""

    labels: Log
    train: Log
    scores: dict[str, Scores]
    ranks: dict[str, Ranks]

    @property
    def n_users(self) -> int:
        return self.labels.n_units

    @property
    def n_items(self) -> int:
        return len(self.labels.items)


def block() -> Block:
    folder = kuairec.data_folder() / "kuairec"
    labels = read(folder / "small_matrix_binary_grid.parquet", columns=kuairec.COLUMNS)
    liked = pl.read_parquet(folder / "big_matrix_positives.parquet").select("user_id", "video_id", label=pl.lit(1))
    train = read(liked, columns=kuairec.COLUMNS)
    scores: dict[str, Scores] = {
        "popularity": Popularity().fit(train, seed=0),
        "svd-32": kuairec.svd(train, dimensions=32),
        "item-knn": ItemKNN().fit(train, seed=0),
        "svd-8": kuairec.svd(train, dimensions=8),
        "svd-128": kuairec.svd(train, dimensions=128),
        "narrow-knn": ItemKNN(neighbours=5).fit(train, seed=0),
        RANDOM: Random().fit(train, seed=0),
    }
    whole = Candidates(len(labels.users), float(len(labels.items)))
    ranks = {name: rank(each, labels, pools=[whole], name=name)[0] for name, each in scores.items()}
    return Block(labels, train, scores, ranks)


def metrics_at(k: int) -> list[Additive]:
    return [Precision(k), DCG(k)]


@dataclass(frozen=True, slots=True, eq=False)
class Chances:
    """What a design says of every user: chances by cell of the block, and how its draws are laid out."""

    chance: Floats  # [users x places]
    listed: list[Ints]
    order: Ints

    @classmethod
    def of(cls, found: Block, k: int) -> Chances:
        known = {name: found.scores[name] for name in KNOWN}
        world = world_of(known, exclude=found.train, users=found.labels.users, items=found.labels.items)
        lists = lists_of(world, k, seed=SEED, threads=1, progress=None)
        maker = ChanceMaker.of(world, lists, metrics_at(k), per_user=PER_USER, shares=(SHARE, SHARE))
        chance, listed = np.empty((found.n_users, found.n_items)), []
        for user in range(found.n_users):
            likely = world.likely(user)
            wish, rows = maker.wishes(user, likely**2)
            chance[user] = maker.chances(likely, wish, world.seen(user), PER_USER)
            listed.append(rows)
        return cls(chance, listed, world.order)

    def draw(self, k: int, number: int) -> tuple[Ints, Floats]:
        """Cells of the block that one draw shows, and their chances."""
        rng = generator(SEED, f"targeted {k} {number}")
        cells, chances = [], []
        for user, (chance, listed) in enumerate(zip(self.chance, self.listed, strict=True)):
            places = drawn_places(chance, listed, DrawBy.SYSTEMATIC, rng)
            cells.append(user * len(chance) + self.order[places])
            chances.append(chance[places])
        cell, drawn = np.concatenate(cells), np.concatenate(chances)
        order = np.argsort(cell)
        return cell[order], drawn[order]


def worths(found: Block, k: int) -> dict[tuple[str, str], Floats]:
    """What every cell is worth to a metric, by model, divided as the metric says."""
    return {
        (name, str(metric)): expected_worth(metric, ranks) / (k if isinstance(metric, Precision) else 1)
        for name, ranks in found.ranks.items()
        for metric in (*metrics_at(k), Recall(k))
    }


def values_of(found: Block, worth: dict[tuple[str, str], Floats], cell: Ints, weight: Floats, k: int) -> Drawn:
    """Estimates of every model and pair from the cells of one draw."""
    label = found.labels.label[cell]
    values: Drawn = {}
    for (name, metric), every in worth.items():
        here = every[cell]
        earned = float((here * label) @ weight)
        if metric == str(Recall(k)):
            values[name, metric, "pooled"] = earned / float(label @ weight)
        else:
            n_users = int(found.ranks[name].scored.sum())
            values[name, metric, "horvitz-thompson"] = earned / n_users
            total = float(every.sum()) / n_users
            values[name, metric, "hajek"] = earned / float(here @ weight) * total
    for one, other in PAIRS:
        for name, metric, estimator in list(values):
            if name == one:
                apart = values[one, metric, estimator] - values[other, metric, estimator]
                values[f"{one} - {other}", metric, estimator] = apart
    return values


def intervals_of(found: Block, cell: Ints, chance: Floats, k: int) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Intervals for exactly these users, of the defaults."""
    log = replace(found.labels.select(cell), propensity=chance)
    ends = {}
    usual: list[tuple[Additive, Estimator]] = [(metric, Hajek()) for metric in metrics_at(k)]
    for metric, estimator in [*usual, (Recall(k), Pooled())]:
        terms = {}
        for name, ranks in found.ranks.items():
            here = replace(ranks, above=ranks.above[cell], tied=ranks.tied[cell])
            (terms[name],) = terms_of(estimator, log, here, metrics=[metric], learned=DESIGNED, keep_rows=True)
            spread = around(Design(), terms[name], level=0.95)
            ends[name, str(metric), estimator.about.name] = spread.low, spread.high
        for one, other in PAIRS:
            spread = between(Design(), terms[one], terms[other], level=0.95)
            ends[f"{one} - {other}", str(metric), estimator.about.name] = spread.low, spread.high
    return ends


def rows_of(
    found: Block, chances: Chances, worth: dict[tuple[str, str], Floats], k: int, number: int
) -> list[tuple[int, str, str, str, float, float, float]]:
    """Values and differences of one draw; of every fifth also with intervals."""
    cell, chance = chances.draw(k, number)
    values = values_of(found, worth, cell, 1 / chance, k)
    ends = intervals_of(found, cell, chance, k) if number % EVERY == 0 else {}
    return [(number, *key, value, *ends.get(key, (math.nan, math.nan))) for key, value in values.items()]


def truths(found: Block, k: int) -> pl.DataFrame:
    """True values, and the variance that Horvitz-Thompson (recall: pooled) has under uniform exposure, exactly."""
    share = PER_USER / found.n_items
    factor = found.n_items**2 * (1 - share) / PER_USER
    shape = (found.n_users, found.n_items)
    label = found.labels.label.reshape(shape)
    rows = []
    known: list[tuple[Additive, Estimator]] = [(each, Full()) for each in metrics_at(k)]
    for metric, full in [*known, (Recall(k), Pooled())]:
        recall = isinstance(metric, Recall)
        value, effect = {}, {}
        for name, ranks in found.ranks.items():
            value[name] = terms_of(full, found.labels, ranks, metrics=[metric])[0].value()
            worth = expected_worth(metric, ranks).reshape(shape) / (k if isinstance(metric, Precision) else 1)
            scale = label.sum() if recall else ranks.scored.sum()
            effect[name] = label * (worth - value[name] if recall else worth) / scale
        rows += [
            (name, str(metric), value[name], factor * float(each.var(axis=1, ddof=1).sum()))
            for name, each in effect.items()
        ]
        for one, other in PAIRS:
            apart = effect[one] - effect[other]
            variance = factor * float(apart.var(axis=1, ddof=1).sum())
            rows.append((f"{one} - {other}", str(metric), value[one] - value[other], variance))
    return pl.DataFrame(rows, schema=["what", "metric", "truth", "uniform"], orient="row")


def study(folder: Path, draws: int) -> pl.DataFrame:
    """Draws of all cut-offs with the truth beside them; blocks that are there are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ["draw", "what", "metric", "estimator", "value", "low", "high"]
    missing = [k for k in CUTOFFS for first in range(0, draws, BLOCK) if not (folder / f"{k}.{first}.parquet").exists()]
    found = block() if missing or not all((folder / f"truth.{k}.parquet").exists() for k in CUTOFFS) else None
    parts = []
    for k in CUTOFFS:
        if found is not None:
            truths(found, k).write_parquet(folder / f"truth.{k}.parquet")
            chances = Chances.of(found, k) if k in missing else None
            worth = worths(found, k)
        for first in range(0, draws, BLOCK):
            path = folder / f"{k}.{first}.parquet"
            if not path.exists() and found is not None and chances is not None:
                rows = [
                    row for number in range(first, first + BLOCK) for row in rows_of(found, chances, worth, k, number)
                ]
                pl.DataFrame(rows, schema=names, orient="row").write_parquet(path)
                print(path, flush=True)
            parts.append(pl.read_parquet(path).join(pl.read_parquet(folder / f"truth.{k}.parquet"), ["what", "metric"]))
    return pl.concat(parts)


def kind_of(what: str) -> str:
    if " - " in what:
        return "difference"
    return "known" if what in KNOWN else "random list" if what == RANDOM else "not known"


def summary(drawn: pl.DataFrame) -> pl.DataFrame:
    held = (pl.col("low") <= pl.col("truth")) & (pl.col("truth") <= pl.col("high"))
    return (
        drawn.group_by("metric", "estimator", "what", maintain_order=True)
        .agg(
            share=pl.col("value").var() / pl.col("uniform").first(),
            bias=(pl.col("value").mean() - pl.col("truth").first()) / (pl.col("value").std() / pl.len().sqrt()),
            covered=held.filter(pl.col("low").is_not_nan()).mean(),
            wrong=((pl.col("value") * pl.col("truth").sign()) < 0).mean(),
            draws=pl.len(),
        )
        .with_columns(kind=pl.col("what").map_elements(kind_of, return_dtype=pl.String))
    )


def _covered(rows: list[dict[str, Any]], kind: str) -> str:
    held = [row["covered"] for row in rows if row["kind"] == kind and row["covered"] is not None]
    return f"{sum(held) / len(held):.0%} | {min(held):.0%}"


def page(found: pl.DataFrame) -> str:
    rows = found.to_dicts()
    draws = min(row["draws"] for row in rows)
    hajek = [row for row in rows if row["estimator"] == "hajek"]
    worst = {kind: max(row["share"] for row in hajek if row["kind"] == kind) for kind in BARS}
    lines = [
        "# What targeted exposure saves on KuaiRec",
        "",
        "![Variance of targeted exposure over that of uniform exposure, by model and cut-off](targeted-exposure.svg)",
        "",
        "Twenty items per user that were chosen for three models (the defaults of `truerank plan exposure --allocate`) tell as much about these models as hundreds of random ones. Models that were not known when the items were chosen gain too, because they "
        "resemble the known ones. Only a list that resembles nothing, a random one, is known worse than from uniform exposure.",
        "",
        f"KuaiRec's fully observed block (1,411 users, 3,327 items), {draws:,} draws for each cut-off, designed for Precision@K and DCG@K of {', '.join(KNOWN)}; the same users in every draw. A share is the variance over that of Horvitz-Thompson from 20 uniform items, which is known exactly. Written by `make targeted-exposure`.",
        "",
        "| Hájek, Precision and DCG, K = 5, 10, 50 | largest share of the variance | bar | intervals that hold, mean | lowest |",
        "|---|---|---|---|---|",
        *(f"| {kind} | {worst[kind]:.3f} | {bar:g} | {_covered(hajek, kind)} |" for kind, bar in BARS.items()),
        "",
        f"The Monte-Carlo error of a share is about {(2 / draws) ** 0.5:.0%} of it. Intervals are for exactly these users (Hájek's and Deville's variance), made of every fifth draw, so that a share that holds has an error of about {(0.05 * 0.95 * EVERY / draws) ** 0.5:.0%}. Lists unlike any that the design knew are not to be trusted at small K: few of their rows are drawn, each stands for many, and `truerank evaluate` says so.",
        "",
    ]
    for metric in dict.fromkeys(row["metric"] for row in rows):
        lines += [
            f"<details><summary>{metric}</summary>",
            "",
            "| of | estimator | share of the variance | bias in standard errors | covered | wrong sign |",
            "|---|---|---|---|---|---|",
        ]
        for row in (row for row in rows if row["metric"] == metric):
            wrong = f"{row['wrong']:.0%}" if row["kind"] == "difference" else ""
            covered = "" if row["covered"] is None else f"{row['covered']:.0%}"
            lines.append(
                f"| {row['what']} ({row['kind']}) | {row['estimator']} | {row['share']:.3f} | {row['bias']:+.1f} | {covered} | {wrong} |"
            )
        lines += ["", "</details>", ""]
    return "\n".join(lines)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "targeted-draws")
    found = summary(study(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 1000))
    found.write_csv(folder / "summary.csv")
    OUT.write_text(page(found))
    from targeted_pictures import study_picture

    (OUT.with_suffix(".svg")).write_bytes(study_picture(found))


if __name__ == "__main__":
    main()
