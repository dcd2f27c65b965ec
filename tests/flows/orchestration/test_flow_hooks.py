"""What flows have in common on Prefect: names of runs, and clusters of runs that were killed."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.orchestration import flows as hooks
from flows.score import ScoreConfig
from flows.shard import ShardConfig
from flows.train.config import TrainConfig


def named(monkeypatch: pytest.MonkeyPatch, name: Any, flow: str, config: Any) -> str:
    monkeypatch.setattr(hooks, "this_run", SimpleNamespace(parameters={"config": config}, flow_name=flow))
    found: str = name()
    return found


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({}, "a9a-all-pairs-lam1e-3"),
        ({"lam": 2.5e-4, "solver": "sdcd"}, "a9a-sdcd-lam2.5e-4"),
        ({"estimator": "PairwiseSquareClassifier", "solver": "exact", "lam": 10}, "a9a-exact-lam1e+1"),
    ],
)
def test_run_is_named_after_data_solver_and_lam(
    model: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        "flows.compute.kubernetes.lifecycle.remove_clusters_of",
        lambda namespace, run: asked.append((namespace, run)) or ["c"],
    )
    monkeypatch.setattr(hooks, "flow_run_logger", lambda run: SimpleNamespace(info=lambda *_: None))
    run: Any = SimpleNamespace(id="u", parameters=parameters)
    hooks.free_cluster(flow=None, flow_run=run, state=None)  # type: ignore[arg-type]  # as the Job of a cancelled run does
    return asked


def test_cluster_of_a_run_that_was_killed_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"kind": "kubernetes", "image": "i", "scratch": "s3://b/s", "namespace": "here"}
    assert freed(monkeypatch, {"config": {"cluster": cluster}}) == [("here", "u")]


@pytest.mark.parametrize("parameters", [{}, {"config": {}}, {"config": {"cluster": {"kind": "local"}}}])
def test_other_runs_have_nothing_to_free(parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert freed(monkeypatch, parameters) == []
