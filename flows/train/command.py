"""`aucdist train`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.command import AsJson, Debug, followed, print_json, quieten_prefect, reported

if TYPE_CHECKING:
    from flows.train.config import TrainConfig


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
        from flows.config.loading import load_train

        result = _run(load_train(config, settings or (), output), debug)
        if as_json:
            print_json(result)
        else:
            _show(result)


def _run(config: "TrainConfig", debug: bool) -> dict[str, Any]:
    from flows.config.prefect_api import api_configured

    if api_configured():
        from flows.train.flow import train_auc  # importing Prefect sets up its logging

        quieten_prefect(debug)
        return train_auc(config)

    from flows.train.run import train as train_plainly

    return followed(lambda observer: train_plainly(config, observer))


def _show(result: dict[str, Any]) -> None:
    from rich.console import Console

    from flows.progress.console import summary

    Console().print(summary(result))
    typer.echo(f"report: {result['run']}/report.html")
