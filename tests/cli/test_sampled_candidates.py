"""Candidate sets sampled in Python, evaluated on the command line."""

from __future__ import annotations

import json

import pytest

import truerank as tr
from truerank.metrics.listwise import NDCG
from truerank.ranking.samplers import parse


@pytest.mark.parametrize("text", ["Full", "Random@2", "Popularity@2(shift=1,positives=drawn)"])
def test_a_file_of_sampled_candidates_gives_what_python_gives(run: object, text: str) -> None:
    sampled = tr.sample_candidates(tr.read("labels.csv"), parse(text), seed=1)
    labels = sampled.labels()
    tr.write(labels, "sampled.parquet")
    assert callable(run)
    outcome = run(
        "evaluate sampled.parquet --candidates sampled.parquet --scores a=a.npz --metric nDCG@2 --format json",
    ).fine()  # fmt: skip
    found = tr.evaluate({"a": tr.read_scores("a.npz")}, labels, candidates=labels, metrics=[NDCG(2)])
    assert json.loads(outcome.out)["estimates"][0]["value"] == found.estimates[0].value
