"""How many items each user has in bins of a model's ranks: relevant, judged, and in all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Histograms:
    """Relevant and judged items of each row by bin of ranks, and how many candidates the bin has; `last` ranks of bins.

    The first `within` bins are the list.
    """

    relevant: Floats
    judged: Floats
    size: Floats
    last: Floats
    within: int

    def distinct(self) -> tuple[Histograms, Ints, Floats]:
        """Each row once, in sorted order; which of them each row is, and how many rows each is.

        >>> rows = np.array([[2.0], [1.0], [2.0]])
        >>> found, place, count = Histograms(rows, rows, rows, np.array([5.0]), 1).distinct()
        >>> found.relevant.tolist(), place.tolist(), count.tolist()
        ([[1.0], [2.0]], [1, 0, 1], [1.0, 2.0])
        """
        columns = np.concatenate([self.relevant, self.judged, self.size], axis=1)
        differ = columns[:, (columns != columns[:1]).any(axis=0)]
        order = np.lexsort(differ.T[::-1]) if differ.size else np.arange(len(columns))
        new = np.append(True, (differ[order[1:]] != differ[order[:-1]]).any(axis=1))[: len(columns)]
        place = np.empty(len(columns), dtype=np.int64)
        place[order] = np.cumsum(new) - 1
        rows = order[new]
        relevant, judged, size = (part[rows] for part in (self.relevant, self.judged, self.size))
        return Histograms(relevant, judged, size, self.last, self.within), place, np.bincount(place).astype(np.float64)

    @property
    def rest(self) -> Floats:
        """Candidates that were not judged."""
        return np.maximum(self.size - self.judged, 0.0)

    def lift(self) -> float:
        """How far relevance falls along the ranks: the logit of the first bin minus that of the last, over 5.

        Of pooled rates that are made to fall (pool adjacent violators).

        >>> flat = Histograms(np.ones((1, 2)), 2 * np.ones((1, 2)), 5 * np.ones((1, 2)), np.array([5.0, 10.0]), 1)
        >>> flat.lift()
        0.0
        """
        hits, seen = self.relevant.sum(axis=0), self.judged.sum(axis=0)
        blocks: list[tuple[float, float]] = []
        for hit, n in zip((hits + hits.sum() / seen.sum()).tolist(), (seen + 1.0).tolist(), strict=True):
            blocks.append((hit, n))
            while len(blocks) > 1 and blocks[-1][0] / blocks[-1][1] > blocks[-2][0] / blocks[-2][1]:
                (low, m), (high, k) = blocks.pop(), blocks.pop()
                blocks.append((low + high, m + k))
        rates = np.clip([hit / n for hit, n in (blocks[0], blocks[-1])], 1e-6, 1 - 1e-6)
        logits = np.log(rates / (1 - rates))
        return float(logits[0] - logits[1]) / 5
