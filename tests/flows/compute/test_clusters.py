"""Kinds of clusters: what is accepted, who is let in, and that nothing stays behind."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster, Security
from numba.core.event import end_event, start_event
from pydantic import TypeAdapter, ValidationError
from support.certificates import Authority
from support.runs import QUIET

from aucdist.engine import workers
from aucdist.engine.dask import local_client
from aucdist.errors import InputError, RunError
from flows.compute.clusters import COMPILING, Stages, choose_cache, fixed_worker_set, open_cluster, worker_memory
from flows.config.cluster import ClusterConfig

CONFIG: TypeAdapter[Any] = TypeAdapter(ClusterConfig)
KUBERNETES = {"kind": "kubernetes", "image": "aucdist", "scratch": "s3://bucket/scratch"}
ADDRESS = {"kind": "address", "address": "tcp://host:1", "scratch": "/tmp"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kind": "cloud"}, "none', 'local', 'address', 'kubernetes'"),
        (ADDRESS | {"address": "host:8786"}, "should match pattern"),
        (ADDRESS | {"address": "tls://host:1"}, "belongs to an address that starts with tls://"),
        (ADDRESS | {"tls": {"ca": "a", "cert": "b", "key": "c"}}, "belongs to an address that starts with tls://"),
        (ADDRESS | {"timeout": 0}, "greater than 0"),
        (KUBERNETES | {"image": ""}, "at least 1 character"),
        (KUBERNETES | {"name": "Upper"}, "should match pattern"),
        (KUBERNETES | {"name": "a" * 54}, "at most 53 characters"),
        (KUBERNETES | {"workers": {"minimum": 3, "maximum": 2}}, r"minimum \(3\) is more than maximum \(2\)"),
        (KUBERNETES | {"workers": {"minimum": 0, "maximum": 2}}, "greater than or equal to 1"),
        (KUBERNETES | {"workers": 0}, "greater than or equal to 1"),
        (KUBERNETES | {"worker": {"memory": "500m"}}, "should match pattern"),
        (KUBERNETES | {"worker": {"cpu": "two"}}, "should match pattern"),
        (KUBERNETES | {"adaptive": True}, "unknown key .adaptive."),
    ],
)
def test_wrong_configuration_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CONFIG.validate_python(config)


def local_cluster(**options: Any) -> LocalCluster:
    return LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs="CRITICAL", **options
    )


def address(running: LocalCluster, folder: Path, **more: Any) -> Any:
    return CONFIG.validate_python(
        {"kind": "address", "address": running.scheduler_address, "scratch": str(folder), "timeout": 5} | more
    )


@pytest.fixture(scope="module")
def tcp() -> Iterator[LocalCluster]:
    with local_cluster(protocol="tcp", host="127.0.0.1") as running:
        yield running


def test_address_gives_a_client_and_a_place_that_is_gone_afterwards(tcp: LocalCluster, tmp_path: Path) -> None:
    config = address(tcp, tmp_path)
    with open_cluster(config, "run") as run:
        assert run.client.submit(int, "7").result() == 7
        (Path(run.scratch) / "part").mkdir(parents=True)
    assert list(tmp_path.iterdir()) == []


def test_workers_that_do_not_come_are_counted(tcp: LocalCluster, tmp_path: Path) -> None:
    config = address(tcp, tmp_path, workers=2, timeout=0.2)
    with pytest.raises(RunError, match=r"only 1 of 2 workers connected within 0.2 s"), open_cluster(config, "run"):
        pass


def test_scheduler_that_is_not_there_is_named(tmp_path: Path) -> None:
    config = CONFIG.validate_python(ADDRESS | {"address": "tcp://127.0.0.1:1", "timeout": 0.2})
    said = r"no Dask scheduler answers at tcp://127.0.0.1:1 within 0.2 s"
    with pytest.raises(InputError, match=said), open_cluster(config, "run"):
        pass


def security(files: tuple[str, str, str]) -> Security:
    ca, cert, key = files
    both = (("cert", cert), ("key", key))
    roles = {f"tls_{role}_{part}": file for role in ("scheduler", "worker", "client") for part, file in both}
    return Security(require_encryption=True, tls_ca_file=ca, **roles)


def connect(running: LocalCluster, files: tuple[str, str, str], folder: Path) -> str:
    tls = dict(zip(("ca", "cert", "key"), files, strict=True))
    with open_cluster(address(running, folder, tls=tls), "run") as run:
        return str(run.client.scheduler.address)


def test_encrypted_scheduler_lets_in_whom_it_trusts_and_says_why_not(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    with local_cluster(security=security(authority.files("dask")), protocol="tls://", host="127.0.0.1") as running:
        assert connect(running, authority.files("client"), tmp_path).startswith("tls://")
        with pytest.raises(InputError, match=r"no encrypted connection: .*(certificate expired|EOF occurred)"):
            connect(running, authority.files("late", days=-1), tmp_path)
        with pytest.raises(InputError, match=r"no encrypted connection: certificate verify failed: self-signed"):
            connect(running, stranger.files("client"), tmp_path)
        with pytest.raises(InputError, match=r"cluster.tls: there is no file /none/ca.crt"):
            connect(running, ("/none/ca.crt", "/none/a", "/none/b"), tmp_path)


class Versions:
    """A client that knows versions only."""

    def __init__(self, scheduler: dict[str, str] | None = None, worker: dict[str, str] | None = None):
        same = {"python": "3.11.7.final.0"} | dict.fromkeys(workers.SAME_VERSIONS, "1.0")
        self._told = {
            "client": {"packages": same},
            "scheduler": {"packages": same | (scheduler or {})},
            "workers": {at: {"packages": same | (worker or {})} for at in ("tcp://a:1", "tcp://b:2")},
        }

    def get_versions(self, packages: list[str]) -> dict[str, Any]:
        assert set(packages) == set(workers.SAME_VERSIONS)
        return self._told


def test_same_versions_are_let_in() -> None:
    workers.check_versions(Versions())
    workers.check_versions(Versions(worker={"python": "3.11.9.final.0"}))  # the same bytecode


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (Versions(scheduler={"dask": "2.0"}), "dask is 1.0 here, 2.0 on the scheduler"),
        (Versions(worker={"numba": "0.9"}), "numba is 1.0 here, 0.9 on worker tcp://a:1 and 1 more"),
        (Versions(worker={"aucdist": ""}), "aucdist is 1.0 here, missing on worker tcp://a:1 and 1 more"),
        (Versions(worker={"python": "3.12.1.final.0"}), "Python is 3.11 here, 3.12 on worker"),
    ],
)
def test_other_versions_are_refused_before_work_starts(client: Versions, message: str) -> None:
    with pytest.raises(InputError, match=message):
        workers.check_versions(client)


def test_real_cluster_of_this_process_has_the_same_versions(tcp: LocalCluster) -> None:
    with Client(tcp) as client:
        workers.check_versions(client)


def test_cluster_that_scales_is_told_to_stay_during_a_fit(tcp: LocalCluster) -> None:
    target = tcp.scheduler.adaptive_target
    by_load = target()
    client, two = (Client(tcp.scheduler_address, set_as_default=False) for _ in range(2))
    with client, two:
        with workers.keep_workers(client, 5):
            assert tcp.scheduler.adaptive_target() == 5
            assert tcp.scheduler.handlers["adaptive_target"](target_duration="5s") == 5
            with workers.keep_workers(two, 3):
                assert tcp.scheduler.adaptive_target() == 5
        assert tcp.scheduler.adaptive_target() == by_load
        with workers.keep_workers(two, 4):
            assert tcp.scheduler.adaptive_target() == 4
            two.close()  # it crashed: it could not withdraw its request
            assert tcp.scheduler.adaptive_target() == by_load


def test_fit_on_someone_elses_cluster_keeps_the_workers_that_are_there(tcp: LocalCluster, tmp_path: Path) -> None:
    config = address(tcp, tmp_path)
    with open_cluster(config, "run") as run, fixed_worker_set(config, run, 100):
        assert tcp.scheduler.adaptive_target() == 1


def test_nothing_to_keep_without_a_cluster() -> None:
    config = CONFIG.validate_python({"kind": "none"})
    with open_cluster(config, "run") as run, fixed_worker_set(config, run, 3):
        assert (run.client, run.scratch) == (None, "")


# ---- the time of a stage does not count the compilation of kernels, which stands apart --------


def test_compiling_stands_apart() -> None:
    def work() -> str:
        start_event("numba:compile")
        time.sleep(0.2)
        end_event("numba:compile")
        return "done"

    stages = Stages(QUIET)
    assert stages("fit", work) == "done"
    assert stages.seconds["fit"] < 0.1
    assert stages.seconds[COMPILING] == pytest.approx(0.2, abs=0.1)
    stages("evaluate", lambda: None)
    assert list(stages.seconds) == ["fit", COMPILING, "evaluate"]


# ---- whether rows stay in memory or are read again: the rule, and its message -----------------


GIB = 2**30
TWO = [(GIB, 1), (GIB, 1)]


@pytest.mark.parametrize(
    ("cache", "memory", "rooms", "stream"),
    [
        ("auto", GIB, TWO, False), ("auto", GIB + 1, TWO, True), ("memory", 8 * GIB, TWO, False), ("stream", 1, TWO, True),
        ("auto", 800 * GIB, [(0, 4)], False), ("auto", 800 * GIB, [(0, 4), (GIB, 1)], False),
    ],
)  # fmt: skip
def test_auto_keeps_what_fits_in_half_of_the_memory(cache, memory, rooms, stream):
    chosen, why = choose_cache(cache, memory, 2**20, rooms)
    assert chosen is stream
    assert ("are streamed" in why) is stream


def test_the_choice_of_a_cache_is_explained():
    assert (
        choose_cache("auto", 8 * GIB, 2**26, TWO)[1]
        == "are streamed (8.00 GiB of rows, 2.00 GiB of memory on 2 workers)"
    )
    here = choose_cache("auto", 900, 900, [(0, 1)])[1]
    assert here == "are kept in memory (900 B of rows, no limit of memory on 1 worker)"


def test_blocks_that_are_too_large_to_stream_are_refused():
    assert choose_cache("auto", 8 * GIB, GIB // 8, TWO)[0]
    said = r"1.00 GiB of memory and 1 thread cannot hold .* blocks of up to 128.50 MiB .*rows_per_shard"
    with pytest.raises(InputError, match=said):
        choose_cache("auto", 8 * GIB, GIB // 8 + 2**20 // 2, TWO)
    with pytest.raises(InputError, match=r"1\.00 GiB of memory and 4 threads"):
        choose_cache("stream", 8 * GIB, GIB // 16, [(8 * GIB, 1), (GIB, 4)])


def test_the_room_of_workers_and_of_this_process():
    assert worker_memory(None)[0][0] > 2**28
    with local_client(2, threads=2, memory_limit="700MiB") as client:
        assert worker_memory(client) == [(700 * 2**20, 2)] * 2


def test_the_room_of_workers_is_that_of_the_next_where_all_are_lost():
    options = {"dashboard_address": None, "threads_per_worker": 2, "memory_limit": "700MiB", "processes": False}
    with LocalCluster(n_workers=0, **options) as cluster, cluster.get_client() as client:
        coming = threading.Timer(0.5, cluster.scale, (1,))
        coming.start()
        assert worker_memory(client) == [(700 * 2**20, 2)]
        coming.join()
