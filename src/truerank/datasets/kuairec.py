"""KuaiRec 2.0 (Gao et al., CIKM 2022): a block of users and videos in which every pair was watched."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import ClassVar

import polars as pl

from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.record import record
from truerank.datasets.dataset import (
    Dataset,
    Part,
    PublishedSize,
    as_log,
    find,
    read_columns,
)
from truerank.io.files import read_table

RULE = ">2"
PLACES = ("", "data", "KuaiRec 2.0/data", "KuaiRec/data")
IDS: dict[str, type[pl.DataType]] = {"user_id": pl.Int64, "video_id": pl.Int64}
COLUMNS: dict[str, type[pl.DataType]] = {
    **IDS, "play_duration": pl.Float64, "video_duration": pl.Float64,
    "timestamp": pl.Float64, "watch_ratio": pl.Float64,
}  # fmt: skip


@record
class KuaiRec(Dataset):
    """`full` is the small matrix, `train` the big one; label = watch_ratio > 2, as the dataset's authors suggest.

    The compact Parquet files are a second source: the block with its 17,827 unobserved cells labelled 0, the positives
    of the big matrix (outside the block) alone, and `graded`, cells of the block with their ratio (no random sample).
    """

    positive: str = RULE

    name = "kuairec"
    summary = "short videos; a fully observed block, and the log around it"
    home = "https://kuairec.com (paper: doi:10.1145/3511808.3557220)"
    terms = "CC BY-SA 4.0"
    files = ("small_matrix.csv", "big_matrix.csv")
    published: ClassVar = {
        "full": PublishedSize(1_411, 3_327, 4_676_570, 217_175),
        "train": PublishedSize(7_176, 10_728, 12_530_806, 936_390),
    }

    def parts(self, folder: Path) -> dict[str, Part]:
        paths = [find(folder, name, under=PLACES) for name in self.files]
        present = {part: path for part, path in zip(("full", "train"), paths, strict=True) if path is not None}
        return {part: Part(partial(self._original, path)) for part, path in present.items()} or self._compact(folder)

    def features(self, folder: Path, *, until: int | None = None) -> dict[str, pl.DataFrame]:
        """`items`: the categories of each video, as a list; of the original files also `users` and `daily`.

        `users` has what user_features.csv says of each user. `daily` has how often each video was shown, played, liked
        and so on, on its last day in item_daily_features.csv that is not after `until` (20200905, say; by default any).
        Counts are decimal numbers, which a model with features cuts at their quartiles, as the sampler paper's code
        does; these two tables are its LightFM-F's features.
        """
        tables = {"items": self._categories(Path(folder))}
        users = find(Path(folder), "user_features.csv", under=PLACES)
        if users is not None:
            tables["users"] = _of_users(users)
        daily = find(Path(folder), "item_daily_features.csv", under=PLACES)
        if daily is not None:
            tables["daily"] = _of_days(daily, until)
        return tables

    def _categories(self, folder: Path) -> pl.DataFrame:
        path = find(folder, "item_categories.csv", "item_categories.parquet", under=PLACES)
        if path is None:
            raise InputError(f"{folder}: no item_categories.csv; expected it beside the matrices of {self.name}.")
        if path.suffix == ".parquet":
            table = read_columns(path, {"video_id": pl.Int64, "categories": pl.List})
        else:
            table = read_columns(path, {"video_id": pl.Int64, "feat": pl.String}).select(
                "item", categories=pl.col("feat").str.extract_all(r"\d+")
            )
        return table.with_columns(pl.col("item").cast(pl.Int64), pl.col("categories").cast(pl.List(pl.Int64)))

    def _original(self, path: Path) -> Log:
        # some rows of the small matrix have no time
        table = read_columns(path, COLUMNS).rename({"timestamp": "time"})
        rewards = ("watch_ratio", "play_duration", "video_duration")
        return as_log(table, source=path, value="watch_ratio", positive=self.positive, rewards=rewards)

    def _compact(self, folder: Path) -> dict[str, Part]:
        grid, big, graded = (
            find(folder, f"{name}.parquet")
            for name in ("small_matrix_binary_grid", "big_matrix_positives", "small_matrix_watch_ratio_sample")
        )
        if (grid or big) and not self.usual_rule:
            raise InputError(f"{folder}: the compact files hold labels for watch_ratio {RULE} only; found no ratios.")
        parts = {}
        if grid is not None:
            parts["full"] = Part(partial(_labelled, grid), PublishedSize(1_411, 3_327, 4_694_397, 217_175))
        if big is not None:
            parts["train"] = Part(partial(_positives, big), PublishedSize(None, None, 846_253, 846_253))
        if graded is not None:
            parts["graded"] = Part(partial(self._graded, graded), PublishedSize(None, None, 117_113))
        return parts

    def _graded(self, path: Path) -> Log:
        table = read_columns(path, {**IDS, "watch_ratio": pl.Float64})
        return as_log(table, source=path, value="watch_ratio", positive=self.positive, rewards=("watch_ratio",))


# numbers of user_features.csv that are counts; the others are categories
OF_USERS = ("follow_user_num", "fans_user_num", "friend_user_num", "register_days")
# counts of item_daily_features.csv that LightFM-F uses
OF_DAYS = (
    "show_cnt", "play_cnt", "play_duration", "complete_play_cnt", "valid_play_cnt", "like_cnt", "comment_cnt",
    "follow_cnt", "share_cnt", "download_cnt", "collect_cnt",
)  # fmt: skip


def _of_users(path: Path) -> pl.DataFrame:
    table = read_table(path)
    lost = [name for name in ("user_id", *OF_USERS) if name not in table.columns]
    if lost:
        raise InputError(f"{path}: no column {lost[0]}; it has {', '.join(table.columns)}.")
    return table.rename({"user_id": "user"}).with_columns(pl.col(OF_USERS).cast(pl.Float64))


def _of_days(path: Path, until: int | None) -> pl.DataFrame:
    kinds: dict[str, type[pl.DataType]] = {"video_id": pl.Int64, "date": pl.Int64, **dict.fromkeys(OF_DAYS, pl.Float64)}
    table = read_columns(path, kinds)
    if until is not None:
        table = table.filter(pl.col("date") <= until)
    if not len(table):
        raise InputError(f"{path}: no day until {until}; expected one like 20200905.")
    last = table.sort("item", "date", maintain_order=True).group_by("item", maintain_order=True).last()
    return last.select("item", *OF_DAYS)


def _labelled(path: Path) -> Log:
    return as_log(read_columns(path, {**IDS, "label": pl.Boolean}), source=path, value="label")


def _positives(path: Path) -> Log:
    table = read_columns(path, {**IDS, "n_views": pl.Int64})
    return as_log(table.with_columns(label=pl.lit(1)), source=path, value="label", rewards=("n_views",))
