"""The command `aucdist`. Modules that take long to load are imported where they are used, so that `--help` is quick."""

import copy
import json
import logging
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from flows.config import TrainConfig

OK, FAILED, WRONG_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143

app = typer.Typer(
    name="aucdist", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Train models for imbalanced classification and ranking by optimising the AUC over all pairs, with a proof of "
    "how close to the optimum they are.",
    epilog="Exit codes: 0 done, 1 the run failed, 2 wrong input, 130 interrupted, 143 terminated.",
)  # fmt: skip
data_app = typer.Typer(no_args_is_help=True, help="The catalog of data sets.")
app.add_typer(data_app, name="data")

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


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
) -> None:
    """Hold the options of the command itself."""


@app.command()
def train(
    config: Annotated[str, typer.Argument(help="A YAML file, or the name of one in configs/train, such as a9a.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key, as in --set model.lam=1e-2. May be repeated."),
    ] = None,
    output: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the run folder is made: a folder or a URL. [default: runs]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")] = False,
    debug: Debug = False,
) -> None:
    """Train a model, evaluate it, and write the run folder: model, metrics, history, configuration and report.

    If Prefect has an API configured, this starts its flow train-auc; otherwise the same stages run as plain functions.
    """
    with reported(debug):
        from flows.loading import load_train

        result = _run(load_train(config, settings or (), output), debug)
        if as_json:
            typer.echo(json.dumps(result, allow_nan=False))
        else:
            _show(result)


def _run(config: "TrainConfig", debug: bool) -> dict[str, Any]:
    from flows.prefect_api import api_configured

    if api_configured():
        return _run_flow(config, debug)

    from rich.console import Console

    from flows.console import Lines, Live
    from flows.pipeline import train as train_plainly

    console = Console(stderr=True)
    if not console.is_terminal:
        return train_plainly(config, Lines(lambda text: print(text, file=sys.stderr, flush=True)))
    with Live(console) as live:
        return train_plainly(config, live)


def _run_flow(config: "TrainConfig", debug: bool) -> dict[str, Any]:
    from flows.train_auc import train_auc  # importing Prefect sets up its logging

    for handler in logging.getLogger().handlers if not debug else []:
        handler.addFilter(lambda record: record.levelno >= logging.WARNING or not record.name.startswith("distributed"))
        handler.format = _without_traceback(handler.format)  # type: ignore[assignment]
    return train_auc(config)


def _without_traceback(form: Callable[[logging.LogRecord], str]) -> Callable[[logging.LogRecord], str]:
    def formatted(record: logging.LogRecord) -> str:
        shown = copy.copy(record)  # the server gets the whole record
        shown.exc_info = shown.exc_text = None
        return form(shown)

    return formatted


def _show(result: dict[str, Any]) -> None:
    from rich.console import Console

    from flows.console import summary

    Console().print(summary(result))
    typer.echo(f"report: {result['run']}/report.html")


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help="A paper of configs/reproduce, such as 000, or a YAML file.")],
    quick: Annotated[bool, typer.Option("--quick", help="Only the small part of it that the file names.")] = False,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A file in configs/cluster, or a path, in place of the file's own."),
    ] = None,
    output: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the results are kept: a folder or a URL. [default: runs]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")] = False,
    debug: Debug = False,
) -> None:
    """Run a paper's tables and figures, and hold them against the printed figures: a page and a CSV for each table.

    Each fold is a task of its own and its result is kept, so that a run that was ended goes on where it was.
    """
    with reported(debug):
        from flows.console import Lines
        from flows.prefect_api import api_configured
        from flows.reproduce import reproduce as run
        from flows.reproduce_config import load_paper

        config = load_paper(paper, quick=quick, cluster=cluster, output=output)
        if api_configured():
            from flows.reproduce_flow import reproduce_paper

            result = reproduce_paper(config)
        else:
            result = run(config, Lines(lambda text: print(text, file=sys.stderr, flush=True)))
        if as_json:
            typer.echo(json.dumps(result, allow_nan=False))
        else:
            for name, counts in result["tables"].items():
                typer.echo(f"{name}: " + ", ".join(f"{key} {n}" for key, n in counts.items() if key != "below"))
            typer.echo(f"report: {result['run']}/report.html")


@app.command()
def bench(
    suite: Annotated[str, typer.Argument(help="pairwise, engine or workers.")] = "pairwise",
    slow_peers: Annotated[bool, typer.Option("--slow-peers", help="Also the peers that take minutes.")] = False,
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Write the table as CSV, too.")] = None,
    debug: Debug = False,
) -> None:
    """Measure on this machine, side by side with the peers in one process; warm-up apart."""
    with reported(debug):
        from flows.bench import bench as run

        table = run(suite, slow_peers=slow_peers, say=typer.echo)
        if output is not None:
            from aucdist.data.files import write_bytes

            write_bytes(output, table.to_csv(index=False).encode())


@data_app.command("list")
def data_list(debug: Debug = False) -> None:
    """List the data sets of the catalog."""
    with reported(debug):
        from aucdist.data.catalog import catalog

        for name, source in sorted(catalog().items()):
            shape = f"{source.rows or '?'} x {source.features or '?'}"
            typer.echo(f"{name:32} {source.format:10} {shape:>18}")


@data_app.command("show")
def data_show(name: Annotated[str, typer.Argument(help="A data set of the catalog.")], debug: Debug = False) -> None:
    """Show the catalog's entry of a data set."""
    with reported(debug):
        import yaml

        from aucdist.data.catalog import find

        entry = find(name).model_dump(mode="json", exclude_none=True)
        typer.echo(yaml.safe_dump({name: entry}, sort_keys=False, allow_unicode=True), nl=False)


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Turn an exception into a message on stderr and an exit code; the traceback is shown with ``--debug`` only."""
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as e:
        from aucdist.errors import InputError, RunError

        if debug:
            traceback.print_exc()
        if isinstance(e, InputError):
            typer.echo(f"error: {e}", err=True)
            raise typer.Exit(WRONG_INPUT) from None
        what = str(e) if isinstance(e, RunError) else f"{type(e).__name__}: {e}"
        hint = "" if debug else " (--debug shows where)"
        typer.echo(f"failed: {what}{hint}", err=True)
        raise typer.Exit(FAILED) from None


def _terminated(number: int, frame: object) -> None:
    raise SystemExit(TERMINATED)  # unwinds, so that nothing half-written stays and worker processes end


def main() -> None:
    """Run the command."""
    signal.signal(signal.SIGTERM, _terminated)
    app()


if __name__ == "__main__":
    main()
