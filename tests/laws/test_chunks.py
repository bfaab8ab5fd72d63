"""Chunks of users change no bit: every estimator of the catalogue, measured in any parts, added in any order.

Ways to ask are found through the catalogues of estimators, metrics and propensities; the negative control at the end
shows that the law can fail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import add
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from drawn import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from terms import split
from ways import EXCLUDE, MODELS, N_USERS, SEED, USERS, WAYS, Way, parametrized, prepared, rows_of

import truerank as tr
from truerank import estimators
from truerank.core.arrays import Ints
from truerank.core.errors import TruerankError
from truerank.core.estimator import (
    Estimator,
    EstimatorInfo,
    Exposed,
    Groups,
    Learner,
    ObservedUnits,
    Request,
    learn,
)
from truerank.core.ids import Ids
from truerank.core.metric import Metric
from truerank.core.ranking import JudgedChunk
from truerank.core.results import Comparison, Estimate, Results
from truerank.core.terms import Smooth
from truerank.estimators.weighted import Pooled
from truerank.evaluation import sources
from truerank.evaluation.conclude import conclude
from truerank.evaluation.label_rows import LabelRows
from truerank.evaluation.labels import prepare_labels
from truerank.evaluation.measure import Measured, join, measure
from truerank.evaluation.question import Plan
from truerank.exposure import propensities
from truerank.exposure.kinds import BiasedExposure, RandomExposure
from truerank.exposure.propensities import GivenPropensity
from truerank.io import partition
from truerank.io.read import scan
from truerank.io.spill import scratch

TOLERANCE = 1e-12


# ----------------------------------------------------------------------------------------------------------- measuring


def learned_from(plan: Plan[LabelRows], chunks: Sequence[JudgedChunk]) -> Plan[LabelRows]:
    """The same plan with all that is learned from the whole learned from these chunks."""
    learners = [learner for learner in plan.learned.models if isinstance(learner, Learner)]
    assert len(learners) == len(plan.learned.models)
    if not learners:
        return plan
    groups = plan.learned.groups or Groups(SEED, "one")
    return replace(
        plan, learned=learn(learners, lambda work: map(work, chunks), groups=groups, facts=plan.learned.facts)
    )


def in_parts(plan: Plan[LabelRows], whole: JudgedChunk, part: Ints, order: Sequence[int]) -> Results:
    """Learned, measured and added in chunks that come in this order."""
    chunks = list(split(whole, part))
    chunks = [chunks[at] for at in order if at < len(chunks)]
    again = learned_from(plan, chunks)
    parts: list[Measured] = [measure(again, chunk) for chunk in chunks]
    together = join(parts) if order[0] % 2 else reduce(add, parts)  # all at once, or one by one
    return conclude(again, together, complete=True)


@cache
def at_once(number: int) -> Results:
    with prepared(WAYS[number], rows_of(WAYS[number])) as (plan, whole):
        return conclude(plan, measure(plan, whole), complete=True)


def close(found: float | None, wanted: float | None, *, scale: float = 0.0) -> bool:
    if found is None or wanted is None or math.isnan(found) or math.isnan(wanted):
        return found == wanted or (
            wanted is not None and found is not None and math.isnan(found) and math.isnan(wanted)
        )
    return found == wanted or abs(found - wanted) <= TOLERANCE * max(abs(wanted), scale)


def check_same(found: Results, wanted: Results) -> None:
    """The same bits of values and counts, the same errors to 1e-12."""
    assert len(found.estimates) == len(wanted.estimates)
    assert len(found.comparisons) == len(wanted.comparisons)
    for one, other in zip(found.estimates, wanted.estimates, strict=True):
        same_row(one, other, value="value")
        assert (one.units, one.undefined) == (other.units, other.undefined)
        assert one.warning_texts == other.warning_texts
        assert close(one.ess, other.ess)
    for pair, same in zip(found.comparisons, wanted.comparisons, strict=True):
        same_row(pair, same, value="difference")
        assert close(pair.p, same.p, scale=1.0)
        assert close(pair.p_adjusted, same.p_adjusted, scale=1.0)
        assert (pair.verdict, pair.units) == (same.verdict, same.units)
    assert found.notes == wanted.notes
    assert found.provenance == wanted.provenance


def same_row(found: Estimate | Comparison, wanted: Estimate | Comparison, *, value: str) -> None:
    what = (found.model, found.metric, found.estimator, found.clip)
    assert what == (wanted.model, wanted.metric, wanted.estimator, wanted.clip)
    np.testing.assert_equal(getattr(found, value), getattr(wanted, value), err_msg=str(what))
    assert close(found.stderr, wanted.stderr), (what, found.stderr, wanted.stderr)
    for bound in ("low", "high"):
        assert close(
            getattr(found, bound), getattr(wanted, bound), scale=abs(getattr(wanted, value)) + wanted.stderr
        ), what
    assert found.clusters == wanted.clusters


every_way = parametrized(range(len(WAYS)))
PARTITIONS: dict[str, Ints] = {
    "one": np.zeros(N_USERS, dtype=np.int64),
    "seven": np.arange(N_USERS) % 7,
    "one per user": np.arange(N_USERS),
}


# ---------------------------------------------------------------------------------------------------------------- laws


def test_every_estimator_and_model_of_propensities_is_asked() -> None:
    assert {way.estimator.info.name for way in WAYS} == set(estimators.catalogue())
    fitted = {type(way.exposure.propensity) for way in WAYS if isinstance(way.exposure, BiasedExposure)}
    assert fitted == set(propensities.catalogue().values()) - {GivenPropensity} | {type(None)}
    assert {type(way.interval) for way in WAYS} == {type(None), tr.Bootstrap, tr.Design}


@every_way
def test_the_whole_has_something_to_lose(number: int) -> None:
    """Values, errors and weights that differ, and users who are undefined for one model alone."""
    results = at_once(number)
    assert sum(not math.isnan(each.value) for each in results.estimates) > len(results.estimates) / 2
    if WAYS[number].exposure.exposed is not Exposed.FULL or WAYS[number].interval is None:
        assert any(each.stderr > 0 for each in results.estimates)
    assert {each.undefined for each in results.estimates if each.model == "second"} - {0}


@every_way
@pytest.mark.parametrize("parts", list(PARTITIONS))
def test_chunks_of_users_change_no_bit(number: int, parts: str) -> None:
    way, part = WAYS[number], PARTITIONS[parts]
    order = np.random.default_rng(number).permutation(N_USERS).tolist()
    with prepared(way, rows_of(way)) as (plan, whole):
        check_same(in_parts(plan, whole, part, order), at_once(number))


@every_way
@examples(4)
@given(
    part=arrays(np.int64, N_USERS, elements=st.integers(0, 4)),
    order=st.permutations(range(N_USERS)),
    shuffle=st.integers(0, 2**16),
)
def test_any_partition_in_any_order_of_shuffled_rows(number: int, part: Ints, order: list[int], shuffle: int) -> None:
    way = WAYS[number]
    rows = rows_of(way)
    shuffled = rows[np.random.default_rng(shuffle).permutation(len(rows))]
    with prepared(way, shuffled) as (plan, whole):
        check_same(in_parts(plan, whole, part, order), at_once(number))


# ---------------------------------------------------------------------------------------------------------- from files


ON_DISK = [number for number, way in enumerate(WAYS) if way.interval is None]


@parametrized(ON_DISK)
def test_users_split_over_files_that_are_read_in_chunks(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = WAYS[number]
    rows = rows_of(way)
    rows = rows[np.random.default_rng(number).permutation(len(rows))]
    (tmp_path / "labels").mkdir()
    for at in range(3):
        rows[at::3].write_parquet(tmp_path / "labels" / f"part-{at}.parquet")
    for module, name in ((sources, "MEMORY_ROWS"), (partition, "MEMORY_ROWS")):
        monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(partition, "CHUNK_ROWS", 25)
    schema = scan(tmp_path / "labels", positive=">1", users=Ids.of(USERS))
    with scratch() as space:
        plan, source = prepare_labels(way.question, MODELS, {"labels": schema, "exclude": EXCLUDE}, space=space)
        assert source.n_chunks > 3
        parts = [measure(plan, source.chunk(at)) for at in range(source.n_chunks)]
        found = conclude(plan, join(parts), complete=True)
    wanted = at_once(number)
    for one, other in zip(found.estimates, wanted.estimates, strict=True):
        same_row(one, other, value="value")
    for pair, same in zip(found.comparisons, wanted.comparisons, strict=True):
        same_row(pair, same, value="difference")


# ---------------------------------------------------------------------------------------------------- negative control


@dataclass(frozen=True)
class LooksAtTheChunk(Estimator):
    """Pooled recall that takes what it happens to be measured with for the whole."""

    info: ClassVar[EstimatorInfo] = replace(Pooled.info, name="looks-at-the-chunk")

    def refusal(self, context: Metric) -> str | None:
        return Pooled().refusal(context)

    def estimand(self, request: Request, unit: str = "user") -> str:
        return f"{request.metric}, wrongly"

    def term(self, units: ObservedUnits, request: Request) -> Smooth:
        sound = Pooled().term(units, request).whole
        return replace(sound, sums=np.add(sound.sums, [0.0, 1e-9 * units.log.n_units]))


def test_the_law_can_fail() -> None:
    way = Way(LooksAtTheChunk(), RandomExposure())
    order = list(range(N_USERS))
    with prepared(way, rows_of(way)) as (plan, whole):
        wanted = conclude(plan, measure(plan, whole), complete=True)
        check_same(in_parts(plan, whole, PARTITIONS["one"], order), wanted)
        with pytest.raises(AssertionError):
            check_same(in_parts(plan, whole, PARTITIONS["seven"], order), wanted)


def test_a_lost_chunk_is_noticed() -> None:
    way = WAYS[0]
    with (
        prepared(way, rows_of(way)) as (plan, whole),
        pytest.raises(TruerankError, match="rows went in"),
    ):
        in_parts(plan, whole, PARTITIONS["seven"], [0, 1, 2, 3, 4, 5])
