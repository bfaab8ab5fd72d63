"""Targets given by scores: exposures by every order, and the same answer as exposures that were given."""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from calling import call
from refusals import refused

import truerank as tr

SCORE = [1.2, 0.3, -0.4, 0.9]
VIEW = 0.5 ** np.arange(4)
TABLE = pl.DataFrame({"session": ["s"] * 4 + ["t"], "item": [1, 2, 3, 4, 1], "score": [*SCORE, 7.0]})


def plackett_luce(weight: dict[int, float]) -> np.ndarray:
    """ε of four items by every order of those that compete."""
    found = np.zeros(4)
    for order in permutations(weight):
        chance, left = 1.0, sum(weight.values())
        for item in order:
            chance, left = chance * weight[item] / left, left - weight[item]
        for rank, item in enumerate(order):
            found[item] += chance * VIEW[rank]
    return found


def test_exposures_are_those_of_every_order() -> None:
    weight = {at: float(np.exp(score / 0.7)) for at, score in enumerate(SCORE)}
    in_order = tr.exposure.exposures(TABLE, "exp:0.5")
    assert in_order["exposure"].to_list() == [1.0, 0.25, 0.125, 0.5, 1.0]
    drawn = tr.exposure.exposures(TABLE, "exp:0.5", temperature=0.7)["exposure"].to_numpy()
    assert drawn[:4] == pytest.approx(plackett_luce(weight), abs=1e-10)
    assert drawn[4] == pytest.approx(1.0, abs=1e-10)
    two = tr.exposure.exposures(TABLE, "exp:0.5", temperature=0.7, n_candidates=2)["exposure"].to_numpy()
    subsets = [plackett_luce({at: weight[at] for at in pair}) for pair in combinations(range(4), 2)]
    assert two[:4] == pytest.approx(np.mean(subsets, axis=0), abs=1e-10)


def test_items_are_retrieved_by_themselves() -> None:
    table = pl.DataFrame({"session": [1, 1], "item": [1, 2], "score": [2.0, 1.0], "retrieval": [0.5, 1.0]})
    assert tr.exposure.exposures(table, "exp:0.5")["exposure"].to_list() == [0.5, 0.75]
    with refused("expected one of both"):
        tr.exposure.exposures(table, "exp:0.5", n_candidates=1)


LOG = pl.DataFrame(
    {"session": [1, 1, 2, 2], "item": ["a", "b", "b", "a"], "position": [1, 2, 1, 2], "reward": [1, 0, 1, 1]}
)
SCORES = pl.DataFrame({"session": [1, 1, 2, 2], "item": ["a", "b", "a", "b"], "score": [0.1, 0.9, 0.5, 0.2]})


def test_scores_give_what_their_exposures_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how: dict[str, Any] = {"position": "exp:0.5", "estimators": ["ips"]}
    given = tr.exposure.exposures(SCORES, "exp:0.5", temperature=0.4)
    one, two = tr.off_policy(LOG, {"new": given}, **how), tr.off_policy(LOG, {"new": SCORES}, temperature=0.4, **how)
    assert one.estimates[0].value == two.estimates[0].value
    ranked = SCORES.with_columns(rank=pl.Series([2, 1, 1, 2])).drop("score")
    three, four = tr.off_policy(LOG, {"new": ranked}, **how), tr.off_policy(LOG, {"new": SCORES}, temperature=0, **how)
    assert three.estimates[0].value == four.estimates[0].value
    monkeypatch.chdir(tmp_path)
    LOG.write_parquet("log.parquet")
    SCORES.write_parquet("new.parquet")
    words = "offpolicy log.parquet --target new=new.parquet --estimator ips --quiet --format csv"
    found = call(f"{words} --position exp:0.5 --temperature 0.4").fine()
    assert f"{one.estimates[0].value}" in found.out
    for more, message in {
        "--position fit:exp --temperature 0": "expected a position model that is known",
        "--temperature 0": "scores need a position model",
        "--position exp:0.5": "--temperature 0 ranks them in order",
        "--position exp:0.5 --temperature -1": "temperature -1",
        "--position exp:0.5 --n-candidates 0": "expected a whole number from 1",
    }.items():
        ended = call(f"{words} {more}")
        assert (ended.code, message in ended.err) == (2, True), ended.err


def test_what_has_no_exposure_is_refused() -> None:
    with refused("column score, and there is none"):
        tr.off_policy(LOG, {"log": tr.exposure.RankColumn("position")}, position="exp:0.5", temperature=1.0)
    with refused("twice in session"):
        tr.exposure.exposures(pl.concat([SCORES, SCORES[:1]]), "exp:0.5")
    with refused("several position models"):
        tr.exposure.exposures(SCORES, "a=exp:0.5,b=exp:0.4")
