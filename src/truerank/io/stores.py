"""Object stores: files of which the name says that they lie in S3, Google's or Microsoft's storage.

Credentials come from the usual variables of the environment, where polars finds them:

    s3://  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL
    gs://  GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT (the path of a key file), GOOGLE_BASE_URL
    az://  AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY, AZURE_ENDPOINT

Nothing here reads, keeps or prints them. Tested with moto's server for S3, Azurite for Microsoft's storage and, for
Google's, moto's server again, since both speak the same XML. What is not tested is how Google signs in (OAuth 2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath

import polars as pl

from truerank.core.errors import InputError
from truerank.core.escaping import redacted

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl")
DENIED = re.compile(
    r"\b(401|403)\b|AccessDenied|SignatureDoesNotMatch|InvalidAccessKeyId|Forbidden|Unauthorized|credential|"
    r"Invalid Access Key|necessary privileges|pem file"
)
ABSENT = re.compile(r"\b404\b|not found|NoSuch|expanded paths were empty")
LOST = re.compile(r"object-store error|HTTP error|connection|timed out", flags=re.IGNORECASE)
REMOTE = re.compile(rf"({'|'.join(SCHEMES)}):/+(?=[^/])")


@dataclass(frozen=True, slots=True)
class Variables:
    """Where the credentials and the address of a store come from."""

    credentials: str
    endpoint: str


AMAZON = Variables("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL")
GOOGLE = Variables("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_BASE_URL")
MICROSOFT = Variables("AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY", "AZURE_ENDPOINT")


def variables_of(url: str) -> Variables:
    """The variables that are usual where an address leads.

    >>> variables_of("gs://logs/a.parquet").credentials
    'GOOGLE_APPLICATION_CREDENTIALS'
    """
    scheme = url.partition(":")[0]
    return AMAZON if scheme.startswith("s3") else GOOGLE if scheme.startswith("g") else MICROSOFT


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
    usual = variables_of(url)
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        text = str(error)
        if DENIED.search(text) or isinstance(error, PermissionError):
            raise InputError(
                f"{url}: the store refuses these credentials. Check the variables that they come from, such as "
                f"{usual.credentials}."
            ) from None
        if isinstance(error, FileNotFoundError) or ABSENT.search(text):
            raise InputError(f"{url}: no such object, or none below it. Check the address.") from None
        if isinstance(error, OSError) or LOST.search(text):
            raise InputError(
                f"{url}: the store does not answer, or the connection was lost. Check the network and the endpoint "
                f"({usual.endpoint}), and start it again."
            ) from None
        reason = text.strip().split("\n")[0] if text.startswith("parquet") else type(error).__name__
        raise InputError(f"{url}: cannot be read as a Parquet ({reason}). Write the object anew.") from None
