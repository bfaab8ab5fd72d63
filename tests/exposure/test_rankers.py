"""Rankers: borders and refusals, Monte Carlo with its error, mixtures of loggers. Exactness is in tests/exact."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Groups, Learned
from truerank.exposure.policies.mixtures import LoggerShares, mixed_policy
from truerank.exposure.policies.rankers import (
    PlackettLuce,
    Ranked,
    RetrievedCandidates,
    SampledRanker,
    TwoStage,
    UniformCandidates,
    logging_exposures,
    mixed_exposures,
)
from truerank.exposure.policies.targets import ExposureColumn
from truerank.exposure.positions.position_models import Exponential, YuleSimon
from truerank.io.impressions import RankedChunk
from truerank.io.read_impressions import read_impressions

SCORE = np.array([0.3, 1.2, -0.5, 0.0, 2.0])


def test_a_sampled_ranker_agrees_within_its_error() -> None:
    weight, position = np.exp(SCORE), YuleSimon(1.0)
    sampled = SampledRanker(lambda rng: np.argsort(-(SCORE + rng.gumbel(size=5))), 5, draws=2000, seed=3)
    found, exact = sampled.exposures(position), PlackettLuce(weight).exposures(position)
    assert found.stderr is not None
    assert (np.abs(found.value - exact.value) < 4 * found.stderr).all()
    assert found.value.sum() == pytest.approx(position.view(np.arange(1.0, 6.0)).sum())
    assert (sampled.exposures(position).value == found.value).all()


def test_a_monte_carlo_mean_is_no_logging_exposure() -> None:
    sampled = SampledRanker(lambda rng: rng.permutation(3), 3)
    with pytest.raises(RefusedError, match="cannot be a Monte-Carlo mean"):
        logging_exposures(sampled, Exponential(0.5))
    np.testing.assert_allclose(logging_exposures(Ranked(np.array([1.0, 2.0])), Exponential(0.5)), [1.0, 0.5])


def test_cutoffs_are_zero_exposure() -> None:
    position = Exponential(0.5, cutoff=2)
    assert Ranked(np.array([1.0, 2.0, 3.0])).exposures(position).value.tolist() == [1.0, 0.5, 0.0]
    for ranker in (PlackettLuce(np.exp(SCORE)), TwoStage(UniformCandidates(3), PlackettLuce(np.exp(SCORE)))):
        assert ranker.exposures(position).value.sum() == pytest.approx(1.5)


def test_the_whole_pool_as_candidates_is_one_stage() -> None:
    position, one = YuleSimon(0.7), PlackettLuce.by_score(SCORE, temperature=0.5)
    for candidates in (UniformCandidates(5), RetrievedCandidates(np.ones(5))):
        np.testing.assert_allclose(
            TwoStage(candidates, one).exposures(position).value, one.exposures(position).value, atol=1e-12
        )
        ranked = Ranked.by_score(SCORE)
        np.testing.assert_allclose(
            TwoStage(candidates, ranked).exposures(position).value, ranked.exposures(position).value, atol=1e-12
        )


def test_little_noise_is_the_order() -> None:
    position = Exponential(0.8)
    sharp = PlackettLuce.by_score(SCORE, temperature=0.005).exposures(position).value
    np.testing.assert_allclose(sharp, Ranked.by_score(SCORE).exposures(position).value, atol=1e-9)


def test_ranks_are_checked() -> None:
    for wrong in ([1.0, 1.0], [0.0, 1.0], [1.5, 2.0]):
        with pytest.raises(InputError, match="ranks that repeat"):
            Ranked(np.array(wrong)).exposures(Exponential(0.5))
    assert Ranked.by_score(np.array([1.0, -np.inf, 1.0])).rank.tolist() == [1.0, np.inf, 2.0]
    with pytest.raises(InputError, match="candidates of 5 items"):
        TwoStage(UniformCandidates(6), PlackettLuce(np.ones(5))).exposures(Exponential(0.5))
    with pytest.raises(InputError, match="retrieval probabilities"):
        TwoStage(RetrievedCandidates(np.array([0.5, 2.0])), PlackettLuce(np.ones(2))).exposures(Exponential(0.5))
    with pytest.raises(InputError, match="repeats an item"):
        SampledRanker(lambda rng: [0, 0], 2).exposures(Exponential(0.5))
    with pytest.raises(InputError, match="temperature"):
        PlackettLuce.by_score(SCORE, temperature=0.0)


def test_shares_of_loggers_by_context() -> None:
    """Two loggers share group x as 1 to 2; one has group y alone. Counts of two parts of a log add."""
    frame = pl.DataFrame(
        {"session": [1, 2, 3, 4, 5], "item": 1, "reward": 0, "logger": list("abbaa"), "group": list("xxxyy"),
         "by_a": 0.3, "by_b": 0.6}
    )  # fmt: skip
    log = read_impressions(frame, extra=["by_a", "by_b"])
    learner, groups = LoggerShares(("a", "b")), Groups(0, "none")
    first, second = (learner.tally(RankedChunk(part), groups=groups, learned=Learned()) for part in log.chunks(2))
    counts = first + second
    assert (counts.share("a", "x"), counts.share("a", "y"), counts.nested) == (1 / 3, 1.0, True)
    loggers = {"a": ExposureColumn("by_a"), "b": ExposureColumn("by_b")}
    mixed = mixed_policy(log, loggers, counts=counts, positions=None)
    np.testing.assert_allclose(mixed.exposure(), [0.5, 0.5, 0.5, 0.3, 0.3])


def test_mixtures_are_checked() -> None:
    with pytest.raises(InputError, match="sum to 1"):
        mixed_exposures(np.ones((2, 3)), np.array([0.5, 0.6]))
    with pytest.raises(InputError, match="every logger"):
        mixed_exposures(np.array([[0.5], [np.nan]]), np.array([0.5, 0.5]))
    with pytest.raises(InputError, match="shape"):
        mixed_exposures(np.ones((2, 3)), np.ones((2, 2)) / 2)
