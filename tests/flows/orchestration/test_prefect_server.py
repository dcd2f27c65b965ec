"""A Prefect server that is not there, speaks another version or wants a password: one clear message, soon, and exit code 2."""

import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.command_line import refused, sets

from flows.data_sets import ShardConfig
from flows.orchestration import flows as hooks
from flows.score import ScoreConfig
from flows.train.config import TrainConfig


@contextmanager
def server(version: str, status: int = 200) -> Iterator[str]:
    """Run something that answers as a Prefect server of this version does, or refuses with this status; give its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(version if self.path.endswith("version") else True).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}/api"
        finally:
            running.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("version", "status", "message"),
    [
        ("", 0, r"no Prefect server answers at http://127.0.0.1:1/api. Start one with `aucdist up`"),
        ("2.20.1", 200, r"the Prefect server and the installed Prefect have incompatible versions.*server: 2\.20\.1"),
        ("3.8.8", 401, r"Prefect's server does not accept PREFECT_API_AUTH_STRING \(user:"),
    ],
)
def test_server_that_does_not_fit_is_named(version, status, message, tmp_path, monkeypatch):
    from prefect.settings import PREFECT_API_URL, temporary_settings

    monkeypatch.setattr("flows.command.quiet_prefect_log", lambda debug: None)  # it changes the log for good
    there = server(version, status) if version else nullcontext("http://127.0.0.1:1/api")
    with there as url, temporary_settings({PREFECT_API_URL: url}):
        monkeypatch.setenv("PREFECT_API_URL", url)
        said = refused("train", "digits", *sets("cluster=none"), "--output", tmp_path)
    assert re.search(f"error: {message}", " ".join(said.split()))
    assert list(tmp_path.iterdir()) == []


# ---- what flows have in common on Prefect: names of runs, and clusters of runs that were killed


def named(monkeypatch: pytest.MonkeyPatch, name: Any, flow: str, config: Any) -> str:
    monkeypatch.setattr(hooks, "this_run", SimpleNamespace(parameters={"config": config}, flow_name=flow))
    return str(name())


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({}, "a9a-all-pairs-lam1e-3"),
        ({"lam": 2.5e-4, "solver": "sdcd"}, "a9a-sdcd-lam2.5e-4"),
        ({"estimator": "PairwiseSquareClassifier", "solver": "exact", "lam": 10}, "a9a-exact-lam1e+1"),
    ],
)
def test_run_is_named_after_data_solver_and_lam(model, name, monkeypatch):
    config = TrainConfig.model_validate({"name": "a9a", "data": {"name": "digits"}, "model": model})
    assert named(monkeypatch, hooks.training_run_name, "train-auc", config) == name


def test_run_is_named_after_flow_and_data(monkeypatch: pytest.MonkeyPatch) -> None:
    source = {"source": "s3://bucket/day/clicks.tar.gz", "format": "parquet", "label": "y", "positive": "minority"}
    score = ScoreConfig.model_validate({"source": source, "model": "m", "output": "o"})
    shard = ShardConfig.model_validate({"name": "digits", "target": "t"})
    assert named(monkeypatch, hooks.data_run_name, "score", score) == "score-clicks"
    assert named(monkeypatch, hooks.data_run_name, "shard-data", shard) == "shard-data-digits"


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_short_number_is_the_number(number: float) -> None:
    assert float(hooks.short(number)) == number


def freed(monkeypatch: pytest.MonkeyPatch, parameters: dict[str, Any]) -> list[tuple[str, str]]:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(
        "flows.compute.kubernetes.remove_clusters_of", lambda namespace, run: asked.append((namespace, run)) or ["c"]
    )
    monkeypatch.setattr(hooks, "flow_run_logger", lambda run: SimpleNamespace(info=lambda *_: None))
    run: Any = SimpleNamespace(id="u", parameters=parameters)
    hooks.free_cluster(flow=None, flow_run=run, state=None)  # type: ignore[arg-type]  # as the Job of a cancelled run does
    return asked


def test_cluster_of_a_run_that_was_killed_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"kind": "kubernetes", "image": "i", "scratch": "s3://b/s", "namespace": "here"}
    assert freed(monkeypatch, {"config": {"cluster": cluster}}) == [("here", "u")]
    assert freed(monkeypatch, {"config": {"train": {"cluster": cluster}}}) == [("here", "u")]  # keep-current


@pytest.mark.parametrize("parameters", [{}, {"config": {}}, {"config": {"cluster": {"kind": "local"}}}])
def test_other_runs_have_nothing_to_free(parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert freed(monkeypatch, parameters) == []
