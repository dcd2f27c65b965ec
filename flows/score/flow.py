"""The flow `score`: the stages of batch scoring as Prefect tasks."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

from typing import Any

from prefect.artifacts import create_table_artifact
from prefect.logging import get_run_logger

from flows.orchestration.artifacts import flat_row
from flows.orchestration.flow import data_run_name, flow
from flows.orchestration.tasks import run_as_task
from flows.progress.console import log_observer
from flows.score import run
from flows.score.run import ScoreConfig


@flow(name="score", flow_run_name=data_run_name)
def score(config: ScoreConfig) -> dict[str, Any]:
    """Score the rows of a data set by a model."""
    result = run.score(config, log_observer(get_run_logger().info), run_as_task)
    counts = {what: sum(result[what].values()) for what in ("missing", "unknown")}
    create_table_artifact([flat_row(result | counts)], key="score-table", description=f"Scores at {result['output']}")
    return result
