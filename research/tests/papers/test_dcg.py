"""Parts of the experiments of the DCG paper: models that share work equal those that do not; the platform is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.estimators.weighted import IPS
from truerank.exposure.policies.targets import RankColumn
from truerank.models.ease import EASE
from truerank.models.kunn import KUNN, from_items, from_users, nearest_items, nearest_users
from truerank.models.matrix import positives
from truerank.models.neighbours import Draw, nearest
from truerank_research.claims import Cell, Cells, Verdict
from truerank_research.papers.dcg.movielens import CLAIMS, INTERACTIONS, EASEPath
from truerank_research.papers.dcg.platform import NEW, OLD, REWARDS, Platform, draw_week


@pytest.fixture(scope="module")
def log() -> tr.Log:
    rng = np.random.default_rng(0)
    pairs = pl.DataFrame({"user": rng.integers(0, 60, 900), "item": rng.zipf(1.6, 900) % 50}).unique(
        maintain_order=True
    )
    return tr.read(pairs)


@pytest.mark.parametrize("regularisation", [1.0, 50.0, 900.0])
def test_one_eigendecomposition_gives_ease(log: tr.Log, regularisation: float) -> None:
    path = EASEPath.of(positives(log))
    users = np.arange(len(log.users))
    own = EASE(regularisation).fit(log, seed=0).block(users)
    assert path.scores(regularisation) == pytest.approx(own, abs=2e-5)


@pytest.mark.parametrize(("users", "items"), [(3, 5), (7, 2), (9, 9)])
def test_shared_neighbours_give_kunn(log: tr.Log, users: int, items: int) -> None:
    liked = positives(log)
    of_users, of_items = Draw(log.users.keys(), 4), Draw(log.items.keys(), 4)
    most_users, most_items = nearest_users(liked, 9, draw=of_users), nearest_items(liked, 9, draw=of_items)
    left = from_users(liked, nearest(most_users, users, first=0, draw=of_users))
    right = from_items(liked, nearest(most_items, items, first=0, draw=of_items))
    scores = (left[0] @ left[1]).toarray() + (right[0] @ right[1]).toarray()
    own = KUNN(users=users, items=items).fit(log, seed=4).block(np.arange(len(log.users)))
    assert scores == pytest.approx(own, abs=1e-12)


def test_the_platform_keeps_the_assumptions_of_the_paper() -> None:
    """With the true position model ips finds what the new ranker earns; raw labels do not."""
    platform = Platform(length=12, rate=0.7, days=1, sessions=20_000, patience=0.0, lengths=0.0, moods=0.0)
    week, fresh = (draw_week(platform, seed=1, part=part) for part in ("log", "online"))
    truth = fresh.online(NEW)[0]
    found = tr.off_policy(
        week.logged(0), {policy: RankColumn(policy) for policy in (OLD, NEW)}, position="yule:0.7",
        estimators=[IPS()], rewards=list(REWARDS), threads=1,
    )  # fmt: skip
    for each in found.estimates:
        if each.model == NEW:
            at = list(REWARDS).index(str(each.reward))
            assert abs(each.value - truth[at]) <= 4 * each.stderr
    assert (fresh.online(NEW) > fresh.online(OLD)).all()
    assert week.position().rho == pytest.approx(0.7, rel=0.05)


def test_a_verdict_on_movielens_needs_its_ratings() -> None:
    def verdict(cells: list[Cell]) -> Verdict:
        return CLAIMS[0].rule(Cells(tuple(cells))).verdict

    near = [
        Cell("Figure 2", row, "all models", value, value + off, tolerance=0.1)
        for row, value, off in (("Pearson's r", 0.6, 0.05), ("Kendall's tau", 0.5, 0.05))
    ]
    paper = Cell("Data", "interactions", "used", float(INTERACTIONS))
    assert verdict([*near, paper]) is Verdict.REPLICATES
    assert verdict([near[0], replace(near[1], published=0.9), paper]) is Verdict.IN_PART
    assert verdict([*near, replace(paper, obtained=1_000_000.0)]) is Verdict.UNTESTABLE
