"""The command `aucdist`: its subcommands are the functions of `flows.commands`."""

import os
import signal
from typing import Annotated

import typer

from flows.bench import command as bench
from flows.command import OK, TERMINATED, reported
from flows.compare import command as compare
from flows.cv import command as cv
from flows.data import command as data
from flows.reproduce import command as reproduce
from flows.score import command as score
from flows.shard import command as shard
from flows.simulate import command as simulate
from flows.train import command as train
from flows.up import command as up

app = typer.Typer(
    name="aucdist", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Train models for imbalanced classification and ranking by optimising the AUC over all pairs, with a proof of "
    "how close to the optimum they are.",
    epilog="Exit codes: 0 done, 1 the run failed, 2 wrong input, 130 interrupted, 143 terminated.",
)  # fmt: skip
for command in (
    train.train,
    cv.cv,
    compare.compare,
    reproduce.reproduce,
    bench.bench,
    shard.shard,
    score.score,
    simulate.simulate,
    up.up,
):
    app.command()(command)
app.add_typer(data.app, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"aucdist {version('aucdist')}")
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
    """Hold the options of the command itself."""
    from flows.progress.json_log import KEY, log_form

    with reported(debug=False):
        if log is not None:
            os.environ[KEY] = log  # where the flows look, too
        log_form()


def _terminated(number: int, frame: object) -> None:
    raise SystemExit(TERMINATED)  # unwinds, so that nothing half-written stays and worker processes end


def main() -> None:
    """Run the command."""
    signal.signal(signal.SIGTERM, _terminated)
    app()


if __name__ == "__main__":
    main()
