"""The command `aucdist`: the table of its commands. A new command is a folder below `flows`, and a row here."""

import os
import signal
from typing import Annotated

import typer
from typer.core import TyperGroup

from aucdist.data.storage.urls import SCHEME, enter
from flows.command import OK, TERMINATED, Command, report_errors
from flows.compare import command as compare
from flows.cv import command as cv
from flows.data import command as data
from flows.explain import command as explain
from flows.export import command as export
from flows.init import command as init
from flows.keep_current import command as keep_current
from flows.models import command as models
from flows.promote import command as promote
from flows.reproduce import command as reproduce
from flows.rollback import command as rollback
from flows.score import command as score
from flows.shard import command as shard
from flows.simulate import command as simulate
from flows.train import command as train
from flows.up import command as up
from flows.watch import command as watch

COMMANDS: tuple[Command, ...] = (
    init.COMMAND,
    train.COMMAND,
    cv.COMMAND,
    compare.COMMAND,
    promote.COMMAND,
    rollback.COMMAND,
    models.COMMAND,
    reproduce.COMMAND,
    shard.COMMAND,
    score.COMMAND,
    watch.COMMAND,
    keep_current.COMMAND,
    explain.COMMAND,
    export.COMMAND,
    simulate.COMMAND,
    up.COMMAND,
    data.COMMAND,
)
"""All commands. tests/flows/test_commands.py checks that deployments, configuration reference and documentation have them."""


class EnteringGroup(TyperGroup):
    """The command `aucdist`, whose arguments hold no secrets of URLs; those of ``--set`` enter when they are parsed as YAML."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Let the URLs among the arguments enter before anything can print them."""
        after_set = [before == "--set" for before in ("", *args)]
        return super().parse_args(ctx, [a if s else _entered(a) for a, s in zip(args, after_set, strict=False)])


def _entered(argument: str) -> str:
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    if option == "--set" or not SCHEME.match(value):
        return argument
    return f"{option}{equals}{enter(value)}"


app = typer.Typer(
    cls=EnteringGroup,
    name="aucdist", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Train linear and additive models that rank a rare class above the rest, by a loss over all pairs of a positive and a "
    "negative row, and prove how close to the optimum they are. In Python: help('aucdist').",
    epilog="Exit codes: 0 done, 1 the run failed, 2 wrong input, 3 alarms of `watch`, 130 interrupted, 143 terminated.",
)  # fmt: skip
for command in COMMANDS:
    if isinstance(command.main, typer.Typer):
        app.add_typer(command.main, name=command.name)
    else:
        app.command(command.name)(command.main)


def _version(wanted: bool) -> None:
    if wanted:
        from aucdist import __version__

        typer.echo(f"aucdist {__version__}")
        raise typer.Exit(OK)


@app.callback()
def main_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    log: Annotated[
        str | None,
        typer.Option(
            metavar="text|json", help="How progress and errors are written to stderr. [env: AUCDIST_LOG; default: text]"
        ),
    ] = None,
) -> None:
    """Handle the options of `aucdist` itself."""
    from flows.progress.json_log import LOG_FORMAT, log_format

    with report_errors(debug=False):
        if log is not None:
            os.environ[LOG_FORMAT] = log  # where the flows read it, too
        log_format()


def _on_sigterm(number: int, frame: object) -> None:
    raise SystemExit(TERMINATED)  # unwinds, so that unfinished folders are removed and worker processes end


def _on_sighup(number: int, frame: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)  # whose handler may write a checkpoint first


def main() -> None:
    """Run the command."""
    signal.signal(signal.SIGTERM, _on_sigterm)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # else it was started by nohup
        signal.signal(signal.SIGHUP, _on_sighup)
    app()


if __name__ == "__main__":
    main()
