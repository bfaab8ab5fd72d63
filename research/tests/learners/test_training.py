"""Whole models: what they learn, the same bits every time, and no trace left behind."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.metrics.pairwise import AUC
from truerank.models import Side, catalogue, make
from truerank.ranking.scores.scores import Factors
from truerank.simulation.dataset import DatasetSettings, SimulatedDataset, simulate_dataset
from truerank_research.learners.examples import material
from truerank_research.learners.recipes import (
    Bias,
    MatrixFactorisation,
    Recipe,
    Training,
)
from truerank_research.learners.train import train

NAMES = [name for name, model in catalogue().items() if model.needs == "torch"]
SHORT = {"epochs": "3", "batch": "256"}


@cache
def world() -> SimulatedDataset:
    return simulate_dataset(DatasetSettings(users=60, items=40, shown=15, judged=10, density=0.2), seed=3)


def fitted(name: str, *, seed: int = 5, log: Log | None = None, **settings: str) -> Factors:
    own = world()
    found = make(name, SHORT | settings).fit(own.train if log is None else log, seed=seed, side=Side(random=own.random))
    assert isinstance(found, Factors)
    return found


def bits(scores: Factors) -> bytes:
    return scores.user.tobytes() + scores.item.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bits_and_the_order_of_rows_is_irrelevant(name: str) -> None:
    first = bits(fitted(name))
    assert bits(fitted(name)) == first
    log = world().train
    turned = log.select(np.random.default_rng(0).permutation(len(log)))
    assert bits(fitted(name, log=turned)) == first
    assert bits(fitted(name, seed=6)) != first


def two_tastes() -> tuple[Log, Log]:
    """Users 0-9 like items 0-9, users 10-19 like items 10-19, and nothing else; a pair (u, i) with i = u + 1 or u + 4
    (modulo ten, on either side) is not in the log: these 80 pairs are what a model has to guess."""
    user, item = (axis.ravel() for axis in np.indices((20, 20)))
    frame = pl.DataFrame({"user": user, "item": item, "label": (user < 10) == (item < 10)}).cast(pl.Int64)
    full = tr.read(frame)
    hidden = np.isin((full.item - full.user) % 10, (1, 4))
    return full.select(~hidden), full.select(hidden)


@pytest.mark.parametrize("name", NAMES)
def test_two_tastes_are_told_apart(name: str) -> None:
    """By hand: each hidden item of the user's own kind must score above each of the other kind.

    DNS takes what is not in the log for negative, the hidden pairs of the own kind too; it may get some wrong.
    """
    log, hidden = two_tastes()
    settings = {"epochs": "150", "batch": "128", "learning_rate": "0.05", "weight_decay": "0.001"}
    scores = make(name, settings).fit(log, seed=1, side=Side(random=hidden))
    results = tr.evaluate({name: scores}, hidden, candidates=hidden, metrics=[AUC()])
    assert results.estimates[0].value >= (0.9 if name.endswith("dns") else 1.0)


# ------------------------------------------------------------------------------------------------------ stated results


def test_halves_of_the_slice_share_no_row_and_have_both_classes() -> None:
    own = world()
    parts = material("mf", Bias(), own.train, side=Side(random=own.random), seed=0)
    assert parts.uniform is not None
    assert len(parts.uniform) + len(parts.validation) == len(own.random)
    first, second = (
        set(zip(each.user.tolist(), each.item.tolist(), strict=True)) for each in (parts.uniform, parts.validation)
    )
    assert not first & second
    for y in (0, 1):
        sizes = [int((part.label == y).sum()) for part in (parts.uniform, parts.validation)]
        assert abs(sizes[0] - sizes[1]) <= 1
    assert len(parts.train) == len(own.train)


def test_without_a_slice_a_tenth_of_the_log_decides_and_is_not_trained_on() -> None:
    own = world()
    parts = material("mf", Bias(), own.train, side=Side(), seed=0)
    assert parts.uniform is None
    assert len(parts.train) + len(parts.validation) == len(own.train)
    assert len(parts.validation) == pytest.approx(0.1 * len(own.train), abs=2)


def test_a_propensity_column_is_used_before_naive_bayes() -> None:
    own = world()
    told = replace(own.train, propensity=np.where(own.train.label == 1, 0.8, 0.1))
    assert bits(fitted("mf-ips", log=told)) != bits(fitted("mf-ips"))
    assert bits(fitted("mf", log=told)) == bits(fitted("mf"))  # and where it is of no use it changes nothing
    same = replace(own.train, propensity=np.full(len(own.train), 0.3))
    scaled = replace(own.train, propensity=np.full(len(own.train), 0.6))
    # a constant propensity is a constant factor of the loss; Adam is nearly, not exactly, blind to it
    assert fitted("mf-ips", log=same).item == pytest.approx(fitted("mf-ips", log=scaled).item, abs=0.05)


def test_training_stops_after_patience_and_keeps_the_best_epoch() -> None:
    own = world()
    recipe = Recipe("mf", MatrixFactorisation(), Bias(), Training(learning_rate=0.1, patience=4, batch=64))
    found = train(recipe, own.train, seed=2, side=Side(random=own.random))
    auc = found.validation_auc
    assert len(auc) == found.best_epoch + 4
    assert auc[found.best_epoch - 1] == max(auc)
    shorter = replace(recipe, training=replace(recipe.training, epochs=found.best_epoch))
    again = train(shorter, own.train, seed=2, side=Side(random=own.random))
    assert np.array_equal(again.user_factors, found.user_factors)


# ------------------------------------------------------------------------------------------------------------ bad input


def refused(name: str, log: Log, random: Log | None) -> str:
    with pytest.raises(InputError) as found:
        make(name, SHORT).fit(log, seed=0, side=Side(random=random))
    return str(found.value)


@pytest.mark.parametrize("name", NAMES)
def test_bad_logs_are_refused(name: str) -> None:
    own = world()
    assert "no rows" in refused(name, own.train.select(np.arange(0)), own.random)
    only_negative = own.train.select(own.train.label == 0)
    assert "positive" in refused(name, only_negative, own.random)
    if not name.endswith("dns"):
        assert "each of" in refused(name, own.train.select(own.train.label == 1), own.random)


@pytest.mark.parametrize("backbone", ["mf", "lightgcn"])
def test_what_debiasing_needs_is_asked_for(backbone: str) -> None:
    own = world()
    told = replace(own.train, propensity=np.full(len(own.train), 0.5))
    for method in ("ips", "dr", "autodebias"):
        assert "random slice" in refused(f"{backbone}-{method}", own.train, None)
    assert "a random slice" in refused(f"{backbone}-autodebias", told, None)
    make(f"{backbone}-ips", SHORT).fit(told, seed=0)  # propensities are enough
    wrong = replace(own.train, propensity=np.where(own.train.user == 3, 0.0, 0.5))
    assert "expected above 0 and up to 1" in refused(f"{backbone}-dr", wrong, own.random)


@pytest.mark.parametrize("name", ["mf", "mf-ips", "mf-dr", "mf-autodebias", "mf-dns"])
def test_bad_slices_are_refused(name: str) -> None:
    own = world()
    assert "has 0 rows" in refused(name, own.train, own.random.select(np.arange(0)))
    for y in (0, 1):
        one_class = own.random.select(own.random.label == y)
        assert f"has the label {1 - y}" in refused(name, own.train, one_class)
