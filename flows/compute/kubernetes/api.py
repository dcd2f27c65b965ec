"""The calls to the Kubernetes API that a run makes, with error messages that say what to do."""

import itertools
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aucdist.errors import InputError, Json, RunError
from aucdist.extras import load_optional

GROUP, VERSION = "kubernetes.dask.org", "v1"
SECONDS = (5, 30)  # to connect, and to answer
UNCOUNTED, PATIENCE = "status unknown for quota", 360.0
"""The server's message about a quota until its controller has counted; and seconds to wait.

The controller looks for new kinds every half minute. A quota that it counted before it knew a kind, as right after the operator
was installed, is counted again five minutes later, or when it is made again.
"""
log = logging.getLogger(__name__)


class Api:
    """The API server, for one namespace; found by `KUBECONFIG`, by ``~/.kube/config``, or by the environment of a pod.

    Raises InputError from every method if there is no server, it rejects the credentials or the request, or has no
        Dask operator.
    Raises RunError from every method if it failed.
    """

    def __init__(self, namespace: str):
        kubernetes = load_optional("kubernetes")
        client, config = kubernetes.client, kubernetes.config
        self.namespace = namespace
        with explained(namespace):
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
        with explained(self.namespace):
            once_counted(
                lambda: self._custom.create_namespaced_custom_object(
                    GROUP, VERSION, self.namespace, f"{body['kind'].lower()}s", body, _request_timeout=SECONDS
                )
            )

    def clusters(self, selector: str) -> list[Json]:
        """Return the DaskClusters that match a selector of fields or labels (``key=value``)."""
        by = "field_selector" if selector.startswith("metadata.") else "label_selector"
        with explained(self.namespace):
            answer = self._custom.list_namespaced_custom_object(
                GROUP, VERSION, self.namespace, "daskclusters", **{by: selector}, _request_timeout=SECONDS
            )
        return answer["items"]

    def delete_cluster(self, name: str) -> None:
        """Remove a DaskCluster and all objects that it owns, if it exists."""
        from kubernetes.client import ApiException

        with explained(self.namespace):
            try:
                self._custom.delete_namespaced_custom_object(
                    GROUP, VERSION, self.namespace, "daskclusters", name,
                    propagation_policy="Foreground", _request_timeout=SECONDS,
                )  # fmt: skip
            except ApiException as e:
                if e.status != 404:
                    raise

    def pods(self, name: str) -> list[Any]:
        """Return the pods of a cluster."""
        return self._of_cluster(self._core.list_namespaced_pod, name)

    def deployments(self, name: str) -> list[Any]:
        """Return the Deployments of a cluster."""
        return self._of_cluster(self._apps.list_namespaced_deployment, name)

    def _of_cluster(self, list_objects: Callable[..., Any], name: str) -> list[Any]:
        with explained(self.namespace):
            selector = f"dask.org/cluster-name={name}"
            return list(list_objects(self.namespace, label_selector=selector, _request_timeout=SECONDS).items)


def once_counted(call: Callable[[], object], pause: float = 1.0) -> None:
    """Call a function, again while the namespace's quota is not counted, as in the first minutes after it was applied."""
    end = time.monotonic() + PATIENCE
    for tried in itertools.count():
        try:
            call()
            return
        except Exception as e:
            if UNCOUNTED not in str(getattr(e, "body", "")) or time.monotonic() >= end:
                raise
        if tried == 0:
            log.warning("Kubernetes has not counted the quota yet: up to five minutes after the operator was installed")
        time.sleep(pause)


@contextmanager
def explained(namespace: str) -> Iterator[None]:
    """Turn errors of the Kubernetes client into `InputError` and `RunError`."""
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
        raise _error(e, namespace, where) from None


def _error(error: Any, namespace: str, where: str) -> Exception:
    try:
        message = str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        message = str(error.reason)
    if error.status == 401:
        return InputError(f"the Kubernetes API rejects the credentials ({where}): log in again, or correct KUBECONFIG")
    if error.status == 403 and "exceeded quota" in message:
        return RunError(f"the quota of namespace {namespace} is used up: {message}")
    if error.status == 403 and UNCOUNTED in message:
        return RunError(f"the quota of namespace {namespace} was not counted within {PATIENCE:g} s: {message}")
    if error.status == 403:
        return InputError(f"the Kubernetes API forbids this request, see infra/kubernetes/base/roles.yaml: {message}")
    if error.status == 404 and "namespaces" in message:
        return InputError(f"no namespace {namespace!r}: kubectl apply -k infra/kubernetes/overlays/dev makes it")
    if error.status == 404:
        return InputError(
            "this Kubernetes has no Dask operator (no kind DaskCluster): infra/README.md says how to install it"
        )
    if error.status in (400, 409, 422):
        return InputError(f"the Kubernetes API rejects this object: {message}")
    return RunError(f"the Kubernetes API failed ({error.status}): {message}")
