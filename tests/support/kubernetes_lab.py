"""The manifests as a simulated node can run them, and the commands that tests of Kubernetes share.

The node runs commands of this machine in place of images, in pods that share its ports: so servers bind to their pod's
address, and what an image would bring along (working folder, settings) is named. Nothing else of the manifests is changed.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from support.certificates import Authority

ROOT = Path(__file__).resolve().parents[2]
OVERLAYS = ROOT / "infra" / "kubernetes" / "overlays"
BUCKET = "s3://aucdist-lab"
PODS = ("Deployment", "StatefulSet", "Job", "DaskCluster")
POD_IP = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def run(*command: str, stdin: str | None = None, timeout: float = 700) -> str:
    """Return what a command prints; one that fails fails the test, with what it said."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def kubectl(*arguments: str, stdin: str | None = None) -> str:
    return run("kubectl", *arguments, stdin=stdin)


def objects(kind: str, selector: str = "", namespace: str = "aucdist") -> list[dict[str, Any]]:
    text = kubectl("-n", namespace, "get", kind, "-o", "json", *(["-l", selector] if selector else []))
    items: list[dict[str, Any]] = json.loads(text)["items"]
    return items


def prefect(*arguments: str) -> str:
    return run(sys.executable, "-m", "prefect", *arguments)


def rendered(overlay: str) -> list[dict[str, Any]]:
    """Return the manifests of an overlay."""
    return [d for d in yaml.safe_load_all(run("kubectl", "kustomize", str(OVERLAYS / overlay))) if d is not None]


def for_lab(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return manifests as the lab can run them."""
    return [_for_lab(m) for m in manifests]


def _for_lab(manifest: dict[str, Any]) -> dict[str, Any]:
    if manifest["kind"] == "PodDisruptionBudget":
        return manifest | {"apiVersion": "policy/v1beta1"}  # the lab's server is older than policy/v1
    if manifest["kind"] == "ConfigMap" and manifest["metadata"]["name"] == "aucdist":
        manifest["data"]["AUCDIST_BUCKET"] = BUCKET
    if manifest["kind"] in ("Deployment", "Job"):
        container = manifest["spec"]["template"]["spec"]["containers"][0]
        args = container["args"]
        if "0.0.0.0" in args:
            container.setdefault("env", []).append(POD_IP)
            args[args.index("0.0.0.0")] = "$(POD_IP)"
        if container.get("workingDir") == "/aucdist":
            container["workingDir"] = str(ROOT)
    return manifest


def config(
    data: dict[str, Any], output: object, *, lam: float = 1e-3, blocks: int = 4, **kubernetes: Any
) -> dict[str, Any]:
    cluster: dict[str, Any] = {"kind": "none"}
    if kubernetes:
        cluster = {
            "kind": "kubernetes",
            "image": "aucdist",
            "scratch": f"{BUCKET}/scratch",
            "secrets": ["aucdist-s3"],
        } | kubernetes
    model = {"solver": "all-pairs", "lam": lam, "tol": 1e-3}
    return {"name": "a9a", "data": data, "model": model, "blocks": blocks, "cluster": cluster, "output": str(output)}


def no_clusters() -> bool:
    return [c for c in objects("daskclusters") if c["metadata"]["name"] != "aucdist"] == []


def wait_until(true: Callable[[], Any], seconds: float = 600) -> Any:
    """Return what is true at last. On a busy machine a pod may take minutes to start, and only a failure waits to the end."""
    end = time.monotonic() + seconds
    while not (holds := true()):
        assert time.monotonic() < end, f"still not so after {seconds} s"
        time.sleep(1)
    return holds


def put_tls_secret(authority: Authority, days: float) -> None:
    files = zip(("ca.crt", "tls.crt", "tls.key"), authority.files("dask", days), strict=True)
    entries = [f"--from-file={key}={file}" for key, file in files]
    made = kubectl(
        "-n", "aucdist", "create", "secret", "generic", "test-tls", *entries, "--dry-run=client", "-o", "yaml"
    )
    kubectl("apply", "-f", "-", stdin=made)


def pods(manifests: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    """Return name, spec and labels of all pods."""
    specs = []
    for m in manifests:
        name, spec = f"{m['kind']}/{m['metadata']['name']}", m.get("spec", {})
        if m["kind"] == "DaskCluster":
            specs += [(name, spec[role]["spec"], m["metadata"]["labels"]) for role in ("scheduler", "worker")]
        elif m["kind"] in PODS:
            specs.append((name, spec["template"]["spec"], spec["template"]["metadata"]["labels"]))
    template = pool_job()["spec"]["template"]
    return [*specs, ("the pool's Job", template["spec"], template["metadata"]["labels"])]


def pool_job() -> dict[str, Any]:
    """Return the Job of a flow, with the pool's defaults filled in."""
    pool = json.loads((ROOT / "infra" / "prefect" / "pool-kubernetes.json").read_text())
    values = {name: p.get("default", "x") for name, p in pool["variables"]["properties"].items()}
    labels = {"prefect.io/flow-run-id": "1"}
    values |= {"labels": labels, "command": ["prefect", "flow-run", "execute"], "image": "aucdist:1"}

    def filled(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: filled(value) for key, value in part.items()}
        if isinstance(part, list):
            return [filled(value) for value in part]
        whole = re.fullmatch(r"\{\{ (\w+) \}\}", part) if isinstance(part, str) else None
        if whole:
            return values[whole[1]]
        return re.sub(r"\{\{ (\w+) \}\}", lambda m: str(values[m[1]]), part) if isinstance(part, str) else part

    job: dict[str, Any] = filled(pool["job_configuration"]["job_manifest"])
    # Prefect insists on these two, Kubernetes knows them one level up only and drops them.
    assert job["spec"]["template"]["spec"].pop("parallelism") == 1
    assert job["spec"]["template"]["spec"].pop("completions") == 1
    return job
