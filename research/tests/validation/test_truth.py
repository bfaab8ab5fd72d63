"""The study of the truth: contenders are the library's estimators, and draws depend on the seed alone."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.estimator import Estimator
from truerank.estimators.assisted import Assisted
from truerank_research.runner import committed
from truerank_research.validation.truth import worlds as of_study
from truerank_research.validation.truth.contenders import CONTENDERS, Contender, ShownRows
from truerank_research.validation.truth.known import SyntheticSettings
from truerank_research.validation.truth.worlds import TruthWorld

TINY = SyntheticSettings(users=90, items=70, disliking=0.1)
SEED = 3


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> TruthWorld:
    monkeypatch.setitem(of_study.SYNTHETIC, "tiny", TINY)
    return TruthWorld("tiny", 15, (5, 20))


def evaluated(draw: ShownRows, metric: str, estimator: Estimator | str, *, by: str) -> dict[str, tuple[float, float]]:
    """What `evaluate` says of the same rows: value and standard error of every model."""
    world, (n, judged) = draw.world, draw.size
    users, items = np.arange(n), np.arange(world.n_items)
    user = np.repeat(users, judged)
    labels = pl.DataFrame({"user": user, "item": draw.item.ravel(), "label": draw.label.ravel().astype(int)})
    every = {"user": np.repeat(users, world.n_items), "item": np.tile(items, n)}
    judge = pl.DataFrame(every | {"label": world.judges[by][draw.user].ravel()}) if by in world.judges else None
    assist = tr.scores.dense(world.scores[draw.user], users=users, items=items) if by == "scores" else None
    found = tr.evaluate(
        {name: tr.scores.dense(-rank[draw.user].astype(float), users=users, items=items)
         for name, rank in world.rank.items()},
        labels, exposure="random", metrics=[metric], estimators=[estimator], judge=judge, assist=assist, seed=draw.seed,
        threads=1,
    )  # fmt: skip
    name = estimator if isinstance(estimator, str) else "assisted"
    return {each.model: (each.value, each.stderr) for each in found.estimates if each.estimator == name}


@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda each: f"{each.metric} {each.name}")
def test_contenders_are_the_estimators_of_the_library(contender: Contender, tiny: TruthWorld) -> None:
    draw = tiny.draw(SEED, 1)
    by = getattr(contender.terms, "keywords", {}).get("by", "")
    estimator = Assisted() if by else contender.name
    for k in tiny.cutoffs:
        found = evaluated(draw, f"{contender.metric}@{k}", estimator, by=by)
        for model, (value, stderr) in found.items():
            terms = contender.terms(draw, model, k)
            spread = tr.Population().spreads({model: terms}, [], level=0.95)[0][model]
            assert spread.value == pytest.approx(value, rel=1e-9), (model, k)
            assert spread.stderr == pytest.approx(stderr, rel=1e-9), (model, k)


def test_the_truth_is_what_estimators_give_when_all_is_judged(tiny: TruthWorld) -> None:
    world = tiny.known(SEED)
    every = np.broadcast_to(np.arange(world.n_items), (world.n_users, world.n_items))
    draw = ShownRows(world, np.arange(world.n_users), np.ascontiguousarray(every), SEED)
    for contender in CONTENDERS:
        for model in world.rank:
            assert contender.terms(draw, model, 5).value() == pytest.approx(contender.truth(world, model, 5), abs=1e-12)


# ------------------------------------------------------------------------------------------------------------ its pages


def test_strata_cost_nothing_where_it_was_measured() -> None:
    """Post-stratified recall: no cell of 270 varies more than pooled recall does."""
    rows = {row["about"]: row for row in committed("truth").rows("bars")}
    for info in ("all K", "a random list"):
        row = rows[f"post-stratified over pooled, {info}"]
        assert row["held"] == row["cells"] > 50
    cells = committed("mean-recall").rows("cells")
    real = [row for row in cells if row["world"] == "kuairec"]
    assert len(real) >= 45
    assert all(row["error"] < 1 for row in real)  # corrected is nearer than the published mean
