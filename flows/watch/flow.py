"""The flow `watch`: the stages of watching as Prefect tasks, with an artifact, and an event where something has moved."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

from prefect.artifacts import create_markdown_artifact
from prefect.events import emit_event
from prefect.logging import get_run_logger

from aucdist.data.storage.files import shown
from aucdist.report.text import Json
from aucdist.store.history import split_version
from flows.orchestration.flow import flow
from flows.orchestration.tasks import run_as_task
from flows.progress.console import log_observer
from flows.watch import run
from flows.watch.config import WatchConfig

ALARM, NIGHT_ALARM = "aucdist.watch.alarm", "aucdist.keep-current.alarm"
"""The events of a batch with alarms: of a watch by itself, by which an automation may start `keep-current` (see
`prefect.yaml`), and of `keep-current`, which must not start itself again."""


@flow(name="watch")
def watch(config: WatchConfig) -> Json:
    """Compare a batch with the training rows, and labels of a batch with what the run promised."""
    result = run.watch(config, log_observer(get_run_logger().info), run_as_task)
    report_alarms(result, config.model, ALARM)
    return result


def report_alarms(result: Json, model: str, event: str) -> None:
    """Make what was found an artifact, and emit an event if there are alarms.

    The resource of the event has the label ``aucdist.model``, the name of the folder of the model.
    """
    lines = run.watch_lines(result)
    create_markdown_artifact(
        "\n".join(f"* {line}" for line in lines), key="watch", description=f"Batch {result['batch']}"
    )
    if result["alarms"]:
        url = shown(split_version(model)[0])
        resource = {
            "prefect.resource.id": f"aucdist.model.{url}", "prefect.resource.name": url, "aucdist.model": url.rpartition("/")[2],
        }  # fmt: skip
        payload = {key: result[key] for key in ("batch", "version", "rows", "alarms", "page")}
        emit_event(event, resource, payload=payload)
