"""The flows `shard-data` and `score` on a real Prefect server: the same bytes as the plain runs, and artifacts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import contents

from flows.progress.console import LineObserver
from flows.score import run as scoring
from flows.score.config import ScoreConfig
from flows.shard import run as sharding
from flows.shard.config import ShardConfig
from flows.train.config import load_train
from flows.train.run import train

QUIET = LineObserver(lambda text: None)


@pytest.fixture(scope="module")
def server() -> Iterator[None]:
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        yield


@pytest.mark.usefixtures("server")
def test_flows_agree_with_the_plain_runs(tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    from flows.score.flow import score
    from flows.shard.flow import shard_data

    def shard_config(target: str) -> ShardConfig:
        return ShardConfig(name="digits", target=str(tmp_path / target), rows_per_shard=500)

    by_flow, plain = shard_data(shard_config("a")), sharding.shard(shard_config("b"), QUIET)
    assert by_flow["manifest"] == plain["manifest"]
    assert contents(tmp_path / "a") == contents(tmp_path / "b")

    settings = ["cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01", "data.test=null"]
    model = train(load_train("digits", settings, str(tmp_path / "runs")), QUIET)["run"] + "/model"

    def score_config(output: str) -> ScoreConfig:
        return ScoreConfig(name="digits", model=model, output=str(tmp_path / output))

    assert score(score_config("c"))["rows"] == scoring.score(score_config("d"), QUIET)["rows"] == 1797
    assert contents(tmp_path / "c")["part-00000.parquet"] == contents(tmp_path / "d")["part-00000.parquet"]
    with get_client(sync_client=True) as client:
        artifacts = {a.key for a in client.read_artifacts()}
        tasks = {run.name.rsplit("-", 1)[0] for run in client.read_task_runs()}
    assert {"shard-data-table", "score-table"} <= artifacts
    assert {"survey", "route", "write shards", "commit", "score"} <= tasks
