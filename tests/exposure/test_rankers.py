"""Rankers: borders and refusals; shares of loggers. Exactness is in tests/exact."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from refusals import refused

from truerank.core.estimator import Groups, Learned
from truerank.exposure.policies import TrafficShares
from truerank.exposure.policies.rankers import ranker_exposures
from truerank.exposure.policies.targets import ExposureColumn, mixed_policy
from truerank.exposure.positions.position_models import Exponential
from truerank.io.read import read_impressions
from truerank.io.sessions import RankedChunk

SCORE = np.array([0.3, 1.2, -0.5, 0.0, 2.0])


def test_cutoffs_are_zero_exposure() -> None:
    position = Exponential(0.5, cutoff=2)
    assert ranker_exposures(np.array([3.0, 2.0, 1.0]), position).tolist() == [1.0, 0.5, 0.0]
    for k in (None, 3):
        assert ranker_exposures(SCORE, position, temperature=1.0, n_candidates=k).sum() == pytest.approx(1.5)


def test_little_noise_is_the_order() -> None:
    sharp, ranked = (ranker_exposures(SCORE, Exponential(0.8), temperature=value) for value in (0.005, None))
    np.testing.assert_allclose(sharp, ranked, atol=1e-9)


def test_wrong_rankers_are_refused() -> None:
    with refused("candidates of 5 items"):
        ranker_exposures(SCORE, Exponential(0.5), temperature=1.0, n_candidates=6)
    with refused("retrieval probabilities"):
        ranker_exposures(SCORE, Exponential(0.5), temperature=1.0, retrieval=np.full(5, 2.0))
    with refused("temperature"):
        ranker_exposures(SCORE, Exponential(0.5), temperature=-1.0)


def test_shares_of_loggers_by_context() -> None:
    """Two loggers share group x as 1 to 2; one has group y alone. Counts of two parts of a log add."""
    frame = pl.DataFrame(
        {"session": [1, 2, 3, 4, 5], "item": 1, "reward": 0, "logger": list("abbaa"), "group": list("xxxyy"),
         "by_a": 0.3, "by_b": 0.6}
    )  # fmt: skip
    log = read_impressions(frame, extra=["by_a", "by_b"])
    learner, groups = TrafficShares(("a", "b")), Groups(0, "none")
    first, second = (learner.tally(RankedChunk(part), groups=groups, learned=Learned()) for part in log.chunks(2))
    counts = first + second
    assert (counts.share("a", "x"), counts.share("a", "y"), counts.nested) == (1 / 3, 1.0, True)
    loggers = {"a": ExposureColumn("by_a"), "b": ExposureColumn("by_b")}
    mixed = mixed_policy(log, loggers, counts=counts, positions=None)
    np.testing.assert_allclose(mixed.exposure(), [0.5, 0.5, 0.5, 0.3, 0.3])
