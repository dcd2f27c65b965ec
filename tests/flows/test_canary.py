"""Secrets that a run is given, by every way there is, appear in nothing that it writes, however it ends."""

import json

import pytest
from click.testing import CliRunner
from support.canary import (
    BLOCK,
    ENDPOINT,
    MISPLACED,
    PASSWORD,
    QUICK,
    QUICK_CV,
    check,
    configuration,
    left_behind,
    rows_at,
)
from support.command_line import sets
from support.prefect_servers import have_blocks

from flows.cli import app

KEYS = {"aws_access_key_id": "AKIABLOCK", "aws_secret_access_key": BLOCK}
BLOCKS = {("secret", "mine"): {"value": KEYS}, ("secret", "broken"): {"value": f"no JSON: {BLOCK}"}}


def run(*args):
    result = CliRunner().invoke(app, list(args))
    return result.exit_code, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("form", "output", "expected"),
    [("text", "s3://canary/runs", 0), ("json", "runs", 0), ("json", f"s3://AKIA:{PASSWORD}@canary/runs", 2)],
)
def test_train(place, web, caplog, form, output, expected):
    code, written = run(
        "--log", form, "train", configuration(web), *sets(*QUICK), "--output", output, "--json", "--debug"
    )
    assert code == expected, written
    assert expected or any(name.endswith(b"report.html") for name in left_behind(place))
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


@pytest.mark.parametrize("block", ["secret/mine", "secret/broken"])
def test_a_block(place, web, caplog, monkeypatch, block):
    have_blocks(monkeypatch, BLOCKS)
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
def test_the_canary_names_what_failed(place, web, endpoint, caplog, monkeypatch, command, failure):
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
