"""E-U5: theorems 1 and 3 by enumeration, and the bias of estimates in a simulated dataset with known truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.log import Log
from truerank.core.ranking import Ranks
from truerank.core.rng import generator
from truerank.estimators import terms_of
from truerank.estimators.full import Full
from truerank.estimators.weighted import HorvitzThompson, Pooled, Published
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.simulation.dataset import DatasetSettings, simulate_dataset
from truerank_research.claims import Cell, Cells, Claim, Finding, Verdict, cell_rows, share
from truerank_research.papers.ure.data import inclusion_chance, weighted_mean
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

EXACT = "Theorems 1 and 3 by enumeration"
FIRST = "Theorem 1 at the size of KuaiRec: means over all rankings"
DRAWN = "Bias over draws of D_rand, Recall@10 and other metrics"
PRINTED = 1e-9
N, POSITIVES, N_BARS = 3327, 154, (20, 80, 320)  # KuaiRec's block: its items, and positives of a user on average
K = 10
JUDGED = (10, 20, 40, 80)
ROWS = ("published mean", "pooled", "weighted, N⁺ known", "Precision, Horvitz-Thompson", "DCG, Horvitz-Thompson")
LIMIT = 3.0  # Monte-Carlo standard errors


def measure(run: Run) -> Measured:
    n_users, n_items, draws, per_piece = (400, 300, 1000, 250) if run.full else (60, 120, 40, 20)
    starts = range(0, draws, per_piece)
    arguments = [(n_users, n_items, n, run.seed, first, first + per_piece) for n in JUDGED for first in starts]
    tables = run.pieces(draw_bias, arguments, about="drawing samples")
    by_n = [pl.concat(tables[at : at + len(starts)]) for at in range(0, len(tables), len(starts))]
    drawn = [cell for n, table in zip(JUDGED, by_n, strict=True) for cell in _bias_cells(n, table)]
    return Measured(
        {"cells": cell_rows([*_exact_cells(), *_first_cells(), *drawn])},
        {"users": n_users, "items": n_items, "draws": draws, "K": K},
        [
            "The paper has no synthetic experiment; this one is ours. Its Theorem 3 is about one user; the mean over "
            "users of its scheme leaves out those without a labelled positive.",
        ],
    )


def sampled_means(positives: frozenset[int], *, n_items: int, judged: int, k: int, within: int) -> dict[str, Fraction]:
    """Exact means over all samples of a user whose positives have these ranks; those without a positive are left out.

    m / n, (N / N-bar) m / K, and recall at `within` among the sample.

    >>> means = sampled_means(frozenset({1, 4, 5}), n_items=6, judged=3, k=2, within=1)
    >>> means["m / n"], means["precision"], means["traditional"]
    (Fraction(1, 3), Fraction(1, 2), Fraction(41, 114))
    """
    share, precision, traditional, kept, number = Fraction(0), Fraction(0), Fraction(0), 0, 0
    for sample in combinations(range(1, n_items + 1), judged):
        found = [rank for rank in sample if rank in positives]
        hits = sum(rank <= k for rank in found)
        precision += Fraction(n_items, judged) * Fraction(hits, k)
        number += 1
        if found:
            kept += 1
            share += Fraction(hits, len(found))
            traditional += Fraction(sum(sample.index(rank) < within for rank in found), len(found))
    return {"m / n": share / kept, "precision": precision / number, "traditional": traditional / kept}


def _exact_cells() -> list[Cell]:
    """The worked cases: what theorems say, and what enumeration gives."""
    user = frozenset({1, 4, 5})
    one, two = (sampled_means(user, n_items=6, judged=3, k=2, within=within) for within in (1, 2))
    placed = [frozenset(ranks) for ranks in combinations(range(1, 7), 3)]
    on_sample = [sampled_means(ranks, n_items=6, judged=3, k=2, within=1)["traditional"] for ranks in placed]
    on_all = [Fraction(sum(rank <= 2 for rank in ranks), 3) for ranks in placed]
    # user A has one positive, at rank 1; user B five, at ranks 2 ... 6; N-bar = 2: both are kept, or B alone
    samples = list(combinations(range(1, 7), 2))
    kept_a = Fraction(sum(1 in sample for sample in samples), len(samples))
    mean_kept = kept_a * Fraction(1, 2)  # B is always kept with m / n = 0; A counts half where it is kept, with 1
    rows: list[tuple[str, Fraction, Fraction]] = [
        (
            "theorem 3: mean of m / n, 6 items, positives at ranks 1, 4 and 5, K = 2, N̄ = 3",
            one["m / n"],
            Fraction(1, 3),
        ),
        ("Horvitz-Thompson precision, the same case", one["precision"], Fraction(1, 2)),
        ("theorem 1: mean Recall@1̄ over all places of 3 positives among 6, N̄ = 3", _mean(on_sample), Fraction(1, 3)),
        ("theorem 1: mean Recall@2 over the same", _mean(on_all), Fraction(1, 3)),
        ("two users, one of whom is seldom kept: published mean", mean_kept, Fraction(1, 2)),
    ]
    cells = [Cell(EXACT, row, "value", float(value), float(truth), tolerance=PRINTED) for row, value, truth in rows]
    for within, found in ((1, one), (2, two)):
        row = f"one fixed ranking: Recall@{within}̄ on D_rand, where Recall@2 is 1/3"
        cells.append(Cell(EXACT, row, "value", float(found["traditional"])))
    return cells


def _mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def mean_recall_of_rankings(size: int, positives: int, k: int) -> float:
    """Mean Recall@K over all rankings of `size` items: Σ_x (x / N⁺) P(x in the first K), x hypergeometric.

    >>> round(mean_recall_of_rankings(6, 3, 2), 9)
    0.333333333
    """
    from scipy.stats import hypergeom

    x = np.arange(0, min(k, positives) + 1)
    return float(np.sum(x / positives * hypergeom.pmf(x, size, positives, k)))


def mean_recall_of_samples(size: int, positives: int, judged: int, within: int) -> float:
    """The same of the sample: mean over n >= 1, hypergeometric too, of mean Recall@K-bar among N-bar items."""
    from scipy.stats import hypergeom

    n = np.arange(1, min(judged, positives) + 1)
    chance = hypergeom.pmf(n, size, positives, judged)
    return float(np.sum(chance * [mean_recall_of_rankings(judged, int(number), within) for number in n]) / chance.sum())


def _first_cells() -> Iterator[Cell]:
    for judged in N_BARS:
        for within in (1, 5, 20):
            value = mean_recall_of_samples(N, POSITIVES, judged, within)
            k = within * N / judged
            low, high = (mean_recall_of_rankings(N, POSITIVES, int(end)) for end in (np.floor(k), np.ceil(k)))
            there = low + (k - np.floor(k)) * (high - low)  # K̄ N / N̄ need not be whole
            row = f"N̄ = {judged}, K̄ = {within}"
            yield Cell(FIRST, f"theorem 1: {row}", "mean Recall@K̄ on D_rand", value, there, tolerance=PRINTED)
            yield Cell(FIRST, f"place of {row}", "K̄ N / N̄", k)


def draw_bias(users: int, items: int, judged: int, seed: int, first: int, last: int) -> pl.DataFrame:
    """Estimates from some draws of D_rand in a simulated dataset, and what each of them estimates."""
    labels, ranks = _ranked_world(users, items, seed)
    positives = np.bincount(labels.user, weights=labels.label, minlength=users)
    chance = inclusion_chance(positives, np.full(users, items), judged=judged)
    rows = []
    for number in range(first, last):
        rng = generator(seed, f"D_rand {judged} {number}")
        rows.append(_estimates(*draw_labels(labels, ranks, judged, rng), chance))
    truth = {f"truth of {name}": pl.lit(value) for name, value in zip(ROWS, _truths(labels, ranks), strict=True)}
    return pl.DataFrame(dict(zip(ROWS, np.array(rows).T, strict=True))).with_columns(**truth)


def _ranked_world(users: int, items: int, seed: int) -> tuple[Log, Ranks]:
    """A dataset, ranked by a noisy guess at the appeal of its items: the share that likes an item, and some taste."""
    settings = DatasetSettings(users=users, items=items, shown=items // 10, judged=items // 10, density=0.04)
    world = simulate_dataset(settings, seed=seed)
    noise = generator(seed, "noise of a scorer").normal(size=world.rating.shape)
    score = world.rating.mean(axis=0)[None, :] + 0.5 * world.rating + noise
    rank = np.argsort(np.argsort(-score, axis=1), axis=1).astype(np.float64)
    count = np.full(users, float(items))
    return world.truth, Ranks(rank.ravel(), np.zeros(rank.size), count, count, np.ones(users, dtype=bool))


def draw_labels(labels: Log, ranks: Ranks, n: int, rng: np.random.Generator) -> tuple[Log, Ranks]:
    """n random items of each user, all sets equally likely, of a log with every pair; and their ranks."""
    n_users, n_items = len(labels.users), len(labels.items)
    keys = rng.random((n_users, n_items), dtype=np.float32)
    item = np.sort(np.argpartition(keys, n, axis=1)[:, :n], axis=1)
    row = (np.arange(n_users)[:, None] * n_items + item).ravel()
    return labels.select(row), replace(ranks, above=ranks.above[row], tied=ranks.tied[row])


def _estimates(log: Log, ranks: Ranks, chance: Floats) -> list[float]:
    (published,) = terms_of(Published(), log, ranks, metrics=[Recall(K)])
    (pooled,) = terms_of(Pooled(), log, ranks, metrics=[Recall(K)])
    sums = terms_of(HorvitzThompson(), log, ranks, metrics=[Precision(K), DCG(K)])
    return [
        published.value(),
        pooled.value(),
        weighted_mean(published.sums[:, 0], chance),
        *(terms.value() for terms in sums),
    ]


def _truths(log: Log, ranks: Ranks) -> list[float]:
    mean, precision, dcg = terms_of(Full(), log, ranks, metrics=[Recall(K), Precision(K), DCG(K)])
    pooled = terms_of(Pooled(), log, ranks, metrics=[Recall(K)])[0].value()
    return [mean.value(), pooled, mean.value(), precision.value(), dcg.value()]


def _bias_cells(judged: int, table: pl.DataFrame) -> Iterator[Cell]:
    for name in ROWS:
        values, truth = table[name].to_numpy(), float(table[f"truth of {name}"][0])
        mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
        bias, row = mean - truth, f"{name}, N̄ = {judged}"
        percent, room = 100 * bias / truth, LIMIT * 100 * error / truth
        yield Cell(DRAWN, row, "truth", truth)
        yield Cell(DRAWN, row, "mean", mean)
        yield Cell(DRAWN, row, "bias", bias)
        yield Cell(DRAWN, row, "bias in %", percent, low=percent - room, high=percent + room)
        yield Cell(DRAWN, row, "standard error", error)
        yield Cell(DRAWN, row, "bias / standard error", bias / error)


def equal_rule(text: str, what: str) -> Callable[[Cells], Finding]:
    """Every exact mean whose row has the text equals what the theorem says."""

    def rule(cells: Cells) -> Finding:
        parts = [cell.is_within is True for cell in cells.cells if cell.table in (EXACT, FIRST) and text in cell.row]
        return share(parts, f"{sum(parts)} of {len(parts)} means {what}.")

    return rule


def _biases(cells: Cells, name: str, column: str) -> list[float]:
    return [cells.value(DRAWN, f"{name}, N̄ = {n}", column) for n in JUDGED]


def _mean_rule(cells: Cells) -> Finding:
    """A claim of unbiasedness is about every case: one that fails is enough to refute it."""
    exact = [cell.is_within is True for cell in cells.select(EXACT) if "two users" in cell.row]
    drawn = [abs(value) <= LIMIT for value in _biases(cells, ROWS[0], "bias / standard error")]
    percent = zip(_biases(cells, ROWS[0], "bias in %"), JUDGED, strict=True)
    text = ", ".join(f"{value:+.1f} % at N̄ = {n}" for value, n in percent)
    two = cells.value(EXACT, "two users, one of whom is seldom kept: published mean", "value")
    why = f"With two users it is {two:.3f} where the truth is 0.5; in a simulated dataset its bias is {text}."
    return Finding(Verdict.REPLICATES if all([*exact, *drawn]) else Verdict.FAILS, why)


def _others_rule(cells: Cells) -> Finding:
    parts = [
        abs(error) <= LIMIT or abs(percent) <= 0.5
        for name in ROWS[1:]
        for error, percent in zip(
            _biases(cells, name, "bias / standard error"), _biases(cells, name, "bias in %"), strict=True
        )
    ]
    return share(parts, f"{sum(parts)} of {len(parts)} are within the limit.")


CLAIMS = (
    Claim(
        "first", "Over all rankings, mean Recall@K̄ on D_rand is mean Recall@K at K = K̄ N / N̄.", "Theorem 1",
        "The means, summed exactly, differ by at most 1e-9 in the enumerated case and at KuaiRec's size.",
        equal_rule("theorem 1", "are equal"),
    ),
    Claim(
        "user", "For each user the URE estimate m / n is an unbiased estimate of Recall@K.", "Theorem 3",
        "Its mean over all samples with n >= 1 is Recall@K to 1e-9 (6 items, all 20 samples of 3).",
        equal_rule("theorem 3", "over all samples are the truth"),
    ),
    Claim(
        "mean", "The mean of m / n over users is an unbiased estimate of mean Recall@K.", "section 5, after theorem 3",
        "Users with n = 0 have no m / n. The enumerated mean of two users is the truth, and the bias over draws is "
        "within 3 Monte-Carlo standard errors at every N̄; one failure refutes it.", _mean_rule,
    ),
    Claim(
        "others", "Pooled recall, known weights and Horvitz-Thompson sums are unbiased for what they estimate.",
        "ours, for comparison",
        "Every bias over draws is within 3 Monte-Carlo standard errors or 0.5 % of the truth.", _others_rule,
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-U5", "Do theorems 1 and 3 hold by enumeration, and how biased are estimates where the truth is known?",
        measure, minutes=2, claims=CLAIMS,
        shows={
            "ure": ("Theorem 1", "Theorem 3", "Table 1", "Figure 2", "Figure 4"),
            "ure-short": ("Theorem 1", "Theorem 2", "Figure 2"),
        },
    ),
)  # fmt: skip
