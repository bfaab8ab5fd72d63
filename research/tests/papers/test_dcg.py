"""Parts of the experiments of the DCG paper: models that share work equal those that do not; the platform is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.estimators.discounted import LearntDiscountRaw, LogDiscountRaw, RankedNDCG
from truerank.estimators.impressions import Limited
from truerank.estimators.weighted import IPS
from truerank.exposure.policies.targets import RankColumn
from truerank.models.least_squares import EASE
from truerank.models.matrix import positives
from truerank.models.neighbours import KUNN, Draw, from_items, from_users, nearest, nearest_rows
from truerank_research.claims import Cell, Cells, Verdict
from truerank_research.papers.dcg.movielens import CLAIMS, INTERACTIONS, EASEPath, discounted_gains, first_items
from truerank_research.papers.dcg.platform import CANDIDATES, FORMS, LEVELS, NEW, OLD, REWARDS, Platform, draw_week


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
    most_users, most_items = nearest_rows(liked, 9, draw=of_users), nearest_rows(liked.T.tocsr(), 9, draw=of_items)
    left = from_users(liked, nearest(most_users, users, first=0, draw=of_users))
    right = from_items(liked, nearest(most_items, items, first=0, draw=of_items))
    scores = (left[0] @ left[1]).toarray() + (right[0] @ right[1]).toarray()
    own = KUNN(users=users, items=items).fit(log, seed=4).block(np.arange(len(log.users)))
    assert scores == pytest.approx(own, abs=1e-12)


@pytest.mark.parametrize("platform", [replace(level, days=1, length=12, clip=7.0) for level in LEVELS.values()])
def test_forms_on_the_platform_are_those_of_the_library(platform: Platform) -> None:
    week = draw_week(replace(platform, sessions=300), seed=1)
    logged, view = week.logged(), week.position()
    ranks = {OLD: logged.item + 1, **logged.rank}
    columns = {name: logged.reward[:, c].astype(np.int8) for c, name in enumerate(REWARDS)}
    table = pl.DataFrame(
        {"session": logged.session, "item": logged.item, "position": logged.item + 1, **ranks, **columns}
    )
    results = tr.off_policy(
        table, {name: RankColumn(name) for name in ranks}, position="table:" + ":".join(map(repr, view.tolist())),
        estimators=[LogDiscountRaw(), LearntDiscountRaw(), IPS(clip=7.0, of=Limited.INVERSE),
            RankedNDCG(clip=7.0, of=Limited.INVERSE),
        ],
        rewards=list(REWARDS), threads=1,
    )  # fmt: skip
    forms = dict(zip(dict.fromkeys(e.estimator for e in results.estimates), (FORMS[0], *FORMS[2:]), strict=True))
    for estimate in results.estimates:
        values = week.estimates(logged, ranks[estimate.model], view, platform.clip)[forms[estimate.estimator]]
        mean = week.by_day(values)[0, list(REWARDS).index(str(estimate.reward))]
        assert mean == pytest.approx(estimate.value, rel=1e-9), (estimate.estimator, estimate.model)


@pytest.mark.parametrize("level", LEVELS)
def test_the_platform_keeps_the_assumptions_of_the_paper(level: str) -> None:
    """Without a clip and with ranks among all candidates, DCG is what the new ranker earns; raw labels are not."""
    equal = {"patience": 0.0, "lengths": 0.0, "moods": 0.0}
    platform = replace(LEVELS[level], length=12, days=1, sessions=20_000, **equal)  # type: ignore[arg-type]
    week, fresh = (draw_week(platform, seed=1, part=part) for part in ("log", "online"))
    logged = week.logged()
    values = week.estimates(logged, logged.rank[CANDIDATES], week.position(), np.inf)
    truth, error = fresh.online(NEW)[0], values["DCG pbm, Q̂"].std(axis=0) / len(week.day) ** 0.5
    assert (np.abs(values["DCG pbm, Q̂"].mean(axis=0) - truth) <= 4 * error).all()
    assert (np.abs(values["DCG pbm, C"].mean(axis=0) - truth) > 4 * error).any()
    assert (fresh.online(NEW) > fresh.online(OLD)).all()


def test_gains_are_those_of_evaluate(log: tr.Log) -> None:
    rng = np.random.default_rng(1)
    held = rng.random(len(log)) < 0.4
    train, test = log.select(~held), log.select(held)
    scores = rng.random((len(log.users), len(log.items)), dtype=np.float32)
    model = tr.scores.dense(scores, users=log.users, items=log.items)
    results = tr.evaluate({"m": model}, test, exposure="holdout", metrics=["DCG@5", "nDCG@5"], exclude=train)
    scores[train.user, train.item] = -np.inf
    assert discounted_gains(first_items(scores, 5), test) == pytest.approx(
        [estimate.value for estimate in results.estimates]
    )


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
