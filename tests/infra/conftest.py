"""What the tests on a real Kubernetes API share: the namespace, and who signs certificates."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import kubernetes_lab as lab
from support.certificates import Authority

from aucdist.data.storage.files import open_fs
from aucdist.engine.dask import connect
from flows.compute import kubernetes as running

SECRET = ["AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"]


@pytest.fixture(scope="module")
def simulated_node() -> None:
    """Nobody's own cluster is touched."""
    process = subprocess.run(["kubectl", "get", "node", "node-1", "-o", "yaml"], capture_output=True, text=True)
    if "reason: Simulated" not in process.stdout:
        pytest.skip("KUBECONFIG is not that of the lab")


@pytest.fixture(scope="module")
def namespace(simulated_node: None) -> None:
    """The manifests are applied, but for what runs."""
    still = [
        m
        for m in lab.for_lab(lab.rendered("dev"))
        if m["kind"] not in ("Deployment", "Job", "DaskCluster", "DaskAutoscaler")
    ]
    lab.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(still))
    count_quota(next(m for m in still if m["kind"] == "ResourceQuota"))
    entries = [f"--from-literal={name}={os.environ[name]}" for name in SECRET]
    secret = lab.kubectl(
        "-n", "aucdist", "create", "secret", "generic", "aucdist-s3", *entries, "--dry-run=client", "-o", "yaml"
    )
    lab.kubectl("apply", "-f", "-", stdin=secret)
    fs, _ = open_fs(lab.BUCKET)
    fs.makedirs("aucdist-lab", exist_ok=True)


def count_quota(quota: dict[str, Any]) -> None:
    """Wait until all that a quota limits is counted.

    A server that was started with these tests learns of the operator's kinds half a minute later. Until then it counts a quota
    without them, and by itself again only after five minutes; one that is made again it counts at once.
    """

    def counted() -> bool:
        (shown,) = lab.objects("resourcequotas")
        return set(shown.get("status", {}).get("used", {})) >= set(quota["spec"]["hard"])

    def counted_if_made_again() -> bool:
        lab.kubectl("replace", "--force", "-f", "-", stdin=yaml.safe_dump(quota))
        return any(counted() or time.sleep(1) for _ in range(5))

    if not counted():
        lab.wait_until(counted_if_made_again)


@pytest.fixture
def authority(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Authority:
    """Who signs certificates; this process finds its own where pods have theirs."""
    authority = Authority(tmp_path)
    files = authority.files("client")  # not in place of `TLS_FILES`, which the pods are told as well
    monkeypatch.setattr(running, "connect", lambda address, timeout, tls: connect(address, timeout, tls and files))
    return authority
