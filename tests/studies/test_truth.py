"""The study of the truth: contenders are the library's estimators, and draws depend on the seed alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import mean_recall
import truerank as tr
import truth
from truerank.core.estimator import Estimator
from truerank.estimators.judged.assisted import Assisted
from truerank.studies.calibration.run import read, study
from truerank.studies.truth import worlds as of_study
from truerank.studies.truth.contenders import CONTENDERS, Contender, ShownRows
from truerank.studies.truth.known import SyntheticSettings, synthetic
from truerank.studies.truth.means import ESTIMATORS, MeanRecallWorld, StudyWorld
from truerank.studies.truth.summary import errors, ratios, summaries
from truerank.studies.truth.worlds import TruthWorld

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


def test_recall_rises_and_some_like_nothing_where_it_is_said() -> None:
    def trend(settings: SyntheticSettings) -> float:
        world = synthetic(settings, seed=1)
        relevant = world.labels.sum(axis=1)
        recall = (world.labels & (world.rank["popularity"] < 50)).sum(axis=1)[relevant > 0] / relevant[relevant > 0]
        return float(np.corrcoef(relevant[relevant > 0].argsort().argsort(), recall.argsort().argsort())[0, 1])

    assert trend(SyntheticSettings(400, 600, rising=True)) > 0.2
    assert trend(SyntheticSettings(400, 600)) < -0.2
    assert (synthetic(SyntheticSettings(400, 600, disliking=0.3), seed=1).labels.sum(axis=1) == 0).mean() >= 0.3


def test_a_stopped_study_goes_on_and_says_the_same(tiny: TruthWorld, tmp_path: Path) -> None:
    for draws in (3, 6):
        study([tiny], tmp_path / "a", draws=draws, seed=SEED, processes=1)
    study([tiny], tmp_path / "b", draws=6, seed=SEED, processes=1)
    first, second = (read(tiny, tmp_path / name, seed=SEED) for name in "ab")
    key = ["run", "what", "metric", "estimator"]
    assert first.sort(key).equals(second.sort(key))
    found = summaries([tiny], tmp_path / "a", seed=SEED)
    assert set(found["draws"]) <= {5, 6}
    own = ratios(first).filter(pl.col("estimator") == pl.col("reference"))
    assert (own["ratio"] == 1).all()
    assert (own["noise"] == 0).all()


def test_means_of_users_are_those_of_the_library(tiny: TruthWorld) -> None:
    """The same draws, the same values and bounds as `evaluate` gives."""
    world = MeanRecallWorld.of(tiny)
    draw = tiny.draw(SEED, 1)
    said = {row[1:4]: row[4:7] for row in world.said(SEED, 1)}
    for estimator in (each.about.name for each in ESTIMATORS):
        for k in tiny.cutoffs:
            for model, (value, _) in evaluated(draw, f"Recall@{k}", estimator, by="").items():
                found, low, high = said[model, f"Recall@{k}", estimator]
                assert found == pytest.approx(value, rel=1e-9), (model, k, estimator)
                assert low <= found <= high


def test_errors_are_over_that_of_the_published_mean() -> None:
    """Two draws of truth .5: published .4 and .2, corrected .6 and .5: √(.01 / .1) of its error."""
    rows = [
        (run, "m", "Recall@5", name, value, 0.5)
        for run, name, value in [
            (0, "published", 0.4),
            (1, "published", 0.2),
            (0, "corrected", 0.6),
            (1, "corrected", 0.5),
        ]
    ]
    drawn = pl.DataFrame(rows, schema=["run", "what", "metric", "estimator", "value", "truth"], orient="row")
    found = errors(drawn).row(0, named=True)
    assert found["estimator"] == "corrected"
    assert found["error_published"] == pytest.approx(0.1**0.5)
    assert found["published_bias"] == pytest.approx(-0.4)
    # shares of the mean square: corrected 2 and 0, published .2 and 1.8; deviations 1.8 and -1.8
    assert found["noise_error"] == pytest.approx(0.1**0.5 / 2 * (1.8 * 2**0.5) / 2**0.5)


def test_means_of_users_are_part_of_the_summary(tiny: TruthWorld, tmp_path: Path) -> None:
    both: list[StudyWorld] = [tiny, MeanRecallWorld.of(tiny)]
    study(both, tmp_path / "a", draws=3, seed=SEED, processes=1)
    found = summaries(both, tmp_path / "a", seed=SEED)
    curved = found.filter(pl.col("estimator") == "corrected")
    assert curved["error_published"].is_not_null().all()
    assert curved["draws"].unique().to_list() == [3]
    assert MeanRecallWorld.of(tiny).n_draws(2000) == 500
    real = found.with_columns(world=pl.lit("kuairec"))
    means = mean_recall.with_cutoffs(real)
    assert "| popularity, K = 5 |" in "\n".join(mean_recall.guide(means))
    assert "## kuairec, 3 draws" in mean_recall.page(means)
    assert "of corrected" in truth.page(truth.with_cutoffs(real.filter(pl.col("error_published").is_null())), means)
    cells = truth.with_cutoffs(found.filter(pl.col("error_published").is_null()))
    drawn = truth.measured(cells.filter((pl.col("kind") == "Recall") & ~pl.col("random")), "pooled")
    assert set(drawn["measure"]) == {each.name for each in truth.MEASURES}
    assert set(drawn["estimator"]) == {"published", "pooled", "post-stratified", "assisted by a good judge"}
    usual = drawn.filter((pl.col("estimator") == "pooled") & pl.col("measure").is_in(["variance", "error"]))
    assert usual["value"].to_list() == pytest.approx([1.0] * len(usual))
    assert truth.chart(cells) is not None
    # the published mean of the same draws is the measure, not a row of its own
    assert len(found.filter(pl.col("estimator") == "published")) == len(tiny.cutoffs) * 9
