"""A clip limits the ratio of exposures, so that the logging policy keeps what it has earned; the paper's form stays."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.values import text_of
from truerank.estimators import RANKED
from truerank.estimators.impressions import Limited
from truerank.estimators.weighted import IPS, SNIPS
from truerank.exposure.policies.targets import RankColumn
from truerank.inference.clipping import AutoClip

CLIPS = [1.0, 2.0, 4.0, 64.0, math.inf]


def log_of(n: int = 300, *, seed: int = 1) -> pl.DataFrame:
    """Sessions in which views fall by .7 with every position; column `new` turns each list of five round."""
    rng = np.random.default_rng(seed)
    depth = np.minimum(rng.geometric(0.3, size=n), 5)
    session = np.repeat(np.arange(n), depth)
    position = np.concatenate([np.arange(1, each + 1) for each in depth])
    reward = (rng.random(len(session)) < 0.3).astype(int)
    return pl.DataFrame(
        {"session": session, "item": position * 10, "position": position, "reward": reward, "new": 6 - position}
    ).with_columns(candidates=pl.lit(5))


@pytest.mark.parametrize("name", ["ips", "snips", "post-normalised", "ndcg", "ndcg(ideal=labels)"])
def test_the_logging_policy_has_one_value_at_every_clip(name: str) -> None:
    log = log_of()
    found = tr.off_policy(
        log, {"log": RankColumn("position")}, position="exp:0.7", clips=CLIPS, estimators=[name]
    ).estimates
    assert [each.clip for each in found] == [1.0, 2.0, 4.0, 64.0, None]
    earned = log["reward"].sum() / log["session"].n_unique() if name == "ips" else found[-1].value
    assert [each.value for each in found] == pytest.approx([earned] * len(CLIPS), rel=1e-12)
    assert [each.evidence.lost for each in found[:-1]] == pytest.approx([0.0] * 4, abs=1e-12)
    assert found[-1].evidence.lost is None


def test_the_clip_of_the_paper_is_an_option() -> None:
    """Position 3 (ε0 = .49) has 1/ε0 = 2.04: a clip of 2 lowers it on-policy in the paper's form alone."""
    inverse = RANKED.parse("ips(clip=2, of=inverse)")
    assert inverse == IPS(clip=2.0, of=Limited.INVERSE)
    assert RANKED.parse(text_of(inverse)) == inverse
    log = log_of()
    below = log.filter((pl.col("position") > 2) & (pl.col("reward") == 1))
    lost = float((1 - 2 * 0.7 ** (below["position"] - 1)).sum()) / log["session"].n_unique()
    ratio, paper = (
        tr.off_policy(log, {"log": RankColumn("position")}, position="exp:0.7", estimators=[each]).estimates[0]
        for each in ("ips(clip=2)", inverse)
    )
    assert ratio.value - paper.value == pytest.approx(lost, rel=1e-12)
    assert paper.settings == {"of": "inverse"}


def test_both_forms_in_one_call_have_diagnostics_of_their_own() -> None:
    asked = [SNIPS(), SNIPS(of=Limited.INVERSE)]
    found = tr.off_policy(log_of(), {"log": RankColumn("position")}, position="exp:0.7", clips=[2.0], estimators=asked)
    lost = {each["of"]: each["lost"] for each in found.provenance.details["diagnostics"]}
    assert lost["ratio"] == pytest.approx(0, abs=1e-12)
    assert lost["inverse"] > 0.05
    assert [each.evidence.lost for each in found.estimates] == [lost["ratio"], lost["inverse"]]
    assert [each.metric for each in found.estimates] == [
        "reward per session",
        "reward per session, clip of the inverse",
    ]
    assert found.units()["metric"].n_unique() == 2


def test_a_chosen_clip_is_not_called_the_smallest_where_others_give_the_same() -> None:
    """Weights are at most 1 / .7^4 = 4.2: every clip from 8 on changes nothing."""
    found = tr.off_policy(
        log_of(), {"new": RankColumn("new")}, position="exp:0.7", clips=AutoClip(), estimators=["ips"]
    )
    (choice,) = found.provenance.details["chosen"]
    (note,) = (each for each in found.notes if "chosen for" in each)
    assert (choice["clip"], choice["smallest_equal"]) == (None, 8.0)
    assert "clip inf chosen for new" in note
    assert "the smallest, but for those from 8 on that give the same, whose value differs" in note
