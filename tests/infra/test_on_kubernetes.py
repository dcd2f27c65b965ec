"""Runs on a real Kubernetes API with the real Dask operator: `make test-kubernetes` starts the labs and runs these.

They need KUBECONFIG, the environment of an S3 server, and names of services that resolve (the lab's `run.sh`).
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import kubernetes_lab as lab
import numpy as np
import pytest
import yaml
from certificates import Authority

from aucdist.data.files import open_fs, read_bytes
from aucdist.errors import InputError, RunError
from flows import pipeline
from flows.clusters import cluster
from flows.config import TrainConfig
from flows.console import Lines
from flows.kube import running

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.skipif("KUBECONFIG" not in os.environ, reason="no cluster: KUBECONFIG is not set"),
    # Of Dask's client in a process that also talks to Kubernetes; of the operator's old API server.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
BUCKET = "s3://aucdist-lab"
API = "http://prefect-server.aucdist:4200/api"
SECRET = ["AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"]


@pytest.fixture(scope="module", autouse=True)
def simulated_node() -> None:
    """Nobody's own cluster is touched."""
    found = subprocess.run(["kubectl", "get", "node", "node-1", "-o", "yaml"], capture_output=True, text=True)
    if "reason: Simulated" not in found.stdout:
        pytest.skip("KUBECONFIG is not that of the lab")


@pytest.fixture(scope="module")
def namespace() -> None:
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
    fs, _ = open_fs(BUCKET)
    fs.makedirs("aucdist-lab", exist_ok=True)


@pytest.fixture(scope="module")
def prefect(namespace: None) -> Iterator[None]:
    """Prefect's server and worker run in the cluster, and know the deployments."""
    lab.kubectl("-n", "aucdist", "delete", "job", "setup", "--ignore-not-found")
    running = [m for m in lab.for_lab(lab.rendered("dev")) if m["kind"] in ("Deployment", "Job")]
    lab.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(running))
    lab.kubectl("-n", "aucdist", "wait", "--for=condition=complete", "job/setup", "--timeout=300s")
    os.environ["PREFECT_API_URL"] = API
    yield
    del os.environ["PREFECT_API_URL"]
    lab.kubectl("-n", "aucdist", "delete", "deployment", "prefect-server", "prefect-worker", "--wait=false")


@pytest.fixture(scope="module")
def a9a(namespace: None, data_dir: Path) -> dict[str, Any]:
    """Data on S3."""
    fs, path = open_fs(f"{BUCKET}/data")
    parts = {}
    for name in ("a9a", "a9a.t"):
        fs.put_file(str(data_dir / "libsvm" / f"{name}.xz"), f"{path}/{name}.xz")
        parts[name] = {"source": f"{BUCKET}/data/{name}.xz", "format": "svmlight", "n_features": 123, "positive": 1}
    return {"source": parts["a9a"], "test": {"source": parts["a9a.t"]}}


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


class Doing(Lines):
    """Follows a run, and does something in each round."""

    def __init__(self, action: Callable[[int], None] = lambda number: None) -> None:
        super().__init__(print)
        self._action = action

    def round(self, record: Any, tol: float) -> None:
        self._action(record["round"])
        super().round(record, tol)


def train(config: dict[str, Any], action: Callable[[int], None] = lambda number: None) -> np.ndarray:
    """Return the weights of a run."""
    result = pipeline.train(TrainConfig.model_validate(config), Doing(action))
    return weights(result["run"])


def weights(run: str) -> np.ndarray:
    w: np.ndarray = np.frombuffer(read_bytes(f"{run}/model/weights.npy"), dtype=np.uint8)
    return w


def no_clusters() -> bool:
    return [c for c in lab.objects("daskclusters") if c["metadata"]["name"] != "aucdist"] == []


def wait_until(true: Callable[[], Any], seconds: float = 120) -> Any:
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"still not so after {seconds} s"
        time.sleep(1)
    return found


def start_run(parameters: dict[str, Any]) -> str:
    """Start a run of train-auc/kubernetes and return its id."""
    out = lab.prefect("deployment", "run", "train-auc/kubernetes", "--params", json.dumps({"config": parameters}))
    return next(line.split()[-1] for line in out.splitlines() if "UUID" in line)


def state_of(run: str) -> str:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        state = client.read_flow_run(run).state
        assert state is not None
        return state.type.value


def test_deployment_from_data_on_s3_to_a_run_folder_on_s3(prefect: None, a9a: dict[str, Any], tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    fs, path = open_fs(f"{BUCKET}/runs")
    if fs.exists(path):
        fs.rm(path, recursive=True)
    run = start_run(config(a9a, f"{BUCKET}/runs", workers=2))
    assert wait_until(lambda: lab.objects("jobs", f"prefect.io/flow-run-id={run}"))
    (made,) = wait_until(lambda: lab.objects("daskclusters", f"aucdist/flow-run={run}"))
    name = made["metadata"]["name"]
    workers = wait_until(lambda: lab.objects("pods", f"dask.org/cluster-name={name},dask.org/component=worker"))
    assert len(wait_until(lambda: [w for w in workers if w["status"]["phase"] == "Running"] or None)) <= 2
    wait_until(lambda: state_of(run) in ("COMPLETED", "FAILED", "CRASHED"), 300)
    with get_client(sync_client=True) as client:
        done = client.read_flow_run(run)
    assert done.name == "a9a-all-pairs-lam1e-3"
    assert done.state is not None
    assert done.state.is_completed(), done.state.message
    assert set(done.tags) >= {"aucdist", "kubernetes"}
    (folder,) = fs.ls(path, detail=False)
    assert no_clusters()
    assert not fs.exists("aucdist-lab/scratch") or fs.find("aucdist-lab/scratch") == []
    assert np.array_equal(weights(f"s3://{folder}"), train(config(a9a, tmp_path)))


def test_worker_pod_that_is_deleted_in_mid_fit_costs_no_bit(a9a: dict[str, Any], tmp_path: Path) -> None:
    deleted = []

    def delete_one(number: int) -> None:
        if number == 5:
            pod = lab.objects("pods", "dask.org/component=worker,dask.org/cluster-name=doomed-worker")[0]["metadata"][
                "name"
            ]
            lab.kubectl("-n", "aucdist", "delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
            deleted.append(pod)

    disturbed = train(config(a9a, tmp_path / "a", lam=1e-4, workers=2, name="doomed-worker"), delete_one)
    assert len(deleted) == 1
    assert np.array_equal(disturbed, train(config(a9a, tmp_path / "b", lam=1e-4)))
    assert no_clusters()


def test_autoscaler_acts_between_fits_and_a_fit_keeps_its_workers(
    a9a: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[int, set[int]] = {1: set(), 3: set()}
    one = config(a9a, tmp_path, blocks=1, workers={"minimum": 1, "maximum": 3}, name="scaled")
    with cluster(TrainConfig.model_validate(one).cluster, "two-fits") as (client, scratch):
        monkeypatch.setattr(pipeline, "cluster", lambda *_: nullcontext((client, scratch)))
        for blocks in (1, 3):
            fitted = train(one | {"blocks": blocks}, lambda _, b=blocks: seen[b].add(len(client.nthreads())))
            assert np.array_equal(fitted, train(config(a9a, tmp_path, blocks=blocks)))
        assert seen == {1: {1}, 3: {3}}
        wait_until(lambda: len(client.nthreads()) < 3)  # nothing to do: the autoscaler takes them away again
    assert no_clusters()


def test_cancelled_run_frees_its_cluster(prefect: None, a9a: dict[str, Any]) -> None:
    run = start_run(config(a9a, f"{BUCKET}/cancelled", lam=1e-7, workers=2))
    wait_until(lambda: lab.objects("daskclusters", f"aucdist/flow-run={run}"))
    lab.prefect("flow-run", "cancel", run)
    wait_until(no_clusters)
    wait_until(lambda: state_of(run) == "CANCELLED")
    assert not open_fs(f"{BUCKET}/cancelled")[0].exists("aucdist-lab/cancelled")


def test_run_whose_pod_is_lost_frees_its_cluster(prefect: None, a9a: dict[str, Any]) -> None:
    """As when a node is lost: nothing in the pod has a chance to do anything. Prefect may start the run again, elsewhere."""
    run = start_run(config(a9a, f"{BUCKET}/lost", lam=1e-7, workers=2))
    (made,) = wait_until(lambda: lab.objects("daskclusters", f"aucdist/flow-run={run}"))
    (job,) = lab.objects("jobs", f"prefect.io/flow-run-id={run}")
    (pod,) = lab.objects("pods", f"job-name={job['metadata']['name']}")
    lab.kubectl(
        "-n", "aucdist", "delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force", "--wait=false"
    )
    wait_until(lambda: made["metadata"]["uid"] not in [c["metadata"]["uid"] for c in lab.objects("daskclusters")])
    if state_of(run) != "CRASHED":
        lab.prefect("flow-run", "cancel", run)
    wait_until(no_clusters)


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
    found = {
        line.split()[0]: set(line[line.rindex("[") + 1 : -1].split()) for line in lines if not line.startswith(" ")
    }
    assert {kind: verbs for kind, verbs in found.items() if kind not in EVERYONE} == ALLOWED[account]
    elsewhere = subprocess.run(
        ["kubectl", "-n", "default", as_account, "auth", "can-i", "list", "pods"], capture_output=True, text=True
    )
    assert elsewhere.stdout.strip() == "no"


@pytest.fixture
def authority(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Authority:
    """Who signs certificates; this process finds its own where pods have theirs."""
    authority = Authority(tmp_path)
    monkeypatch.setattr(running, "TLS_FILES", authority.files("client"))
    return authority


def put_tls_secret(authority: Authority, days: float) -> None:
    files = zip(("ca.crt", "tls.crt", "tls.key"), authority.files("dask", days), strict=True)
    entries = [f"--from-file={key}={file}" for key, file in files]
    made = lab.kubectl(
        "-n", "aucdist", "create", "secret", "generic", "test-tls", *entries, "--dry-run=client", "-o", "yaml"
    )
    lab.kubectl("apply", "-f", "-", stdin=made)


def test_encrypted_cluster_works(namespace: None, authority: Authority, a9a: dict[str, Any], tmp_path: Path) -> None:
    put_tls_secret(authority, days=1)
    settings = config(a9a, tmp_path, workers={"minimum": 1, "maximum": 2}, tls="test-tls", name="encrypted")
    assert np.array_equal(train(settings), train(config(a9a, tmp_path)))
    assert no_clusters()


def test_certificate_that_has_expired_is_named(namespace: None, authority: Authority, tmp_path: Path) -> None:
    put_tls_secret(authority, days=-1)
    with pytest.raises(InputError, match="no encrypted connection: certificate verify failed: certificate has expired"):
        started(tmp_path, tls="test-tls")
    assert no_clusters()


def started(tmp_path: Path, **kubernetes: Any) -> None:
    data = {"name": "digits"}
    with cluster(TrainConfig.model_validate(config(data, tmp_path, workers=1, **kubernetes)).cluster, "bad-input"):
        pass


def test_wrong_kubeconfig_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"no Kubernetes to talk to \(KUBECONFIG="):
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
    with pytest.raises(InputError, match="does not know these credentials"):
        started(tmp_path)


def test_account_without_rights_is_told_what_it_lacks(
    namespace: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{os.environ['KUBECONFIG']}-unprivileged")
    with pytest.raises(InputError, match=r"refuses this to us.*cannot create resource \"daskclusters\""):
        started(tmp_path)


def test_namespace_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no namespace 'elsewhere'"):
        started(tmp_path, namespace="elsewhere")


def test_quota_that_is_used_up_is_quoted(namespace: None, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"exceeded quota.*limits.memory"):
        started(tmp_path, worker={"memory": "65Gi"}, scheduler={"memory": "65Gi"}, timeout=15)
    assert no_clusters()


def test_pod_that_no_node_may_run_is_quoted(namespace: None, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no scheduler after 8 s: .*0/1 nodes are available: .*didn't match"):
        started(tmp_path, node_selector={"pool": "none-such"}, timeout=8)
    assert no_clusters()


def test_secret_that_is_not_there_is_quoted(namespace: None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"CreateContainerConfigError.*no-such-secret"):
        started(tmp_path, secrets=["no-such-secret"])
    assert no_clusters()


def test_name_that_is_taken_is_refused(namespace: None, tmp_path: Path) -> None:
    settings = config({"name": "digits"}, tmp_path, workers=1, name="taken")
    with cluster(TrainConfig.model_validate(settings).cluster, "first"):
        with pytest.raises(InputError, match='"taken" already exists'):
            started(tmp_path, name="taken")
        assert not no_clusters()
    assert no_clusters()


@pytest.fixture
def stopped_operator() -> Iterator[None]:
    """The operator does nothing for a while."""
    found = subprocess.run(["pgrep", "-f", "dask_kubernetes.operator.controller"], capture_output=True, text=True)
    pids = [int(pid) for pid in found.stdout.split()]
    if not pids:
        pytest.skip("the operator does not run on this machine")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    yield
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def test_operator_that_does_not_run_is_suspected(namespace: None, stopped_operator: None, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the Dask operator has made nothing of it: is it running"):
        started(tmp_path, timeout=8)
