"""`aucdist train`."""

from typing import Annotated, Any

import typer

from flows.command import AsJson, Command, Debug, print_json, report_errors


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
    with report_errors(debug):
        from flows.train.config import load_train

        result = COMMAND.run(load_train(config, settings or (), output), debug)
        if as_json:
            print_json(result)
        else:
            _print_summary(result)


def _print_summary(result: dict[str, Any]) -> None:
    from rich.console import Console

    from flows.progress.console import summary_table

    Console().print(summary_table(result))
    typer.echo(f"report: {result['run']}/report.html")


COMMAND = Command("train", train, page="train", function="train", flow="train_auc", config="TrainConfig")
