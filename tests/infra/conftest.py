"""What the tests on a real Kubernetes API share: the namespace, and who signs certificates."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from support import kubernetes_lab as lab
from support.certificates import Authority

from aucdist.data.storage.files import open_fs
from flows.compute.kubernetes import lifecycle as running

SECRET = ["AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"]


@pytest.fixture(scope="module")
def simulated_node() -> None:
    """Nobody's own cluster is touched."""
    found = subprocess.run(["kubectl", "get", "node", "node-1", "-o", "yaml"], capture_output=True, text=True)
    if "reason: Simulated" not in found.stdout:
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
    entries = [f"--from-literal={name}={os.environ[name]}" for name in SECRET]
    secret = lab.kubectl(
        "-n", "aucdist", "create", "secret", "generic", "aucdist-s3", *entries, "--dry-run=client", "-o", "yaml"
    )
    lab.kubectl("apply", "-f", "-", stdin=secret)
    fs, _ = open_fs(lab.BUCKET)
    fs.makedirs("aucdist-lab", exist_ok=True)


@pytest.fixture
def authority(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Authority:
    """Who signs certificates; this process finds its own where pods have theirs."""
    authority = Authority(tmp_path)
    monkeypatch.setattr(running, "TLS_FILES", authority.files("client"))
    return authority
