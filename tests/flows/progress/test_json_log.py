"""The log as lines of JSON: what is in each, that nothing else is on stderr, and how it is asked for."""

import json
import math
from datetime import datetime, timedelta

import numpy as np
import pytest
from support.command_line import run, sets

from aucdist.errors import InputError
from flows.progress import FLOW_RUN, JsonLineObserver, LineObserver, log_format, log_observer

QUICK = ["cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01"]
ROUND = {"round": 3, "passes": 7, "seconds": 0.5, "primal": 0.25, "dual": -math.inf, "relative_gap": math.nan}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("AUCDIST_LOG", "")  # put back afterwards, whatever --log makes of it


def entries(text):
    return [json.loads(line) for line in text.splitlines()]


def test_every_event_is_an_object_that_names_run_and_stage():
    lines = []
    observer = JsonLineObserver(lines.append)
    observer.about({"run": "a-run"})
    observer.stage("fit")
    observer.round(ROUND, 1e-3)
    observer.tasks(1, 4, 0, "best\nso far")
    observer.note("a \ud800 note")
    first, *others = map(json.loads, lines)
    assert (first["event"], first["run"]) == ("about", "a-run")
    assert [other["event"] for other in others] == ["stage", "round", "tasks", "note"]
    assert all((other["run"], other["stage"]) == ("a-run", "fit") for other in others)
    assert {k: others[1][k] for k in (*ROUND, "tol")} == ROUND | {"tol": 1e-3, "dual": None, "relative_gap": None}
    assert (others[2]["total"], others[2]["best"], others[2]["seconds_left"]) == (4, "best\nso far", None)
    assert not any("\n" in line for line in lines)
    assert datetime.fromisoformat(first["time"]).utcoffset() == timedelta(0)


def test_numbers_of_numpy_are_numbers_and_the_run_of_a_deployment_is_named(monkeypatch):
    monkeypatch.setenv(FLOW_RUN, "0123")
    lines = []
    JsonLineObserver(lines.append).about({"rows": np.int64(3), "gap": np.float32(0.5), "none": np.float64("inf")})
    entry = json.loads(lines[0])
    assert (entry["rows"], entry["gap"], entry["none"], entry["flow_run"]) == (3, 0.5, None, "0123")


def test_the_environment_decides(monkeypatch):
    assert (log_format(), type(log_observer(print))) == ("text", LineObserver)
    monkeypatch.setenv("AUCDIST_LOG", "json")
    assert type(log_observer(print)) is JsonLineObserver
    monkeypatch.setenv("AUCDIST_LOG", "yaml")
    with pytest.raises(InputError, match=r"unknown AUCDIST_LOG 'yaml'\. Allowed: text, json"):
        log_observer(print)


@pytest.mark.parametrize("by", ["option", "environment"])
def test_train(by, tmp_path, monkeypatch):
    if by == "environment":
        monkeypatch.setenv("AUCDIST_LOG", "json")
    options = ["--log", "json"] * (by == "option")
    stdout, stderr = run(*options, "train", "digits", *sets(*QUICK), "--output", tmp_path, "--json")
    result, log = json.loads(stdout), entries(stderr)
    assert {entry["run"] for entry in log} == {result["run"].rpartition("/")[2]}
    stages = [entry["stage"] for entry in log if entry["event"] == "stage"]
    assert stages == ["open data", "partition", "fit", "evaluate", "profile", "baselines", "publish"]
    rounds = [entry for entry in log if entry["event"] == "round"]
    assert [entry["round"] for entry in rounds] == list(range(1, len(rounds) + 1))
    assert rounds[-1]["primal"] == result["certificate"]["primal"]
    assert rounds[-1]["passes"] == result["passes"]
    (size,) = [entry for entry in log if "bytes" in entry]
    assert (size["rows"], size["features"]) == (result["n_samples"], result["n_features"])
    times = [entry["time"] for entry in log]
    assert times == sorted(times)


def test_search_shards_and_scores(tmp_path):
    cv = ["cluster=none", "folds.number=2", "folds.repeats=1", "nested=null", "model.tol=0.1", "grid.lam=[1.0, 0.1]"]
    stdout, stderr = run("--log", "json", "cv", "digits", *sets(*cv), "--output", tmp_path, "--json")
    done = [(e["done"], e["total"]) for e in entries(stderr) if e["event"] == "tasks"]
    assert done[-1] == (2, 2)
    model = json.loads(stdout)["run"] + "/model"
    for command in (["shard", "digits", tmp_path / "s"], ["score", model, "digits", tmp_path / "scores"]):
        log = entries(run("--log", "json", *command)[1])
        assert {"stage", "tasks"} <= {entry["event"] for entry in log}


def test_errors_are_of_the_same_form(tmp_path):
    (entry,) = entries(run("--log", "json", "train", "nosuch", code=2)[1])
    assert (entry["event"], entry["exit"]) == ("error", 2)
    assert "unknown configuration 'nosuch'" in entry["text"]
    assert run("train", "nosuch", code=2)[1].startswith('{"time"')  # it is the environment's now


def test_another_form_is_refused_at_once():
    stdout, stderr = run("--log", "yaml", "data", "list", code=2)
    assert stdout == ""
    assert "'yaml'. Allowed: text, json" in stderr
