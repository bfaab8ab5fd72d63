"""How far `corrected` and others are from mean recall: writes docs/results/mean-recall.md, and goes on where it was stopped.

`python scripts/mean_recall.py --draws 500 --keep FOLDER` draws what FOLDER does not hold yet, block by block. Worlds:
the fully observed blocks of KuaiRec and Jester (TRUERANK_DATA), and three made here, in one of which 30 % of the users
like nothing, in another recall rises with the number of relevant items. Seeds were fixed before the first draw.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_matrix

import kuairec
from result_pages import write_page
from truerank.core.arrays import Floats, Ints
from truerank.core.ids import Ids
from truerank.core.log import Log
from truerank.core.ranking import Ranks
from truerank.data.growing import Blocks
from truerank.data.read import read
from truerank.estimators.judged.corrected import Corrected
from truerank.estimators.judged.published import Published
from truerank.estimators.judged.shrunk import Shrunk
from truerank.estimators.judged.weighted import WeightedUsers
from truerank.models.matrix import positives
from truerank.report.reliability_charts import TYPEFACE, PictureFormat, altair, picture
from truerank.report.reliability_layout import COLOURS
from truerank.studies.coverage import ObservedWorld
from truerank.studies.mean_recall import SCHEMA, MeanRecallDraws, mean_recall_table

SEED, BLOCK = 20261117, 5
OUT = Path("docs/results/mean-recall.md")
PICTURE, WHO = Path("docs/figures/mean-recall.svg"), "the picture of docs/mean-recall.md"
SHOWN = ("popularity", "neighbours", "svd")
ESTIMATORS = (Published(), Corrected(), WeightedUsers(), Shrunk())
Labels = npt.NDArray[np.bool_]


def ranks_of(scores: Floats, rng: np.random.Generator) -> Ranks:
    """Ranks of every cell; equal scores in a drawn order, so that one draw has whole ranks."""
    order = np.lexsort((rng.random(scores.shape), -scores), axis=1)
    place = np.empty(scores.shape)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(float(scores.shape[1])), scores.shape), axis=1)
    size = np.full(len(scores), float(scores.shape[1]))
    return Ranks(place.ravel(), np.zeros(scores.size), size, size, np.ones(len(scores), dtype=bool))


def world_of(labels: Labels, scores: Mapping[str, npt.NDArray[Any]], *, seed: int) -> ObservedWorld:
    rng = np.random.default_rng(seed)
    n_users, n_items = labels.shape
    user, item = (axis.ravel() for axis in np.indices(labels.shape))
    log = Log(
        Ids.of(np.arange(n_users)), Ids.of(np.arange(n_items)), user, item, {"label": labels.ravel().astype(np.float64)}
    )
    return ObservedWorld(
        log, {name: ranks_of(np.broadcast_to(each, labels.shape), rng) for name, each in scores.items()}
    )


@dataclass(frozen=True)
class Block:
    """The block with what its users liked outside it."""

    labels: Labels
    train: Log
    matrix: csr_matrix
    row: Ints
    column: Ints
    count: Floats

    @classmethod
    def read(cls) -> Block:
        folder = kuairec.data_folder() / "kuairec"
        grid = pl.read_parquet(folder / "small_matrix_binary_grid.parquet").sort("user_id", "video_id")
        users, items = (grid[name].unique().sort().to_numpy() for name in ("user_id", "video_id"))
        liked = pl.read_parquet(folder / "big_matrix_positives.parquet").select("user_id", "video_id", label=pl.lit(1))
        train = read(liked, columns=kuairec.COLUMNS)
        matrix = positives(train)
        row, column = train.users.locate(Ids.of(users)), train.items.locate(Ids.of(items))
        labels = grid["label"].to_numpy().reshape(len(users), len(items))
        return cls(labels, train, matrix, row, column, np.asarray(matrix.sum(axis=0)).ravel())

    @property
    def popular(self) -> Floats:
        return np.where(self.column >= 0, self.count[self.column], 0.0)

    def laid(self, found: Floats) -> Floats:
        """Scores of known users and items as scores of the whole block."""
        scores = np.zeros(self.labels.shape)
        scores[np.ix_(self.row >= 0, self.column >= 0)] = found
        return scores

    def near(self, power: float) -> Floats:
        """Items that those who liked the same have liked, by co-occurrence over a power of how often these are liked."""
        row, column = self.row[self.row >= 0], self.column[self.column >= 0]
        often = np.maximum(self.count, 1.0)
        together = self.matrix.T @ self.matrix.multiply(1 / often**power).tocsr()
        return self.laid((self.matrix[row] @ together[:, column]).toarray() / np.sqrt(often[column]))


def kuairec_world() -> ObservedWorld:
    """Popularity, a truncated SVD, a random order, and one that shows what few watch, of the 1,411 x 3,327 block."""
    block = Block.read()
    row, column = block.row[block.row >= 0], block.column[block.column >= 0]
    svd = kuairec.svd(block.train)
    scores = {
        "popularity": block.popular[None],
        "svd": block.laid(svd.user[row] @ svd.item[column].T),
        "contrarian": block.near(1.0) + 1e-9 * block.popular,
        "random": np.random.default_rng(SEED).random(block.labels.shape),
    }
    return world_of(block.labels, scores, seed=SEED)


def neighbours_world() -> ObservedWorld:
    """Neighbours of items, by co-occurrence alone, of the same block."""
    block = Block.read()
    return world_of(block.labels, {"neighbours": block.near(0.0) + 1e-9 * block.popular}, seed=SEED)


def jester_world() -> ObservedWorld:
    """2,000 users of Jester (joke liked: rating above 5), scored by what the first 2,000 say, or by 20 of their own."""
    table = pl.read_parquet(kuairec.data_folder() / "jester" / "ratings_fully_observed.parquet")
    rating = table.sort("user_id", "item_id")["rating"].to_numpy().reshape(-1, 100)
    train, own = rating[:2000], rating[2000:4000]
    mean, history = train.mean(axis=0), np.arange(0, 100, 5)
    right = np.linalg.svd(train - mean, full_matrices=False)[2][:8]
    taste = (own[:, history] - mean[history]) @ np.linalg.pinv(right[:, history])
    scores = {
        "popularity": (train > 5).mean(axis=0)[None],
        "svd": mean + taste @ right,
        "random": np.random.default_rng(SEED).random(own.shape),
    }
    return world_of(own > 5, scores, seed=SEED)


def made_world(kind: str) -> ObservedWorld:
    """1,500 users x 1,000 items: logistic in popularity, taste and activity."""
    rng = np.random.default_rng(SEED)
    n_users, n_items = 1500, 1000
    popular, active = rng.gumbel(size=n_items), rng.normal(size=n_users)
    appeal = popular + 0.5 * rng.normal(size=(n_users, 4)) @ rng.normal(size=(4, n_items))
    if kind == "rising":  # who likes much likes what is on top
        appeal = 1.2 * appeal * np.exp(0.45 * active)[:, None]
        logit = -6.0 + 0.2 * active[:, None] + appeal
    else:
        logit = -4.2 + active[:, None] + appeal
    labels = rng.random(logit.shape) < 1 / (1 + np.exp(-logit))
    if kind == "like nothing":
        labels[rng.random(n_users) < 0.3] = False
    scores = {
        "popularity": (popular + 0.3 * rng.normal(size=n_items))[None],
        "personal": appeal + 0.8 * rng.normal(size=appeal.shape),
        "random": rng.random(appeal.shape),
    }
    return world_of(labels, scores, seed=SEED)


WORLDS: dict[str, tuple[Callable[[], ObservedWorld], tuple[int, ...], tuple[int, ...]]] = {
    "KuaiRec": (kuairec_world, (10, 20, 80), (5, 50, 500)),
    "KuaiRec, neighbours": (neighbours_world, (10, 20, 80), (5, 50, 500)),
    "Jester": (jester_world, (10, 20), (5, 20)),
    "made": (lambda: made_world("plain"), (10, 20, 80), (5, 50, 500)),
    "30 % like nothing": (lambda: made_world("like nothing"), (10, 20, 80), (5, 50, 500)),
    "recall rises": (lambda: made_world("rising"), (10, 20, 80), (5, 50, 500)),
}


def drawn(name: str, *, draws: int, keep: Path) -> pl.DataFrame:
    """All draws of a world; those that are kept already are read."""
    make, judged, cutoffs = WORLDS[name]
    blocks = Blocks(f"mean recall 1, seed {SEED}: {name}, {judged}, {cutoffs}".encode(), "Start again to go on.")
    path = [
        keep / f"{name.replace(' ', '-').replace(',', '').replace('%', 'percent')}.{first}.block"
        for first in range(0, draws, BLOCK)
    ]
    if not all(each.exists() for each in path):
        study = MeanRecallDraws(make(), judged, cutoffs, SEED, ESTIMATORS)
        truths = study.truths()
        for number, each in enumerate(path):
            if not each.exists():
                runs = range(number * BLOCK, (number + 1) * BLOCK)
                blocks.write(pl.concat([study.run(run, truths) for run in runs]), each)
                print(name, runs[-1] + 1, flush=True)
    return pl.concat([blocks.read(each) for each in path]) if path else pl.DataFrame(schema=SCHEMA)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--world", choices=list(WORLDS), action="append")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    asked.keep.mkdir(parents=True, exist_ok=True)
    every = {name: drawn(name, draws=asked.draws, keep=asked.keep) for name in asked.world or WORLDS}
    pictured = [every[name] for name in ("KuaiRec", "KuaiRec, neighbours") if name in every]
    if pictured:
        PICTURE.write_bytes(picture(chart(pl.concat(pictured)), PictureFormat.SVG, who=WHO))
    tables = {name: mean_recall_table(each) for name, each in every.items()}
    write_page(asked.out, "mean-recall", page(tables))


def chart(draws: pl.DataFrame) -> Any:
    """Where 95 % of the estimates of Recall@50 lie, over the truth, by judged items per user."""
    library = altair(WHO)
    share = pl.col("value") / pl.col("truth")
    rows = (
        draws.filter((pl.col("k") == 50) & pl.col("estimator").is_in(["published", "corrected"]))
        .filter(pl.col("what").is_in(SHOWN))
        .group_by("what", "judged", "estimator")
        .agg(mean=share.mean(), low=share.quantile(0.025), high=share.quantile(0.975))
        .sort("what", "judged", "estimator")
    )
    names, colours = ["published", "corrected"], [COLOURS[1], COLOURS[0]]
    base = library.Chart().encode(
        y=library.Y("judged:O", title="judged items per user", sort="ascending"),
        yOffset=library.YOffset("estimator:N", sort=names),
        color=library.Color("estimator:N", title=None, sort=names, scale=library.Scale(domain=names, range=colours)),
    )
    x = library.X("low:Q", title="estimate / true mean recall", axis=library.Axis(format="%", gridColor="#eeeeee"))
    bars = base.mark_rule(strokeWidth=3).encode(x=x, x2="high:Q")
    points = base.mark_point(filled=True, size=70, opacity=1).encode(x="mean:Q")
    truth = library.Chart().mark_rule(strokeDash=[4, 3], color="#555555").encode(x=library.datum(1.0))
    layered = library.layer(bars, points, truth).properties(width=190, height=150)
    return layered.facet(
        data=library.Data(values=rows.to_dicts()), column=library.Column("what:N", title=None, sort=list(SHOWN))
    ).properties(config=library.Config(font=TYPEFACE, view=library.ViewConfig(stroke="#bbbbbb")))


def page(tables: dict[str, pl.DataFrame]) -> str:
    lines = [
        "# Mean recall from few judged items, measured",
        "",
        "Written by `python scripts/mean_recall.py --draws N --keep FOLDER`. Users are redrawn and N̄ items of each judged "
        "uniformly, in every draw; the truth is the mean recall over all users with a relevant item. *Error* is the root "
        "mean squared error over that of the published mean (below 1 is better), *bias* a share of the truth, *covered* how "
        "often the 95 % interval holds the truth, *warned* how often the tool takes verdicts away.",
    ]
    for name, table in tables.items():
        values = table.filter(~pl.col("what").str.contains(" - "))
        draws = min(values["draws"].to_list(), default=0)
        lines += ["", f"## {name}, {draws} draws", "", "<details><summary>all cells</summary>", ""]
        lines += [
            "| model | K | N̄ | truth | published bias | corrected error | bias | covered | warned | weighted error | shrunk error |"
        ]
        lines += ["|---|---|---|---|---|---|---|---|---|---|---|"]
        for (what, k, n), part in sorted(values.partition_by("what", "k", "judged", as_dict=True).items()):
            by = {row["estimator"]: row for row in part.iter_rows(named=True)}
            one = by["corrected"]
            lines.append(
                f"| {what} | {k} | {n} | {one['truth']:.4f} | {one['usual_bias']:+.1%} | {one['error']:.2f} | {one['bias']:+.1%} | "
                f"{one['covered']:.0%} | {one['distrusted']:.0%} | {by['weighted']['error']:.2f} | {by['shrunk']['error']:.2f} |"
            )
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
