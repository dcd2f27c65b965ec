"""What the commands share: options, exit codes, and how an error is told."""

import copy
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from flows.progress.console import RunObserver

OK, FAILED, WRONG_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A file in configs/cluster, or a path, in place of the file's own."),
]


def lines() -> "RunObserver":
    """Return a watch that writes lines to stderr, where they do not mix with results."""
    from flows.progress.json_log import follower

    return follower(lambda text: print(text, file=sys.stderr, flush=True))


def followed(work: Callable[["RunObserver"], dict[str, Any]]) -> dict[str, Any]:
    """Do some work with a watch on stderr: moving bars on a terminal, else lines, of JSON if that is asked for."""
    from rich.console import Console

    from flows.progress.console import LiveObserver
    from flows.progress.json_log import log_form

    console = Console(stderr=True)
    if not console.is_terminal or log_form() == "json":
        return work(lines())
    with LiveObserver(console) as live:
        return work(live)


def quieten_prefect(debug: bool) -> None:
    """Keep tracebacks and the cluster's chatter out of Prefect's lines on stderr; its server gets the whole records."""
    for handler in logging.getLogger().handlers if not debug else []:
        handler.addFilter(lambda record: record.levelno >= logging.WARNING or not record.name.startswith("distributed"))
        handler.format = _without_traceback(handler.format)  # type: ignore[assignment]


def _without_traceback(form: Callable[[logging.LogRecord], str]) -> Callable[[logging.LogRecord], str]:
    def formatted(record: logging.LogRecord) -> str:
        shown = copy.copy(record)
        shown.exc_info = shown.exc_text = None
        return form(shown)

    return formatted


def print_json(result: dict[str, Any]) -> None:
    """Print an object as one line."""
    typer.echo(json.dumps(result, allow_nan=False))


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Turn an exception into a message on stderr and an exit code; the traceback is shown with ``--debug`` only."""
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        _tell("interrupted", "", INTERRUPTED)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as e:
        from aucdist.errors import InputError, RunError
        from flows.config.prefect_api import explained

        if debug:
            typer.echo(masked(traceback.format_exc()), err=True, nl=False)
        e = explained(e)
        if isinstance(e, InputError):
            _tell("error", str(e), WRONG_INPUT)
            raise typer.Exit(WRONG_INPUT) from None
        what = str(e) if isinstance(e, RunError) else f"{type(e).__name__}: {e}"
        hint = "" if debug else " (--debug shows where)"
        _tell("failed", f"{what}{hint}", FAILED)
        raise typer.Exit(FAILED) from None


def masked(text: str) -> str:
    """Return a text with its URLs as they may be shown: an error may repeat what it was given."""
    from flows.config.loading import mask

    return mask(text)


def _tell(event: str, text: str, code: int) -> None:
    """Write on stderr how a command failed, in the form of the log."""
    from flows.progress.json_log import KEY, entry

    text = masked(text)
    in_json = os.environ.get(KEY) == "json"
    typer.echo(
        entry(event, {"text": text, "exit": code}) if in_json else ": ".join(filter(None, (event, text))), err=True
    )
