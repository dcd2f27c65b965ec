"""`aucdist up`."""

from typing import Annotated

import typer

from flows.command import Command, Debug, report_errors


def up(
    port: Annotated[int, typer.Option(help="Of the server, which only this machine can reach.")] = 4200,
    debug: Debug = False,
) -> None:
    """Start a Prefect server here and serve all flows, until Ctrl-C.

    Then, in another terminal in the same folder: `prefect deployment run train-auc/local --watch`.
    """
    with report_errors(debug):
        from flows.up.run import up as run

        run(port, typer.echo)


COMMAND = Command("up", up, page="train")
