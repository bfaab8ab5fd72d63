"""E-U5: what theorems 1 and 3 say, by enumeration and exactly; and what estimates are off by in worlds with a truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np
import polars as pl

from truerank.core.arrays import Floats
from truerank.core.chance import generator
from truerank.core.log import Log
from truerank.core.progress import Progress
from truerank.core.ranking import Ranks
from truerank.core.values import text_of
from truerank.estimators import terms_of
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.horvitz_thompson import HorvitzThompson
from truerank.estimators.judged.pooled import Pooled
from truerank.estimators.judged.published import Published
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.studies.coverage import ObservedWorld, Uniformly
from truerank.studies.papers.experiment import Measurements, Obtained
from truerank.studies.papers.paper import (
    Cell,
    ClaimFinding,
    ClaimVerdict,
    GraphKind,
    GraphPoint,
    Paper,
    PaperClaim,
    PaperGraph,
    by_share,
)
from truerank.studies.papers.ure import PAPER, SHORT
from truerank.studies.papers.ure.kept import chance_to_be_kept, weighted_by_known
from truerank.studies.papers.ure.plain import plainly
from truerank.studies.work import Keep, StudySize, StudySource
from truerank.studies.world import WorldSettings, make_world

EXACT = "Theorems 1 and 3 by enumeration"
FIRST = "Theorem 1 at the size of KuaiRec: means over all rankings"
DRAWN = "Bias over draws of D_rand, Recall@10 and other metrics"
PRINTED = 1e-9
N, POSITIVES, N_BARS = 3327, 154, (20, 80, 320)  # KuaiRec's block: its items, and positives of a user on average
K = 10
DRAWS, JUDGED, PER_PIECE = 1000, (10, 20, 40, 80), 250
ROWS = ("published mean", "pooled", "weighted, N⁺ known", "Precision, Horvitz-Thompson", "DCG, Horvitz-Thompson")
LIMIT = 3.0  # Monte-Carlo standard errors


@dataclass(frozen=True, slots=True)
class SyntheticRecall:
    """URE's theorems exactly, and the bias of its mean and of others in a synthetic world."""

    name: ClassVar[str] = "E-U5"
    about: ClassVar[str] = "Theorems 1 and 3 by enumeration, and the bias of estimates in a world whose truth is known."
    shows: ClassVar[Mapping[Paper, tuple[str, ...]]] = {
        PAPER: ("Theorem 1", "Theorem 3", "Table 1", "Figure 2", "Figure 4"),
        SHORT: ("Theorem 1", "Theorem 2", "Figure 2"),
    }
    data: ClassVar[tuple[str, ...]] = ()
    minutes: ClassVar[float] = 2.0
    instead: ClassVar[str] = ""
    claims: ClassVar[tuple[PaperClaim, ...]] = (
        PaperClaim(
            "first",
            "Over all rankings, mean Recall@K̄ on D_rand is mean Recall@K at K = K̄ N / N̄.",
            "Theorem 1",
            "Holds if the means, summed exactly, differ by no more than 1e-9 in the enumerated case and at "
            "KuaiRec's size.",
        ),
        PaperClaim(
            "user",
            "For each user the URE estimate m / n is an unbiased estimate of Recall@K.",
            "Theorem 3",
            "Holds if its mean over all samples with n >= 1 is Recall@K to 1e-9 (6 items, all 20 samples of 3).",
        ),
        PaperClaim(
            "mean",
            "The mean of m / n over users is an unbiased estimate of mean Recall@K.",
            "section 5, after theorem 3",
            "Users with n = 0 have no m / n. Holds if the enumerated mean of two users is the truth and the bias "
            "over draws is within 3 Monte-Carlo standard errors at every N̄; in part if some are.",
        ),
        PaperClaim(
            "others",
            "Pooled recall, known weights and Horvitz-Thompson sums are unbiased for what they estimate.",
            "ours, for comparison",
            "Holds if every bias over draws is within 3 Monte-Carlo standard errors or 0.5 % of the truth; in part "
            "if some are.",
        ),
    )

    __str__ = text_of

    def run(
        self, source: StudySource, *, size: StudySize, seed: int, keep: Keep, progress: Progress | None
    ) -> Measurements:
        del source, progress
        full = size is StudySize.FULL
        n_users, n_items, draws = (400, 300, DRAWS) if full else (60, 120, 40)
        per_piece = PER_PIECE if full else 20
        pieces = [
            DrawnBias(n_users, n_items, n, seed, first, first + per_piece)
            for n in JUDGED
            for first in range(0, draws, per_piece)
        ]
        tables = keep(pieces, about="drawing samples")
        by_n: dict[int, list[pl.DataFrame]] = {n: [] for n in JUDGED}
        for piece, table in zip(pieces, tables, strict=True):
            by_n[piece.judged].append(table)
        drawn = [cell for n, found in by_n.items() for cell in _bias(n, pl.concat(found))]
        theorem, points = _first()
        return Measurements(
            cells=(*_exact(), *theorem, *drawn),
            graphs=tuple(map(plainly, (points, _picture(drawn)))),
            settings={"users": n_users, "items": n_items, "draws": draws, "K": K},
            differs=(
                "The paper has no synthetic experiment; this one is ours. Its Theorem 3 is about one user; the mean "
                "over "
                "users of its scheme leaves out those without a judged positive.",
            ),
        )

    def judge(self, obtained: Obtained) -> tuple[ClaimFinding, ...]:
        cells = obtained.cells
        first = [
            cell.is_within is True for cell in cells.of() if cell.table in (EXACT, FIRST) and "theorem 1" in cell.row
        ]
        user = [cell.is_within is True for cell in cells.of(EXACT) if "theorem 3" in cell.row]
        mean = [cell.is_within is True for cell in cells.of(EXACT) if "two users" in cell.row]
        errors = {
            name: [cells.value(DRAWN, f"{name}, N̄ = {n}", "bias / standard error") for n in JUDGED] for name in ROWS
        }
        relative = {name: [cells.value(DRAWN, f"{name}, N̄ = {n}", "bias in %") for n in JUDGED] for name in ROWS}
        kept = [abs(each) <= LIMIT for each in errors[ROWS[0]]]
        others = [
            abs(error) <= LIMIT or abs(off) <= 0.5
            for name in ROWS[1:]
            for error, off in zip(errors[name], relative[name], strict=True)
        ]
        said = ", ".join(f"{each:+.1f} % at N̄ = {n}" for each, n in zip(relative[ROWS[0]], JUDGED, strict=True))
        two = cells.value(EXACT, "two users, one of whom is seldom kept: published mean", "value")
        return (
            by_share("first", first, f"{sum(first)} of {len(first)} means are equal."),
            by_share("user", user, f"{sum(user)} of {len(user)} means over all samples are the truth."),
            _or_not(
                by_share(
                    "mean",
                    [*mean, *kept],
                    f"With two users it is {two:.3f} where the truth is 0.5; in a synthetic world it is off by {said}.",
                )
            ),
            by_share("others", others, f"{sum(others)} of {len(others)} are within the limit."),
        )


def _or_not(found: ClaimFinding) -> ClaimFinding:
    """A claim of unbiasedness that fails somewhere does not hold: it is about every case."""
    return found if found.verdict is ClaimVerdict.HOLDS else ClaimFinding(found.claim, ClaimVerdict.DOES_NOT, found.why)


# ---------------------------------------------------------------------------------------------------------- enumeration


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


def _exact() -> list[Cell]:
    """The worked cases: what theorems say stands beside what enumeration gives."""
    user = frozenset({1, 4, 5})
    one, two = (sampled_means(user, n_items=6, judged=3, k=2, within=within) for within in (1, 2))
    placed = [frozenset(each) for each in combinations(range(1, 7), 3)]
    on_sample = [sampled_means(each, n_items=6, judged=3, k=2, within=1)["traditional"] for each in placed]
    on_all = [Fraction(sum(rank <= 2 for rank in each), 3) for each in placed]
    # user A has one positive, at rank 1; user B five, at ranks 2 ... 6; N-bar = 2: both are kept, or B alone
    samples = list(combinations(range(1, 7), 2))
    kept_a = Fraction(sum(1 in each for each in samples), len(samples))
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
    return float(np.sum(chance * [mean_recall_of_rankings(judged, int(each), within) for each in n]) / chance.sum())


def _first() -> tuple[list[Cell], PaperGraph]:
    cells, points = [], []
    line = np.unique(np.round(np.linspace(1, N, 25))).astype(int)
    points += [GraphPoint(float(k), mean_recall_of_rankings(N, POSITIVES, int(k)), group="Recall@K") for k in line]
    for judged in N_BARS:
        for within in (1, 5, 20):
            value = mean_recall_of_samples(N, POSITIVES, judged, within)
            k = within * N / judged
            low, high = (mean_recall_of_rankings(N, POSITIVES, int(each)) for each in (np.floor(k), np.ceil(k)))
            there = low + (k - np.floor(k)) * (high - low)  # K̄ N / N̄ need not be whole
            row = f"theorem 1: N̄ = {judged}, K̄ = {within}"
            cells += [
                Cell(FIRST, row, "K̄ N / N̄", k),
                Cell(FIRST, row, "mean Recall@K̄ on D_rand", value, there, tolerance=PRINTED),
            ]
            points.append(GraphPoint(k, value, group=f"Recall@K̄, N̄ = {judged}"))
    cells = [cell for cell in cells if cell.published is not None] + [
        Cell(FIRST, cell.row.replace("theorem 1: ", "place of "), cell.column, cell.obtained)
        for cell in cells
        if cell.published is None
    ]
    graph = PaperGraph(
        "theorem-1",
        f"Means over all rankings of {N:,} items, {POSITIVES} of them relevant; K̄ = 1, 5, 20 at K = K̄ N / N̄",
        "Over all rankings, recall at K̄ among N̄ judged items is recall at K = K̄ N / N̄ among all.",
        GraphKind.POINTS,
        x="K",
        y="mean recall",
        points=tuple(points),
    )
    return cells, graph


# ---------------------------------------------------------------------------------------------------------------- draws


@dataclass(frozen=True, slots=True)
class DrawnBias:
    """A piece: estimates from some draws of D_rand in a synthetic world, and what each of them estimates."""

    users: int
    items: int
    judged: int
    seed: int
    first: int
    last: int

    @property
    def name(self) -> str:
        return f"judged {self.judged} draws {self.first}-{self.last}"

    def table(self) -> pl.DataFrame:
        world = _world(self.users, self.items, self.seed)
        positives = np.bincount(world.labels.user, weights=world.labels.label, minlength=self.users)
        chance = chance_to_be_kept(positives, np.full(self.users, self.items), judged=self.judged)
        drawing, everyone = Uniformly(self.judged), np.arange(self.users)
        rows = []
        for number in range(self.first, self.last):
            rng = generator(self.seed, f"D_rand {self.judged} {number}")
            log, ranks = drawing(world, units=everyone, rng=rng)
            rows.append(_estimates(log, ranks["model"], chance))
        truth = _truths(world)
        return pl.DataFrame(dict(zip(ROWS, np.array(rows).T, strict=True))).with_columns(
            **{f"truth of {name}": pl.lit(value) for name, value in zip(ROWS, truth, strict=True)}
        )


def _world(users: int, items: int, seed: int) -> ObservedWorld:
    """A world, ranked by a noisy guess at the appeal of its items: the share that likes an item, and some taste."""
    settings = WorldSettings(users=users, items=items, shown=items // 10, judged=items // 10, density=0.04)
    world = make_world(settings, seed=seed)
    noise = generator(seed, "noise of a scorer").normal(size=world.rating.shape)
    score = world.rating.mean(axis=0)[None, :] + 0.5 * world.rating + noise
    rank = np.empty(score.shape)
    np.put_along_axis(
        rank, np.argsort(-score, axis=1), np.arange(items, dtype=float)[None, :].repeat(users, axis=0), axis=1
    )
    count = np.full(users, float(items))
    ranks = Ranks(rank.ravel(), np.zeros(rank.size), count, count, np.ones(users, dtype=bool))
    return ObservedWorld(world.truth, {"model": ranks})


def _estimates(log: Log, ranks: Ranks, chance: Floats) -> list[float]:
    (published,) = terms_of(Published(), log, ranks, metrics=[Recall(K)])
    (pooled,) = terms_of(Pooled(), log, ranks, metrics=[Recall(K)])
    sums = terms_of(HorvitzThompson(), log, ranks, metrics=[Precision(K), DCG(K)])
    return [
        published.value(),
        pooled.value(),
        weighted_by_known(published.sums[:, 0], chance),
        *(each.value() for each in sums),
    ]


def _truths(world: ObservedWorld) -> list[float]:
    log, ranks = world.labels, world.ranks["model"]
    mean, precision, dcg = terms_of(Full(), log, ranks, metrics=[Recall(K), Precision(K), DCG(K)])
    pooled = terms_of(Pooled(), log, ranks, metrics=[Recall(K)])[0].value()
    return [mean.value(), pooled, mean.value(), precision.value(), dcg.value()]


def _bias(judged: int, table: pl.DataFrame) -> list[Cell]:
    cells = []
    for name in ROWS:
        values, truth = table[name].to_numpy(), float(table[f"truth of {name}"][0])
        off, error = float(values.mean()) - truth, float(values.std(ddof=1) / np.sqrt(len(values)))
        numbers = {
            "truth": truth,
            "mean": float(values.mean()),
            "bias": off,
            "bias in %": 100 * off / truth,
            "standard error": error,
            "bias / standard error": off / error,
        }
        cells += [Cell(DRAWN, f"{name}, N̄ = {judged}", column, value) for column, value in numbers.items()]
    return cells


def _picture(cells: list[Cell]) -> PaperGraph:
    values = {(cell.row, cell.column): float(cell.obtained or 0.0) for cell in cells}
    points = tuple(
        GraphPoint(
            f"{name}, N̄ = {n}",
            values[row, "bias in %"],
            group=name,
            low=values[row, "bias in %"] - _half(values, row),
            high=values[row, "bias in %"] + _half(values, row),
        )
        for name in ROWS
        for n in JUDGED
        if (row := f"{name}, N̄ = {n}")
    )
    worst, pooled = (values[f"{name}, N̄ = {JUDGED[0]}", "bias in %"] for name in ROWS[:2])
    return PaperGraph(
        "bias",
        "Bias in % of the truth, with 3 Monte-Carlo standard errors on either side",
        f"With {JUDGED[0]} judged items the published mean is off by {worst:+.0f} %, pooled recall by {pooled:+.1f} %.",
        GraphKind.RANGES,
        x="",
        y="bias in %",
        points=points,
        level=0.0,
    )


def _half(values: Mapping[tuple[str, str], float], row: str) -> float:
    return LIMIT * 100 * values[row, "standard error"] / values[row, "truth"]
