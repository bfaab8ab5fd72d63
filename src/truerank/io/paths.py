"""Which files a path names: one, the parts of a folder, of Hive partitions or of a pattern, or objects of a store.

Objects lie in S3, Google's or Microsoft's storage, as their names say.

Credentials come from the usual variables of the environment, where polars finds them:

    s3://  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL
    gs://  GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT (the path of a key file), GOOGLE_BASE_URL
    az://  AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY, AZURE_ENDPOINT

Nothing here reads, keeps or prints them. Tested with moto's server for S3, Azurite for Microsoft's storage and, for
Google's, moto's server again, since both speak the same XML. What is not tested is how Google signs in (OAuth 2).
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from urllib.parse import unquote

import polars as pl

from truerank.core.errors import InputError
from truerank.core.escaping import redacted

NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"  # no value
EXPECTED = ".parquet, .csv or .tsv, TREC .qrels, .run or .trec, RecBole .inter, or MovieLens .dat; text also with .gz"
SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl")
DENIED = re.compile(
    r"\b(401|403)\b|AccessDenied|SignatureDoesNotMatch|InvalidAccessKeyId|Forbidden|Unauthorized|credential|"
    r"Invalid Access Key|necessary privileges|pem file"
)
ABSENT = re.compile(r"\b404\b|not found|NoSuch|expanded paths were empty")
LOST = re.compile(r"object-store error|HTTP error|connection|timed out", flags=re.IGNORECASE)
REMOTE = re.compile(rf"({'|'.join(SCHEMES)}):/+(?=[^/])")


# where the credentials and the address of a store come from, by the first letter of its scheme
VARIABLES = {
    "s": ("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"),
    "g": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_BASE_URL"),
    "a": ("AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY", "AZURE_ENDPOINT"),
}


def is_remote(path: str | PathLike[str]) -> bool:
    """Whether a path names an object of a store; a Path has lost one of the two slashes.

    >>> from pathlib import Path
    >>> is_remote("s3://logs/a.parquet"), is_remote(Path("gs://logs/a.parquet")), is_remote("c:/a.parquet")
    (True, True, False)
    """
    return REMOTE.match(fspath(path)) is not None


def url_of(path: str | PathLike[str]) -> str:
    """The address of an object, with both slashes.

    >>> from pathlib import Path
    >>> url_of(Path("s3://logs/a.parquet"))
    's3://logs/a.parquet'
    """
    return REMOTE.sub(r"\1://", fspath(path), count=1)


def scan_store(path: str | PathLike[str]) -> pl.LazyFrame:
    """The rows of an object, of all objects below an address or of a glob, all Parquet; Hive partitions are columns."""
    url = url_of(path)
    check_address(url)
    if "*" not in url and not url.lower().endswith(".parquet"):
        if "." in url.rstrip("/").rpartition("/")[2]:
            raise InputError(f"{url}: only Parquet is read from object stores; copy it to this machine, or convert it.")
        url = url.rstrip("/") + "/"
    return pl.scan_parquet(url)


def check_address(url: str) -> None:
    """Refuse a secret in an address, without showing it: it would end in messages and records."""
    if redacted(url) != url:
        raise InputError("an address with a password in it; expected the usual variables of the environment instead.")


@contextmanager
def reading_store(path: str | PathLike[str]) -> Iterator[None]:
    """What goes wrong with a store, in one sentence without anything that it said: that may hold what is secret."""
    url = url_of(path)
    credentials, endpoint = VARIABLES[url[0]]
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        text = str(error)
        if DENIED.search(text) or isinstance(error, PermissionError):
            raise InputError(
                f"{url}: the store refuses these credentials. Check the variables that they come from, such as "
                f"{credentials}."
            ) from None
        if isinstance(error, FileNotFoundError) or ABSENT.search(text):
            raise InputError(f"{url}: no such object, or none below it. Check the address.") from None
        if isinstance(error, OSError) or LOST.search(text):
            raise InputError(
                f"{url}: the store does not answer, or the connection was lost. Check the network and the endpoint "
                f"({endpoint}), and start it again."
            ) from None
        reason = text.strip().split("\n")[0] if text.startswith("parquet") else type(error).__name__
        raise InputError(f"{url}: cannot be read as a Parquet ({reason}). Write the object anew.") from None


# --------------------------------------------------------------------------------------------------------- part files


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
        inside = [entry for entry in path.iterdir() if entry.name[0] not in "._"] if path.is_dir() else []
    except OSError:
        return False
    return bool(inside) and all(entry.is_dir() and "=" in entry.name for entry in inside)


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
    files = _without_links(sorted(entry for entry in folder.iterdir() if entry.name[0] not in "._"))
    for file in files:
        if file.is_dir():
            raise InputError(
                f"{folder}: holds the folder {file.name}; expected data files only. "
                f"Name the files with a glob, such as '{folder}/*/*.parquet'."
            )
    if not files:
        raise InputError(f"{folder}: a folder without data files; expected a file, or a folder of files {EXPECTED}.")
    return files


def _matching(pattern: Path) -> list[Path]:
    folder = next(parent for parent in pattern.parents if parent.is_dir())  # whose signs are no pattern
    names = glob.glob(str(pattern.relative_to(folder)), root_dir=folder, recursive=True)  # noqa: PTH207
    paths = (folder / name for name in sorted(names))
    files = _without_links([path for path in paths if path.name[0] not in "._" and not path.is_dir()])
    if not files:
        raise InputError(f"{pattern}: no such file, and no file has a name like that. Check the path.")
    return files
