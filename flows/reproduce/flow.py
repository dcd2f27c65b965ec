"""The flow `reproduce`: a paper's tables and figures, with a table artifact for each table."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

from typing import Any

from prefect.artifacts import create_table_artifact
from prefect.logging import get_run_logger

from flows.orchestration.flow import flow
from flows.progress.json_log import log_observer
from flows.reproduce import run
from flows.reproduce.config import Paper


@flow(name="reproduce", flow_run_name="reproduce-{config.paper}")
def reproduce_paper(config: Paper) -> dict[str, Any]:
    """Run a paper's experiments; a flow that is started again goes on where the last one was.

    Parameters
    ----------
    config : Paper

    Returns
    -------
    dict
        What ``aucdist reproduce --json`` prints.
    """
    result = run.reproduce(config, log_observer(get_run_logger().info))
    for name, counts in result["tables"].items():
        key = f"reproduce-{config.paper}-{name}".lower().replace("_", "-").replace(".", "-")
        figures = [{k: v for k, v in counts.items() if not isinstance(v, list)}]
        create_table_artifact(figures, key=key, description=f"{config.title}, {name}, against the printed figures")
    return result
