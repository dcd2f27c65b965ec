"""Send the progress of a run to its cluster: metrics for Prometheus, and Dask's performance report."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from aucdist.engine.workers import link_of, performance_report, put_figures
from flows.progress.console import Record, RunObserver, Tasks

REPORT = "dask-report.html"
EVERY = 1.0  # seconds between two messages to the scheduler; a round takes milliseconds


class MetricsObserver:
    """Forwards every call to another observer, and sends the figures of the run to the scheduler while there is one."""

    def __init__(self, observer: RunObserver, run: str) -> None:
        self._observer, self._run = observer, run
        self.note = observer.note
        self._client: Any = None
        self._figures: dict[str, float] = {}
        self._stages: dict[str, float] = {}
        self._stage, self._stage_start, self._sent = "", 0.0, 0.0
        observer.about({"run": run})

    @contextmanager
    def report_to(self, client: Any, report: Path | None = None) -> Iterator[None]:
        """Send figures to the scheduler of `client` (None: there is none) while the context lasts.

        `report`: file for Dask's performance report, which is written if there is no error.
        Raises InputError if the report cannot be made on this cluster.
        """
        if client is None:
            yield
            return
        link = link_of(client)
        if link is not None:
            self.about({"dashboard": link})
        self._client = client
        try:
            with nullcontext() if report is None else performance_report(client, report):
                yield
            self._send()
        finally:
            self._client = None

    def stage(self, name: str) -> None:
        """Forward the call, and start the clock of the stage."""
        self._observer.stage(name)
        self._send()
        self._stage, self._stage_start = name, time.monotonic()

    def round(self, record: Record, tol: float) -> None:
        """Forward the call, and record the figures."""
        self._observer.round(record, tol)
        names = ("round", "passes", "primal", "dual", "relative_gap")
        self._record({name: record[name] for name in names} | {"tolerance": tol}, last=record["relative_gap"] <= tol)

    def tasks(self, tasks: Tasks) -> None:
        """Forward the call, and record the number of finished tasks."""
        self._observer.tasks(tasks)
        self._record({"tasks_done": tasks.done, "tasks_total": tasks.total}, last=tasks.done == tasks.total)

    def about(self, facts: Record) -> None:
        """Forward the call, and record the size of the rows."""
        self._observer.about(facts)
        if "bytes" in facts:
            self._figures["aucdist_rows_bytes"] = float(facts["bytes"])

    def _record(self, figures: Record, last: bool) -> None:
        self._figures |= {f"aucdist_{name}": float(value) for name, value in figures.items()}
        if last or time.monotonic() - self._sent >= EVERY:
            self._send()

    def _send(self) -> None:
        if self._stage:
            self._stages[self._stage] = time.monotonic() - self._stage_start
        if self._client is None:
            return
        self._sent = time.monotonic()
        with suppress(Exception):  # if the scheduler is lost, the run ends with a better message
            put_figures(self._client, self._run, self._figures, self._stages)
