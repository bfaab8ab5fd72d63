"""The kernels of the study in numpy: what the compiled ones must equal to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from truerank.core.arrays import Bools, Floats, Ints
from truerank.reliability import kernels
from truerank.reliability.dataset import Mark
from truerank.reliability.scenarios import TAUS, CandidateKind
from truerank.reliability.tables import reference


def evaluate_users(
    group: Any, models: Any, cells: Any, pool: Any, weight: Any, families: Any, metrics: Any, bin_of: Any, results: Any
) -> None:
    """As `kernels.evaluate_users`."""
    (order, finite), (level, mark, time), (out, sums_of_models) = models, cells, results
    kind, as_exposed, size_start, sizes, last = families
    table, of, divisor, scale, by_rounded = metrics
    n_users, n_models, _ = order.shape
    n_sparsities, n_families = weight.shape[:2]
    first, second = np.triu_indices(n_models, 1)
    for u in range(n_users):
        place = np.argsort(order[u], axis=1)  # of each item, for each model
        reference = None
        for s in range(n_sparsities):
            shown = level[u] > s
            liked = np.flatnonzero(shown & (mark[u] == Mark.LIKED))
            exposed = np.flatnonzero(shown & (mark[u] == Mark.OTHER))
            in_pool = (pool[s] > 0) & (mark[u] != Mark.EXCLUDED)
            if len(liked) == 0:
                out[u, s, :, :, 0], out[u, s, :, :, 1:] = -1, 0
                continue
            found = []
            for f in range(n_families):
                if kind[f] == CandidateKind.FULL:
                    drawn = np.setdiff1d(np.flatnonzero(in_pool), liked)
                elif kind[f] == CandidateKind.EXPOSED:
                    drawn = exposed
                else:
                    own = weight[s, f, u % weight.shape[2]]
                    able = (own > 0) & in_pool
                    if kind[f] == CandidateKind.DRAWN:
                        able[liked] = False
                    members = np.flatnonzero(able)
                    with np.errstate(over="ignore"):
                        clock = np.minimum(time[u, members] / own[members], last)
                    drawn = members[np.argsort(clock, kind="stable")]
                ends = np.array([len(drawn)])
                if kind[f] in (CandidateKind.DRAWN, CandidateKind.DRAWN_WITH_POSITIVES):
                    asked = [len(exposed)] if as_exposed[f] else sizes[size_start[f] : size_start[f + 1]]
                    ends = np.minimum(asked, len(drawn))
                first_copy = np.array(
                    [[kernels.copy_is_first(t, s * n_models + m) for t in time[u, drawn]] for m in range(n_models)]
                )
                copies = np.isin(drawn, liked) & first_copy
                found += values_of(place, finite[u], liked, drawn, copies, ends, table, of, divisor)
            value = np.stack(found)  # [candidates, metrics, models]
            rounded = np.rint(value * 1e4)
            compared = rounded if by_rounded else value
            sign = np.sign(compared[..., first] - compared[..., second])
            reference = sign if reference is None else reference
            out[u, s, ..., 0] = (value[..., first] == value[..., second]).sum(axis=-1)
            out[u, s, ..., 1] = (rounded[..., first] == rounded[..., second]).sum(axis=-1)
            for at, other in enumerate((sign[0], reference, reference[0])):
                out[u, s, ..., 2 + at] = (sign * other).sum(axis=-1)
            sums_of_models[group[u], s] += np.rint(value * scale).astype(np.int64)


def values_of(
    place: Ints, finite: Ints, liked: Ints, drawn: Ints, before: Bools, ends: Ints, table: Floats, of: Ints,
    divisor: Floats,
) -> list[Floats]:  # fmt: skip
    """[metrics x models] for each of the nested samples drawn[:end]; `before` [models x drawn]: copies of a positive
    that stand right before it, others right behind.
    """
    n_models, deepest, n_liked = len(place), len(table) - 1, len(liked)
    ordered = np.sort(place[:, liked], axis=1)
    bins = np.stack([np.searchsorted(ordered[m], place[m, drawn], side="right") for m in range(n_models)]) - before
    cell = bins + np.arange(n_models)[:, None] * (n_liked + 1)
    known = ordered < finite[:, None]
    found = []
    for end in ends:
        count = np.bincount(cell[:, :end].ravel(), minlength=n_models * (n_liked + 1)).reshape(n_models, -1)
        rank = np.arange(1, n_liked + 1) + np.cumsum(count[:, :-1], axis=1)
        rank = np.where(known & (rank <= deepest), rank, 0)  # rank 0 is worth nothing
        sums = np.cumsum(table[rank], axis=1)[:, -1]  # one after the other, from the best rank on
        found.append(np.asarray(sums[:, of].T / divisor[:, n_liked, None]))
    return found


def levels(clock: Any, left: Any, positive: Any, sizes: Any, level: Any) -> None:
    """As `kernels.levels`."""
    for u in range(len(clock)):
        members = np.flatnonzero(left[u])
        order = members[np.argsort(clock[u, members], kind="stable")]
        level[u] = 0
        for size in sizes[u]:
            level[u, order[:size]] += 1
        level[u, order[positive[u, order] == 1][:1]] = sizes.shape[1]


def count_levels(level: Any, mark: Any, rows: Any, liked: Any) -> None:
    """As `kernels.count_levels`."""
    for at in range(len(rows)):
        rows[at] += (level == at).sum(axis=0)
        liked[at] += ((level == at) & (mark == Mark.LIKED)).sum(axis=0)


def count_pairs(means: Any, rounding: Any, out: Any) -> None:
    """As `kernels.count_pairs`."""
    first, second = np.triu_indices(means.shape[-1], 1)
    for at, (mean, limit) in enumerate(zip(means, rounding, strict=True)):
        difference = mean[..., first] - mean[..., second]
        sign = np.where(np.abs(difference) <= limit, 0, np.sign(difference)).astype(np.int32)
        agreement = [(sign * reference(question, sign[None])[0]).sum(axis=-1) for question in TAUS]
        out[at] = np.stack([(sign == 0).sum(axis=-1), *agreement], axis=-1)


def use_plain_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies run by the kernels of this module."""
    for function in (evaluate_users, levels, count_levels, count_pairs):
        monkeypatch.setattr(kernels, function.__name__, function)
