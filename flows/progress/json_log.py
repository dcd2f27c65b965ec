"""What a run writes to its log: lines for people, or lines of JSON for what gathers logs, as AUCDIST_LOG says."""

import json
import math
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aucdist.errors import unknown
from flows.progress.console import LineObserver, Record, RunObserver, Tasks

KEY = "AUCDIST_LOG"
FORMS = ("text", "json")
FLOW_RUN = "PREFECT__FLOW_RUN_ID"  # which Prefect gives to the process of a deployment's run


def log_form() -> str:
    """Return how the environment wants the log.

    Raises
    ------
    InputError
        If it names no form.
    """
    form = os.environ.get(KEY) or "text"
    if form not in FORMS:
        raise unknown(KEY, form, FORMS)
    return form


def follower(say: Callable[[str], Any]) -> RunObserver:
    """Return a watch that writes the log, in the form that the environment wants; `say` takes each line."""
    return JsonLineObserver(say) if log_form() == "json" else LineObserver(say)


def entry(event: str, facts: Record) -> str:
    """Return a line of the log: an object of JSON with the time in UTC, what kind of event it is, and facts.

    What is not finite becomes null, for JSON has no such numbers.
    """
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": now, "event": event, **{k: _plain(v) for k, v in facts.items()}}, allow_nan=False)


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


class JsonLineObserver:
    """Follows a run in lines of JSON, one for each event; every line names the run and the stage."""

    def __init__(self, say: Callable[[str], Any]) -> None:
        self._say = say
        run = os.environ.get(FLOW_RUN)
        self._known: dict[str, Any] = {} if run is None else {"flow_run": run}

    def stage(self, name: str) -> None:
        """Write that a stage begins."""
        self._known["stage"] = name
        self._write("stage", {})

    def round(self, record: Record, tol: float) -> None:
        """Write how the solver stands."""
        self._write("round", {**record, "tol": tol})

    def tasks(self, tasks: Tasks) -> None:
        """Write how many tasks are done."""
        self._write("tasks", vars(tasks))

    def note(self, text: str) -> None:
        """Write a text."""
        self._write("note", {"text": text})

    def about(self, facts: Record) -> None:
        """Write facts; the name of the run is in all lines from here on."""
        if "run" in facts:
            self._known["run"] = facts["run"]
        self._write("about", facts)

    def _write(self, event: str, facts: Record) -> None:
        self._say(entry(event, {**self._known, **facts}))
