"""The manifests that a run creates on Kubernetes: a DaskCluster and, if it scales, its DaskAutoscaler."""

from dask.utils import parse_bytes

from aucdist.errors import Json
from flows.config.cluster import Adaptive, KubernetesConfig, Resources

API = "kubernetes.dask.org/v1"
RUN_LABEL = "aucdist/flow-run"
PORT, DASHBOARD = 8786, 8787
WORKER_PORT, NANNY_PORT, WORKER_DASHBOARD = 8788, 8789, 8790

ROUTES = ("scheduler.api", "scheduler.prometheus", "scheduler.info", "scheduler.json", "health", "proxy", "statics")
"""Dask's own, and the API by which the operator scales: its other way, messages to the scheduler, does not know TLS."""

TLS_FOLDER = "/etc/aucdist/tls"
TLS_FILES = (f"{TLS_FOLDER}/ca.crt", f"{TLS_FOLDER}/tls.crt", f"{TLS_FOLDER}/tls.key")
"""Where a Secret in the form of `kubernetes.io/tls` shows up, in the flow's pod as in the workers'."""

SCRATCH = "/scratch"
"""The one folder that can be written to; the image points its caches and temporary files there."""


def dask_cluster_of(config: KubernetesConfig, name: str, labels: dict[str, str], owner: Json | None) -> Json:
    """Return the DaskCluster.

    `labels`: for the cluster; the operator puts them on all that it makes of it.
    `owner`: an owner reference: when the owner is gone, so is the cluster.
    """
    scheduler_args = [
        "dask", "scheduler", "--protocol", _protocol(config), "--port", str(PORT), "--dashboard-address", f":{DASHBOARD}",
    ]  # fmt: skip
    # The operator would give workers a tcp address; and it finds them by the name that it gives them.
    worker_args = [
        "dask", "worker", address_of(config, name), "--name", "$(DASK_WORKER_NAME)", "--nthreads", str(config.threads),
        "--memory-limit", str(_memory_limit(config.worker)), "--protocol", _protocol(config), "--death-timeout", "120",
        "--worker-port", str(WORKER_PORT), "--nanny-port", str(NANNY_PORT),
        "--dashboard-address", f":{WORKER_DASHBOARD}",
    ]  # fmt: skip
    metadata: Json = {"name": name, "namespace": config.namespace, "labels": labels}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": API,
        "kind": "DaskCluster",
        "metadata": metadata,
        "spec": {
            "scheduler": {
                "spec": _pod(config, "scheduler", config.scheduler, scheduler_args),
                "service": {
                    "type": "ClusterIP",
                    "selector": {"dask.org/cluster-name": name, "dask.org/component": "scheduler"},
                    "ports": [
                        {"name": "tcp-comm", "protocol": "TCP", "port": PORT, "targetPort": "tcp-comm"},
                        {
                            "name": "http-dashboard",
                            "protocol": "TCP",
                            "port": DASHBOARD,
                            "targetPort": "http-dashboard",
                        },
                    ],
                },
            },
            "worker": {
                "replicas": config.minimum,
                "spec": _pod(config, "worker", config.worker, worker_args),
            },
        },
    }


def autoscaler_of(config: KubernetesConfig, name: str) -> Json | None:
    """Return the DaskAutoscaler of the cluster `name`, None for a fixed number of workers."""
    if not isinstance(config.workers, Adaptive):
        return None
    return {
        "apiVersion": API,
        "kind": "DaskAutoscaler",
        "metadata": {"name": name, "namespace": config.namespace},
        "spec": {"cluster": name, "minimum": config.workers.minimum, "maximum": config.workers.maximum},
    }


def address_of(config: KubernetesConfig, name: str) -> str:
    """Return the address of the scheduler of the cluster `name`, for all who are in the cluster's network."""
    return f"{_protocol(config)}://{name}-scheduler.{config.namespace}:{PORT}"


def _protocol(config: KubernetesConfig) -> str:
    return "tls" if config.tls else "tcp"


def _memory_limit(resources: Resources) -> int:
    """Return the bytes at which Dask acts: a tenth less than the pod has, for the worker's nanny needs some, too."""
    return int(0.9 * parse_bytes(resources.memory if resources.memory[-1].isdigit() else f"{resources.memory}B"))


def _pod(config: KubernetesConfig, role: str, resources: Resources, args: list[str]) -> Json:
    """Return the spec of a pod under the restricted Pod Security Standard, with one folder that can be written to."""
    container: Json = {
        "name": role,
        "image": config.image,
        "args": args,
        "env": _environment(config),
        "resources": {
            "requests": {"cpu": resources.cpu, "memory": resources.memory},
            "limits": {"memory": resources.memory},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "scratch", "mountPath": SCRATCH}],
    }
    if config.secrets and role == "worker":  # the scheduler sees no data
        container["envFrom"] = [{"secretRef": {"name": name}} for name in config.secrets]
    if role == "scheduler":
        container["ports"] = [
            {"name": "tcp-comm", "containerPort": PORT, "protocol": "TCP"},
            {"name": "http-dashboard", "containerPort": DASHBOARD, "protocol": "TCP"},
        ]
        container["readinessProbe"] = {"httpGet": {"port": "http-dashboard", "path": "/health"}, "periodSeconds": 5}
    spec: Json = {
        "serviceAccountName": config.service_account,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "nodeSelector": config.node_selector,
        "tolerations": config.tolerations,
    }  # fmt: skip
    if config.tls:
        spec["volumes"].append({"name": "tls", "secret": {"secretName": config.tls}})
        container["volumeMounts"].append({"name": "tls", "mountPath": TLS_FOLDER, "readOnly": True})
    return spec


def _environment(config: KubernetesConfig) -> list[Json]:
    settings = {
        # Blocks are assigned to workers; moving them to save a few milliseconds costs more than it gains.
        "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False",
        "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": str([f"distributed.http.{part}" for part in ROUTES]),
    }
    if config.tls:
        ca, cert, key = TLS_FILES
        settings |= {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True", "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": ca}
        for role in ("SCHEDULER", "WORKER", "CLIENT"):
            settings[f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT"] = cert
            settings[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"] = key
    return [{"name": name, "value": value} for name, value in settings.items()]
