"""The flow `cross-validate`: the stages of a search as Prefect tasks, with progress, verdict, table and ROC as artifacts."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

from typing import Any
from uuid import UUID

from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.logging import get_run_logger

from aucdist.report.text import certificate_text, search_verdict
from flows.cv import run
from flows.cv.config import CvConfig
from flows.orchestration.artifacts import create_roc_artifact, summary_markdown
from flows.orchestration.flow import flow
from flows.orchestration.tasks import run_as_task
from flows.progress.console import ForwardingObserver, RunObserver, Tasks, log_observer


class ArtifactObserver(ForwardingObserver):
    """Shows the progress of a search as a progress artifact, and forwards everything to another observer."""

    def __init__(self, observer: RunObserver, name: str) -> None:
        super().__init__(observer)
        self._name = name
        self._artifact: UUID | None = None

    def tasks(self, tasks: Tasks) -> None:
        """Update the artifact."""
        super().tasks(tasks)
        percent = 100.0 * tasks.done / max(tasks.total, 1)
        if self._artifact is None:
            made = create_progress_artifact(percent, key="cross-validate-progress", description=f"Search {self._name}")
            self._artifact = made  # type: ignore[assignment]  # not awaited where nothing is async
        else:
            update_progress_artifact(self._artifact, percent, description=f"Search {self._name}: {tasks.line()}")


@flow(name="cross-validate", flow_run_name="cross-validate-{config.name}")
def cross_validate(config: CvConfig) -> dict[str, Any]:
    """Choose parameters by cross-validation, fit all training rows with them, and write the run folder."""
    observer = ArtifactObserver(log_observer(get_run_logger().info), config.name)
    result = run.cross_validate(config, observer, run_as_task)
    create_markdown_artifact(markdown_of(result), key="cross-validate-verdict", description=f"Verdict on {config.name}")
    create_table_artifact(table_of(result), key="cross-validate-table", description=f"Settings of {config.name}")
    refit = result["refit"] | {"run": result["run"]}
    create_roc_artifact(refit, key="cross-validate-roc", description=f"ROC curve of {config.name}")
    return result


def markdown_of(result: dict[str, Any]) -> str:
    """Return the verdict of a search in Markdown."""
    lines = [search_verdict(result), ""]
    if "certificate" in result["refit"]:  # several classes have one each, in the report
        lines += [f"All training rows: the objective is {certificate_text(result['refit']['certificate'])}.", ""]
    return "\n".join([*lines, summary_markdown({**result["refit"], "run": result["run"]})])


def table_of(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the settings of a search with their scores, a row for each."""
    return [
        row["parameters"] | {"mean": row["mean"], "deviation": row["deviation"], "passes": row["passes"]}
        | ({"features kept": row["features_kept"]} if "features_kept" in row else {})
        | {f"fold {i}": value for i, value in enumerate(row["folds"], start=1)} | {"errors": "; ".join(row["errors"])}
        for row in result["table"]
    ]  # fmt: skip
