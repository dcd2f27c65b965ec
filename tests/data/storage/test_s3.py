"""S3 by way of s3fs, on a mock everywhere and on a real server where there is one: set AUCDIST_TEST_S3.

What only a real server does (refuse a wrong secret, hold rules for parts and policies) is tested on the real one only.
"""

import json
import logging
import os
import socket
import threading
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer

import boto3
import pytest
from support.s3_servers import MOCK, mock_server, need_real, new_bucket, new_connections, point_to

from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.data.storage import faults, files, s3
from aucdist.errors import InputError

BUCKET = f"rows-{uuid.uuid4().hex[:12]}"
real_only = pytest.mark.parametrize("server", [pytest.param("real", marks=pytest.mark.s3)], indirect=True)


@pytest.fixture(scope="module")
def mock():
    with mock_server() as url:
        yield url


@pytest.fixture(scope="module", params=["mock", pytest.param("real", marks=pytest.mark.s3)])
def server(request):
    """Point the environment to a server, and give a client of it."""
    endpoint, credentials = (request.getfixturevalue("mock"), MOCK) if request.param == "mock" else need_real()
    with pytest.MonkeyPatch.context() as monkeypatch, new_connections():
        point_to(monkeypatch, endpoint, *credentials)
        client = boto3.session.Session().client("s3")
        yield client
        client.close()


@pytest.fixture
def bucket(server):
    with new_bucket(server, BUCKET) as client:
        for key, body in (
            ("d/part-1.csv", b"a,y\n1,0\n2,1\n"), ("d/part-2.csv", b"a,y\n3,0\n"), ("d/_SUCCESS", b""), ("empty.csv", b""),
            ("folder/", b""),
        ):  # fmt: skip
            client.put_object(Bucket=BUCKET, Key=key, Body=body)
        yield client


@pytest.fixture
def no_credentials(bucket, monkeypatch, tmp_path):
    """Take the credentials out of the environment, and give them."""
    taken = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (
        ("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none")), ("AWS_CONFIG_FILE", str(tmp_path / "none")),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    with new_connections():
        yield taken


DENIED = "check the credentials (environment or profile) and permissions"


def at(key):
    return f"s3://{BUCKET}/{key}"


def load(url):
    return read(Source(source=url, format="csv", label="y"))


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        ("d", [1, 2, 3]),
        ("d/", [1, 2, 3]),
        ("d/part-*.csv", [1, 2, 3]),
        ("d/part-1.csv", [1, 2]),
        (["d/part-2.csv", "d/part-1.csv"], [3, 1, 2]),
    ],
)
def test_objects_prefixes_and_patterns_are_read(bucket, keys, values):
    url = [at(key) for key in keys] if isinstance(keys, list) else at(keys)
    assert load(url).block.X.ravel().tolist() == values


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere-9f3/d/part-1.csv", "cannot read {url}: no such bucket"),
        ("nowhere-9f3/d/", "cannot read {url}: no such bucket"),
        ("{}/d/part-3.csv", "cannot read {url}: no such file"),
        ("{}/none/", "nothing matches {url}"),
        ("{}/none*.csv", "nothing matches {url}"),
        ("{}/folder/", "nothing matches {url}"),
        ("{}/empty.csv", "{url} is empty"),
    ],
)
def test_missing_buckets_and_objects_are_named(bucket, place, said):
    url = f"s3://{place.format(BUCKET)}"
    with pytest.raises(InputError) as caught:
        load(url)
    assert said.format(url=url) in str(caught.value)


def test_a_bucket_that_is_not_there_cannot_be_written(bucket):
    with pytest.raises(InputError, match="cannot write s3://nowhere-9f3/x: no such bucket"):
        files.write_bytes("s3://nowhere-9f3/x", b"x")


@pytest.mark.parametrize("place", ["", "/x.csv", "Bad Bucket!/x", "me:sesame@bucket/x"])
def test_a_name_that_no_bucket_can_have_is_refused(place):
    for what in (files.read_bytes, files.files_of, lambda url: files.write_bytes(url, b"x")):
        assert_refused(f"s3://{place}", "S3 has no bucket of this name; write s3://BUCKET/KEY", what=what)


def test_an_endpoint_that_is_no_address_is_named(monkeypatch):
    with new_connections():
        point_to(monkeypatch, "nonsense", *MOCK)
        said = "AWS_ENDPOINT_URL, or endpoint_url of the profile, is no address of a server, such as https://host:9000"
        assert_refused(at("x"), said)
        assert_refused(at("x"), said, what=lambda url: files.write_bytes(url, b"x"))


def test_an_object_is_read_without_the_right_to_list_its_bucket(bucket, monkeypatch):
    def denied(*_, **__):
        raise PermissionError

    monkeypatch.setattr("s3fs.S3FileSystem.isdir", denied)
    assert load(at("d/part-1.csv")).block.n_samples == 2


def test_ranges_and_versions(bucket):
    data, url = bytes(range(256)) * 40, at("range.bin")
    files.write_bytes(url, data)
    version = files.stat(url)
    assert version.size == len(data)
    for start, end in ((0, 1), (5, 20), (10_000, 99_999), (0, 10_240)):
        assert files.read_range(url, start, end, version.etag) == data[start:end]
    assert files.read_range(url, 20_000, 30_000) == files.read_range(url, 7, 7) == b""
    files.write_bytes(url, data[::-1])
    with pytest.raises(InputError, match="has changed since it was first read"):
        files.read_range(url, 0, 10, version.etag)
    with pytest.raises(InputError, match="no such file"):
        files.stat(at("none.bin"))


def test_an_object_is_read_in_parts(bucket, monkeypatch):
    data, url = os.urandom(1003), at("parts.bin")
    files.write_bytes(url, data)
    for part in (100, 1003, 1002, 5000):
        monkeypatch.setattr(s3, "PART", part)
        assert files.read_bytes(url) == data
        assert files.read_range(url, 7, 700) == data[7:700]


def test_a_large_object_is_written_in_parts_and_read_back(bucket):
    data = os.urandom(2**20) * 33
    files.write_bytes(at("large.bin"), data)
    assert bucket.head_object(Bucket=BUCKET, Key="large.bin")["ETag"].strip('"').endswith("-3")
    assert files.read_bytes(at("large.bin")) == data
    assert "Uploads" not in bucket.list_multipart_uploads(Bucket=BUCKET)


def test_of_two_writers_one_wins(bucket):
    url, done = at("pointer"), []
    writers = [
        threading.Thread(target=lambda i=i: done.append((files.create_bytes(url, b"%d" % i), i))) for i in (1, 2)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(won for won, _ in done) == [False, True]
    assert files.read_bytes(url) == b"%d" % max(done)[1]
    assert files.create_bytes(url, files.read_bytes(url))


def test_missing_credentials_are_named(no_credentials):
    with pytest.raises(InputError, match=r"access denied \(NoCredentialsError\); check the credentials"):
        load(at("d/part-1.csv"))


def test_a_profile_brings_credentials(no_credentials, monkeypatch, tmp_path):
    key, secret = no_credentials
    (tmp_path / "credentials").write_text(f"[mine]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "mine")
    assert load(at("d/part-1.csv")).block.n_samples == 2


def test_the_identity_of_a_pod_brings_credentials(no_credentials, monkeypatch, tmp_path):
    class Agent(BaseHTTPRequestHandler):
        def do_GET(self):
            assert self.headers["Authorization"] == "token of the pod"
            key, secret = no_credentials
            answer = {"AccessKeyId": key, "SecretAccessKey": secret, "Token": "", "Expiration": "2999-01-01T00:00:00Z"}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *args):
            pass

    (tmp_path / "token").write_text("token of the pod")
    with HTTPServer(("127.0.0.1", 0), Agent) as agent:
        threading.Thread(target=agent.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{agent.server_port}/v1/credentials")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
        assert load(at("d/part-1.csv")).block.n_samples == 2
        agent.shutdown()


def let(bucket, effect, principal):
    arn = f"arn:aws:s3:::{BUCKET}"
    statement = {
        "Effect": effect,
        "Principal": principal,
        "Action": ["s3:GetObject", "s3:ListBucket"],
        "Resource": [arn, f"{arn}/*"],
    }
    bucket.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


def test_a_public_bucket_needs_no_credentials(bucket, no_credentials, monkeypatch):
    let(bucket, "Allow", "*")
    monkeypatch.setenv("AUCDIST_S3_ANONYMOUS", f"another, {BUCKET}")
    assert load(at("d/")).block.n_samples == 3


@real_only
def test_a_private_bucket_is_closed_to_the_anonymous(bucket, monkeypatch):
    monkeypatch.setenv("AUCDIST_S3_ANONYMOUS", BUCKET)
    assert_refused(at("d/part-1.csv"), DENIED)


@real_only
def test_what_a_policy_forbids_is_named(bucket):
    let(bucket, "Deny", "*")
    try:
        assert_refused(at("d/part-1.csv"), DENIED)
    finally:
        bucket.delete_bucket_policy(Bucket=BUCKET)


@real_only
@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_wrong_credentials_are_named(bucket, monkeypatch, name, caplog):
    monkeypatch.setenv(name, "sesame-wrong")
    with new_connections(), caplog.at_level(logging.DEBUG):
        assert_refused(at("d/part-1.csv"), DENIED)
        assert_refused(at("d/"), DENIED)
        assert_refused(at("x"), DENIED, what=lambda url: files.write_bytes(url, b"x"))
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in caplog.text


def assert_refused(url, *said, what=load):
    with pytest.raises(InputError) as caught:
        what(url)
    assert all(part in str(caught.value) for part in said)
    assert "sesame" not in str(caught.value).lower()


def test_an_endpoint_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(faults, "RETRY_SECONDS", 0.0)
    with new_connections(), socket.socket() as closed:  # bound but not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        point_to(monkeypatch, endpoint, *MOCK)
        said = f"{endpoint}/rows"
        for url in ("s3://rows/d/part-1.csv", "s3://rows/d/", "s3://rows/d/*.csv"):
            assert_refused(url, said, " cannot be reached (EndpointConnectionError); check the address and the network")
        assert_refused("s3://rows/x", "cannot write s3://rows/x", said, what=lambda url: files.write_bytes(url, b"x"))


@pytest.mark.parametrize("name", ["a[1].csv", "a::b.csv", "a*b.csv"])
def test_a_key_is_read_whatever_signs_it_has(server, name):
    with new_bucket(server, BUCKET) as client:
        client.put_object(Bucket=BUCKET, Key=f"d/{name}", Body=b"a,y\n1,0\n2,1\n")
        for url in (f"s3://{BUCKET}/d/{name}", f"s3://{BUCKET}/d/", f"s3://{BUCKET}/d/*.csv"):
            assert read(Source(source=url, format="csv", label="y")).block.n_samples == 2
