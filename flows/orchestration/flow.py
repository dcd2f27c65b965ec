"""What all flows have in common on Prefect.

Names of runs, a time-out, parameters without secrets for the server, and that a run that was killed frees its cluster.
"""

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, ParamSpec, TypeVar

import numpy as np
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow
from prefect.logging.loggers import flow_run_logger
from prefect.runtime import flow_run as this_run

from aucdist.data.storage.files import shown
from flows.config.loading import masked

DAY = 24 * 3600.0

P = ParamSpec("P")
R = TypeVar("R")


def free_cluster(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Remove the Kubernetes clusters of a run that could not do it itself: it was killed, or lost its machine.

    Prefect calls it by position from one place and by these names from another.
    """
    cluster = (flow_run.parameters.get("config") or {}).get("cluster")
    if not isinstance(cluster, dict) or cluster.get("kind") != "kubernetes":
        return
    from flows.compute.kubernetes.lifecycle import remove_clusters_of
    from flows.config.cluster import KubernetesConfig

    left = remove_clusters_of(KubernetesConfig.model_validate(cluster).namespace, str(flow_run.id))
    flow_run_logger(flow_run).info("clusters left behind and removed: %s", ", ".join(left) or "none")


class RedactingFlow(Flow[P, R]):
    """A flow whose parameters go to Prefect's server without the passwords and tokens of URLs.

    The server keeps the parameters of a run and shows them. What a deployment is run with does not come through here: it is sent
    by whoever runs it.
    """

    def serialize_parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return what the server is told."""
        return {name: masked(value) for name, value in super().serialize_parameters(parameters).items()}


def flow(**options: Any) -> Callable[[Callable[P, R]], Flow[P, R]]:
    """Make a flow of a function, as `prefect.flow` does, with what all of ours have in common."""
    common: dict[str, Any] = {
        "persist_result": False, "timeout_seconds": DAY, "on_cancellation": [free_cluster], "on_crashed": [free_cluster],
    }  # fmt: skip
    return lambda function: RedactingFlow(function, **common, **options)


def trained_name() -> str:
    """Return the name of a run that fits a model, such as ``a9a-all-pairs-lam1e-3``."""
    config: Any = this_run.parameters["config"]
    model = config.model.built
    lam = getattr(model, "lam", None)
    return f"{config.name}-{model.solver}" + ("" if lam is None else f"-lam{short(lam)}")


def data_name() -> str:
    """Return the name of a run that reads a data set, such as ``score-a9a``."""
    config: Any = this_run.parameters["config"]
    source = config.source.source if config.name is None else config.name
    first = shown(source if isinstance(source, str) else source[0])
    return f"{this_run.flow_name}-{PurePosixPath(first).name.partition('.')[0]}"


def short(number: float) -> str:
    """Return a number as people write it: 1e-3, 2.5e-4."""
    return str(np.format_float_scientific(number, trim="-", exp_digits=1))
