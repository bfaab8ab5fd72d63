"""Labels, scores and a log in Amazon's, Microsoft's and Google's storage: moto's server and Azurite, on 127.0.0.1.

Google's XML is that of S3, which moto's server speaks; how Google signs in is not tested, so these objects are public.
A process keeps one connection for each bucket, so that every test with credentials of its own has a bucket of its own.
"""

from __future__ import annotations

import base64
import hmac
import io
import json
import pickle
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import polars as pl
import pytest
from calling import call
from emulators import ACCOUNT, KEY, answering, azurite, between, moto
from stored import LABELS, LOG, SCORES

import truerank as tr
from truerank.core.errors import InputError
from truerank.exposure.policies.targets import RankColumn
from truerank.io import partition
from truerank.io.batches import LazyTable
from truerank.io.partition import Keyed, together
from truerank.io.spill import scratch

WRONG = "bm90LXRoZS1rZXktb2YtdGhpcy1hY2NvdW50LWF0LWFsbA=="
SECRET = "a-secret-that-is-nowhere-printed"


@dataclass(frozen=True)
class Amazon:
    """Buckets of moto's server."""

    address: str
    scheme: str = "s3"
    variables: str = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    endpoint: str = "AWS_ENDPOINT_URL"

    def usual(self, monkeypatch: pytest.MonkeyPatch, *, address: str | None = None) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", address or self.address)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")

    def put(self, table: pl.DataFrame, bucket: str, key: str) -> str:
        return put_by_s3(self.address, table, bucket, key)


@dataclass(frozen=True)
class Microsoft:
    """Containers of Azurite."""

    address: str
    scheme: str = "az"
    variables: str = "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"
    endpoint: str = "AZURE_ENDPOINT"

    def usual(self, monkeypatch: pytest.MonkeyPatch, *, address: str | None = None, key: str = KEY) -> None:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", key)
        monkeypatch.setenv("AZURE_ENDPOINT", f"{address or self.address}/{ACCOUNT}")
        monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")

    def put(self, table: pl.DataFrame, bucket: str, key: str) -> str:
        self._send(f"/{bucket}", {"restype": "container"}, b"", {})
        self._send(f"/{bucket}/{key}", {}, parquet(table), {"x-ms-blob-type": "BlockBlob"})
        return f"az://{bucket}/{key}"

    def _send(self, path: str, query: dict[str, str], body: bytes, headers: dict[str, str]) -> None:
        """A request that is signed with the account's key; what is there already may stay."""
        now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        own = {**headers, "x-ms-date": now, "x-ms-version": "2021-12-02"}
        length = str(len(body)) if body else ""
        lines = ["PUT", "", "", length, "", "application/octet-stream", *[""] * 6]
        lines += [f"{name}:{own[name]}" for name in sorted(own)]
        lines += [f"/{ACCOUNT}/{ACCOUNT}{quote(path)}", *(f"{name}:{value}" for name, value in query.items())]
        digest = hmac.digest(base64.b64decode(KEY), "\n".join(lines).encode(), "sha256")
        own["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        own["Content-Type"] = "application/octet-stream"
        url = f"{self.address}/{ACCOUNT}{quote(path)}?{urlencode(query)}"
        try:
            urlopen(Request(url, data=body, headers=own, method="PUT"), timeout=30).close()
        except HTTPError as error:
            if error.code != 409:
                raise
            error.close()


@dataclass(frozen=True)
class Google:
    """Buckets of moto's server, whose objects are public."""

    address: str
    scheme: str = "gs"
    variables: str = "GOOGLE_APPLICATION_CREDENTIALS"
    endpoint: str = "GOOGLE_BASE_URL"

    def usual(self, monkeypatch: pytest.MonkeyPatch, *, address: str | None = None) -> None:
        monkeypatch.setenv("GOOGLE_BASE_URL", address or self.address)
        monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")

    def put(self, table: pl.DataFrame, bucket: str, key: str, *, access: str = "public-read") -> str:
        put_by_s3(self.address, table, bucket, key, access=access)
        return f"gs://{bucket}/{key}"


def put_by_s3(address: str, table: pl.DataFrame, bucket: str, key: str, *, access: str = "private") -> str:
    import boto3

    names = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    client: Any = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **names)
    client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key=key, Body=parquet(table), ACL=access)
    return f"s3://{bucket}/{key}"


def parquet(table: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    table.write_parquet(content)
    return content.getvalue()


Store = Amazon | Microsoft | Google


@pytest.fixture(scope="module")
def microsoft() -> Iterator[Microsoft]:
    with azurite() as address:
        yield Microsoft(address)


@pytest.fixture(scope="module")
def google() -> Iterator[Google]:
    with moto() as address:
        yield Google(address)


@pytest.fixture(scope="module")
def amazon(google: Google) -> Amazon:
    return Amazon(google.address)


@pytest.fixture(params=["amazon", "microsoft", "google"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Store:
    found: Store = request.getfixturevalue(request.param)
    found.usual(monkeypatch)
    return found


@pytest.fixture
def bucket() -> str:
    return f"logs{uuid.uuid4().hex[:12]}"


def test_labels_scores_and_a_log(store: Store, bucket: str) -> None:
    for number in range(3):
        part = store.put(LABELS[number::3], bucket, f"labels/part-{number}.parquet")
    scores = tr.read_scores(store.put(SCORES, bucket, "scores.parquet"))
    options: dict[str, Any] = {"exposure": "random", "metrics": ["Recall@5"]}
    expected = tr.evaluate({"a": SCORES}, LABELS, **options)
    folder = part.rpartition("/")[0]
    for labels in (f"{folder}/", f"{folder}/*.parquet"):
        found = tr.evaluate({"a": scores}, labels, **options)
        assert found.estimates[0].value == expected.estimates[0].value
    targets = {"new": RankColumn("new")}
    log = tr.off_policy(store.put(LOG, bucket, "log.parquet"), targets, position="exp:0.8")
    assert log.estimates[0].value == tr.off_policy(LOG, targets, position="exp:0.8").estimates[0].value


def test_the_command_line_names_objects_and_no_secret(store: Store, bucket: str) -> None:
    labels, scores = store.put(LABELS, bucket, "labels.parquet"), store.put(SCORES, bucket, "scores.parquet")
    command = ["evaluate", labels, "--scores", f"a={scores}", "--exposure", "random", "--metric", "Recall@5"]
    done = call(*command, "--format", "json").fine()
    assert {labels, scores} <= {each["source"] for each in json.loads(done.out)["provenance"]["inputs"]}
    assert not any(secret in done.out + done.err for secret in (KEY, SECRET))


def test_partitions_become_columns(store: Store, bucket: str, tmp_path: Path) -> None:
    for day in (1, 2):
        url = store.put(LABELS[day - 1 :: 2], bucket, f"hive/day={day}/a.parquet")
        (tmp_path / f"hive/day={day}").mkdir(parents=True)
        LABELS[day - 1 :: 2].write_parquet(tmp_path / f"hive/day={day}/a.parquet")
    for place in (url.rpartition("/day=")[0], tmp_path / "hive"):
        table = LazyTable.of(place)
        assert (table.n_rows, table.columns) == (500, ["user", "item", "label", "day"])


def test_partitions_are_ids_as_they_are_written(store: Store, bucket: str) -> None:
    """The user 007 is not the user 7, and a column of the objects is taken where it says what the folders say."""
    for user in ("007", "7"):
        url = store.put(pl.DataFrame({"item": [1, 2], "label": [0, 1]}), bucket, f"hive/user={user}/a.parquet")
    assert tr.read(url.rpartition("/user=")[0]).users.texts() == ["007", "7"]
    for number in (7, 8):
        url = store.put(
            pl.DataFrame({"user": [number], "item": [1], "label": [1]}), bucket, f"same/user={number}/a.parquet"
        )
    assert tr.read(url.rpartition("/user=")[0]).users.texts() == ["7", "8"]


def test_a_column_that_contradicts_its_partition(store: Store, bucket: str) -> None:
    for user in (7, 8):
        rows = pl.DataFrame({"user": [7, 7], "item": [1, 2], "label": [0, 1]})
        url = store.put(rows, bucket, f"hive/user={user}/a.parquet")
    with pytest.raises(InputError, match=r"user=8/a\.parquet: column 'user' has 7, but the folder is user=8"):
        tr.read(url.rpartition("/user=")[0])


def test_workers_read_sorted_objects_themselves(store: Store, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What every machine can read is not sent: a part names the object and its rows."""
    monkeypatch.setattr(partition, "MEMORY_ROWS", 100)
    monkeypatch.setattr(partition, "CHUNK_ROWS", 80)
    url = store.put(LABELS.sort("user"), bucket, "sorted.parquet")
    with scratch() as space:
        chunks = together({"labels": Keyed(LazyTable.of(url), "user")}, scratch=space)
        parts = [chunks.part(at, same_disk=False)["labels"] for at in range(chunks.n_chunks)]
    sent = [pickle.dumps(part) for part in parts]
    assert len(sent) > 3
    assert not any(secret.encode() in b"".join(sent) for secret in (KEY, SECRET))
    assert pl.concat(pickle.loads(part).read() for part in sent).equals(LABELS.sort("user"))


# ------------------------------------------------------------------------------------------------------ what goes wrong


def refused(url: str, store: Store, said: str) -> None:
    with pytest.raises(InputError) as raised:
        tr.evaluate({"a": SCORES}, url, exposure="random")
    assert str(raised.value) == f"{url}: {said}"
    assert not {KEY, SECRET} & set(str(raised.value).split())


def test_what_is_not_there_is_told_in_one_sentence(store: Store, bucket: str) -> None:
    store.put(LABELS, bucket, "labels.parquet")
    for url in (f"{bucket}/nothing.parquet", f"{bucket}/none", f"{bucket}nobody/labels.parquet"):
        refused(f"{store.scheme}://{url}", store, "no such object, or none below it. Check the address.")


def denied(store: Store) -> str:
    return f"the store refuses these credentials. Check the variables that they come from, such as {store.variables}."


@pytest.mark.parametrize("key", [WRONG, "no key at all"])
def test_a_wrong_key_is_told_in_one_sentence(
    microsoft: Microsoft, bucket: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    microsoft.usual(monkeypatch, key=key)
    refused(microsoft.put(LABELS, bucket, "labels.parquet"), microsoft, denied(microsoft))


def lost(store: Store) -> str:
    return (
        "the store does not answer, or the connection was lost. Check the network and the endpoint "
        f"({store.endpoint}), and start it again."
    )


def test_a_server_that_hangs_up_is_told_in_one_sentence(
    store: Store, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(b"") as address:
        store.usual(monkeypatch, address=address)
        refused(f"{store.scheme}://{bucket}/labels.parquet", store, lost(store))


def test_a_connection_that_is_dropped_in_the_middle(store: Store, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows have been looked through once; then every connection is cut, and no other is taken."""
    url = store.put(LOG, bucket, "log.parquet")
    with between(store.address) as line:
        store.usual(monkeypatch, address=line.address)
        table = LazyTable.of(url)
        assert table.n_rows == len(LOG)
        line.cut()
        with pytest.raises(InputError) as raised:
            tr.off_policy(url, {"new": RankColumn("new")}, position="exp:0.8")
        assert line.n_refused > 0
    assert str(raised.value) == f"{url}: {lost(store)}"


@pytest.mark.parametrize(
    "url",
    [
        f"s3://key:{SECRET}@logs/l.parquet",
        f"az://logs/l.parquet?sv=2024&sig={SECRET}",
        f"s3://logs/l?X-Amz-Signature={SECRET}",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InputError, match="an address with a password in it") as raised:
        tr.evaluate({"a": SCORES}, url, exposure="random")
    assert SECRET not in str(raised.value)
