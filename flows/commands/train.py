"""`aucdist train`."""

import copy
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.common import AsJson, Debug, lines, print_json, reported

if TYPE_CHECKING:
    from flows.config import TrainConfig


def train(
    config: Annotated[str, typer.Argument(help="A YAML file, or the name of one in configs/train, such as a9a.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key, as in --set model.lam=1e-2. May be repeated."),
    ] = None,
    output: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the run folder is made: a folder or a URL. [default: runs]")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Train a model, evaluate it, and write the run folder: model, metrics, history, configuration and report.

    If Prefect has an API configured, this starts its flow train-auc; otherwise the same stages run as plain functions.
    """
    with reported(debug):
        from flows.loading import load_train

        result = _run(load_train(config, settings or (), output), debug)
        if as_json:
            print_json(result)
        else:
            _show(result)


def _run(config: "TrainConfig", debug: bool) -> dict[str, Any]:
    from flows.prefect_api import api_configured

    if api_configured():
        return _run_flow(config, debug)

    from rich.console import Console

    from flows.console import Live
    from flows.pipeline import train as train_plainly

    console = Console(stderr=True)
    if not console.is_terminal:
        return train_plainly(config, lines())
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
