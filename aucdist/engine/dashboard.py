"""What a Dask scheduler shows of a run: the link to its dashboard, figures for Prometheus, and its performance report."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aucdist.errors import InputError

FIGURES = {
    "aucdist_round": "Rounds of the solver so far",
    "aucdist_passes": "Passes over the training rows so far",
    "aucdist_primal": "The objective at the solver's point",
    "aucdist_dual": "The bound that no objective is below",
    "aucdist_relative_gap": "(primal - dual) / primal",
    "aucdist_tolerance": "The relative gap at which the solver stops",
    "aucdist_rows_bytes": "Bytes of the training rows in memory",
    "aucdist_tasks_done": "Tasks of the present stage that are done, where it has tasks",
    "aucdist_tasks_total": "Tasks of the present stage, where it has tasks",
}
"""The figures that a run publishes; each has the label `run`."""

STAGE_SECONDS = "aucdist_stage_seconds"
"""Seconds that each stage took or has taken so far; labels `run` and `stage`."""

KEPT_RUNS = 20
"""So many runs stay on the page of a scheduler that serves many; the oldest go first."""

_runs: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
_collectors: list["_Collector"] = []


def link_of(client: Any) -> str | None:
    """Return the address of the dashboard of a client's scheduler; None where it has none."""
    try:
        link: str | None = client.dashboard_link
    except KeyError:  # it serves no HTTP
        return None
    return link


def put_figures(client: Any, run: str, figures: Mapping[str, float], stages: Mapping[str, float]) -> bool:
    """Put a run's figures on its scheduler's ``/metrics``, in place of those that it published before.

    `figures`: names out of `FIGURES`.
    Returns whether there is such a page: the scheduler needs `prometheus_client` for it.
    """
    kept: bool = client.run_on_scheduler(_put, run=run, figures=dict(figures), stages=dict(stages))
    return kept


def _put(run: str, figures: dict[str, float], stages: dict[str, float]) -> bool:
    """Keep the figures; this is run by the scheduler, in the thread that also answers Prometheus."""
    try:
        from prometheus_client import REGISTRY
    except ImportError:
        return False
    if not _collectors:
        _collectors.append(_Collector())
        REGISTRY.register(_collectors[0])
    _runs.pop(run, None)
    _runs[run] = (figures, stages)
    while len(_runs) > KEPT_RUNS:
        del _runs[next(iter(_runs))]
    return True


class _Collector:
    """Answers Prometheus."""

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        for name, meaning in FIGURES.items():
            family = GaugeMetricFamily(name, meaning, labels=["run"])
            for run, (figures, _) in _runs.items():
                if name in figures:
                    family.add_metric([run], figures[name])
            yield family
        seconds = GaugeMetricFamily(STAGE_SECONDS, "Seconds of each stage so far", labels=["run", "stage"])
        for run, (_, stages) in _runs.items():
            for stage, value in stages.items():
                seconds.add_metric([run, stage], value)
        yield seconds


@contextmanager
def performance_report(client: Any, file: Path) -> Iterator[None]:
    """Write Dask's report on what happens within the context, if all goes well: tasks, profiles, bandwidths, memory.

    It is a page of HTML with its scripts inside, but for one that sets formulas and is not needed. The code that was running,
    which `distributed.performance_report` shows as well, is left out.

    Raises InputError if the scheduler cannot draw it.
    """
    if not client.run_on_scheduler(has_bokeh):
        raise InputError(no_bokeh("where the scheduler runs"))
    start, count = time.time(), client.run_on_scheduler(_monitor_count)
    client.get_task_stream(start=0, stop=0)  # from now on the scheduler keeps what the report is made of
    yield
    page = client.sync(client.scheduler.performance_report, start=start, last_count=count, code="", mode="inline")
    file.write_text(page, encoding="utf-8")


def has_bokeh() -> bool:
    """Tell whether there is in this process what Dask draws its dashboard and its report with."""
    return find_spec("bokeh") is not None


def no_bokeh(where: str) -> str:
    """Return what to say where it is missing."""
    return (
        f"performance_report: Dask draws it with bokeh, which is not installed {where}: install aucdist[dashboard], or leave "
        "performance_report out"
    )


def _monitor_count(dask_scheduler: Any) -> int:
    return int(dask_scheduler.monitor.count)
