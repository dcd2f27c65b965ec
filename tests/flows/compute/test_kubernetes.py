"""Clusters on Kubernetes, with a make-believe API: names, what keeps them from starting, and that they are removed.

The real API is in `tests/infra/test_on_kubernetes.py`.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from aucdist.errors import InputError, RunError
from flows.compute import kubernetes as running
from flows.compute.kubernetes import Api, _user_error, address_of, manifests_of, retry_until_counted
from flows.config.cluster import KubernetesConfig

DNS_LABEL = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "POLL_SECONDS", 0.01)


def config(**more: Any) -> KubernetesConfig:
    return KubernetesConfig.model_validate(
        {"kind": "kubernetes", "image": "aucdist:1", "scratch": "s3://b/s", "timeout": 0.05} | more
    )


@given(st.text(max_size=80))
def test_any_run_gives_a_name_that_the_operator_and_its_services_take(run: str) -> None:
    name = running.cluster_name(run)
    assert DNS_LABEL.match(name)
    assert len(f"{name}-scheduler") <= 63
    assert running.cluster_name(run) != name


def container(made: dict[str, Any], role: str) -> dict[str, Any]:
    (only,) = made["spec"][role]["spec"]["containers"]
    container_spec: dict[str, Any] = only
    return container_spec


def test_cluster_is_as_configured() -> None:
    settings = config(
        workers=3, threads=2, worker={"cpu": "2", "memory": "4Gi"}, scheduler={"memory": "1G"}, secrets=["s3"],
        node_selector={"pool": "dask"}, tolerations=[{"key": "dedicated", "operator": "Exists"}], service_account="me",
    )  # fmt: skip
    (made,) = manifests_of(settings, "c", {"run": "1"}, None)
    worker, scheduler = container(made, "worker"), container(made, "scheduler")
    assert made["metadata"] == {"name": "c", "namespace": "aucdist", "labels": {"run": "1"}}
    assert made["spec"]["worker"]["replicas"] == 3
    assert worker["args"][:3] == ["dask", "worker", "tcp://c-scheduler.aucdist:8786"]
    assert worker["args"][worker["args"].index("--nthreads") + 1] == "2"
    assert worker["args"][worker["args"].index("--memory-limit") + 1] == str(int(0.9 * 4 * 2**30))
    assert worker["resources"] == {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi"}}
    assert scheduler["resources"]["limits"] == {"memory": "1G"}
    assert worker["envFrom"] == [{"secretRef": {"name": "s3"}}]
    assert "envFrom" not in scheduler
    for role in ("scheduler", "worker"):
        pod = made["spec"][role]["spec"]
        assert pod["nodeSelector"] == {"pool": "dask"}
        assert pod["tolerations"][0]["key"] == "dedicated"
        assert pod["serviceAccountName"] == "me"
        assert pod["automountServiceAccountToken"] is False


def test_cluster_that_scales_starts_with_the_least_and_has_an_autoscaler() -> None:
    settings = config(workers={"minimum": 1, "maximum": 5})
    cluster, autoscaler = manifests_of(settings, "c", {}, None)
    assert cluster["spec"]["worker"]["replicas"] == 1
    assert autoscaler["spec"] == {"cluster": "c", "minimum": 1, "maximum": 5}


def test_encrypted_cluster_speaks_nothing_else() -> None:
    settings = config(tls="certificates")
    (made,) = manifests_of(settings, "c", {}, None)
    assert address_of(settings, "c") == "tls://c-scheduler.aucdist:8786"
    for role in ("scheduler", "worker"):
        only = container(made, role)
        environment = {entry["name"]: entry["value"] for entry in only["env"]}
        assert environment["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
        assert only["args"][only["args"].index("--protocol") + 1] == "tls"
        assert {"name": "tls", "secret": {"secretName": "certificates"}} in made["spec"][role]["spec"]["volumes"]


def test_pod_owns_the_cluster_that_its_flow_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert running._owner() is None
    monkeypatch.setenv("POD_NAME", "flow-1")
    monkeypatch.setenv("POD_UID", "u")
    owner = running._owner()
    assert owner == {"apiVersion": "v1", "kind": "Pod", "name": "flow-1", "uid": "u"}
    assert manifests_of(config(), "c", {}, owner)[0]["metadata"]["ownerReferences"] == [owner]


def thing(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**fields)


def pod(component: str, *, ready: bool = False, waiting: Any = None, ended: Any = None, condition: Any = None) -> Any:
    conditions = [thing(type="Ready", status=str(ready), message=None)] + ([condition] if condition else [])
    state = thing(waiting=waiting, terminated=None)
    status = thing(conditions=conditions, container_statuses=[thing(state=state, last_state=thing(terminated=ended))])
    return thing(metadata=thing(name=f"{component}-pod", labels={"dask.org/component": component}), status=status)


class MakeBelieve:
    """An API server with an operator that creates what the test gives."""

    def __init__(self, pods: list[Any], deployments: list[Any] | None = None) -> None:
        self.namespace = "aucdist"
        self._pods = pods
        self._deployments = (
            [thing(metadata=thing(name="d"), status=thing(conditions=None))] if deployments is None else deployments
        )
        self.there: dict[str, Any] = {}

    def create(self, body: dict[str, Any]) -> None:
        self.there[body["kind"]] = body

    def clusters(self, selector: str) -> list[dict[str, Any]]:
        return [self.there["DaskCluster"]] if "DaskCluster" in self.there else []

    def delete_cluster(self, name: str) -> None:
        assert self.there["DaskCluster"]["metadata"]["name"] == name
        self.there.clear()

    def pods(self, name: str) -> list[Any]:
        return self._pods

    def deployments(self, name: str) -> list[Any]:
        return self._deployments


def waits(reason: str, message: str) -> list[Any]:
    return [pod("scheduler", waiting=thing(reason=reason, message=message))]


def failure(message: str) -> Any:
    return thing(metadata=thing(name="d"), status=thing(conditions=[thing(type="ReplicaFailure", message=message)]))


@pytest.mark.parametrize(
    ("pods", "deployments", "kind", "message"),
    [
        ([], [], RunError, "no scheduler after 0.05 s: the Dask operator has created nothing: is it running"),
        ([], [failure("exceeded quota: aucdist")], RunError, "d: exceeded quota: aucdist"),
        ([pod("scheduler")], None, RunError, "its pods are starting"),
        (waits("ImagePullBackOff", "no image"), None, InputError, "cannot start: scheduler-pod: ImagePullBackOff: no image"),
        (waits("ErrImagePull", "later"), None, RunError, "no scheduler after 0.05 s: scheduler-pod: ErrImagePull: later"),
        (
            [pod("scheduler", condition=thing(type="PodScheduled", status="False", message="0/3 nodes"))], None,
            RunError, "scheduler-pod: 0/3 nodes",
        ),
        ([pod("scheduler", ended=thing(exit_code=137, reason="OOMKilled"))], None, RunError, r"ended with 137 \(OOMKilled\)"),
        ([pod("worker", ready=True)], None, RunError, "no scheduler"),
    ],
)  # fmt: skip
def test_cluster_that_does_not_start_says_why_and_is_removed(pods, deployments, kind, message, monkeypatch):
    api = MakeBelieve(pods, deployments)
    monkeypatch.setattr(running, "Api", lambda namespace: api)
    with pytest.raises(kind, match=message), running.dask_cluster(config(), "run"):
        pass
    assert api.there == {}


def test_a_secret_that_a_node_does_not_know_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    api: Any = MakeBelieve(waits("CreateContainerConfigError", "no relationship found between node and this object"))
    looks = iter([False, False, True])
    running._wait(api, "c", "scheduler", lambda: next(looks), timeout=60)
    monkeypatch.setitem(running.HOPELESS, "CreateContainerConfigError", 0.05)
    with pytest.raises(InputError, match="cannot start: scheduler-pod: CreateContainerConfigError"):
        running._wait(api, "c", "scheduler", lambda: False, timeout=60)


@pytest.mark.parametrize("deployments", [[], [failure("exceeded quota: aucdist")]])
def test_what_others_must_mend_is_not_waited_for_as_long_as_a_start(deployments, monkeypatch):
    monkeypatch.setattr(running, "Api", lambda namespace: MakeBelieve([], deployments))
    monkeypatch.setattr(running, "FAULT_SECONDS", 0.02)
    with pytest.raises(RunError, match=r"no scheduler after 0.02 s"), running.dask_cluster(config(timeout=300), "run"):
        pass


@contextmanager
def connected(api, monkeypatch, resolve=lambda host, port: [], **more):
    client = thing(nthreads=lambda: {"tcp://a:1": 1, "tcp://b:2": 1})

    @contextmanager
    def connect(address: str, timeout: float, tls: Any) -> Iterator[Any]:
        yield client

    monkeypatch.setattr(running, "Api", lambda namespace: api)
    monkeypatch.setattr(running, "connect", connect)
    monkeypatch.setattr(running, "check_versions", lambda client: None)
    monkeypatch.setattr(running, "socket", thing(getaddrinfo=resolve))  # not that of other threads
    with running.dask_cluster(config(**more), "run") as cluster:
        yield cluster


def test_run_outside_the_cluster_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    api = MakeBelieve([pod("scheduler", ready=True)])

    def unknown(host: str, port: None) -> None:
        raise OSError(f"no {host}")

    monkeypatch.setattr(running, "FAULT_SECONDS", 0.01)
    message = r"the name here-scheduler.aucdist does not resolve here: .*must itself be in"
    with pytest.raises(InputError, match=message), connected(api, monkeypatch, unknown, name="here"):
        pass
    assert api.there == {}


def test_cluster_is_removed_however_the_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    api = MakeBelieve([pod("scheduler", ready=True)])
    with connected(api, monkeypatch, workers={"minimum": 1, "maximum": 2}):
        assert set(api.there) == {"DaskCluster", "DaskAutoscaler"}
    assert api.there == {}
    for end in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(end), connected(api, monkeypatch):
            raise end
        assert api.there == {}


def test_workers_that_do_not_come_are_asked_after(monkeypatch: pytest.MonkeyPatch) -> None:
    api = MakeBelieve([pod("scheduler", ready=True), pod("worker", waiting=thing(reason="X", message="y"))])
    said = r"has no 3 workers after 0.05 s: worker-pod: X: y"
    with pytest.raises(RunError, match=said), connected(api, monkeypatch, workers=3):
        pass
    assert api.there == {}


def test_removal_that_fails_does_not_hide_how_the_run_ended(monkeypatch, caplog):
    api = MakeBelieve([pod("scheduler", ready=True)])

    def fail(name: str) -> None:
        raise RunError("the API is out")

    api.delete_cluster = fail  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError), connected(api, monkeypatch):
        raise ZeroDivisionError
    assert "could not remove DaskCluster aucdist-run-" in caplog.text
    assert "the API is out" in caplog.text


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (401, '{"message": "Unauthorized"}', InputError, "rejects the credentials"),
        (403, '{"message": "exceeded quota: q"}', RunError, "the quota of namespace here is used up: exceeded quota: q"),
        (403, '{"message": "status unknown for quota: q"}', RunError, "here was not counted within 360 s: status unknown for"),
        (403, '{"message": "cannot"}', InputError, "forbids this request, see infra/kubernetes/base/roles.yaml: cannot"),
        (404, '{"message": "namespaces \\"here\\" not found"}', InputError, "no namespace 'here'"),
        (404, "404 page not found", InputError, "no Dask operator"),
        (409, '{"message": "already exists"}', InputError, "rejects this object: already exists"),
        (422, '{"message": "spec.x: Invalid"}', InputError, "rejects this object: spec.x: Invalid"),
        (500, "", RunError, r"failed \(500\): reason"),
    ],
)  # fmt: skip
def test_answers_of_the_api_in_our_words(status: int, body: str, kind: type[Exception], message: str) -> None:
    error = _user_error(thing(status=status, body=body, reason="reason"), "here", "KUBECONFIG=x")
    assert type(error) is kind
    assert re.search(message, str(error))


@pytest.mark.parametrize(("patience", "calls"), [(60.0, 3), (0.0, 1)])
def test_a_quota_that_is_not_counted_yet_is_waited_for(patience, calls, monkeypatch, caplog):
    class Refused(Exception):
        body = '{"message": "forbidden: status unknown for quota: aucdist"}'

    monkeypatch.setattr("flows.compute.kubernetes.QUOTA_PATIENCE", patience)
    calls_made = []

    def create() -> None:
        calls_made.append("created")
        if len(calls_made) < 3:
            raise Refused

    with nullcontext() if calls == 3 else pytest.raises(Refused):
        retry_until_counted(create, pause=0.0 if calls == 3 else 0.01)
    assert len(calls_made) == calls
    said = [r.message.startswith("Kubernetes has not counted the quota yet") for r in caplog.records]
    assert said == [True] * (patience > 0)


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(InputError, match=r"kubernetes is not installed: .*pip install '.\[kubernetes\]'"):
        Api("aucdist")
