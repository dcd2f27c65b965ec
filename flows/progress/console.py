"""What a terminal shows of a run: progress on stderr, the summary on stdout."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from aucdist.report.text import seconds_text, summary_rows, value_text

Record = Mapping[str, Any]
EVERY = 1.0  # seconds between two lines where there is no terminal


@dataclass(frozen=True)
class Tasks:
    """How far a search has come.

    Attributes
    ----------
    done, total, failed : int
        Tasks.
    best : str
        The best setting so far, in words.
    seconds_left : float or None
        None while nothing tells.
    """

    done: int
    total: int
    failed: int
    best: str
    seconds_left: float | None

    def line(self) -> str:
        """Return it in one line."""
        parts = [f"{self.done} of {self.total} tasks"]
        parts += [f"{self.failed} failed"] * (self.failed > 0) + [self.best] * (self.best != "")
        if self.seconds_left:
            parts.append(f"{seconds_text(self.seconds_left)} left")
        return ", ".join(parts)


class RunObserver(Protocol):
    """Whoever follows a run."""

    def stage(self, name: str) -> None:
        """Hear that a stage begins."""

    def round(self, record: Record, tol: float) -> None:
        """Hear of a round of the solver: round, passes, seconds, primal, dual, relative_gap."""

    def tasks(self, tasks: Tasks) -> None:
        """Hear how far a search has come."""

    def note(self, text: str) -> None:
        """Hear something worth saying."""

    def about(self, facts: Record) -> None:
        """Hear what the run is called, where it can be watched, how large its rows are."""


class ForwardingObserver:
    """Hands everything on to another watch. Who wants to hear some of it overrides that."""

    def __init__(self, observer: RunObserver) -> None:
        self._watch = observer

    def stage(self, name: str) -> None:
        """Hand it on."""
        self._watch.stage(name)

    def round(self, record: Record, tol: float) -> None:
        """Hand it on."""
        self._watch.round(record, tol)

    def tasks(self, tasks: Tasks) -> None:
        """Hand it on."""
        self._watch.tasks(tasks)

    def note(self, text: str) -> None:
        """Hand it on."""
        self._watch.note(text)

    def about(self, facts: Record) -> None:
        """Hand it on."""
        self._watch.about(facts)


def done(first_gap: float, gap: float, tol: float) -> float:
    """Return how far the gap has come from the first one down to `tol`, on a log scale, from 0 to 1."""
    if not (math.isfinite(first_gap) and math.isfinite(gap)) or gap >= first_gap:
        return 0.0
    if gap <= tol:
        return 1.0
    return math.log(first_gap / gap) / math.log(first_gap / max(tol, 1e-300))


def line(record: Record) -> str:
    """Return a round of the solver in one line."""
    return (
        f"round {record['round']}  passes {record['passes']}  gap {record['relative_gap']:.2e}  "
        f"primal {record['primal']:.6g}  dual {record['dual']:.6g}  {record['seconds']:.1f} s"
    )


def fact_line(facts: Record) -> str:
    """Return facts in one line."""
    return ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in facts.items()
    )


class LineObserver:
    """Follows a run in plain lines: for logs, and where there is no terminal. `say` takes each line."""

    def __init__(self, say: Any) -> None:
        self._say = say
        self._last = -math.inf

    def stage(self, name: str) -> None:
        """Say that a stage begins."""
        self._say(name)

    def round(self, record: Record, tol: float) -> None:
        """Say how the solver stands, once a second at most, and when it is done."""
        now = time.monotonic()
        if now - self._last >= EVERY or record["relative_gap"] <= tol:
            self._last = now
            self._say(f"  {line(record)}")

    def tasks(self, tasks: Tasks) -> None:
        """Say how far a search has come, once a second at most, and when it is done."""
        now = time.monotonic()
        if now - self._last >= EVERY or tasks.done == tasks.total:
            self._last = now
            self._say(f"  {tasks.line()}")

    def note(self, text: str) -> None:
        """Say it."""
        self._say(f"  {text}")

    def about(self, facts: Record) -> None:
        """Say them."""
        self._say(f"  {fact_line(facts)}")


class LiveObserver:
    """Follows a run with a moving bar on a terminal; a context manager."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn(),
            TextColumn("{task.fields[now]}"), console=console,
        )  # fmt: skip
        self._task: TaskID | None = None
        self._first_gap = math.inf

    def __enter__(self) -> "LiveObserver":
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self._finish()
        self._bar.stop()

    def stage(self, name: str) -> None:
        """Start a line of its own for the stage."""
        self._finish()
        self._task = self._bar.add_task(name, total=None, now="")

    def round(self, record: Record, tol: float) -> None:
        """Move the bar: from the first gap to `tol`, on a log scale."""
        gap = record["relative_gap"]
        if not math.isfinite(self._first_gap):
            self._first_gap = gap
        now = f"pass {record['passes']}  gap {gap:.1e}  primal {record['primal']:.5g}  dual {record['dual']:.5g}"
        if self._task is not None:
            self._bar.update(self._task, total=1, completed=done(self._first_gap, gap, tol), now=now)

    def tasks(self, tasks: Tasks) -> None:
        """Move the bar by the tasks that are done."""
        if self._task is not None:
            self._bar.update(self._task, total=max(tasks.total, 1), completed=tasks.done, now=tasks.line())

    def note(self, text: str) -> None:
        """Print it above the bars."""
        self._bar.console.print(text, markup=False, highlight=False)

    def about(self, facts: Record) -> None:
        """Print them above the bars."""
        self.note(fact_line(facts))

    def _finish(self) -> None:
        if self._task is not None:
            total = self._bar.tasks[self._task].total or 1
            self._bar.update(self._task, total=total, completed=total)


def summary(result: Record) -> Table:
    """Return the table a run ends with, out of the object that ``--json`` prints."""
    table = Table(show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in summary_rows(dict(result)):
        table.add_row(name, Text(value))
    return table


def search_table(result: Record) -> Table:
    """Return the table a search ends with, out of the object that ``--json`` prints."""
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
    return table
