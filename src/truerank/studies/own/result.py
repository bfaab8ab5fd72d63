"""What a study found, as a small file: settings and tables. It holds no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truerank.core.errors import InputError
from truerank.core.provenance import plain
from truerank.studies.own.study import Row, StudyTables
from truerank.studies.results import encoded, read_result, rounded
from truerank.studies.work import StudySize
from truerank.version import __version__

DIGITS = 9  # significant digits of what is kept: pages show up to seven


@dataclass(frozen=True, slots=True)
class StudyResult:
    """What a run of a study found, with all that its page says.

    `data` is by file what it was read from (SHA-256); `synthetic` says that a made world stood for data that it needs.
    """

    study: str
    size: StudySize
    seed: int
    synthetic: bool
    truerank: str
    data: Mapping[str, str]
    settings: Mapping[str, Any]
    tables: Mapping[str, tuple[Row, ...]]

    @property
    def file_name(self) -> str:
        return f"{self.study}.json"

    @property
    def command(self) -> str:
        """The command that makes it."""
        options = (
            " --data DIR" * bool(self.data),
            " --data synthetic" * self.synthetic,
            f" --size {self.size}" * (self.size is not StudySize.FULL),
            f" --seed {self.seed}" * (self.seed != 0),
        )
        return f"truerank study {self.study}{''.join(options)}"

    def encoded(self) -> bytes:
        return encoded(self)

    @classmethod
    def read(cls, path: Path) -> StudyResult:
        return read_result(path, cls, what="a study", again="truerank study NAME")


def study_result(
    study: str, found: StudyTables, *, size: StudySize, seed: int, synthetic: bool, data: Mapping[str, str]
) -> StudyResult:
    """Tables as they are kept: plain values, numbers in nine digits, none where they are not finite."""
    return StudyResult(
        study=study,
        size=size,
        seed=seed,
        synthetic=synthetic,
        truerank=__version__,
        data=dict(data),
        settings=_kept(found.settings),
        tables={name: tuple(_kept(row) for row in rows) for name, rows in found.tables.items()},
    )


def read_results(folder: Path) -> dict[str, StudyResult]:
    """All result files of a folder, by the name of their study."""
    found = {path.name: StudyResult.read(path) for path in sorted(folder.glob("*.json"))}
    if not found:
        raise InputError(f"{folder}: holds no result of a study (*.json).")
    for name, result in found.items():
        if name != result.file_name:
            raise InputError(f"{folder / name}: holds {result.file_name}. Give it that name.")
    return {result.study: result for result in found.values()}


def _kept(values: Row) -> dict[str, Any]:
    """Plain values; what is not finite is none.

    >>> _kept({"n": 3, "share": 2 / 3, "fixed": float("inf"), "name": "a"})
    {'n': 3, 'share': 0.666666667, 'fixed': None, 'name': 'a'}
    """
    return {str(name): _number(value) for name, value in values.items()}


def _number(value: Any) -> Any:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_number(each) for each in value]
    return rounded(value, DIGITS) if isinstance(value, float) else plain(value)
