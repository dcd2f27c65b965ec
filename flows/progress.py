"""Show the progress of a run as moving bars, lines of text or lines of JSON on stderr, and its summary on stdout.

A run on a cluster also sends figures for Prometheus to its scheduler, and keeps Dask's performance report.
"""

import json
import math
import os
import re
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from aucdist.data.own_files import jsonable
from aucdist.errors import Json, printable, unknown
from aucdist.report.text import search_verdict, summary_rows
from aucdist.text import seconds_text, value_text

LINE_SECONDS = 1.0  # the seconds between two lines of a log, and between two messages to the scheduler
LOG_FORMAT = "AUCDIST_LOG"
LINE_FORMATS = ("text", "json")
FLOW_RUN = "PREFECT__FLOW_RUN_ID"  # Prefect sets this variable in the process that runs a deployment


class RunObserver(ABC):
    """Runs the stages of a run and receives its progress. Each method call becomes an event with facts."""

    @abstractmethod
    def on(self, event: str, facts: Json) -> None:
        """Show an event. Its name is that of the method that was called."""

    def run_stage(self, name: str, stage: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Run a stage and return its result. It is a plain call here, and a task in a Prefect flow."""
        return stage(*args, **options)

    def stage(self, name: str) -> None:
        """Report that a stage starts."""
        self.on("stage", {"stage": name})

    def round(self, record: Json, tol: float) -> None:
        """Report that a round of the solver is done.

        The keys of the record are round, passes, seconds, primal, dual and relative_gap.
        """
        self.on("round", record | {"tol": tol})

    def tasks(self, done: int, total: int, failed: int = 0, best: str = "", seconds_left: float | None = None) -> None:
        """Report how many of a number of tasks are done.

        Parameters
        ----------
        done : int
            The number of tasks that are done.
        total : int
            The number of all tasks.
        failed : int, default=0
            The number of tasks that failed.
        best : str, default=""
            The best setting of a search so far, as text. It is empty if there is none.
        seconds_left : float, optional
            The estimated seconds until all tasks are done. None if they are unknown.
        """
        self.on("tasks", {"done": done, "total": total, "failed": failed, "best": best, "seconds_left": seconds_left})

    def note(self, text: str) -> None:
        """Report a remark for the user."""
        self.on("note", {"text": text})

    def about(self, facts: Json) -> None:
        """Report facts, such as the name of the run, the URL of the dashboard or the size of the rows."""
        self.on("about", facts)


def is_last(facts: Json) -> bool:
    """Return whether an event is the last of its kind: a round that has reached the tolerance, or the last task."""
    return facts["relative_gap"] <= facts["tol"] if "tol" in facts else facts["done"] == facts["total"]


def tasks_line(facts: Json) -> str:
    """Return the progress of tasks as one line of text."""
    parts = (
        f"{facts['done']} of {facts['total']} tasks",
        facts["failed"] and f"{facts['failed']} failed",
        facts["best"],
        facts["seconds_left"] and f"{seconds_text(facts['seconds_left'])} left",
    )
    return ", ".join(filter(None, parts))


def gap_progress(first_gap: float, gap: float, tol: float) -> float:
    """Return the progress of the gap from the first gap to `tol`, on a log scale, as a number from 0 to 1."""
    if not gap < first_gap < math.inf:
        return 0.0
    if gap <= tol:
        return 1.0
    return math.log(first_gap / gap) / math.log(first_gap / max(tol, 1e-300))


def fact_line(facts: Json) -> str:
    """Return facts or a remark as one line of text."""
    if "text" in facts:
        return str(facts["text"])
    return ", ".join(f"{name} {value:{',' if isinstance(value, int) else ''}}" for name, value in facts.items())


class LineObserver(RunObserver):
    """Shows a run as lines of text, for logs and for use without a terminal. `write_line` is called with each line."""

    def __init__(self, write_line: Callable[[str], Any]) -> None:
        self._write_line = write_line
        self._last = -math.inf

    def on(self, event: str, facts: Json) -> None:
        """Write the event. At most one round or task is written per second, and the last one always is."""
        if event == "stage":
            self._write_line(facts["stage"])
            return
        if event in ("round", "tasks"):
            now = time.monotonic()
            if now - self._last < LINE_SECONDS and not is_last(facts):
                return
            self._last = now
        if event == "round":
            class_prefix = f"class {facts['class']}  " if "class" in facts else ""
            line = (
                f"{class_prefix}round {facts['round']}  passes {facts['passes']}  gap {facts['relative_gap']:.2e}  "
                f"primal {facts['primal']:.6g}  dual {facts['dual']:.6g}  {facts['seconds']:.1f} s"
            )
        else:
            line = tasks_line(facts) if event == "tasks" else fact_line(facts)
        self._write_line(f"  {line}")


class LiveObserver(RunObserver, AbstractContextManager["LiveObserver"]):
    """Shows a run as moving bars on a terminal. It is a context manager."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn(),
            TextColumn("{task.fields[now]}"), console=console,
        )  # fmt: skip
        self._task: TaskID | None = None
        self._first_gap = math.inf

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            self._finish()
        self._bar.stop()

    def on(self, event: str, facts: Json) -> None:
        """Show the event: start a bar for a stage, move it, or print a remark above the bars.

        A bar shows the share of tasks that are done, or the gap on a log scale.
        """
        if event == "stage":
            self._bar.start()
            self._finish()
            self._task = self._bar.add_task(facts["stage"], total=None, now="")
        elif event in ("note", "about"):
            self._bar.console.print(fact_line(facts), markup=False, highlight=False, soft_wrap=True)
        elif event == "tasks":
            self._move(facts["done"], max(facts["total"], 1), tasks_line(facts))
        else:
            gap = facts["relative_gap"]
            if not math.isfinite(self._first_gap):
                self._first_gap = gap
            line = f"pass {facts['passes']}  gap {gap:.1e}  primal {facts['primal']:.5g}  dual {facts['dual']:.5g}"
            self._move(gap_progress(self._first_gap, gap, facts["tol"]), 1, line)

    def _move(self, completed: float, total: float, now: str) -> None:
        if self._task is not None:
            self._bar.update(self._task, completed=completed, total=total, now=now)

    def _finish(self) -> None:
        if self._task is not None:
            total = self._bar.tasks[self._task].total or 1
            self._bar.update(self._task, total=total, completed=total)


def trained_lines(result: Json) -> list[Any]:
    """Return what `aucdist train` prints: a table with the summary of the run, and the path of the page."""
    table = Table(show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    _, *rows = summary_rows(result)  # without the path of the run, which the table would wrap
    for name, value in rows:
        table.add_row(name, Text(printable(value)))
    return [table, f"run: {result['run']}", f"report: {result['run']}/report.html"]


def search_lines(result: Json) -> list[Any]:
    """Return what `aucdist cv` prints: a table of the settings, the choice, and the run of the chosen setting."""
    metric, best = result["metric"], result["best"]
    table = Table()
    for name in (*best, metric, "deviation", "passes", ""):
        table.add_column(name, justify="right" if name else "left")
    for row in result["table"]:
        cells = [value_text(row["parameters"][name]) for name in best]
        cells += ["failed" if row[k] is None else f"{row[k]:.4f}" for k in ("mean", "deviation")]
        remark = "chosen" if row["parameters"] == best else "; ".join(row["errors"])
        table.add_row(*cells, f"{row['passes']:,}", Text(remark), style="bold" if remark == "chosen" else "")
    return [table, search_verdict(result), *trained_lines(result["refit"])]


# ---- the log of a run, in the format of AUCDIST_LOG --------------------------------------------------------------------


def log_format() -> str:
    """Return the format of the log that the environment variable AUCDIST_LOG chooses.

    Raises
    ------
    InputError
        If there is no such format.
    """
    name = os.environ.get(LOG_FORMAT) or "text"
    if name not in LINE_FORMATS:
        raise unknown(LOG_FORMAT, name, LINE_FORMATS)
    return name


def log_observer(write_line: Callable[[str], Any]) -> RunObserver:
    """Return an observer that writes the log, in the format that the environment chooses, line by line."""
    return JsonLineObserver(write_line) if log_format() == "json" else LineObserver(write_line)


def json_line(event: str, facts: Json) -> str:
    """Return a line of the log in JSON: the time in UTC, the kind of event, and the facts.

    The facts are converted by `aucdist.data.own_files.jsonable`.
    """
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": now, "event": event, **jsonable(facts)}, allow_nan=False)


class JsonLineObserver(RunObserver):
    """Shows a run as lines of JSON, one for each event. Each line has the names of the run and the stage."""

    def __init__(self, write_line: Callable[[str], Any]) -> None:
        self._write_line = write_line
        run = os.environ.get(FLOW_RUN)
        self._in_every_line: Json = {} if run is None else {"flow_run": run}

    def on(self, event: str, facts: Json) -> None:
        """Write the event. The names of the run and the stage are added to all lines that follow."""
        if event in ("stage", "about"):
            self._in_every_line |= {key: facts[key] for key in ("run", "stage") if key in facts}
        self._write_line(json_line(event, self._in_every_line | facts))


# ---- warnings ----------------------------------------------------------------------------------------------------------


@contextmanager
def warnings_to(observer: RunObserver, ignored: Sequence[type[Warning]] = ()) -> Iterator[list[tuple[str, str]]]:
    """Send warnings to `observer` as notes, without the paths that Python adds.

    Warnings that differ only in their numbers, for example from several folds, become one note with the first warning and the
    count.

    The context manager yields a list. At the end, it has the kind and the text of each note.

    Parameters
    ----------
    observer : RunObserver
        Reports the progress of the run.
    ignored : sequence of type, default=()
        Warnings of these kinds are left out.
    """
    with warnings.catch_warnings(record=True, action="always") as caught:
        for category in ignored:
            warnings.simplefilter("ignore", category)
        yield (messages := list[tuple[str, str]]())
    alike: dict[tuple[str, str], list[str]] = {}
    for warning in caught:
        kind, text = warning.category.__name__, str(warning.message)
        alike.setdefault((kind, re.sub(r"[0-9.]+", "", text)), []).append(text)
    for (kind, _), texts in alike.items():
        messages.append((kind, f"{texts[0]}{f' (and {len(texts) - 1} more like it)' if len(texts) > 1 else ''}"))
        observer.note(": ".join(messages[-1]))


# ---- figures for a cluster ---------------------------------------------------------------------------------------------


REPORT = "dask-report.html"
FIGURE_NAMES = {
    "round": "round", "passes": "passes", "primal": "primal", "dual": "dual", "relative_gap": "relative_gap", "tol": "tolerance",
    "done": "tasks_done", "total": "tasks_total", "bytes": "rows_bytes",
}  # fmt: skip
"""The names of the figures, by the names of the facts of events."""


class MetricsObserver(RunObserver):
    """Forwards every event to another observer, and sends the figures of the run to the scheduler if there is one."""

    def __init__(self, observer: RunObserver, run: str) -> None:
        self._observer, self._run = observer, run
        self._client: Any = None
        self._figures: dict[str, float] = {}
        self._stages: dict[str, float] = {}
        self._stage, self._stage_start, self._sent = "", 0.0, 0.0
        self.run_stage = observer.run_stage  # type: ignore[method-assign]
        self.about({"run": run})

    @contextmanager
    def report_to(self, client: Any, report: Path | None = None) -> Iterator[None]:
        """Send figures to the scheduler of `client` while the context lasts.

        Parameters
        ----------
        client : object
            A client of Dask, or None if there is no cluster.
        report : Path, optional
            The file for Dask's performance report. It is written if there is no error.

        Raises
        ------
        InputError
            If the report cannot be made on this cluster.
        """
        if client is None:
            yield
            return
        from aucdist.engine.workers import performance_report

        with suppress(KeyError):  # the scheduler may have no HTTP server
            if link := client.dashboard_link:
                self.about({"dashboard": link})
        self._client = client
        try:
            with nullcontext() if report is None else performance_report(client, report):
                yield
            self._send()
        finally:
            self._client = None

    def on(self, event: str, facts: Json) -> None:
        """Forward the event and record its figures.

        These are the figures of rounds, of tasks and of the rows, and the time at which the stage started.
        """
        self._observer.on(event, facts)
        if event == "stage":
            self._send()
            self._stage, self._stage_start = facts["stage"], time.monotonic()
        for fact in FIGURE_NAMES.keys() & facts.keys():
            self._figures[f"aucdist_{FIGURE_NAMES[fact]}"] = float(facts[fact])
        if event in ("round", "tasks") and (is_last(facts) or time.monotonic() - self._sent >= LINE_SECONDS):
            self._send()

    def _send(self) -> None:
        if self._stage:
            self._stages[self._stage] = time.monotonic() - self._stage_start
        if self._client is None:
            return
        from aucdist.engine.workers import put_figures

        self._sent = time.monotonic()
        with suppress(Exception):  # if the scheduler is lost, the run itself ends with a better message
            put_figures(self._client, self._run, self._figures, self._stages)
