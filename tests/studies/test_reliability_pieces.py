"""Pieces of the sampler paper's study: worlds, fitted scores, the search for settings, and verdicts from counts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from truerank.studies.papers.experiment import Obtained
from truerank.studies.papers.paper import Cell, Cells, ClaimVerdict
from truerank.studies.papers.reliability.claims import CLAIMS
from truerank.studies.papers.reliability.questions import NEAR, SUPPORT, claims_of, verdicts
from truerank.studies.papers.reliability.studied import FittedScores, StudiedLogs, scores_of
from truerank.studies.papers.reliability.tuned import SEARCHES, TriedSettings, searched
from truerank.studies.papers.reliability.worlds import BLOCKS, EASED, SETTINGS, made_data
from truerank.studies.reliability import Preset
from truerank.studies.work import StudySize, StudySource, in_memory

SYNTHETIC, SMALL = StudySource(), SETTINGS["small"]


def test_a_made_block_is_fully_observed_and_not_learnt_from() -> None:
    data = made_data(BLOCKS["small"])
    assert len(data.world) == 40 * 60
    inside = (data.train.user < 40) & (data.train.item < 60)
    assert not inside.any()
    assert (data.train.label == 1).all()
    assert np.unique(data.train.user).size > 40


def test_kept_scores_come_back_as_they_were() -> None:
    piece = FittedScores(SYNTHETIC, "small", EASED, 0)
    table = piece.table()
    world = made_data(BLOCKS["small"]).world
    found = scores_of([("EASE", table)], world)["EASE"]
    assert (np.asarray(found.block(np.arange(40))).ravel() == table["score"].to_numpy()).all()
    assert piece.table().equals(table)


def test_pairs_without_a_label_are_never_shown() -> None:
    scores = tuple((each.title, FittedScores(SYNTHETIC, "small", each, 0).table()) for each in SMALL.entries[1:])
    setting = replace(SMALL, sparsities=(0.0, 0.5), sizes=(18,))
    whole = StudiedLogs(SYNTHETIC, StudySize.QUICK, setting, Preset.PUBLISHED, "uniform", 0, scores)
    missing = replace(whole, without=100)
    assert whole.name != missing.name
    found = missing.table().filter(question="fidelity", sparsity=0.0)
    full, exposed = (found.filter(sampler=name)["value"][0] for name in ("Full", "Exposed"))
    assert full == 1
    assert exposed < 1  # what was not observed is a candidate of Full alone
    assert whole.table().filter(question="fidelity", sparsity=0.0, sampler="Exposed")["value"].to_list() == [1.0, 1.0]


def test_a_search_takes_the_best_trial() -> None:
    best, first, trials = searched(SYNTHETIC, SMALL, in_memory, size=StudySize.QUICK, seed=0)
    assert set(best) == set(first) == set(trials["model"].unique())
    assert "random" not in best
    own = trials.filter(model="EASE").sort("value", descending=True)
    assert dict(best["EASE"].settings) == json.loads(own["settings"][0])
    assert len(own) == SEARCHES[StudySize.QUICK].trials
    one, other = (TriedSettings(SYNTHETIC, "small", EASED, at, SEARCHES[StudySize.QUICK], 0).table() for at in (0, 1))
    assert one["settings"][0] != other["settings"][0]


def counted(**support: tuple[int, int]) -> Cells:
    """Cells that support the first claim of Q4, by study."""
    claim = claims_of("Q4")[0]
    cells = []
    for title, (n, of) in support.items():
        study = title.replace("__", ", ")
        row = f"{claim.name} {claim.sentence}"
        cells += [
            Cell(SUPPORT, row, f"{study}: {name}", float(value))
            for name, value in (("support", n), ("of", of), ("median", 0.5))
        ]
    return Cells(tuple(cells))  # fmt: skip


@pytest.mark.parametrize(
    ("released", "published", "word"),
    [
        ((10, 10), (8, 10), ClaimVerdict.HOLDS),
        ((10, 10), (7, 10), ClaimVerdict.IN_PART),
        ((3, 10), (0, 10), ClaimVerdict.DOES_NOT),
        ((4, 10), (5, 10), ClaimVerdict.IN_PART),
        ((0, 0), (0, 0), ClaimVerdict.UNTESTED),
    ],
)
def test_both_presets_decide_on_the_papers_world(
    released: tuple[int, int], published: tuple[int, int], word: ClaimVerdict
) -> None:
    cells = counted(KuaiRec__released=released, KuaiRec__published=published, Jester__released=(0, 10))
    found = verdicts(Obtained(cells, False, StudySize.FULL), claims_of("Q4")[:1])
    assert found[0].verdict is word
    assert "Jester, released 0 of 10" in found[0].why


def test_numbers_of_a_figure_are_counted_within_both_tolerances() -> None:
    cells = [
        Cell(f"{NEAR} (KuaiRec)", preset, column, value)
        for preset in ("released", "published")
        for column, value in (
            ("numbers", 50.0),
            ("within 0.02", 20.0),
            ("within 0.05", 45.0),
            ("mean difference", 0.01),
        )
    ]
    found = verdicts(Obtained(Cells(tuple(cells)), False, StudySize.FULL), ())
    assert found[0].verdict is ClaimVerdict.IN_PART
    assert "20 of 50 within 0.02, 45 within 0.05, +0.010 on average" in found[0].why


def test_every_claim_of_the_paper_belongs_to_one_question() -> None:
    groups = [claims_of("Q1"), claims_of("Q2"), claims_of("Q3", "I.1"), claims_of("Q4", "C", "I.2", "I.3")]
    assert [each for group in groups for each in group] == sorted(
        CLAIMS, key=lambda claim: next(at for at, group in enumerate(groups) if claim in group)
    )
    assert sum(map(len, groups)) == len(CLAIMS)
