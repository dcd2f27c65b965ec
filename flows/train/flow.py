"""The flow `train-auc`: the stages of a training run as Prefect tasks."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

from typing import Any

from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.logging import get_run_logger

from flows.orchestration.artifacts import create_roc_artifact, flat_row, summary_markdown
from flows.orchestration.flow import flow, training_run_name
from flows.orchestration.tasks import run_as_task
from flows.progress.console import log_observer
from flows.train import run
from flows.train.config import TrainConfig


@flow(name="train-auc", flow_run_name=training_run_name)
def train_auc(config: TrainConfig) -> dict[str, Any]:
    """Train a model, evaluate it and write the run folder."""
    result = run.train(config, log_observer(get_run_logger().info), run_as_task)
    create_markdown_artifact(summary_markdown(result), key="train-auc-summary", description=f"Summary of {config.name}")
    create_table_artifact([flat_row(result)], key="train-auc-table", description=f"Figures of {config.name}")
    create_roc_artifact(result, key="train-auc-roc", description=f"ROC curve of {config.name}")
    return result
