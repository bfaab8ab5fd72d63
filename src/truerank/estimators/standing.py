"""What judged rows stand for, whether they were drawn evenly or with unequal propensities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Bools, Floats
from truerank.core.estimator import Exposed, Learned
from truerank.core.ranking import JudgedChunk, Ranks
from truerank.core.rows import Weighting
from truerank.core.terms import Form, Smooth, smooth
from truerank.estimators.biased.weighing import propensity_of
from truerank.estimators.sums import DesignedSample, UniformSample, per_unit, sample_of

STANDS = (
    "each judged item stands for others as its chance to be judged says, the same for all candidates of a user or its "
    "propensity, whatever its label"
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Each judged row stands for α rows like it: N / N-bar of its user, 1 / rate, or 1 / propensity.

    `sample` is how rows were drawn, where whoever made the test set drew them.
    """

    chunk: JudgedChunk
    weight: Floats
    defined: Bools
    sample: UniformSample | DesignedSample | None

    @classmethod
    def of(cls, chunk: JudgedChunk, ranks: Ranks, learned: Learned, *, usable: Bools) -> Standing:
        """`usable` units are those for which the metric is defined."""
        log = chunk.labels
        if learned.facts.get("exposed") is Exposed.BIASED:
            able = ranks.scored & ~(ranks.n_candidates == 0) & usable
            return cls(chunk, 1.0 / propensity_of(log, learned), able, None)
        sample = sample_of(chunk, ranks, learned, usable=usable)
        return cls(chunk, sample.weights(log), sample.defined, sample)

    @property
    def exact(self) -> bool:
        """Whether every candidate was judged."""
        return self.sample is not None and self.sample.exact

    def terms(
        self,
        form: Form,
        rows: Sequence[Floats],
        known: Sequence[Floats],
        *,
        labelled: Mapping[int, Floats],
        worth: Floats,
        keep_rows: bool,
    ) -> Smooth:
        """Terms of a form: its first sums are of α x what each row adds, its last ones are known of units.

        Where pairs that are not listed are known negatives, no row tells of them: `labelled` are the sums, by their
        place, with these. `worth` is what each row carries, whatever its label.
        """
        log, sample = self.chunk.labels, self.sample
        columns = [per_unit(log, self.weight * values) for values in rows]
        if log.complete:
            columns = [labelled.get(at, values) for at, values in enumerate(columns)]
        carrying = np.where(self.defined[log.unit], worth, 0.0)
        return smooth(
            form,
            (*columns, *known),
            self.defined,
            self.chunk.clusters,
            exact=self.exact,
            rows=sample.rows(log, *rows) if keep_rows and sample is not None else None,
            weighting=Weighting.of(carrying * self.weight) if sample is None else sample.weighting,
        )
