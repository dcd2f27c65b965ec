"""What all commands share: options, exit codes, error messages, and the choice between plain function and Prefect flow."""

import copy
import importlib
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from flows.progress.console import RunObserver

OK, FAILED, WRONG_INPUT, ALARMS, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143
MOST_CHARACTERS = 4000
"""So much of an error is printed: what was given may be long."""

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A file in configs/cluster, or a path, in place of the file's own."),
]
Data = Annotated[
    str, typer.Argument(help="A data set of the catalog, a YAML file with the keys of a source, or a file or URL.")
]
SourceSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the source, as in --set label=clicked. May be repeated."
    ),
]


@dataclass(frozen=True)
class Command:
    """A command of `aucdist`: the folder ``flows/<name>``, with the same modules for each.

    `main`: what the command line calls, in ``flows/<name>/command.py``.
    `page`: its page of the documentation, ``docs/pages/how-to/<page>.md``.
    `function`: the plain function in ``flows/<name>/run.py``; empty if the command calls it itself. It takes
        ``config``, an ``observer`` that it calls with stages and their progress, and as far as it has stages
        ``run_stage``, which runs each; it returns what ``--json`` prints, and so does the flow.
    `flow`: the Prefect flow in ``flows/<name>/flow.py``; empty if there is none.
    `config`: the configuration in ``flows/<name>/config.py`` whose keys the reference lists; empty if there is none.
    """

    name: str
    main: Callable[..., None] | typer.Typer
    page: str
    function: str = ""
    flow: str = ""
    config: str = ""

    @property
    def folder(self) -> str:
        """The name of the command's folder, which is a package."""
        return self.name.replace("-", "_")

    @property
    def entrypoint(self) -> str:
        """The entry point of the Prefect flow, such as ``flows.train.flow.train_auc``; empty if there is none."""
        return f"flows.{self.folder}.flow.{self.flow}" if self.flow else ""

    def load(self, module: str, attribute: str) -> Any:
        """Import a module of the command's folder and return one of its attributes."""
        return getattr(importlib.import_module(f"flows.{self.folder}.{module}"), attribute)

    def run(self, config: Any, debug: bool) -> dict[str, Any]:
        """Run the Prefect flow if Prefect has an API configured, else the plain function with progress on stderr.

        Returns what ``--json`` prints.
        """
        from flows.config.prefect_api import api_configured

        if self.flow and api_configured():
            flow = self.load("flow", self.flow)  # importing Prefect configures its logging
            quiet_prefect_log(debug)
            result: dict[str, Any] = flow(config)
            return result
        function = self.load("run", self.function)
        return run_with_progress(lambda observer: function(config, observer))


def run_with_progress(work: Callable[["RunObserver"], dict[str, Any]]) -> dict[str, Any]:
    """Run a function with an observer on stderr: moving bars on a terminal, else lines of text or of JSON."""
    from rich.console import Console

    from flows.progress.console import LiveObserver
    from flows.progress.json_log import log_format, log_observer

    console = Console(stderr=True)
    if not console.is_terminal or log_format() == "json":
        return work(log_observer(lambda text: print(text, file=sys.stderr, flush=True)))
    with LiveObserver(console) as live:
        return work(live)


def quiet_prefect_log(debug: bool) -> None:
    """Remove tracebacks and the cluster's messages from Prefect's lines on stderr; its server gets the whole records."""
    for handler in logging.getLogger().handlers if not debug else []:
        handler.addFilter(lambda record: record.levelno >= logging.WARNING or not record.name.startswith("distributed"))
        handler.format = _without_traceback(handler.format)  # type: ignore[assignment]


def _without_traceback(form: Callable[[logging.LogRecord], str]) -> Callable[[logging.LogRecord], str]:
    def formatted(record: logging.LogRecord) -> str:
        shown = copy.copy(record)
        shown.exc_info = shown.exc_text = None
        return form(shown)

    return formatted


def print_lines(lines: Iterable[str]) -> None:
    """Print what a command has to say; names from files cannot move the cursor or colour the terminal."""
    from aucdist.errors import printable

    typer.echo(printable("\n".join(lines)))


def print_json(result: dict[str, Any]) -> None:
    """Print an object as one line."""
    typer.echo(json.dumps(result, allow_nan=False))


@contextmanager
def report_errors(debug: bool) -> Iterator[None]:
    """Turn an exception into a message on stderr and an exit code; the traceback is shown with ``--debug`` only."""
    try:
        yield
    except (typer.Exit, BrokenPipeError):  # nobody reads on, as after `| head`: click ends the command silently
        raise
    except KeyboardInterrupt:
        _print_error("interrupted", "", INTERRUPTED)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as e:
        from aucdist.data.storage.urls import hide
        from aucdist.errors import InputError, RunError
        from aucdist.extras import EXTRAS, explain_missing
        from flows.config.prefect_api import explained

        if debug:
            typer.echo(hide(traceback.format_exc()), err=True, nl=False)
        e = explained(e)
        if isinstance(e, ModuleNotFoundError) and (e.name or "").partition(".")[0] in EXTRAS:
            e = InputError(explain_missing(e))
        if isinstance(e, InputError):
            _print_error("error", str(e), WRONG_INPUT)
            raise typer.Exit(WRONG_INPUT) from None
        text = str(e) if isinstance(e, RunError) else f"{type(e).__name__}: {e}"
        hint = "" if debug else " (--debug shows where)"
        _print_error("failed", f"{text}{hint}", FAILED)
        raise typer.Exit(FAILED) from None


def _print_error(event: str, text: str, code: int) -> None:
    """Write on stderr how a command failed, in the format of the log."""
    from aucdist.data.storage.urls import hide
    from aucdist.errors import printable, shortened
    from flows.progress.json_log import LOG_FORMAT, json_line

    text = shortened(printable(hide(text)), MOST_CHARACTERS)
    if os.environ.get(LOG_FORMAT) == "json":
        typer.echo(json_line(event, {"text": text, "exit": code}), err=True)
    else:
        typer.echo(": ".join(filter(None, (event, text))), err=True)
