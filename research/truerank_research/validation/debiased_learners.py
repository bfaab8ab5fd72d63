"""Do debiased learners come closer to the truth than plain ones? Worlds with a planted selection bias that is known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import t

from truerank.core.arrays import Floats
from truerank.core.log import Log
from truerank.core.rng import cell_keys, cell_uniforms
from truerank.evaluation.labels import evaluate
from truerank.metrics.additive import Recall
from truerank.models import Side
from truerank.ranking.scores.scores import dense
from truerank.simulation.dataset import DatasetSettings, SimulatedDataset, simulate_dataset
from truerank_research.learners.recipes import (
    AutoDebias,
    Backbone,
    Bias,
    DoublyRobustLearning,
    GraphConvolution,
    IPSLearning,
    MatrixFactorisation,
    Method,
    Recipe,
    Training,
)
from truerank_research.results import Measured
from truerank_research.runner import Run, Study

SETTINGS = DatasetSettings(users=400, items=300, shown=30, judged=10)
SMALL = DatasetSettings(users=60, items=50, shown=15, judged=5)
SLICE = 20  # pairs of the uniform slice, per user on average
TRAINING, QUICK = Training(batch=4096), Training(batch=4096, epochs=3)
BACKBONES: Mapping[str, Backbone] = {
    "mf": MatrixFactorisation(),
    "lightgcn with biases": GraphConvolution(biases=True),
}
PLAIN = "bias"
METHODS: Mapping[str, tuple[Method, bool]] = {  # the method, and whether it is told the true propensities
    PLAIN: (Bias(), False),
    "ips, true propensities": (IPSLearning(), True),
    "ips, naive Bayes": (IPSLearning(), False),
    "dr, true propensities": (DoublyRobustLearning(), True),
    "dr, naive Bayes": (DoublyRobustLearning(), False),
    "autodebias": (AutoDebias(), False),
}
SQUARED, LOG_LOSS, RECALL = MEASURES = ("squared error", "log loss", "Recall@20")


@dataclass(frozen=True, slots=True)
class PlantedBias:
    """A world seen through a biased log with known propensities, and a uniform slice of all pairs."""

    world: SimulatedDataset
    log: Log
    slice: Log


def planted_bias(seed: int, *, settings: DatasetSettings = SETTINGS, shown_each: int = SLICE) -> PlantedBias:
    """Each pair is seen independently with probability min(0.9, 0.05 e^(1.8 y) e^(0.5 z)).

    y is its label, z the standardised number of positives of its item: liked and popular items are seen more often.
    """
    world = simulate_dataset(settings, seed=seed)
    truth = world.truth
    liked = np.bincount(truth.item, weights=truth.label, minlength=settings.items)
    popularity = (liked - liked.mean()) / liked.std()
    propensity = np.minimum(0.9, 0.05 * np.exp(1.8 * truth.label + 0.5 * popularity[truth.item]))
    keys = truth.users.keys()[truth.user], truth.items.keys()[truth.item]
    seen = cell_uniforms(seed, "planted selection bias", *keys) < propensity
    log = replace(truth, propensity=propensity).select(seen)
    first = np.argsort(cell_keys(seed, "uniform slice", *keys), kind="stable")[: shown_each * settings.users]
    return PlantedBias(world, log, truth.select(np.sort(first)))


def errors(
    planted: PlantedBias, backbone: Backbone, *, seed: int, training: Training, methods: Sequence[str] = tuple(METHODS)
) -> pl.DataFrame:
    """Squared error and log loss of the predicted chance of a positive, and Recall@20: a row for each method.

    Errors are means over all pairs, what is predicted is σ of the score with all biases; candidates of Recall are the
    pairs that neither the log nor the slice shows.
    """
    from truerank_research.learners.train import train

    truth = planted.world.truth
    hidden = np.ones(planted.world.rating.shape, dtype=bool)
    for part in (planted.log, planted.slice):
        hidden[part.user, part.item] = False
    left = truth.select(np.flatnonzero(hidden.ravel()))
    found = []
    for name in methods:
        method, told = METHODS[name]
        log = planted.log if told else replace(planted.log, propensity=None)
        learned = train(Recipe(name, backbone, method, training), log, seed=seed, side=Side(random=planted.slice))
        score = learned.scores()
        chance = 1 / (1 + np.exp(-score[truth.user, truth.item]))
        scores = dense(score, users=log.users, items=log.items)
        recall = evaluate({name: scores}, left, candidates=left, metrics=[Recall(20)]).estimates[0].value
        squared = float(np.mean((chance - truth.label) ** 2))
        found.append({"method": name, SQUARED: squared, LOG_LOSS: _log_loss(chance, truth.label), RECALL: recall})
    return pl.DataFrame(found)


def _log_loss(chance: Floats, label: Floats) -> float:
    kept = np.clip(chance, 1e-7, 1 - 1e-7)
    return float(-np.mean(label * np.log(kept) + (1 - label) * np.log1p(-kept)))


def closer(by_world: Sequence[pl.DataFrame], method: str, measure: str) -> tuple[float, float, float]:
    """How much closer to the truth a method is than Bias: mean over worlds of the difference, and its 95 % t interval.

    >>> one, two = (pl.DataFrame({"method": [PLAIN, "ips"], RECALL: [0.5, better]}) for better in (0.6, 0.8))
    >>> [round(each, 3) for each in closer([one, two], "ips", RECALL)]
    [0.2, -1.071, 1.471]
    """
    sign = -1.0 if measure == RECALL else 1.0  # of errors less is better, of recall more
    gain = sign * (_values(by_world, PLAIN, measure) - _values(by_world, method, measure))
    half = float(t.ppf(0.975, len(gain) - 1)) * gain.std(ddof=1) / math.sqrt(len(gain))
    return float(gain.mean()), float(gain.mean() - half), float(gain.mean() + half)


def _values(by_world: Sequence[pl.DataFrame], method: str, measure: str) -> Floats:
    return np.array([each.filter(pl.col("method") == method)[measure].item() for each in by_world])


def train_learners(backbone: str, seed: int, settings: DatasetSettings, training: Training) -> pl.DataFrame:
    """The errors of every method with one backbone on one simulated dataset."""
    return errors(planted_bias(seed, settings=settings), BACKBONES[backbone], seed=seed, training=training)


def measure(run: Run) -> Measured:
    """Plain and debiased learners on worlds of the seeds from the given one on."""
    settings, training, n = (SETTINGS, TRAINING, 10) if run.full else (SMALL, QUICK, 2)
    seeds = range(run.seed, run.seed + n)
    arguments = [(backbone, seed, settings, training) for backbone in BACKBONES for seed in seeds]
    tables = run.pieces(train_learners, arguments, about="training learners")
    rows = [row for at, backbone in enumerate(BACKBONES) for row in _rows(backbone, tables[at * n : (at + 1) * n])]
    return Measured(
        {"errors": rows},
        {"worlds": n, "users": settings.users, "items": settings.items},
    )


def _rows(backbone: str, by_world: Sequence[pl.DataFrame]) -> Iterator[dict[str, Any]]:
    for method in METHODS:
        for measure in MEASURES:
            gain = (None, None, None) if method == PLAIN else closer(by_world, method, measure)
            yield {
                "backbone": backbone,
                "method": method,
                "measure": measure,
                "mean": float(_values(by_world, method, measure).mean()),
                **dict(zip(("closer", "low", "high"), gain, strict=True)),
            }


STUDIES = (
    Study(
        "debiased-learners", "Do debiased learners come closer to the truth than plain ones, where the bias is known?",
        measure, minutes=10,
    ),
)  # fmt: skip
