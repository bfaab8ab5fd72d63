"""Whole models: what they learn, the same bits every time, and no trace left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import truerank as tr
from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.metrics.auc import AUC
from truerank.models import Side, catalogue, make
from truerank.ranking.scores.scores import Factors
from truerank.simulation.dataset import DatasetSettings, SimulatedDataset, simulate_dataset
from truerank_research.learners.examples import material
from truerank_research.learners.recipes import (
    Bias,
    HardNegatives,
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


def test_same_bits_whatever_the_machine_is_set_to() -> None:
    """Other threads in the environment, another default type and a global seed: the scores are the same bits."""
    code = (
        "import hashlib, torch; torch.manual_seed({seed}); torch.set_default_dtype({dtype}); import test_training as t;"
        "print([hashlib.sha256(t.bits(t.fitted(n))).hexdigest() for n in ('lightgcn-autodebias', 'mf-dns')])"
    )
    found = set()
    for threads, seed, dtype in (("1", "1", "torch.float32"), ("4", "2", "torch.float64")):
        paths = [str(Path(__file__).parent), *sys.path]
        environment = os.environ | {
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "PYTHONPATH": ":".join(paths),
        }
        command = [sys.executable, "-c", code.format(seed=seed, dtype=dtype)]
        found.add(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    assert len(found) == 1


def test_torch_is_left_as_it_was() -> None:
    generator, threads = torch.get_rng_state(), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        torch.use_deterministic_algorithms(True, warn_only=True)
        fitted("mf-dr")
        with pytest.raises(InputError):
            make("mf", {}).fit(world().train.select(slice(0)), seed=0)
        assert torch.get_num_threads() == 2
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.utils.deterministic.fill_uninitialized_memory
        assert torch.equal(torch.get_rng_state(), generator)
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(threads)


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


@pytest.mark.parametrize("name", ["mf", "lightgcn-ips"])
def test_users_and_items_without_rows_are_average(name: str) -> None:
    own = world()
    log = own.train.select((own.train.user != 7) & (own.train.item != 4))
    scores = fitted(name, log=log)
    others = np.setdiff1d(np.unique(log.user), [7])
    assert scores.user[7] == pytest.approx(scores.user[others].astype(float).mean(axis=0), abs=1e-5)
    seen = np.setdiff1d(np.unique(log.item), [4])
    assert scores.item[4] == pytest.approx(scores.item[seen].astype(float).mean(axis=0), abs=1e-5)


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


def test_of_positives_alone_random_other_pairs_are_the_negatives_for_stopping() -> None:
    own = world()
    parts = material("mf-dns", HardNegatives(), own.train, side=Side(), seed=0)
    assert float(parts.validation.label.mean()) == pytest.approx(0.5)
    liked = set(zip(own.train.user[own.train.label == 1], own.train.item[own.train.label == 1], strict=True))
    held = parts.validation
    negative = set(zip(held.user[held.label == 0], held.item[held.label == 0], strict=True))
    assert not negative & liked
    assert bool((parts.train.label == 1).all())
    assert int(parts.liked.count.sum()) == len(liked) > len(parts.train)


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


def test_zero_share_of_a_class_in_the_slice() -> None:
    """One positive: it goes to the rows that decide when to stop, and P(y = 1) would be zero."""
    own = world()
    first = np.flatnonzero(own.random.label == 1)[0]
    single = own.random.select(np.sort(np.append(np.flatnonzero(own.random.label == 0), first)))
    assert "P(y) of the random slice" in refused("mf-ips", own.train, single)
    assert "for the meta loss: none of" in refused("mf-autodebias", own.train, single)
    assert "2 of each class or more" in refused("mf-autodebias", own.train, single)
    pair = own.random.select(np.sort([first, np.flatnonzero(own.random.label == 0)[0]]))  # nothing for the meta loss
    assert "for the meta loss: none of 0 rows" in refused("mf-autodebias", own.train, pair)
    make("mf", SHORT).fit(own.train, seed=0, side=Side(random=single))  # needs no second half


@pytest.mark.parametrize("name", ["mf", "lightgcn", "mf-dns", "lightgcn-dns"])
def test_a_class_of_one_row_is_not_held_out_whole(name: str) -> None:
    """Without a slice one row of each class at least decides when to stop: a second one is needed to learn from."""
    own = world()
    found = [np.flatnonzero(own.train.label == y) for y in (0, 1)]
    lonely = own.train.select(np.sort(np.append(found[0], found[1][:1])))
    told = refused(name, lonely, None)
    assert "has the label 1, and it is held out" in told
    assert "expected 2 rows or more of each class" in told
    make(name, SHORT).fit(own.train.select(np.sort(np.append(found[0], found[1][:2]))), seed=0)
    if not name.endswith("dns"):
        assert "has the label 0" in refused(name, own.train.select(np.sort(np.append(found[1], found[0][:1]))), None)


def test_divergence_is_told() -> None:
    own = world()
    model = make("mf", {"learning_rate": "1e30", "loss": "mse", "epochs": "5"})
    with pytest.raises(InputError, match="diverged in epoch 1"):
        model.fit(own.train, seed=0, side=Side(random=own.random))
