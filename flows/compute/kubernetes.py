"""Dask clusters on Kubernetes, by means of the Dask operator: calls to its API, the DaskCluster of a run, and its manifests.

A cluster is created, monitored while it starts, and removed when the run ends, whether it succeeds or fails.
"""

import itertools
import json
import logging
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from dask.utils import parse_bytes

from aucdist.engine.dask import connect
from aucdist.engine.workers import check_versions
from aucdist.errors import InputError, Json, RunError
from aucdist.extras import load_optional
from flows.config.cluster import Adaptive, KubernetesConfig, Resources

OBJECTS = {"group": "kubernetes.dask.org", "version": "v1"}
CLUSTERS = OBJECTS | {"plural": "daskclusters"}
TIMEOUTS = (5, 30)  # the seconds to connect and to answer
UNCOUNTED = "status unknown for quota"
"""The message of the server about a quota that its controller has not counted yet."""
QUOTA_PATIENCE = 360.0
"""The number of seconds to wait for the controller. It looks for new kinds of objects every half minute. If it counted a quota
before it knew a kind, for example just after the operator was installed, it counts the quota again after five minutes, or when
the quota is created again."""
log = logging.getLogger(__name__)


class Api:
    """The API server for one namespace. `KUBECONFIG`, ``~/.kube/config`` or the environment of a pod say where it is.

    Raises
    ------
    InputError
        From every method, if there is no server, if it rejects the credentials or the request, or if it has no Dask operator.
    RunError
        From every method, if the server failed.
    """

    def __init__(self, namespace: str):
        kubernetes = load_optional("kubernetes")
        client, config = kubernetes.client, kubernetes.config
        self.namespace = namespace
        with convert_errors(namespace):
            files = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
            if "KUBECONFIG" in os.environ or Path(files).is_file():
                config.load_kube_config(files)
            else:
                config.load_incluster_config()
            api = client.ApiClient()
        self._custom = client.CustomObjectsApi(api)
        self._core = client.CoreV1Api(api)
        self._apps = client.AppsV1Api(api)

    def create(self, body: Json) -> None:
        """Create a Dask object."""
        self._call(
            self._custom.create_namespaced_custom_object, **OBJECTS, plural=f"{body['kind'].lower()}s", body=body
        )

    def clusters(self, selector: str) -> list[Json]:
        """Return the DaskClusters that match a selector of fields or labels (``key=value``)."""
        by = "field_selector" if selector.startswith("metadata.") else "label_selector"
        answer: Json = self._call(self._custom.list_namespaced_custom_object, **CLUSTERS, **{by: selector})
        return answer["items"]

    def delete_cluster(self, name: str) -> None:
        """Remove a DaskCluster and all objects that it owns, if it exists."""
        if self.clusters(f"metadata.name={name}"):
            delete = self._custom.delete_namespaced_custom_object
            self._call(delete, **CLUSTERS, name=name, propagation_policy="Foreground")

    def pods(self, name: str) -> list[Any]:
        """Return the pods of a cluster."""
        return list(self._call(self._core.list_namespaced_pod, label_selector=f"dask.org/cluster-name={name}").items)

    def deployments(self, name: str) -> list[Any]:
        """Return the Deployments of a cluster."""
        list_objects = self._apps.list_namespaced_deployment
        return list(self._call(list_objects, label_selector=f"dask.org/cluster-name={name}").items)

    def _call(self, method: Callable[..., Any], **arguments: Any) -> Any:
        with convert_errors(self.namespace):
            arguments |= {"namespace": self.namespace, "_request_timeout": TIMEOUTS}
            return retry_until_counted(partial(method, **arguments))


def retry_until_counted(call: Callable[[], Any], pause: float = 1.0) -> Any:
    """Return the result of a function. Repeat the call while Kubernetes has not yet counted the quota of the namespace."""
    end = time.monotonic() + QUOTA_PATIENCE
    for attempt in itertools.count():
        try:
            return call()
        except Exception as e:
            if UNCOUNTED not in str(getattr(e, "body", "")) or time.monotonic() >= end:
                raise
        if attempt == 0:
            log.warning(
                "Kubernetes has not counted the quota yet: this may take five minutes after the operator was installed"
            )
        time.sleep(pause)


@contextmanager
def convert_errors(namespace: str) -> Iterator[None]:
    """Convert errors of the Kubernetes client to `InputError` and `RunError`."""
    from kubernetes.client import ApiException
    from kubernetes.config import ConfigException
    from urllib3.exceptions import HTTPError

    where = f"KUBECONFIG={os.environ['KUBECONFIG']}" if "KUBECONFIG" in os.environ else "no KUBECONFIG is set"
    try:
        yield
    except ConfigException as e:
        raise InputError(
            f"no Kubernetes is configured ({where}): {e}. Set KUBECONFIG, or run inside the cluster"
        ) from None
    except HTTPError as e:
        raise InputError(
            f"the Kubernetes API does not answer ({where}): {e}. Check its address and the network"
        ) from None
    except ApiException as e:
        raise _user_error(e, namespace, where) from None


def _user_error(error: Any, namespace: str, where: str) -> Exception:
    try:
        message = str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        message = str(error.reason)
    if error.status == 401:
        return InputError(f"the Kubernetes API rejects the credentials ({where}): log in again, or correct KUBECONFIG")
    if error.status == 403 and "exceeded quota" in message:
        return RunError(
            f"the quota of namespace {namespace} is used up: {message}. Wait, ask for fewer workers, or raise the quota"
        )
    if error.status == 403 and UNCOUNTED in message:
        return RunError(
            f"the quota of namespace {namespace} was not counted within {QUOTA_PATIENCE:g} s: {message}. Run it again"
        )
    if error.status == 403:
        return InputError(f"the Kubernetes API forbids this request, see infra/kubernetes/base/roles.yaml: {message}")
    if error.status == 404 and "namespaces" in message:
        return InputError(
            f"there is no namespace {namespace!r}: create it with kubectl apply -k infra/kubernetes/overlays/dev"
        )
    if error.status == 404:
        return InputError(
            "this Kubernetes has no Dask operator (no kind DaskCluster): install it as docs/pages/how-to/kubernetes.md says"
        )
    if error.status in (400, 409, 422):
        return InputError(
            f"the Kubernetes API rejects this object: {message}. Correct the configuration of the cluster"
        )
    return RunError(f"the Kubernetes API failed ({error.status}): {message}. Run the command again")


# ---- the cluster of a run --------------------------------------------------------------------------------------------


POLL_SECONDS = 1.0  # the seconds between two requests
GONE_SECONDS = 60
FAULT_SECONDS = 30.0
"""The number of seconds to wait for faults that may disappear, for example if a run ends and releases its quota, or the operator
restarts."""

HOPELESS = {
    "InvalidImageName": 0.0,
    "ErrImageNeverPull": 0.0,
    "ImagePullBackOff": 0.0,
    "CreateContainerConfigError": 15.0,
}
"""The reasons of a waiting container that a retry cannot correct, and the number of seconds that each must last. A node may not
know the Secret of a new pod yet, and ErrImagePull may mean that a registry is down for a moment."""


@contextmanager
def dask_cluster(config: KubernetesConfig, run: str) -> Iterator[Any]:
    """Create a cluster, and yield a client when its first workers are connected. The cluster is removed afterwards.

    Parameters
    ----------
    config : KubernetesConfig
        The configuration of the cluster.
    run : str
        The name of the run. The cluster is named after it, unless the configuration has a name.

    Raises
    ------
    InputError
        If the cluster cannot be created as configured.
    RunError
        If the cluster does not start in time. The message has the reasons that Kubernetes gives.
    """
    api = Api(config.namespace)
    name = config.name or cluster_name(run)
    labels = {"app.kubernetes.io/name": "aucdist", "app.kubernetes.io/component": "dask"}
    if flow_run := os.environ.get("PREFECT__FLOW_RUN_ID"):
        labels[RUN_LABEL] = flow_run
    cluster, *autoscaler = manifests_of(config, name, labels, _owner())
    api.create(cluster)
    try:
        for manifest in autoscaler:
            api.create(manifest)
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
    """Return a new name for the cluster of a run. It is valid for Kubernetes, and short enough for the names of its services."""
    return f"aucdist-{re.sub('[^a-z0-9]+', '-', run.lower())}"[:46].rstrip("-") + f"-{uuid.uuid4().hex[:6]}"


def remove_clusters_of(namespace: str, flow_run: str) -> list[str]:
    """Remove the clusters that a flow run has left, and return their names."""
    api = Api(namespace)
    names = [cluster["metadata"]["name"] for cluster in api.clusters(f"{RUN_LABEL}={flow_run}")]
    for name in names:
        _remove(api, name)
    return names


def _owner() -> Json | None:
    """Return an owner reference to the pod of this process. Kubernetes removes the cluster when the pod is removed.

    The operator can also remove idle clusters (`idleTimeout`). But while it waits for a scheduler that does not exist yet, or no
    longer exists, it blocks all clusters for minutes (dask-kubernetes 2026.3).
    """
    if "POD_UID" not in os.environ:
        return None
    return {"apiVersion": "v1", "kind": "Pod", "name": os.environ["POD_NAME"], "uid": os.environ["POD_UID"]}


def _has_scheduler(api: Api, name: str) -> bool:
    """Return whether the scheduler's pod is ready.

    The phase of the DaskCluster is not reliable. It often stays Pending, because of a race between two writes of the operator
    (dask-kubernetes issue 968). The status of the pod is reliable.
    """
    schedulers = (pod for pod in api.pods(name) if pod.metadata.labels["dask.org/component"] == "scheduler")
    return any(c.type == "Ready" and c.status == "True" for pod in schedulers for c in pod.status.conditions or ())


def _resolve(address: str) -> None:
    """Check that the name of the scheduler's Service resolves, as it does in every pod.

    If it does not, Dask would retry until its timeout.
    """
    host = str(urlsplit(address).hostname)
    end = time.monotonic() + FAULT_SECONDS
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
        time.sleep(POLL_SECONDS)


def _wait(api: Api, name: str, part: str, is_there: Callable[[], bool], timeout: float) -> None:
    start, hopeless_since = time.monotonic(), None
    while not is_there():
        reasons, worth, fatal = startup_problem(api, name)
        now = time.monotonic()
        hopeless_since = None if fatal is None else hopeless_since or now
        if fatal is not None and hopeless_since is not None and now - hopeless_since >= fatal:
            raise InputError(f"cluster {name} cannot start: {'; '.join(reasons)}")
        if now - start > (seconds := min(worth, timeout)):
            raise RunError(
                f"cluster {name} has no {part} after {seconds:g} s: {'; '.join(reasons)}. Raise `timeout`, or correct the cause"
            )
        time.sleep(POLL_SECONDS)


def startup_problem(api: Api, name: str) -> tuple[list[str], float, float | None]:
    """Return why a cluster has not started, and how long to wait.

    Returns
    -------
    tuple (list of str, float, float or None)
        The reasons that Kubernetes reports, how many seconds it is worth waiting, and the number of seconds after which the
        fault is final. The last is None if the fault may disappear.
    """
    reasons, worth, fatal = [], float("inf"), None
    deployments, pods = api.deployments(name), api.pods(name)
    if not deployments:
        reasons.append("the Dask operator has created nothing: is it running, and does it manage this namespace?")
        worth = FAULT_SECONDS
    for deployment in deployments:
        for condition in deployment.status.conditions or ():
            if condition.type == "ReplicaFailure":  # this happens, for example, if a quota is exceeded
                reasons.append(f"{deployment.metadata.name}: {condition.message}")
                worth = FAULT_SECONDS
    for pod in pods:
        for condition in pod.status.conditions or ():
            if condition.type == "PodScheduled" and condition.status == "False":
                reasons.append(f"{pod.metadata.name}: {condition.message}")
        for container in pod.status.container_statuses or ():
            waiting, ended = container.state.waiting, (container.last_state or container.state).terminated
            if waiting is not None:
                reasons.append(f"{pod.metadata.name}: {waiting.reason}: {waiting.message}")
                fatal = HOPELESS.get(waiting.reason, fatal)
            if ended is not None:
                reasons.append(f"{pod.metadata.name}: ended with {ended.exit_code} ({ended.reason})")
    return reasons or ["its pods are starting"], worth, fatal


def _remove(api: Api, name: str) -> None:
    """Remove a cluster and wait until it is gone.

    A failure is only logged, so that it does not hide the outcome of the run.
    """
    try:
        api.delete_cluster(name)
        end = time.monotonic() + GONE_SECONDS
        while api.clusters(f"metadata.name={name}") and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
    except (InputError, RunError) as e:
        log.warning(
            "could not remove DaskCluster %s; do it by `kubectl -n %s delete daskcluster %s`: %s",
            name,
            api.namespace,
            name,
            e,
        )


# ---- the manifests: a DaskCluster and, if it scales, its DaskAutoscaler ----------------------------------------------


RUN_LABEL = "aucdist/flow-run"
TLS_FOLDER = "/etc/aucdist/tls"
TLS_FILES = (f"{TLS_FOLDER}/ca.crt", f"{TLS_FOLDER}/tls.crt", f"{TLS_FOLDER}/tls.key")
"""The folder at which a Secret of type `kubernetes.io/tls` is mounted, in the flow's pod and in the workers'."""


def manifests_of(config: KubernetesConfig, name: str, labels: dict[str, str], owner: Json | None) -> list[Json]:
    """Return the DaskCluster and, if the number of workers is not fixed, its DaskAutoscaler.

    Parameters
    ----------
    config : KubernetesConfig
        The configuration of the cluster.
    name : str
        The name of the cluster.
    labels : dict of str to str
        The labels of the cluster. The operator also gives them to its pods and services.
    owner : dict or None
        An owner reference. Kubernetes removes the cluster when it removes the owner.
    """
    address = address_of(config, name)
    metadata: Json = {"name": name, "namespace": config.namespace, "labels": labels}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    template = Path(__file__).with_name("dask_cluster.yaml").read_text(encoding="utf-8")
    rendered = load_optional("jinja2").Template(template, trim_blocks=True).render(
        config=config, metadata=metadata, address=address, protocol=address.partition(":")[0], tls_folder=TLS_FOLDER,
        memory_limit=_memory_limit(config.worker),
    )  # fmt: skip
    made = yaml.safe_load(rendered)
    return [made["cluster"], *[made["autoscaler"]] * isinstance(config.workers, Adaptive)]


def address_of(config: KubernetesConfig, name: str) -> str:
    """Return the address of the scheduler of a cluster in the network of Kubernetes."""
    return f"{'tls' if config.tls else 'tcp'}://{name}-scheduler.{config.namespace}:8786"


def _memory_limit(resources: Resources) -> int:
    """Return Dask's memory limit. It is a tenth less than that of the pod, because the worker's nanny needs memory, too."""
    return int(0.9 * parse_bytes(resources.memory if resources.memory[-1].isdigit() else f"{resources.memory}B"))
