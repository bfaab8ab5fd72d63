"""Does `truerank advise` advise well? `make advice-check` writes docs/results/advice.md.

A study is made on one half of the users of a world. Fresh logs are then drawn, with other seeds and at sparsities between
those of the study, from users of the other half (and of the same half, which checks the formula alone): is the logger
recognised, does the τ that comes out agree with the expected one, and what is lost by following the advice?

What is done is kept in build/advice-check, so an interrupted run goes on where it stopped; delete it to start again.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from kuairec import COLUMNS, data_folder
from result_pages import write_page
from truerank import models
from truerank.core.arrays import Floats, Ints
from truerank.core.chance import cell_uniforms, generator
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Scores
from truerank.data.read import read
from truerank.data.whole import whole_file
from truerank.metrics.ndcg import NDCG
from truerank.studies.reliability import Grid, LabelledWorld, Models, advice_for, study
from truerank.studies.reliability.draws import LoggerRun, train_shares
from truerank.studies.reliability.folder import FORMAT
from truerank.studies.reliability.logs import Look, looks_of
from truerank.studies.reliability.scenarios import MetricTables, Scenarios
from truerank.studies.reliability.studied import Studied, likenesses
from truerank.studies.world import make_world

OUT, DONE = Path("docs/results/advice.md"), Path("build/advice-check")
SEED, STUDY_SEED = 20261116, 7
METRIC = NDCG(100)
SPARSITIES = (0.2, 0.6, 0.8, 0.93, 0.98)  # between those of the study; the last is outside
SAMPLERS = ("Exposed", "Random@e", "Random", "Popularity", "Positivity", "WTD", "Skew")
SIZES = (5, 20, 100, 500)
REPETITIONS = 3
DRAWS = {50: 40, 200: 20, 0: 6}  # of each number of users; 0: as many as there are, of the other half alone
OUTSIDE, LEAST = 0.95, 0.005  # sparsities from which the study has none; what rounding of τ to pairs of models can do
INTRODUCTION = """# Does the advice hold?

`make advice-check` makes this page. On each world a reliability study is run on one half of the users ({models} models, {ways} ways to choose candidates,
nDCG@100, 3 repetitions). Fresh logs are then drawn with other seeds, of n users with replacement, at sparsities that the study does not have
(20 %, 60 %, 80 %, 93 %, and 98 %, which is sparser than any of its logs): of the other half of the users, and of the study's own, where only the formula is
tested. Truth is the order that Full gives at sparsity 0 for that half. τ is over the pairs whose order the study knows, so it is between -1 and 1; τ expected
and realised are of the same pairs. Differences are in units of τ; "within 2 errors" counts |expected - realised| ≤ 2 Monte-Carlo errors + 0.005.
Draws of one logger and number of users share their users and clocks over sparsities. The best in hindsight is the largest of {ways} noisy means, so regret
is overstated. "As stated" is the expected τ of what was advised. A tenth of each user's pairs is held out as random data, in the study and in fresh logs: it is
neither shown nor a candidate."""
MODELS: dict[str, dict[str, Any]] = {
    "random": {},
    "popularity": {},
    "item-knn": {"neighbours": 10},
    "item-knn 100": {"neighbours": 100},
    "user-knn": {"neighbours": 100},
    "ease": {"regularisation": 500.0},
    "sar": {},
}


@dataclass(frozen=True)
class Setting:
    """A world, what the models are trained on, and the two halves of its users."""

    name: str
    labels: Log
    train: Log
    scores: Mapping[str, Scores]

    def half(self, which: int) -> Log:
        key = self.labels.users.keys()
        mine = (cell_uniforms(SEED, "halves", key, np.zeros_like(key)) < 0.5) == (which == 0)
        users = Ids(self.labels.users.values.filter(pl.Series(mine)))
        rows = self.labels.select(np.flatnonzero(mine[self.labels.user]))
        return replace(rows, users=users, user=(np.cumsum(mine) - 1)[rows.user], source=f"{self.name}, half {which}")


def settings() -> list[Setting]:
    world = make_world(seed=1)
    found = [_setting("synthetic", world.truth, world.train)]
    folder = data_folder() / "kuairec"
    if folder.is_dir():
        liked = pl.read_parquet(folder / "big_matrix_positives.parquet").select("user_id", "video_id", label=pl.lit(1))
        labels = read(folder / "small_matrix_binary_grid.parquet", columns=COLUMNS)
        found.append(_setting("KuaiRec", labels, read(liked, columns=COLUMNS)))
    return found


def _setting(name: str, labels: Log, train: Log) -> Setting:
    scores = {title: models.named(title.split(" ")[0])(**chosen).fit(train, seed=0) for title, chosen in MODELS.items()}
    return Setting(name, labels, train, scores)


def grid() -> Grid:
    return Grid.of(samplers=SAMPLERS, sizes=SIZES, metrics=(METRIC,), repetitions=REPETITIONS)


# ------------------------------------------------------------------------------------------------------------ fresh logs


class Cell(msgspec.Struct, frozen=True):
    """Fresh logs of one logger, half and number of users: what they look like, and the signs of all pairs of models.

    `looks` are [draws][sparsities], `signs` [draws][sparsities][candidates][pairs], of the sums over users.
    """

    looks: list[list[Look]]
    signs: list[list[list[list[int]]]]


class Fresh:
    """One half of the users, ready for logs to be drawn from."""

    def __init__(self, setting: Setting, which: int) -> None:
        self.world = LabelledWorld.of(setting.half(which))
        self.grid, self.train = grid(), setting.train
        self.models = Models.of(setting.scores, self.world, seed=STUDY_SEED)
        self.able = np.flatnonzero(self.models.scored & (self.world.positive.count > 0))
        self.orders = self.models.orders(np.arange(self.world.n_users))
        self.weights = [each.weights(setting.labels, train=setting.train) for each in self.grid.loggers]
        self.shares = train_shares(setting.train, self.world.items)
        self.tables = MetricTables.of_metrics(
            (METRIC,), most_positives=int(self.world.positive.count.max()), n_users=4 * len(self.able)
        )

    def draw(self, logger: int, units: Ints, *, seed: int) -> tuple[list[Look], Ints]:
        """What the log of these users looks like at each sparsity, and the models' sums, [sparsities x candidates x models].

        Users are drawn with replacement: they stand for a population of which the half is a sample.
        """
        exposing = LoggerRun.of(
            self.world,
            self.grid.loggers[logger],
            sparsities=(0.0, *SPARSITIES),
            holdout=self.grid.holdout,
            weight=self.weights[logger],
            seed=seed,
        )
        counted = exposing.count(units)
        scenarios = Scenarios.of(exposing, counted, grid=self.grid, tables=self.tables, train=self.shares)
        order, finite = self.orders
        found = scenarios.evaluate(units, np.zeros(len(units), np.int64), order[units], finite[units])
        return looks_of(counted, n_users=len(units)), found.sums[0, :, :, 0]

    def truth(self) -> Floats:
        """The true mean difference of each pair: Full at sparsity 0, over all users and some hold-outs."""
        total = sum(self.draw(0, self.able, seed=SEED + at)[1][0, 0] for at in range(3))
        first, second = np.triu_indices(len(self.models), 1)
        return np.asarray(total[first] - total[second], dtype=np.float64)

    def cell(self, logger: int, n: int, draws: int, *, name: str) -> Cell:
        first, second = np.triu_indices(len(self.models), 1)

        def one(at: int) -> tuple[Any, Any]:
            rng = generator(SEED, f"{name} {at}")
            units = np.sort(rng.choice(self.able, n))
            looks, sums = self.draw(logger, units, seed=int(rng.integers(2**62)))
            return looks[1:], np.sign(sums[1:][..., first] - sums[1:][..., second]).tolist()

        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(one, range(draws)))
        return Cell([each for each, _ in found], [each for _, each in found])


def kept(name: str) -> Path:
    """Where a result is kept: apart from those of studies of another format, which evaluate otherwise."""
    return DONE / f"format-{FORMAT}" / name


def cells(setting: Setting) -> dict[tuple[int, str, int], Cell]:
    """By half (0: of the study), logger and number of users asked for; kept on disk one by one."""
    found, names = {}, [str(each) for each in grid().loggers]
    for which in (0, 1):
        fresh: Fresh | None = None
        for at, logger in enumerate(names):
            for n, draws in ((n, draws) for n, draws in DRAWS.items() if n or which):
                name = f"{setting.name}-{which}-{logger}-{n}"
                path = kept(f"{name}.json")
                if not path.is_file():
                    fresh = Fresh(setting, which) if fresh is None else fresh
                    begin = time.perf_counter()
                    cell = fresh.cell(at, n or len(fresh.able), draws, name=name)
                    with whole_file(path) as temporary:
                        temporary.write_bytes(msgspec.json.encode(cell))
                    print(f"{name}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)
                found[which, logger, n] = msgspec.json.decode(path.read_bytes(), type=Cell)
    return found


def truths(setting: Setting) -> list[Floats]:
    path = kept(f"{setting.name}-truth.json")
    if not path.is_file():
        values = [Fresh(setting, which).truth().tolist() for which in (0, 1)]
        with whole_file(path) as temporary:
            temporary.write_bytes(msgspec.json.encode(values))
    return [np.array(each) for each in msgspec.json.decode(path.read_bytes())]


# ------------------------------------------------------------------------------------------------------------- judgement


@dataclass(frozen=True)
class Judged:
    """One half, logger, number of users and sparsity."""

    half: int
    logger: str
    users: int
    sparsity: float
    taken: tuple[str, ...]  # the logger recognised in each draw
    expected: Floats  # of each way to choose candidates, by the true logger
    realised: Floats
    error: Floats  # Monte-Carlo error of realised
    stated: float  # expected τ of what was recommended in each draw
    followed: float  # its realised τ
    first: float  # realised τ of the best expected, whatever it costs
    full: float
    exposed: float
    best: float  # in hindsight


def judge(setting: Setting, studied: Studied) -> list[Judged]:
    found, true, labels = [], truths(setting), grid().candidates
    for (half, logger, _), cell in cells(setting).items():
        for s, sparsity in enumerate(SPARSITIES):
            looks = [each[s] for each in cell.looks]
            size, seen = looks[0].users, float(np.mean([each.sparsity for each in looks]))
            advice = {
                each: advice_for(studied, None, users=size, sparsity=seen, logger=each) for each in studied.loggers
            }
            own = advice[logger]
            decided = _decided(studied, own.undecided)
            sign = np.sign(true[half][decided])
            tau = (np.array([each[s] for each in cell.signs])[:, :, decided] * sign).mean(
                axis=2
            )  # [draws x candidates]
            taken = tuple(likenesses(studied, each, sparsity=each.sparsity)[0].logger for each in looks)
            expected = {(each.sampler, each.size): each.tau for each in own.choices}
            at = {label: place for place, label in enumerate(labels)}
            chosen = {name: (each.recommended, each.best) for name, each in advice.items()}
            followed, first = (
                float(np.mean([tau[d, at[chosen[t][k].sampler, chosen[t][k].size]] for d, t in enumerate(taken)]))
                for k in (0, 1)
            )
            stated = float(np.mean([chosen[t][0].tau for t in taken]))
            mean = tau.mean(axis=0)
            found.append(
                Judged(
                    half, logger, size, sparsity, taken,
                    np.array([expected[each] for each in labels]), mean, tau.std(axis=0, ddof=1) / math.sqrt(len(tau)),
                    stated, followed, first, float(mean[at["Full", None]]), float(mean[at["Exposed", None]]), float(mean.max()),
                )
            )  # fmt: skip
    return found


def _decided(studied: Studied, undecided: tuple[tuple[str, str], ...]) -> Ints:
    pairs = list(studied.pairs.select("model", "other").unique(maintain_order=True).iter_rows())
    return np.array([at for at, each in enumerate(pairs) if each not in undecided])


# ---------------------------------------------------------------------------------------------------------------- report


def recognised(rows: list[Judged], loggers: list[str]) -> list[str]:
    """How often each logger was taken for which, over all fresh logs of the other half."""
    lines = [
        "| logger | " + " | ".join(f"taken for {each}" for each in loggers) + " |",
        "|---" * (len(loggers) + 1) + "|",
    ]
    for logger in loggers:
        taken = [each for row in rows if row.logger == logger and row.half == 1 for each in row.taken]
        lines.append(f"| {logger} | " + " | ".join(f"{taken.count(each):,}" for each in loggers) + " |")
    return lines


def predicted(rows: list[Judged]) -> list[str]:
    """Expected less realised τ, over all ways to choose candidates."""
    lines = [
        "| logs | users | expected τ | realised τ | mean difference | root mean square | of which Monte Carlo | within 2 errors |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for title, half, outside in (
        ("study's users", 0, False),
        ("other users", 1, False),
        ("other users, sparser than the study", 1, True),
    ):
        chosen = [row for row in rows if row.half == half and (row.sparsity >= OUTSIDE) == outside]
        for n in sorted({row.users for row in chosen}):
            these = [row for row in chosen if row.users == n]
            expected, real, error = (
                np.concatenate([getattr(row, name) for row in these]) for name in ("expected", "realised", "error")
            )
            apart = expected - real
            near = np.abs(apart) <= 2 * error + LEAST
            lines.append(
                f"| {title} | {n:,} | {expected.mean():.3f} | {real.mean():.3f} | {apart.mean():+.3f} "
                f"| {math.sqrt((apart**2).mean()):.3f} | {math.sqrt((error**2).mean()):.3f} | {near.mean():.0%} |"
            )
    return lines


def regrets(rows: list[Judged]) -> list[str]:
    """Realised τ of what was advised, beside what could have been done; logs of other users."""
    lines = [
        "| sparsity | users | advised | as stated | best expected | best in hindsight | regret | Full | Exposed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for sparsity in SPARSITIES:
        for n in sorted({row.users for row in rows if row.half == 1}):
            these = [row for row in rows if row.half == 1 and row.sparsity == sparsity and row.users == n]
            mean = {
                name: float(np.mean([getattr(row, name) for row in these]))
                for name in ("followed", "stated", "first", "best", "full", "exposed")
            }
            lines.append(
                f"| {sparsity:.0%} | {n:,} | {mean['followed']:.3f} | {mean['stated']:.3f} | {mean['first']:.3f} | {mean['best']:.3f} "
                f"| {mean['best'] - mean['followed']:.3f} | {mean['full']:.3f} | {mean['exposed']:.3f} |"
            )
    return lines


def in_short(name: str, rows: list[Judged]) -> str:
    """One line for a world, of users who were not in the study."""
    other = [row for row in rows if row.half == 1]
    inside, outside = ([row for row in other if (row.sparsity >= OUTSIDE) == beyond] for beyond in (False, True))
    draws, right = sum(len(row.taken) for row in other), sum(row.taken.count(row.logger) for row in other)
    apart, beyond = (
        math.sqrt(float(np.mean(np.concatenate([row.expected - row.realised for row in these]) ** 2)))
        for these in (inside, outside)
    )
    taus = []
    for these in (inside, outside):
        advised, stated, full, best = (
            float(np.mean([getattr(row, each) for row in these])) for each in ("followed", "stated", "full", "best")
        )
        taus.append(f"{advised:.3f} (as stated {stated:.3f}, Full {full:.3f}, best in hindsight {best:.3f})")
    return (
        f"- **{name}**: the logger is recognised in {right / draws:.1%} of {draws:,} logs; expected τ is off by {apart:.3f} "
        f"(root mean square over ways, loggers and sparsities), {beyond:.3f} beyond the study's sparsities; the advised way "
        f"has a τ of {taus[0]} on average, beyond the study's sparsities {taus[1]}."
    )


def page(judged: Mapping[str, list[Judged]]) -> str:
    loggers = [str(each) for each in grid().loggers]
    parts = [INTRODUCTION.format(models=len(MODELS), ways=grid().n_candidates)]
    parts.append("\n".join(in_short(name, rows) for name, rows in judged.items()))
    for name, rows in judged.items():
        draws = sum(len(row.taken) for row in rows if row.half == 1)
        right = sum(row.taken.count(row.logger) for row in rows if row.half == 1)
        parts += [
            f"## {name}",
            f"**Is the logger recognised?** In {right:,} of {draws:,} logs of users who were not in the study.",
            "\n".join(recognised(rows, loggers)),
            "**Is the expected τ what comes out?** Over all loggers, sparsities and ways to choose candidates.",
            "\n".join(predicted(rows)),
            "**What is lost by following the advice?** Realised τ, beside that stated; mean over loggers, logs of users not in the study.",
            "\n".join(regrets(rows)),
        ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    kept("").mkdir(parents=True, exist_ok=True)
    judged = {}
    for setting in settings():
        folder = kept(f"{setting.name}-study")
        study(
            setting.scores, setting.half(0), folder, grid=grid(), train=setting.train, seed=STUDY_SEED, resamples=200, threads=2
        )  # fmt: skip
        judged[setting.name] = judge(setting, Studied.read(folder))
    write_page(OUT, "advice", page(judged))
    print(OUT)


if __name__ == "__main__":
    main()
