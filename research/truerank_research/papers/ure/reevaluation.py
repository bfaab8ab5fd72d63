"""E-U4: models evaluated again by the URE scheme and by others, beside the truth (Table 4)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import polars as pl
from scipy.stats import t as student

from truerank.core.arrays import Floats
from truerank.datasets.kuairec import KuaiRec
from truerank.datasets.yahoo_r3 import YahooR3
from truerank.estimators import terms_of
from truerank.estimators.post_stratified import PostStratified
from truerank.estimators.weighted import Pooled, Published
from truerank.metrics.recall import Recall
from truerank_research.claims import Cell, Cells, Claim, Finding, cell_rows, numbers, share, span, where_given, within
from truerank_research.learners.recipes import Recipe
from truerank_research.papers.ure.data import (
    Block,
    CoatBlock,
    Split,
    among,
    inclusion_chance,
    split_of,
    traditional,
    weighted_mean,
)
from truerank_research.papers.ure.entrapment import chosen_configurations
from truerank_research.papers.ure.training import (
    BACKBONES,
    EPOCHS,
    METHODS,
    TABLE_4,
    YAHOO_BATCH,
    factor_table,
    on_random_part,
    positions_of,
    size_settings,
    small_batches,
    train_model,
    tuning_recipe,
)
from truerank_research.results import Measured
from truerank_research.runner import Run, Setting, Study, committed

POPULARITY = "popularity"
URE = "published mean (URE)"
ESTIMATES = (URE, "pooled", "post-stratified", "weighted, N⁺ known")
OF_PAIRS = ("pooled", "post-stratified")  # these estimate recall over all relevant pairs
TABLE, BIAS, SIZES = "Table 4, KuaiRec", "Bias over draws, in % of what is estimated", "Table 2: sizes"
ORDER = "Table 4, KuaiRec: recall over seeds and users"
TWINS = "LightGCN, DR against IPS"
YAHOO_TABLE = "Table 4, Yahoo!R3"
EXACT = "limit of the published mean"
LIMIT, LEAST_DRAWS, NEAR = 3.0, 200, 0.1
ESTIMATORS = (Published(), Pooled(), PostStratified())
POOLED_OLD = "traditional, pooled"
SAME = 0.98
UNTESTABLE = "Cannot be tested where the intervals of all neighbours overlap."
SEEDS = 3
COLUMNS = ("Recall@5̄", "Recall@5", "URE@5", "URE@500", "Recall@500")


def measure(run: Run) -> Measured:
    block, seeds = Block(run.setting), SEEDS if run.full else 2
    recipes = tuned_recipes(run)
    arguments = [(block, recipe, run.seed + seed) for seed in range(seeds) for recipe in recipes.values()]
    tables = run.pieces(train_model, arguments, about="training models")
    split = split_of(block)
    trained = {name: [table for table in tables[at :: len(recipes)] if table.height] for at, name in enumerate(recipes)}
    factors = {name: own[0] for name, own in trained.items() if own} | {POPULARITY: _popularity(split)}
    cutoffs, sizes = ((5, 50, 500), (20, 80)) if run.full else ((5, 20, 40), (20, 40))
    draws, per_piece = (200, 25) if run.full else (10, 5)
    arguments = [(run.setting, n, cutoffs, at, at + per_piece) for n in sizes for at in range(0, draws, per_piece)]
    drawn = pl.concat(run.pieces(draw_estimates, arguments, about="drawing samples", factors=factors))
    cells = [*_cells(split, factors, drawn, cutoffs), *_size_cells(run, split), *_yahoo_cells(run, recipes)]
    cells += _order_cells(split, trained, (cutoffs[0], cutoffs[-1]))
    cells += _twin_cells(split, trained, cutoffs[0])
    epochs = [int(table["epochs"][0]) for own in trained.values() for table in own]
    return Measured(
        {"cells": cell_rows(cells)},
        {
            "draws of D_rand": draws, "trainings of each model": seeds, "median epochs": float(np.median(epochs)),
            "trainings of 200 epochs": sum(number == EPOCHS for number in epochs), **size_settings(split),
        },
        [
            *block.differences,
            "The paper does not give N̄ of Tables 3 and 4. As printed they need less than about 33 (Recall@5̄ above "
            "Recall@500), the figures have 80: both are here, N̄ = 20 and 80.",
            "Models have the settings that E-U2 chose by AUC on the biased validation part; the interval of a model's "
            "recall is over seeds of training and over users.",
            f"Numbers of estimates are means over {draws} draws of D_rand, with the range of nine tenths of them; the "
            "paper has one draw.",
            "The short version's Table 1 says MF; its KuaiRec columns are the LightGCN rows of the long one's Table 4.",
        ],
    )  # fmt: skip


def tuned_recipes(run: Run) -> dict[str, Recipe]:
    """A recipe for each backbone and method, with the setting that E-U2 chose; of a quick run the first one."""
    real = run.full and not run.source.is_synthetic
    chosen = chosen_configurations(committed("E-U2")) if real else {}
    return {
        f"{name} {method}": tuning_recipe(backbone, method, chosen.get((name, method), 0), full=run.full, seed=run.seed)
        for name, backbone in BACKBONES.items()
        for method in METHODS
    }


def _yahoo_cells(run: Run, recipes: Mapping[str, Recipe]) -> list[Cell]:
    """The Yahoo!R3 columns of Table 4, where it is given."""
    if not run.source.has(YahooR3.name):
        return []
    block = CoatBlock(run.setting, YahooR3.name)
    own = [small_batches(recipe, YAHOO_BATCH) if run.full else recipe for recipe in recipes.values()]
    tables = run.pieces(train_model, [(block, recipe, run.seed) for recipe in own], about="training on Yahoo!R3")
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
    setting: Setting, judged: int, cutoffs: tuple[int, ...], first: int, last: int, *,
    factors: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:  # fmt: skip
    """Estimates of every model from some draws of D_rand."""
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
            terms = [terms_of(estimator, log, ranks, metrics=metrics) for estimator in ESTIMATORS]
            values = [[term.value() for term in own] for own in terms]
            values.append([weighted_mean(term.sums[:, 0], chance) for term in terms[0]])
            for estimate, by_cutoff in zip(ESTIMATES, values, strict=True):
                rows += [(name, k, number, estimate, value) for k, value in zip(cutoffs, by_cutoff, strict=True)]
            sampled = np.take_along_axis(position, column, axis=1)
            (old,) = traditional(sampled, label, [5])
            pooled = float((label & (among(sampled, label) <= 5)).sum() / label.sum())
            rows += [(name, 5, number, "traditional", float(old)), (name, 5, number, POOLED_OLD, pooled)]
    schema = {"model": pl.String, "k": pl.Int64, "draw": pl.Int64, "estimate": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(judged=pl.lit(judged))


def _order_cells(split: Split, trained: Mapping[str, Sequence[pl.DataFrame]], cutoffs: Sequence[int]) -> Iterator[Cell]:
    """Mean and pooled recall of each model with a 95 % interval over its trainings and over users."""
    positives = split.n_positives[split.n_positives > 0]
    for model, tables in trained.items():
        positions = [positions_of(table, split) for table in tables]
        for k in cutoffs:
            hits = np.array([(split.label & (position <= k)).sum(axis=1) for position in positions], dtype=float)
            hits = hits[:, split.n_positives > 0]
            weights = {"Recall": np.ones(len(positives)), "pooled Recall": positives / positives.mean()}
            for name, weight in weights.items():
                value, low, high = mean_over_seeds_and_users(hits / positives, weight)
                yield Cell(ORDER, model, f"{name}@{k}", value, low=low, high=high)


def mean_over_seeds_and_users(values: Floats, weight: Floats) -> tuple[float, float, float]:
    """The weighted mean of values [seeds x users] with a 95 % interval; weights have mean 1.

    The variance is that of the mean over seeds plus that of the mean over users, Welch's degrees of freedom.

    >>> value, low, high = mean_over_seeds_and_users(np.array([[0.0, 1.0], [0.0, 1.0]]), np.ones(2))
    >>> value, round(high - value, 3)  # two users alone differ: sd .707, error .5, one degree of freedom
    (0.5, 6.353)
    """
    of_seed = (values * weight).mean(axis=1)
    residual = weight * (values.mean(axis=0) - of_seed.mean())
    sizes = np.array(values.shape)
    errors = np.array([of_seed.var(ddof=1), residual.var(ddof=1)]) / sizes
    df = errors.sum() ** 2 / (errors**2 / (sizes - 1)).sum()
    half = float(student.ppf(0.975, df) * np.sqrt(errors.sum()))
    value = float(of_seed.mean())
    return value, value - half, value + half


def _twin_cells(split: Split, trained: Mapping[str, Sequence[pl.DataFrame]], k: int) -> Iterator[Cell]:
    """How far doubly robust learning is from IPS: recall, and the share of lists that both have."""
    for backbone in BACKBONES:
        for number, (one, other) in enumerate(zip(trained[f"{backbone} IPS"], trained[f"{backbone} DR"], strict=False)):
            lists = [positions_of(table, split) <= k for table in (one, other)]
            recall = [float((split.label & own).sum() / split.n_positives.sum()) for own in lists]
            row = f"{backbone}, seed {number}"
            yield Cell(TWINS, row, f"pooled Recall@{k}, DR minus IPS", recall[1] - recall[0])
            common = float((lists[0] & lists[1]).sum() / lists[0].sum())
            yield Cell(TWINS, row, f"items of the top {k} in common", common)


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
                    old, pairs = (drawn_values[model, n, 5, name] for name in ("traditional", POOLED_OLD))
                    yield _spread(model, f"Recall@{k}̄, N̄ = {n}", old, printed["Recall@5̄"])
                    yield _spread(model, f"pooled Recall@{k}̄, N̄ = {n}", pairs, None)
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


def _recall_columns(cells: Cells) -> tuple[str, str]:
    """The columns of recall at the small and at the large K."""
    few, many = dict.fromkeys(cell.column for cell in cells.select(ORDER) if cell.column.startswith("Recall@"))
    return few, many


def _by_backbone(cells: Cells, column: str) -> list[list[Cell]]:
    """Recall of each backbone's models with its interval, in the order of methods."""
    return [cells.select(ORDER, column=column)[at : at + len(METHODS)] for at in (0, len(METHODS))]


def _is_above(one: Cell, other: Cell) -> bool | None:
    """Whether one recall is above another; None where their intervals overlap."""
    assert None not in (one.low, one.high, other.low, other.high)
    return True if one.low > other.high else False if one.high < other.low else None  # type: ignore[operator]


def _any(parts: Iterable[bool | None]) -> bool | None:
    """True if one is; None if none is and one is not known."""
    listed = list(parts)
    return True if True in listed else None if None in listed or not listed else False


def decided(parts: Sequence[bool | None], why: str) -> Finding:
    """The verdict on parts that can be decided; with others beside them at best in part.

    >>> [decided(parts, "").verdict.value for parts in ([True, True], [True, None], [None, None])]
    ['replicates', 'replicates in part', 'cannot be tested here']
    """
    overlap = f" Intervals of neighbours overlap in {sum(part is None for part in parts)} of {len(parts)}."
    known = [part for part in parts if part is not None]
    return share([bool(part) for part in parts] if known else [], why + overlap)


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


def _reversed(first: Sequence[Cell], second: Sequence[Cell]) -> bool | None:
    """Whether two models are in opposite orders, both beyond the intervals; None where overlaps leave it open."""
    pairs = list(combinations(range(len(first)), 2))
    orders = [(_is_above(first[a], first[b]), _is_above(second[a], second[b])) for a, b in pairs]
    return _any(None if None in order else order[0] != order[1] for order in orders)


def _discrepancy_rule(cells: Cells) -> Finding:
    few, _ = _recall_columns(cells)
    old = _sampled(cells, "Recall@5̄")[0]
    true = [cell for cell in cells.select(ORDER, column=few) if cell.row in old]
    ratios = [(old[cell.row].obtained or 0.0) / (cell.obtained or math.nan) for cell in true]
    why = f"Recall@5̄ is {span(ratios, '.1f')} times Recall@5."
    return decided([min(ratios) > 2, _reversed(true, [old[cell.row] for cell in true])], why)


def _sampled(cells: Cells, name: str) -> list[dict[str, Cell]]:
    """Recall among the labelled items, by model, for the small and the large sample."""
    columns = dict.fromkeys(cell.column for cell in cells.select(TABLE) if cell.column.startswith(f"{name}, N̄ = "))
    return [
        {cell.row: cell for cell in cells.select(TABLE, column=column) if cell.row != POPULARITY} for column in columns
    ]


def _size_rule(cells: Cells) -> Finding:
    """Recall@5̄ against Recall@500: both as means over users, both pooled, and the mean against the pooled one."""
    _, many = _recall_columns(cells)
    readings = {
        "means over users": ("Recall@5̄", many),
        "pooled": ("pooled Recall@5̄", f"pooled {many}"),
        "the mean Recall@5̄ against the pooled Recall": ("Recall@5̄", f"pooled {many}"),
    }
    parts, texts = [], []
    for reading, (old, true) in readings.items():
        small, large = (
            [(cell.obtained or 0.0) > cells.value(TABLE, model, true) for model, cell in values.items()]
            for values in _sampled(cells, old)
        )
        parts.append(all(small) and not any(large))
        texts.append(
            f"{reading}: above for {sum(small)} of {len(small)} with few labelled items, {sum(large)} with many"
        )
    return share(parts, f"{'; '.join(texts)}.")


def _worse_rule(cells: Cells) -> Finding:
    backbones = _by_backbone(cells, _recall_columns(cells)[0])
    parts = [_any(_is_above(part[0], other) for other in part[1:4]) for part in backbones]
    lowest = [min(part, key=lambda cell: cell.obtained or 0.0).row for part in backbones]
    return decided([_any(parts)], f"Lowest: {' and '.join(lowest)}.")


def _hard_rule(cells: Cells) -> Finding:
    backbones = _by_backbone(cells, _recall_columns(cells)[0])
    best = [max(part, key=lambda cell: cell.obtained or 0.0).row for part in backbones]
    return decided(
        [_any(_is_above(other, part[-1]) for other in part[:-1]) for part in backbones], f"Best: {' and '.join(best)}."
    )


def _cutoff_rule(cells: Cells) -> Finding:
    few, many = (_by_backbone(cells, column) for column in _recall_columns(cells))
    changed = [_reversed(one, other) for one, other in zip(few, many, strict=True)]
    return decided(
        [_any(changed)], f"Orders of two models change in {changed.count(True)} of {len(changed)} backbones."
    )


def _twins_rule(cells: Cells) -> Finding:
    common = numbers(cells.select(TWINS, column=cells.select(TWINS)[1].column))
    differ = [value < SAME for value in common]
    return share(differ, f"Top lists of DR and IPS have {span(common, '.0%')} of their items in common.")


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
        "At N̄ = 20: Recall@5̄ is more than twice Recall@5 for every model, and two models are in opposite orders, both "
        f"beyond their intervals. {UNTESTABLE}", _discrepancy_rule,
    ),
    Claim(
        "size", "Recall@5̄ is above Recall@500 for every model, as printed, so N̄ was not 80.",
        "Table 4 against Figures 1 and 3",
        "For every model Recall@5̄ is above Recall@500 at N̄ = 20 and below it at N̄ = 80, under each of three readings "
        "of Recall (A-54). In part where it is under one.", _size_rule,
    ),
    Claim(
        "worse", "By Recall@5 some debiasing methods are worse than Bias.", "Table 4",
        "In one of the backbones IPS, DR or AutoDebias has a lower Recall@5 than Bias, beyond the intervals. "
        f"{UNTESTABLE}", _worse_rule,
    ),
    Claim(
        "hard", "By Recall@5 NegS is not the best.", "Table 4",
        f"In each backbone another method has a higher Recall@5, beyond the intervals. {UNTESTABLE}", _hard_rule,
    ),
    Claim(
        "cutoff", "Large and small K rank methods differently.", "Table 4",
        "In one of the backbones Recall@5 and Recall@500 order two methods differently, both beyond the intervals. "
        f"{UNTESTABLE}", _cutoff_rule,
    ),
    Claim(
        "twins", "Doubly robust learning and IPS give different models.", "Table 4",
        f"With every backbone and seed less than {SAME:.0%} of the items of top lists are in both.", _twins_rule,
        ours=True,
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
