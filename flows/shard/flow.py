"""The flow `shard-data`: the stages of sharding as Prefect tasks."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

from typing import Any

from prefect.artifacts import create_table_artifact
from prefect.logging import get_run_logger

from flows.orchestration.flow import data_name, flow
from flows.progress.json_log import follower
from flows.shard.config import ShardConfig
from flows.shard.run import shard
from flows.train.flow import as_task, rows_of


@flow(name="shard-data", flow_run_name=data_name)
def shard_data(config: ShardConfig) -> dict[str, Any]:
    """Write a data set as shards: rows in random order, each shard with its share of the positives.

    Parameters
    ----------
    config : ShardConfig

    Returns
    -------
    dict
        What ``aucdist shard --json`` prints.
    """
    result = shard(config, follower(get_run_logger().info), as_task)
    create_table_artifact([rows_of(result)], key="shard-data-table", description=f"Shards at {result['target']}")
    return result
