"""Do debiased learners come closer to the truth than plain ones? Writes docs/results/debiased-learners.md.

Worlds with planted taste and a planted selection bias whose propensities are known. Each world and backbone is one file in
a folder, so an interrupted run goes on where it stopped; delete the folder to start again.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from result_pages import write_page
from truerank.core.arrays import Floats
from truerank.core.chance import cell_keys, cell_uniforms
from truerank.core.log import Log
from truerank.data.whole import whole_file
from truerank.evaluation.judged import evaluate
from truerank.metrics.recall import Recall
from truerank.models import Side
from truerank.models.recipes import (
    AutoDebias,
    Bias,
    DoublyRobustLearning,
    GraphConvolution,
    IPSLearning,
    MatrixFactorisation,
    Recipe,
    Training,
)
from truerank.ranks.scores.scores import dense
from truerank.studies.world import World, WorldSettings, make_world

OUT = Path("docs/results/debiased-learners.md")
DONE = Path("build/debiased-learners")
SEEDS = range(100, 110)  # chosen before any of these worlds was drawn
SIZE = WorldSettings(users=400, items=300, shown=30, judged=10)
SLICE = 20
BACKBONES: dict[str, Any] = {"mf": MatrixFactorisation(), "lightgcn with biases": GraphConvolution(biases=True)}
METHODS: dict[str, tuple[Any, bool]] = {  # the method, and whether it is told the true propensities
    "bias": (Bias(), False),
    "ips, true propensities": (IPSLearning(), True),
    "ips, naive Bayes": (IPSLearning(), False),
    "dr, true propensities": (DoublyRobustLearning(), True),
    "dr, naive Bayes": (DoublyRobustLearning(), False),
    "autodebias": (AutoDebias(), False),
}
MEASURES = ("squared error", "log loss", "Recall@20")


@dataclass(frozen=True)
class Biased:
    """A world seen through a biased log with known propensities, and a uniform slice of all pairs."""

    world: World
    log: Log
    slice: Log


def biased_world(seed: int, *, settings: WorldSettings = SIZE, shown_each: int = SLICE) -> Biased:
    """Each pair is seen independently with probability min(0.9, 0.05 e^(1.8 y) e^(0.5 z)).

    y is its label, z the standardised number of positives of its item: liked and popular items are seen more often.
    """
    world = make_world(settings, seed=seed)
    truth = world.truth
    liked = np.bincount(truth.item, weights=truth.label, minlength=settings.items)
    popularity = (liked - liked.mean()) / liked.std()
    propensity = np.minimum(0.9, 0.05 * np.exp(1.8 * truth.label + 0.5 * popularity[truth.item]))
    keys = truth.users.keys()[truth.user], truth.items.keys()[truth.item]
    seen = cell_uniforms(seed, "planted selection bias", *keys) < propensity
    log = replace(truth, propensity=propensity).select(seen)
    first = np.argsort(cell_keys(seed, "uniform slice", *keys), kind="stable")[: shown_each * settings.users]
    return Biased(world, log, truth.select(np.sort(first)))


def errors(
    biased: Biased, backbone: Any, *, seed: int, training: Training, methods: dict[str, Any]
) -> dict[str, list[float]]:
    """Squared error and log loss of the predicted chance of a positive, and Recall@20, by method.

    Errors are means over all pairs, what is predicted is σ of the score with all biases; candidates of Recall are the
    pairs that neither the log nor the slice shows.
    """
    from truerank.models.learners.train import train

    truth = biased.world.truth
    shape = biased.world.rating.shape
    hidden = np.ones(shape, dtype=bool)
    for part in (biased.log, biased.slice):
        hidden[part.user, part.item] = False
    left = truth.select(np.flatnonzero(hidden.ravel()))
    found = {}
    for name, (method, told) in methods.items():
        log = biased.log if told else replace(biased.log, propensity=None)
        learned = train(Recipe(name, backbone, method, training), log, seed=seed, side=Side(random=biased.slice))
        score = learned.scores()
        chance = 1 / (1 + np.exp(-score[truth.user, truth.item]))
        scores = dense(score, users=log.users, items=log.items)
        recall = evaluate({name: scores}, left, candidates=left, metrics=[Recall(20)]).estimates[0].value
        found[name] = [float(np.mean((chance - truth.label) ** 2)), _log_loss(chance, truth.label), recall]
    return found


def closer(by_seed: list[dict[str, list[float]]], method: str, measure: int) -> tuple[float, float, float]:
    """How much closer to the truth a method is than Bias: mean over worlds of the difference, and its 95 % t interval."""
    from scipy.stats import t

    sign = -1.0 if measure == 2 else 1.0  # of errors less is better, of recall more
    gain = sign * np.array([each["bias"][measure] - each[method][measure] for each in by_seed])
    half = t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / np.sqrt(len(gain))
    return float(gain.mean()), float(gain.mean() - half), float(gain.mean() + half)


def main() -> None:
    DONE.mkdir(parents=True, exist_ok=True)
    results: dict[str, list[dict[str, list[float]]]] = {}
    for name, backbone in BACKBONES.items():
        for seed in SEEDS:
            path = DONE / f"{name.replace(' ', '-')}-{seed}.json"
            if not path.exists():
                print(f"{name}, world {seed} ...", file=sys.stderr, flush=True)
                found = errors(biased_world(seed), backbone, seed=seed, training=Training(batch=4096), methods=METHODS)
                with whole_file(path) as temporary:
                    temporary.write_text(json.dumps(found, indent=1))
            results.setdefault(name, []).append(json.loads(path.read_text()))
    write_page(OUT, "debiased-learners", page(results))


def page(results: dict[str, list[dict[str, list[float]]]]) -> str:
    lines = [
        "# Debiased learners on worlds with a planted selection bias",
        "",
        f"Written by `scripts/debiased_learners.py`: {len(SEEDS)} worlds of {SIZE.users} users and {SIZE.items} items, seeds "
        f"{SEEDS.start} to {SEEDS.stop - 1}, fixed beforehand. A pair is seen with probability min(0.9, 0.05 e^(1.8 y) e^(0.5 z)), y its label, z "
        f"the standardised number of positives of its item; {SLICE} pairs per user on average, drawn uniformly from all, are the "
        "random slice. All methods have the default settings and batches of 4,096.",
        "",
        "Truth: the labels of all pairs. *Squared error* and *log loss* are of the predicted chance of a positive, σ(score), means over "
        "all pairs: what debiasing promises to lower. *Recall@20* (candidates: the pairs that neither log nor slice shows) is what ranking is "
        "worth; a constant shift of all scores does not move it. Differences are paired by world; intervals are 95 % t intervals over "
        "worlds, for worlds of this kind.",
    ]
    for name, by_seed in results.items():
        lines += [
            "",
            f"## {name}",
            "",
            "| method | "
            + " | ".join(MEASURES)
            + " | "
            + " | ".join(f"closer than Bias: {each}" for each in MEASURES)
            + " |",
        ]
        lines.append("|---|" + "---|" * (2 * len(MEASURES)))
        for method in METHODS:
            means = " | ".join(f"{np.mean([each[method][m] for each in by_seed]):.4f}" for m in range(3))
            gains = " | ".join("" if method == "bias" else _interval(closer(by_seed, method, m)) for m in range(3))
            lines.append(f"| {method} | {means} | {gains} |")
    return "\n".join(lines) + "\n"


def _interval(values: tuple[float, float, float]) -> str:
    return f"{values[0]:+.4f} ({values[1]:+.4f} to {values[2]:+.4f})"


def _log_loss(chance: Floats, label: Floats) -> float:
    kept = np.clip(chance, 1e-7, 1 - 1e-7)
    return float(-np.mean(label * np.log(kept) + (1 - label) * np.log1p(-kept)))


if __name__ == "__main__":
    main()
