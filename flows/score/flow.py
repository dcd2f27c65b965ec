"""The flow `score`: the stages of batch scoring as Prefect tasks."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

from typing import Any

from prefect.artifacts import create_table_artifact
from prefect.logging import get_run_logger

from flows.orchestration.flow import data_name, flow
from flows.progress.json_log import follower
from flows.score.config import ScoreConfig
from flows.score.run import score as score_by
from flows.train.flow import as_task, rows_of


@flow(name="score", flow_run_name=data_name)
def score(config: ScoreConfig) -> dict[str, Any]:
    """Score the rows of a data set by a model.

    Parameters
    ----------
    config : ScoreConfig

    Returns
    -------
    dict
        What ``aucdist score --json`` prints.
    """
    result = score_by(config, follower(get_run_logger().info), as_task)
    create_table_artifact([rows_of(result)], key="score-table", description=f"Scores at {result['output']}")
    return result
