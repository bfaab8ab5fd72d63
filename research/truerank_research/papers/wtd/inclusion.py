"""E-W4: how even intervened test sets are, and one evaluation by inclusion probabilities in place of many draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

import truerank as tr
from truerank.core.estimator import Estimator
from truerank.core.log import Log
from truerank.core.metric import Metric
from truerank.core.ranking import Pool, Ranks
from truerank.estimators import terms_of
from truerank.estimators.full import Full as Plain
from truerank.estimators.full import Intervened, IntervenedPooled
from truerank.exposure.counts import Margins
from truerank.exposure.interventions import (
    EqualPerItemIntervention,
    PopularityStratifiedIntervention,
    Strategy,
    drawing_rule,
    index_of_dispersion,
)
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.models import Model
from truerank.models.baselines import AvgRating, PosPop
from truerank.models.least_squares import IALS
from truerank.models.neighbours import ItemKNN, UserKNN
from truerank.ranking.kernel.rank import rank
from truerank_research.claims import Cell, Cells, Claim, Finding, cell_rows, share
from truerank_research.papers.wtd.runs import K, lay_out_test
from truerank_research.papers.wtd.setting import RAW, STRATEGIES, Split, shape_of, split_of
from truerank_research.results import Measured
from truerank_research.runner import Run, Setting, Study

COMPARED = ("SKEW", "WTD", "WTD_H", "WTD, item power 1", "WTD_H, item power 1")
ALL_STRATEGIES: Mapping[str, Strategy] = {
    **STRATEGIES,
    "popularity-stratified": PopularityStratifiedIntervention(),
    "equal-per-item": EqualPerItemIntervention(),
}
MODELS: Mapping[str, Model] = {
    "PosPop": PosPop(),
    "AvgRating": AvgRating(),
    "UB_KNN": UserKNN(50, RAW),
    "IB_KNN": ItemKNN(50, RAW),
    "MF": IALS(factors=20, regularisation=0.1, rows=RAW),
}
REQUESTS: Mapping[str, tuple[Metric, Estimator]] = {
    "Recall per user": (Recall(K), Intervened()),
    "Recall pooled": (Recall(K), IntervenedPooled()),
    "Precision": (Precision(K), Intervened()),
    "DCG": (DCG(K), Intervened()),
}
ERRORS, RELATIVE = 3.0, 0.01  # Monte-Carlo standard errors, or share of the value, that a difference may have
LEVEL = "Variance / mean of rows per item"
DRAWN, FORMULA = "mean of drawn sets", "by probabilities"
RANDOM = "random part"


def measure(run: Run) -> Measured:
    draws = 2000 if run.full else 15
    tables = run.pieces(draw_sets, [(run.setting, name, draws) for name in COMPARED], about="drawing test sets")
    cells = [*_level_cells(run), *_agreement_cells(dict(zip(COMPARED, tables, strict=True)))]
    return Measured(
        {"cells": cell_rows(cells)},
        {"draws": draws, "runs": shape_of(run).runs, "models": [str(model) for model in MODELS.values()]},
        ["Models have fixed settings: nothing here depends on how good they are."],
    )


@dataclass(frozen=True, slots=True)
class RankedHeldOut:
    """The held-out rows of a split over the catalogue, with every model's ranks."""

    heldout: Log
    split: Split
    ranks: Mapping[str, Ranks]

    @classmethod
    def from_split(cls, split: Split) -> RankedHeldOut:
        test = lay_out_test(split.heldout, split.train)
        pools = [test.pools[Pool.CATALOGUE]]
        ranks = {
            name: rank(model.fit(split.train, seed=0), test.labels, pools=pools)[0] for name, model in MODELS.items()
        }
        return cls(test.labels, split, ranks)

    def by_formula(self, strategy: Strategy) -> list[float]:
        """The value of every model and request from the inclusion probabilities of rows."""
        log = tr.with_inclusion(self.heldout, strategy, train=self.split.train, random=self.split.weights)
        return [
            terms_of(estimator, log, ranks, metrics=[metric])[0].value()
            for ranks in self.ranks.values()
            for metric, estimator in REQUESTS.values()
        ]

    def by_drawing(self, strategy: Strategy, *, seeds: Sequence[int]) -> list[list[float]]:
        """The values on drawn sets by the plain estimator; pooled recall is Σ hits / Σ relevant."""
        rule = drawing_rule(self.heldout, strategy, train=self.split.train, random=self.split.weights)
        drawn = []
        for seed in seeds:
            rows = rule.draw(self.heldout, seed=seed)
            log = replace(self.heldout.select(rows), inclusion=np.ones(len(rows)))
            values = []
            for every in self.ranks.values():
                ranks = replace(every, above=every.above[rows], tied=every.tied[rows])
                for metric, estimator in REQUESTS.values():
                    plain: Estimator = estimator if isinstance(estimator, IntervenedPooled) else Plain()
                    values.append(terms_of(plain, log, ranks, metrics=[metric])[0].value())
            drawn.append(values)
        return drawn


def draw_sets(setting: Setting, name: str, draws: int) -> pl.DataFrame:
    """The values of all models on drawn test sets of a strategy: mean, Monte-Carlo error, and by probabilities."""
    ranked = RankedHeldOut.from_split(split_of(setting, 0))
    strategy = ALL_STRATEGIES[name]
    drawn = np.array(ranked.by_drawing(strategy, seeds=range(setting.seed, setting.seed + draws)))
    return pl.DataFrame(
        {
            "model": [model for model in MODELS for _ in REQUESTS],
            "request": [request for _ in MODELS for request in REQUESTS],
            "mean": np.nanmean(drawn, axis=0),
            "error": np.nanstd(drawn, axis=0, ddof=1) / math.sqrt(draws),
            "formula": ranked.by_formula(strategy),
        }
    )


def dispersion(log: Log) -> float:
    """Variance / mean of the number of rows per item."""
    return index_of_dispersion(Margins.of(log).by_item)


def _level_cells(setting: Setting) -> Iterator[Cell]:
    """Variance / mean of rows per item: mean, smallest and largest over the runs."""
    splits = [split_of(setting, number) for number in range(shape_of(setting).runs)]
    values = {
        name: [
            dispersion(
                tr.intervene(
                    split.heldout, strategy, train=split.train, random=split.weights, seed=setting.seed + number
                )
            )
            for number, split in enumerate(splits)
        ]
        for name, strategy in ALL_STRATEGIES.items()
    }
    for name, numbers in {**values, RANDOM: [dispersion(split.truth) for split in splits]}.items():
        yield Cell(LEVEL, name, "mean", float(np.mean(numbers)), low=min(numbers), high=max(numbers))


def _agreement_cells(tables: Mapping[str, pl.DataFrame]) -> Iterator[Cell]:
    for strategy, table in tables.items():
        for model, request, mean, error, formula in table.iter_rows():
            place, room = (f"{strategy}: drawn test sets and probabilities", model), ERRORS * error
            yield Cell(*place, f"{request}, {DRAWN}", mean, low=mean - room, high=mean + room)
            yield Cell(*place, f"{request}, {FORMULA}", formula)


def level_rule(test: Callable[[dict[str, float]], list[bool]]) -> Callable[[Cells], Finding]:
    """A rule over variance / mean of rows per item, by strategy."""

    def rule(cells: Cells) -> Finding:
        level = {name: cells.value(LEVEL, name, "mean") for name in (*ALL_STRATEGIES, RANDOM)}
        text = ", ".join(f"{name} {level[name]:.2f}" for name in ("REG", *COMPARED, RANDOM))
        return share(test(level), f"{text}.")

    return rule


def nearer_to_one(level: dict[str, float], pairs: Mapping[str, str]) -> list[bool]:
    return [abs(level[name] - 1) < abs(level[other] - 1) for name, other in pairs.items()]


def _formula_rule(cells: Cells) -> Finding:
    parts = []
    for cell in (cell for cell in cells.cells if cell.column.endswith(FORMULA)):
        (drawn,) = cells.select(cell.table, cell.row, cell.column.replace(FORMULA, DRAWN))
        if cell.obtained is not None and drawn.obtained is not None:
            room = max((drawn.high or drawn.obtained) - drawn.obtained, RELATIVE * abs(drawn.obtained))
            parts.append(abs(cell.obtained - drawn.obtained) <= room + 1e-9)
    return share(parts, f"{sum(parts)} of {len(parts)} values.")


CLAIMS = (
    Claim(
        "skew", "SKEW gives items a roughly uniform exposure.", "Section 2",
        "Variance / mean of rows per item is at most 1.5, and at most 0.7 of that of REG.",
        level_rule(lambda level: [level["SKEW"] <= min(1.5, 0.7 * level["REG"])]),
    ),
    Claim(
        "posteriors", "WTD and WTD_H make the posteriors of users and items those of random data.", "Equation 7",
        "Variance / mean of rows per item is nearer to that of as many random rows (1) than REG's, for both.",
        level_rule(lambda level: nearer_to_one(level, {"WTD": "REG", "WTD_H": "REG"})),
    ),
    Claim(
        "squared", "The squared item weight is the better choice.", "Section 4.2",
        "Variance / mean is nearer to 1 with the squared weight than with the plain one, for WTD and WTD_H.",
        level_rule(lambda level: nearer_to_one(level, {name: f"{name}, item power 1" for name in ("WTD", "WTD_H")})),
    ),
    Claim(
        "formula", "Inclusion probabilities give in one evaluation the mean of many drawn test sets.",
        "not in the paper; how truerank evaluates them",
        f"Each value is within {ERRORS:g} Monte-Carlo errors of the mean of drawn sets, or within 1 %.",
        _formula_rule,
    ),
)  # fmt: skip
STUDIES = (
    Study(
        "E-W4", "How even are intervened test sets, and does one evaluation by probabilities give their mean?",
        measure, data=("coat",), minutes=1, claims=CLAIMS, shows={"wtd": ()},
    ),
)  # fmt: skip
