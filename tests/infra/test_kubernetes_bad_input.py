"""Wrong input on a real Kubernetes API: each gives a clear error, within seconds, and no cluster stays behind."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import kubernetes_lab as lab
from support.certificates import Authority

from aucdist.errors import InputError, RunError
from flows.compute import kubernetes
from flows.compute.clusters import open_cluster
from flows.train.config import TrainConfig

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.skipif("KUBECONFIG" not in os.environ, reason="no cluster: KUBECONFIG is not set"),
    # Of Dask's client in a process that also talks to Kubernetes; of the operator's old API server.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def started(tmp_path: Path, **kubernetes: Any) -> None:
    data = {"name": "digits"}
    with open_cluster(
        TrainConfig.model_validate(lab.config(data, tmp_path, workers=1, **kubernetes)).cluster, "bad-input"
    ):
        pass


def test_wrong_kubeconfig_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"no Kubernetes is configured \(KUBECONFIG="):
        started(tmp_path)


def test_server_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    wrong["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(wrong))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with pytest.raises(InputError, match="the Kubernetes API does not answer"):
        started(tmp_path)


def test_credentials_that_are_wrong_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    wrong["users"][0]["user"] = {"token": "wrong"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(wrong))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with pytest.raises(InputError, match="rejects the credentials"):
        started(tmp_path)


def test_account_without_rights_is_told_what_it_lacks(namespace, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", f"{os.environ['KUBECONFIG']}-unprivileged")
    with pytest.raises(InputError, match=r"forbids this request.*cannot create resource \"daskclusters\""):
        started(tmp_path)


def test_namespace_that_is_not_there_is_named(namespace: None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no namespace 'elsewhere'"):
        started(tmp_path, namespace="elsewhere")


def test_quota_that_is_used_up_is_quoted(namespace: None, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"exceeded quota.*limits.memory"):
        started(tmp_path, worker={"memory": "65Gi"}, scheduler={"memory": "65Gi"}, timeout=15)
    assert lab.no_clusters()


def test_pod_that_no_node_may_run_is_quoted(namespace: None, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no scheduler after 8 s: .*0/1 nodes are available: .*didn't match"):
        started(tmp_path, node_selector={"pool": "none-such"}, timeout=8)
    assert lab.no_clusters()


def test_secret_that_is_not_there_is_quoted(namespace: None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"CreateContainerConfigError.*no-such-secret"):
        started(tmp_path, secrets=["no-such-secret"])
    assert lab.no_clusters()


def test_name_that_is_taken_is_refused(namespace: None, tmp_path: Path) -> None:
    settings = lab.config({"name": "digits"}, tmp_path, workers=1, name="taken")
    with open_cluster(TrainConfig.model_validate(settings).cluster, "first"):
        with pytest.raises(InputError, match='"taken" already exists'):
            started(tmp_path, name="taken")
        assert not lab.no_clusters()
    assert lab.no_clusters()


def test_operator_that_is_not_installed_is_named(namespace, tmp_path, monkeypatch):
    # The server does not know this kind either.
    monkeypatch.setitem(kubernetes.OBJECTS, "group", "not-installed.dask.org")
    with pytest.raises(InputError, match=r"no Dask operator \(no kind DaskCluster\)"):
        started(tmp_path)


@pytest.fixture
def stopped_operator() -> Iterator[None]:
    """The operator does nothing for a while."""
    process = subprocess.run(["pgrep", "-f", "dask_kubernetes.operator.controller"], capture_output=True, text=True)
    pids = [int(pid) for pid in process.stdout.split()]
    if not pids:
        pytest.skip("the operator does not run on this machine")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    yield
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def test_operator_that_does_not_run_is_suspected(namespace: None, stopped_operator: None, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the Dask operator has created nothing: is it running"):
        started(tmp_path, timeout=8)


def test_certificate_that_has_expired_is_named(namespace: None, authority: Authority, tmp_path: Path) -> None:
    lab.put_tls_secret(authority, days=-1)
    with pytest.raises(InputError, match="no encrypted connection: certificate verify failed: certificate has expired"):
        started(tmp_path, tls="test-tls")
    assert lab.no_clusters()
