"""The flow `reproduce`: a paper's tables and figures, with a table artifact for each experiment."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

from typing import Any

from prefect.artifacts import create_table_artifact
from prefect.logging import get_run_logger

from flows.orchestration.flow import flow
from flows.progress.console import log_observer
from flows.reproduce import run
from flows.reproduce.config import Paper
from flows.reproduce.page import summary_entries


@flow(name="reproduce", flow_run_name="reproduce-{config.paper}")
def reproduce_paper(config: Paper) -> dict[str, Any]:
    """Run a paper's experiments. Run it again to resume after an interruption."""
    result = run.reproduce(config, log_observer(get_run_logger().info))
    for name, summary in result["tables"].items():
        key = f"reproduce-{config.paper}-{name}".lower().replace("_", "-").replace(".", "-")
        rows = [{"quantity": quantity, "result": text} for quantity, text in summary_entries(summary)]
        create_table_artifact(rows, key=key, description=f"{config.title}, {name}, compared with the printed figures")
    return result
