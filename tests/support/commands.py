"""Every command that writes, small, with what a look at its folder may find: the old, the new, or a refusal."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from small_study import small_scores, small_train, small_world

from truerank.core.errors import InputError
from truerank.io.atomic_write import check_folder, read_marker
from truerank.io.files import write
from truerank.metrics.listwise import NDCG
from truerank.ranking.scores.files import write_scores
from truerank.reliability import Grid
from truerank.reliability.run import study

WORLD = "simulate world --out made --n-users 30 --n-items 20 --clusters 2 --shown 4 --judged 3"
FEED = "simulate feed --out made --n-sessions 20 --kinds 2 --n-items 20 --pool 6 --n-candidates 4 --length 3 --days 2"
EVALUATE = "evaluate labels.parquet --exposure random --scores m0.npz --scores m1.npz --metric Recall@3 --quiet"
OFFPOLICY = "offpolicy log.parquet --target new=new.parquet --position exp:0.9 --quiet"
STUDY = (
    "study reliability world.parquet --train train.parquet --scores m0.npz --scores m1.npz --sparsities 0,0.5 "
    "--sizes 1 --samplers Random --loggers uniform --metric nDCG@10 --bootstrap 5 --threads 1 --out made"
)
ALLOCATE = (
    "plan exposure --allocate --scores m0.npz --scores m1.npz --exclude train.parquet --per-user 3 "
    "--metric Precision@3 --out made --quiet"
)
WATCH = (
    "watch timed.parquet --exposure full --scores good.csv --scores poor.csv --metric Precision@1 --require good>poor "
    "--planned 200 --quiet"
)
SPLIT = "split ratings.csv --out made --quiet"


@dataclass(frozen=True, slots=True)
class Writing:
    """A command, what it makes (a folder or a file called `made`), and what lies there before."""

    name: str
    words: tuple[str, ...]
    before: tuple[str, ...] | None = None  # the command that made what is there
    empty: bool = False  # there is an empty folder
    grows: bool = False  # stopped, the same call goes on
    heavy: bool = False  # takes seconds: only now and then, and not every call of it

    def prepare(self, inputs: Path, place: Path) -> Path:
        """A folder with what the command reads, and nothing else."""
        shutil.copytree(inputs, place, copy_function=os.link)
        if self.empty:
            (place / "made").mkdir()
        return place


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


COMMANDS = (
    Writing("world", words(WORLD)),
    Writing("world again", words(f"{WORLD} --seed 2 --force"), before=words(f"{WORLD} --seed 1")),
    Writing("world in an empty folder", words(WORLD), empty=True),
    Writing("feed", words(FEED)),
    Writing("feed again", words(f"{FEED} --seed 2 --force"), before=words(f"{FEED} --seed 1")),
    Writing("results", words(f"{EVALUATE} --save made")),
    Writing("results again", words(f"{EVALUATE} --metric Recall@5 --save made --force"),
            before=words(f"{EVALUATE} --save made")),
    *(Writing(f"{what.split()[0]} as {form}", words(f"{what} --format {form} --out made"))
      for what in (EVALUATE, OFFPOLICY) for form in ("table", "json", "csv", "markdown", "latex")),
    Writing("one file again", words(f"{EVALUATE} --metric Recall@5 --format csv --out made"),
            before=words(f"{EVALUATE} --format csv --out made")),
    Writing("units", words(f"{EVALUATE} --units made.parquet --out made")),
    Writing("units of offpolicy", words(f"{OFFPOLICY} --units made.parquet --out made.json")),
    Writing("results of offpolicy", words(f"{OFFPOLICY} --save made")),
    Writing("report", words(f"{EVALUATE} --report made.html --out made"), heavy=True),
    Writing("report of offpolicy", words(f"{OFFPOLICY} --report made.html --out made"), heavy=True),
    Writing("report of a study", words("report studied --out made.html"), heavy=True),
    Writing("plan",
            words("plan exposure --difference 0.1 --metric Precision@10 --n-items 100 --value 0.2 --out made.json")),
    Writing("plan of sessions",
            words("plan sessions --difference 0.1 --mean-reward 0.2 --effective 0.4 --out made.json")),
    Writing("design", words(ALLOCATE)),
    Writing("design again", words(f"{ALLOCATE} --seed 2 --force"), before=words(f"{ALLOCATE} --seed 1")),
    Writing("design in an empty folder", words(ALLOCATE), empty=True),
    Writing("looks", words(f"{WATCH} --out made.json")),
    Writing("report of looks", words(f"{WATCH} --report made.html --out made"), heavy=True),
    Writing("report of a plan", words("plan exposure --difference 0.1 --metric Precision@10 --n-items 100 --value 0.2 "
                                      "--report made.html --out made"), heavy=True),
    Writing("report of a plan of sessions", words("plan sessions --difference 0.1 --mean-reward 0.2 --effective 0.4 "
                                                  "--report made.html --out made"), heavy=True),
    Writing("test set", words("intervene labels.parquet --strategy full --out made.parquet --quiet")),
    Writing("parts", words(SPLIT)),
    Writing("folds instead of parts", words(f"{SPLIT} --by random --folds 2 --force"), before=words(SPLIT)),
    Writing("model", words("train item-knn train.parquet --out made.npz --quiet")),
    Writing("description", words("advise labels.parquet --out made.json --quiet")),
    Writing("advice", words("advise labels.parquet --study studied --n-items 30 --out made.json --quiet")),
    Writing("figures", words("study figures studied --out made"), heavy=True),
    Writing("study", words(STUDY), grows=True),
    Writing("demo", words("demo --out made --quiet"), heavy=True),
)  # fmt: skip


def make_inputs(folder: Path) -> Path:
    """Labels, a fully known world, training data, two models, a ranked log with a target, ratings, a finished study."""
    folder.mkdir()
    world, train = small_world(), small_train()
    write(world, folder / "world.parquet")
    write(train, folder / "train.parquet")
    models = small_scores(world, n_models=2)
    for name, each in models.items():
        write_scores(each, folder / f"{name}.npz")
    judged = np.sort(np.random.default_rng(0).choice(len(world), 100, replace=False))
    write(world.select(judged), folder / "labels.parquet")
    user, item = (each.ravel() for each in np.indices((200, 4)))
    pl.DataFrame({"user": user, "item": item, "label": item == 0, "time": user}).write_parquet(folder / "timed.parquet")
    for name, every in (("good", 10), ("poor", 1)):  # the first item, but for every so many users
        first = np.where(user % every == 0, 1, 0)
        pl.DataFrame({"user": user, "item": item, "score": (item == first) - item / 9}).write_csv(
            folder / f"{name}.csv"
        )
    session, position = np.repeat(np.arange(20), 5), np.tile(np.arange(1, 6), 20)
    shown = pl.DataFrame({"session": session, "item": (session * 7 + position) % 30})
    reward = np.random.default_rng(1).integers(0, 2, len(session))
    shown.with_columns(position=position, reward=reward).write_parquet(folder / "log.parquet")
    shown.with_columns(rank=6 - position).write_parquet(folder / "new.parquet")
    rows = [f"{100 + at % 7},i{at % 11},{1 + at % 5},{at}" for at in range(40)]
    (folder / "ratings.csv").write_text("\n".join(["user,item,rating,time", *rows]) + "\n")
    grid = Grid.from_names(samplers=["Random"], sizes=(1,), sparsities=(0.5,), loggers=["uniform"], metrics=[NDCG(10)])
    for name in ("offline", "online"):
        (folder / f"{name}.csv").write_text("day,value\n1,0.1\n2,0.3\n3,0.2\n4,0.4\n")
    study(models, world, folder / "studied", grid=grid, train=train, resamples=5, threads=1)
    return folder


def made(place: Path, inputs: Path) -> dict[str, bytes]:
    """What a command has left beside its inputs, by name; seconds are no result."""
    known = {each.relative_to(inputs).as_posix() for each in inputs.rglob("*")}
    found = {}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if path.is_file() and name not in known:
            found[name] = _without_seconds(path)
    return found


def visible(files: dict[str, bytes]) -> dict[str, bytes]:
    """Without hidden names: what a killed command has left stays there, and the next one does not touch it."""
    return {name: content for name, content in files.items() if "/." not in f"/{name}"}


def put_back(place: Path) -> bool:
    """Do what the message after a kill between two renames asks for: rename the earlier folder back."""
    left = [] if (place / "made").exists() else list(place.glob(".made.*.old"))
    for folder in left:
        folder.rename(place / "made")
    return bool(left)


def _without_seconds(path: Path) -> bytes:
    return path.read_bytes()


def readable(place: Path) -> bool:
    """Whether the folder `made` looks whole to a reader."""
    try:
        marker = read_marker(place / "made")
        if marker is not None:
            check_folder(place / "made", kind=marker.kind, expected="what was made")
        return marker is not None
    except InputError:
        return False


def copy(place: Path, into: Path) -> Path:
    """The same files again, for a case of its own."""
    shutil.copytree(place, into, copy_function=shutil.copy2)
    return into
