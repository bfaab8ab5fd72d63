"""The compiled loops of `clocks.py`, additions of positive numbers only, and of `unequal.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.compiled import compiled


@compiled(boundscheck=False)
def _join(count: Any, p: float, most: int) -> None:
    """One more member, rung with probability p, in the distribution of how many have rung; `most` can have by now."""
    q = 1 - p
    before = count[0]
    count[0] = before * q
    for r in range(1, min(most, len(count) - 1) + 1):
        now = count[r]
        count[r] = now * q + before * p
        before = now


@compiled(boundscheck=False)
def add_without_each(rung: Any, density: Any, probability: Any) -> None:
    """probability[i, r - 1] += Σ over nodes of density x P(r - 1 of the others have rung), for all members i.

    Halving the members takes every one into all distributions but its own.
    """
    n_nodes, n = rung.shape
    n_levels = 2
    while 2 ** (n_levels - 2) < n:
        n_levels += 1
    count = np.zeros((n_levels, probability.shape[1]))
    count[0, 0] = 1.0
    # members low ... high - 1 are still outside at this level; first ... last - 1 join what the level above has
    waiting = np.empty((2 * n_levels, 5), np.int64)
    for node in range(n_nodes):
        waiting[0] = (0, n, 0, 0, 0)
        n_waiting = 1
        while n_waiting:
            n_waiting -= 1
            low, high, level, first, last = waiting[n_waiting]
            here = count[level]
            if level:
                here[:] = count[level - 1]
                seen = n - (high - low) - (last - first)
                for i in range(first, last):
                    seen += 1
                    _join(here, rung[node, i], seen)
            if high - low == 1:
                for r in range(probability.shape[1]):
                    probability[low, r] += density[node, low] * here[r]
            else:
                middle = (low + high) // 2
                waiting[n_waiting] = (low, middle, level + 1, middle, high)
                waiting[n_waiting + 1] = (middle, high, level + 1, low, middle)
                n_waiting += 2


@compiled(boundscheck=False)
def meet(chance: Any, uniform: Any, drawn: Any) -> None:
    """Who is drawn when members meet in order: the two share their chances, and who reaches 1 is drawn."""
    holder, held = 0, chance[0]
    for member in range(1, len(chance)):
        both = held + chance[member]
        if both < 1 - 1e-12:  # one has the chance of both, each in proportion to its own
            if uniform[member] * both >= held:
                holder = member
            held = both
            continue
        # one is drawn, the other has what is left
        if both < 2 and uniform[member] * (2 - both) >= 1 - chance[member]:
            drawn[member] = True
        else:
            drawn[holder] = True
            holder = member
        held = max(both - 1, 0.0)
    if held > 0.5:
        drawn[holder] = True
