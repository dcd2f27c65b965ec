"""Secrets that a run is given by every way there is, and where to look for them afterwards."""

import functools
import json
import os
from pathlib import Path

import boto3

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


def rows_at(web, name="rows.svm"):
    """Return the address of rows, with a password and a token."""
    return f"http://user:{PASSWORD}@{web}/web/{name}?token={QUERY}"


def configuration(web, **more):
    """Write a configuration of both kinds of training, and return its path."""
    source = {"format": "svmlight", "source": rows_at(web), "note": "of a test"}
    path = Path(f"canary{len(more)}.yaml")
    path.write_text(json.dumps({"name": "canary", "data": {"source": source, "test": {"fraction": 0.3}}, **more}))
    return str(path)


@functools.cache
def client_of(endpoint):
    """Return a client of a mock of S3; the first one reads botocore's descriptions of the service."""
    return boto3.session.Session("AKIACANARY", KEY, region_name="us-east-1").client("s3", endpoint_url=endpoint)


def left_behind(folder):
    """Return the names and contents of all files and objects, but for the configurations that are given."""
    content_of = {str(path).encode(): path.read_bytes() for path in folder.glob("*/**/*") if path.is_file()}
    client = client_of(os.environ["AWS_ENDPOINT_URL"])
    for page in client.get_paginator("list_objects_v2").paginate(Bucket="canary"):
        for item in page.get("Contents", []):
            content_of[item["Key"].encode()] = client.get_object(Bucket="canary", Key=item["Key"])["Body"].read()
    return content_of


def check(written, caplog, folder):
    """Check that no secret is in what a command wrote, in the log, or in what it left behind."""
    left = left_behind(folder)
    for what, secret in SECRETS.items():
        assert secret not in written, what
        assert secret not in caplog.text, what
        for name, body in left.items():
            assert secret.encode() not in name + body, (what, name)
