"""The suite `shapes`: its rows on few of them, what is not there, what takes too long, and what breaks."""

import subprocess
import time
from contextlib import suppress

import psutil
import pytest
from support.forked_workers import forked_processes

from benchmarks import shapes, suites


@pytest.fixture
def few(monkeypatch):
    """Few rows, and processes that are forks."""
    monkeypatch.setattr(shapes, "ROWS", 4000)
    monkeypatch.setattr(shapes, "TEST_ROWS", 2000)
    with forked_processes(shapes):
        yield


@pytest.mark.slow
def test_a_row_for_each_system_that_is_asked_for(few):
    suite = suites.load_suite("shapes")
    table = suites.bench(suite, slow_peers=False, log=lambda line: None, only="linear,bins").set_index("system")
    assert list(table.index) == ["linear", "bins"]
    assert (table["rows"] == 4000).all()
    assert (table["AUC"] > 0.55).all()
    assert table.loc["bins", "AUC"] > table.loc["linear", "AUC"]
    assert (table[["seconds", "CPU s"]] > 0).all(axis=None)


def test_a_system_is_ended_at_its_limit(few):
    assert shapes.measured("bins", 1, 0.0)["note"] == "not done in 0 s"


def test_a_system_that_breaks_is_a_row(few, monkeypatch):
    monkeypatch.setitem(shapes.PACKAGES, "no such system", "")
    assert shapes.measured("no such system", 1, 60.0)["note"] == "its process ended"


def never_ends(result, name, threads, rows):
    """Send a row, and wait for a process of its own that sleeps."""
    child = subprocess.Popen(["sleep", "600"])
    result.send({"AUC": 1.0, "sleeper": child.pid})
    child.wait()


def test_a_process_that_waits_for_its_own_is_ended_with_them(few, monkeypatch):
    """EBM's workers did not end after a fit of a million rows, and so the suite did not."""
    monkeypatch.setattr(shapes, "fit_and_score", never_ends)
    row = shapes.measured("bins", 1, 600.0)
    assert row["AUC"] == 1.0
    with suppress(psutil.NoSuchProcess):  # what nobody waits for may stay a zombie
        while psutil.Process(row["sleeper"]).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
