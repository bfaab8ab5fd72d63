"""The plan of an off-policy evaluation: how targets look at a log, what is counted, what is said."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any, cast

import numpy as np

from truerank.core.arrays import Floats, Ints
from truerank.core.estimator import Asked, Clipping, Estimator, Learned
from truerank.core.messages import Message, message
from truerank.core.provenance import Input, Provenance, versions
from truerank.core.refits import Refitted
from truerank.core.results import Estimate, Evidence
from truerank.core.terms import Terms
from truerank.estimators.impressions import CHOSEN, FIVE, Exposures, Limited, limited_by
from truerank.estimators.refitting import RankedEstimator
from truerank.evaluation.impression_checks import (
    ESTIMATE_CHECKS,
    ImpressionEstimate,
    RejectedFits,
    check_clips,
    check_target,
)
from truerank.evaluation.impression_views import Looking, RankedSight
from truerank.evaluation.log_facts import RankedFacts
from truerank.evaluation.measure import Measured
from truerank.evaluation.question import Cell, Pair, Points, Question, Remarks, Tallies, run_checks
from truerank.evaluation.ranked_record import details_of, limit, recorded, source_of_exposures, views
from truerank.inference.clipping import chosen_clip
from truerank.inference.intervals import common
from truerank.inference.linearization import Bounds, Spread, equally_weighted
from truerank.inference.tails import RewardTally, tail_length
from truerank.inference.verdicts import UnseenExposure
from truerank.inference.weights import SupportTally, WeightDiagnostics, WeightTally, unseen_of
from truerank.io.impressions import RankedChunk


@dataclass(frozen=True, slots=True, eq=False)
class UnitIds:
    """The id of each unit and of its cluster, and how many rows it has, in the order of the population."""

    unit: Any
    cluster: Any
    active: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RankedPlan:
    """A question about a ranked log with all that had to be learned from the whole of it.

    `grid` are the clips that were asked for, of which one is chosen if `auto`; `answered` are the questions that each
    target can answer. `first` and `last` are what is said before and after what is counted.
    """

    question: Question
    learned: Learned
    facts: RankedFacts
    looking: Looking
    grid: tuple[float, ...]
    auto: bool
    answered: Mapping[str, tuple[int, ...]]
    ids_of_units: UnitIds | None
    first: tuple[Message, ...] = ()
    last: tuple[Message, ...] = ()

    @property
    def unit(self) -> str:
        return self.facts.unit

    @property
    def cluster(self) -> str:
        return self.facts.cluster

    @property
    def keeps_units(self) -> bool:
        return self.ids_of_units is not None

    @property
    def keeps_rows(self) -> bool:
        return self.question.interval.needs_rows

    @property
    def clips(self) -> Floats:
        """All clips, ascending."""
        return np.unique([*self.grid, *(asked.clip for _, asked in self.question.asked)])

    @property
    def limits(self) -> tuple[Limited, ...]:
        """What the clips of the estimators limit."""
        return tuple(dict.fromkeys(limited_by(estimator) for estimator, _ in self.question.asked))

    def rejected_fits(self) -> RejectedFits | None:
        """The fitted position models that do not describe the log, if there are any."""
        learner = self.looking.learner
        fits = {} if learner is None else self.learned[learner].rejected()
        return RejectedFits(fits, self.facts, self.learned[learner].depths is None) if fits else None

    def with_tables(self, places: Collection[str]) -> RankedPlan:
        """The same question with the table of observed views at these places; units are not kept."""
        learner = self.looking.learner

        def with_table(models: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
            return {key: model.with_tables(places) if key == learner else model for key, model in models.items()}

        learned = replace(
            self.learned,
            models=with_table(self.learned.models),
            refits=tuple(with_table(refit) for refit in self.learned.refits),
        )
        return replace(self, learned=learned, auto=False, ids_of_units=None)

    # ---- for measure

    def answers(self, model: str) -> Sequence[int]:
        return self.answered[model]

    def learns(self, estimator: Estimator) -> bool:
        return False  # what is refitted is in the view, and estimators make of it what they can

    def places(self, chunk: RankedChunk) -> Ints:
        return chunk.places()

    def n_rows(self, chunk: RankedChunk) -> int:
        return len(chunk.log)

    def earning(self, chunk: RankedChunk, segment: str | None) -> RankedChunk:
        return chunk

    def look(self, chunk: RankedChunk, model: str) -> RankedSight:
        shared = self.looking.shared(chunk, self.learned)
        view = Exposures(chunk.log, shared.policies[model], shared.logging, shared.clusters, shared.refits)
        return RankedSight(model, view, self.clips, self.limits, tail_length(self.facts.n_rows), shared.unweighed)

    def counted(self, chunk: RankedChunk) -> Tallies:
        most = tail_length(self.facts.n_rows) + 1
        return {
            ("rewards", name): RewardTally.count(rewards, most=most)
            for name, rewards in chunk.log.rewards.items()
            if not self.facts.rewards[name].binary
        }

    # ---- for conclude

    def named(self, estimator: Estimator, asked: Asked) -> tuple[str, int | None]:
        # two forms of clips in one question are told apart in every table
        clipped = {limited_by(each) for each, _ in self.question.asked if each.about.clipping is not Clipping.NONE}
        paper = len(clipped) > 1 and limited_by(estimator) is Limited.INVERSE
        return f"{asked.metric}, clip of the inverse" if paper else str(asked.metric), None

    def directed(self, estimator: Estimator, asked: Asked) -> bool:
        return True

    def assumptions(self, estimator: Estimator) -> tuple[str, ...]:
        base = CHOSEN if self.looking.positions is None and not self.facts.sessions else FIVE
        return (*base, *cast(RankedEstimator, estimator).metric.assumptions)

    def bounds(self, estimator: Estimator, asked: Asked) -> Bounds | None:
        return None

    def equal_clusters(self, cell: Cell, terms: Terms, measured: Measured) -> float:
        return equally_weighted(terms.whole)

    def evidence(self, cell: Cell, spread: Spread, measured: Measured) -> Evidence:
        found = self.weight_diagnostics(cell, measured)
        clipped = self._clip(cell) < math.inf
        return Evidence(
            informative=spread.informative,
            df=spread.df,
            largest=spread.largest,
            lost=found.lost if clipped else None,
            unsupported=None if found.unsupported is None else found.surely_unsupported,
        )

    def doubts(self, cell: Cell, measured: Measured) -> tuple[Message, ...]:
        return ()

    def unseen(self, cell: Cell, terms: Terms, measured: Measured) -> UnseenExposure:
        model, number = cell
        estimator, asked = self.question.asked[number]
        weights: WeightTally = measured.tallies[model, "weights", limited_by(estimator)]
        support: SupportTally = measured.tallies[model, "support"]
        n_units = int(measured.tallies[model, "known"])
        return unseen_of(
            self.weight_diagnostics(cell, measured),
            n_units=n_units,
            weight=weights.total,
            total=support.total,
            value=terms.value(),
            beyond=estimator.about.beyond,
            per=cast(RankedEstimator, estimator).metric.per,
            rewards=self.facts.rewards[asked.reward].between,
        )

    def family(self, number: int) -> int:
        return self._blocks()[number] if self.auto else number

    def known(self, number: int, spread: Spread, terms: Sequence[Terms]) -> Spread:
        """Where nothing was earned, nothing shows how far from 0 a value may be: no width would be a lie."""
        earned = any(bool(part.whole.sums[:, 0].any()) for part in terms)
        return spread if earned and not self.learned.failures else spread.without_interval()

    def diagnostics(self, model: str, clip: float, of: Limited, measured: Measured) -> WeightDiagnostics:
        return _diagnosed(measured.tallies[model, "weights", of], measured.tallies[model, "support"], clip)

    def weight_diagnostics(self, cell: Cell, measured: Measured) -> WeightDiagnostics:
        return self.diagnostics(cell[0], self._clip(cell), limited_by(self.question.asked[cell[1]][0]), measured)

    def _clip(self, cell: Cell) -> float:
        """Where the weights of an estimate are cut; nowhere where it has none."""
        estimator, asked = self.question.asked[cell[1]]
        return math.inf if estimator.about.clipping is Clipping.NONE else asked.clip

    def effective(self, cell: Cell, terms: Terms, measured: Measured) -> float | None:
        estimator = self.question.asked[cell[1]][0]
        return None if estimator.about.clipping is Clipping.NONE else self.weight_diagnostics(cell, measured).ess

    def warnings(self, cell: Cell, terms: Terms, measured: Measured) -> tuple[Message, ...]:
        return run_checks(ESTIMATE_CHECKS, ImpressionEstimate(self, cell, measured))

    def ids(self, measured: Measured) -> tuple[Any, Any]:
        known = self.ids_of_units
        if known is None:
            raise TypeError("units were not kept")
        return known.unit[measured.place], known.cluster[measured.place]

    def activity(self, measured: Measured) -> Floats:
        return np.zeros(0) if self.ids_of_units is None else self.ids_of_units.active[measured.place]

    def order(self, number: int) -> tuple[int, ...]:
        return self._blocks()[number], number

    def _blocks(self) -> list[int]:
        """For each question the number of its estimator and reward."""
        known: dict[tuple[Estimator, str], int] = {}
        return [known.setdefault((estimator, asked.reward), len(known)) for estimator, asked in self.question.asked]

    # ---- clips, messages, record

    def remarks(self, measured: Measured, points: Points) -> Remarks:
        choices: list[dict[str, Any]] = []
        untested: set[tuple[Pair, int]] = set()
        if self.auto:
            for numbers in self._curves():
                made = list(self._chosen(numbers, measured, points))
                choices += [choice for choice, _ in made]
                taken = {cell for _, cell in made}
                untested |= {cell for cell in points.differences if cell[1] in numbers and cell not in taken}
        failures = self._failures(measured, points).items()
        messages = [message("refit-failed", parts=parts, reason=reason) for reason, parts in failures]
        return Remarks(frozenset(untested), (*messages, *check_clips(choices)), {"chosen": choices})

    def _curves(self) -> list[list[int]]:
        """The questions of each estimator and reward that weights enter, ascending by clip."""
        blocks = self._blocks()
        curves = [[number for number, block in enumerate(blocks) if block == at] for at in range(max(blocks) + 1)]
        return [numbers for numbers in curves if self.question.asked[numbers[0]][0].about.clipping is not Clipping.NONE]

    def _chosen(self, numbers: Sequence[int], measured: Measured, points: Points) -> Any:
        """Which clip is taken for each value and difference; the largest for estimators that allow no choice."""
        estimator, asked = self.question.asked[numbers[0]]
        by_rule = estimator.about.clipping is Clipping.CHOSEN
        models = [model for model in self.question.models if (model, numbers[0]) in points.values]
        terms = {
            model: [measured.terms[model, number].whole for number in numbers] if by_rule else [] for model in models
        }
        what: list[tuple[str, Any, Mapping[Any, Spread]]] = [(model, model, points.values) for model in models]
        what += [(" - ".join(pair), pair, points.differences) for pair in self.question.pairs(models)]
        for of, who, spreads in what:
            at = same = len(numbers) - 1
            if by_rule:
                both = (who,) if isinstance(who, str) else who
                at, same = chosen_clip(*(terms[model] for model in both))
            value = spreads[who, numbers[at]].value
            choice = {
                "of": of,
                "reward": asked.reward,
                "estimator": estimator.about.name,
                "clip": limit(self.question.asked[numbers[at]][1].clip),
                "smallest_equal": limit(self.question.asked[numbers[same]][1].clip),
                "value": value,
                "against_largest_clip": value - spreads[who, numbers[-1]].value,
                "by_rule": by_rule,
            }
            yield choice, (who, numbers[at])

    def messages(self, measured: Measured, estimates: Sequence[Estimate]) -> Sequence[Message]:
        return [
            *self.first,
            *chain.from_iterable(check_target(name, measured.tallies, self.facts) for name in self.question.models),
            *self.last,
        ]

    def _failures(self, measured: Measured, points: Points) -> dict[str, int]:
        """Why intervals that include the fit cannot be had, and without how many groups."""
        failures = {
            f"the position model cannot be fitted: {reason}": parts for reason, parts in self.learned.failures.items()
        }
        for key, groups in measured.tallies.items():
            if len(key) == 3 and key[1] == "unweighed":
                failures[f"{key[0]} cannot be weighed: {key[2]}"] = int(np.count_nonzero(groups))
        if failures or not self.learned.refits:
            return failures
        lost: list[tuple[str, int]] = []
        for (model, number), spread in points.values.items():
            if math.isnan(spread.stderr):
                lost.append((f"{model} has no value.", _undefined([measured.terms[model, number]])))
        for ((first, second), number), spread in points.differences.items():
            if math.isnan(spread.stderr):
                both = common(measured.terms[first, number], measured.terms[second, number])
                reason = f"{first} - {second} has no value: no {self.unit} is left that both rank."
                lost.append((reason, _undefined(both)))
        for reason, parts in lost:
            if parts:
                failures[reason] = max(parts, failures.get(reason, 0))
        return failures

    def provenance(self, measured: Measured, remarks: Remarks) -> Provenance:
        facts, question, looking = self.facts, self.question, self.looking
        positions = looking.models(self.learned)
        strata = looking.shares is not None and self.learned[looking.shares].nested
        return Provenance(
            inputs=(
                Input(role="log", source=facts.source, rows=facts.n_rows, items=facts.n_items),
                *(Input(role="target", name=name, source=name) for name in question.models),
            ),
            settings={
                "position": None if positions is None else str(positions),
                "logging": source_of_exposures(facts, positions, looking.loggers),
                "rewards": list(facts.rewards),
                "clips": [limit(clip) for clip in self.grid],
                "interval": type(question.interval).__name__,
                "strata": "logger" if strata and question.interval.refits else None,
                "level": question.level,
                "seed": question.seed,
            },
            counts={"rows": facts.n_rows, "units": facts.n_units, "items": facts.n_items},
            unit=facts.unit,
            versions=versions(),
            details=details_of(
                cluster=facts.cluster,
                chosen=remarks.details.get("chosen", ()),
                diagnostics=[
                    {
                        "model": model,
                        "clip": limit(clip),
                        "of": of,
                        **asdict(self.diagnostics(model, clip, of, measured)),
                    }
                    for model in question.models
                    for of in self.limits
                    for clip in self.grid
                ],
                fits=[] if looking.learner is None else recorded(self.learned[looking.learner]),
                views=[] if looking.learner is None else views(self.learned[looking.learner]),
            ),
        )


@lru_cache(maxsize=4096)
def _diagnosed(weights: Any, support: Any, clip: float) -> WeightDiagnostics:
    unsupported, error = support.share()
    found: WeightDiagnostics = weights.diagnostics(clip, unsupported=unsupported, error=error)
    return found


def _undefined(terms: Sequence[Terms]) -> int:
    """Without how many groups one of these has no value, although it has one with all of them."""
    lost = [
        int(np.count_nonzero(np.isnan(part.values_without())))
        for part in terms
        if isinstance(part, Refitted) and part.n_independent() >= 2 and not math.isnan(part.value())
    ]
    return max(lost, default=0)
