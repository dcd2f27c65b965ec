"""The Prefect flows: each calls the plain function of a command, whose stages become tasks, and makes artifacts of its result."""

# No `from __future__ import annotations` here: Prefect reads the types of the parameters to make its form.

import base64
import logging
from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np
import prefect
from prefect.artifacts import (
    create_image_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import FlowRun, State
from prefect.events import emit_event
from prefect.flows import Flow
from prefect.logging import get_run_logger
from prefect.logging.loggers import flow_run_logger
from prefect.runtime import flow_run as this_run

from aucdist.data.storage.files import shown
from aucdist.errors import InputError, Json
from aucdist.report.plots import roc_curves, standalone_svg
from aucdist.report.text import certificate_text, search_verdict, summary_rows
from aucdist.store import split_store_url
from flows import keep_current as keeping, score as scoring, shard as sharding, watch as watching
from flows.cv import run as searching
from flows.cv.config import CvConfig
from flows.keep_current import KeepCurrentConfig
from flows.model_store import promotion_lines
from flows.progress import RunObserver, log_observer, tasks_line
from flows.reproduce import run as reproducing
from flows.reproduce.page import summary_entries
from flows.reproduce.run import Paper
from flows.run_folder.folder import fit_name, read_scores, table_counts
from flows.score import ScoreConfig
from flows.shard import ShardConfig
from flows.train import run as training
from flows.train.config import TrainConfig
from flows.watch import WatchConfig

DAY = 24 * 3600.0
ALARM = "aucdist.watch.alarm"
"""The event of a watch of a batch with alarms. An automation may start `keep-current` by it (see `prefect.yaml`)."""
KEEP_CURRENT_ALARM = "aucdist.keep-current.alarm"
"""The event of such a watch within `keep-current`, which must not start itself again."""


def free_cluster(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Remove the Kubernetes clusters of a run that could not do so itself: it was killed, or lost its machine.

    Prefect calls this both by position and with these names.
    """
    config = flow_run.parameters.get("config") or {}
    cluster = config.get("train", config).get("cluster")  # keep-current has that of its training
    if not isinstance(cluster, dict) or cluster.get("kind") != "kubernetes":
        return
    from flows.compute.kubernetes import remove_clusters_of
    from flows.config.cluster import KubernetesConfig

    removed = remove_clusters_of(KubernetesConfig.model_validate(cluster).namespace, str(flow_run.id))
    flow_run_logger(flow_run).info("removed clusters that the run had left: %s", ", ".join(removed) or "none")


for _name in ("prefect.flow_runs", "prefect.task_runs"):
    # Prefect's engine logs no traceback of wrong input: the message is in the record of the final state, which follows. All other
    # exceptions keep theirs.
    logging.getLogger(_name).addFilter(
        lambda record: record.exc_info is None or not isinstance(record.exc_info[1], InputError)
    )
flow = partial(
    prefect.flow, persist_result=False, timeout_seconds=DAY, on_cancellation=[free_cluster], on_crashed=[free_cluster]
)
"""A decorator that makes a flow with the options that all flows share."""


def training_run_name() -> str:
    """Return the name of a run that fits a model, such as ``a9a-all-pairs-lam1e-3``."""
    config: Any = this_run.parameters["config"]
    return fit_name(config.name, config.model, short)


def data_run_name() -> str:
    """Return the name of a run that reads a data set, such as ``score-a9a``."""
    config: Any = this_run.parameters["config"]
    first = shown(config.name or config.source.urls()[0])
    return f"{this_run.flow_name}-{PurePosixPath(first).name.partition('.')[0]}"


def short(number: float) -> str:
    """Return a number in short form, such as 1e-3 or 2.5e-4."""
    return str(np.format_float_scientific(number, trim="-", exp_digits=1))


@flow(name="train-auc", flow_run_name=training_run_name)
def train_auc(config: TrainConfig) -> Json:
    """Train a model, evaluate it and write the run folder."""
    result = training.train(config, FlowObserver())
    create_markdown_artifact(summary_markdown(result), key="train-auc-summary", description=f"Summary of {config.name}")
    create_table_artifact([flat_row(result)], key="train-auc-table", description=f"Figures of {config.name}")
    create_roc_artifact(result, key="train-auc-roc", description=f"ROC curve of {config.name}")
    return result


@flow(name="cross-validate", flow_run_name="cross-validate-{config.name}")
def cross_validate(config: CvConfig) -> Json:
    """Choose parameters by cross-validation, fit all training rows with them, and write the run folder."""
    result = searching.cross_validate(config, FlowObserver(config.name))
    create_markdown_artifact(markdown_of(result), key="cross-validate-verdict", description=f"Verdict on {config.name}")
    create_table_artifact(settings_table(result), key="cross-validate-table", description=f"Settings of {config.name}")
    create_roc_artifact(result["refit"], key="cross-validate-roc", description=f"ROC curve of {config.name}")
    return result


@flow(name="shard-data", flow_run_name=data_run_name)
def shard_data(config: ShardConfig) -> Json:
    """Write a data set as shards: rows in random order, each shard with its share of the positives."""
    result = sharding.shard(config, FlowObserver())
    create_table_artifact([flat_row(result)], key="shard-data-table", description=f"Shards at {result['target']}")
    return result


@flow(name="score", flow_run_name=data_run_name)
def score(config: ScoreConfig) -> Json:
    """Score the rows of a data set by a model."""
    result = scoring.score(config, FlowObserver())
    counts = {kind: sum(result[kind].values()) for kind in ("missing", "unknown")}
    create_table_artifact([flat_row(result | counts)], key="score-table", description=f"Scores at {result['output']}")
    return result


@flow(name="watch")
def watch(config: WatchConfig) -> Json:
    """Compare a batch with the training rows, and the metrics of labelled rows with those on the test rows of the run."""
    result = watching.watch(config, FlowObserver())
    report_alarms(result, config.model, ALARM)
    return result


@flow(name="keep-current", retries=1, retry_delay_seconds=60)
def keep_current(config: KeepCurrentConfig) -> Json:
    """Train on the newest rows, replace the version in use where the condition holds, and score and watch the new rows.

    Returns what ``aucdist keep-current --json`` prints.
    """
    result = keeping.keep_current(config, FlowObserver())
    lines = "\n".join(f"* {line}" for line in promotion_lines(result["promotion"]))
    create_markdown_artifact(lines, key="keep-current", description=f"The model at {result['store']}")
    if result["watched"] is not None:
        report_alarms(result["watched"], config.store, KEEP_CURRENT_ALARM)
    return result


@flow(name="reproduce", flow_run_name="reproduce-{config.paper}")
def reproduce_paper(config: Paper) -> Json:
    """Run a paper's experiments. Run it again to resume after an interruption."""
    result = reproducing.reproduce(config, FlowObserver())
    for name, summary in result["tables"].items():
        key = f"reproduce-{config.paper}-{name}".lower().replace("_", "-").replace(".", "-")
        rows = [{"quantity": quantity, "result": text} for quantity, text in summary_entries(summary)]
        create_table_artifact(rows, key=key, description=f"{config.title}, {name}, compared with the printed figures")
    return result


# ---- artifacts and events ----------------------------------------------------------------------------------------------


class FlowObserver(RunObserver):
    """Runs stages as tasks, writes the log of the flow run, and shows the progress of a search as a progress artifact.

    `search`: its name; empty for other flows.
    """

    def __init__(self, search: str = "") -> None:
        self._log, self._name = log_observer(get_run_logger().info), search
        self._artifact: UUID | None = None

    def run_stage(self, name: str, stage: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Run a stage as a Prefect task and return its result.

        Arguments and result bypass Prefect, because both hold rows: it would walk through the one and persist the other.
        """

        def body() -> Any:
            return stage(*args, **options)

        body.__doc__ = stage.__doc__
        return prefect.task(name=name, cache_policy=NO_CACHE, persist_result=False)(body)()

    def on(self, event: str, facts: Json) -> None:
        """Write the event, and update the artifact by the number of finished tasks."""
        self._log.on(event, facts)
        if event != "tasks" or not self._name:
            return
        percent = 100.0 * facts["done"] / max(facts["total"], 1)
        if self._artifact is None:
            made = create_progress_artifact(percent, key="cross-validate-progress", description=f"Search {self._name}")
            self._artifact = made  # type: ignore[assignment]  # not awaited where nothing is async
        else:
            update_progress_artifact(self._artifact, percent, description=f"Search {self._name}: {tasks_line(facts)}")


def create_roc_artifact(result: Json, key: str, description: str) -> None:
    """Create an image artifact of the test ROC curve. Runs without test rows or with several classes have none."""
    if result["metrics"]["test_auc"] is None or "classes" in result:
        return
    curves = [("test", table_counts(read_scores(result["run"])))]
    svg = standalone_svg("roc", lambda axes: roc_curves(axes, curves, log_x=False))
    image = base64.b64encode(svg.encode()).decode()
    create_image_artifact(f"data:image/svg+xml;base64,{image}", key=key, description=description)


def report_alarms(result: Json, model: str, event: str) -> None:
    """Create an artifact of the result, and emit an event if there are alarms.

    The resource of the event has the label ``aucdist.model``, the name of the folder of the model.
    """
    lines = "\n".join(f"* {line}" for line in watching.watch_lines(result))
    create_markdown_artifact(lines, key="watch", description=f"Batch {result['batch']}")
    if result["alarms"]:
        url = shown(split_store_url(model)[0])
        resource = {
            "prefect.resource.id": f"aucdist.model.{url}",
            "prefect.resource.name": url,
            "aucdist.model": url.rpartition("/")[2],
        }
        payload = {key: result[key] for key in ("batch", "version", "rows", "alarms", "page")}
        emit_event(event, resource, payload=payload)


def flat_row(result: Json) -> Json:
    """Return the figures of a result as one row of a table, without nesting."""
    flat = {k: v for k, v in result.items() if not isinstance(v, dict | list)}
    return flat | {k: v for part in result.values() if isinstance(part, dict) for k, v in part.items()}


def summary_markdown(result: Json) -> str:
    """Return the summary of a training run as a table in Markdown."""
    rows = [f"| {label} | {str(value).replace('|', '&#124;')} |" for label, value in summary_rows(result)]
    return "\n".join(["| | |", "|---|---|", *rows]) + "\n"


def markdown_of(result: Json) -> str:
    """Return the verdict of a search in Markdown."""
    lines = [search_verdict(result), ""]
    if "certificate" in result["refit"]:  # several classes have one each, in the report
        lines += [f"All training rows: the objective is {certificate_text(result['refit']['certificate'])}.", ""]
    return "\n".join([*lines, summary_markdown(result["refit"])])


def settings_table(result: Json) -> list[Json]:
    """Return the settings of a search with their scores, a row for each."""
    return [
        row["parameters"]
        | {"mean": row["mean"], "deviation": row["deviation"], "passes": row["passes"]}
        | ({"features kept": row["features_kept"]} if "features_kept" in row else {})
        | {f"fold {i}": value for i, value in enumerate(row["folds"], start=1)}
        | {"errors": "; ".join(row["errors"])}
        for row in result["table"]
    ]
