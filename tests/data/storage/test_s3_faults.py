"""What a server seldom does: it is too busy, breaks off, or answers with another object. A mock behind a proxy does it here."""

import math
import os

import boto3
import numpy as np
import pytest
from support.s3_servers import MOCK, mock_server, new_connections, point_to, proxy

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.shards.manifest import read_shard, write_shards
from aucdist.data.storage import files, guard, s3, scratch
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError

URL = "s3://faults/object"
DATA = bytes(range(256)) * 20


@pytest.fixture(scope="module")
def behind():
    """A bucket on a mock behind a proxy, and the proxy."""
    with (
        mock_server() as upstream, proxy(upstream) as server,
        pytest.MonkeyPatch.context() as monkeypatch, new_connections(),
    ):  # fmt: skip
        point_to(monkeypatch, server.url, *MOCK)
        client = boto3.session.Session().client("s3")
        client.create_bucket(Bucket="faults")
        yield server
        client.close()


@pytest.fixture
def faults(behind, monkeypatch):
    """The faults to come; a moment's patience is enough here."""
    monkeypatch.setattr("aucdist.data.storage.faults.RETRY_SECONDS", 2.0)
    monkeypatch.setattr("aucdist.data.storage.faults.MAX_WAIT", 0.05)
    files.write_bytes(URL, DATA)
    behind.asked.clear()
    yield behind.faults
    behind.faults.clear()


@pytest.mark.parametrize("fault", ["slow-down", "reset", "truncated", "flipped", "lost"])
@pytest.mark.parametrize("times", [1, 4])
def test_transient_faults_are_tried_again(faults, behind, fault, times):
    faults += [fault] * times
    assert files.read_bytes(URL) == DATA
    assert not faults
    assert sum(command == "GET" for command, *_ in behind.asked) == times + 1


@pytest.mark.parametrize("fault", ["slow-down", "lost"])
def test_a_write_is_tried_again(faults, fault):
    faults += [fault] * 3
    files.write_bytes(URL, DATA[::-1])
    assert files.read_bytes(URL) == DATA[::-1]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("slow-down", "cannot read s3://faults/object: the server answered SlowDown"),
        ("reset", "cannot be reached (ClientPayloadError); check the address and the network"),
        ("truncated", "cannot be reached (ClientPayloadError); check the address and the network"),
        ("flipped", "cannot read s3://faults/object: the data received do not match the stored checksum"),
    ],
)
def test_patience_ends_with_a_clear_error(faults, monkeypatch, fault, said):
    monkeypatch.setattr("aucdist.data.storage.faults.RETRY_SECONDS", 0.3)
    faults += [fault] * 1000
    with pytest.raises(InputError) as caught:
        files.read_bytes(URL)
    assert said in str(caught.value)


def test_an_object_that_changes_between_two_parts_is_refused(faults, monkeypatch):
    monkeypatch.setattr(s3, "PART", 2000)
    faults += [None, "etag"]
    with pytest.raises(InputError, match="cannot read s3://faults/object: it changed meanwhile"):
        files.read_bytes(URL)
    assert files.read_bytes(URL) == DATA


def test_a_range_of_another_version_is_refused(faults):
    version = files.stat(URL).etag
    assert files.read_range(URL, 3, 9, version) == DATA[3:9]
    faults += ["etag"]
    with pytest.raises(InputError, match="has changed since it was first read"):
        files.read_range(URL, 3, 9, version)


def test_a_writer_whose_answer_was_lost_still_knows_that_it_won(faults):
    faults += ["lost"]
    assert files.create_bytes("s3://faults/pointer", b"mine")
    assert not files.create_bytes("s3://faults/pointer", b"another's")


def test_the_reader_pays_where_it_was_told_to(faults, behind, monkeypatch):
    monkeypatch.setenv("AUCDIST_S3_REQUESTER_PAYS", "faults,others")
    assert files.read_bytes(URL) == DATA
    monkeypatch.delenv("AUCDIST_S3_REQUESTER_PAYS")
    assert files.read_bytes(URL) == DATA
    sent = [{name.lower(): value for name, value in headers.items()} for _, _, headers in behind.asked]
    assert [headers.get("x-amz-request-payer") for headers in sent] == ["requester", None]


def rows_of(block, memory):
    return None, {"rows": [np.array(block.X)]}


def test_a_pass_over_shards_meets_every_fault_and_reads_the_same_bits(faults, tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "_scratch", scratch.Scratch(tmp_path, 0))  # each pass reads the server
    rng = np.random.default_rng(0)
    blocks = [Block.of(rng.random((50, 3)), np.where(np.arange(50) % 5 == 0, 1, -1), index=i) for i in range(4)]
    write_shards(blocks, Schema(("a", "b", "c"), "y", ("1",), ("0",), {}), "s3://faults/shards")
    streamed = LocalBlocks.load(lambda index: read_shard("s3://faults/shards", index), 4, stream=True)
    faults += ["reset", None, "truncated", "slow-down", "slow-down", None, "flipped", "lost"]
    parts = streamed.reduce(rows_of)["rows"]
    assert not faults
    assert all(np.array_equal(x, block.X) for x, block in zip(parts, blocks, strict=True))


def test_the_secret_is_in_no_message(faults, monkeypatch, caplog):
    monkeypatch.setattr("aucdist.data.storage.faults.RETRY_SECONDS", 0.2)
    caplog.set_level("DEBUG")
    faults += ["lost"] * 1000
    with pytest.raises(InputError) as caught:
        files.read_bytes(URL)
    assert MOCK[1] not in str(caught.value) + caplog.text
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == MOCK[1]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("endless", "the server does not answer as S3 does (5120 bytes where 16777216 were asked for)"),
        ("unsized", "the server does not answer as S3 does (Content-Range 'bytes 0-5119/*')"),
        ("moved", "the server answered"),
    ],
)
def test_wrong_answers_are_refused(faults, fault, said):
    faults += [fault] * 1000
    for read_it in (files.read_bytes, lambda url: files.read_range(url, 0, s3.PART)):
        with pytest.raises(InputError) as caught:
            read_it(URL)
        assert str(caught.value).startswith(f"cannot read {URL}: {said}")


def test_an_object_without_an_etag_is_read(faults):
    faults += ["no-etag"]
    assert files.read_bytes(URL) == DATA


def test_an_object_that_claims_to_be_larger_than_the_memory_is_refused(faults, monkeypatch):
    monkeypatch.setattr(s3, "PART", 1024)
    faults += ["endless"]
    with pytest.raises(InputError, match=r"more than this machine's memory"):
        files.read_bytes(URL)


def test_a_server_that_is_too_slow_is_given_up(faults, monkeypatch):
    monkeypatch.setattr(guard, "SLOW_START_SECONDS", 0.0)
    monkeypatch.setattr(guard, "MIN_BYTES_PER_SECOND", math.inf)  # so every server is
    with pytest.raises(InputError, match="the server sends less than"):
        files.read_bytes(URL)
