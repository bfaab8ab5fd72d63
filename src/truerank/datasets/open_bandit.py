"""Open Bandit Dataset (Saito et al., NeurIPS 2021): impressions of two policies with their true propensities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import ClassVar

import polars as pl

from truerank.core.errors import InputError
from truerank.core.log import Log
from truerank.io.dataset import FolderDataset, Part, PublishedSize, as_log, find, read_columns
from truerank.io.files import read_table

POLICIES, CAMPAIGNS = ("random", "bts"), {"all": 80, "men": 34, "women": 46}
PLACES = ("", "open_bandit_dataset", "obd")
COLUMNS: dict[str, type[pl.DataType]] = {
    "timestamp": pl.String, "item_id": pl.Int64, "position": pl.Int64, "click": pl.Int64,
    "propensity_score": pl.Float64,
}  # fmt: skip
SAMPLE = 10_000
ROWS = {"random all": 1_374_327, "random men": 452_949, "random women": 864_585}


@dataclass(frozen=True, slots=True)
class OpenBandit(FolderDataset):
    """One part per policy and campaign, as `random all` or `bts men`; label = click, with position and propensity.

    There are no user ids: each impression is a unit of its own, numbered in the order of the file. The authors' sample
    has 10,000 rows per part and only 38 to 69 clicks: it tests the path and has no statistical power.
    """

    positive: str = ">0"

    name: ClassVar[str] = "open-bandit"
    about: ClassVar[str] = "impressions of fashion items by a random and a Thompson-sampling policy"
    home: ClassVar[str] = "https://research.zozo.com/data.html"
    terms: ClassVar[str] = "CC BY 4.0"
    files: ClassVar[tuple[str, ...]] = ("random/all/all.csv, ... bts/women/women.csv",)
    published: ClassVar[Mapping[str, PublishedSize]] = {
        f"{policy} {campaign}": PublishedSize(ROWS.get(f"{policy} {campaign}"), items, ROWS.get(f"{policy} {campaign}"))
        for policy in POLICIES
        for campaign, items in CAMPAIGNS.items()
    }

    def parts_in(self, folder: Path) -> dict[str, Part]:
        paths = {}
        for policy, campaign in product(POLICIES, CAMPAIGNS):
            names = (f"{policy}/{campaign}/{campaign}.csv", f"{policy}/{campaign}.csv", f"{policy}_{campaign}.parquet")
            path = _first(folder, names)
            if path is not None:
                part = f"{policy} {campaign}"
                paths[part] = Part(partial(self._read, path), self._counts(path, part))
        return paths

    def features(self, folder: Path) -> dict[str, pl.DataFrame]:
        """The features of the items of each campaign, by its name."""
        paths = {}
        for campaign in CAMPAIGNS:
            names = (
                *(f"{policy}/{campaign}/item_context.csv" for policy in POLICIES),
                f"item_context_{campaign}.parquet",
            )
            path = _first(Path(folder), names)
            if path is not None:
                table = read_table(path).rename({"item_id": "item"})
                paths[campaign] = table.select(name for name in table.columns if name)
        if not paths:
            raise InputError(f"{folder}: no item_context.csv; expected one beside the log of a campaign.")
        return paths

    def _counts(self, path: Path, part: str) -> PublishedSize:
        """The sample is as published as the whole: a file of its size is one."""
        counts = self.published[part]
        small = path.stat().st_size < 50e6
        return PublishedSize(SAMPLE, counts.items, SAMPLE) if small else counts

    def _read(self, path: Path) -> Log:
        table = read_columns(path, COLUMNS).with_row_index("user")
        time = table["timestamp"]
        if time.dtype == pl.String:
            time = time.str.to_datetime(time_zone="UTC", strict=False).dt.replace_time_zone(None)
        table = table.drop("timestamp").with_columns(time=time)
        table = table.rename({"item_id": "item", "propensity_score": "propensity"})
        return as_log(table, source=path, value="click", positive=self.positive)


def _first(folder: Path, names: Iterable[str]) -> Path | None:
    """The first of these files that a folder has."""
    return next((path for name in names if (path := find(folder, name, under=PLACES)) is not None), None)
