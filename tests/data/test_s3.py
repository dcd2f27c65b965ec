"""S3 by way of s3fs. The server is moto's, a mock: it takes any secret, so that a wrong one is shown it by hand."""

import logging
import socket

import boto3
import numpy as np
import pytest
import s3fs
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer

from aucdist.data import files
from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.readers import read
from aucdist.data.shards import read_manifest, read_shard, write_shards
from aucdist.data.source import Source
from aucdist.errors import InputError

SECRET = "sesame-sesame"


@pytest.fixture(scope="module")
def mock_server():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def point_to(monkeypatch, endpoint):
    for key, value in (
        ("AWS_ACCESS_KEY_ID", "AKIASESAME"), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", endpoint), ("NO_PROXY", "127.0.0.1"),
    ):  # fmt: skip
        monkeypatch.setenv(key, value)


@pytest.fixture
def afresh():
    """Connections that know nothing of those before, nor those after of these."""
    s3fs.S3FileSystem.clear_instance_cache()
    yield
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(mock_server, monkeypatch):
    point_to(monkeypatch, mock_server)
    client = boto3.client("s3")
    client.create_bucket(Bucket="rows")
    for key, body in (
        ("d/part-1.csv", b"a,y\n1,0\n2,1\n"), ("d/part-2.csv", b"a,y\n3,0\n"), ("d/_SUCCESS", b""), ("empty.csv", b""),
        ("folder/", b""),
    ):  # fmt: skip
        client.put_object(Bucket="rows", Key=key, Body=body)
    yield client
    client.close()


def load(url):
    return read(Source(source=url, format="csv", label="y"))


@pytest.mark.parametrize(
    ("url", "values"),
    [
        ("s3://rows/d", [1, 2, 3]),
        ("s3://rows/d/", [1, 2, 3]),
        ("s3://rows/d/part-*.csv", [1, 2, 3]),
        ("s3://rows/d/part-1.csv", [1, 2]),
        (["s3://rows/d/part-2.csv", "s3://rows/d/part-1.csv"], [3, 1, 2]),
    ],
)
def test_objects_prefixes_and_patterns_are_read(bucket, url, values):
    assert load(url).block.X.ravel().tolist() == values


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://nowhere/d/part-1.csv", "cannot read s3://nowhere/d/part-1.csv: no such file, folder or bucket"),
        ("s3://nowhere/d/", "cannot read s3://nowhere/d/: no such file, folder or bucket"),
        ("s3://rows/d/part-3.csv", "cannot read s3://rows/d/part-3.csv: no such file, folder or bucket"),
        ("s3://rows/none/", "nothing matches s3://rows/none/"),
        ("s3://rows/none*.csv", "nothing matches s3://rows/none*.csv"),
        ("s3://rows/folder/", "nothing matches s3://rows/folder/"),
        ("s3://rows/empty.csv", "s3://rows/empty.csv is empty"),
    ],
)
def test_what_is_not_there_is_named(bucket, url, said):
    with pytest.raises(InputError) as caught:
        load(url)
    assert said in str(caught.value)


def test_shards_round_trip(bucket):
    rng = np.random.default_rng(0)
    blocks = [Block.of(rng.random((5, 2)), np.array([1, -1, 1, -1, -1]), index=i) for i in range(3)]
    schema = Schema(("a", "b"), "y", ("1",), ("0",), {})
    assert len(write_shards(blocks, schema, "s3://rows/out/")) == 3
    assert read_manifest("s3://rows/out").n_samples == 15
    for i, block in enumerate(blocks):
        assert np.array_equal(read_shard("s3://rows/out", i).X, block.X)


def test_a_bucket_that_is_not_there_cannot_be_written(bucket):
    with pytest.raises(InputError, match="cannot write s3://nowhere/x: no such file, folder or bucket"):
        files.write_bytes("s3://nowhere/x", b"x")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("SignatureDoesNotMatch", "access denied (PermissionError); check the credentials"),
        ("InvalidAccessKeyId", "access denied (PermissionError); check the credentials"),
        ("AccessDenied", "access denied (PermissionError); check the credentials"),
    ],
)
def test_a_refusal_is_explained_without_secrets(bucket, monkeypatch, code, said):
    async def refuse(self, *args, **kwargs):
        error = {"Code": code, "Message": f"AKIASESAME {SECRET} is wrong"}
        raise s3fs.errors.translate_boto_error(ClientError({"Error": error}, "GetObject"))

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", refuse)
    for what in (lambda: load("s3://rows/d/part-1.csv"), lambda: files.write_bytes("s3://rows/x", b"x")):
        with pytest.raises(InputError) as caught:
            what()
        assert said in str(caught.value)
        assert "sesame" not in str(caught.value).lower()


def test_missing_credentials_are_named(bucket, afresh, monkeypatch, tmp_path):
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(key, raising=False)
    for key, value in (
        ("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none")), ("AWS_CONFIG_FILE", str(tmp_path / "none")),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ):  # fmt: skip
        monkeypatch.setenv(key, value)
    with pytest.raises(InputError, match=r"access denied \(NoCredentialsError\); check the credentials"):
        load("s3://rows/d/part-1.csv")


@pytest.mark.parametrize("url", ["s3://rows/d/part-1.csv", "s3://rows/d/", "s3://rows/d/*.csv"])
def test_an_endpoint_that_does_not_answer_is_named(afresh, monkeypatch, url):
    with socket.socket() as closed:  # bound but not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        point_to(monkeypatch, endpoint)
        for what in (lambda: load(url), lambda: files.write_bytes("s3://rows/x", b"x")):
            with pytest.raises(InputError) as caught:
                what()
            assert f"{endpoint}" in str(caught.value)
            assert "cannot be reached (EndpointConnectionError)" in str(caught.value)
            assert "sesame" not in str(caught.value).lower()
