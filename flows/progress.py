"""Show a run: as moving bars, lines of text or lines of JSON on stderr, and by its summary on stdout.

A run on a cluster also sends figures for Prometheus to its scheduler, and keeps Dask's performance report.
"""

import json
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from aucdist.errors import Json, unknown
from aucdist.report.text import search_verdict, seconds_text, summary_rows, value_text
from flows.json_values import jsonable

Record = Mapping[str, Any]
EVERY = 1.0  # seconds between two lines of a log, and between two messages to the scheduler
LOG_FORMAT = "AUCDIST_LOG"
FORMATS = ("text", "json")
FLOW_RUN = "PREFECT__FLOW_RUN_ID"  # Prefect sets it in the process of a deployment's run


@dataclass(frozen=True)
class Tasks:
    """The progress of many tasks of one kind.

    `done`, `total` and `failed`: number of tasks.
    `best`: the best setting of a search so far, as text; empty if there is none.
    `seconds_left`: None if it is unknown.
    """

    done: int
    total: int
    failed: int = 0
    best: str = ""
    seconds_left: float | None = None

    def line(self) -> str:
        """Return the progress as one line of text."""
        parts = [f"{self.done} of {self.total} tasks"]
        parts += [f"{self.failed} failed"] * (self.failed > 0) + [self.best] * (self.best != "")
        if self.seconds_left:
            parts.append(f"{seconds_text(self.seconds_left)} left")
        return ", ".join(parts)


class RunObserver(Protocol):
    """An object that is called with the progress of a run."""

    def stage(self, name: str) -> None:
        """A stage starts."""

    def round(self, record: Record, tol: float) -> None:
        """A round of the solver is done: round, passes, seconds, primal, dual, relative_gap."""

    def tasks(self, tasks: Tasks) -> None:
        """Tasks are done."""

    def note(self, text: str) -> None:
        """A remark for the user."""

    def about(self, facts: Record) -> None:
        """Facts: the name of the run, the URL of the dashboard, the size of the rows."""


def gap_progress(first_gap: float, gap: float, tol: float) -> float:
    """Return the progress of the gap from the first one to `tol`, on a log scale, from 0 to 1."""
    if not (math.isfinite(first_gap) and math.isfinite(gap)) or gap >= first_gap:
        return 0.0
    if gap <= tol:
        return 1.0
    return math.log(first_gap / gap) / math.log(first_gap / max(tol, 1e-300))


def fact_line(facts: Record) -> str:
    """Return facts as one line of text."""
    return ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in facts.items()
    )


class LineObserver:
    """Show a run as lines of text: for logs, and without a terminal. `write_line` is called with each."""

    def __init__(self, write_line: Callable[[str], Any]) -> None:
        self._write_line = write_line
        self._last = -math.inf

    def stage(self, name: str) -> None:
        """Write the name of the stage."""
        self._write_line(name)

    def round(self, record: Record, tol: float) -> None:
        """Write the round, once a second at most, and the last one."""
        class_prefix = f"class {record['class']}  " if "class" in record else ""
        line = (
            f"{class_prefix}round {record['round']}  passes {record['passes']}  gap {record['relative_gap']:.2e}  "
            f"primal {record['primal']:.6g}  dual {record['dual']:.6g}  {record['seconds']:.1f} s"
        )
        self._progress(line, last=record["relative_gap"] <= tol)

    def tasks(self, tasks: Tasks) -> None:
        """Write the number of finished tasks, once a second at most, and when all are done."""
        self._progress(tasks.line(), last=tasks.done == tasks.total)

    def note(self, text: str) -> None:
        """Write the remark."""
        self._write_line(f"  {text}")

    def about(self, facts: Record) -> None:
        """Write the facts."""
        self._write_line(f"  {fact_line(facts)}")

    def _progress(self, line: str, last: bool) -> None:
        now = time.monotonic()
        if last or now - self._last >= EVERY:
            self._last = now
            self._write_line(f"  {line}")


class LiveObserver:
    """Show a run as moving bars on a terminal; a context manager."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn(),
            TextColumn("{task.fields[now]}"), console=console,
        )  # fmt: skip
        self._task: TaskID | None = None
        self._first_gap = math.inf

    def __enter__(self) -> "LiveObserver":
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self._finish()
        self._bar.stop()

    def stage(self, name: str) -> None:
        """Start a bar for the stage."""
        self._bar.start()
        self._finish()
        self._task = self._bar.add_task(name, total=None, now="")

    def round(self, record: Record, tol: float) -> None:
        """Move the bar: from the first gap to `tol`, on a log scale."""
        gap = record["relative_gap"]
        if not math.isfinite(self._first_gap):
            self._first_gap = gap
        line = f"pass {record['passes']}  gap {gap:.1e}  primal {record['primal']:.5g}  dual {record['dual']:.5g}"
        if self._task is not None:
            self._bar.update(self._task, total=1, completed=gap_progress(self._first_gap, gap, tol), now=line)

    def tasks(self, tasks: Tasks) -> None:
        """Move the bar: by the finished tasks."""
        if self._task is not None:
            self._bar.update(self._task, total=max(tasks.total, 1), completed=tasks.done, now=tasks.line())

    def note(self, text: str) -> None:
        """Print the remark above the bars."""
        self._bar.console.print(text, markup=False, highlight=False)

    def about(self, facts: Record) -> None:
        """Print the facts above the bars."""
        self.note(fact_line(facts))

    def _finish(self) -> None:
        if self._task is not None:
            total = self._bar.tasks[self._task].total or 1
            self._bar.update(self._task, total=total, completed=total)


def summary_table(result: Record) -> Table:
    """Return the summary of a training run, from the object that ``--json`` prints."""
    table = Table(show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in summary_rows(dict(result)):
        table.add_row(name, Text(value))
    return table


def trained_lines(result: Record) -> list[Any]:
    """Return the lines that `aucdist train` prints."""
    return [summary_table(result), f"report: {result['run']}/report.html"]


def search_lines(result: Record) -> list[Any]:
    """Return the lines that `aucdist cv` prints: a table of the settings, and what was chosen."""
    metric, best = result["metric"], result["best"]
    table = Table()
    for name in best:
        table.add_column(name, justify="right")
    for name in (metric, "deviation", "passes", ""):
        table.add_column(name, justify="right" if name else "left")
    for row in result["table"]:
        cells = [value_text(row["parameters"][name]) for name in best]
        cells += ["failed" if row[k] is None else f"{row[k]:.4f}" for k in ("mean", "deviation")]
        remark = "chosen" if row["parameters"] == best else "; ".join(row["errors"])
        table.add_row(*cells, f"{row['passes']:,}", Text(remark), style="bold" if remark == "chosen" else "")
    return [table, search_verdict(dict(result)), f"report: {result['run']}/report.html"]


# ---- the log of a run, as AUCDIST_LOG chooses --------------------------------------------------------------------------


def log_format() -> str:
    """Return the format of the log that the environment chooses.

    Raises InputError if there is no such format.
    """
    name = os.environ.get(LOG_FORMAT) or "text"
    if name not in FORMATS:
        raise unknown(LOG_FORMAT, name, FORMATS)
    return name


def log_observer(write_line: Callable[[str], Any]) -> RunObserver:
    """Return an observer that writes the log, in the format that the environment chooses, line by line."""
    return JsonLineObserver(write_line) if log_format() == "json" else LineObserver(write_line)


def json_line(event: str, facts: Record) -> str:
    """Return a line of the log in JSON: the time in UTC, the kind of event, and facts; see `flows.json_values.jsonable`."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": now, "event": event, **jsonable(dict(facts))}, allow_nan=False)


class JsonLineObserver:
    """Show a run as lines of JSON, one for each event; every line names the run and the stage."""

    def __init__(self, write_line: Callable[[str], Any]) -> None:
        self._write_line = write_line
        run = os.environ.get(FLOW_RUN)
        self._in_every_line: Json = {} if run is None else {"flow_run": run}

    def stage(self, name: str) -> None:
        """Write that a stage starts."""
        self._in_every_line["stage"] = name
        self._write("stage", {})

    def round(self, record: Record, tol: float) -> None:
        """Write a round of the solver."""
        self._write("round", {**record, "tol": tol})

    def tasks(self, tasks: Tasks) -> None:
        """Write the number of finished tasks."""
        self._write("tasks", vars(tasks))

    def note(self, text: str) -> None:
        """Write a remark."""
        self._write("note", {"text": text})

    def about(self, facts: Record) -> None:
        """Write facts; the name of the run is in all following lines."""
        if "run" in facts:
            self._in_every_line["run"] = facts["run"]
        self._write("about", facts)

    def _write(self, event: str, facts: Record) -> None:
        self._write_line(json_line(event, {**self._in_every_line, **facts}))


# ---- warnings ----------------------------------------------------------------------------------------------------------


@contextmanager
def warnings_to(observer: RunObserver, ignored: Sequence[type[Warning]] = ()) -> Iterator[None]:
    """Send warnings to `observer` as notes, without the paths that Python adds.

    Warnings that differ only in their numbers, for example from several folds, become one note with the first one and the count.

    `ignored`: warnings of these kinds are left out.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in ignored:
            warnings.simplefilter("ignore", category)
        yield
    alike: dict[tuple[str, str], list[str]] = {}
    for warning in caught:
        kind, text = warning.category.__name__, str(warning.message)
        alike.setdefault((kind, re.sub(r"[0-9.]+", "", text)), []).append(text)
    for (kind, _), texts in alike.items():
        more = f" (and {len(texts) - 1} more like it)" if len(texts) > 1 else ""
        observer.note(f"{kind}: {texts[0]}{more}")


# ---- what is sent to a cluster -----------------------------------------------------------------------------------------


REPORT = "dask-report.html"


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
        from aucdist.engine.workers import link_of, performance_report

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
        from aucdist.engine.workers import put_figures

        self._sent = time.monotonic()
        with suppress(Exception):  # if the scheduler is lost, the run ends with a better message
            put_figures(self._client, self._run, self._figures, self._stages)
