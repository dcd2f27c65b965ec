"""A run on a cluster sends its progress to the scheduler, and an error of that does not end it."""

import pytest
from support.runs import load_cv, load_train, trained

from aucdist.engine import workers
from aucdist.errors import InputError
from flows.progress import REPORT, LineObserver, MetricsObserver
from flows.train import config

QUICK = ["blocks=2", "model.tol=0.05", "model.lam=0.01"]
ROUND = {"round": 3, "passes": 7, "seconds": 0.5, "primal": 0.25, "dual": 0.2, "relative_gap": 0.2}
STATIC = {"dashboard_link": "http://127.0.0.1:1/status"}


@pytest.fixture
def sent(monkeypatch):
    """The figures that were sent to the scheduler."""
    calls = []
    monkeypatch.setattr(workers, "put_figures", lambda client, run, *figures: calls.append((run, *map(dict, figures))))
    return calls


def client(**attributes):
    return type("Client", (), STATIC | attributes)()


def test_figures_come_once_a_second_and_when_it_is_done(sent, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("flows.progress.time.monotonic", lambda: now[0])
    observer = MetricsObserver(LineObserver(lambda line: None), "run")
    observer.round(ROUND, 0.1)
    assert sent == []  # there is no cluster yet
    with observer.report_to(client()):
        observer.stage("fit")
        sent.clear()
        for passes in range(1, 5):
            now[0] += 0.4
            observer.round(ROUND | {"passes": passes}, 0.1)
        assert [figures["aucdist_passes"] for _, figures, _ in sent] == [3]
        observer.round(ROUND | {"passes": 5, "relative_gap": 0.05}, 0.1)
        observer.stage("evaluate")
    run, figures, stages = sent[-1]
    assert (run, figures["aucdist_passes"], figures["aucdist_tolerance"]) == ("run", 5.0, 0.1)
    assert stages == {"fit": pytest.approx(1.6), "evaluate": 0.0}


def test_a_scheduler_without_http_has_no_link(sent):
    lines = []
    observer = MetricsObserver(LineObserver(lines.append), "run")
    with observer.report_to(client()):
        assert lines.pop() == "  dashboard http://127.0.0.1:1/status"
    with observer.report_to(client(dashboard_link=property(lambda self: {}["dashboard"]))):
        assert lines == ["  run run"]


def test_tasks_and_sizes(sent):
    observer = MetricsObserver(LineObserver(lambda line: None), "run")
    with observer.report_to(client()):
        observer.about({"rows": 10, "features": 2, "bytes": 160})
        observer.tasks(4, 4)
    assert sent[-1][1] == {"aucdist_rows_bytes": 160.0, "aucdist_tasks_done": 4.0, "aucdist_tasks_total": 4.0}


def test_a_scheduler_that_is_lost_is_not_this_ones_business(monkeypatch):
    tried = []

    def lost(*args):
        tried.append(args)
        raise OSError("the scheduler has closed the connection")

    monkeypatch.setattr(workers, "put_figures", lost)
    with (observer := MetricsObserver(LineObserver(lambda line: None), "run")).report_to(client()):
        observer.round(ROUND, 1.0)
    assert tried


def test_a_run_that_failed_sends_nothing_more(sent):
    with (
        pytest.raises(ZeroDivisionError),
        (observer := MetricsObserver(LineObserver(lambda line: None), "run")).report_to(client()),
    ):
        raise ZeroDivisionError
    observer.stage("publish")
    assert sent == []


def test_the_scheduler_has_the_last_round(tmp_path, monkeypatch):
    """The page of a real cluster at the end of a real fit is the history's last row."""
    runs = {}
    monkeypatch.setattr(workers, "_runs", runs)
    lines = []
    settings = (*QUICK, "cluster={kind: local, workers: 2}")
    result = trained("digits", *settings, output=tmp_path, observer=LineObserver(lines.append))
    ((run, (figures, stages)),) = runs.items()
    assert run == result["run"].rpartition("/")[2]
    assert figures["aucdist_relative_gap"] == result["certificate"]["relative_gap"]
    assert figures["aucdist_primal"] == result["certificate"]["primal"]
    assert figures["aucdist_passes"] == result["passes"]
    assert figures["aucdist_rows_bytes"] >= result["n_samples"] * result["n_features"] * 8
    assert set(stages) == {"open data", "partition", "fit", "evaluate", "profile", "baselines"}
    assert any("dashboard http://127.0.0.1:" in line for line in lines)


@pytest.mark.parametrize("load", [load_train, load_cv])
def test_a_report_of_no_cluster_is_refused(load, monkeypatch):
    with pytest.raises(InputError, match="but `cluster` is none"):
        load("digits", ["performance_report=true", "cluster=none"])
    monkeypatch.setattr(config, "has_bokeh", lambda: False)
    with pytest.raises(InputError, match=r"bokeh, which is not installed here: .* pip install .\.\[dashboard\]"):
        load("digits", ["performance_report=true", "cluster=local"])
    monkeypatch.setattr(config, "has_bokeh", lambda: True)
    assert load("digits", ["performance_report=true", "cluster=local"]).performance_report


def test_the_report_is_in_the_run_folder(tmp_path, monkeypatch):
    pytest.importorskip("bokeh")
    result = trained("digits", *QUICK, "cluster={kind: local, workers: 1}", "performance_report=true", output=tmp_path)
    assert "Dask Performance Report" in (tmp_path / result["run"].rpartition("/")[2] / REPORT).read_text()
