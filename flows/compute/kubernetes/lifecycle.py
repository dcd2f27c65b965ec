"""The DaskCluster of a run: created, monitored while it starts, and removed when the run ends in any way."""

import logging
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from aucdist.engine.dask import connect
from aucdist.engine.workers import check_versions
from aucdist.errors import InputError, Json, RunError
from flows.compute.kubernetes.api import Api
from flows.compute.kubernetes.manifests import RUN_LABEL, TLS_FILES, address_of, autoscaler_of, dask_cluster_of
from flows.config.cluster import KubernetesConfig

EVERY = 1.0  # seconds between two requests
GONE_SECONDS = 60
PATIENCE = 30.0
"""Seconds to wait for faults that others may correct: a run that ends and releases its quota, an operator that restarts."""

HOPELESS = {
    "InvalidImageName": 0.0,
    "ErrImageNeverPull": 0.0,
    "ImagePullBackOff": 0.0,
    "CreateContainerConfigError": 15.0,
}
"""Reasons of a waiting container that a retry cannot correct, and the seconds that they must last: a node may not know a Secret
of a new pod yet. ErrImagePull may be a registry that is down for a moment."""

log = logging.getLogger(__name__)


@contextmanager
def dask_cluster(config: KubernetesConfig, run: str) -> Iterator[Any]:
    """Create a cluster and yield a client when its first workers are connected; the cluster is removed afterwards.

    `run`: the name of the run; the cluster is named after it, unless the configuration names it.
    Raises InputError if the cluster cannot be created as configured.
    Raises RunError if it does not start in time; the message has the reasons that Kubernetes gives.
    """
    api = Api(config.namespace)
    name = config.name or cluster_name(run)
    labels = {"app.kubernetes.io/name": "aucdist", "app.kubernetes.io/component": "dask"}
    if flow_run := os.environ.get("PREFECT__FLOW_RUN_ID"):
        labels[RUN_LABEL] = flow_run
    api.create(dask_cluster_of(config, name, labels, _owner()))
    try:
        if (autoscaler := autoscaler_of(config, name)) is not None:
            api.create(autoscaler)
        _wait(api, name, "scheduler", lambda: _has_scheduler(api, name), config.timeout)
        tls, address = TLS_FILES if config.tls else None, address_of(config, name)
        _resolve(address)
        with connect(address, config.timeout, tls) as client:
            n = config.minimum
            _wait(api, name, f"{n} workers", lambda: len(client.nthreads()) >= n, config.timeout)
            check_versions(client)
            yield client
    finally:
        _remove(api, name)


def cluster_name(run: str) -> str:
    """Return a new name for the cluster of a run: valid for Kubernetes, and short enough for its services."""
    return f"aucdist-{re.sub('[^a-z0-9]+', '-', run.lower())}"[:46].rstrip("-") + f"-{uuid.uuid4().hex[:6]}"


def remove_clusters_of(namespace: str, flow_run: str) -> list[str]:
    """Remove the clusters that a flow run has left, and return their names."""
    api = Api(namespace)
    names = [cluster["metadata"]["name"] for cluster in api.clusters(f"{RUN_LABEL}={flow_run}")]
    for name in names:
        _remove(api, name)
    return names


def _owner() -> Json | None:
    """Return an owner reference to the pod of this process: when the pod is removed, Kubernetes removes the cluster.

    The operator can also remove idle clusters (`idleTimeout`), but while it looks for a scheduler that is not there yet, or
    no longer, it blocks for minutes, and with it all clusters (dask-kubernetes 2026.3).
    """
    if "POD_UID" not in os.environ:
        return None
    return {"apiVersion": "v1", "kind": "Pod", "name": os.environ["POD_NAME"], "uid": os.environ["POD_UID"]}


def _has_scheduler(api: Api, name: str) -> bool:
    """Tell whether the scheduler's pod is ready.

    The phase of the DaskCluster is not reliable: it often stays Pending, because two writes of the operator race
    (dask-kubernetes issue 968). The pod is.
    """
    schedulers = (pod for pod in api.pods(name) if pod.metadata.labels["dask.org/component"] == "scheduler")
    return any(c.type == "Ready" and c.status == "True" for pod in schedulers for c in pod.status.conditions or ())


def _resolve(address: str) -> None:
    """Check that the name of the scheduler's Service resolves, as it does in every pod: Dask would retry until its timeout."""
    host = str(urlsplit(address).hostname)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.getaddrinfo(host, None)
            return
        except OSError:
            if time.monotonic() > end:
                raise InputError(
                    f"the name {host} does not resolve here: a run with a cluster of kind `kubernetes` must itself be in that "
                    "Kubernetes, as the deployment train-auc/kubernetes is"
                ) from None
        time.sleep(EVERY)


def _wait(api: Api, name: str, what: str, is_there: Callable[[], bool], timeout: float) -> None:
    start, hopeless_since = time.monotonic(), None
    while not is_there():
        reasons, worth, hopeless = trouble(api, name)
        now = time.monotonic()
        hopeless_since = None if hopeless is None else hopeless_since or now
        if hopeless is not None and hopeless_since is not None and now - hopeless_since >= hopeless:
            raise InputError(f"cluster {name} cannot start: {'; '.join(reasons)}")
        if now - start > (seconds := min(worth, timeout)):
            raise RunError(f"cluster {name} has no {what} after {seconds:g} s: {'; '.join(reasons)}")
        time.sleep(EVERY)


def trouble(api: Api, name: str) -> tuple[list[str], float, float | None]:
    """Return why a cluster has not started, as Kubernetes reports it, and how many seconds it is worth waiting.

    Third, how many seconds it must stay so until it is hopeless; None if it may become better.
    """
    reasons, worth, hopeless = [], float("inf"), None
    deployments, pods = api.deployments(name), api.pods(name)
    if not deployments:
        reasons.append("the Dask operator has created nothing: is it running, and does it manage this namespace?")
        worth = PATIENCE
    for deployment in deployments:
        for condition in deployment.status.conditions or ():
            if condition.type == "ReplicaFailure":  # as when a quota is used up
                reasons.append(f"{deployment.metadata.name}: {condition.message}")
                worth = PATIENCE
    for pod in pods:
        for condition in pod.status.conditions or ():
            if condition.type == "PodScheduled" and condition.status == "False":
                reasons.append(f"{pod.metadata.name}: {condition.message}")
        for container in pod.status.container_statuses or ():
            waiting, ended = container.state.waiting, (container.last_state or container.state).terminated
            if waiting is not None:
                reasons.append(f"{pod.metadata.name}: {waiting.reason}: {waiting.message}")
                hopeless = HOPELESS.get(waiting.reason, hopeless)
            if ended is not None:
                reasons.append(f"{pod.metadata.name}: ended with {ended.exit_code} ({ended.reason})")
    return reasons or ["its pods are starting"], worth, hopeless


def _remove(api: Api, name: str) -> None:
    """Remove a cluster and wait until it is gone; a failure is logged, so that it does not hide the outcome of the run."""
    try:
        api.delete_cluster(name)
        end = time.monotonic() + GONE_SECONDS
        while api.clusters(f"metadata.name={name}") and time.monotonic() < end:
            time.sleep(EVERY)
    except (InputError, RunError) as e:
        log.warning(
            "could not remove DaskCluster %s; do it by `kubectl -n %s delete daskcluster %s`: %s",
            name,
            api.namespace,
            name,
            e,
        )
