"""Scores in files are taken wherever scores are expected."""

from __future__ import annotations

from pathlib import Path

import truerank as tr

LABELS = {"user": [7, 7, 8], "item": [1, 3, 2], "label": [1, 0, 1]}


def test_a_path_is_the_scores_in_it(tmp_path: Path) -> None:
    scores = tr.scores.dense([[4.0, 3, 2], [1, 2, 3]], users=[7, 8], items=[1, 2, 3])
    path = tmp_path / "m.npz"
    tr.write_scores(scores, path)
    values = [
        tr.evaluate({"m": given}, LABELS, exposure="random", metrics=["Precision@1"]).estimates[0].value
        for given in (scores, path, str(path))
    ]
    assert values[0] == values[1] == values[2]
