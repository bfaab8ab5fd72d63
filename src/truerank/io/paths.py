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
from truerank.io.text import TextTypes

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
    rows, plain = pl.scan_parquet(url), pl.scan_parquet(url, hive_partitioning=False)
    named = [name for name in rows.collect_schema() if name not in plain.collect_schema()]
    if not named:
        return rows
    # polars would read 007 as 7: values of partitions are whole numbers only where all are written plainly
    texts = pl.scan_parquet(url, hive_schema=dict.fromkeys(named, pl.String()))
    kinds = TextTypes.of(texts.select(named).unique().collect().lazy()).ids().schema()
    return texts.with_columns(pl.col(name).cast(kind) for name, kind in kinds.items())


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
    listed = _listed(path)
    if listed is None:
        return None
    candidates, parts = listed
    if not candidates and not path.is_dir():
        raise InputError(f"{path}: no such file, and no file has a name like that. Check the path.")
    if not parts:
        raise InputError(f"{path}: a folder without data files; expected a file, or a folder of files {EXPECTED}.")
    folder = next((part for part in parts if part.is_dir()), None)
    if folder is not None:
        raise InputError(
            f"{path}: holds the folder {folder.name}; expected data files only. "
            f"Name the files with a glob, such as '{path}/*/*.parquet'."
        )
    return parts


def left_out(path: Path) -> tuple[str, ...]:
    """What to report of a folder or a glob: how many hidden files and links to other parts are not read."""
    candidates, parts = _listed(path) or ([], [])
    n = len(candidates) - len(parts)
    return (f"{path}: {n:,} hidden files (. or _) and links to files that are read anyway are excluded.",) if n else ()


def _listed(path: Path) -> tuple[list[Path], list[Path]] | None:
    """What lies in a folder or has names like a glob; and the parts among that: neither hidden, nor links to others."""
    if is_remote(path):
        return None
    try:
        is_folder, exists = path.is_dir(), path.exists()
        if not is_folder and (exists or not glob.has_magic(str(path))):
            return None
        folder = path if is_folder else next(parent for parent in path.parents if parent.is_dir())
        if not is_folder:
            pattern = str(path.relative_to(folder))  # the signs in the names of folders that are there are no pattern
            found = (folder / name for name in glob.glob(pattern, root_dir=folder, recursive=True))  # noqa: PTH207
            candidates = sorted(entry for entry in found if not entry.is_dir())
        else:
            candidates = sorted(
                [entry for entry in path.rglob("*") if entry.is_file()] if is_hive(path) else path.iterdir()
            )
    except OSError:
        return None  # reading it says what is wrong with it
    # in a folder all names below it can hide an entry, of a glob its own
    names = {entry: entry.relative_to(folder).parts if is_folder else (entry.name,) for entry in candidates}
    visible = [entry for entry in candidates if not any(name[0] in "._" for name in names[entry])]
    files = {entry.resolve() for entry in visible if not entry.is_symlink()}
    return candidates, [entry for entry in visible if not entry.is_symlink() or entry.resolve() not in files]


def is_hive(path: Path) -> bool:
    """Whether a folder holds Hive partitions, folders called `column=value`, and nothing else."""
    try:
        inside = [entry for entry in path.iterdir() if entry.name[0] not in "._"] if path.is_dir() else []
    except OSError:
        return False
    return bool(inside) and all(entry.is_dir() and "=" in entry.name for entry in inside)


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
