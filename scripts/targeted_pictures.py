"""The picture of a stream for docs/watch.md.

python scripts/targeted_pictures.py [png]          write docs/figures/watch.svg (or PNG, to look at)
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import polars as pl

import truerank as tr
from truerank.report.reliability_charts import PictureFormat
from truerank.report.watched import watch_picture

OUT = Path("docs/figures/watch")


def stream() -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """3,000 users who come one after the other; `new` puts what they like first for a few more of them than `old`."""
    rng = np.random.default_rng(9)
    n_users, n_items = 3000, 5
    user, item = (each.ravel() for each in np.indices((n_users, n_items)))
    tells = rng.random(n_users) < 0.25
    wins = rng.random(n_users) < 0.59
    first = {"new": np.where(tells & ~wins, 1, 0), "old": np.where(tells & wins, 1, 0)}
    scores = {
        name: pl.DataFrame({"user": user, "item": item, "score": (item == at[user]) - item / 10})
        for name, at in first.items()
    }
    labels = pl.DataFrame({"user": user, "item": item, "label": (item == 0).astype(int), "time": user})
    return scores, labels


def main() -> None:
    form = PictureFormat(sys.argv[1] if len(sys.argv) > 1 else "svg")
    scores, labels = stream()
    found = tr.watch(scores, labels, require="new > old", metrics=["Precision@1"], planned=1000)
    last = found.pairs[0].last
    print(found.pairs[0].state, found.pairs[0].stopped, last.users, math.isnan(last.low))
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.with_suffix(f".{form}").write_bytes(watch_picture(found, str(form)))


if __name__ == "__main__":
    main()
