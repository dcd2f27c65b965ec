"""The environment of S3: what a configuration sets and unsets, and that no secret is stored."""

import json
import logging
import os
import uuid
from types import SimpleNamespace

import pytest
from support.prefect_servers import have_blocks
from support.runs import load_train
from support.s3_servers import MOCK, mock_server, new_bucket, new_connections, point_to

from aucdist.errors import InputError
from flows.compute.clusters import environment_of, s3_as_configured
from flows.config.cluster import AddressConfig, NoCluster, S3Config
from flows.progress import LineObserver
from flows.train import run as pipeline

SECRET = "sesame-in-a-block"
DOCUMENTS = {
    ("aws-credentials", "mine"): {
        "aws_access_key_id": "AKIABLOCK", "aws_secret_access_key": SECRET, "region_name": "eu-west-1",
        "aws_client_parameters": {"endpoint_url": "http://block:1"},
    },
    ("secret", "mine"): {"value": json.dumps({"aws_access_key_id": "AKIABLOCK", "aws_secret_access_key": SECRET})},
    ("secret", "object"): {"value": {"profile_name": "of-the-block"}},
    ("secret", "text"): {"value": f"{SECRET}: no JSON"},
    ("secret", "other"): {"value": {"password": SECRET}},
}  # fmt: skip


@pytest.fixture
def blocks(monkeypatch):
    have_blocks(monkeypatch, DOCUMENTS)


def configured(cluster=None, lines=None, **settings):
    config = SimpleNamespace(s3=S3Config(**settings), cluster=cluster or NoCluster())
    return s3_as_configured(config, LineObserver([].append if lines is None else lines.append))


def test_workers_that_run_already_have_their_own_environment():
    lines, running = [], AddressConfig(kind="address", address="tcp://scheduler:8786", scratch="s3://bucket/scratch")
    with configured(running, lines, region="eu-west-1"), configured(running, lines):
        assert len(lines) == 1
    assert "the workers use their own environment" in lines[0]


def test_what_is_given_is_set_and_what_is_not_stays():
    assert environment_of(S3Config()) == {}
    config = S3Config(endpoint="http://s3:9000", region="eu-north-1", anonymous=["a", "b"], requester_pays=["c"])
    assert environment_of(config) == {
        "AWS_ENDPOINT_URL_S3": "http://s3:9000", "AWS_DEFAULT_REGION": "eu-north-1", "AUCDIST_S3_ANONYMOUS": "a,b",
        "AUCDIST_S3_REQUESTER_PAYS": "c",
    }  # fmt: skip


def test_a_profile_wins_over_keys_in_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOTHER")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with configured(profile="mine"):
        assert os.environ["AWS_PROFILE"] == "mine"
        assert "AWS_ACCESS_KEY_ID" not in os.environ
    assert os.environ["AWS_ACCESS_KEY_ID"] == "AKIAOTHER"
    assert "AWS_PROFILE" not in os.environ


@pytest.mark.usefixtures("blocks")
def test_blocks_bring_credentials_for_as_long_as_the_run_lasts(monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_PROFILE", "before")
    for name in ("aws-credentials/mine", "secret/mine"):
        with configured(block=name):
            assert os.environ["AWS_ACCESS_KEY_ID"] == "AKIABLOCK"
            assert os.environ["AWS_SECRET_ACCESS_KEY"] == SECRET
            assert "AWS_PROFILE" not in os.environ
        assert "AWS_ACCESS_KEY_ID" not in os.environ
        assert os.environ["AWS_PROFILE"] == "before"
    whole = environment_of(S3Config(block="aws-credentials/mine"))
    assert (whole["AWS_DEFAULT_REGION"], whole["AWS_ENDPOINT_URL_S3"]) == ("eu-west-1", "http://block:1")
    mixed = environment_of(S3Config(block="aws-credentials/mine", endpoint="http://given:2"))
    assert mixed["AWS_ENDPOINT_URL_S3"] == "http://given:2"
    assert environment_of(S3Config(block="secret/object"))["AWS_PROFILE"] == "of-the-block"


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("secret/none", "has no such block"),
        ("secret/text", "must be a JSON object with the keys aws_access_key_id"),
        ("secret/other", "has no credentials: give it one of aws_access_key_id"),
    ],
)
def test_a_block_that_does_not_do_is_explained(name, message):
    with pytest.raises(InputError) as caught:
        environment_of(S3Config(block=name))
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_block_needs_a_server():
    with pytest.raises(InputError, match="no Prefect server is configured"):
        environment_of(S3Config(block="secret/mine"))


def test_a_run_on_s3_leaves_no_secret_in_folder_log_or_lines(monkeypatch, caplog, tmp_path):
    bucket, lines = f"run-{uuid.uuid4().hex[:8]}", []
    caplog.set_level(logging.DEBUG)
    (tmp_path / "credentials").write_text(f"[mine]\naws_access_key_id = {MOCK[0]}\naws_secret_access_key = {MOCK[1]}\n")
    with mock_server() as endpoint, new_connections():
        point_to(monkeypatch, endpoint, *MOCK)
        import boto3

        with new_bucket(boto3.session.Session().client("s3"), bucket) as client:
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
                monkeypatch.delenv(name)
            monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
            settings = ["cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01", f"s3.endpoint={endpoint}"]
            config = load_train("digits", [*settings, "s3.profile=mine"], f"s3://{bucket}/runs")
            result = pipeline.train(config, LineObserver(lines.append))
            listed = client.list_objects_v2(Bucket=bucket)["Contents"]
            bodies = {f["Key"]: client.get_object(Bucket=bucket, Key=f["Key"])["Body"].read() for f in listed}
    assert f"{result['run'].removeprefix(f's3://{bucket}/')}/metrics.json" in bodies
    assert not any(MOCK[1].encode() in body for body in bodies.values())
    assert MOCK[1] not in caplog.text + "".join(lines)


@pytest.mark.slow
def test_a_real_prefect_server_has_the_block(monkeypatch):
    from prefect.blocks.system import Secret
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        monkeypatch.setenv("PREFECT_API_URL", PREFECT_API_URL.value())
        Secret(value={"aws_access_key_id": "AKIABLOCK", "aws_secret_access_key": SECRET}).save("s3-of-test")
        variables = environment_of(S3Config(block="secret/s3-of-test"))
        assert variables["AWS_SECRET_ACCESS_KEY"] == SECRET
        with pytest.raises(InputError, match="no such block"):
            environment_of(S3Config(block="secret/another"))


def test_sharding_and_scoring_reach_s3_as_configured(tmp_path, monkeypatch):
    from flows.data_sets import ShardConfig, shard
    from flows.score import ScoreConfig, score

    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    seen = []

    class Interrupting(LineObserver):
        def run_stage(self, name, stage, /, *args, **options):
            seen.append(os.environ.get("AWS_ENDPOINT_URL_S3"))
            raise InterruptedError

    s3_settings = {"endpoint": "http://there:1"}
    asked = ShardConfig.model_validate({"name": "digits", "target": str(tmp_path), "s3": s3_settings})
    with pytest.raises(InterruptedError):
        shard(asked, Interrupting([].append))
    asked = ScoreConfig.model_validate({"name": "digits", "model": "m", "output": str(tmp_path), "s3": s3_settings})
    with pytest.raises(InterruptedError):
        score(asked, Interrupting([].append))
    assert seen == ["http://there:1"] * 2
    assert "AWS_ENDPOINT_URL_S3" not in os.environ
