"""Parts of the study of sampled candidates: datasets, stored scores, the search for settings, verdicts from counts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from truerank.reliability import Preset
from truerank_research.claims import Cell, Cells, Verdict
from truerank_research.papers.reliability.data import (
    BLOCKS,
    EASED,
    SETTINGS,
    fit_scores,
    made_data,
    scores_of,
    study_logs,
)
from truerank_research.papers.reliability.questions import NEAR, STUDIES, SUPPORT
from truerank_research.papers.reliability.sampler_claims import CLAIMS
from truerank_research.papers.reliability.tuning import QUICK, run_trial, search_settings
from truerank_research.runner import Run, Setting, Source

SMALL = SETTINGS["small"]


def test_a_simulated_block_is_fully_observed_and_not_learnt_from() -> None:
    data = made_data(BLOCKS["small"])
    assert len(data.world) == 40 * 60
    assert not ((data.train.user < 40) & (data.train.item < 60)).any()
    assert (data.train.label == 1).all()
    assert np.unique(data.train.user).size > 40


def test_stored_scores_are_those_of_the_model() -> None:
    table = fit_scores(Source(), "small", EASED, 0)
    scores = scores_of({"EASE": table}, made_data(BLOCKS["small"]).world)["EASE"]
    assert (np.asarray(scores.block(np.arange(40))).ravel() == table["score"].to_numpy()).all()
    assert fit_scores(Source(), "small", EASED, 0).equals(table)


def test_pairs_without_a_label_are_never_exposed() -> None:
    scores = {entry.title: fit_scores(Source(), "small", entry, 0) for entry in SMALL.entries[1:]}
    setting = replace(SMALL, sparsities=(0.0, 0.5), sizes=(18,))
    whole, missing = (
        study_logs(Setting(), setting, Preset.PUBLISHED, "uniform", n_missing=n, scores=scores).filter(
            question="fidelity", sparsity=0.0
        )
        for n in (0, 100)
    )
    assert missing.filter(sampler="Full")["value"][0] == 1
    assert missing.filter(sampler="Exposed")["value"][0] < 1  # what was not observed is a candidate of Full alone
    assert whole.filter(sampler="Exposed")["value"].to_list() == [1.0, 1.0]


def test_a_search_takes_the_best_trial() -> None:
    best, first, trials = search_settings(Run(), SMALL)
    assert set(best) == set(first) == set(trials["model"].unique())
    assert "random" not in best
    rows = trials.filter(model="EASE").sort("value", descending=True)
    assert dict(best["EASE"].settings) == json.loads(rows["settings"][0])
    assert len(rows) == QUICK.trials
    one, other = (run_trial(Source(), "small", EASED, trial, QUICK, 0) for trial in (0, 1))
    assert one["settings"][0] != other["settings"][0]


@pytest.mark.parametrize(
    ("released", "published", "verdict"),
    [
        ((10, 10), (8, 10), Verdict.REPLICATES),
        ((10, 10), (7, 10), Verdict.IN_PART),
        ((3, 10), (0, 10), Verdict.FAILS),
        ((4, 10), (5, 10), Verdict.IN_PART),
        ((0, 0), (0, 0), Verdict.UNTESTABLE),
    ],
)
def test_both_presets_decide_on_the_papers_dataset(
    released: tuple[int, int], published: tuple[int, int], verdict: Verdict
) -> None:
    claim = STUDIES[3].claims[0]
    counts = {"KuaiRec, released": released, "KuaiRec, published": published, "Jester, released": (0, 10)}
    cells = [
        Cell(SUPPORT, f"{claim.key} {claim.text}", f"{study}: {name}", float(value))
        for study, (n, of) in counts.items()
        for name, value in (("support", n), ("of", of), ("median", 0.5))
    ]
    finding = claim.rule(Cells(tuple(cells)))
    assert finding.verdict is verdict
    assert "Jester, released 0 of 10" in finding.why


def test_numbers_of_a_figure_are_counted_within_both_tolerances() -> None:
    values = {"numbers": 50.0, "within 0.02": 20.0, "within 0.05": 45.0, "mean difference": 0.01}
    cells = [Cell(NEAR, preset, name, value) for preset in ("released", "published") for name, value in values.items()]
    finding = STUDIES[0].claims[-1].rule(Cells(tuple(cells)))
    assert finding.verdict is Verdict.IN_PART
    assert "20 of 50 within 0.02, 45 within 0.05, +0.010 on average" in finding.why


def test_every_claim_of_the_paper_belongs_to_one_question() -> None:
    keys = [claim.key for study in STUDIES for claim in study.claims if claim.key != "curves"]
    assert sorted(keys) == sorted(claim.name for claim in CLAIMS)
