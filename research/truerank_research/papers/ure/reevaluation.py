"""E-U4: models evaluated again by the URE scheme and by others, beside the truth (Table 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.estimator import Learned, Request
from truerank.core.ranking import JudgedChunk, RankView
from truerank.datasets.kuairec import KuaiRec
from truerank.datasets.yahoo_r3 import YahooR3
from truerank.estimators import terms_of
from truerank.estimators.post_stratified import PostStratified
from truerank.estimators.weighted import Pooled, Published
from truerank.metrics.recall import Recall
from truerank_research.claims import Cell, Cells, Claim, Finding, cell_rows, numbers, share, span, where_given, within
from truerank_research.estimators.corrected import Corrected
from truerank_research.papers.ure.data import (
    Block,
    CoatBlock,
    Split,
    inclusion_chance,
    split_of,
    traditional,
    weighted_mean,
)
from truerank_research.papers.ure.training import (
    BACKBONES,
    METHODS,
    TABLE_4,
    YAHOO_BATCH,
    factor_table,
    on_random_part,
    positions_of,
    size_settings,
    small_batches,
    train_model,
    untuned_recipes,
)
from truerank_research.results import Measured
from truerank_research.runner import Run, Setting, Study

POPULARITY = "popularity"
URE = "published mean (URE)"
ESTIMATES = (URE, "pooled", "post-stratified", "weighted, N⁺ known", "corrected")
OF_PAIRS = ("pooled", "post-stratified")  # these estimate recall over all relevant pairs
TABLE, BIAS, SIZES = "Table 4, KuaiRec", "Bias over draws, in % of what is estimated", "Table 2: sizes"
YAHOO_TABLE = "Table 4, Yahoo!R3"
EXACT = "limit of the published mean"
LIMIT, LEAST_DRAWS, NEAR = 3.0, 200, 0.1
COLUMNS = ("Recall@5̄", "Recall@5", "URE@5", "URE@500", "Recall@500")


def measure(run: Run) -> Measured:
    block = Block(run.setting)
    recipes = untuned_recipes(full=run.full)
    tables = run.pieces(
        train_model, [(block, recipe, run.seed) for recipe in recipes.values()], about="training models"
    )
    split = split_of(block)
    factors = {name: table for name, table in zip(recipes, tables, strict=True) if table.height}
    factors[POPULARITY] = _popularity(split)
    cutoffs, sizes = ((5, 50, 500), (20, 80)) if run.full else ((5, 20, 40), (20, 40))
    draws, per_piece, every = (200, 25, 10) if run.full else (10, 5, 5)
    arguments = [
        (run.setting, n, cutoffs, first, first + per_piece, every)
        for n in sizes
        for first in range(0, draws, per_piece)
    ]
    drawn = pl.concat(run.pieces(draw_estimates, arguments, about="drawing samples", factors=factors))
    yahoo = _yahoo_cells(run) if run.source.has(YahooR3.name) else []
    return Measured(
        {"cells": cell_rows([*_cells(split, factors, drawn, cutoffs), *_size_cells(run, split), *yahoo])},
        {"draws of D_rand": draws, "of these with corrected recall": draws // every, **size_settings(split)},
        [
            *block.differences,
            "The paper does not give N̄ of Tables 3 and 4. As printed they need less than about 33 (Recall@5̄ above "
            "Recall@500), the figures have 80: both are here, N̄ = 20 and 80.",
            "Models have one setting for each method, not tuned (E-U2 tunes them): LightGCN has 32 dimensions and 2 "
            "layers, training at most 12 epochs.",
            f"Numbers of estimates are means over {draws} draws of D_rand, with the range of nine tenths of them; the "
            "paper has one draw.",
            "The short version's Table 1 says MF; its KuaiRec columns are the LightGCN rows of the long one's Table 4.",
        ],
    )


def _yahoo_cells(run: Run) -> list[Cell]:
    """The Yahoo!R3 columns of Table 4."""
    block = CoatBlock(run.setting, YahooR3.name)
    recipes = {
        name: small_batches(recipe, YAHOO_BATCH) if run.full else recipe
        for name, recipe in untuned_recipes(full=run.full).items()
    }
    arguments = [(block, recipe, run.seed) for recipe in recipes.values()]
    tables = run.pieces(train_model, arguments, about="training models on Yahoo!R3")
    return [
        Cell(YAHOO_TABLE, model, column, value, printed, tolerance=NEAR * printed)
        for model, table in zip(recipes, tables, strict=True)
        if table.height
        for (column, value), printed in zip(
            on_random_part(block, table, (5, 500)).items(), TABLE_4[model][5:], strict=True
        )
    ]


def _popularity(split: Split) -> pl.DataFrame:
    """Items by their positives in the biased log, as a table like that of a trained model."""
    liked = np.bincount(split.train.item, weights=split.train.label, minlength=len(split.train.items))
    return factor_table(np.ones((len(split.train.users), 1)), liked[:, None].astype(np.float64))


def draw_estimates(
    setting: Setting, judged: int, cutoffs: tuple[int, ...], first: int, last: int, every: int, *,
    factors: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:  # fmt: skip
    """Estimates of every model from some draws of D_rand; one of `every` draws has corrected recall (the slowest)."""
    split = split_of(Block(setting))
    chance = inclusion_chance(split.n_positives, split.count, judged=judged)
    positions = {name: positions_of(table, split) for name, table in factors.items()}
    metrics = [Recall(k) for k in cutoffs]
    rows: list[tuple[str, int, int, str, float]] = []
    for number in range(first, last):
        column = split.draw(judged, seed=setting.seed, number=number)
        label, log = np.take_along_axis(split.label, column, axis=1), split.sampled_log(column)
        for name, position in positions.items():
            ranks = split.ranks(position, column)
            published, *others = (
                terms_of(estimator, log, ranks, metrics=metrics)
                for estimator in (Published(), Pooled(), PostStratified())
            )
            values = [[term.value() for term in terms] for terms in (published, *others)]
            values.append([weighted_mean(term.sums[:, 0], chance) for term in published])
            if number % every == 0:
                chunk, view = JudgedChunk(log, {}), RankView(ranks)
                terms = Corrected().terms(
                    chunk, view, requests=[Request(metric) for metric in metrics], learned=Learned()
                )
                values.append([term.value() for term in terms])
            for estimate, by_cutoff in zip(ESTIMATES, values, strict=False):
                rows += [(name, k, number, estimate, value) for k, value in zip(cutoffs, by_cutoff, strict=True)]
            (old,) = traditional(np.take_along_axis(position, column, axis=1), label, [5])
            rows.append((name, 5, number, "traditional", float(old)))
    schema = {"model": pl.String, "k": pl.Int64, "draw": pl.Int64, "estimate": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(judged=pl.lit(judged))


def _cells(
    split: Split, factors: Mapping[str, pl.DataFrame], drawn: pl.DataFrame, cutoffs: tuple[int, ...]
) -> Iterator[Cell]:
    """Table 4 for every size of the sample, with the other estimates, and the bias of each estimate over draws.

    The published mean leaves out users without a labelled positive, so that it converges to Σ π Recall / Σ π.
    """
    positives = split.n_positives
    drawn_values = {
        key: part["value"].to_numpy()
        for key, part in drawn.partition_by("model", "judged", "k", "estimate", as_dict=True).items()
    }
    sizes = drawn["judged"].unique(maintain_order=True).to_list()
    chances = {n: inclusion_chance(positives, split.count, judged=n) for n in sizes}
    for model, table in factors.items():
        position = positions_of(table, split)
        printed = dict(zip(COLUMNS, TABLE_4.get(model, (None,) * len(COLUMNS)), strict=False))
        for k in cutoffs:
            k_printed = {cutoffs[0]: 5, cutoffs[-1]: 500}.get(k) if model in TABLE_4 else None
            hits = (split.label & (position <= k)).sum(axis=1)
            recall: Floats = np.divide(hits, positives, out=np.zeros(len(hits)), where=positives > 0)
            mean, pooled = float(recall[positives > 0].mean()), float(hits.sum() / positives.sum())
            if k_printed:
                yield Cell(TABLE, model, f"Recall@{k}", mean, printed[f"Recall@{k_printed}"])
                yield Cell(TABLE, model, f"pooled Recall@{k}", pooled)
            for n, chance in chances.items():
                row, limit = f"{model}, K = {k}, N̄ = {n}", float(chance @ recall / chance.sum())
                if k_printed == 5:
                    old = drawn_values[model, n, 5, "traditional"]
                    yield _spread(model, f"Recall@{k}̄, N̄ = {n}", old, printed["Recall@5̄"])
                yield Cell(BIAS, row, "mean recall", mean)
                yield Cell(BIAS, row, "pooled recall", pooled)
                yield Cell(BIAS, row, EXACT, 100 * (limit / mean - 1) if mean > 0 else None)
                yield Cell(BIAS, row, "draws", float(len(drawn_values[model, n, k, URE])))
                for estimate in ESTIMATES:
                    values = drawn_values[model, n, k, estimate]
                    if k_printed:
                        name, number = ("URE", printed[f"URE@{k_printed}"]) if estimate == URE else (estimate, None)
                        yield _spread(model, f"{name}@{k}, N̄ = {n}", values, number)
                    yield _bias(row, estimate, values, pooled if estimate in OF_PAIRS else mean)


def _spread(row: str, column: str, values: Floats, published: float | None) -> Cell:
    """The mean over draws, and the range of nine tenths of them."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Cell(TABLE, row, column, None, published)
    low, high = np.quantile(finite, [0.05, 0.95]).tolist()
    return Cell(TABLE, row, column, float(finite.mean()), published, low, high)


def _bias(row: str, estimate: str, values: Floats, target: float) -> Cell:
    """Bias over draws with 3 Monte-Carlo standard errors on either side, in % of what is estimated.

    A draw without a number leaves the bias of that estimate undefined: the mean of the others is another quantity.
    """
    if not np.isfinite(values).all() or target <= 0 or len(values) < 2:
        return Cell(BIAS, row, estimate)
    bias = 100 * (float(values.mean()) / target - 1)
    error = 100 * LIMIT * float(values.std(ddof=1)) / np.sqrt(len(values)) / target
    return Cell(BIAS, row, estimate, bias, low=bias - error, high=bias + error)


def _size_cells(setting: Setting, split: Split) -> Iterator[Cell]:
    """Table 2: the sizes of the parts, against the published ones where the data are KuaiRec's."""
    published, real = KuaiRec.published["full"], not setting.source.is_synthetic
    sizes = {
        "users": (len(split.train.users), published.users),
        "items": (len(split.train.items), published.items),
        "biased train": (len(split.train), 1_934_404),
        "D_full": (int(split.count.sum()), 2_742_166),
        "random slice": (len(split.uniform), None),
    }
    for column, (value, printed) in sizes.items():
        row = "KuaiRec" if real else "synthetic"
        yield Cell(SIZES, row, column, float(value), float(printed) if real and printed else None)


@dataclass(frozen=True, slots=True)
class Table4:
    """Table 4 of a result: by model Recall at the small and the large K, and Recall@5̄ by size."""

    few: dict[str, float]
    many: dict[str, float]
    sampled: list[dict[str, float]]
    many_column: str

    @classmethod
    def read(cls, cells: Cells) -> Table4:
        columns = list(dict.fromkeys(cell.column for cell in cells.select(TABLE)))
        few, many = (column for column in columns if column.startswith("Recall@") and "̄" not in column)
        names = [f"{backbone} {method}" for backbone in BACKBONES for method in METHODS]
        models = [name for name in names if cells.select(TABLE, row=name)]

        def values(column: str) -> dict[str, float]:
            return {model: cells.value(TABLE, model, column) for model in models}

        sampled = [values(column) for column in columns if "̄, N̄ = " in column]
        return cls(values(few), values(many), sampled, many)

    @property
    def by_backbone(self) -> list[dict[str, float]]:
        return self.backbones(self.few)

    def backbones(self, values: dict[str, float]) -> list[dict[str, float]]:
        """The values of each backbone's models, in the order of methods."""
        return [
            {name: value for name, value in values.items() if name.startswith(f"{backbone} ")} for backbone in BACKBONES
        ]


def _order(values: Mapping[str, float]) -> list[str]:
    return sorted(values, key=lambda model: -values[model])


def _close_rule(cells: Cells) -> Finding:
    """Three readings of "Recall": a mean over all users, over those with a labelled positive, or pooled over pairs."""
    rows = [cell.row for cell in cells.select(BIAS, column=URE) if cell.row.endswith(", K = 5, N̄ = 20")]
    away: dict[str, list[float]] = {"over all users": [], "over users with a labelled positive": [], "pooled": []}
    for row in (row for row in rows if not row.startswith(POPULARITY)):
        ure, limit, pooled = (cells.value(BIAS, row, column) / 100 for column in (URE, EXACT, "pooled"))
        for values, value in zip(away.values(), (ure, (1 + ure) / (1 + limit) - 1, pooled), strict=True):
            values.append(value)
    text = "; ".join(
        f"{name} {sum(abs(value) <= NEAR for value in values)} of {len(values)} within 10 % ({span(values, '+.1%')})"
        for name, values in away.items()
    )
    return share([all(abs(value) <= NEAR for value in values) for values in away.values()], f"{text}.")


def _is_unbiased(cell: Cell) -> bool:
    """Whether a bias is within its 3 standard errors."""
    return cell.low is not None and cell.high is not None and cell.low <= 0 <= cell.high


def _unbiased_rule(cells: Cells) -> Finding:
    biases = cells.select(BIAS, column=URE)
    parts = [_is_unbiased(cell) for cell in biases]
    worst = max(biases, key=lambda cell: abs(cell.obtained or 0.0))
    return share(
        parts,
        f"{sum(parts)} of {len(parts)} biases are within 3 standard errors; they reach {worst.obtained or 0.0:+.0f} % "
        f"({worst.row}).",
    )


def _pooled_rule(cells: Cells) -> Finding:
    biases = [cell for name in ("pooled", "weighted, N⁺ known") for cell in cells.select(BIAS, column=name)]
    parts = [_is_unbiased(cell) for cell in biases]
    draws = min(numbers(cells.select(BIAS, column="draws")))
    outside = [f"{cell.column}, {cell.row}" for cell, within in zip(biases, parts, strict=True) if not within]
    why = f"{sum(parts)} of {len(parts)} biases are within 3 standard errors over {draws:g} draws."
    worst = f" Outside: {'; '.join(outside[:3])}." if outside else ""
    return share(parts if draws >= LEAST_DRAWS else [], why + worst)


def _discrepancy_rule(cells: Cells) -> Finding:
    table = Table4.read(cells)
    ratios = [table.sampled[0][model] / value for model, value in table.few.items()]
    differ = _order(table.sampled[0]) != _order(table.few)
    why = f"Recall@5̄ is {min(ratios):.1f} to {max(ratios):.1f} times Recall@5; the orders are "
    return share([min(ratios) > 2, differ], f"{why}{'different' if differ else 'the same'}.")


def _size_rule(cells: Cells) -> Finding:
    table = Table4.read(cells)
    above, below = (
        sum((values[model] > truth) == is_above for model, truth in table.many.items())
        for values, is_above in zip(table.sampled, (True, False), strict=True)
    )
    n = len(table.many)
    return share(
        [above == n, below == n],
        f"Recall@5̄ is above {table.many_column} for {above} of {n} models with few labelled items, below it for "
        f"{below} with many.",
    )


def _worse_rule(cells: Cells) -> Finding:
    parts = Table4.read(cells).by_backbone
    worse = [min(list(part.values())[1:4]) < next(iter(part.values())) for part in parts]
    lowest = [min(part, key=lambda model: part[model]) for part in parts]
    return share([any(worse)], f"In {sum(worse)} of {len(worse)} backbones; lowest: {' and '.join(lowest)}.")


def _hard_rule(cells: Cells) -> Finding:
    parts = Table4.read(cells).by_backbone
    best = [_order(part)[0] for part in parts]
    beaten = [max(part.values()) > list(part.values())[-1] for part in parts]
    return share(beaten, f"Best: {' and '.join(best)}.")


def _cutoff_rule(cells: Cells) -> Finding:
    table = Table4.read(cells)
    pairs = zip(table.by_backbone, table.backbones(table.many), strict=True)
    changed = [_order(few) != _order(many) for few, many in pairs]
    return share([any(changed)], f"The order changes in {sum(changed)} of {len(changed)} backbones.")


CLAIMS = (
    Claim(
        "close", "URE@5 aligns closely with Recall@5.", "Table 4, section 6.2",
        "For each model the mean over draws of URE@5 at N̄ = 20 is within 10 % of Recall@5 (the paper's largest "
        "difference is 8 %), under each of three readings of Recall (A-54): a mean over all users, over users with a "
        "labelled positive, pooled over all positives. In part where it is under one.", _close_rule,
    ),
    Claim(
        "unbiased", "URE, a mean over users, estimates Recall@K without bias.", "section 6, Theorem 3",
        "The bias over draws is within 3 Monte-Carlo standard errors for every model, K = 5, 50, 500 and N̄ = 20, 80.",
        _unbiased_rule,
    ),
    Claim(
        "pooled", "Pooled recall, and the mean weighted with known N⁺, are unbiased for what they estimate.",
        "ours: criterion",
        "Over at least 200 draws: |bias| is within 3 Monte-Carlo standard errors for every model, K = 5, 50, 500 and "
        "N̄ = 20, 80.", _pooled_rule,
    ),
    Claim(
        "discrepancy", "Recall@5̄ is far from Recall@5 and does not keep the order of models.", "Table 4",
        "At N̄ = 20: Recall@5̄ is more than twice Recall@5 for every model, and the two orders of the ten models differ.",
        _discrepancy_rule,
    ),
    Claim(
        "size", "Recall@5̄ is above Recall@500 for every model, as printed, so N̄ was not 80.",
        "Table 4 against Figures 1 and 3",
        "For every model mean Recall@5̄ is above Recall@500 at N̄ = 20 and below it at N̄ = 80.", _size_rule,
    ),
    Claim(
        "worse", "By Recall@5 some debiasing methods are worse than Bias.", "Table 4",
        "In one of the backbones IPS, DR or AutoDebias has a lower Recall@5 than Bias, as in the paper.", _worse_rule,
    ),
    Claim(
        "hard", "By Recall@5 NegS is not the best.", "Table 4",
        "In each backbone another method has a higher Recall@5.", _hard_rule,
    ),
    Claim(
        "cutoff", "Large and small K rank methods differently.", "Table 4",
        "In one of the backbones Recall@5 and Recall@500 order methods differently, as in the paper.", _cutoff_rule,
    ),
    Claim(
        "yahoo", "The Yahoo!R3 columns.", "Table 4",
        "Needs Yahoo!R3, in a folder yahoo-r3: every number is within 10 %. E-U2 has the same columns on Coat.",
        where_given(YAHOO_TABLE, within(YAHOO_TABLE), "Yahoo!R3 needs a signed agreement."),
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-U4", "How far are the traditional scheme, URE and other estimates from the true recall of ten models?",
        measure, data=("kuairec",), optional=("yahoo-r3",), minutes=12, claims=CLAIMS,
        shows={"ure": ("Table 4", "Table 2"), "ure-short": ("Table 1",)},
    ),
)  # fmt: skip
