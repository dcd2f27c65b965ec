"""Secrets that a run is given, by every way there is, appear in nothing that it writes, however it ends."""

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import boto3
import pytest
from support.s3_servers import mock_server, new_connections, point_to
from support.web_server import web_server
from typer.testing import CliRunner

from aucdist.data.storage import retries
from flows.cli import app
from flows.compute import s3_environment as s3

SECRETS = {
    "key in the environment": "canary1KeyInTheEnvironment",
    "token in the environment": "canary2TokenInTheEnvironment",
    "password in a URL": "canary3PasswordInAUrl",
    "query of a URL": "canary4QueryOfAUrl",
    "key in a block": "canary5KeyInABlock",
    "password of the endpoint": "canary6PasswordOfTheEndpoint",
    "key in the wrong place": "canary7KeyInTheWrongPlace",
}
KEY, TOKEN, PASSWORD, QUERY, BLOCK, ENDPOINT, MISPLACED = SECRETS.values()
QUICK = ["cluster=none", "model.tol=0.1", "model.lam=0.1"]
QUICK_CV = ["cluster=none", "folds={number: 2}", "model.tol=0.1", "grid={lam: [1.0, 0.1]}"]


@pytest.fixture(scope="module")
def web():
    with web_server(PASSWORD) as address:
        yield address


@pytest.fixture(scope="module")
def endpoint():
    with mock_server() as endpoint:
        yield endpoint


@pytest.fixture
def place(endpoint, web, tmp_path, monkeypatch, caplog):
    """A folder to work in, with everything secret that a run can be given, and a log of all that is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUCDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AUCDIST_LOG", "")
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    for patience in ("OPENING", "WORKING"):
        monkeypatch.setattr(retries, patience, 0.2)
    point_to(monkeypatch, endpoint, "AKIACANARY", KEY)
    caplog.set_level(logging.DEBUG)
    # What botocore says to those who ask for its own log are the headers of its requests, and a token is one of them.
    for library in ("botocore", "aiobotocore", "urllib3", "numba", "matplotlib"):  # the last two only talk much
        caplog.set_level(logging.INFO, logger=library)
    with new_connections():
        boto3.session.Session().client("s3").create_bucket(Bucket="canary")
        yield tmp_path


@pytest.fixture
def a_block(monkeypatch):
    class Client:
        def __enter__(self):
            return self

        def __exit__(self, *args):
            pass

        def read_block_document_by_name(self, name, block_type_slug, include_secrets):
            value = {"aws_access_key_id": "AKIABLOCK", "aws_secret_access_key": BLOCK}
            return type("Document", (), {"data": {"value": value if name == "mine" else f"no JSON: {BLOCK}"}})

    monkeypatch.setattr("prefect.client.orchestration.get_client", lambda sync_client: Client())
    monkeypatch.setattr(s3, "api_configured", lambda: True)


def rows_at(web, name="rows.svm"):
    return f"http://user:{PASSWORD}@{web}/web/{name}?token={QUERY}"


def configuration(web, **more):
    """Write a configuration of both kinds of training, and return its path."""
    source = {"format": "svmlight", "source": rows_at(web), "note": "of a test"}
    path = Path(f"canary{len(more)}.yaml")
    path.write_text(json.dumps({"name": "canary", "data": {"source": source, "test": {"fraction": 0.3}}, **more}))
    return str(path)


def sets(*settings):
    return [part for setting in settings for part in ("--set", setting)]


def run(*args):
    found = CliRunner().invoke(app, list(args))
    return found.exit_code, found.stdout + found.stderr


def left_behind(folder):
    """Return the names and contents of all files and objects, but for the configurations that are given."""
    found = {str(path).encode(): path.read_bytes() for path in folder.glob("*/**/*") if path.is_file()}
    client = boto3.session.Session().client("s3")
    for page in client.get_paginator("list_objects_v2").paginate(Bucket="canary"):
        for item in page.get("Contents", []):
            found[item["Key"].encode()] = client.get_object(Bucket="canary", Key=item["Key"])["Body"].read()
    return found


def check(written, caplog, folder):
    left = left_behind(folder)
    for what, secret in SECRETS.items():
        assert secret not in written, what
        assert secret not in caplog.text, what
        for name, body in left.items():
            assert secret.encode() not in name + body, (what, name)


@pytest.mark.parametrize(
    ("form", "output", "wanted"),
    [("text", "s3://canary/runs", 0), ("json", "runs", 0), ("json", f"s3://AKIA:{PASSWORD}@canary/runs", 2)],
)
def test_train(place, web, caplog, form, output, wanted):
    code, written = run(
        "--log", form, "train", configuration(web), *sets(*QUICK), "--output", output, "--json", "--debug"
    )
    assert code == wanted, written
    assert wanted or any(name.endswith(b"report.html") for name in left_behind(place))
    check(written, caplog, place)


def test_search_shards_and_scores_that_go_well(place, web, caplog):
    code, written = run("cv", configuration(web), *sets(*QUICK_CV), "--output", "s3://canary/cv", "--json")
    assert code == 0, written
    model = json.loads(written[written.index('{"run"') :].splitlines()[0])["run"] + "/model"
    for target in ("shards", "s3://canary/shards"):
        code, more = run("shard", rows_at(web), target, "--json", "--debug")
        assert code == 0, more
        written += more
    for data, target in ((rows_at(web), "scores"), ("s3://canary/shards", "s3://canary/scores")):
        code, more = run("score", model, data, target, "--debug")
        assert code == 0, more
        written += more
    check(written, caplog, place)


@pytest.mark.usefixtures("a_block")
@pytest.mark.parametrize("block", ["secret/mine", "secret/broken"])
def test_a_block(place, web, caplog, block):
    settings = sets(*QUICK, f"s3.block={block}")
    code, written = run("train", configuration(web), *settings, "--output", "s3://canary/block", "--debug")
    assert code == (0 if block == "secret/mine" else 2), written
    check(written, caplog, place)


FAILURES = {  # what is changed, and what the message says
    "no such bucket": ({"output": "s3://nosuchbucket/runs"}, "nosuchbucket"),
    "login refused": ({"AWS_ENDPOINT_URL": "http://{web}"}, "access denied"),
    "nobody there": ({"AWS_ENDPOINT_URL": f"http://user:{ENDPOINT}@127.0.0.1:1"}, "cannot"),
    "no such page": ({"name": "none.svm"}, "no such file"),
    "wrong password": ({"password": f"{PASSWORD}X"}, "401"),
    "of no format": ({"name": "rows.svm", "format": "csv"}, "rows.svm"),
}


CASES = [(command, failure) for command in ("train", "shard") for failure in FAILURES]
CASES += [(command, failure) for command in ("cv", "score") for failure in ("login refused", "no such page")]


@pytest.mark.parametrize(("command", "failure"), CASES)
def test_what_fails(place, web, endpoint, caplog, monkeypatch, command, failure):
    changes, named = FAILURES[failure]
    if "AWS_ENDPOINT_URL" in changes:
        monkeypatch.setenv("AWS_ENDPOINT_URL", changes["AWS_ENDPOINT_URL"].format(web=web))
    data = rows_at(web, changes.get("name", "rows.svm")).replace(PASSWORD, changes.get("password", PASSWORD))
    output = changes.get("output", "s3://canary/failed")
    form = {"format": changes["format"], "label": "y"} if "format" in changes else {"format": "svmlight"}
    if command in ("train", "cv"):
        config = configuration(web, data={"source": {"source": data} | form})
        settings = QUICK if command == "train" else QUICK_CV
        code, written = run(command, config, *sets(*settings), "--output", output, "--debug")
    else:
        model = ["s3://canary/model"] if command == "score" else []
        settings = [f"{key}={value}" for key, value in form.items()]
        code, written = run(command, *model, data, output, *sets(*settings), "--debug")
    assert code in (1, 2), written
    if command != "score":  # its model is looked for first
        assert named in written
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    check(written, caplog, place)


MISTAKES = {
    "a secret among the keys": f"s3.aws_secret_access_key={MISPLACED}",
    "a secret for a block": f"s3.block={MISPLACED}",
    "an endpoint that is none": f"s3.endpoint=[http://user:{MISPLACED}@host]",
    "a URL where a number is asked": f"blocks=http://user:{MISPLACED}@host",
    "a secret for a profile": "s3={profile: [" + MISPLACED + "]}",
    "broken YAML": f"s3.endpoint=[http://user:{MISPLACED}@host",
    "a file that is not there": f"cluster=http://user:{MISPLACED}@host/x.yaml",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_do_not_repeat_secrets(place, web, caplog, mistake):
    code, written = run("train", configuration(web), *sets(*QUICK, MISTAKES[mistake]), "--debug")
    assert code == 2, written
    check(written, caplog, place)


@pytest.fixture(scope="module")
def prefect_server(tmp_path_factory):
    """A real server with an empty home: what the tests of this process run with, and its folder."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [
        str(Path(sys.executable).with_name("prefect")),
        "server",
        "start",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with (folder / "output").open("wb") as written:
        running = subprocess.Popen(
            command, env=os.environ | {"PREFECT_HOME": str(folder)}, stdout=written, stderr=written
        )
        try:
            url = f"http://127.0.0.1:{port}/api"
            wait_for(f"{url}/health")
            yield folder, url
        finally:
            running.terminate()
            running.wait(60)


def wait_for(url):
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(url, timeout=1).close()
        time.sleep(0.2)
    raise TimeoutError(url)


IN_TURN = """
import json, sys
from flows.cli import app
for args in json.loads(sys.argv[1]):
    assert not app(args, standalone_mode=False)  # the exit code, if any
"""


def test_nothing_is_kept_by_prefect(place, web, caplog, prefect_server):
    folder, url = prefect_server
    output = ["--output", "s3://canary/prefect"]
    commands = {
        "train-auc": ["train", configuration(web), *sets(*QUICK), *output],
        "cross-validate": ["cv", configuration(web), *sets(*QUICK_CV), *output],
        "shard-data": ["shard", rows_at(web), "s3://canary/prefect-shards"],
    }
    # In a process of its own: Prefect settles early which server it talks to. In one for all: its start takes longest.
    environment = os.environ | {"PREFECT_API_URL": url, "PYTHONPATH": str(Path(__file__).parents[2])}
    line = [sys.executable, "-c", IN_TURN, json.dumps(list(commands.values()))]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    database = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for flow in commands:
        assert flow.encode() in database
    for what, secret in SECRETS.items():
        assert secret.encode() not in database, what
    check(done.stdout + done.stderr, caplog, place)
