"""What other processes get of scores: item factors once, of users only those of a chunk; and the same bits."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from truerank.core.ranking import Scores
from truerank.engines.engine import Local
from truerank.evaluation.compatibility import LabelQuestion
from truerank.evaluation.labels import prepare_labels
from truerank.evaluation.measure import measure
from truerank.exposure.kinds import RandomExposure
from truerank.io.spill import scratch
from truerank.ranking.scores.scores import dense, factors, product
from truerank.ranking.scores.tables import lists

N_USERS, N_ITEMS, DIM = 600, 30, 16
RNG = np.random.default_rng(5)
CELLS = RNG.choice(N_USERS * N_ITEMS, 6000, replace=False)
LABELS = pl.DataFrame(
    {"user": CELLS // N_ITEMS * 2, "item": CELLS % N_ITEMS, "label": RNG.integers(0, 2, 6000)}
)  # every second user of the models
KNOWN = np.arange(2 * N_USERS - 10)  # models do not know the last of them


def long() -> pl.DataFrame:
    score = RNG.integers(0, 9, len(KNOWN) * 8)  # with ties
    items = np.concatenate([RNG.choice(N_ITEMS, 8, replace=False) for _ in KNOWN])
    return pl.DataFrame({"user": np.repeat(KNOWN, 8), "item": items, "score": score})


SCORES: dict[str, Callable[[], Scores]] = {
    "factors": lambda: factors(RNG.normal(size=(len(KNOWN), DIM)), RNG.normal(size=(N_ITEMS, DIM)), users=KNOWN),
    "dense": lambda: dense(RNG.normal(size=(len(KNOWN), N_ITEMS)), users=KNOWN[::-1], items=np.arange(N_ITEMS)[::-1]),
    "lists": lambda: lists(long(), name="lists"),
    "product": lambda: product(
        csr_array(RNG.integers(0, 2, (len(KNOWN), 40)) * 1.0), RNG.normal(size=(40, N_ITEMS)), users=KNOWN
    ),
}


def question() -> LabelQuestion:
    from truerank.metrics.additive import Recall

    return LabelQuestion(exposure=RandomExposure(), metrics=[Recall(5)], n_items=N_ITEMS)


@pytest.mark.parametrize("name", SCORES)
def test_chunks_are_measured_alike(name: str) -> None:
    with scratch() as space:
        plan, source = prepare_labels(
            question(), {"a": SCORES[name]()}, {"labels": LABELS}, space=space, workers=Local(2, here=False)
        )
        assert source.n_chunks == 4
        for at in range(source.n_chunks):
            expected, found = (
                measure(plan, chunk) for chunk in (source.chunk(at), source.read(source.part(at, same_disk=True)))
            )
            np.testing.assert_array_equal(found.place, expected.place)
            assert found.counts.relevant == expected.counts.relevant
            assert found.counts.models.keys() == expected.counts.models.keys()
            for cell, terms in expected.terms.items():
                assert found.terms[cell].value() == terms.value()


def sizes(n_users: int) -> tuple[int, int]:
    """Bytes of what all chunks share, and of one chunk of a hundred users."""
    user, item = RNG.normal(size=(n_users, DIM)), RNG.normal(size=(N_ITEMS, DIM))
    labels = pl.DataFrame({"user": np.arange(100), "item": np.zeros(100, dtype=int), "label": np.ones(100, dtype=int)})
    with scratch() as space:
        _, source = prepare_labels(question(), {"a": factors(user, item)}, {"labels": labels}, space=space)
        part = source.part(0, same_disk=False)
        return len(pickle.dumps(source.read)), len(pickle.dumps(part))


def test_what_is_sent_does_not_grow_with_the_users_of_the_models() -> None:
    (shared, part), (shared_of_many, part_of_many) = sizes(200), sizes(20_000)
    assert abs(shared_of_many - shared) < 100
    assert abs(part_of_many - part) < 100
    assert part > 100 * DIM * 8  # the factors of its users are there
