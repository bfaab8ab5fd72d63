"""Which files a path names: a file, the parts of a folder or of Hive partitions, or what a pattern matches."""

from __future__ import annotations

import glob
from pathlib import Path
from urllib.parse import unquote

from truerank.core.errors import InputError
from truerank.io.stores import is_remote

NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"  # no value
EXPECTED = ".parquet, .csv or .tsv, TREC .qrels, .run or .trec, RecBole .inter, or MovieLens .dat; text also with .gz"


def parts_of(path: Path) -> list[Path] | None:
    """The part files of a folder or a glob; None for one file, whether it is there or not, or in an object store."""
    if is_remote(path):
        return None
    try:
        folder, there = path.is_dir(), path.exists()
    except OSError:
        return None  # reading it says what is wrong with it
    if folder:
        return _partition_files(path) if is_hive(path) else _in_folder(path)
    return _matching(path) if glob.has_magic(str(path)) and not there else None


def is_hive(path: Path) -> bool:
    """Whether a folder holds Hive partitions, folders called `column=value`, and nothing else."""
    try:
        inside = [each for each in path.iterdir() if each.name[0] not in "._"] if path.is_dir() else []
    except OSError:
        return False
    return bool(inside) and all(each.is_dir() and "=" in each.name for each in inside)


def _partition_files(folder: Path) -> list[Path]:
    parts = [part for part in folder.rglob("*") if part.is_file()]
    visible = [part for part in parts if not any(name[0] in "._" for name in part.relative_to(folder).parts)]
    if not visible:
        raise InputError(f"{folder}: folders without data files; expected files {EXPECTED}.")
    return _without_links(sorted(visible))


def _without_links(paths: list[Path]) -> list[Path]:
    """Without links to files that are there by their own names, such as `latest.parquet`."""
    files = {path.resolve() for path in paths if not path.is_symlink()}
    return [path for path in paths if not path.is_symlink() or path.resolve() not in files]


def partition_values(folders: Path) -> dict[str, str | None]:
    """
    >>> partition_values(Path("user=007/day=a%20b"))
    {'user': '007', 'day': 'a b'}
    """
    pairs = (name.partition("=") for name in folders.parts)
    return {key: None if value == NO_PARTITION else unquote(value) for key, sign, value in pairs if sign}


def files_of(path: Path) -> list[Path]:
    """The files that are read by this name: the part files, or the one."""
    return parts_of(path) or [path]


def _in_folder(folder: Path) -> list[Path]:
    found = _without_links(sorted(each for each in folder.iterdir() if each.name[0] not in "._"))
    for each in found:
        if each.is_dir():
            raise InputError(
                f"{folder}: holds the folder {each.name}; expected data files only. "
                f"Name the files with a glob, such as '{folder}/*/*.parquet'."
            )
    if not found:
        raise InputError(f"{folder}: a folder without data files; expected a file, or a folder of files {EXPECTED}.")
    return found


def _matching(pattern: Path) -> list[Path]:
    folder = next(parent for parent in pattern.parents if parent.is_dir())  # whose signs are no pattern
    names = glob.glob(str(pattern.relative_to(folder)), root_dir=folder, recursive=True)  # noqa: PTH207
    found = [folder / name for name in sorted(names)]
    found = _without_links([each for each in found if each.name[0] not in "._" and not each.is_dir()])
    if not found:
        raise InputError(f"{pattern}: no such file, and no file has a name like that. Check the path.")
    return found
