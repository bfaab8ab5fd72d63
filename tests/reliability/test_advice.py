"""Advice: figures by hand on a study of two models, one rule for every edge, and the formula against fresh draws."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from refusals import refused
from tiny_advice import PAIRS, tiny_look, tiny_studied

from truerank.core.arrays import Floats
from truerank.core.errors import RefusedError
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.exposure.logging_policies import UniformLogger
from truerank.metrics.listwise import NDCG
from truerank.ranking.scores.scores import dense
from truerank.reliability import (
    Advice,
    FinishedStudy,
    Grid,
    LabelledDataset,
    Models,
    advice_for,
    advise,
    families,
    study,
)
from truerank.reliability.advice import recommend
from truerank.reliability.advice_words import warnings
from truerank.reliability.scenarios import LoggerRun, MetricTables, Scenarios
from truerank.reliability.studied import LogProfile, PositivesProfile, has_positives_alone


def here(studied: FinishedStudy, look: LogProfile | None = None, *, logger: str | None = None) -> Advice:
    """For 100 users and a log of sparsity 0.6, which is a level of the study."""
    return advice_for(studied, tiny_look() if look is None else look, users=100, sparsity=0.6, logger=logger)


def phi(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2


def log_of(shown: list[tuple[int, int, int]]) -> Log:
    user, item, label = zip(*shown, strict=True)
    users, at = Ids.factorise(list(user))
    items, place = Ids.factorise(list(item))
    return Log(users, items, at, place, {"label": np.array(label, dtype=np.float64)}, source="log")


# -------------------------------------------------------------------------------------------------------------- figures


def test_expected_tau_of_one_pair_is_phi_by_hand() -> None:
    found = here(tiny_studied())
    by_name = {(each.sampler, each.size): each for each in found.choices}
    for key, (_, (difference, sd)) in PAIRS.items():
        z = difference * 10 / sd  # √100 users
        assert by_name[key].tau == pytest.approx(2 * phi(z) - 1, abs=1e-12)
        assert by_name[key].closer == pytest.approx(2 * phi(z / 2) - 1, abs=1e-12)
        assert by_name[key].limit == 1.0
        # one pair: the best comes out best exactly when the pair is right; the study has 400 users
        assert by_name[key].best_low == pytest.approx(phi(z), abs=1e-12)
        assert by_name[key].best_high == pytest.approx(phi(z), abs=1e-12)
        assert by_name[key].low == pytest.approx(2 * phi(z - 1.959964 * 10 / 20) - 1, abs=1e-6)
        assert by_name[key].high == pytest.approx(2 * phi(z + 1.959964 * 10 / 20) - 1, abs=1e-6)
    assert [(each.sampler, each.size) for each in found.choices][:2] == [("Full", None), ("Random", 50)]
    assert (found.pairs, found.undecided, found.wrong) == (1, (), ())
    full = by_name["Full", None]
    assert (full.per_user, full.per_user_low, full.per_user_high, full.undefined, full.ties) == (
        0.4,
        0.3,
        0.5,
        0.1,
        0.2,
    )
    assert [by_name[key].negatives for key in PAIRS] == [96, 10, 50]  # 100 items, 4 of them positives


def test_between_two_levels_differences_and_spreads_are_linear() -> None:
    found = advice_for(tiny_studied(), tiny_look(rows=35000), users=100, sparsity=0.3)
    (low, low_sd), (high, high_sd) = PAIRS["Random", 10]
    assert found.logger.between.share == pytest.approx(0.5)
    tau = {(each.sampler, each.size): each.tau for each in found.choices}["Random", 10]
    assert tau == pytest.approx(2 * phi((low + high) / 2 * 10 / ((low_sd + high_sd) / 2)) - 1, abs=1e-12)
    assert (found.loggers[0].spread, found.loggers[0].lift) == pytest.approx((0.3, 0.4))


def test_pairs_without_a_known_order_are_left_out_and_counted() -> None:
    close = dict.fromkeys(PAIRS, ((0.04, 0.5), (9.0, 0.1)))  # 0.04 < 1.96 x 0.5 / 20
    found = here(tiny_studied(more={("a", "c"): close}))
    alone = here(tiny_studied())
    assert found.undecided == (("a", "c"),)
    assert found.choices == alone.choices
    assert any("does not know the true order of a and c" in each for each in warnings(found))
    with refused("cannot tell any two of its models apart", RefusedError):
        here(tiny_studied(close))


# ----------------------------------------------------------------------------------------------------------------- rule


def test_fewest_negatives_among_those_equal_to_the_best() -> None:
    first = here(tiny_studied()).choices[0]
    cheap = replace(first, sampler="Random", size=5, negatives=5.0, tau=first.tau - 0.009)
    assert recommend([first, cheap]) == cheap
    assert recommend([first, replace(cheap, tau=first.tau - 0.011)]) == first
    # as good here, but not for models that are closer to each other
    assert recommend([first, replace(cheap, closer=first.closer - 0.02)]) == first
    assert recommend([first, replace(cheap, closer=first.closer - 0.009)]).sampler == "Random"


# ---------------------------------------------------------------------------------------------------------------- match


def test_the_nearest_logger_is_taken_and_distances_are_shown() -> None:
    found = here(tiny_studied(), tiny_look(spread=0.3, lift=0.4))
    assert [each.distance for each in found.loggers] == pytest.approx([0.5, 0.5])
    found = here(tiny_studied(), tiny_look(spread=0.5, lift=0.8))
    assert [(each.logger, round(each.distance, 4)) for each in found.loggers] == [
        ("popularity", 0.1),
        ("uniform", round(math.hypot(0.5, 0.8), 4)),
    ]
    assert here(tiny_studied(), logger="uniform").logger.logger == "uniform"
    with refused(r"logger 'skew' is not in study; expected one of uniform, popularity\."):
        here(tiny_studied(), logger="skew")


# ------------------------------------------------------------------------------------------------------------ the log


def test_a_look_counts_pairs_once_and_uses_the_catalogue() -> None:
    log = log_of([(1, 1, 0), (1, 1, 1), (1, 2, 0), (2, 1, 1), (2, 1, 1)])
    look = LogProfile.from_log(log, n_items=4)
    assert (look.users, look.items, look.items_shown, look.rows, look.positives) == (2, 4, 2, 3, 2)
    assert look.sparsity == 1 - 3 / 8
    assert look.lift == pytest.approx((2 * 1 + 0) / (2 * 1 + 0) / (2 / 3) - 1)
    whole = LogProfile.from_log(replace(log, complete=True), n_items=4)
    assert (whole.sparsity, whole.spread) == (0.0, 0.0)
    with refused("2 items, but the catalogue is said to have 1"):
        LogProfile.from_log(log, n_items=1)


def test_positives_alone_need_a_logger_and_a_sparsity() -> None:
    log = log_of([(1, 1, 1), (2, 2, 1), (3, 1, 1)])
    assert has_positives_alone(log)
    assert has_positives_alone(replace(log, rewards={}))
    for given in ({}, {"logger": "uniform"}, {"sparsity": 0.5}):
        with refused("positives alone do not show what else was exposed", RefusedError):
            advise(log, tiny_studied(), **given)
    found = advise(log, tiny_studied(), logger="uniform", sparsity=0.5)
    assert (found.users, found.log, found.logger.logger) == (3, PositivesProfile(3, 2, 2, 3), "uniform")
    assert all(math.isnan(each.distance) for each in found.loggers)
    assert not any("unlike" in each for each in found.outside)


def test_logs_that_tell_nothing_and_wrong_options_are_refused() -> None:
    """Others are in tests/cli/test_advise.py."""
    with refused("one item; expected several"):
        advise(log_of([(1, 1, 1), (2, 1, 0)]), tiny_studied())
    with refused("expected a share from 0 to below 1"):
        advise(log_of([(1, 1, 1), (1, 2, 0), (2, 1, 1)]), tiny_studied(), sparsity=math.nan)


# ------------------------------------------------------------------------------------------------------ against studies


def noisy_world(n_users: int, n_items: int) -> tuple[Log, dict[str, Scores]]:
    """Models that are the truth with more and more noise, the last two close to each other."""
    rng = np.random.default_rng(11)
    truth = (rng.random((n_users, n_items)) < 0.05 + 0.3 * rng.random(n_items) ** 3).astype(np.float64)
    users, items = Ids.of(np.arange(n_users)), Ids.of(np.arange(n_items))
    user, item = (axis.ravel() for axis in np.indices(truth.shape))
    log = Log(users, items, user, item, {"label": truth.ravel()}, source="world")
    noise = {f"m{at}": truth + size * rng.normal(size=truth.shape) for at, size in enumerate((1.0, 1.3, 1.7, 2.6))}
    return log, {name: dense(each, users=users.values, items=items.values) for name, each in noise.items()}


def realised(n: int, draws: int, folder: Path) -> tuple[dict[tuple[str, int | None], float], Floats, Grid]:
    """Expected τ of a study, and τ of fresh draws of n users from it (with replacement) with other seeds."""
    labels, scores = noisy_world(400, 60)
    grid = Grid((UniformLogger(),), (0.0, 0.7), families(["Random"], sizes=(2, 10)), (NDCG(10),), 2, None)
    study(scores, labels, folder, grid=grid, seed=1, resamples=2)
    studied = FinishedStudy.read(folder)
    found = advice_for(studied, None, users=n, sparsity=0.7, logger="uniform")
    assert not found.undecided
    world = LabelledDataset.from_log(labels)
    models = Models.align(scores, world, seed=1)
    able = np.flatnonzero(world.positive.count > 0)
    order, finite = models.orders(np.arange(len(world.users)))
    tables = MetricTables.of_metrics((NDCG(10),), most_positives=int(world.positive.count.max()), n_users=10 * n)
    first, second = np.triu_indices(len(models), 1)
    true = pl.read_parquet(folder / "pairs.parquet").filter((pl.col("sampler") == "Full") & (pl.col("sparsity") == 0))[
        "difference"
    ]
    taus = []
    for seed in range(draws):
        exposing = LoggerRun.prepare(
            world,
            UniformLogger(),
            sparsities=(0.0, 0.7),
            holdout=None,
            weight=np.ones(60),
            seed=1000 + seed,
        )
        units = np.sort(np.random.default_rng(seed).choice(able, n))
        scenarios = Scenarios.prepare(exposing, exposing.count(units), grid=grid, tables=tables, train=None)
        sums = scenarios.evaluate(units, np.zeros(n, np.int64), order[units], finite[units]).sums[0, 1, :, 0]
        taus.append((np.sign(sums[:, first] - sums[:, second]) * np.sign(true.to_numpy())).mean(axis=1))
    return {(each.sampler, each.size): each.tau for each in found.choices}, np.array(taus), grid


@pytest.mark.parametrize(("n", "draws"), [(30, 50), pytest.param(30, 1000, marks=pytest.mark.slow)])
def test_expected_tau_is_what_fresh_draws_give(tmp_path: Path, n: int, draws: int) -> None:
    expected, tau, grid = realised(n, draws, tmp_path)
    for at, label in enumerate(grid.candidates):
        error = tau[:, at].std(ddof=1) / math.sqrt(draws)
        assert 0.1 < expected[label] < 0.99
        # the study is a sample too: its differences have errors of sd / √400 each
        assert abs(tau[:, at].mean() - expected[label]) < 4 * error + 0.03, label
