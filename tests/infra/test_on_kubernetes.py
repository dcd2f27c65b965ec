"""Runs on a real Kubernetes API with the real Dask operator: `make test-kubernetes` starts the labs and runs these.

They need KUBECONFIG, the environment of an S3 server, and names of services that resolve (the lab's `run.sh`).
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support import kubernetes_lab as lab
from support.certificates import Authority
from support.kubernetes_runs import API, seen_by_prefect, start_run, state_of, train, weights

from aucdist.data.storage.files import open_fs
from flows.compute.clusters import open_cluster
from flows.train import run as pipeline
from flows.train.config import TrainConfig

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.skipif("KUBECONFIG" not in os.environ, reason="no cluster: KUBECONFIG is not set"),
    # Of Dask's client in a process that also talks to Kubernetes; of the operator's old API server.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def prefect(namespace: None) -> Iterator[None]:
    """Prefect's server and worker run in the cluster, and know the deployments."""
    lab.kubectl("-n", "aucdist", "delete", "job", "setup", "--ignore-not-found")
    running = [m for m in lab.for_lab(lab.rendered("dev")) if m["kind"] in ("Deployment", "Job")]
    lab.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(running))
    lab.kubectl("-n", "aucdist", "wait", "--for=condition=complete", "job/setup", "--timeout=600s")
    os.environ["PREFECT_API_URL"] = API
    yield
    del os.environ["PREFECT_API_URL"]
    servers = ("prefect-server", "prefect-worker")
    lab.kubectl("-n", "aucdist", "delete", "deployment", *servers, "--wait=false", "--ignore-not-found")


@pytest.fixture(scope="module")
def a9a(namespace: None, data_dir: Path) -> dict[str, Any]:
    """Data on S3."""
    fs, path = open_fs(f"{lab.BUCKET}/data")
    parts = {}
    for name in ("a9a", "a9a.t"):
        fs.put_file(str(data_dir / "libsvm" / f"{name}.xz"), f"{path}/{name}.xz")
        parts[name] = {"source": f"{lab.BUCKET}/data/{name}.xz", "format": "svmlight", "n_features": 123, "positive": 1}
    return {"source": parts["a9a"], "test": {"source": parts["a9a.t"]}}


def test_deployment_from_data_on_s3_to_a_run_folder_on_s3(prefect: None, a9a: dict[str, Any], tmp_path: Path) -> None:
    fs, path = open_fs(f"{lab.BUCKET}/runs")
    if fs.exists(path):
        fs.rm(path, recursive=True)
    run = start_run(lab.config(a9a, f"{lab.BUCKET}/runs", workers=2))
    assert lab.wait_until(lambda: lab.objects("jobs", f"prefect.io/flow-run-id={run}"))
    (made,) = lab.wait_until(lambda: lab.objects("daskclusters", f"aucdist/flow-run={run}"))
    name = made["metadata"]["name"]
    selector = f"dask.org/cluster-name={name},dask.org/component=worker"
    lab.wait_until(lambda: [p["status"]["phase"] for p in lab.objects("pods", selector)] == ["Running", "Running"])
    lab.wait_until(lambda: state_of(run) in ("COMPLETED", "FAILED", "CRASHED"))
    done = seen_by_prefect(run)
    assert done["name"] == "a9a-all-pairs-lam1e-3"
    assert done["state"]["type"] == "COMPLETED", done["state"]["message"]
    assert set(done["tags"]) >= {"aucdist", "kubernetes"}
    (folder,) = fs.ls(path, detail=False)
    assert lab.no_clusters()
    assert not fs.exists("aucdist-lab/scratch") or fs.find("aucdist-lab/scratch") == []
    assert np.array_equal(weights(f"s3://{folder}"), train(lab.config(a9a, tmp_path)))


def test_worker_pod_that_is_deleted_in_mid_fit_costs_no_bit(a9a: dict[str, Any], tmp_path: Path) -> None:
    deleted = []

    def delete_one(number: int) -> None:
        if number == 5:
            pod = lab.objects("pods", "dask.org/component=worker,dask.org/cluster-name=doomed-worker")[0]["metadata"][
                "name"
            ]
            lab.kubectl("-n", "aucdist", "delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
            deleted.append(pod)

    disturbed = train(lab.config(a9a, tmp_path / "a", lam=1e-4, workers=2, name="doomed-worker"), delete_one)
    assert len(deleted) == 1
    assert np.array_equal(disturbed, train(lab.config(a9a, tmp_path / "b", lam=1e-4)))
    assert lab.no_clusters()


def test_autoscaler_acts_between_fits_and_a_fit_keeps_its_workers(a9a, tmp_path, monkeypatch):
    seen: dict[int, set[int]] = {1: set(), 3: set()}
    config = lab.config(a9a, tmp_path, blocks=1, workers={"minimum": 1, "maximum": 3}, name="scaled")
    with open_cluster(TrainConfig.model_validate(config).cluster, "two-fits") as workers:
        monkeypatch.setattr(pipeline, "open_cluster", lambda *_: nullcontext(workers))
        for blocks in (1, 3):
            fitted = train(config | {"blocks": blocks}, lambda _, b=blocks: seen[b].add(len(workers.client.nthreads())))
            assert np.array_equal(fitted, train(lab.config(a9a, tmp_path, blocks=blocks)))
        assert seen == {1: {1}, 3: {3}}
        lab.wait_until(
            lambda: len(workers.client.nthreads()) < 3
        )  # nothing to do: the autoscaler takes them away again
    assert lab.no_clusters()


def log_of(run: str) -> str:
    (job,) = lab.objects("jobs", f"prefect.io/flow-run-id={run}")
    return lab.kubectl("-n", "aucdist", "logs", f"job/{job['metadata']['name']}")


def test_cancelled_run_frees_its_cluster(prefect: None, a9a: dict[str, Any]) -> None:
    run = start_run(lab.config(a9a, f"{lab.BUCKET}/cancelled", lam=1e-7, workers=2))
    lab.wait_until(lambda: lab.objects("daskclusters", f"aucdist/flow-run={run}"))
    lab.prefect("flow-run", "cancel", run)
    lab.wait_until(lab.no_clusters)
    lab.wait_until(lambda: state_of(run) == "CANCELLED")
    lab.wait_until(lambda: "Cancelled flow run" in log_of(run))
    assert "removed clusters that the run had left: " in log_of(run)  # the hook ran, too
    assert not open_fs(f"{lab.BUCKET}/cancelled")[0].exists("aucdist-lab/cancelled")


def test_run_whose_pod_is_lost_frees_its_cluster(prefect: None, a9a: dict[str, Any]) -> None:
    """As when a node is lost: nothing in the pod has a chance to do anything. Prefect may start the run again, elsewhere."""
    run = start_run(lab.config(a9a, f"{lab.BUCKET}/lost", lam=1e-7, workers=2))
    (made,) = lab.wait_until(lambda: lab.objects("daskclusters", f"aucdist/flow-run={run}"))
    (job,) = lab.objects("jobs", f"prefect.io/flow-run-id={run}")
    (pod,) = lab.objects("pods", f"job-name={job['metadata']['name']}")
    lab.kubectl(
        "-n", "aucdist", "delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force", "--wait=false"
    )
    lab.wait_until(lambda: made["metadata"]["uid"] not in [c["metadata"]["uid"] for c in lab.objects("daskclusters")])
    if state_of(run) != "CRASHED":
        lab.prefect("flow-run", "cancel", run)
    assert lab.wait_until(lab.no_clusters)


ALLOWED = {
    "aucdist-flow": {
        "daskclusters.kubernetes.dask.org": {"create", "list", "delete"},
        "daskautoscalers.kubernetes.dask.org": {"create"},
        "pods": {"list"},
        "deployments.apps": {"list"},
    },
    "aucdist-worker": {
        "jobs.batch": {"create", "get", "list", "watch", "delete"},
        "pods": {"get", "list", "watch"},
        "pods/log": {"get"},
        "events": {"list"},
    },
    "aucdist-server": {},
    "aucdist-dask": {},
}
EVERYONE = {"selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io"}


@pytest.mark.parametrize("account", ALLOWED)
def test_account_may_do_this_and_nothing_else(namespace: None, account: str) -> None:
    """What the API server itself lists: `kubectl auth can-i --list`."""
    as_account = f"--as=system:serviceaccount:aucdist:{account}"
    lines = lab.kubectl("-n", "aucdist", as_account, "auth", "can-i", "--list").splitlines()[1:]
    allowed = {
        line.split()[0]: set(line[line.rindex("[") + 1 : -1].split()) for line in lines if not line.startswith(" ")
    }
    assert {kind: verbs for kind, verbs in allowed.items() if kind not in EVERYONE} == ALLOWED[account]
    elsewhere = subprocess.run(
        ["kubectl", "-n", "default", as_account, "auth", "can-i", "list", "pods"], capture_output=True, text=True
    )
    assert elsewhere.stdout.strip() == "no"


def test_encrypted_cluster_works(namespace: None, authority: Authority, a9a: dict[str, Any], tmp_path: Path) -> None:
    lab.put_tls_secret(authority, days=1)
    settings = lab.config(a9a, tmp_path, workers={"minimum": 1, "maximum": 2}, tls="test-tls", name="encrypted")
    assert np.array_equal(train(settings), train(lab.config(a9a, tmp_path)))
    assert lab.no_clusters()


def test_standing_cluster_takes_runs_and_all_is_removed(namespace: None, a9a: dict[str, Any], tmp_path: Path) -> None:
    """The last one: what `kubectl apply -k` made, `kubectl delete -k` takes away."""
    manifests = lab.for_lab(lab.rendered("dev"))
    standing = [m for m in manifests if m["kind"] in ("DaskCluster", "DaskAutoscaler")]
    lab.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(standing))
    address = {"kind": "address", "address": "tcp://aucdist-scheduler.aucdist:8786", "scratch": f"{lab.BUCKET}/scratch"}
    settings = lab.config(a9a, tmp_path) | {"cluster": address | {"timeout": 120}}
    assert np.array_equal(train(settings), train(lab.config(a9a, tmp_path)))
    lab.kubectl("-n", "aucdist", "delete", "daskclusters,daskautoscalers", "--all")
    lab.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=yaml.safe_dump_all(manifests))
    process = subprocess.run(["kubectl", "get", "namespace", "aucdist"], capture_output=True, text=True)
    assert "NotFound" in process.stderr
