"""The command `aucdist`.

Its commands are in `commands.toml`: each one is a pydantic model, a function and a table in that file.
"""

import difflib
import gc
import io
import logging
import os
import re
import signal
import sys
import tomllib
import warnings
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from aucdist.errors import unknown
from flows.command import OK, TERMINATED, WRONG_INPUT, Command, print_event, report_errors

_TABLE = Path(__file__).with_name("commands.toml").read_text(encoding="utf-8")
COMMANDS = tuple(Command(name, **row) for name, row in tomllib.loads(_TABLE).items())
"""All commands. tests/flows/test_commands.py checks that deployments, configuration reference and documentation have them."""

GROUPS = {"data": "List, download, preview and verify data sets."}
"""The groups of commands, with their descriptions."""


class Commands(click.Group):
    """A group of commands. The modules of a command are imported only when it runs.

    Parameters
    ----------
    above : str, default=""
        The name of the group and a space; empty for `aucdist` itself.
    **options : object
        Keyword arguments of click.Group.
    """

    def __init__(self, above: str = "", **options: Any):
        super().__init__(**options)
        self.above = above
        self.rows = {row.name.removeprefix(above): row for row in COMMANDS if row.name.startswith(above)}
        self.sections = {name.partition(" ")[0]: row.section for name, row in self.rows.items()}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Register the secrets of URLs among the arguments before anything can print them.

        The secrets in ``--set`` are registered later, when its values are parsed as YAML.
        """
        if self.above:
            return super().parse_args(ctx, args)
        return super().parse_args(
            ctx, [a if before == "--set" else _parsed_argument(a) for before, a in zip(("", *args), args, strict=False)]
        )

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of `commands.toml`. A group has the position of its first command."""
        return list(self.sections)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command or a group by its name."""
        if not self.above and cmd_name in GROUPS:
            return Commands(f"{cmd_name} ", name=cmd_name, help=GROUPS[cmd_name], no_args_is_help=True)
        with report_errors(debug=False):  # this imports the configuration of the command
            if cmd_name not in self.rows:
                raise unknown("command", cmd_name, self.sections)
            return self.rows[cmd_name].as_click()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their summaries by section, without importing their modules."""
        longest = max(map(len, self.sections))
        for section, names in groupby(self.sections, self.sections.__getitem__):
            with formatter.section(section):
                formatter.write_dl([(name.ljust(longest), GROUPS.get(name) or self.rows[name].short) for name in names])


def _parsed_argument(argument: str) -> str:
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    if option == "--set" or ":" not in value:
        return argument
    from aucdist.data.storage.urls import SCHEME, enter

    return f"{option}{equals}{enter(value)}" if SCHEME.match(value) else argument


def _print_version(ctx: click.Context, option: click.Parameter, requested: bool) -> None:
    if requested:
        from aucdist import __version__

        click.echo(f"aucdist {__version__}")
        ctx.exit(OK)


def _set_log(ctx: click.Context, option: click.Parameter, kind: str | None) -> None:
    from flows.progress import LOG_FORMAT, log_format

    with report_errors(debug=False):
        if kind is not None:
            os.environ[LOG_FORMAT] = kind  # in the environment, because the flows read it as well
        log_format()


OUR_WORDS = {
    "^No such option": "there is no option", "^Missing (.*)[.]": r"the \1 is missing: add it",
    "^Got unexpected extra arguments? (.*)": r"the command takes fewer arguments: leave out \1, quote a value with blanks, or "
    "name one where a pattern such as trained/* matches several",
    "^Option": "the option",
}  # fmt: skip
"""The words that replace Click's words in errors about arguments."""


def _show(error: click.UsageError, file: object = None) -> None:
    """Write an error in the arguments, which click has found, in the same form as all other errors.

    The usage of the command follows.
    """
    text = error.format_message()
    if isinstance(error, click.NoSuchOption) and error.ctx:
        # The dashes would make all options look alike.
        options = [option.lstrip("-") for option in error.possibilities or ()]
        text, near = error.message, difflib.get_close_matches(error.option_name.lstrip("-"), options, 1)
        if near:
            text += f" Did you mean '--{near[0]}'?"
        elif error.ctx.info_name in ("train", "cv"):
            text += " A key of the configuration is given with --set, as in --set model.lam=1e-2"
    for words, ours in OUR_WORDS.items():
        text = re.sub(words, ours, text)
    print_event("error", f"{text}{f' ({error.ctx.get_usage()})' if error.ctx else ''}", exit=WRONG_INPUT)


click.UsageError.show = _show  # type: ignore[method-assign, assignment]

app = Commands(
    name="aucdist", no_args_is_help=True,
    help="Train linear and additive models that rank a rare class above the rest. The default loss is over all pairs of a "
    "positive and a negative row. Fits of convex losses end with a proof of how close to the optimum they are. In Python: "
    "help('aucdist').",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 the run failed, 2 wrong input, 3 alarms of `watch` or `keep-current`, 130 interrupted, 143 "
    "terminated.",
    params=[
        click.Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version."
        ),
        click.Option(
            ["--log"], metavar="text|json", expose_value=False, callback=_set_log,
            help="How progress and errors are written to stderr. [env: AUCDIST_LOG; default: text]",
        ),
    ],
)  # fmt: skip


def _on_sigterm(number: int, frame: object) -> None:
    raise SystemExit(TERMINATED)  # an exception, so that unfinished folders are removed and worker processes end


def _on_sigint(number: int, frame: object) -> None:
    # From now on, workers lose their scheduler. Their errors about it are not of interest.
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    raise KeyboardInterrupt


def main() -> None:
    """Run the command."""
    # Imported modules stay in memory. With Python's threshold, searching them for garbage would take a tenth of the time of a
    # short command.
    gc.set_threshold(50_000)
    if isinstance(sys.stdout, io.TextIOWrapper):  # characters that the terminal's encoding lacks are escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    # Python would add the path and the line of code to a warning.
    warnings.showwarning = lambda message, *_, **__: print_event("warning", str(message))
    signal.signal(signal.SIGINT, _on_sigint)
    signal.signal(signal.SIGTERM, _on_sigterm)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # false if nohup started the command
        # SIGHUP gets the handler of SIGTERM, which may first write a checkpoint.
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        app.main()
    except ModuleNotFoundError as error:
        from aucdist.extras import explain_missing

        sys.exit(f"error: {explain_missing(error)}")


if __name__ == "__main__":
    main()
