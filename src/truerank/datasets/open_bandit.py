"""Open Bandit Dataset (Saito et al., NeurIPS 2021): impressions of two policies with their true propensities."""

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

POLICIES, CAMPAIGNS = ("random", "bts"), {"all": 80, "men": 34, "women": 46}
PLACES = ("", "open_bandit_dataset", "obd")
COLUMNS: dict[str, type[pl.DataType]] = {
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
            path = find(folder, *names, under=PLACES)
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
            path = find(Path(folder), *names, f"item_context_{campaign}.parquet", under=PLACES)
            if path is not None:
                table = read_table(path).rename({"item_id": "item"})
                tables[campaign] = table.select(name for name in table.columns if name)
        if not tables:
            raise InputError(f"{folder}: no item_context.csv; expected one beside the log of a campaign.")
        return tables

    def _read(self, path: Path) -> Log:
        table = read_columns(path, COLUMNS).with_row_index("user")
        time = table["timestamp"]
        if time.dtype == pl.String:
            time = time.str.to_datetime(time_zone="UTC", strict=False).dt.replace_time_zone(None)
        table = table.drop("timestamp").with_columns(time=time)
        return as_log(
            table.rename({"propensity_score": "propensity"}), source=path, value="click", positive=self.positive
        )
