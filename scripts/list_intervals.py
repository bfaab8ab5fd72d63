"""How often intervals of coverage and inequality hold: python scripts/list_intervals.py [--draws 2000] [--out FILE].

Users are drawn from populations whose lists are known, as many again and again; what is to be covered is the mean over
all draws, the value that as many users have on average. Four worlds: a long tail that few users reach, tastes shared by
groups of users, a small catalogue that everybody fills, and one list for nearly everybody, where one user in fifty has
a list of rare items instead. The second model lists other items to a part of users.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from result_pages import write_page
from truerank.core.arrays import Floats, Ints
from truerank.core.clusters import Clusters
from truerank.core.counted import CountedItems, CountForm, Covered, Inequality
from truerank.uncertainty.intervals import Population

K = 10
POPULATION = 20_000
SIZES = (20, 50, 200, 1000)
LEVEL = 0.95


@dataclass(frozen=True)
class ListWorld:
    """Populations of lists of two models, [users x K] items of a catalogue."""

    name: str
    n_items: int
    lists: dict[str, Ints]


def worlds() -> list[ListWorld]:
    rng = np.random.default_rng(3)
    return [
        zipf_world("long tail", 2000, 1.0, 1, rng),
        zipf_world("groups of taste", 1000, 0.7, 25, rng),
        zipf_world("small catalogue", 60, 0.5, 1, rng),
        rare_world("rare users", 2000, 0.02, rng),
    ]


def rare_world(name: str, n_items: int, share: float, rng: np.random.Generator) -> ListWorld:
    """The same K items for everybody, but for a share of users any of the others; of the second model for half of it."""
    rare = rng.random(POPULATION)
    other = K + rng.integers(0, (n_items - K) // K, POPULATION)[:, None] * K + np.arange(K)
    lists = {
        model: np.where((rare < part)[:, None], other, np.arange(K))
        for model, part in (("first", share), ("second", share / 2))
    }
    return ListWorld(name, n_items, lists)


def zipf_world(name: str, n_items: int, exponent: float, groups: int, rng: np.random.Generator) -> ListWorld:
    """Items by Zipf's law, in another order for each group; the second model is steeper for two thirds of users."""
    base = -exponent * np.log(np.arange(1, n_items + 1))
    weight = np.stack([rng.permutation(base) if groups > 1 else base for _ in range(groups)])
    group = rng.integers(0, groups, POPULATION)
    first = _drawn(weight[group], rng)
    steeper = _drawn(1.3 * weight[group], rng)
    changed = rng.random(POPULATION) < 2 / 3
    return ListWorld(name, n_items, {"first": first, "second": np.where(changed[:, None], steeper, first)})


def _drawn(weight: Floats, rng: np.random.Generator) -> Ints:
    """K items of each row without replacement (Gumbel's trick), in parts."""
    parts = []
    for part in np.array_split(weight, 40):
        keys = part + rng.gumbel(size=part.shape)
        parts.append(np.argpartition(-keys, K, axis=1)[:, :K])
    return np.concatenate(parts)


@dataclass(frozen=True)
class Held:
    """Of one world, size and metric: the mean over draws, its sd, the mean standard error, and how often 95 % held."""

    world: str
    metric: str
    what: str
    n: int
    mean: float
    sd: float
    stderr: float
    held: float
    without: float


def terms_of(world: ListWorld, model: str, users: Ints, form: CountForm) -> CountedItems:
    n = len(users)
    start = np.arange(0, (n + 1) * K, K)
    item = world.lists[model][users].ravel()
    return CountedItems(form, start, item, np.ones(n, dtype=bool), world.n_items, Clusters.numbered(n))


def held(world: ListWorld, n: int, *, draws: int, seed: int) -> Iterator[Held]:
    rng = np.random.default_rng(seed)
    forms: dict[str, CountForm] = {"Coverage": Covered(float(world.n_items)), "Gini": Inequality(float(world.n_items))}
    found: dict[tuple[str, str], list[tuple[float, float, float, float]]] = {}
    for _ in range(draws):
        users = rng.integers(0, POPULATION, n)
        for metric, form in forms.items():
            terms = {model: terms_of(world, model, users, form) for model in world.lists}
            alone, apart = Population().spreads(terms, [("second", "first")], level=LEVEL)
            for what, spread in (("value", alone["first"]), ("difference", apart["second", "first"])):
                found.setdefault((metric, what), []).append((spread.value, spread.stderr, spread.low, spread.high))
    for (metric, what), rows in found.items():
        value, stderr, low, high = np.array(rows).T
        truth, known = value.mean(), ~np.isnan(stderr)
        inside = (low[known] <= truth) & (truth <= high[known])
        yield Held(
            world.name, metric, what, n, float(truth), float(value.std(ddof=1)),
            float(np.sqrt(np.mean(stderr[known] ** 2))) if known.any() else math.nan,
            float(inside.mean()) if known.any() else math.nan, float(1 - known.mean()),
        )  # fmt: skip


def table(rows: list[Held], *, draws: int) -> str:
    lines = [
        f"| world | metric | of | users | mean over {draws:,} draws | sd | standard error | 95 % held | no interval |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        share = "" if math.isnan(row.held) else f"{row.held:.1%}"
        lines.append(
            f"| {row.world} | {row.metric} | {row.what} | {row.n:,} | {row.mean:.4f} | {row.sd:.4f} | {row.stderr:.4f} "
            f"| {share} | {row.without:.1%} |"
        )
    return "\n".join(lines) + "\n"


def page(rows: list[Held], *, draws: int) -> str:
    """What was found, in words; the table of all worlds is folded."""
    known = [row for row in rows if not math.isnan(row.held)]
    low, high = (pick(known, key=lambda row: row.held) for pick in (min, max))
    wide = max((row for row in known if 0.05 < row.mean < 0.95), key=lambda row: row.stderr / row.sd)
    return f"""# Intervals of coverage and Gini, measured

Made by `python scripts/list_intervals.py --out docs/results/lists.md`. Users are drawn again and again from four populations whose lists are known; what an interval should hold is
the mean over all {draws:,} draws: the value that as many users have on average.

- Intervals of 95 % held in {low.held:.1%} ({low.world}, {low.metric}, {low.what}, {low.n:,} users) to {high.held:.1%} of draws: they hold as often as they say, or more often.
- Where they hold more often, they are too wide: the sum of squares of what each user adds is on average no less than the variance (Efron and Stein 1981). Of values from 0.05 to 0.95 the
  standard error is up to {wide.stderr / wide.sd:.1f} times the true one ({wide.world}, {wide.metric}, {wide.n:,} users); where a catalogue is nearly full, or nobody unusual was drawn, more.
- Where every listed item is in the lists of two users or more, no user alone adds anything: coverage then has an interval by the rule of three, from users of a kind that was not drawn
  ("rare users" with 20 and 50). Gini has none there (the last column).

<details><summary>All worlds</summary>

{table(rows, draws=draws)}
</details>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("docs/results/lists.md"))
    chosen = parser.parse_args()
    rows = [
        row for world in worlds() for at, n in enumerate(SIZES) for row in held(world, n, draws=chosen.draws, seed=at)
    ]
    write_page(chosen.out, "lists", page(rows, draws=chosen.draws))


if __name__ == "__main__":
    main()
