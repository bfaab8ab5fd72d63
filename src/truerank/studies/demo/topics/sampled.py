"""Sampled candidates: how far an order of recommenders can be trusted that comes from few candidates of a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from truerank.core.values import text_of
from truerank.data.spill import scratch
from truerank.metrics.ndcg import NDCG
from truerank.studies.demo.chapter import Chapter, Say, Sheet, command
from truerank.studies.demo.made import Made
from truerank.studies.reliability import Grid, study

METRIC = NDCG(10)
SPARSITY = 0.95
SIZES = (10, 100)
SAMPLERS = ("Full", "Exposed", "Random", "Popularity")
WHAT = {
    "Full": "every item that was not shown counts as a negative",
    "Exposed": "only what was shown competes",
    "Random n": "n negatives from all items of the log",
    "Popularity n": "the same, popular ones more often",
}


@dataclass(frozen=True, slots=True)
class SampledTopic:
    """A logger that favours popular items hides 95 % of the world; candidates are chosen from what is left."""

    name: ClassVar[str] = "sampled"
    about: ClassVar[str] = "Sampled candidates: how far can their order be trusted?"

    __str__ = text_of

    def tell(self, made: Made, *, seed: int, say: Say | None) -> Chapter:
        grid = Grid.of(
            loggers=("popularity",), samplers=SAMPLERS, sparsities=(SPARSITY,), sizes=SIZES, metrics=(METRIC,)
        )
        world = made.world
        with scratch() as space:
            found = study(
                made.fitted, world.truth, space.make("study"), grid=grid, train=world.train, exclude=world.train,
                seed=seed, progress=say,
            )  # fmt: skip
            rows = found.results.filter(pl.col("sparsity") == SPARSITY)
        ties = rows.filter(question="resolution")["value"]
        taus = rows.filter(question="predictive_power").with_columns(ties=ties)
        cells = [
            (
                row["sampler"] if row["size"] is None else f"{row['sampler']} {row['size']}",
                f"{row['ties']:.0%}",
                "{:.2f} ({:.2f} to {:.2f})".format(
                    *(row[f"{each}_undefined_as_0"] for each in ("value", "low", "high"))
                ),
                f"{row['tau_of_means']:.2f}",
            )
            for row in taus.iter_rows(named=True)
        ]
        return Chapter(
            "Sampled candidates",
            (
                "Where the truth is known, one can measure how far a cheap evaluation can be trusted. A logger that "
                f"favours popular items shows {1 - SPARSITY:.0%} of the unseen pairs, candidates are chosen from that "
                f"log, and {METRIC} orders the five recommenders. Kendall's tau with their true order (1 the same, 0 "
                "unrelated):",
                Sheet.of("", ("", "pairs that tie", "tau per user", "tau of means"), cells),
                "\n".join(f"  {name}: {what}." for name, what in WHAT.items()),
                "Few relevant items are left per user, so recommenders tie and single users say little; means over "
                "users say more. A metric over few candidates asks another question, and more users do not mend that.",
                "Which candidates keep the order on a log like the biased one, by a study of two real worlds that "
                "comes with truerank:",
                command(f"truerank advise {made.option('biased')}"),
            ),
        )
