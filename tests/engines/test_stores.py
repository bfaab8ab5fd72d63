"""Labels, scores and a log in an object store: a server of the test's own, on 127.0.0.1."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from calling import call
from emulators import answering, moto
from stored import LABELS, LOG, SCORES

import truerank as tr
from truerank.core.errors import InputError
from truerank.evaluation import sources
from truerank.exposure.policies.targets import RankColumn
from truerank.io import partition

SECRET = "a-secret-that-is-nowhere-printed"


class Bucket:
    """A bucket of the server."""

    def __init__(self, endpoint: str) -> None:
        import boto3

        self.client: Any = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
        self.client.create_bucket(Bucket="logs")

    def put(self, table: pl.DataFrame, key: str) -> str:
        content = io.BytesIO()
        table.write_parquet(content)
        self.client.put_object(Bucket="logs", Key=key, Body=content.getvalue())
        return f"s3://logs/{key}"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with moto() as address:
        yield address


def usual(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """The variables that everybody uses."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    usual(monkeypatch, server)
    return Bucket(server)


def test_labels_scores_and_a_log(bucket: Bucket) -> None:
    for number in range(3):
        bucket.put(LABELS[number::3], f"labels/part-{number}.parquet")
    scores = tr.read_scores(bucket.put(SCORES, "scores.parquet"))
    found = tr.evaluate({"a": scores}, "s3://logs/labels/", exposure="random", metrics=["Recall@5"])
    expected = tr.evaluate({"a": SCORES}, LABELS, exposure="random", metrics=["Recall@5"])
    assert found.estimates[0].value == expected.estimates[0].value
    targets = {"new": RankColumn("new")}
    log = tr.off_policy(bucket.put(LOG, "log.parquet"), targets, position="exp:0.8")
    assert log.estimates[0].value == tr.off_policy(LOG, targets, position="exp:0.8").estimates[0].value


def test_the_command_line_names_objects_and_no_secret(bucket: Bucket) -> None:
    labels, scores = bucket.put(LABELS, "labels.parquet"), bucket.put(SCORES, "scores.parquet")
    command = ["evaluate", labels, "--scores", f"a={scores}", "--exposure", "random", "--metric", "Recall@5"]
    done = call(*command, "--format", "json")
    assert done.code == 0, done.err
    assert {labels, scores} <= {each["source"] for each in json.loads(done.out)["provenance"]["inputs"]}
    assert SECRET not in done.out + done.err


def test_partitions_become_columns(bucket: Bucket, tmp_path: Path) -> None:
    for day in (1, 2):
        bucket.put(LOG.drop("session").with_columns(session=pl.lit(day)), f"hive/session={day}/a.parquet")
        (tmp_path / f"hive/day={day}").mkdir(parents=True)
        LABELS[day - 1 :: 2].write_parquet(tmp_path / f"hive/day={day}/a.parquet")
    from truerank.io.batches import LazyTable

    assert LazyTable.of("s3://logs/hive").read()["session"].unique().sort().to_list() == [1, 2]
    table = LazyTable.of(tmp_path / "hive")
    assert (table.n_rows, table.columns) == (500, ["user", "item", "label", "day"])
    found = tr.evaluate({"a": SCORES}, tmp_path / "hive", exposure="random", metrics=["Recall@5"])
    expected = tr.evaluate({"a": SCORES}, LABELS, exposure="random", metrics=["Recall@5"])
    assert found.estimates[0].value == expected.estimates[0].value


def test_workers_read_sorted_objects_themselves(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """What every machine can read is not sent: a part names the object and its rows."""
    for module in (sources, partition):
        monkeypatch.setattr(module, "MEMORY_ROWS", 100)
    monkeypatch.setattr(partition, "CHUNK_ROWS", 80)
    import pickle

    from truerank.io.batches import LazyTable
    from truerank.io.partition import Keyed, together
    from truerank.io.spill import scratch

    url = bucket.put(LABELS.sort("user"), "sorted.parquet")
    with scratch() as space:
        chunks = together({"labels": Keyed(LazyTable.of(url), "user")}, scratch=space)
        assert chunks.n_chunks > 3
        parts = [chunks.part(at, same_disk=False)["labels"] for at in range(chunks.n_chunks)]
    sent = [pickle.dumps(part) for part in parts]
    assert SECRET.encode() not in b"".join(sent)
    found = pl.concat(pickle.loads(part).read() for part in sent)
    assert found.equals(LABELS.sort("user"))


@pytest.mark.parametrize("url", ["s3://logs/nothing.parquet", "s3://logs/none/", "s3://nobody/labels.parquet"])
def test_what_is_not_there_is_told_in_one_sentence(bucket: Bucket, url: str) -> None:
    with pytest.raises(InputError, match=f"^{url.rstrip('/')}: no such object, or none below it. Check the address.$"):
        tr.evaluate({"a": SCORES}, url, exposure="random")


def test_wrong_credentials_are_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    denied = b"<Error><Code>SignatureDoesNotMatch</Code><Message>" + SECRET.encode() + b"</Message></Error>"
    with answering(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(denied), denied)) as endpoint:
        usual(monkeypatch, endpoint)
        with pytest.raises(InputError, match=r"^s3://logs/l\.parquet: the store refuses these credentials") as raised:
            tr.evaluate({"a": SCORES}, "s3://logs/l.parquet", exposure="random")
    assert SECRET not in str(raised.value)


def test_a_dropped_connection_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(b"") as endpoint:
        usual(monkeypatch, endpoint)
        with pytest.raises(InputError, match=r"^s3://logs/l\.parquet: the store does not answer, or the connection"):
            tr.evaluate({"a": SCORES}, "s3://logs/l.parquet", exposure="random")


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
