"""Which files a path names, and what each is: its size, a hash of its bytes, and its version while it is read.

A path is one file, a folder of parts, of Hive partitions or of a pattern, or objects of a store in S3, Google's or
Microsoft's storage, as their names say. Credentials come from the usual variables of the environment, where polars
finds them; nothing here reads, keeps or prints them:

    s3://  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL
    gs://  GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT (the path of a key file), GOOGLE_BASE_URL
    az://  AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY, AZURE_ENDPOINT

Tested with moto's server for S3 and, since both speak the same XML, for Google's, and with Azurite for Microsoft's
storage; how Google signs in (OAuth 2) is not tested.

A file that changes while it is read would give values of neither version, so the version is taken when it is opened and
compared after it was read. Objects of a store have none: polars does not give their ETag, and to ask for it would need
another library.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from urllib.parse import unquote

import polars as pl

from truerank.core.errors import InputError
from truerank.core.escaping import redacted
from truerank.core.provenance import Input
from truerank.core.record import record
from truerank.io.text import TextTypes

OBJECT = "the object of a row"  # a column beside those of the rows
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
    if not url.endswith("/"):
        return pl.scan_parquet(url)
    rows = pl.scan_parquet(url, hive_partitioning=False, include_file_paths=OBJECT)
    objects = rows.select(pl.col(OBJECT).unique().sort()).collect().to_series()
    partitions = [partition_values(Path(name.removeprefix(url)).parent) for name in objects]
    kinds, columns = partition_types(partitions, objects.to_list()), rows.collect_schema().names()
    texts = {key: pl.Series([values[key] for values in partitions], dtype=pl.String) for key in kinds}
    values = {key: pl.col(OBJECT).replace_strict(objects, text) for key, text in texts.items()}
    return with_partitions(rows, columns, kinds, values, pl.col(OBJECT)).drop(OBJECT)


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


def partition_types(partitions: Sequence[Mapping[str, str | None]], parts: Sequence[object]) -> dict[str, pl.DataType]:
    """The types of the columns that folders name: whole numbers where all values are plain ones, as 007 is not.

    `parts` are the files in these folders, for messages.
    """
    for part, values in zip(parts, partitions, strict=True):
        if values.keys() != partitions[0].keys():
            raise InputError(
                f"{part}: its folders name other columns than those of {parts[0]}; expected the same in every part. "
                "Write them alike."
            )
    names = partitions[0] if partitions else ()
    fields = {key: pl.Series([values[key] for values in partitions], dtype=pl.String) for key in names}
    return TextTypes.of(pl.LazyFrame(fields)).ids().schema()


def with_partitions(
    rows: pl.LazyFrame,
    columns: Collection[str],
    kinds: Mapping[str, pl.DataType],
    values: Mapping[str, pl.Expr],
    part: pl.Expr,
) -> pl.LazyFrame:
    """The rows with the columns that their folders name, from the text there; `part` is the name of the file.

    A column that is in the file, too, must have the same value there.
    """
    for key in kinds:
        if key in columns:
            texts = rows.select(part=part, text=pl.col(key).cast(pl.String), folder=values[key])
            other = texts.filter(pl.col("text").ne_missing(pl.col("folder"))).head(1).collect()
            for name, text, folder in other.iter_rows():
                raise InputError(
                    f"{name}: column {key!r} has {text}, but the folder is {key}={folder}; expected the same. Remove "
                    "the column, or rename the folder."
                )
    return rows.with_columns(values[key].cast(kind).alias(key) for key, kind in kinds.items() if key not in columns)


def files_of(path: Path) -> list[Path]:
    """The files that are read by this name: the part files, or the one."""
    return parts_of(path) or [path]


class ChangedInputError(InputError):
    """A file changed while it was read."""


@record
class FileVersion:
    """A file as it is now; the time at which the system noted its last change cannot be set by what writes to it."""

    path: Path
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, path: Path) -> FileVersion:
        """The version that has this name now; an OSError where it cannot be read."""
        status = path.stat()
        return cls(path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def check(self) -> None:
        """Refuse the file if it has changed, or is gone."""
        try:
            is_same = FileVersion.of(self.path) == self
        except OSError:
            is_same = False
        if not is_same:
            raise changed_input(self.path)


def changed_input(path: Path) -> ChangedInputError:
    return ChangedInputError(
        f"{path}: changed while it was read, so there are no results. Start again when nothing writes to it, or read a "
        "copy of it."
    )


def versions_of(paths: Iterable[Path]) -> tuple[FileVersion, ...]:
    """The versions of files that are there; one that cannot be read is reported by what reads it."""
    versions = []
    for path in paths:
        try:
            versions.append(FileVersion.of(path))
        except OSError:
            continue
    return tuple(versions)


@contextmanager
def unchanged(versions: Iterable[FileVersion]) -> Iterator[None]:
    """Refuse files that have changed when they were read here, also where reading fails because of that."""
    versions = tuple(versions)
    try:
        yield
    finally:
        for version in versions:
            version.check()


def locked(folder: Path) -> int | None:
    """A handle that keeps a folder for this process until it is closed or the process ends; None where that cannot be.

    The folder itself is locked, no file in it; a BlockingIOError says that another process has it. Windows and some
    file systems have no such locks.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if isinstance(error, BlockingIOError | PermissionError):
            raise BlockingIOError from None
        return None
    return handle


# -------------------------------------------------------------------------------------------------------------- hashes


def fingerprint(path: Path) -> tuple[int, str] | None:
    """Size and hash of a file, or of the part files of a folder or a glob; None for what can be read only once.

    Of one file the hash is that of `sha256sum FILE`; of parts it is that of the lines which `sha256sum` prints for them
    in the order of their names, given relative to the folder they share. Bytes are streamed, so memory does not grow.
    """
    parts = parts_of(path)
    if parts is None:
        return hash_of(path) if path.is_file() or not path.exists() else None
    hashes = [hash_of(part) for part in parts]
    shared = path if path.is_dir() else Path(os.path.commonpath([part.parent for part in parts]))
    names = (part.relative_to(shared).as_posix() for part in parts)
    lines = "".join(f"{sha256}  {name}\n" for (_, sha256), name in zip(hashes, names, strict=True))
    return sum(size for size, _ in hashes), hashlib.sha256(lines.encode()).hexdigest()


def input_of(path: Path, *, role: str, name: str | None = None, most: int | None = None, **counts: int | None) -> Input:
    """What results say of a file that was read.

    A hash reads every byte, so files of more than `most` bytes can be left without one.
    """
    parts = parts_of(path)
    files = parts or [path]
    endings = {"".join(file.suffixes[-2 if file.suffix == ".gz" else -1 :]).lower() for file in files}
    kind = ", ".join(sorted(ending.lstrip(".") for ending in endings if ending)) or None
    size = hashed = None
    if not is_remote(path) and (parts is not None or path.is_file() or not path.exists()):
        try:
            size = sum(file.stat().st_size for file in files)
        except OSError:
            raise InputError(f"{path}: no such file. Check the path.") from None
        hashed = fingerprint(path) if most is None or size <= most else None
    sha256 = None if hashed is None else hashed[1]
    return Input(role=role, source=url_of(path), name=name, format=kind, bytes=size, sha256=sha256, **counts)


def hash_of(path: Path) -> tuple[int, str]:
    """The size and the SHA-256 of a file."""
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
            return stream.tell(), digest.hexdigest()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file. Check the path.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
