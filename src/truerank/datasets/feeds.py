"""Feeds: KuaiRec and KuaiRand, short videos that were watched, and the impressions of Open Bandit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import polars as pl

from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.core.record import record
from truerank.datasets.dataset import (
    Columns,
    Dataset,
    Part,
    PublishedSize,
    Source,
    as_log,
    find,
    read_columns,
    table_of_labels,
    table_of_values,
)
from truerank.io.files import read_table

# KuaiRec 2.0 (Gao et al., CIKM 2022): a block of users and videos in which every pair was watched.

RULE = ">2"
KUAIREC_PLACES = ("", "data", "KuaiRec 2.0/data", "KuaiRec/data")
IDS: Columns = {"user_id": pl.Int64, "video_id": pl.Int64}
WATCHED: Columns = {
    **IDS, "watch_ratio": pl.Float64, "play_duration": pl.Float64, "video_duration": pl.Float64,
    "timestamp": pl.Float64,
}  # fmt: skip  # some rows of the small matrix have no time


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
    sources: ClassVar = {
        "full": (
            Source(("small_matrix.csv",), table_of_values(WATCHED, value="watch_ratio"), KUAIREC_PLACES),
            Source(
                ("small_matrix_binary_grid.parquet",),
                table_of_labels({**IDS, "label": pl.Boolean}),
                size=PublishedSize(1_411, 3_327, 4_694_397, 217_175),
            ),
        ),
        "train": (
            Source(("big_matrix.csv",), table_of_values(WATCHED, value="watch_ratio"), KUAIREC_PLACES),
            Source(
                ("big_matrix_positives.parquet",),
                table_of_labels({**IDS, "n_views": pl.Int64}),
                size=PublishedSize(None, None, 846_253, 846_253),
            ),
        ),
        "graded": (
            Source(
                ("small_matrix_watch_ratio_sample.parquet",),
                table_of_values({**IDS, "watch_ratio": pl.Float64}, value="watch_ratio"),
                size=PublishedSize(None, None, 117_113),
            ),
        ),
    }

    def features(self, folder: Path, *, until: int | None = None) -> dict[str, pl.DataFrame]:
        """`items`: the categories of each video, as a list; of the original files also `users` and `daily`.

        `users` has what user_features.csv says of each user. `daily` has how often each video was shown, played, liked
        and so on, on its last day in item_daily_features.csv that is not after `until` (20200905, say; by default any).
        Counts are decimal numbers, which a model with features cuts at their quartiles, as the sampler paper's code
        does; these two tables are its LightFM-F's features.
        """
        tables = {"items": self._categories(Path(folder))}
        users = find(Path(folder), "user_features.csv", under=KUAIREC_PLACES)
        if users is not None:
            tables["users"] = _of_users(users)
        daily = find(Path(folder), "item_daily_features.csv", under=KUAIREC_PLACES)
        if daily is not None:
            tables["daily"] = _of_days(daily, until)
        return tables

    def _categories(self, folder: Path) -> pl.DataFrame:
        path = find(folder, "item_categories.csv", "item_categories.parquet", under=KUAIREC_PLACES)
        if path is None:
            raise InputError(f"{folder}: no item_categories.csv; expected it beside the matrices of {self.name}.")
        if path.suffix == ".parquet":
            table = read_columns(path, {"video_id": pl.Int64, "categories": pl.List})
        else:
            table = read_columns(path, {"video_id": pl.Int64, "feat": pl.String}).select(
                "item", categories=pl.col("feat").str.extract_all(r"\d+")
            )
        return table.with_columns(pl.col("item").cast(pl.Int64), pl.col("categories").cast(pl.List(pl.Int64)))


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
    kinds: Columns = {"video_id": pl.Int64, "date": pl.Int64, **dict.fromkeys(OF_DAYS, pl.Float64)}
    table = read_columns(path, kinds)
    if until is not None:
        table = table.filter(pl.col("date") <= until)
    if not len(table):
        raise InputError(f"{path}: no day until {until}; expected one like 20200905.")
    last = table.sort("item", "date", maintain_order=True).group_by("item", maintain_order=True).last()
    return last.select("item", *OF_DAYS)


# KuaiRand (Gao et al., CIKM 2022): feeds in which some videos were replaced by random ones.

SIGNALS = (
    "is_click", "is_like", "is_follow", "is_comment", "is_forward", "is_hate", "long_view",
    "play_time_ms", "duration_ms",
)  # fmt: skip
VERSIONS = {
    "27k": {"train": PublishedSize(27_285, 32_038_725, 322_278_385), "random": PublishedSize(27_285, 7_583, 1_186_059)},
    "1k": {"train": PublishedSize(1_000, 4_369_953, 11_713_045), "random": PublishedSize(1_000, 7_388, 43_028)},
    "pure": {"train": PublishedSize(27_285, 7_551, 1_436_609), "random": PublishedSize(27_285, 7_583, 1_186_059)},
}
FILE_NAME = re.compile(r"log_(standard|random)_.*_(27k|1k|pure)(_part\d+)?\.csv")


@record
class KuaiRand(Dataset):
    """`train` is every standard log together, `random` the log of random videos, in the versions 1K, Pure and 27K.

    The label is the click by default; `signal` names another of the feedback signals, which all stay as rewards.
    The same pair can be shown several times. The 27K log is too large for the memory of most machines: load
    `parts=["random"]`.
    """

    signal: str = "is_click"

    name = "kuairand"
    summary = "short videos; standard feeds, and videos put into them at random"
    home = "https://kuairand.com (doi:10.5281/zenodo.10439422)"
    terms = "CC BY-SA 4.0"
    files = ("log_standard_*.csv", "log_random_*.csv")
    published: ClassVar = {
        f"{part} ({version})": counts for version, both in VERSIONS.items() for part, counts in both.items()
    }

    def parts(self, folder: Path) -> dict[str, Part]:
        if self.signal not in SIGNALS:
            raise InputError(f"signal {self.signal!r} is not known; expected one of {', '.join(SIGNALS)}.")
        logs: dict[tuple[str, str], list[Path]] = {}
        for path in sorted([*folder.glob("*.csv"), *folder.glob("data/*.csv")]):
            if match := FILE_NAME.fullmatch(path.name):
                logs.setdefault((match[2], match[1]), []).append(path)
        versions = sorted({version for version, _ in logs})
        if len(versions) > 1:
            raise InputError(
                f"{folder}: versions {', '.join(versions)} together; expected one. Name the folder of one."
            )
        return {
            part: Part(partial(self._read, logs[version, kind]), VERSIONS[version][part])
            for version in versions
            for part, kind in (("train", "standard"), ("random", "random"))
            if (version, kind) in logs
        }

    def _read(self, paths: Sequence[Path]) -> Log:
        columns: Columns = {"user_id": pl.Int64, "video_id": pl.Int64, "time_ms": pl.Int64}
        columns |= dict.fromkeys(SIGNALS, pl.Float64)
        table = pl.concat([read_columns(path, columns) for path in paths])
        return as_log(table, source=paths[0], value=self.signal, positive=self.positive, rewards=SIGNALS)


# Open Bandit Dataset (Saito et al., NeurIPS 2021): impressions of two policies with their true propensities.

POLICIES, CAMPAIGNS = ("random", "bts"), {"all": 80, "men": 34, "women": 46}
BANDIT_PLACES = ("", "open_bandit_dataset", "obd")
CLICKED: Columns = {
    "timestamp": pl.String, "item_id": pl.Int64, "position": pl.Int64, "click": pl.Int64,
    "propensity_score": pl.Float64,
}  # fmt: skip
SAMPLE = 10_000
ROWS = {"random all": 1_374_327, "random men": 452_949, "random women": 864_585}


@record
class OpenBandit(Dataset):
    """One part per policy and campaign, as `random all` or `bts men`; label = click, with position and propensity.

    There are no user ids: each impression is a unit of its own, numbered in the order of the file. The authors' sample
    has 10,000 rows per part and only 38 to 69 clicks: it tests the path and has no statistical power.
    """

    positive: str = ">0"

    name = "open-bandit"
    summary = "impressions of fashion items by a random and a Thompson-sampling policy"
    home = "https://research.zozo.com/data.html"
    terms = "CC BY 4.0"
    files = ("random/all/all.csv, ... bts/women/women.csv",)
    published: ClassVar = {
        f"{policy} {campaign}": PublishedSize(ROWS.get(f"{policy} {campaign}"), items, ROWS.get(f"{policy} {campaign}"))
        for policy in POLICIES
        for campaign, items in CAMPAIGNS.items()
    }

    def parts(self, folder: Path) -> dict[str, Part]:
        parts = {}
        for part in self.published:
            policy, campaign = part.split()
            names = (f"{policy}/{campaign}/{campaign}.csv", f"{policy}/{campaign}.csv", f"{policy}_{campaign}.parquet")
            path = find(folder, *names, under=BANDIT_PLACES)
            if path is not None:
                is_sample = path.stat().st_size < 50e6  # the sample is as published as the whole
                size = PublishedSize(SAMPLE, CAMPAIGNS[campaign], SAMPLE) if is_sample else None
                parts[part] = Part(partial(self._read, path), size)
        return parts

    def features(self, folder: Path) -> dict[str, pl.DataFrame]:
        """The features of the items of each campaign, by its name."""
        tables = {}
        for campaign in CAMPAIGNS:
            names = [f"{policy}/{campaign}/item_context.csv" for policy in POLICIES]
            path = find(Path(folder), *names, f"item_context_{campaign}.parquet", under=BANDIT_PLACES)
            if path is not None:
                table = read_table(path).rename({"item_id": "item"})
                tables[campaign] = table.select(name for name in table.columns if name)
        if not tables:
            raise InputError(f"{folder}: no item_context.csv; expected one beside the log of a campaign.")
        return tables

    def _read(self, path: Path) -> Log:
        table = read_columns(path, CLICKED).with_row_index("user")
        if table["time"].dtype == pl.String:
            utc = pl.col("time").str.to_datetime(time_zone="UTC", strict=False)
            table = table.with_columns(time=utc.dt.replace_time_zone(None))
        return as_log(table, source=path, value="click", positive=self.positive)
