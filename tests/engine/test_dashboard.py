"""What the scheduler of a cluster shows of a run, fetched as Prometheus fetches it; and that nobody else can fetch it."""

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.web_server import scraped

from aucdist.engine import workers
from aucdist.engine.dask import local_client
from aucdist.engine.workers import KEPT_RUNS, RUN_FIGURES, STAGE_SECONDS, performance_report, put_figures
from aucdist.errors import InputError


@pytest.fixture(scope="module")
def client():
    with local_client(2) as client:
        yield client


@pytest.fixture(autouse=True)
def page_of_no_runs(monkeypatch):
    monkeypatch.setattr(workers, "_runs", {})  # the scheduler of `local_client` is in this process


def scrape(client):
    """Return name, labels and value of all that the scheduler shows to Prometheus."""
    url = client.dashboard_link.replace("/status", "/metrics")
    return {(name, labels): float(value) for name, labels, value in scraped(url)}


def test_the_last_figures_of_each_run_are_there(client):
    assert put_figures(client, "one", {"aucdist_passes": 3.0, "aucdist_relative_gap": float("inf")}, {})
    put_figures(client, "two", {"aucdist_passes": 5.0}, {"place": 0.25, "fit": 1.5})
    put_figures(client, "one", {"aucdist_passes": 4.0, "aucdist_relative_gap": 0.01}, {"fit": 2.0})
    shown = {key: value for key, value in scrape(client).items() if key[0].startswith("aucdist_")}
    assert shown == {
        ("aucdist_passes", 'run="one"'): 4.0, ("aucdist_passes", 'run="two"'): 5.0,
        ("aucdist_relative_gap", 'run="one"'): 0.01, (STAGE_SECONDS, 'run="one",stage="fit"'): 2.0,
        (STAGE_SECONDS, 'run="two",stage="place"'): 0.25, (STAGE_SECONDS, 'run="two",stage="fit"'): 1.5,
    }  # fmt: skip
    assert ("dask_scheduler_clients", "") in scrape(client)


def test_the_page_does_not_grow_with_the_runs(client):
    for i in range(KEPT_RUNS + 3):
        put_figures(client, f"run {i}", dict.fromkeys(RUN_FIGURES, 1.0), {})
    runs = {labels for name, labels in scrape(client) if name == "aucdist_round"}
    assert runs == {f'run="run {i}"' for i in range(3, KEPT_RUNS + 3)}


def test_names_of_runs_cannot_forge_figures(client):
    put_figures(client, 'x"} 1\naucdist_passes{run="forged', {"aucdist_passes": 2.0}, {})
    assert [labels for name, labels in scrape(client) if name == "aucdist_passes"] == [
        r'run="x\"} 1\naucdist_passes{run=\"forged"'
    ]


def test_without_prometheus_there_is_no_page_and_no_fault(client, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    assert not put_figures(client, "one", {"aucdist_passes": 3.0}, {})


@pytest.mark.skipif(not find_spec("bokeh"), reason="bokeh is not installed")
def test_the_performance_report_has_its_scripts_inside(client, tmp_path):
    with performance_report(client, tmp_path / "report.html"):
        client.submit(sum, [1, 2]).result()
    page = (tmp_path / "report.html").read_text()
    assert "Dask Performance Report" in page
    assert not [src for src in re.findall(r"""<script[^>]*src=["']?([^"' >]*)""", page) if "mathjax" not in src]


def test_a_run_that_fails_has_no_performance_report(client, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "has_bokeh", lambda: True)
    with pytest.raises(ZeroDivisionError), performance_report(client, tmp_path / "report.html"):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_without_bokeh_on_the_scheduler_it_is_refused_before_work(client, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "has_bokeh", lambda: False)
    with (
        pytest.raises(InputError, match="bokeh, which is not installed where the scheduler runs"),
        performance_report(client, tmp_path / "report.html"),
    ):
        pytest.fail("must not begin")


# ---- who can reach it ----------------------------------------------------------------------------------------------------


def listening(pid):
    """Return the addresses, as the kernel writes them, at which a process listens."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                addresses.add(fields[1].partition(":")[0])
    return addresses


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="no list of sockets to look at")
def test_scheduler_workers_and_dashboards_listen_on_loopback_only(client):
    pids = [os.getpid(), *client.run(os.getpid).values(), *client.run(os.getppid).values()]
    loopback = {"0100007F", "00000000000000000000000001000000"}
    addresses = {pid: listening(pid) for pid in pids}
    assert all(addresses[pid] for pid in client.run(os.getpid).values())  # else nothing was looked at
    assert set().union(*addresses.values()) <= loopback


def test_link_names_loopback(client):
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/status", client.dashboard_link)
