"""The manifests, checked without a cluster: by kustomize, by Kubernetes' own schemas, and against the code they belong to."""

import itertools
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import kubernetes_lab as lab

from flows.compute.clusters import choose_cache
from flows.compute.kubernetes import RUN_LABEL, TLS_FILES, TLS_FOLDER, _memory_limit, manifests_of
from flows.config.cluster import KubernetesConfig, Resources
from flows.rows.rows import BYTES_PER_BLOCK

INFRA = lab.ROOT / "infra"
OVERLAYS = ("dev", "prod")
VERSION = "1.32.0"
OF_OPERATORS = ("kubernetes.dask.org/", "cert-manager.io/", "external-secrets.io/")


@pytest.fixture(scope="module", params=OVERLAYS)
def manifests(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    return lab.rendered(request.param)


def test_kubernetes_knows_every_key(manifests: list[dict[str, Any]]) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    for manifest in [*manifests, lab.pool_job()]:
        if not manifest["apiVersion"].startswith(OF_OPERATORS):
            assert validate.validate(manifest, VERSION, strict=True) == VERSION.rpartition(".")[0]


def test_the_dask_operator_knows_every_key(manifests: list[dict[str, Any]]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    if find_spec("dask_kubernetes") is None:
        pytest.skip("dask-kubernetes is not installed")
    folder = Path(next(iter(find_spec("dask_kubernetes").submodule_search_locations)))  # type: ignore[union-attr,arg-type]
    kinds = {}
    for file in folder.glob("operator/deployment/helm/dask-kubernetes-operator/crds/*.yaml"):
        crd = yaml.safe_load(file.read_text())["spec"]
        kinds[crd["names"]["kind"]] = _closed(crd["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])
    settings = KubernetesConfig.model_validate(EVERYTHING)
    made = manifests_of(settings, "c", {}, None)
    for manifest in [*made, *(m for m in manifests if m["apiVersion"].startswith(OF_OPERATORS[0]))]:
        errors = jsonschema.Draft202012Validator(kinds[manifest["kind"]]).iter_errors(manifest["spec"])
        assert [error.message for error in errors] == [], manifest["kind"]


EVERYTHING = {
    "kind": "kubernetes", "image": "i", "scratch": "s3://b/s", "workers": {"minimum": 1, "maximum": 3}, "tls": "certificates",
    "secrets": ["s3"], "node_selector": {"pool": "dask"}, "tolerations": [{"key": "dedicated", "operator": "Exists"}],
}  # fmt: skip


def _closed(schema: Any) -> Any:
    """Return a schema that takes the keys it names and no others, as the API server prunes them."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        closed["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields", False))
    return closed


def test_pods_run_without_rights_that_they_do_not_need(manifests: list[dict[str, Any]]) -> None:
    for name, spec, labels in lab.pods(manifests):
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["serviceAccountName"] != "default", name
        may_ask_kubernetes = labels["app.kubernetes.io/component"] in ("worker", "flow")
        assert spec.get("automountServiceAccountToken", True) is may_ask_kubernetes, name
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True, name
            assert context["allowPrivilegeEscalation"] is False, name
            assert context["capabilities"] == {"drop": ["ALL"]}, name
            assert {"requests", "limits"} <= set(container["resources"]), name
            assert "memory" in container["resources"]["limits"], name


def test_one_image_with_a_tag_everywhere(manifests: list[dict[str, Any]]) -> None:
    (settings,) = (m["data"] for m in manifests if m["kind"] == "ConfigMap" and m["metadata"]["name"] == "aucdist")
    images = {
        c["image"] for name, spec, _ in lab.pods(manifests) for c in spec["containers"] if name != "the pool's Job"
    }
    assert {image for image in images if "postgres" not in image} == {settings["AUCDIST_IMAGE"]}
    assert all(re.search(r":[\w.-]+$", image) and not image.endswith(":latest") for image in images)


def test_no_secret_is_written_down(manifests: list[dict[str, Any]]) -> None:
    assert [m["metadata"]["name"] for m in manifests if m["kind"] == "Secret"] == []
    for _, spec, _ in lab.pods(manifests):
        for container in spec["containers"]:
            for entry in container.get("env", []):
                secret = re.search(r"PASSWORD|SECRET_ACCESS|AUTH_STRING$|CONNECTION_URL", entry["name"])
                assert not secret or "value" not in entry, entry["name"]


def test_roles_name_verbs_and_bind_to_accounts_that_are_there(manifests: list[dict[str, Any]]) -> None:
    accounts = {m["metadata"]["name"] for m in manifests if m["kind"] == "ServiceAccount"}
    roles = {m["metadata"]["name"]: m["rules"] for m in manifests if m["kind"] == "Role"}
    assert not [m for m in manifests if m["kind"] in ("ClusterRole", "ClusterRoleBinding")]
    for binding in (m for m in manifests if m["kind"] == "RoleBinding"):
        assert binding["roleRef"]["name"] in roles
        assert {s["name"] for s in binding["subjects"]} <= accounts
    for rules in roles.values():
        for rule in rules:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            assert "secrets" not in rule["resources"]
    assert {spec["serviceAccountName"] for _, spec, _ in lab.pods(manifests)} <= accounts


def test_network_policies_are_about_pods_that_are_there(manifests: list[dict[str, Any]]) -> None:
    components = {labels["app.kubernetes.io/component"] for _, _, labels in lab.pods(manifests)} | {"dask"}
    policies = yaml.safe_dump([m["spec"] for m in manifests if m["kind"] == "NetworkPolicy"])
    named = re.findall(r"app.kubernetes.io/component: (\w+)", policies)
    listed = re.findall(r"- (\w+)", "".join(re.findall(r"values:\n((?:\s+- \w+\n)+)", policies)))
    assert set(named) | set(listed) == components
    nothing = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert nothing in [m["spec"] for m in manifests if m["kind"] == "NetworkPolicy"]


def test_standing_cluster_is_what_the_flows_make() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    objects = {m["kind"]: m for m in lab.rendered("dev") if m["apiVersion"].startswith("kubernetes.dask.org/")}
    image = objects["DaskCluster"]["spec"]["worker"]["spec"]["containers"][0]["image"]
    content = {"kind": "kubernetes", "image": image, "scratch": "s3://-", "secrets": ["aucdist-s3"]}
    settings = KubernetesConfig.model_validate(content | {"workers": {"minimum": 1, "maximum": 4}})
    for manifest in manifests_of(settings, "aucdist", {}, None):
        assert objects[manifest["kind"]]["spec"] == manifest["spec"]
    assert objects["DaskCluster"]["metadata"]["labels"].items() >= {"app.kubernetes.io/component": "dask"}.items()
    assert RUN_LABEL not in objects["DaskCluster"]["metadata"]["labels"]


def test_flow_finds_its_certificates_where_the_pool_puts_them() -> None:
    container = lab.pool_job()["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "tls", "mountPath": TLS_FOLDER, "readOnly": True} in container["volumeMounts"]
    assert {Path(file).name for file in TLS_FILES} == {"ca.crt", "tls.crt", "tls.key"}
    assert {entry["name"] for entry in container["env"]} == {"POD_NAME", "POD_UID"}


def test_each_deployment_starts_a_flow_with_parameters_that_it_takes() -> None:
    from prefect.flows import load_flow_from_entrypoint
    from prefect.utilities.templating import apply_values

    values = {"IMAGE": "i:1", "BUCKET": "s3://b", "NAMESPACE": "ns", "DASK_TLS": ""}
    environment = {f"AUCDIST_{name}": value for name, value in values.items()}
    entries = yaml.safe_load((INFRA / "prefect" / "prefect.yaml").read_text())["deployments"]
    pools: dict[str, set[str]] = {}
    for entry in apply_values(entries, environment, remove_notset=False):  # as `prefect deploy` does
        flow = load_flow_from_entrypoint(entry["entrypoint"])
        pools.setdefault(flow.name, set()).add(entry["work_pool"]["name"])
        assert entry["name"] == entry["work_pool"]["name"]
        if "parameters" in entry:
            flow.validate_parameters(entry["parameters"])
    assert all(kinds == {"local", "kubernetes"} for kinds in pools.values()), pools
    assert {"train-auc", "cross-validate", "shard-data", "score", "reproduce"} <= set(pools)


def test_image_gives_up_its_rights() -> None:
    lines = [line.split() for line in (INFRA / "docker" / "Dockerfile").read_text().splitlines() if line]
    words = [line[0] for line in lines]
    assert lines[len(words) - 1 - words[::-1].index("USER")] == ["USER", "10001:10001"]
    assert "HEALTHCHECK" in words
    assert sum(line[0] == "FROM" for line in lines) == 2


def test_compose_publishes_nothing_beyond_this_machine() -> None:
    services = yaml.safe_load((INFRA / "docker" / "compose.yaml").read_text())["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def table(first: str) -> list[list[str]]:
    """Return the cells of the table of infra/README.md whose head begins so."""
    lines = (INFRA / "README.md").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = [lines[start], *itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_table_of_rights_is_what_the_roles_say() -> None:
    roles = yaml.safe_load_all((INFRA / "kubernetes" / "base" / "roles.yaml").read_text())
    head, *rows = table("account")
    documented = {row[0].strip("`"): {k: v for k, v in zip(head[2:], row[2:], strict=True) if v} for row in rows}
    rights: dict[str, dict[str, str]] = {name: {} for name in documented}
    for role in (m for m in roles if m["kind"] == "Role"):
        rights[role["metadata"]["name"]] = {
            resource: ", ".join(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]
        }
    assert documented == rights


def test_table_of_sizes_is_what_the_flows_decide() -> None:
    """So many workers keep the rows, one less would not; the seconds are the formula's."""
    for shape, itemsize, size, kept, seconds in table("rows x features")[1:]:
        rows, features = (int(number.replace(" ", "")) for number in shape.split(" x "))
        n_bytes = rows * (features * int(itemsize) + 9)
        assert size == f"{n_bytes / 2**30:.2f} GiB"
        workers, memory = int(kept.split()[0]), kept.split()[-1]
        room = (_memory_limit(Resources(memory=memory)), 1)
        assert choose_cache("auto", n_bytes, 2**26, [room] * workers)[0] is False, shape
        assert workers == 1 or choose_cache("auto", n_bytes, 2**26, [room] * (workers - 1))[0] is True, shape
        per_core = n_bytes / 1e9 / workers
        assert seconds == f"{0.01 + 0.1 * per_core:.2f} to {0.02 + 0.25 * per_core:.2f}"


def test_a_pod_of_one_gibibyte_streams_any_rows() -> None:
    assert choose_cache("auto", 2**50, BYTES_PER_BLOCK, [(_memory_limit(Resources(memory="1Gi")), 1)])[0] is True
