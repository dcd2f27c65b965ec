"""The flow `train-auc`: the stages of a training run as Prefect tasks."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

import base64
from collections.abc import Callable
from typing import Any

from prefect import task
from prefect.artifacts import create_image_artifact, create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.logging import get_run_logger
from prefect.tasks import Task

from aucdist.report.plots import roc_curves, standalone_svg
from aucdist.report.text import summary_rows
from flows.orchestration.flow import flow, trained_name
from flows.progress.json_log import follower
from flows.train import run as pipeline
from flows.train.config import TrainConfig
from flows.train.publish import scored_rows

# Only these are worth another try.
READS_OR_WRITES = (
    "open data", "publish", "look for finished shards", "survey", "route", "write shards", "commit", "score",
)  # fmt: skip


@flow(name="train-auc", flow_run_name=trained_name)
def train_auc(config: TrainConfig) -> dict[str, Any]:
    """Train a model, evaluate it and write the run folder.

    Parameters
    ----------
    config : TrainConfig

    Returns
    -------
    dict
        What ``aucdist train --json`` prints.
    """
    logger = get_run_logger()
    result = pipeline.train(config, follower(logger.info), as_task)
    create_markdown_artifact(markdown_of(result), key="train-auc-summary", description=f"Summary of {config.name}")
    create_table_artifact([rows_of(result)], key="train-auc-table", description=f"Figures of {config.name}")
    show_roc(result, key="train-auc-roc", description=f"ROC curve of {config.name}")
    return result


def as_task(name: str, stage: Callable[..., Any], *args: Any) -> Any:
    """Run a stage as a Prefect task.

    Its arguments go round Prefect, which would walk through them, and its result stays in memory: both hold rows.
    """

    def body() -> Any:
        return stage(*args)

    body.__doc__ = stage.__doc__
    retries = 2 if name in READS_OR_WRITES else 0
    of_prefect = task(
        name=name, retries=retries, retry_delay_seconds=1, retry_condition_fn=_worth_a_retry,
        cache_policy=NO_CACHE, persist_result=False,
    )  # fmt: skip
    return of_prefect(body)()


def _worth_a_retry(task: Task[..., Any], run: TaskRun, state: State[Any]) -> bool:
    """Tell a store that failed (try again) from input that is wrong (do not)."""
    try:
        state.result(raise_on_failure=True)
    except OSError:
        return True
    except Exception:
        return False
    return False


def show_roc(result: dict[str, Any], key: str, description: str) -> None:
    """Make the test ROC curve of a run an image artifact; a run without test rows has none."""
    if result["metrics"]["test_auc"] is None:
        return
    counts = scored_rows(result["run"])
    svg = standalone_svg("roc", roc_curves([("test", counts)], log_x=False))
    image = base64.b64encode(svg.encode()).decode()
    create_image_artifact(f"data:image/svg+xml;base64,{image}", key=key, description=description)


def rows_of(result: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a run in one row, without nesting."""
    flat = {k: v for k, v in result.items() if not isinstance(v, dict)}
    nested = {k: v for k, v in result.items() if isinstance(v, dict)}
    return flat | {k: v for part in nested.values() for k, v in part.items()}


def markdown_of(result: dict[str, Any]) -> str:
    """Return the summary of a run in Markdown."""
    rows = [f"| {label} | {value} |" for label, value in summary_rows(result)]
    return "\n".join(["| | |", "|---|---|", *rows]) + "\n"
