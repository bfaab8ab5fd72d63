"""Random and chosen parts of public data, told apart; propensities of Coat against its random part."""

from __future__ import annotations

import math

import numpy as np
import pytest

import truerank as tr
from realdata import folder_of
from truerank.datasets.ratings import Coat
from truerank.exposure.propensities import fit_propensities
from truerank.exposure.propensities.calibration import calibration
from truerank.exposure.randomness import Check, Randomness, randomness
from truerank.io.features import read_features

pytestmark = pytest.mark.realdata


def check(found: Randomness, name: str) -> Check:
    return next(each for each in found.checks if each.name == name)


def test_the_random_part_of_coat_is_random_and_the_chosen_part_is_not() -> None:
    logs = Coat().load(folder_of("coat"))
    for train in (None, logs["train"]):
        random = randomness(logs["random"], train=train)
        assert random.random is True
        assert random.verdict.startswith("Consistent with random exposure")
        assert check(random, "items").statistic == pytest.approx(298.7, abs=0.05)
        assert check(random, "items").df == pytest.approx(299)
    assert (random.overlap, random.drawn) == (366, "all")
    assert random.overlap_expected == pytest.approx(371.2)
    chosen = randomness(logs["train"])
    assert chosen.random is False
    assert check(chosen, "items").statistic == pytest.approx(2618, abs=0.5)
    assert all(each.failed for each in chosen.checks)
    assert "liked were exposed more often" in chosen.verdict


def test_a_random_sample_of_kuairec_is_random() -> None:
    columns = {"user": "user_id", "item": "video_id"}
    grid = tr.read(folder_of("kuairec") / "small_matrix_binary_grid.parquet", columns=columns)
    drawn = np.random.default_rng(1).random(len(grid)) < 0.01
    assert randomness(grid.select(drawn)).random is True


def test_propensities_of_coat() -> None:
    folder = folder_of("coat")
    logs, tables = Coat().load(folder), Coat().features(folder)
    train, random = logs["train"], logs["random"]
    users, items = (read_features(tables[f"{kind}s"], kind=kind) for kind in ("user", "item"))
    naive = fit_propensities("naive-bayes", train, random=random)
    value = naive.at(train)
    assert sorted(set(value.round(5).tolist())) == [0.07132, 0.11814]
    assert value.max() == pytest.approx(1905 / (87_000 * 860 / 4640))
    by_features = fit_propensities("logistic", train, user_features=users, item_features=items)
    errors = {
        name: calibration(each, train, random).error
        for name, each in (("naive", naive), ("features", by_features), ("power", fit_propensities("power", train)))
    }
    assert errors["naive"] < 0.01
    assert errors["features"] < 0.015
    assert errors["power"] > 0.2  # known up to a factor only
    labels = {each.name: each for each in calibration(by_features, train, random).labels}
    assert labels["label 1"].predicted < labels["label 1"].low  # features do not see that users choose what they like
    assert math.isclose(labels["label 1"].observed, value.max())
