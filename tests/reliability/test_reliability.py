"""The reliability study against plain evaluations of every scenario, and the identities it must keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from logs import candidates_of, cells
from refusals import refused
from scipy.stats import kendalltau
from small_study import small_grid, small_scores, small_train, small_world

from truerank.core.arrays import Floats, Ints
from truerank.core.log import Log
from truerank.core.ranking import Ranks, Scores, Ties
from truerank.evaluation.labels import evaluate
from truerank.exposure.expose import WorldHoldOut, expose
from truerank.exposure.logging_policies import PositivityLogger
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.metrics.discounts import unit_values
from truerank.metrics.listwise import NDCG, ReciprocalRank
from truerank.ranking.kernel.rank import rank
from truerank.ranking.samplers.draw import SampledNegatives, Sampler, sample_candidates
from truerank.ranking.scores.tables import lists
from truerank.reliability import Grid, LabelledDataset, Preset, study
from truerank.reliability.grid import families
from truerank.reliability.kernels import copy_is_first
from truerank.reliability.plan import group_users
from truerank.reliability.run import StudyTables
from truerank.reliability.scenarios import LoggerRun
from truerank.reliability.tables import Resampling, tau_b
from truerank.sampling.pools import ring_times

METRICS = (Precision(5), Recall(3), NDCG(10), DCG(5))
SCENARIO = ["logger", "sparsity", "sampler", "size", "metric"]
SEED = 3

Values = dict[tuple[str, float, str, int | None, str], list[Floats]]  # of each repetition [users x models]


def scenario_values(world: Log, scores: dict[str, Scores], grid: Grid, train: Log) -> Values:
    """Every scenario by itself: expose, sample candidates, rank, evaluate."""
    found: Values = {}
    for repetition in range(grid.repetitions):
        seed = grid.seed_of(repetition, seed=SEED)
        for logger in grid.loggers:
            assert grid.holdout is not None
            left, held = grid.holdout.split(world, policy=logger, seed=seed)
            weight = logger.weights(world, train=train)
            for at, sparsity in enumerate(grid.sparsities):
                log = expose(left, weight, sparsity=sparsity, propensities=False, seed=seed)
                for (name, size), sampler in zip(grid.candidates, all_samplers(grid), strict=True):
                    random = log if held is None else held
                    sampled = sample_candidates(log, sampler, seed=seed, train=train, random=random, exclude=held)
                    labels = sampled.labels()
                    ranks = [
                        behind_copies(
                            rank(each, labels, pools=[candidates_of(sampled)], ties=Ties.RANDOM, seed=SEED)[0],
                            sampled, labels, seed=seed, number=at * len(scores) + model,
                        )
                        for model, each in enumerate(scores.values())
                    ]  # fmt: skip
                    for metric in grid.metrics:
                        values = np.stack([unit_values(metric, labels, each) for each in ranks], axis=1)
                        likes = np.bincount(labels.user[labels.label == 1], minlength=len(world.users)) > 0
                        key = (str(logger), sparsity, name, size, str(metric))
                        found.setdefault(key, []).append(np.where(likes[:, None], values, np.nan))
    return found


def behind_copies(ranks: Ranks, sampled: SampledNegatives, labels: Log, *, seed: int, number: int) -> Ranks:
    """A positive that was also drawn as a negative is one place lower where its copy comes first."""
    drawn = {(sampled.user[row], sampled.item[row]) for row in np.flatnonzero(sampled.repeated)}
    twice = np.array([pair in drawn for pair in zip(labels.user, labels.item, strict=True)], dtype=bool)
    users, items = (ids.keys()[place] for ids, place in ((labels.users, labels.user), (labels.items, labels.item)))
    first = [copy_is_first(time, number) for time in ring_times(seed, "candidates", users, items)]
    return replace(ranks, above=ranks.above + (twice & np.array(first, dtype=bool)))


def all_samplers(grid: Grid) -> Iterator[Sampler]:
    for family in grid.families:
        yield from [replace(family.sampler, n=n) for n in family.sizes] or [family.sampler]  # type: ignore[type-var]


def tie_rate(values: Floats) -> float:
    pairs = list(combinations(range(len(values)), 2))
    return sum(bool(abs(values[a] - values[b]) < 1e-12) for a, b in pairs) / len(pairs)


def tau(a: Floats, b: Floats) -> float:
    """Pair by pair; sums of the same worths in another order may differ in the last bits."""
    first, second = np.triu_indices(len(a), 1)
    x, y = (np.sign(np.round(v[first] - v[second], 11)) for v in (a, b))
    size = np.count_nonzero(x) * np.count_nonzero(y)
    return float(x @ y / np.sqrt(size)) if size else np.nan


@pytest.fixture(scope="module", params=list(Preset), ids=str)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Grid, StudyTables, Values]:
    world, train = small_world(), small_train()
    scores = small_scores(world)
    grid = replace(small_grid(request.param), metrics=METRICS)
    out = tmp_path_factory.mktemp("study")
    tables = study(scores, world, out, grid=grid, train=train, seed=SEED, resamples=20)
    return grid, tables, scenario_values(world, scores, grid, train)


def test_every_scenario_equals_its_own_evaluation(both: tuple[Grid, StudyTables, Values]) -> None:
    grid, tables, values = both
    found = {(*row[:5], row[5]): row for row in tables.results.select(*SCENARIO, "question", "value", "undefined",
             "value_undefined_as_0", "users").rows()}  # fmt: skip
    assert len(found) == len(values) * 5
    for key, of_repetitions in values.items():
        logger, sparsity, sampler, size, metric = key
        references = {
            "fidelity": (logger, sparsity, "Full", None, metric),
            "robustness": (logger, 0.0, sampler, size, metric),
            "predictive_power": (logger, 0.0, "Full", None, metric),
        }
        kept = [~np.isnan(each[:, 0]) for each in of_repetitions]
        ties = [tie_rate(v) for each, keep in zip(of_repetitions, kept, strict=True) for v in each[keep]]
        assert found[*key, "resolution"][6] == pytest.approx(np.mean(ties), abs=1e-12)
        rounded = [
            tie_rate(np.rint(v * 1e4)) for each, keep in zip(of_repetitions, kept, strict=True) for v in each[keep]
        ]
        assert found[*key, "resolution_rounded"][6] == pytest.approx(np.mean(rounded), abs=1e-12)
        for question, reference in references.items():
            taus = np.array([
                tau(np.rint(a * 1e4), np.rint(b * 1e4)) if grid.by_rounded else tau(a, b)
                for each, other, keep in zip(of_repetitions, values[reference], kept, strict=True)
                for a, b in zip(each[keep], other[keep], strict=True)
            ])  # fmt: skip
            row = found[*key, question]
            undefined = np.isnan(taus)
            assert row[7] == pytest.approx(undefined.mean(), abs=1e-12)
            expected = np.nan if undefined.all() else taus[~undefined].mean()
            assert row[6] == pytest.approx(expected, abs=1e-8, nan_ok=True)
            assert row[8] == pytest.approx(np.nan_to_num(taus).mean(), abs=1e-8)
        assert row[9] == max(int(each.sum()) for each in kept)


def test_intervals_of_tau_of_means_redraw_users_and_repetitions(both: tuple[Grid, StudyTables, Values]) -> None:
    """With few users each is a group of its own, so everything can be done again from the values themselves."""
    grid, tables, values = both
    resampling = Resampling(20, seed=SEED)
    columns = ["tau_of_means_low", "tau_of_means_high", "tau_of_means_sd"]
    found = {row[:6]: row[6:] for row in tables.results.select("question", *SCENARIO, *columns).rows()}
    key = small_world().users.keys()
    for question, scenario in product(("fidelity", "robustness"), values):
        logger, sparsity, sampler, size, metric = scenario
        reference = (sparsity, "Full", None) if question == "fidelity" else (0.0, sampler, size)
        others = values[logger, *reference, metric]
        evaluated = np.flatnonzero(np.bincount(small_world().user, small_world().label) > 0)
        units, _ = group_users(evaluated, key[evaluated], seed=SEED)
        weight = resampling.of_groups(len(units))
        of_repetition = resampling.of_repetitions(grid.repetitions)
        taus = np.array([
            [tau(w @ np.nan_to_num(a[units]), w @ np.nan_to_num(b[units])) for w in weight]
            for a, b in zip(values[scenario], others, strict=True)
        ])  # fmt: skip
        known = ~np.isnan(taus)
        with np.errstate(invalid="ignore"):
            mean = (of_repetition.T * np.nan_to_num(taus)).sum(axis=0) / (of_repetition.T * known).sum(axis=0)
        low, high = np.nanquantile(mean[1:], [0.025, 0.975])
        expected = (low, high, np.std(taus[:, 0], ddof=1))
        assert found[question, *scenario] == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_differences_of_pairs_and_how_they_vary_between_users(both: tuple[Grid, StudyTables, Values]) -> None:
    grid, tables, values = both
    assert tables.pairs.height == len(values) * 6
    for row in tables.pairs.select(*SCENARIO, "model", "other", "difference", "sd", "users", "repetitions").rows():
        a, b = (int(name[1:]) for name in row[5:7])
        differences = [each[:, a] - each[:, b] for each in values[row[:5]]]
        variance = np.mean([np.nanvar(each, ddof=1) for each in differences])
        assert row[7] == pytest.approx(np.nanmean(np.concatenate(differences)), abs=1e-12)
        assert row[8] == pytest.approx(np.sqrt(variance), abs=1e-9)
        assert row[9:] == (max(np.isfinite(each).sum() for each in differences), grid.repetitions)


def test_threads_and_blocks_never_change_a_bit(tmp_path: Path) -> None:
    world, train = small_world(), small_train()
    scores = small_scores(world)
    for preset in Preset:
        grid = replace(small_grid(preset), metrics=METRICS)
        files = []
        for threads, block_users in ((1, None), (2, 3), (1, 5)):
            out = tmp_path / f"{preset}-{threads}-{block_users}"
            study(scores, world, out, grid=grid, train=train, seed=SEED, resamples=20, threads=threads,
                  block_users=block_users)  # fmt: skip
            files.append([(out / each).read_bytes() for each in ("results.parquet", "means.parquet", "pairs.parquet")])
        assert all(each == files[0] for each in files)


@pytest.mark.parametrize("holdout", [None, WorldHoldOut.published(), WorldHoldOut.released()], ids=str)
def test_the_compiled_draw_is_that_of_the_design(holdout: WorldHoldOut | None) -> None:
    """Cells that kernels hold out and show are those of `split` and `expose`."""
    labels, sparsities, logger = small_world(40, 70), (0.0, 0.3, 0.9, 0.97), PositivityLogger()
    world, units = LabelledDataset.from_log(labels), np.arange(40)
    weight = logger.weights(labels)
    assert (weight == 0).any()
    run = LoggerRun.prepare(world, logger, sparsities=sparsities, holdout=holdout, weight=weight, seed=SEED)
    compiled = run.exposed(units)
    left, held = (labels, None) if holdout is None else holdout.split(labels, policy=logger, seed=SEED)
    assert set(zip(*np.nonzero(compiled.held), strict=True)) == (set() if held is None else cells(held))
    for at, sparsity in enumerate(sparsities):
        shown = expose(left, weight, sparsity=sparsity, propensities=False, seed=SEED)
        assert set(zip(*np.nonzero(compiled.level > at), strict=True)) == cells(shown)


def pairs_of(world: Log, user: Ints, item: Ints) -> Log:
    return Log(world.users, world.items, unit=user, item=item, rewards={}, source="seen")


@pytest.mark.parametrize("complete", [False, True])
def test_what_each_user_has_seen_is_no_candidate(tmp_path: Path, *, complete: bool) -> None:
    """Full at sparsity 0 is an evaluation without these pairs; also where only positives are listed.

    Both metrics leave out users who like nothing, as a study does.
    """
    metrics = (Recall(3), NDCG(10))
    world = small_world(missing=0)
    rng = np.random.default_rng(9)
    cell = np.sort(rng.choice(12 * 30, 90, replace=False))
    exclude = pairs_of(world, cell // 30, cell % 30)
    labels = replace(world.select(np.flatnonzero(world.label == 1)), complete=True) if complete else world
    grid = Grid(small_grid().loggers[:1], (0.0,), families(["Exposed", "Random"], sizes=[100]), metrics, holdout=None)
    scores = small_scores(world)
    found = study(scores, labels, tmp_path / "a", grid=grid, exclude=exclude, resamples=20, seed=SEED)
    true = evaluate(scores, world, exclude=exclude, metrics=metrics, ties=Ties.RANDOM, seed=SEED)
    means = {row[:3]: row[3] for row in found.means.select("sampler", "metric", "model", "mean").rows()}
    assert len(true.estimates) == 8
    for each in true.estimates:
        for sampler in ("Full", "Exposed", "Random"):
            assert means[sampler, each.metric, each.model] == pytest.approx(each.value, abs=1e-12)


def test_tau_b_equals_scipy() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.integers(0, 4, 6), rng.integers(0, 4, 6)
        first, second = np.triu_indices(6, 1)
        x, y = np.sign(a[first] - a[second]), np.sign(b[first] - b[second])
        value = tau_b(np.array((x * y).sum()), np.array((x == 0).sum()), np.array((y == 0).sum()), n_models=6)
        assert value == pytest.approx(kendalltau(a, b).statistic, nan_ok=True)


def test_what_cannot_be_studied_is_refused(tmp_path: Path) -> None:
    world = small_world()
    scores = small_scores(world)
    grid = small_grid(repetitions=1)
    few = world.select(np.arange(50))
    top = lists(pl.DataFrame({"user": [100, 101], "item": ["i001", "i002"], "score": [1.0, 2.0]}), name="top")
    calls: dict[str, Callable[[], object]] = {
        "fully observed": lambda: study(scores, few, tmp_path / "a", grid=grid),
        "at least two": lambda: study({"m0": scores["m0"]}, world, tmp_path / "b", grid=grid),
        "give train=": lambda: study(scores, world, tmp_path / "c", grid=grid),
        "top lists": lambda: study({**scores, "top": top}, world, tmp_path / "e", grid=grid, train=small_train()),
        "no cut-off": lambda: study(
            scores, world, tmp_path / "d", grid=replace(grid, metrics=(ReciprocalRank(),)), train=small_train()
        ),
        "below 1": lambda: Grid.from_names(sparsities=[1.0]),
        "from 1": lambda: Grid.from_names(sizes=[0]),
        "given twice": lambda: Grid.from_names(loggers=["uniform", "uniform"]),
        "unknown sampler": lambda: Grid.from_names(samplers=["Rnadom"]),
        "repetitions": lambda: Grid.from_names(repetitions=0),
    }
    for message, call in calls.items():
        with refused(message):
            call()
    assert not any((tmp_path / name).exists() for name in "abcde")
