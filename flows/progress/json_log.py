"""The log of a run: lines of text for people, or lines of JSON for log collectors, as AUCDIST_LOG chooses."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aucdist.errors import unknown
from flows.json_values import jsonable
from flows.progress.console import LineObserver, Record, RunObserver, Tasks

LOG_FORMAT = "AUCDIST_LOG"
FORMATS = ("text", "json")
FLOW_RUN = "PREFECT__FLOW_RUN_ID"  # Prefect sets it in the process of a deployment's run


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
    """Shows a run as lines of JSON, one for each event; every line names the run and the stage."""

    def __init__(self, write_line: Callable[[str], Any]) -> None:
        self._write_line = write_line
        run = os.environ.get(FLOW_RUN)
        self._in_every_line: dict[str, Any] = {} if run is None else {"flow_run": run}

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
