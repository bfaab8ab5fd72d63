"""How far the published mean is from mean recall on KuaiRec, exactly: writes docs/results/published-bias.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.special import gammaln

import kuairec
from result_pages import write_page
from truerank.core.arrays import Floats
from truerank.estimators import terms_of
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.pooled import Pooled
from truerank.metrics.recall import Recall
from truerank.studies.coverage import ObservedWorld

OUT = Path("docs/results/published-bias.md")


def main() -> None:
    truth = kuairec.truth()
    lines = [
        "# What the published mean converges to on KuaiRec",
        "",
        "Written by `make published-bias`; exact, no draws. The published estimate (mean of m/n over users with a judged "
        "positive) converges to Σ π Recall / Σ π, π = 1 − C(N − N⁺, N̄) / C(N, N̄) the chance that a user has a judged "
        "positive. 1,411 users, 3,327 items; scorers as in [coverage](coverage.md).",
        "",
        "| judged per user N̄ | users kept on average | metric | model | mean recall over users | published limit | bias | pooled recall |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for n in (16, 80, 320):
        chance = kept(truth, n)
        lines += [_row(truth, model, Recall(k), n, chance) for k in (5, 50, 500) for model in truth.ranks]
    write_page(OUT, "published-bias", "\n".join(lines) + "\n")


def kept(truth: ObservedWorld, n: int) -> Floats:
    """π of every user: the chance that at least one of n judged items is relevant."""
    positives = np.bincount(truth.labels.user, weights=truth.labels.label)
    size = float(truth.n_items)
    rest = size - positives
    with np.errstate(invalid="ignore"):
        none = np.where(
            rest >= n,
            np.exp(gammaln(rest + 1) - gammaln(rest - n + 1) - gammaln(size + 1) + gammaln(size - n + 1)),
            0.0,
        )
    return np.asarray(1 - none, dtype=np.float64)


def _row(truth: ObservedWorld, model: str, metric: Recall, n: int, chance: Floats) -> str:
    (terms,) = terms_of(Full(), truth.labels, truth.ranks[model], metrics=[metric])
    pooled = terms_of(Pooled(), truth.labels, truth.ranks[model], metrics=[metric])[0].value()
    numerator, denominator = (chance[:, None] * terms.sums).sum(axis=0).tolist()
    mean, limit = terms.value(), numerator / denominator
    return f"| {n} | {chance.sum():,.0f} | {metric} | {model} | {mean:.4f} | {limit:.4f} | {limit / mean - 1:+.1%} | {pooled:.4f} |"


if __name__ == "__main__":
    main()
