"""A run's watch that also tells the cluster it works on: figures for Prometheus, and Dask's performance report."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from aucdist.engine.dashboard import link_of, performance_report, put_figures
from flows.progress.console import ForwardingObserver, Record, RunObserver, Tasks

REPORT = "dask-report.html"
EVERY = 1.0  # seconds between two messages to the scheduler; a round takes milliseconds


class MetricsObserver(ForwardingObserver):
    """Hands everything on to another watch, and while there is a cluster tells its scheduler how the run stands.

    Parameters
    ----------
    watch : Watch
    run : str
        The name of the run.
    """

    def __init__(self, observer: RunObserver, run: str) -> None:
        super().__init__(observer)
        self._run = run
        self._client: Any = None
        self._figures: dict[str, float] = {}
        self._stages: dict[str, float] = {}
        self._stage, self._begun, self._told = "", 0.0, 0.0
        observer.about({"run": run})

    @contextmanager
    def on(self, client: Any, report: Path | None = None) -> Iterator[None]:
        """Tell the scheduler of `client` (None: there is none) for as long as the context lasts.

        Parameters
        ----------
        client : distributed.Client or None
        report : Path, optional
            Where Dask's performance report goes when all went well.

        Raises
        ------
        InputError
            If the report cannot be made on this cluster.
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
            self._tell()
        finally:
            self._client = None

    def stage(self, name: str) -> None:
        """Hand it on, and begin to count its seconds."""
        super().stage(name)
        self._tell()
        self._stage, self._begun = name, time.monotonic()

    def round(self, record: Record, tol: float) -> None:
        """Hand it on, and note the figures."""
        super().round(record, tol)
        names = ("round", "passes", "primal", "dual", "relative_gap")
        self._note({name: record[name] for name in names} | {"tolerance": tol}, last=record["relative_gap"] <= tol)

    def tasks(self, tasks: Tasks) -> None:
        """Hand it on, and note how many are done."""
        super().tasks(tasks)
        self._note({"tasks_done": tasks.done, "tasks_total": tasks.total}, last=tasks.done == tasks.total)

    def about(self, facts: Record) -> None:
        """Hand it on, and note the size of the rows."""
        super().about(facts)
        if "bytes" in facts:
            self._figures["aucdist_rows_bytes"] = float(facts["bytes"])

    def _note(self, figures: Record, last: bool) -> None:
        self._figures |= {f"aucdist_{name}": float(value) for name, value in figures.items()}
        if last or time.monotonic() - self._told >= EVERY:
            self._tell()

    def _tell(self) -> None:
        if self._stage:
            self._stages[self._stage] = time.monotonic() - self._begun
        if self._client is None:
            return
        self._told = time.monotonic()
        with suppress(Exception):  # a scheduler that is lost ends the run by itself, and says so better than this could
            put_figures(self._client, self._run, self._figures, self._stages)
