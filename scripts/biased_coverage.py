"""Estimators for biased logs on a world with known propensities: `make biased` writes docs/results/biased-exposure.md."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cores import on_all_cores
from result_pages import write_page
from truerank.core.arrays import Floats, sums_by
from truerank.core.ranking import Candidates, Scores
from truerank.estimators.biased.ips import IPS
from truerank.estimators.biased.naive import Naive
from truerank.estimators.biased.snips import SNIPS
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.models.baselines import Popularity
from truerank.models.ease import EASE
from truerank.ranks.kernel.rank import rank
from truerank.studies.coverage import Asked, ByPropensity, Coverage, ObservedWorld, measure
from truerank.studies.world import WorldSettings, make_world

SEED, K = 20261116, 20
SETTINGS = WorldSettings(users=1000, items=300, density=0.08, shown=40, judged=20)
ASKED: tuple[Asked, ...] = (
    (Recall(K), SNIPS()),
    (Precision(K), SNIPS()),
    (DCG(K), SNIPS()),
    (Precision(K), IPS()),
    (DCG(K), IPS()),
    (Precision(K), IPS(10.0)),
    (DCG(K), SNIPS(10.0)),
)
WRONG: tuple[Asked, ...] = ((Recall(K), SNIPS()), (DCG(K), SNIPS()), (DCG(K), IPS()))
NAIVE: tuple[Asked, ...] = ((Recall(K), Naive()), (DCG(K), Naive()))
COLUMNS = "| propensities | metric | estimator | model or difference | truth | mean estimate | bias | Monte-Carlo error | coverage | mean width |"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, under which propensities and with which clip."""

    claimed: str
    clip: float
    found: Coverage

    @property
    def holds(self) -> bool:
        """What is claimed: 93 to 97 % of intervals of self-normalised IPS with the right propensities hold the truth."""
        return not self.promised or 0.93 <= self.found.covered <= 0.97

    @property
    def promised(self) -> bool:
        return self.claimed == "right" and self.clip == np.inf and self.found.estimator == "snips"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=Path("docs/results/biased-exposure.md"))
    arguments = parser.parse_args()
    rows = study(runs=arguments.runs, seed=arguments.seed)
    write_page(arguments.out, "biased-exposure", page(rows, runs=arguments.runs, seed=arguments.seed))
    failures = [each for each in rows if not each.holds]
    for each in failures:
        print(f"does not hold: {each}", file=sys.stderr)
    sys.exit(1 if failures else 0)


def world() -> tuple[ObservedWorld, Floats]:
    """A fully observed world with the ranks of two recommenders, and how likely each cell is shown."""
    made = make_world(SETTINGS, seed=SEED)
    labels = made.truth
    pool = Candidates(len(made.users), float(len(made.items)))
    scores: dict[str, Scores] = {
        "popularity": Popularity().fit(made.train, seed=1),
        "ease": EASE().fit(made.train, seed=1),
    }
    ranks = {name: rank(each, labels, pools=[pool])[0] for name, each in scores.items()}
    return ObservedWorld(labels, ranks), propensities(labels.label.reshape(len(made.users), -1))


def propensities(label: Floats) -> Floats:
    """Popular items are shown up to ten times as often, and what is liked half as often again."""
    popularity = label.sum(axis=0) / label.sum(axis=0).max()
    return np.asarray((0.03 + 0.3 * popularity) * np.where(label == 1, 1.5, 1.0))


def study(*, runs: int, seed: int, only: str | None = None) -> list[Row]:
    """All rows, or those of one claim about propensities."""
    truth, right = world()
    blind = np.broadcast_to(right.mean(axis=0), right.shape)
    claims = {
        "right": (None, ASKED),
        "of items, blind to the label": (blind, WRONG),
        "square root of the right ones": (np.sqrt(right), WRONG),
        "all equal (naive)": (None, NAIVE),
    }
    rows = []
    for name, (claimed, asked) in claims.items():
        if only not in (None, name):
            continue
        start = time.monotonic()
        drawing = ByPropensity(right, claimed)
        found = measure(truth, asked, drawing=drawing, runs=runs, seed=seed, mapper=on_all_cores)
        per_pair = len(found) // len(asked)
        clips = [getattr(estimator, "clip", None) for _, estimator in asked for _ in range(per_pair)]
        rows += [Row(name, np.inf if clip is None else clip, each) for clip, each in zip(clips, found, strict=True)]
        print(f"propensities {name}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    return rows


def page(rows: list[Row], *, runs: int, seed: int) -> str:
    """The document."""
    truth, right = world()
    shown = int(right.sum())
    judged = sums_by(truth.labels.user, truth.labels.label, n=truth.n_users)
    return (
        "\n".join(
            [
                "# Estimators for biased logs, on a world with known propensities",
                "",
                f"Written by `make biased`. A synthetic world of {truth.n_users:,} users x {truth.n_items} items in which a user "
                f"likes {judged.mean():.0f} items on average. Every cell is shown by itself with probability (0.03 + 0.3 x "
                f"popularity of the item / largest) x (1.5 if the user likes it): {right.min():.3f} to {right.max():.3f}, about "
                f"{shown:,} rows in a log. {runs:,} logs, seed {seed}: users redrawn with replacement, each copy with its own "
                "exposures; the truth is over all users of the world. Recommenders: popularity and EASE, learnt from another log. "
                "95 % population intervals; with 2,000 logs a correct method falls within 93 to 97 % with more than 99.9 % "
                "probability.",
                "",
                "## With the right propensities",
                "",
                "The bound is claimed for snips. A clip of 10 cuts the weights of all cells shown with less than 0.1: less "
                "spread, and a bias that its interval does not know of.",
                "",
                *table([each for each in rows if each.claimed == "right"]),
                "",
                "## With wrong ones",
                "",
                "The same logs; what the log claims is wrong. *Of items, blind to the label*: each item's mean propensity, as a "
                "model of popularity alone would learn it. *Square root*: the order of propensities is right, their size is "
                "not. *Naive*: the log is taken for a uniform sample. Intervals are honest about chance only: with wrong "
                "propensities they are narrow around a wrong value, and more data make it worse.",
                "",
                *table([each for each in rows if each.claimed != "right"]),
            ]
        )
        + "\n"
    )


def table(rows: list[Row]) -> list[str]:
    return [COLUMNS, "|" + "---|" * 10, *(_line(each) for each in rows)]


def _line(row: Row) -> str:
    each = row.found
    relative = 0.0 if each.truth == 0 else each.bias / abs(each.truth)
    name = each.estimator if row.clip == np.inf else f"{each.estimator}, clip {row.clip:g}"
    return (
        f"| {row.claimed} | {each.metric} | {name} | {each.what} | {each.truth:.5f} | {each.mean:.5f} | "
        f"{each.bias:+.5f} ({relative:+.1%}) | {each.noise:.6f} | {each.covered:.1%} | {each.width:.5f} |"
    )


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
