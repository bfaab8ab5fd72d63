"""KuaiRand (Gao et al., CIKM 2022): feeds in which some videos were replaced by random ones."""

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
    Dataset,
    Part,
    PublishedSize,
    as_log,
    read_columns,
)

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
        columns: dict[str, type[pl.DataType]] = {"user_id": pl.Int64, "video_id": pl.Int64, "time_ms": pl.Int64}
        columns |= dict.fromkeys(SIGNALS, pl.Float64)
        table = pl.concat([read_columns(path, columns) for path in paths])
        table = table.rename({"time_ms": "time"})
        return as_log(table, source=paths[0], value=self.signal, positive=self.positive, rewards=SIGNALS)
