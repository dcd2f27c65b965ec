"""The flow `keep-current`: a night of a model in service as Prefect tasks."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

from typing import Any

from prefect.artifacts import create_markdown_artifact
from prefect.logging import get_run_logger

from flows.keep_current import run
from flows.keep_current.config import KeepCurrentConfig
from flows.orchestration.flow import flow
from flows.orchestration.tasks import run_as_task
from flows.progress.console import log_observer
from flows.promote.store import promotion_lines
from flows.watch.flow import NIGHT_ALARM, report_alarms


@flow(name="keep-current", retries=1, retry_delay_seconds=60)
def keep_current(config: KeepCurrentConfig) -> dict[str, Any]:
    """Train on the newest rows, replace the version in use where the condition holds, and score and watch the new rows.

    Returns what ``aucdist keep-current --json`` prints.
    """
    result = run.keep_current(config, log_observer(get_run_logger().info), run_as_task)
    lines = "\n".join(f"* {line}" for line in promotion_lines(result["promotion"]))
    create_markdown_artifact(lines, key="keep-current", description=f"The model at {result['store']}")
    if result["watched"] is not None:
        report_alarms(result["watched"], config.store, NIGHT_ALARM)
    return result
