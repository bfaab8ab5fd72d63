"""What the experiments of the URE papers are made of, against the library's own estimators and against enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from truerank.core.arrays import Ints
from truerank.estimators import terms_of
from truerank.estimators.weighted import Published
from truerank.metrics.additive import Recall
from truerank_research.claims import Cell, Cells, Verdict
from truerank_research.papers.ure import ordering, reevaluation_claims
from truerank_research.papers.ure.data import (
    Block,
    CoatBlock,
    Split,
    coat_split,
    inclusion_chance,
    recall_at,
    split_of,
    weighted_mean,
)
from truerank_research.papers.ure.reevaluation_claims import BIAS
from truerank_research.papers.ure.theorems import sampled_means
from truerank_research.papers.ure.training import TABLE_4
from truerank_research.runner import Setting

N_USERS, N_ITEMS = 60, 120
BLOCK = Block(Setting(seed=3))


def split() -> Split:
    return split_of(BLOCK)


def positions(seed: int = 0) -> Ints:
    rng = np.random.default_rng(seed)
    found = split()
    return found.positions(rng.normal(size=(N_USERS, 4)), rng.normal(size=(N_ITEMS, 4)))


def test_a_split_has_every_cell_once() -> None:
    found = split()
    cells = np.zeros((N_USERS, N_ITEMS), dtype=int)
    for log in (found.train, found.uniform):
        cells[log.user, log.item] += 1
    valid = np.arange(found.item.shape[1]) < found.count[:, None]
    user, column = np.nonzero(valid)
    cells[user, found.item[user, column]] += 1
    assert (cells == 1).all()
    labels = BLOCK.labels()
    assert found.label.sum() + found.train.label.sum() + found.uniform.label.sum() == labels.label.sum()
    assert not found.label[~valid].any()


def test_draws_are_uniform_nested_and_of_candidates_alone() -> None:
    found = split()
    place = found.draw(12, seed=0, number=1)
    assert (place < found.count[:, None]).all()
    assert all(len(set(row)) == 12 for row in place.tolist())
    assert (found.draw(12, seed=0, number=1) == place).all()
    assert (found.draw(12, seed=0, number=2) != place).any()
    shown = np.zeros(found.item.shape)
    for number in range(600):
        drawn = found.draw(12, seed=1, number=number)
        np.add.at(shown, (np.arange(N_USERS)[:, None], drawn[:, :6]), 1)
    valid = np.arange(found.item.shape[1]) < found.count[:, None]
    rate = 6 / found.count[:, None]
    error = np.sqrt(600 * rate * (1 - rate))
    assert (np.abs(shown - 600 * rate)[valid] < (5 * np.broadcast_to(error, shown.shape))[valid]).all()


@pytest.mark.parametrize("k", [1, 3, 10, 40])
def test_the_estimate_of_the_paper_is_the_librarys(k: int) -> None:
    found, position = split(), positions()
    place = found.draw(15, seed=0, number=0)
    (terms,) = terms_of(Published(), found.sampled_log(place), found.ranks(position, place), metrics=[Recall(k)])
    ours = recall_at(np.take_along_axis(position, place, axis=1), np.take_along_axis(found.label, place, axis=1), [k])
    assert ours[0] == pytest.approx(terms.value(), abs=1e-12)


# ------------------------------------------------------------------------------------------------------- whom it keeps


def test_the_chance_to_be_kept_is_that_of_enumeration() -> None:
    for size, positives, judged in ((6, 1, 2), (6, 5, 2), (5, 0, 3), (5, 5, 1), (7, 2, 6)):
        samples = list(combinations(range(size), judged))
        share = Fraction(sum(min(each) < positives for each in samples), len(samples))
        found = inclusion_chance(np.array([positives]), np.array([size]), judged=judged)
        assert found[0] == pytest.approx(float(share), abs=1e-12)


def test_known_weights_are_exactly_unbiased_and_the_published_mean_is_not() -> None:
    # two users with 6 items each, positives at rank 1, and at ranks 2 ... 6; a third likes nothing; K = 1, N-bar = 2
    ranks: tuple[set[int], ...] = ({1}, {2, 3, 4, 5, 6}, set())
    chance = inclusion_chance(np.array([1, 5, 0]), np.array([6, 6, 6]), judged=2)
    samples = list(combinations(range(1, 7), 2))
    weighted, published = [], []
    for first in samples:
        for second in samples:
            share, kept = [], []
            for own, sample in zip(ranks, (first, second, first), strict=True):
                found = [rank for rank in sample if rank in own]
                share.append(sum(rank <= 1 for rank in found) / len(found) if found else 0.0)
                kept.append(bool(found))
            weighted.append(weighted_mean(np.array(share), chance))
            published.append(np.sum(share) / np.sum(kept))
    assert np.mean(weighted) == pytest.approx(0.5, abs=1e-12)
    assert np.mean(published) == pytest.approx(1 / 6, abs=1e-12)


def test_enumerated_means_are_those_of_the_specification() -> None:
    one, two = (sampled_means(frozenset({1, 4, 5}), n_items=6, judged=3, k=2, within=within) for within in (1, 2))
    assert one == {"m / n": Fraction(1, 3), "precision": Fraction(1, 2), "traditional": Fraction(41, 114)}
    assert two["traditional"] == Fraction(41, 57)


# -------------------------------------------------------------------------------------------------------------- coat


def test_candidates_of_coat_are_what_neither_log_nor_slice_shows() -> None:
    block = CoatBlock(Setting())
    found, judged = coat_split(block)
    seen = np.zeros((60, 80), dtype=bool)
    for log in (found.train, found.uniform):
        seen[log.user, log.item] = True
    valid = np.arange(found.item.shape[1]) < found.count[:, None]
    user, column = np.nonzero(valid)
    assert not seen[user, found.item[user, column]].any()
    assert int(found.count.sum()) == int((~seen).sum())
    assert not judged[~valid].any()
    assert not (found.label & ~judged).any()
    assert judged.sum() + len(found.uniform) <= 60 * 16


# ----------------------------------------------------------------------------------------------------------- verdicts


def _table_4(half: float = 1e-5) -> tuple[Cell, ...]:
    """The ten models of Table 4 as printed, recall within `half` on either side, with no bias at all over 200 draws."""
    cells = []
    for model, (old, five, ure, late_ure, late, *_) in TABLE_4.items():
        true = {f"{kind}Recall@{k}": value for kind in ("", "pooled ") for k, value in ((5, five), (500, late))}
        numbers = true | {"URE@5, N̄ = 20": ure, "URE@500, N̄ = 20": late_ure}
        numbers |= {f"{kind}Recall@5̄, N̄ = {n}": old / (n // 20) for kind in ("", "pooled ") for n in (20, 80)}
        for table, values in ((reevaluation_claims.TABLE, numbers), (reevaluation_claims.ORDER, true)):
            cells += [Cell(table, model, *item, low=item[1] - half, high=item[1] + half) for item in values.items()]
        row = f"{model}, K = 5, N̄ = 20"
        cells += [Cell(BIAS, row, name, 0.1, low=-1.0, high=1.2) for name in reevaluation_claims.ESTIMATES]
        cells += [Cell(BIAS, row, "draws", 200.0), Cell(BIAS, row, reevaluation_claims.EXACT, 0.0)]
    cells += [
        Cell(reevaluation_claims.TWINS, "MF, seed 0", name, value) for name, value in (("recall", 0.1), ("common", 0.5))
    ]
    return tuple(cells)


def _verdicts(cells: tuple[Cell, ...]) -> dict[str, Verdict]:
    return {claim.key: claim.rule(Cells(cells)).verdict for claim in reevaluation_claims.CLAIMS}


def test_the_printed_table_has_the_verdicts_that_the_paper_gives() -> None:
    found = _verdicts(_table_4())
    assert found.pop("yahoo") is Verdict.UNTESTABLE
    assert found == {claim.key: Verdict.REPLICATES for claim in reevaluation_claims.CLAIMS if claim.key in found}


def test_one_bias_outside_of_its_error_is_seen() -> None:
    from dataclasses import replace

    cells = [
        replace(cell, low=0.05) if (cell.table, cell.column) == (BIAS, "pooled") and "MF DR" in cell.row else cell
        for cell in _table_4()
    ]
    assert _verdicts(tuple(cells))["pooled"] is Verdict.IN_PART
    few = tuple(replace(cell, obtained=199.0) if cell.column == "draws" else cell for cell in _table_4())
    assert _verdicts(few)["pooled"] is Verdict.UNTESTABLE


@pytest.mark.parametrize(
    ("by_scale", "verdict"),
    [
        ({"λ = 1000": (0.3, 0.2), "λ = 250": (0.21, 0.2)}, Verdict.REPLICATES),
        ({"λ = 1000": (0.09, 0.08), "λ = 250": (0.21, 0.2)}, Verdict.IN_PART),
        ({"λ = 1000": (0.3, 0.01), "λ = 250": (0.02, 0.3)}, Verdict.IN_PART),
        ({"λ = 1000": (0.09, 0.08), "λ = 250": (0.1, 0.1)}, Verdict.FAILS),
    ],
)
def test_the_criterion_has_to_hold_at_every_scale(by_scale: dict[str, tuple[float, float]], verdict: Verdict) -> None:
    table = "Figure 5a: Kendall's τ with Recall@K, N̄ = 80"
    cells = [Cell(table, "K = 30", scheme, 0.8) for scheme in ordering.SCHEMES]
    for scale, differences in by_scale.items():
        for judged, difference in zip((20, 80), differences, strict=True):
            row = f"{scale}, N̄ = {judged}"
            values = {"difference": difference, "models": 34.0}
            cells += [Cell(ordering.CRITERION, row, column, value) for column, value in values.items()]
    (better,) = [claim for claim in ordering.CLAIMS if claim.key == "better"]
    assert better.rule(Cells(tuple(cells))).verdict is verdict
