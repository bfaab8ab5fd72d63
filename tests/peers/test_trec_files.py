"""The same qrels and run files, read by trec_eval (through pytrec_eval) and by us."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

import truerank as tr
from truerank.core.metric import Metric
from truerank.exposure.kinds import FullExposure, Unlisted
from truerank.metrics.additive import Precision, Recall
from truerank.metrics.listwise import HitRate


def write_files(folder: Path) -> tuple[Path, Path]:
    """Scores without ties; a rank column that contradicts them; relevance from -2 to 3; odd white space."""
    rng = np.random.default_rng(7)
    qrels, run = folder / "x.qrels", folder / "x.run"
    with qrels.open("w") as judged, run.open("w") as ranked:
        for query in range(30):
            docs = rng.permutation(60)
            for doc in docs[:25]:
                judged.write(f"q{query}\t0  d{doc} {rng.integers(-2, 4)}\n")
            scores = rng.permutation(1000)[:40] / 8
            for rank, (doc, score) in enumerate(zip(rng.permutation(60)[:40], scores, strict=True)):
                ranked.write(f"q{query} Q0 d{doc} {rank} {score} tag\n")
    return qrels, run


CASES: list[tuple[int, str, Metric]] = [
    (1, "P_5", Precision(5)),
    (2, "P_10", Precision(10)),
    (1, "recall_20", Recall(20)),
    (2, "recall_20", Recall(20)),
    (3, "success_5", HitRate(5)),
]


@pytest.mark.parametrize(("level", "measure", "metric"), CASES)
def test_files_mean_the_same(tmp_path: Path, level: int, measure: str, metric: Metric) -> None:
    qrels, run = write_files(tmp_path)
    with qrels.open() as judged, run.open() as ranked:
        evaluator = pytrec_eval.RelevanceEvaluator(
            pytrec_eval.parse_qrel(judged), {measure.replace("_", ".", 1)}, relevance_level=level
        )
        theirs = evaluator.evaluate(pytrec_eval.parse_run(ranked))
    labels = tr.read(qrels, positive=f">={level}")
    relevant = np.bincount(labels.user, weights=labels.label) > 0
    ours = tr.evaluate(
        {"run": tr.read_scores(run)},
        labels,
        exposure=FullExposure(Unlisted.NEGATIVE),
        metrics=[metric],
        n_items=60,
    )
    users = [name for name, kept in zip(labels.users.texts(), relevant, strict=True) if kept or "P_" in measure]
    assert ours.estimates[0].value == pytest.approx(np.mean([theirs[user][measure] for user in users]), abs=1e-12)
