"""Check and watch the workers of a cluster, and publish the figures of a run on its scheduler."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aucdist.errors import InputError, RunError

SAME_VERSIONS = ("aucdist", "dask", "distributed", "cloudpickle", "numpy", "scipy", "numba")
"""Packages whose versions must agree on client, scheduler and workers: those that exchange messages, and those on which the last
bits of a result depend."""
RUN_FIGURES = {
    "aucdist_round": "Rounds of the solver so far",
    "aucdist_passes": "Passes over the training rows so far",
    "aucdist_primal": "The objective at the solver's point",
    "aucdist_dual": "The bound that no objective is below",
    "aucdist_relative_gap": "(primal - dual) / primal",
    "aucdist_tolerance": "The relative gap at which the solver stops",
    "aucdist_rows_bytes": "Bytes of the training rows in memory",
    "aucdist_tasks_done": "Tasks of the present stage that are done, if it has tasks",
    "aucdist_tasks_total": "Tasks of the present stage, if it has tasks",
}
"""The figures that a run publishes; each has the label `run`."""

STAGE_SECONDS = "aucdist_stage_seconds"
"""Seconds that each stage took or has taken so far; labels `run` and `stage`."""

KEPT_RUNS = 20
"""The number of runs that stay on the page of a scheduler; the oldest are removed first."""

_runs: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
_gauges: dict[str, Any] = {}


def check_versions(client: Any) -> None:
    """Check that client, scheduler and all workers have the same Python and the same packages.

    Raises
    ------
    InputError
        If they do not. The message names each package and the versions.
    """
    versions = client.get_versions(packages=list(SAME_VERSIONS))
    client_versions = _versions(versions["client"])
    others = {"the scheduler": versions["scheduler"]} | {
        f"worker {at}": versions["workers"][at] for at in sorted(versions["workers"])
    }
    wrong = []
    for name, expected in client_versions.items():
        by_version: dict[str, list[str]] = {}
        for holder, answer in others.items():
            by_version.setdefault(_versions(answer)[name], []).append(holder)
        for version, (first, *more) in by_version.items():
            if version != expected:
                wrong.append(f"{name} is {expected} here, {version} on {first}" + f" and {len(more)} more" * bool(more))
    if wrong:
        raise InputError(
            "the cluster runs other versions, so the results could differ: " + "; ".join(wrong) + ". "
            "Run the same image, or install the same lock file, on all sides"
        )


def _versions(answer: Any) -> dict[str, str]:
    """Return the versions of packages, and the major and minor version of Python, on which cloudpickle depends."""
    packages = answer["packages"]
    python = ".".join(str(packages["python"]).split(".")[:2])
    return {"Python": python} | {name: packages.get(name) or "missing" for name in SAME_VERSIONS}


def wait_for_workers(client: Any, n_workers: int, timeout: float) -> None:
    """Wait until this number of workers is connected.

    Parameters
    ----------
    client : Client
        The client of the cluster.
    n_workers : int
        The number of workers to wait for.
    timeout : float
        The number of seconds to wait.

    Raises
    ------
    RunError
        If they do not connect in time. The message has the number of workers that are connected.
    """
    try:
        client.wait_for_workers(n_workers, timeout=timeout)
    except TimeoutError:
        raise RunError(
            f"only {len(client.nthreads())} of {n_workers} workers connected within {timeout:g} s: start more workers, or ask "
            "for fewer"
        ) from None


@contextmanager
def keep_workers(client: Any, n_workers: int) -> Iterator[None]:
    """Request this number of workers from the adaptive scaling of the cluster while the context lasts.

    A fit is a chain of calls of milliseconds, which the scheduler does not see. If a cluster scaled by its load, it would lose
    its workers, and the blocks on them, during the fit. The scheduler ignores the request once this client is gone, whatever
    the reason.
    """
    client.run_on_scheduler(_request_workers, client=client.id, n_workers=n_workers)
    try:
        yield
    finally:
        if client.status == "running":
            client.run_on_scheduler(_request_workers, client=client.id, n_workers=None)


@contextmanager
def report_lost_workers(client: Any, report: Callable[[str], None]) -> Iterator[None]:
    """Call a function with a line of text for each worker that is lost while the context lasts.

    A worker that is closed normally, for example because a cluster scales down, is not lost.

    Parameters
    ----------
    client : Client
        The client of the cluster.
    report : callable
        ``report(text)`` is called in the thread of the client.
    """
    reporting = True

    def on_event(event: tuple[float, Any]) -> None:
        """Report an event of the scheduler if it is the loss of a worker."""
        _, body = event
        if reporting and isinstance(body, dict) and body.get("action") == "remove-worker" and not body.get("expected"):
            report(f"worker {body['worker']} was lost; its blocks are loaded again on another worker")

    client.subscribe_topic("all", on_event)
    try:
        yield
    finally:
        reporting = False
        if client.status == "running":
            client.unsubscribe_topic("all")


def _request_workers(dask_scheduler: Any, client: str, n_workers: int | None) -> None:
    """Record on the scheduler how many workers a client requests. None withdraws the request."""
    requests: dict[str, int] = dask_scheduler.__dict__.setdefault("_aucdist_worker_requests", {})
    if n_workers is None:
        requests.pop(client, None)
    else:
        requests[client] = n_workers
    by_load = type(dask_scheduler).adaptive_target

    def adaptive_target(target_duration: float | None = None) -> int:
        """Return the largest number that a connected client requests.

        Without requests, return the number for the present load.
        """
        requested = [n for client_id, n in requests.items() if client_id in dask_scheduler.clients]
        target: int = max(requested) if requested else by_load(dask_scheduler, target_duration)
        return target

    # The Kubernetes operator uses this attribute through the web API.
    dask_scheduler.adaptive_target = adaptive_target
    dask_scheduler.handlers["adaptive_target"] = adaptive_target  # Dask's `adapt` sends this message


def put_figures(client: Any, run: str, figures: Mapping[str, float], stages: Mapping[str, float]) -> bool:
    """Publish the figures of a run on ``/metrics`` of its scheduler. They replace the figures that the run published before.

    Parameters
    ----------
    client : Client
        The client of the cluster.
    run : str
        The name of the run.
    figures : mapping of str to float
        Figures by their names, which are in `RUN_FIGURES`.
    stages : mapping of str to float
        The seconds of each stage.

    Returns
    -------
    bool
        Whether the page exists. The scheduler needs `prometheus_client` for it.
    """
    kept: bool = client.run_on_scheduler(_put, run=run, figures=dict(figures), stages=dict(stages))
    return kept


def _put(run: str, figures: dict[str, float], stages: dict[str, float]) -> bool:
    """Keep the figures. The scheduler runs this in the thread that also answers Prometheus."""
    try:
        from prometheus_client import Gauge
    except ImportError:
        return False
    if not _gauges:
        _gauges.update({name: Gauge(name, meaning, ["run"]) for name, meaning in RUN_FIGURES.items()})
        _gauges[STAGE_SECONDS] = Gauge(STAGE_SECONDS, "Seconds of each stage so far", ["run", "stage"])
    _runs.pop(run, None)
    _runs[run] = (figures, stages)
    while len(_runs) > KEPT_RUNS:
        del _runs[next(iter(_runs))]
    for gauge in _gauges.values():
        gauge.clear()
    for kept, (figures_of_run, stage_seconds) in _runs.items():
        for name, value in figures_of_run.items():
            _gauges[name].labels(kept).set(value)
        for stage, value in stage_seconds.items():
            _gauges[STAGE_SECONDS].labels(kept, stage).set(value)
    return True


@contextmanager
def performance_report(client: Any, file: Path) -> Iterator[None]:
    """Write Dask's report about the context, unless an error ends it: tasks, profiles, bandwidths and memory.

    The report is an HTML page that includes its scripts, except for one that typesets formulas and is not needed. Unlike that of
    `distributed.performance_report`, it does not show the code that was running.

    Raises
    ------
    InputError
        If the scheduler cannot make the report.
    """
    if not client.run_on_scheduler(has_bokeh):
        raise InputError(no_bokeh("where the scheduler runs"))
    start, count = time.time(), client.run_on_scheduler(lambda dask_scheduler: int(dask_scheduler.monitor.count))
    client.get_task_stream(start=0, stop=0)  # this starts the recording of what the report shows
    yield
    page = client.sync(client.scheduler.performance_report, start=start, last_count=count, code="", mode="inline")
    file.write_text(page, encoding="utf-8")


def has_bokeh() -> bool:
    """Return whether bokeh, which Dask needs for its dashboard and its report, can be imported."""
    return find_spec("bokeh") is not None


def no_bokeh(where: str) -> str:
    """Return the message of the error if bokeh is missing."""
    return (
        f"performance_report: Dask draws it with bokeh, which is not installed {where}: in the folder of the source code, run "
        "pip install '.[dashboard]', or leave performance_report out"
    )
