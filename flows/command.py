"""Commands of `aucdist`. A command is a pydantic model and a function. Options, help and output are derived from them.

A table of `commands.toml` names both. The fields of the model are the arguments and options, and the `Cli` annotations of the
fields say how. The descriptions of the fields are printed by ``--help`` and listed in the reference of configurations. The same
model is the parameter of the Prefect flow, if the command has one.
"""

import copy
import importlib
import inspect
import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from aucdist.errors import InputError, RunError, error_text, printable, shortened

if TYPE_CHECKING:
    from pydantic import BaseModel

    from flows.config.loading import Cli
    from flows.progress import RunObserver

OK, FAILED, WRONG_INPUT, ALARMS, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143
MAX_ERROR_LENGTH = 4000
"""The largest number of characters of a printed error, which may repeat long input."""
DATA = "A data set of the catalog, a YAML file with the keys of a source, or a file or URL."
SET_KEY_OF_SOURCE = "Change a key of the source, as in --set label=clicked. May be repeated."
JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object as the last line of stdout.")
DEBUG = click.Option(["--debug"], is_flag=True, help="Show the traceback of an error.")


@dataclass(frozen=True)
class Command:
    """A command of `aucdist`.

    Attributes
    ----------
    name : str
        The name as typed. For a command in a group, these are both names, separated by a space.
    section : str
        The heading below which ``aucdist --help`` lists the command.
    short : str
        The text of the command in ``aucdist --help``, which fits on one line of a terminal.
    summary : str
        The beginning of the help of the command.
    page : str
        The page of the command in the documentation, ``docs/pages/how-to/<page>.md``.
    model : str
        ``module:class`` of the pydantic model. If the class has a method `load`, the function and the flow get its result. An
        example is the configuration in a file that the options name.
    function : str
        ``module:function`` of the plain function. It takes the configuration and returns what ``--json`` prints. If it has
        a parameter `observer`, it reports stages and their progress to it.
    lines : str
        ``module:function`` that converts the result to lines of text or to tables of rich. It is empty if nothing is printed.
    flow : str
        ``module:function`` of the Prefect flow, which takes the configuration and returns the same result. It is empty if the
        command has no flow.
    after : str
        ``module:function`` that is called with the result after it was printed, and may raise an InputError.
    more : str
        The rest of the help of the command, after `summary`.
    """

    name: str
    section: str
    short: str
    summary: str
    page: str
    model: str
    function: str
    lines: str = ""
    flow: str = ""
    after: str = ""
    more: str = ""

    def run(self, as_json: bool = False, debug: bool = False, **options: Any) -> None:
        """Run the command with its options, print the result, and exit.

        The Prefect flow runs if an API of Prefect is configured. Otherwise the plain function runs.
        """
        with report_errors(debug):
            from flows.config.cluster import api_configured

            sys.modules.setdefault("scipy.stats", ImportedLater("scipy.stats"))
            config = config_from_options(resolve_name(self.model), f"aucdist {self.name}", options)
            if self.flow and api_configured():
                flow = resolve_name(self.flow)  # this import configures Prefect's logging
                quiet_prefect_log(debug)
                result = flow(config)
            else:
                function = resolve_name(self.function)
                with progress_on_stderr() as observer:
                    takes_observer = "observer" in inspect.signature(function).parameters
                    result = function(config, observer) if takes_observer else function(config)
            if as_json:
                click.echo(json.dumps(result, allow_nan=False))
            else:
                for line in resolve_name(self.lines)(result) if self.lines else ():
                    if isinstance(line, str):
                        click.echo(printable(line))  # names from files may contain control characters
                    else:  # it is a table of rich
                        from rich.console import Console

                        Console().print(line)
            if self.after:
                resolve_name(self.after)(result)
            if result.get("alarms"):
                raise click.exceptions.Exit(ALARMS)

    def as_click(self) -> click.Command:
        """Return the command with the options of its model."""
        return click.Command(
            self.name.rpartition(" ")[2], params=[*parameters(resolve_name(self.model)), JSON, DEBUG], callback=self.run,
            help=f"{self.summary}\n\n{self.more}", short_help=self.short,
        )  # fmt: skip


class ImportedLater(ModuleType):
    """A module that is imported when one of its attributes is used for the first time.

    scikit-learn imports scipy.stats for a function that few commands call, and the import takes half a second of CPU.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # `inspect` reads ``__file__`` of all modules
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


# ---- options from a pydantic model, and back ----------------------------------------------------------------------------


def parameters(model: "type[BaseModel]") -> list[click.Parameter]:
    """Return the arguments and options of a model. Each field that is not hidden becomes one of them."""
    from flows.config.loading import kinds_of

    arguments: dict[int, click.Parameter] = {}
    options: list[click.Parameter] = []
    flags = flags_of(model)
    for name, field, note in noted_fields(model):
        kinds = kinds_of(field.annotation)
        # Descriptions name the keys of a configuration; here they are options.
        help = re.sub("`(\\w+)`", lambda key: flags.get(key[1], key[0]), field.description or "")
        about: dict[str, Any] = {"help": help, "required": field.is_required()}
        # The model checks numbers, so that errors about them read like all other errors.
        about["metavar"] = note.metavar or ("NUMBER" if {int, float} & kinds else None)
        key = "data" if note.data else name
        if note.data:
            about |= {"metavar": "DATA"} if note.flag else {"help": DATA, "required": note.required}
        if note.position:
            arguments[note.position] = click.Argument([key], nargs=-1 if list in kinds else 1, **about)
        else:
            if bool in kinds:
                about["is_flag"] = True
            else:
                if not field.is_required() and isinstance(field.default, str | int | float):
                    about["help"] += f"  [default: {field.default}]"
                about["multiple"] = list in kinds
            options.append(click.Option([flags[name], key], **about))
        if note.data:
            options.append(
                click.Option(["--set", "settings"], multiple=True, metavar="KEY=VALUE", help=SET_KEY_OF_SOURCE)
            )
    return [arguments[place] for place in sorted(arguments)] + options


def flags_of(model: "type[BaseModel]") -> dict[str, str]:
    """Return the option of each field that is not an argument."""
    return {
        name: note.flag or f"--{name.replace('_', '-')}" for name, _, note in noted_fields(model) if not note.position
    }


def noted_fields(model: "type[BaseModel]") -> Iterator[tuple[str, Any, "Cli"]]:
    """Yield the name, the field and the `Cli` annotation of each field that can be set on the command line."""
    from flows.config.loading import Cli

    for name, field in model.model_fields.items():
        note = next((part for part in field.metadata if isinstance(part, Cli)), Cli())
        if not note.hidden:
            yield name, field, note


def config_from_options(model: "type[BaseModel]", where: str, options: dict[str, Any]) -> Any:
    """Return the configuration of the given options. All other fields have the defaults of the model.

    Parameters
    ----------
    model : type
        The pydantic model of the command.
    where : str
        The name of the command in errors.
    options : dict
        The value of each option that was given.

    Raises
    ------
    InputError
        If an option is wrong.
    """
    from flows.config.data import source_from_name
    from flows.config.loading import validated

    fields: dict[str, Any] = {}
    for name, _, note in noted_fields(model):
        value = options.get("data" if note.data else name)
        if not note.data:
            fields[name] = list(value) or None if isinstance(value, tuple) else value
        elif value is not None:
            fields[name] = source_from_name(
                value, options["settings"], labelled=note.labelled, trained=options.get("model")
            )[1]
        elif options["settings"]:
            raise InputError(
                "--set changes a key of the source, but no rows were named: name a file or data set, or leave out --set"
            )
    fields = {name: value for name, value in fields.items() if value is not None}
    config: Any = validated(model, fields, where, flags_of(model))
    return config.load() if hasattr(config, "load") else config


# ---- running, printing, errors ------------------------------------------------------------------------------------------


@contextmanager
def progress_on_stderr() -> Iterator["RunObserver"]:
    """Yield an observer that writes to stderr: progress bars on a terminal, and lines of text or JSON otherwise."""
    from rich.console import Console

    from flows.progress import LiveObserver, log_format, log_observer

    console = Console(stderr=True)
    if not console.is_terminal or log_format() == "json":
        yield log_observer(lambda text: print(text, file=sys.stderr, flush=True))
        return
    with LiveObserver(console) as live:
        yield live


def quiet_prefect_log(debug: bool) -> None:
    """Remove tracebacks and messages of the cluster from Prefect's log on stderr.

    Prefect's server still gets the complete records.
    """
    for handler in logging.getLogger().handlers if not debug else []:
        handler.addFilter(lambda record: record.levelno >= logging.WARNING or not record.name.startswith("distributed"))

        def formatted(record: logging.LogRecord, form: Any = handler.format) -> str:
            shown = copy.copy(record)
            shown.exc_info = shown.exc_text = None
            return str(form(shown))

        handler.format = formatted  # type: ignore[method-assign]


@contextmanager
def report_errors(debug: bool) -> Iterator[None]:
    """Convert exceptions to a message on stderr and an exit code. The traceback is shown only with ``--debug``."""
    try:
        yield
        return
    except (click.exceptions.Exit, BrokenPipeError):
        raise  # the output was closed, as by `| head`, and the command ends silently
    except KeyboardInterrupt:
        event, text, code = "interrupted", "", INTERRUPTED
    except Exception as e:
        from aucdist.data.storage.urls import hide
        from aucdist.extras import EXTRAS, explain_missing
        from flows.config.cluster import as_user_error

        if debug:
            click.echo(hide(traceback.format_exc()), err=True, nl=False)
        e = as_user_error(e)
        if isinstance(e, ModuleNotFoundError) and (e.name or "").partition(".")[0] in EXTRAS:
            e = InputError(explain_missing(e))
        if isinstance(e, MemoryError):
            e = RunError(
                f"there is not enough memory{f': {e}' if str(e) else ''}. In a configuration, `cache: stream` streams rows"
            )
        if isinstance(e, InputError):
            event, text, code = "error", str(e), WRONG_INPUT
        else:
            event, text, code = "failed", f"{error_text(e)}{'' if debug else ' (--debug shows where)'}", FAILED
    print_event(event, text, exit=code)
    raise click.exceptions.Exit(code)


def print_event(event: str, text: str, **about: int) -> None:
    """Write an error or a warning of a command to stderr, in the format of the log."""
    from aucdist.data.storage.urls import hide
    from flows.progress import LOG_FORMAT, json_line

    text = shortened(printable(hide(text)), MAX_ERROR_LENGTH)
    if os.environ.get(LOG_FORMAT) == "json":
        click.echo(json_line(event, {"text": text, **about}), err=True)
    else:
        click.echo(": ".join(filter(None, (event, text))), err=True)
