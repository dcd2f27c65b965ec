"""The decorator of all Prefect flows: a timeout, short logs of wrong input, clusters of killed runs."""

import logging
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, ParamSpec, TypeVar

import numpy as np
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow
from prefect.logging.loggers import flow_run_logger
from prefect.runtime import flow_run as this_run

from aucdist.data.storage.files import shown
from aucdist.errors import InputError

DAY = 24 * 3600.0

P = ParamSpec("P")
R = TypeVar("R")


def free_cluster(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Remove the Kubernetes clusters of a run that could not do so itself: it was killed, or lost its machine.

    Prefect calls this both by position and with these names.
    """
    cluster = (flow_run.parameters.get("config") or {}).get("cluster")
    if not isinstance(cluster, dict) or cluster.get("kind") != "kubernetes":
        return
    from flows.compute.kubernetes.lifecycle import remove_clusters_of
    from flows.config.cluster import KubernetesConfig

    removed = remove_clusters_of(KubernetesConfig.model_validate(cluster).namespace, str(flow_run.id))
    flow_run_logger(flow_run).info("removed clusters that the run had left: %s", ", ".join(removed) or "none")


def is_worth_logging(record: logging.LogRecord) -> bool:
    """Tell whether a record of Prefect's engine belongs in the log: not the traceback of wrong input.

    Its message is in the record of the final state, which follows. Every other exception keeps its traceback.
    """
    return record.exc_info is None or not isinstance(record.exc_info[1], InputError)


def flow(**options: Any) -> Callable[[Callable[P, R]], Flow[P, R]]:
    """Return a decorator that makes a function a flow, as `prefect.flow` does, with the options that all flows share."""
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logging.getLogger(name).addFilter(is_worth_logging)
    common: dict[str, Any] = {
        "persist_result": False, "timeout_seconds": DAY, "on_cancellation": [free_cluster], "on_crashed": [free_cluster],
    }  # fmt: skip
    return lambda function: Flow(function, **common, **options)


def training_run_name() -> str:
    """Return the name of a run that fits a model, such as ``a9a-all-pairs-lam1e-3``."""
    config: Any = this_run.parameters["config"]
    model, auto = config.model.built, config.model.chooses_features
    lam = config.model.lam if auto else getattr(model, "lam", None)
    penalty = "" if lam is None else f"-lam{short(lam)}"
    return f"{config.name}-{model.resolved_solver.name}{penalty}{'-auto' if auto else ''}"


def data_run_name() -> str:
    """Return the name of a run that reads a data set, such as ``score-a9a``."""
    config: Any = this_run.parameters["config"]
    source = config.source.source if config.name is None else config.name
    first = shown(source if isinstance(source, str) else source[0])
    return f"{this_run.flow_name}-{PurePosixPath(first).name.partition('.')[0]}"


def short(number: float) -> str:
    """Return a number as people write it: 1e-3, 2.5e-4."""
    return str(np.format_float_scientific(number, trim="-", exp_digits=1))
