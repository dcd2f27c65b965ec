"""The flow `shard-data`: the stages of sharding as Prefect tasks."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

from typing import Any

from prefect.artifacts import create_table_artifact
from prefect.logging import get_run_logger

from flows.orchestration.artifacts import flat_row
from flows.orchestration.flow import data_run_name, flow
from flows.orchestration.tasks import run_as_task
from flows.progress.console import log_observer
from flows.shard import run
from flows.shard.config import ShardConfig


@flow(name="shard-data", flow_run_name=data_run_name)
def shard_data(config: ShardConfig) -> dict[str, Any]:
    """Write a data set as shards: rows in random order, each shard with its share of the positives."""
    result = run.shard(config, log_observer(get_run_logger().info), run_as_task)
    create_table_artifact([flat_row(result)], key="shard-data-table", description=f"Shards at {result['target']}")
    return result
