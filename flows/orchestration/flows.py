"""The Prefect flows. Each calls the plain function of a command, and the stages of the function become tasks.

The flows also make artifacts of the results.
"""

# There is no `from __future__ import annotations` here, because Prefect reads the types of the parameters to make its form.

import logging
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import prefect
from prefect.artifacts import (
    create_markdown_artifact,
    create_table_artifact,
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
from aucdist.report.text import search_verdict, summary_rows
from aucdist.store import split_store_url
from flows import data_sets, keep_current as keeping, score as scoring, watch as watching
from flows.cv import run as searching
from flows.cv.config import CvConfig
from flows.data_sets import ShardConfig
from flows.keep_current import KeepCurrentConfig
from flows.model_store import promotion_lines
from flows.progress import RunObserver, log_observer
from flows.reproduce import run as reproducing
from flows.reproduce.page import summary_entries
from flows.reproduce.run import Paper
from flows.run_folder.folder import fit_name
from flows.score import ScoreConfig
from flows.train import run as training
from flows.train.config import TrainConfig
from flows.watch import WatchConfig

DAY = 24 * 3600.0
ALARM = "aucdist.watch.alarm"
"""The event that is emitted if the watch of a batch raises alarms. An automation may start `keep-current` by it (see
`prefect.yaml`)."""
KEEP_CURRENT_ALARM = "aucdist.keep-current.alarm"
"""The event that is emitted if the watch within `keep-current` raises alarms. It must not start `keep-current` again."""


def free_cluster(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Remove the Kubernetes clusters of a run that could not do so itself, because it was killed or lost its machine.

    Prefect calls this function both with positional arguments and with these names.
    """
    config = flow_run.parameters.get("config") or {}
    cluster = config.get("train", config).get("cluster")  # keep-current uses the cluster of its training
    if not isinstance(cluster, dict) or cluster.get("kind") != "kubernetes":
        return
    from flows.compute.kubernetes import remove_clusters_of
    from flows.config.cluster import KubernetesConfig

    removed = remove_clusters_of(KubernetesConfig.model_validate(cluster).namespace, str(flow_run.id))
    flow_run_logger(flow_run).info("removed clusters that the run had left: %s", ", ".join(removed) or "none")


for _name in ("prefect.flow_runs", "prefect.task_runs"):
    # Prefect's engine logs no traceback of wrong input, because the record of the final state has the message. All other
    # exceptions keep their tracebacks.
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
    return result


@flow(name="cross-validate", flow_run_name="cross-validate-{config.name}")
def cross_validate(config: CvConfig) -> Json:
    """Choose parameters by cross-validation, fit all training rows with them, and write the run folder."""
    result = searching.cross_validate(config, FlowObserver())
    verdict = f"{search_verdict(result)}\n\n{summary_markdown(result['refit'])}"
    create_markdown_artifact(verdict, key="cross-validate-verdict", description=f"Verdict on {config.name}")
    return result


@flow(name="shard-data", flow_run_name=data_run_name)
def shard_data(config: ShardConfig) -> Json:
    """Write a data set as shards: rows in random order, each shard with its share of the positives."""
    result = data_sets.shard(config, FlowObserver())
    create_lines_artifact(data_sets.shard_lines(result), "shard-data", f"Shards at {result['target']}")
    return result


@flow(name="score", flow_run_name=data_run_name)
def score(config: ScoreConfig) -> Json:
    """Score the rows of a data set by a model."""
    result = scoring.score(config, FlowObserver())
    create_lines_artifact(scoring.score_lines(result), "score", f"Scores at {result['output']}")
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

    Returns
    -------
    dict
        What ``aucdist keep-current --json`` prints.
    """
    result = keeping.keep_current(config, FlowObserver())
    create_lines_artifact(promotion_lines(result["promotion"]), "keep-current", f"The model at {result['store']}")
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
    """Runs stages as tasks, and writes the log of the flow run."""

    def __init__(self) -> None:
        self._log = log_observer(get_run_logger().info)

    def run_stage(self, name: str, stage: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Run a stage as a Prefect task and return its result.

        Arguments and result bypass Prefect, because both contain rows. Prefect would traverse the arguments and persist the
        result."""

        def body() -> Any:
            return stage(*args, **options)

        body.__doc__ = stage.__doc__
        return prefect.task(name=name, cache_policy=NO_CACHE, persist_result=False)(body)()

    def on(self, event: str, facts: Json) -> None:
        """Write the event."""
        self._log.on(event, facts)


def report_alarms(result: Json, model: str, event: str) -> None:
    """Create an artifact of the result, and emit an event if there are alarms.

    The resource of the event has the label ``aucdist.model`` with the name of the model's folder.
    """
    create_lines_artifact(watching.watch_lines(result), "watch", f"Batch {result['batch']}")
    if result["alarms"]:
        url = shown(split_store_url(model)[0])
        resource = {
            "prefect.resource.id": f"aucdist.model.{url}",
            "prefect.resource.name": url,
            "aucdist.model": url.rpartition("/")[2],
        }
        payload = {key: result[key] for key in ("batch", "version", "rows", "alarms", "page")}
        emit_event(event, resource, payload=payload)


def create_lines_artifact(lines: Iterable[str], key: str, description: str) -> None:
    """Create an artifact of the lines that a command prints."""
    create_markdown_artifact("\n".join(f"* {line}" for line in lines), key=key, description=description)


def summary_markdown(result: Json) -> str:
    """Return the summary of a training run as a table in Markdown."""
    rows = [f"| {label} | {str(value).replace('|', '&#124;')} |" for label, value in summary_rows(result)]
    return "\n".join(["| | |", "|---|---|", *rows]) + "\n"
