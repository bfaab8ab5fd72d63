"""Object stores: files of which the name says that they lie in S3, Google's or Microsoft's storage.

Credentials come from the usual variables of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME, ...), where polars finds them. Nothing
here reads, keeps or prints them.
"""

from __future__ import annotations

import re
from os import PathLike, fspath

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl")
REMOTE = re.compile(rf"({'|'.join(SCHEMES)}):/+(?=[^/])")


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
